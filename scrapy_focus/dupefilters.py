"""Which requests were had before: the frontier knows, so nobody else has to."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from scrapy.dupefilters import BaseDupeFilter, RFPDupeFilter
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.request import RequestFingerprinter

from scrapy_focus.spidermiddlewares import KnownLinkMiddleware, has_spider_middleware

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

    from scrapy_focus.core.crawl import Crawl
    from scrapy_focus.engine.inflight import Entry
    from scrapy_focus.engine.links import Links


class FrontierDupeFilter(RFPDupeFilter):
    """Stands in for Scrapy's dupefilter: the same answers and the same log, without a set and a file of its own.

    Scrapy's takes 100 to 200 bytes a URL, and its file knows URLs after a kill that the frontier does not. A dupefilter that
    a project chose itself is left as it is.
    """

    is_known: Callable[[Request], bool]

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        debug = crawler.settings.getbool("DUPEFILTER_DEBUG")
        return cls(None, debug, fingerprinter=crawler.request_fingerprinter)

    def request_seen(self, request: Request) -> bool:
        return self.is_known(request)


class Had:
    """What was requested before, as the scheduler asks for it: the dupefilter of the settings decides.

    ``known_urls`` are those of the last requests, where the dupefilter looks at nothing but the URL.
    """

    def __init__(self, crawler: Crawler, crawl: Crawl, links: Links, *, resumed: bool) -> None:
        self.crawler = crawler
        self.crawl = crawl
        self.links = links
        self.resumed = resumed
        self.known_urls = Recent()
        self._notes_urls = False
        cls = load_object(crawler.settings["DUPEFILTER_CLASS"])
        self.filter = cast(
            "BaseDupeFilter", build_from_crawler(FrontierDupeFilter if cls is RFPDupeFilter else cls, crawler)
        )
        if isinstance(self.filter, FrontierDupeFilter):
            self.filter.is_known = links.is_known

    def open(self) -> Deferred[None] | None:
        """Begin, when all middlewares are there."""
        usual = isinstance(self.filter, FrontierDupeFilter) and (
            type(self.crawler.request_fingerprinter) is RequestFingerprinter
        )
        asked = has_spider_middleware(self.crawler, KnownLinkMiddleware)
        self._notes_urls = usual and asked and not self.crawl.policy.wants_known
        return self.filter.open()

    def close(self, reason: str) -> Deferred[None] | None:
        """End."""
        return self.filter.close(reason)

    def seen(self, request: Request, entry: Entry | None) -> bool:
        """Whether a request was had before, and note that it was now; ``entry``: that of the page that it comes from."""
        if request.dont_filter:
            return False
        if self._notes_urls and request.method == "GET" and not request.body:
            self.known_urls.add(request.url)
        if not self.filter.request_seen(request) or self._was_lost(request, entry):
            return False
        self.filter.log(request, cast("Spider", self.crawler.spider))
        return True

    def _was_lost(self, request: Request, entry: Entry | None) -> bool:
        """Whether a dupefilter of the user's remembers a request, from before a kill, that the frontier does not."""
        if not self.resumed or isinstance(self.filter, FrontierDupeFilter) or self.links.is_known(request):
            return False
        again = entry is not None and entry.pick.key in self.crawl.recovered
        return again or bool(request.meta.get("is_start_request"))


class Recent:
    """The last so many values that were added or asked for, as hashes: older ones are forgotten.

    Examples
    --------
    >>> recent = Recent(2)
    >>> for word in ["a", "b", "c"]:
    ...     recent.add(word)
    >>> "a" in recent, "c" in recent
    (True, True)
    """

    def __init__(self, size: int = 1 << 17) -> None:
        self.size = size  # between one and two times as many are known
        self._new: set[int] = set()
        self._old: set[int] = set()

    def add(self, value: str) -> None:
        """Know a value."""
        self._new.add(hash(value))
        if len(self._new) >= self.size:
            self._old, self._new = self._new, set()

    def __contains__(self, value: str) -> bool:
        if hash(value) in self._new:
            return True
        if hash(value) in self._old:
            self.add(value)
            return True
        return False
