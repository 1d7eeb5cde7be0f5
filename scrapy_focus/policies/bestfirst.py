"""Best-first: the classical focused crawler, which follows the links whose words fit the topic best."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from attrs import field

from scrapy_focus.core.frontier import Ranked
from scrapy_focus.core.parameters import configurable
from scrapy_focus.core.reason import Part, Reason, depth_of, reads_like
from scrapy_focus.core.types import Placement
from scrapy_focus.policies.topical import TopicPolicy
from scrapy_focus.policies.treeq.features import LinkReader

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.types import Link, Outcome, Pick


_WEIGHTS = np.array([0.05, 0.05, 1.0])  # keyword in the URL, in the anchor, probability

# A rank is the score, minus a little for each link found before: the first 12 bits hold the score, the last 40 the
# order.
_EQUAL = 2.0**-12
_LATER = 2.0**-51


@configurable
class BestFirst(TopicPolicy):
    """Most probable link first: by the words of its anchor and its URL.

    The probability is that of a classifier of texts. Keywords in the URL or the anchor add a twentieth each, so that
    they decide if there is no classifier; among equal links the older one is first. The policy does not learn during
    the crawl.

    References
    ----------
    Cho, Garcia-Molina, Page: Efficient crawling through URL ordering. WWW 1998; Chakrabarti, van den Berg, Dom: Focused
    crawling. WWW 1999.

    Examples
    --------
    >>> from scrapy_focus import Link
    >>> policy = BestFirst(keywords=["cheese"])
    >>> links = [Link("http://a.test/1", 1, anchor="Bread"), Link("http://a.test/2", 2, anchor="Cheese")]
    >>> bread, cheese = policy.place(links, None)
    >>> cheese.rank > bread.rank
    True
    """

    counts_hosts: ClassVar[bool] = True
    reads_topic: ClassVar[bool] = True
    summary: ClassVar[str] = "Asks first for the links whose words fit the topic best."

    frontier: Ranked = field(init=False)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._reader = LinkReader(self.keywords or (), self.relevance)
        self._found = 0

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        topic = mission.topic if self.relevance is None else self.relevance
        self._reader = LinkReader(mission.words if self.keywords is None else self.keywords, topic)
        super().open(frontier, rng, mission)

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        scores = self._reader.read(links) @ _WEIGHTS
        orders = self._found + np.arange(len(links))
        self._found += len(links)
        ranks = (np.rint(scores / _EQUAL) * _EQUAL - orders * _LATER).tolist()
        done = self.domains.is_done(self.domains.rows([link.host for link in links])).tolist()
        return [None if gone else Placement(0, rank) for rank, gone in zip(ranks, done, strict=True)]

    def select(self, busy: Collection[str]) -> Pick | None:
        pick = self.domains.pop(self.frontier, 0, busy)
        if pick is not None:
            self.domains.ask(self.domains.row(pick.host))
        return pick

    def release(self, pick: Pick) -> None:
        self.domains.release(self.domains.row(pick.host))

    def learn(self, outcome: Outcome) -> None:
        self.domains.settle(self.domains.row(outcome.pick.host), outcome)
        self.domains.sweep(self.frontier, 0)

    def explain(self, pick: Pick) -> Reason:
        numbers = {"kind": "most probable", "score": round(pick.rank, 3)}
        return Reason(depth_of(pick), Part(self._judgement(pick.rank), numbers))

    def _judgement(self, score: float) -> str:
        """Say what the score of a link means: the probability alone, or with what keywords add to it."""
        about = self._reader.about
        if not about:
            return f"the words of the link score {round(score, 3)}"
        if self._reader.words:
            return f"the link {reads_like(about, score)}, with what keywords add"
        return f"the link {reads_like(about, score)}"
