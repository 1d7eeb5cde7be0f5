"""The relevance of links in a crawl for files about something: what their texts promise, and what came of it.

A topic reads the text of each link before the link is fetched. Its score is not the probability of a reward: a
listing may read like nothing and lead to everything, and the sentence may be the wrong one. So the scores are kept
with the link, and the crawl learns what they are worth. At first, links that read like the topic are expected to earn
more. This expectation counts as a few pulls, and so fades where it is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.policies.branching.arms import PAGES, TARGETS
from scrapy_focus.web.link_texts import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.mission import Topic
    from scrapy_focus.core.types import Link, Outcome

COLUMNS = 2  # of two bytes each, behind the other features of a queued link: its own relevance, and that of its page
BYTES = 2 * COLUMNS

_SCALE = 1000  # steps in which a relevance is kept; 0 stands for none
_HANDED_ON = 0.7  # of its relevance that a page hands on to the links of its links
_LEVELS = np.array([0.2, 0.5])  # limits between the levels of relevance; each level of a place has a separate arm
_USUAL = -3.0  # log-odds of a link that reads like most do
_MOST_ODDS = 4.6  # log-odds that are told apart, in either direction: 0.01 to 0.99
_PRIORS = {PAGES: (0.0, 0.5, 0.3), TARGETS: (-2.0, 0.8, 0.4)}  # weights of 1, of a link's log-odds and of its page's
_SPREADS = (1.0, 0.25, 0.25)  # standard deviations of these weights before the first pull
_DRIFT = 1e-4  # variance that each pull adds to them: what holds on a part of a site need not hold on the next
_LEAST = 1e-3  # variance of an outcome
_MOST_READ = 20_000  # texts whose relevance is remembered


class LinkRelevance:
    """Scores links by a topic, and learns what these scores are worth for pages and for files.

    The log-odds of a reward are a linear function of two log-odds: of the topic in the text of the link, and in that
    of the link to its page. A page hands its relevance on: to the second page of a listing, or to a file that is
    called "download". The weights are updated with each pull, from a normal prior.

    Parameters
    ----------
    topic
        The model of the topic.

    Notes
    -----
    *Memory*: the scores of 20,000 texts, and four bytes for each queued link.

    References
    ----------
    Penny, Roberts: Dynamic logistic regression. International Joint Conference on Neural Networks (1999), for the
    updates.

    Examples
    --------
    >>> from scrapy_focus.core.types import Link
    >>> from scrapy_focus.topic.keywords import KeywordRelevance
    >>> relevance = LinkRelevance(KeywordRelevance(["honey"]))
    >>> rows = relevance.read([Link("http://a.test/1", 1, anchor="Honey"), Link("http://a.test/2", 2, anchor="Steel")])
    >>> relevance.of(rows).tolist()
    [0.5, 0.0]
    >>> honey, steel = relevance.odds(TARGETS, rows)
    >>> bool(honey > steel)
    True
    >>> for _ in range(20):
    ...     relevance.learn(TARGETS, rows[0], 0.0)
    ...     relevance.learn(TARGETS, rows[1], 1.0)
    >>> honey, steel = relevance.odds(TARGETS, rows)
    >>> bool(honey > steel)
    False
    """

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self._known: dict[str, int] = {}  # recent texts, because a site repeats its links
        self._refits = 0  # of a topic that learns, when these were scored
        self._weights = {kind: np.array(prior) for kind, prior in _PRIORS.items()}
        self._variances = {kind: np.diag(np.square(_SPREADS)) for kind in _PRIORS}

    def read(self, links: Sequence[Link], source: Outcome | None = None) -> NDArray[np.uint16]:
        """Return the relevance of links in steps of a thousandth, and that of their page, shape (n, 2).

        Both count from 1; 0 is for links without any.
        """
        refits = getattr(self.topic, "refits", 0)
        if len(self._known) > _MOST_READ or refits != self._refits:
            self._known.clear()
            self._refits = refits
        texts = [text_of(link) for link in links]
        if missing := [text for text in dict.fromkeys(texts) if text not in self._known]:
            scores = np.nan_to_num(np.asarray(self.topic.score(missing), np.float64))
            steps = np.rint(np.clip(scores, 0, 1) * _SCALE).astype(np.intp) + 1
            self._known.update(zip(missing, steps.tolist(), strict=True))
        page = 0
        if source is not None and source.pick.memo is not None:
            own, handed_on = source.pick.memo.view(np.uint16)[-COLUMNS:].tolist()
            page = max(own, round(_HANDED_ON * handed_on))
        return np.array([(self._known[text], page) for text in texts], np.uint16)

    def of(self, rows: NDArray[np.uint16]) -> NDArray[np.float64]:
        """Return the relevance of links by their own texts, from 0 to 1, shape (n,)."""
        found: NDArray[np.float64] = _shares(rows[:, 0])
        return found

    def levels(self, rows: NDArray[np.uint16]) -> NDArray[np.intp]:
        """Return the levels of links, shape (n,), from 0, by their own relevance or what their page hands on."""
        best = np.maximum(_shares(rows[:, 0]), _HANDED_ON * _shares(rows[:, 1]))
        found: NDArray[np.intp] = np.searchsorted(_LEVELS, best, side="right")
        return found

    def odds(self, kind: int, rows: NDArray[np.uint16]) -> NDArray[np.float64]:
        """Return what their relevance adds to the log-odds of links of a kind, shape (n,)."""
        found: NDArray[np.float64] = _inputs(rows) @ self._weights[TARGETS if kind == TARGETS else PAGES]
        return found

    def chances(self, rows: NDArray[np.uint16]) -> NDArray[np.float64]:
        """Return the expected rewards of files by their relevance alone, shape (n,)."""
        found: NDArray[np.float64] = 1 / (1 + np.exp(-self.odds(TARGETS, rows)))
        return found

    def learn(self, kind: int, row: NDArray[np.uint16], label: float) -> None:
        """Learn what a link of a kind brought, from 0 to 1; ``row``: its relevance, shape (2,)."""
        kind = TARGETS if kind == TARGETS else PAGES
        weights, variances = self._weights[kind], self._variances[kind]
        inputs = _inputs(row[None])[0]
        chance = 1 / (1 + np.exp(-inputs @ weights))
        variances = variances + _DRIFT * np.eye(len(inputs))
        along = variances @ inputs
        gain = along / (inputs @ along + 1 / max(chance * (1 - chance), _LEAST))
        self._variances[kind] = variances - np.outer(gain, along)
        self._weights[kind] = weights + self._variances[kind] @ inputs * (label - chance)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": {}}


def _shares(steps: NDArray[np.uint16]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = (np.maximum(steps, 1).astype(np.float64) - 1) / _SCALE
    return found


def _inputs(rows: NDArray[np.uint16]) -> NDArray[np.float64]:
    """Return 1, and the log-odds of both relevances above those of most links, shape (n, 3)."""
    shares = np.clip(_shares(rows), 1 / (2 * _SCALE), 1 - 1 / (2 * _SCALE))
    odds = np.clip(np.log(shares / (1 - shares)), -_MOST_ODDS, _MOST_ODDS) - _USUAL
    odds[rows == 0] = 0.0
    return np.concatenate([np.ones((len(rows), 1)), odds], axis=1)
