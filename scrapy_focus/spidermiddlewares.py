"""Spider middlewares for links and items.

They drop known links, and assign new links to their page. Optionally, they add ids to items, and obey a page's
instructions for robots.
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
    """Adds the id of a page's pick to every request that its callback yields.

    The scheduler then receives all links of a page as one batch, and determines their places on it. Without this
    middleware it uses the Referer header, which can be disabled; then links of pages that are read at the same time and
    have the same URL are assigned to no page. It is outermost, so it sees the requests that pass all other middlewares.
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
    """Drops links already seen, before they pass through the other layers to the dupefilter.

    On pages with a hundred links nearly all are known, and passing them on takes half of the time of a crawl. It does
    the same as the dupefilter, so it ignores all cases where that could differ: requests with ``dont_filter``, a body
    or a method other than GET, a dupefilter or fingerprinter other than Scrapy's, and known links that the policy
    wants. A policy with a method ``know`` receives the keys of dropped links. It is innermost except for
    ``MetaCopyDetectionMiddleware``.

    So the spider middlewares outside it no longer see requests for known URLs: one that counts links counts fewer, one
    that sets ``dont_filter`` on known links comes too late, and ``request_depth_max`` counts fewer. Nor does Scrapy
    send ``request_scheduled`` and ``request_dropped`` for these requests. To disable it:
    ``SPIDER_MIDDLEWARES = {"scrapy_focus.spidermiddlewares.KnownLinkMiddleware": None}``.
    """

    def get_processed_request(self, request: Request, response: Response | None) -> Request | None:
        host = host_of(self.crawler)
        return None if host is not None and host.drops(request, response) else request


class PageWishesMiddleware(BaseSpiderMiddleware):
    """Obeys the instructions of pages for robots that ``FOCUS_OBEY`` names: ``nofollow``, ``noindex``.

    They are in ``<meta name="robots">`` or the header ``X-Robots-Tag``, and for a single link in ``rel``.
    ``nofollow``: the GET requests of its callback are dropped, or those for the URLs of such links, unless another link
    on the page has the same URL. ``noindex``: its items are dropped, and goals and policies do not read it.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._wishes = Config.obey.of(crawler.settings) & {"nofollow", "noindex"}
        if not self._wishes:
            raise NotConfigured
        self._asked: WeakKeyDictionary[Response, frozenset[str]] = WeakKeyDictionary()
        self._closed: WeakKeyDictionary[Response, frozenset[str]] = WeakKeyDictionary()  # URLs of such links

    def process_spider_input(self, response: Response) -> None:
        """Note the instructions of a page, before its callback reads it."""
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
    """Adds an id to every item, in the field that ``FOCUS_ITEM_ID`` names; disabled without that setting.

    Pages that were in flight when a crawl was killed are fetched again, and yield their items again: every item is
    delivered at least once. A sink that keeps one item per id drops the repeats. The id is the key of the page's pick
    in 16 hex digits, and the position of the item on its page, from 1: ``3f0c6b1d2a9e8471-2``. So it is repeatable if
    the callback yields the items of a page in the same order.

    It is innermost except for ``MetaCopyDetectionMiddleware``, so numbers do not depend on what others drop. Items that
    other middlewares add, or that errbacks yield for a request without a response, have no id.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.field = Config.item_id.of(crawler.settings)
        if not self.field:
            raise NotConfigured  # without a message, which Scrapy would log as a warning in every crawl
        self._given: WeakKeyDictionary[Response, int] = (
            WeakKeyDictionary()
        )  # how many items each page has yielded so far
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
            # A spider that yields one object repeatedly, or copies of it, has our last id in it: replace that id.
            if value is None or (isinstance(value, str) and (not value or value.startswith(page))):
                adapter[self.field] = f"{page}{number}"
        except Exception as error:  # an item class may raise anything for a missing field
            self._complain(type(item), error)
        return item

    def _key(self, response: Response | None) -> int:
        if response is None:  # from start(): without a page
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
        if response not in self._given:  # the plain copy of a rendered page yielded some
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
    """Drops items of a rendered page that its plain copy already yielded (``focus/render/item_again``).

    Items are the same if all their fields are equal. So an item with the current time is not recognised. Each layer
    costs half a microsecond per link, so this one is enabled only if pages may be read twice.
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
            if entry.has_scripts:  # otherwise no browser will render it
                host.guard("render", None, given.add, item)
            return item
        if not host.guard("render", False, given.has, item):
            return item
        host.count("render/item_again")
        return None


def given_of(crawler: Crawler, entry: Entry) -> Given | None:
    """Return the items of the plain copy of a page that is rendered, now or perhaps later."""
    host = host_of(crawler)
    rendering = None if host is None else host.features.able("render")
    return None if rendering is None else rendering.given(entry)


def has_spider_middleware(crawler: Crawler, cls: type) -> bool:
    """Whether a running crawl has a spider middleware of this class."""
    return any(isinstance(each, cls) for each in crawler.engine.scraper.spidermw.middlewares)
