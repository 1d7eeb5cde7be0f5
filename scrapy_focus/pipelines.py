"""Report the worth of items to the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_focus.engine.host import host_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler


class RewardPipeline:
    """Determines what each item is worth to the policy: 1 by default, or whatever a subclass returns.

    An item is worth 1 if :meth:`worth` raises an exception, which is logged. This pipeline comes last, so an item that
    another pipeline dropped is worth nothing. The reward of a page is the sum over its items.

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
        """Return the reward for an item."""
        return 1.0

    def process_item(self, item: Any) -> Any:
        host = host_of(self.crawler)
        standard = type(self).worth is RewardPipeline.worth  # added by the add-on: a subclass takes precedence
        if host is not None and not (standard and host.inflight.is_appraised(item)):
            host.inflight.appraise(item, host.guard("worth", 1.0, self._worth, item))
        return item

    def _worth(self, item: Any) -> float:
        return float(self.worth(item))
