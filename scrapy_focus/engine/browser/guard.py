"""Controls the network access of scrapy-playwright's browser.

Scrapy sees one request where a browser sends dozens. The guard sees each page before it loads anything
(``playwright_page_init_callback``), makes the browser ask before every request, and counts what it receives.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from scrapy_focus.core.printable import printable_logger
from scrapy_focus.engine.access import access_of
from scrapy_focus.engine.browser.answers import Answers
from scrapy_focus.engine.browser.cookies import add_cookies, cookies_of
from scrapy_focus.engine.browser.found import REMOTE, has_died
from scrapy_focus.engine.browser.reading import meta_of, take_off
from scrapy_focus.engine.browser.rules import Rules
from scrapy_focus.engine.browser.sizes import Sizes
from scrapy_focus.engine.browser.store import KEPT, Key, Store
from scrapy_focus.engine.browser.visit import INIT, PLACES, Limits, Visit
from scrapy_focus.engine.browser.ways import Network, Routes, Sockets
from scrapy_focus.engine.marks import RENDERED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Hashable, Mapping, MutableMapping

    from playwright.async_api import BrowserContext, Page
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_focus.engine.browser.rules import BrowsingCrawl, Refusal
    from scrapy_focus.engine.browser.store import Stored
    from scrapy_focus.engine.browser.ways import Asked
    from scrapy_focus.web.access import Access

logger = printable_logger(__name__)
T = TypeVar("T")
__all__ = ["Guard", "Visit", "once"]

_UNSEEN = frozenset({  # types of resources that a page does not need for reading, by Playwright's names
    "image", "media", "font", "texttrack", "manifest", "prefetch", "preflight", "ping", "beacon", "cspreport",
    "cspviolationreport",
})  # fmt: skip
_NO_SERVICE_WORKERS = """
if (window.ServiceWorkerContainer) ServiceWorkerContainer.prototype.register =
    () => Promise.reject(new DOMException("Service workers are turned off", "SecurityError"));
