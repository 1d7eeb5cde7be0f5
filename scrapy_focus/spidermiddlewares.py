"""What happens to links and items on their way out of the spider.

Known links go no further, new ones keep their page; items get an id, and what a page asks of robots is done, if that is
asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from itemadapter import ItemAdapter
from scrapy import Request
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse
from scrapy.spidermiddlewares.base import BaseSpiderMiddleware
from scrapy.utils.response import get_base_url

from scrapy_focus.config import Config
from scrapy_focus.core.printable import printable_logger
from scrapy_focus.engine.browser.found import browser_of
from scrapy_focus.engine.host import host_of
from scrapy_focus.engine.inflight import entry_id
from scrapy_focus.engine.links import key_of
from scrapy_focus.engine.marks import PICK
from scrapy_focus.engine.pages import can_be_read
from scrapy_focus.web.robots import asked_of_robots, nofollowed

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_focus.engine.inflight import Entry
    from scrapy_focus.features.rendering.given import Given

logger = printable_logger(__name__)


class LinkMiddleware(BaseSpiderMiddleware):
    """Puts the id of a page's pick into every request that its callback gives.

    The scheduler then knows all links of a page as one batch, and reads where they stand on it. Without this middleware
    it goes by the Referer header, which can be switched off; links of pages that are read at once and have the same URL
    count as found on no page then. It is outermost, so it sees the requests that are left when all other middlewares
    are done.
    """

    def get_processed_request(self, request: Request, response: Response | None) -> Request | None:
        pick_id = None if response is None else entry_id(response)
        if pick_id is None:
            request.meta.pop(PICK, None)
        else:
            request.meta[PICK] = pick_id
            if (host := host_of(self.crawler)) is not None:
                host.note_yielded(pick_id, request)
        return request


class KnownLinkMiddleware(BaseSpiderMiddleware):
    """Drops links whose URL was requested before, ahead of all other layers that they would cross to the dupefilter.

    On pages with a hundred links nearly all are known, and half of the time of a crawl goes into carrying them there.
    It does what the dupefilter would, so it stands back where that could differ: from requests with ``dont_filter``, a
    body or another method than GET, with a dupefilter or fingerprinter that is not Scrapy's own, and from links that
    the policy wants though they are known. A policy with a method ``know`` is given the keys of what is dropped. It is
    innermost but for ``MetaCopyDetectionMiddleware``.

    So spider middlewares that stand outside of it no longer see requests for URLs that were seen before: one that
    counts links counts fewer, one that would set ``dont_filter`` on known links comes too late, and
    ``request_depth_max`` counts fewer. Nor does Scrapy send ``request_scheduled`` and ``request_dropped`` for these
    requests. To switch it off:
    ``SPIDER_MIDDLEWARES = {"scrapy_focus.spidermiddlewares.KnownLinkMiddleware": None}``.
    """

    def get_processed_request(self, request: Request, response: Response | None) -> Request | None:
        host = host_of(self.crawler)
        return None if host is not None and host.drops(request, response) else request


class PageWishesMiddleware(BaseSpiderMiddleware):
    """Does what pages ask of robots, as far as ``FOCUS_OBEY`` names it: ``nofollow``, ``noindex``.

    A page asks in ``<meta name="robots">`` or the header ``X-Robots-Tag``, for a single link in ``rel``. ``nofollow``:
    the GET requests that its callback gives go no further, or those for the URLs of such links, where no other link on
    the page leads there. ``noindex``: its items go no further, and goals and policies do not read it.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._wishes = Config.obey.of(crawler.settings) & {"nofollow", "noindex"}
        if not self._wishes:
            raise NotConfigured
        self._asked: WeakKeyDictionary[Response, frozenset[str]] = WeakKeyDictionary()
        self._closed: WeakKeyDictionary[Response, frozenset[str]] = WeakKeyDictionary()  # URLs of such links

    def process_spider_input(self, response: Response) -> None:
        """Note what a page asks, before its callback reads it."""
        if "noindex" in self._asks(response):
            host = host_of(self.crawler)
            if host is not None and (entry := host.inflight.find(response)) is not None:
                entry.noindex = True
                host.count("page/noindex")

    def get_processed_request(self, request: Request, response: Response | None) -> Request | None:
        if response is None or "nofollow" not in self._wishes or request.method != "GET":
            return request
        if "nofollow" in self._asks(response) or request.url.partition("#")[0] in self._nofollowed(response):
            if (host := host_of(self.crawler)) is not None:
                host.count("link/nofollow")
            return None
        return request

    def get_processed_item(self, item: Any, response: Response | None) -> Any:
        return None if response is not None and "noindex" in self._asks(response) else item

    def _asks(self, response: Response) -> frozenset[str]:
        asked = self._asked.get(response)
        if asked is None:
            headers = [value.decode("latin-1") for value in response.headers.getlist("X-Robots-Tag")]
            root = response.selector.root if isinstance(response, HtmlResponse) and can_be_read(response) else None
            self._asked[response] = asked = asked_of_robots(root, headers) & self._wishes
        return asked

    def _nofollowed(self, response: Response) -> frozenset[str]:
        if not isinstance(response, HtmlResponse) or not can_be_read(response):
            return frozenset()
        urls = self._closed.get(response)
        if urls is None:
            base = get_base_url(response)
            self._closed[response] = urls = nofollowed(response.selector.root, base, encoding=response.encoding)
        return urls


