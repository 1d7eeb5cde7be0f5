"""The baselines that every learned policy has to beat: breadth-first, depth-first, random."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy_focus.core.parameters import configurable, parameter
from scrapy_focus.policies.bases import Ordering

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from scrapy_focus.core.types import Link, Outcome, Pick, Placement


class BreadthFirst(Ordering):
    """Takes links in the order in which they were found.

    Examples
    --------
    >>> from scrapy_focus import Link
    >>> policy = BreadthFirst()
    >>> policy.rank(Link("http://a/", 1), None) > policy.rank(Link("http://b/", 2), None)
    True
    """

    summary: ClassVar[str] = "Takes links in the order of discovery: near the home page first. What most crawlers do."
    paper_names: ClassVar[Mapping[str, Mapping[str, Any]]] = {"BFS": {}}
    reads_page: ClassVar[bool] = False

    def __init__(self) -> None:
        self._found = 0

    def rank(self, link: Link, source: Outcome | None) -> float:
        self._found += 1
        return -float(self._found)


@configurable
class DepthFirst(Ordering):
    """Takes the links of the most recently fetched page first, in document order.

    Examples
    --------
    >>> from scrapy_focus import Link
    >>> policy = DepthFirst()
    >>> first, second = policy.place([Link("http://a/", 1), Link("http://b/", 2)], None)
    >>> first.rank > second.rank
    True
    >>> policy.place([Link("http://c/", 3)], None)[0].rank > first.rank
    True
    """

    summary: ClassVar[str] = "Takes the links of the newest page first, and so goes far from the home page at once."
    paper_names: ClassVar[Mapping[str, Mapping[str, Any]]] = {"DFS": {"last_first": True}}
    reads_page: ClassVar[bool] = False

    last_first: bool = parameter(
        "In the opposite order: the last link of a page first, as in a plain stack. The released baseline of the "
        "SB-CLASSIFIER paper does so.",
        default=False,
    )

    def __attrs_post_init__(self) -> None:
        self._found = 0

    def rank(self, link: Link, source: Outcome | None) -> float:
        self._found += 1
        return float(self._found)

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        if self.last_first:
            return super().place(links, source)
        return list(super().place(links[::-1], source))[::-1]


class Random(Ordering):
    """Takes any queued link with equal probability."""

    summary: ClassVar[str] = "Takes any known link at random."
    paper_names: ClassVar[Mapping[str, Mapping[str, Any]]] = {"RANDOM": {}}
    reads_page: ClassVar[bool] = False

    def rank(self, link: Link, source: Outcome | None) -> float:
        return float(self.rng.random())

    def select(self, busy: Collection[str]) -> Pick | None:
        awake = int(self.frontier.awake(busy).sum())
        pick = super().select(busy)
        return None if pick is None else pick._replace(chance=1 / awake)
