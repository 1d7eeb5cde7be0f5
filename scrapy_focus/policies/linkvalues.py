"""The values of links, learned from the rewards of the pages fetched.

A value that belongs to a page says nothing about a link to a page that nobody has fetched yet. All that is known of
such a link is on the page with the link: its URL, its words, the surrounding text, and its place.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.learn.hashed import NOTHING, HashedLogistic, Remembered, feature
from scrapy_focus.policies.branching.features import WIDTH as OF_A_LINK
from scrapy_focus.policies.branching.features import LinkHasher

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link

WIDTH = OF_A_LINK + 1  # features of a link

_SHOWN = 80  # characters read of a tag path, from its end


class LinkValues:
    """Predicts whether the page of a link will earn a reward, by logistic regression on hashed features.

    Features are those of the default policy, and the end of the tag path: words of the URL, alone and in pairs, its
    template and extension, words of the anchor and around it, and the height of the link on the page.

    Notes
    -----
    *Time*: 10 microseconds a link for its row, once, and as many for learning. *Memory*: half a megabyte, and the
    cache of hashed texts, as in the default policy.

    Examples
    --------
    >>> from scrapy_focus.core.types import Link
    >>> values = LinkValues()
    >>> for n in range(20):
    ...     new, old = values.rows([
    ...         Link(f"http://a.test/{n}", n, tag_path="html/body/div.latest/a"),
    ...         Link(f"http://a.test/old/{n}", n, tag_path="html/body/div.foot/a"),
    ...     ])
    ...     values.learn(new, 1.0)
    ...     values.learn(old, 0.0)
    >>> found = values.decide(values.rows([Link("http://a.test/99", 99, tag_path="html/body/div.latest/a")]))
    >>> bool(found[0] > 1)
    True
    """

    def __init__(self) -> None:
        self._hasher = LinkHasher()
        self._model = HashedLogistic()
        self._places = Remembered(partial(feature, "place"))

    def rows(self, links: Sequence[Link]) -> NDArray[np.uint16]:
        """Return the features of links of one page, in document order, shape (n, 33)."""
        if not links:
            return np.zeros((0, WIDTH), np.uint16)
        places = [self._places[link.tag_path[-_SHOWN:]] if link.tag_path else NOTHING for link in links]
        return np.column_stack([self._hasher.rows(links), np.array(places, np.uint16)])

    def decide(self, rows: NDArray[np.uint16]) -> NDArray[np.float32]:
        """Return the log-odds of a reward for rows, shape (n, 33), as an array of shape (n,)."""
        return self._model.decide(rows)

    def learn(self, row: NDArray[np.uint16], reward: float) -> None:
        """Learn the reward of a link's page, for its row, shape (33,); any reward above 0 counts as one."""
        self._model.learn(row, float(reward > 0))

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self._model}  # the rest is recomputed from the texts

    def __setstate__(self, state: dict[str, Any]) -> None:
        LinkValues.__init__(self)
        self._model = state["model"]