"""  # a browser requests their scripts repeatedly, bypassing all listeners
_FEW_DIALOGS = """
for (const [name, none] of [["alert"], ["confirm", false], ["prompt", null], ["print"]]) {
    const ask = window[name].bind(window);
    let n = 0;
    window[name] = (...given) => n++ < 20 ? ask(...given) : none;
}
"""  # a script that waits for an answer cannot be interrupted, so an endless loop of them would never end
_DOCUMENTS = 1000
_FRAMES = 1000  # frames of a page that are tracked


class Guard:
    """Decides on all browser requests of one crawl, and counts them and the bytes of their responses.

    With ``weighs``, the bytes of a response are counted as they arrive, if the browser reports them, and a page is
    closed when they exceed the budget.
    """

    def __init__(
        self, crawler: Crawler, host: BrowsingCrawl, offsite: Collection[str], *, weighs: bool = False
    ) -> None:
        self.crawler = crawler
        self.host = host
        self.weighs = weighs
        self.rules = Rules(crawler, host, offsite)
        self.access = access_of(crawler)
        #: Whether pages of unknown visits load only what is read: if no spider uses a browser.
        self.learns = False
        self.token = token_hex()
        self.stage = asyncio.Lock()
        self.store = Store()
        self.sizes = Sizes(self)
        self.answers = Answers(self)
        self.sockets = Sockets(self)
        self._frames: dict[Hashable, Visit] = {}
        self._within: dict[Hashable, Visit] = {}  # by frames of their pages other than the main ones
        self._ways: WeakKeyDictionary[Any, asyncio.Task[Network | Routes]] = WeakKeyDictionary()
        self._networks: WeakKeyDictionary[Any, asyncio.Task[Network]] = WeakKeyDictionary()
        self._home: asyncio.AbstractEventLoop | None = None  # Scrapy's; scrapy-playwright may have another one

    # Called by the downloader middleware

    def take(self, request: Request, *, limits: Limits | None = None, is_direct: bool = False) -> None:
        """Watch a request on its way to the browser; the request itself is counted already.

        With ``limits``, its page is read by :func:`~scrapy_focus.engine.browser.reading.read`, after the user's
        actions (``playwright_page_methods``), and loads no images or other resources that are not read.
        ``is_direct``: no plain copy of the page was read.
        """
        with suppress(RuntimeError):  # without asyncio there is no Playwright
            self._home = asyncio.get_running_loop()
        if request.meta.get(RENDERED):
            request.meta.update(_context_for(request, self.access))
            limits = limits or Limits()
        visit = Visit(self, request, limits)
        visit.is_direct = is_direct
        request.meta.update(meta_of(visit))

    def give_back(self, request: Request) -> Visit | None:
        """Return the visit of a request, if it was taken, and restore its ``meta``."""
        visit = request.meta.get(INIT)
        if not isinstance(visit, Visit):
            return None
        take_off(visit)
        visit.is_over = True
        if request.meta.pop(RENDERED, False):
            for name in [name for name in request.meta if name.startswith("playwright")]:
                del request.meta[name]
        for frame in visit.frames:
            self._frames.pop(frame, None)
            self._within.pop(frame, None)
        return visit

    # Called by the browser

    async def watch(self, visit: Visit, page: Page) -> None:
        """Control all requests of a page. A page that cannot be watched is closed."""
        try:
            way = await once(self._ways, page.context, lambda: self._watch_context(page.context))
            for frame in (page, await way.frame_of(page)):
                visit.frames.add(frame)
                self._frames[frame] = visit
            await add_cookies(page.context, cookies_of(visit.request))
            if visit.limits is not None:
                await page.add_init_script(_FEW_DIALOGS)
            if visit.limits is not None or self.weighs:
                await way.weigh(page, lambda unpacked, packed: self._came(visit, page, unpacked, packed))
            if visit.limits is not None:
                await way.frames(page, lambda frame: self._has_frame(visit, frame))
        except Exception as error:
            if not has_died(error):
                self.host.count("error/browser")
                logger.exception("scrapy_focus cannot watch a page, and closes it: %s", visit.request.url)
            await page.close()
            raise

    async def close_up(self, page: Page) -> None:
        """Prepare a page that is about to load."""
        way = await self._ways[page.context]
        await way.close_up(page)

    def _has_frame(self, visit: Visit, frame: Hashable) -> None:
        """Note a further frame of a page."""
        if not visit.is_over and frame not in visit.frames and len(visit.frames) < _FRAMES:
            visit.frames.add(frame)
            self._within[frame] = visit

    def headers(self, url: str) -> Mapping[str, bytes]:
        """Return the headers of requests to the origin of a URL, by name; its cookies are those of the browser."""
        return {name: value for name, value in self.access.headers_for(url).items() if name != "Cookie"}

    def visit_of(self, frame: Hashable) -> Visit | None:
        """Return the visit of a page, or of the id of its main frame."""
        return self._frames.get(frame)

    def stored(self, asked: Asked) -> Stored | None:
        """Return the stored response to a request, if there is one; otherwise, it may be stored when it arrives."""
        visit = self._frames.get(asked.frame)
        if visit is None or asked.kind not in KEPT or asked.method != "GET":
            return None
        key = Key.of(visit.context, asked.url)
        stored = self.store.get(key)
        if stored is None:
            self.store.wait_for(key)
        return stored

    async def break_off(self, page: Page) -> None:
        """Stop the running script of a page and its navigation, if the browser can."""
        way = await self._ways[page.context]
        await way.break_off(page)

    async def refusal(self, asked: Asked, stored: Stored | None = None) -> Refusal:
        """Return why a request must not be sent, or ``""``: then it is counted, and has to be sent.

        A stored response is used without sending the request, unless the request would be refused.
        """
        return await self._at_home(self._refusal(asked, stored))

    async def sent(self, page: Page | None) -> None:
        """Count a request of a page that was sent without asking; close the page if the budget was used up."""
        if not await self._at_home(self._sent(page)) and page is not None:
            await page.close()

    async def withdrawn(self) -> None:
        """Uncount a request that was allowed but never sent."""
        await self._at_home(self._withdrawn())

    def received(self, n_bytes: int, page: Page | None = None, *, is_document: bool = False) -> None:
        """Count so many bytes of a response; ``page``: the page that requested it, or whose document it is."""
        self._soon_at_home(self._received, n_bytes, page, is_document)

    async def _refusal(self, asked: Asked, stored: Stored | None) -> Refusal:
        visit = self._frames.get(asked.frame)
        if visit is not None and asked.kind == "document" and asked.is_first and visit.is_paid:
            visit.is_paid = False
            return ""
        owner = visit or self._within.get(asked.frame)
        refused = self._reading_refusal(asked, visit, owner)
        if not refused:
            refused = await self._rules_refusal(asked, visit, is_sent=stored is None)
        self._count(asked, stored, owner, refused)
        return refused

    async def _rules_refusal(self, asked: Asked, visit: Visit | None, *, is_sent: bool) -> Refusal:
        """Return why the rules of the crawl refuse a request, and note the consequence for its page."""
        page = None if visit is None else visit.request
        refused = await self.rules.refusal(asked.url, asked.kind, page, is_sent=is_sent)
        if not refused or visit is None:
            return refused
        stays = visit.limits and asked.leaves_its_page  # a page that is read does not navigate
        if asked.kind == "document" and not stays:
            visit.refused = refused
        elif refused == "budget":
            visit.is_short = True
        return refused

    def _count(self, asked: Asked, stored: Stored | None, owner: Visit | None, refused: Refusal) -> None:
        if refused:
            self.host.count(f"browser/refused/{refused}")
        elif stored is not None:
            self.host.count("browser/stored")
            self.host.count("browser/stored_bytes", stored.size)
        else:
            self.host.count("browser/requests")
            if self.access.takes_any_certificate and asked.url.startswith("https:"):
                self.host.unchecked.setdefault(urlsplit(asked.url).hostname or "", "")
            if owner is not None:
                owner.requests += 1
                if _host_of(asked.url) != _host_of(owner.request.url):
                    self.host.count("browser/elsewhere")

    def _reading_refusal(self, asked: Asked, visit: Visit | None, owner: Visit | None) -> Refusal:
        """Return why a page that is read must not send a request that other pages may send.

        ``visit``: the page, if its main frame sends it; ``owner``: the page of any frame.
        """
        is_read = self.learns if owner is None else owner.limits is not None
        if asked.kind in _UNSEEN and is_read:
            return "type"
        is_page = visit is not None and asked.kind == "document"
        if owner is not None and not is_page and _has_asked_for_all(owner):
            owner.is_cut = True
            return "many"
        if visit is None or visit.limits is None:
            return ""
        return self._leaving_refusal(asked, visit, visit.limits)

    def _leaving_refusal(self, asked: Asked, visit: Visit, limits: Limits) -> Refusal:
        """Return why the main frame of a page that is read must not send a request that may navigate away.

        Before the page is scrolled and clicked, it may navigate a few times; afterwards each navigation would lose it.
        """
        if asked.kind == "document" and len(visit.documents) < _DOCUMENTS:
            visit.documents.add(asked.url)
        if not visit.is_acted_on:
            visit.moves += asked.leaves_its_page
            if visit.moves <= limits.moves:
                return ""
            visit.refused = "moves"
            return "moves"
        if asked.method not in ("GET", "HEAD"):
            visit.unsafe += 1
            return "method"
        if asked.kind == "document":
            if len(visit.left_for) < PLACES:
                visit.left_for.append(asked.url)
            return "left"
        return ""

    def note(self, name: str, n: int = 1) -> None:
        """Add to the count that is written to the stats as ``focus/<name>``."""
        self._soon_at_home(self.host.count, name, n)

    async def _sent(self, page: Page | None) -> bool:
        if await self.host.sent(None):
            self.host.count("browser/requests")
            return True
        self.host.count("browser/over")
        if (visit := self._frames.get(page)) is not None:
            visit.refused = "budget"
        return False

    async def _withdrawn(self) -> None:
        self.host.count("browser/requests", -1)
        self.host.received(None)

    def _came(self, visit: Visit, page: Page, unpacked: int, packed: int) -> None:
        """Note some bytes of a response to a page; with ``weighs``, count them, and close it beyond the budget."""
        visit.came(page, unpacked)
        if self.weighs and packed > 0:
            self._soon_at_home(self._arrived, visit, packed)
            if self.host.lacks_bytes():
                visit.run_short(page)

    def _arrived(self, visit: Visit, n_bytes: int) -> None:
        visit.arrived += n_bytes
        self._count_bytes(n_bytes, visit)

    def _received(self, n_bytes: int, page: Page | None, is_document: bool) -> None:
        visit = self._frames.get(page)
        if visit is not None:
            counted = min(n_bytes, visit.arrived)
            visit.arrived -= counted
            n_bytes -= counted
            visit.is_weighed = visit.is_weighed or is_document
        self._count_bytes(n_bytes, visit)

    def _count_bytes(self, n_bytes: int, visit: Visit | None) -> None:
        self.host.count("browser/bytes", n_bytes)
        self.host.received(n_bytes)
        if visit is not None:
            visit.received += n_bytes

    def _soon_at_home(self, call: Callable[..., None], *args: Any) -> None:
        """Call a function in the thread of Scrapy's event loop: now, if this is it."""
        if self._home is None or self._home is asyncio.get_running_loop():
            call(*args)
        else:
            self._home.call_soon_threadsafe(call, *args)

    async def _at_home(self, question: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in Scrapy's event loop."""
        if self._home is None or self._home is asyncio.get_running_loop():
            return await question
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(question, self._home))

    async def _watch_context(self, context: BrowserContext) -> Network | Routes:
        self.sizes.watch(context)
        self.answers.watch(context)
        await context.add_init_script(_NO_SERVICE_WORKERS)
        await add_cookies(context, [*self.access.header_cookies(), *self.access.cookies])
        await self.sockets.watch(context)
        browser = context.browser
        if browser is None or browser.browser_type.name != "chromium" or self._is_shared:
            if self.access.headers:
                logger.warning(
                    "Rendered pages get no headers and passwords: only a Chromium that the crawl starts can keep them "
                    "from following a redirect to another host"
                )
            return await Routes.of(context, self)
        return await once(self._networks, browser, lambda: Network.of(browser, self))

    @property
    def _is_shared(self) -> bool:
        """Whether others may use the same browser."""
        return any(self.crawler.settings.get(name) for name in REMOTE)


def _has_asked_for_all(visit: Visit) -> bool:
    """Whether a page that is read has sent its maximum of requests."""
    return visit.limits is not None and visit.requests >= visit.limits.requests


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return ""


def _context_for(request: Request, access: Access) -> dict[str, Any]:
    """Return context options that isolate our pages from those of the spider, and identify the crawl."""
    agent = (request.headers.get("User-Agent") or b"").decode("latin-1")
    options: dict[str, Any] = {"service_workers": "block"}
    if agent:
        options["user_agent"] = agent
    if access.takes_any_certificate:
        options["ignore_https_errors"] = True
    if access.proxy is not None:
        proxy = {"server": access.proxy.url, "username": access.proxy.user, "password": access.proxy.password}
        options["proxy"] = {name: value for name, value in proxy.items() if value}
    return {"playwright_context": f"focus {agent}", "playwright_context_kwargs": options}


async def once(
    tasks: MutableMapping[Any, asyncio.Task[T]], key: object, make: Callable[[], Coroutine[Any, Any, T]]
) -> T:
    """Return the object made for a key by the first caller; made again if that failed."""
    task = tasks.get(key)
    if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
        task = tasks[key] = asyncio.ensure_future(make())
    return await asyncio.shield(task)