class ItemIdMiddleware(BaseSpiderMiddleware):
    """Puts an id into every item, in the field that ``FOCUS_ITEM_ID`` names; without that setting it is not there.

    Pages that were in flight when a crawl was killed are fetched again, and give their items again: every item comes at
    least once. A sink that keeps one item for each id drops the repeats. The id is the key of the page's pick in 16 hex
    digits, and the number of the item among those of its page, from 1: ``3f0c6b1d2a9e8471-2``. So it is the same again
    if the callback gives the items of a page in the same order again.

    It is innermost but for ``MetaCopyDetectionMiddleware``, so that no number depends on what others drop. Items that
    other middlewares add, or that errbacks give for a request without a response, have no id.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.field = Config.item_id.of(crawler.settings)
        if not self.field:
            raise NotConfigured  # without a sentence, which Scrapy would log as a warning in every crawl
        self._given: WeakKeyDictionary[Response, int] = WeakKeyDictionary()  # how many items each page gave so far
        self._given_at_start = 0
        self._unfit: set[type] = set()

    def get_processed_item(self, item: Any, response: Response | None) -> Any:
        if item is None:
            return None
        page = f"{self._key(response):016x}-"
        number = self._number(response)
        try:
            adapter = ItemAdapter(item)
            value = adapter.get(self.field)
            # Who yields one object over and over, or copies of it, has our last id in it: another item, another id.
            if value is None or (isinstance(value, str) and (not value or value.startswith(page))):
                adapter[self.field] = f"{page}{number}"
        except Exception as error:  # whatever an item class raises for a field that it does not have
            self._complain(type(item), error)
        return item

    def _key(self, response: Response | None) -> int:
        if response is None:  # from start(): no page
            return 0
        host = host_of(self.crawler)
        if host is not None and (entry := host.inflight.find(response)) is not None:
            return entry.pick.key
        request = response.request or Request(response.url)
        return key_of(request, self.crawler)

    def _number(self, response: Response | None) -> int:
        if response is None:
            self._given_at_start += 1
            return self._given_at_start
        if response not in self._given:  # of a page that is rendered, the plain copy gave some
            entry = None if (host := host_of(self.crawler)) is None else host.inflight.find(response)
            plain = None if entry is None or entry.pick.method != "RENDER" else given_of(self.crawler, entry)
            self._given[response] = 0 if plain is None else plain.n_items
        self._given[response] += 1
        return self._given[response]

    def _complain(self, kind: type, error: Exception) -> None:
        host = host_of(self.crawler)
        if host is not None:
            host.count("error/item_id")
        if kind not in self._unfit:
            self._unfit.add(kind)
            logger.error(
                "items of %s get no id (%s: %s): give the class a field %s that can be set, or name another in "
                "FOCUS_ITEM_ID",
                kind.__qualname__, type(error).__name__, error, self.field, extra={"spider": self.crawler.spider},
            )  # fmt: skip


class RenderedItemsMiddleware(BaseSpiderMiddleware):
    """Drops items of a rendered page that its plain copy gave already (``focus/render/item_again``).

    Items are the same if all their fields are. So who puts the time into an item gets it twice from such a page. Each
    layer costs half a microsecond a link, so it is there only where pages may be looked at twice.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if Config.render.of(crawler.settings) != "learn" or not browser_of(crawler.settings):
            raise NotConfigured

    def get_processed_item(self, item: Any, response: Response | None) -> Any:
        host = host_of(self.crawler)
        entry = None if host is None or response is None or item is None else host.inflight.find(response)
        given = None if entry is None else given_of(self.crawler, entry)
        if host is None or entry is None or given is None:
            return item
        if entry.pick.method != "RENDER":
            if entry.has_scripts:  # else no browser will show it
                host.guard("render", None, given.add, item)
            return item
        if not host.guard("render", False, given.has, item):
            return item
        host.count("render/item_again")
        return None


def given_of(crawler: Crawler, entry: Entry) -> Given | None:
    """Return the items of the plain copy of a page, where it is rendered or may be later."""
    host = host_of(crawler)
    rendering = None if host is None else host.features.able("render")
    return None if rendering is None else rendering.given(entry)


def has_spider_middleware(crawler: Crawler, cls: type) -> bool:
    """Whether a running crawl has a spider middleware of this class."""
    return any(isinstance(each, cls) for each in crawler.engine.scraper.spidermw.middlewares)
