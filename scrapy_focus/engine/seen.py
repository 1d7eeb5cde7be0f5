"""Tells which requests were already seen, from the keys in the frontier."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from scrapy.dupefilters import BaseDupeFilter, RFPDupeFilter
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.request import RequestFingerprinter

from scrapy_focus.core.types import State

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Collection, Iterable
    from typing import Self

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

    from scrapy_focus.cluster.worker import Worker
    from scrapy_focus.core.crawl import Crawl
    from scrapy_focus.engine.inflight import Entry
    from scrapy_focus.engine.links import Links


class FrontierDupeFilter(RFPDupeFilter):
    """Replaces Scrapy's dupefilter: the same answers and log lines, without a set and a file of its own.

    Scrapy's dupefilter takes 100 to 200 bytes a URL, and after a kill its file has URLs that the frontier lacks. If a
    project sets another dupefilter, that one is used.
    """

    is_known: Callable[[Request], bool]

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        debug = crawler.settings.getbool("DUPEFILTER_DEBUG")
        return cls(None, debug, fingerprinter=crawler.request_fingerprinter)

    def request_seen(self, request: Request) -> bool:
        return self.is_known(request)


class Seen:
    """Tells which requests were already seen, and which of these the policy wants; the dupefilter decides.

    Parameters
    ----------
    crawler
        The crawler whose settings and requests are used.
    crawl
        The crawl, which knows the links found.
    counts
        Where to count.
    links
        Computes the keys of requests.
    wanted
        States of known URLs whose links the policy wants.
    tells_keys
        Whether the policy wants the keys of all other known links of a page.
    recovered
        Keys that were in flight when an earlier run of the job was killed.
    resumed
        Whether there was an earlier run.
    """

    def __init__(
        self,
        crawler: Crawler,
        crawl: Crawl | Worker,
        counts: Counter[str],
        links: Links,
        *,
        wanted: Collection[State],
        tells_keys: bool,
        recovered: Iterable[int],
        resumed: bool,
    ) -> None:
        self.crawler = crawler
        self.crawl = crawl
        self.counts = counts
        self.links = links
        self.wanted = wanted
        self.tells_keys = tells_keys
        self.resumed = resumed
        self._recovered = set(recovered)  # those without an outcome since
        self._urls = Recent()  # keys by URL, if the dupefilter looks only at the URL
        self._notes_urls = False
        cls = load_object(crawler.settings["DUPEFILTER_CLASS"])
        self.filter = cast(
            "BaseDupeFilter", build_from_crawler(FrontierDupeFilter if cls is RFPDupeFilter else cls, crawler)
        )
        if isinstance(self.filter, FrontierDupeFilter):
            self.filter.is_known = links.is_known

    def open(self) -> Deferred[None] | None:
        """Open the dupefilter, once all middlewares exist."""
        self._notes_urls = isinstance(self.filter, FrontierDupeFilter) and (
            type(self.crawler.request_fingerprinter) is RequestFingerprinter
        )
        return self.filter.open()

    def close(self, reason: str) -> Deferred[None] | None:
        """End."""
        return self.filter.close(reason)

    def has(self, request: Request, entry: Entry | None) -> bool:
        """Whether a request was already seen; it counts as seen from now on. ``entry``: of the page with the link."""
        if request.dont_filter:
            return self._is_known_start(request, entry)
        if self._notes_urls and request.method == "GET" and not request.body:
            self._urls.add(_bare(request.url), self.links.key(request) if self.wanted or self.tells_keys else 0)
        if not self.filter.request_seen(request) or self._was_lost(request, entry):
            return False
        self.filter.log(request, cast("Spider", self.crawler.spider))
        return True

    def _is_known_start(self, request: Request, entry: Entry | None) -> bool:
        """Whether this is a start request, or its redirect, for a known page, in a crawl that revisits pages."""
        if not (self.links.comes_back and request.meta.get("is_start_request")):
            return False
        is_retry = entry is not None and self.links.key(request) in (entry.pick.key, *entry.also)
        return not is_retry and self.links.is_known(request)

    def drops(self, request: Request, entry: Entry | None) -> bool:
        """Whether the dupefilter would drop a request as seen and the policy does not want its link.

        The key is noted for the policy if that wants it. Returns ``False`` also if the URL was seen too long ago.
        """
        if not self._is_known(request, entry):
            return False
        self.counts["link/known"] += 1
        return True

    def passes(self, request: Request, entry: Entry) -> bool:
        """Like :meth:`drops`, for a request from a page, without computing its fingerprint; the dupefilter logs it."""
        if not self._is_known(request, entry):
            return False
        self.filter.log(request, cast("Spider", self.crawler.spider))
        return True

    def known_on(self, entry: Entry) -> KnownUrls | None:
        """Return which links of a page are known; ``None`` if URLs alone cannot tell."""
        return KnownUrls(self, entry) if self._notes_urls else None

    def key_of_known(self, url: str) -> int | None:
        """Return the key of a URL without fragment that needs no link; ``None`` if it needs one.

        The key is 0 if nobody uses keys.
        """
        key = self._urls.get(url)
        return None if key is None or self._may_be_wanted(key) else key

    def _is_known(self, request: Request, entry: Entry | None) -> bool:
        if request.dont_filter or request.method != "GET" or request.body:
            return False
        key = self.key_of_known(_bare(request.url))
        if key is None:
            return False
        if entry is not None and self.tells_keys:
            entry.known.append(key)
        return True

    def is_wanted(self, request: Request) -> bool:
        """Whether the policy may want the link of a request that was already seen."""
        return bool(self.wanted) and self._may_be_wanted(self.links.key(request))

    def note(self, request: Request, entry: Entry) -> None:
        """Note that a page links to a known URL, and that the policy does not receive the link."""
        if self.tells_keys:
            entry.known.append(self.links.key(request))

    def forget(self, urls: Iterable[str] | None) -> None:
        """Forget URLs whose links the policy left unchanged, so that it receives the next ones. ``None``: all."""
        if urls is None:
            self._urls = Recent()
            return
        for url in urls:
            self._urls.discard(_bare(url))

    def concluded(self, key: int) -> None:
        """Note that a pick has its outcome."""
        self._recovered.discard(key)

    def _may_be_wanted(self, key: int) -> bool:
        """Whether the policy wants a link in its present state, or in its state when links are placed."""
        if not self.wanted:
            return False
        [state] = self.crawl.knows([key])
        if state == State.FLYING and State.FETCHED in self.wanted:  # the page may link to itself
            return True
        return state in self.wanted or self.links.is_coming(key)

    def _was_lost(self, request: Request, entry: Entry | None) -> bool:
        """Whether a custom dupefilter remembers a request from before a kill that the frontier lost."""
        if not self.resumed or isinstance(self.filter, FrontierDupeFilter) or self.links.is_known(request):
            return False
        again = entry is not None and entry.pick.key in self._recovered
        return again or bool(request.meta.get("is_start_request"))


class KnownUrls:
    """Links of one page that need no request: a :class:`~scrapy_focus.engine.known.KnownLinks`."""

    def __init__(self, seen: Seen, entry: Entry) -> None:
        self.tells_keys = seen.tells_keys
        self._seen = seen
        self._entry = entry
        self._noted: set[int] = set()  # keys that the policy receives

    def has(self, url: str) -> bool:
        """Whether a request for a URL would be dropped; ``url``: absolute, without a fragment."""
        return self._seen.key_of_known(url) is not None

    def passes(self, url: str) -> bool:
        """Whether it would be dropped; if so, note that the page has this link."""
        key = self._seen.key_of_known(url)
        if key is None:
            return False
        if self.tells_keys and key not in self._noted:
            self._noted.add(key)
            self._entry.known.append(key)
        self._seen.counts["link/known"] += 1
        return True


class Recent:
    """Keys of the most recently used texts; older ones are forgotten.

    Examples
    --------
    >>> recent = Recent(2)
    >>> for key, word in enumerate(["a", "b", "c"]):
    ...     recent.add(word, key)
    >>> recent.get("a"), recent.get("c"), recent.get("d")
    (0, 2, None)
    """

    def __init__(self, size: int = 1 << 17) -> None:
        self.size = size  # remembers between one and two times as many
        self._new: dict[int, int] = {}
        self._old: dict[int, int] = {}

    def add(self, text: str, key: int) -> None:
        """Remember the key of a text."""
        self._new[hash(text)] = key
        if len(self._new) >= self.size:
            self._old, self._new = self._new, {}

    def get(self, text: str) -> int | None:
        """Return the key of a text, ``None`` if it is not remembered."""
        key = self._new.get(hash(text))
        if key is None and (key := self._old.get(hash(text))) is not None:
            self.add(text, key)
        return key

    def discard(self, text: str) -> None:
        """Forget a text."""
        self._new.pop(hash(text), None)
        self._old.pop(hash(text), None)


def _bare(url: str) -> str:
    """Return a URL without its fragment, which does not select another page."""
    return url.partition("#")[0] if "#" in url else url
