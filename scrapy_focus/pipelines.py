"""Feeds the worth of items back to the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_focus.inflight import scheduler_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler


class RewardPipeline:
    """Says what each item is worth to the policy: 1 by default, or what you make of it in a subclass.

    It comes last, so an item that another pipeline dropped is worth nothing. What a page earned is the sum over its items.

    Examples
    --------
    >>> class BigTables(RewardPipeline):
    ...     def worth(self, item):
    ...         return min(item["rows"] / 1000, 10)
    >>> BigTables.worth(None, {"rows": 500})
    0.5
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def worth(self, item: Any) -> float:
        """How much reward this item is."""
        return 1.0

    def process_item(self, item: Any) -> Any:
        scheduler = scheduler_of(self.crawler)
        if scheduler is not None:
            scheduler.inflight.appraise(item, self.worth(item))
        return item
