"""Stands between the browser of scrapy-playwright and the network.

Scrapy sees one request where a browser sends dozens. The guard is told of each page before it loads anything
(``playwright_page_init_callback``), makes the browser ask for every request, and counts what comes.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from scrapy.utils.misc import load_object

from scrapy_focus.core.printable import printable_logger
from scrapy_focus.engine.browser.found import REMOTE
from scrapy_focus.engine.browser.rules import Rules
from scrapy_focus.engine.browser.sizes import Sizes
from scrapy_focus.engine.browser.ways import Network, Routes, Sockets
from scrapy_focus.engine.marks import RENDERED

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable, MutableMapping

    from playwright.async_api import BrowserContext, Page
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_focus.engine.browser.rules import Refusal
    from scrapy_focus.engine.host import Host

logger = printable_logger(__name__)
T = TypeVar("T")

_INIT = "playwright_page_init_callback"
_NO_SERVICE_WORKERS = """
if (window.ServiceWorkerContainer) ServiceWorkerContainer.prototype.register =
    () => Promise.reject(new DOMException("Service workers are turned off", "SecurityError"));
"""  # a browser asks for their scripts again and again, past all who listen


class Visit:
    """A request of Scrapy that a browser answers; as the callback that scrapy-playwright makes with its page.

    A callback of the user's is called after it.
    """

    def __init__(self, guard: Guard, request: Request) -> None:
        self.guard = guard
        self.request = request
        self.own = request.meta.get(_INIT)
        self.frames: set[Hashable] = set()
        self.is_paid = True  # the page itself is counted before scrapy-playwright has it
        self.is_weighed = False  # whether the bytes of the page itself are counted
        self.refused: Refusal = ""  # why the page, or what it redirects to, was refused
        self.requests = 0  # that its main frame asked for besides, and that went out
        self.received = 0  # bytes of their answers, and of its own

    async def __call__(self, page: Page, request: Request) -> None:
        await self.guard.watch(self, page)
        if self.own:
            await load_object(self.own)(page, request)
        await self.guard.close_up(page)


class Guard:
    """Decides on all requests of the browser of one crawl, and counts them and the bytes of their answers."""

    def __init__(self, crawler: Crawler, host: Host) -> None:
        self.crawler = crawler
        self.host = host
        self.rules = Rules(crawler, host)
        self.sizes = Sizes(self)
        self.sockets = Sockets(self)
        self._frames: dict[Hashable, Visit] = {}
        self._ways: WeakKeyDictionary[Any, asyncio.Task[Network | Routes]] = WeakKeyDictionary()
        self._networks: WeakKeyDictionary[Any, asyncio.Task[Network]] = WeakKeyDictionary()
        self._home: asyncio.AbstractEventLoop | None = None  # of Scrapy; scrapy-playwright may have one of its own

    # What the downloader middleware asks

    def take(self, request: Request) -> None:
        """Watch over a request on its way to the browser, which is counted already."""
        with suppress(RuntimeError):  # without asyncio there is no Playwright
            self._home = asyncio.get_running_loop()
        request.meta[_INIT] = Visit(self, request)
        if request.meta.get(RENDERED):
            request.meta.update(_context_for(request))

    def give_back(self, request: Request) -> Visit | None:
        """Return what became of a request, if it is one that was taken; its ``meta`` is as it was."""
        visit = request.meta.get(_INIT)
        if not isinstance(visit, Visit):
            return None
        if visit.own is None:
            del request.meta[_INIT]
        else:
            request.meta[_INIT] = visit.own
        if request.meta.pop(RENDERED, False):
            for name in [name for name in request.meta if name.startswith("playwright")]:
                del request.meta[name]
        for frame in visit.frames:
            self._frames.pop(frame, None)
        return visit

    # What the browser asks

    async def watch(self, visit: Visit, page: Page) -> None:
        """Let nothing of a page out unasked. A page that cannot be watched is closed."""
        try:
            way = await once(self._ways, page.context, lambda: self._watch_context(page.context))
            for frame in (page, await way.frame_of(page)):
                visit.frames.add(frame)
                self._frames[frame] = visit
        except Exception:
            self.host.count("error/browser")
            logger.exception("scrapy_focus cannot watch a page, and closes it: %s", visit.request.url)
            await page.close()
            raise

    async def close_up(self, page: Page) -> None:
        """A page is about to load."""
        way = await self._ways[page.context]
        await way.close_up(page)

    async def refusal(self, url: str, kind: str, frame: Hashable = None, *, is_first: bool = True) -> Refusal:
        """Return why a request must not go out, or ``""``: then it is counted, and must go out.

        ``frame`` is the page, or what its way knows it by, if its main frame asks; ``is_first``: it is no redirect.
        """
        return await self._at_home(self._refusal(url, kind, frame, is_first))

    async def sent(self, page: Page | None) -> None:
        """A request of a page went out that could not be asked for; if nothing was left for it, the page is closed."""
        if not await self._at_home(self._sent(page)) and page is not None:
            await page.close()

    async def withdrawn(self) -> None:
        """A request that might go out never did."""
        await self._at_home(self._withdrawn())

    def received(self, n_bytes: int, page: Page | None = None, *, is_document: bool = False) -> None:
        """So many bytes of an answer came; ``page``: that which asked, or of which it is the document."""
        if self._home is None or self._home is asyncio.get_running_loop():
            self._received(n_bytes, page, is_document)
        else:
            self._home.call_soon_threadsafe(self._received, n_bytes, page, is_document)

    async def _refusal(self, url: str, kind: str, frame: Hashable, is_first: bool) -> Refusal:
        visit = self._frames.get(frame)
        is_page = visit is not None and kind == "document"
        if visit is not None and is_page and is_first and visit.is_paid:
            visit.is_paid = False
            return ""
        refused = await self.rules.refusal(url, kind, None if visit is None else visit.request)
        if not refused:
            self.host.count("browser/requests")
            if visit is not None:
                visit.requests += 1
            return ""
        self.host.count(f"browser/refused/{refused}")
        if visit is not None and is_page:
            visit.refused = refused
        return refused

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

    def _received(self, n_bytes: int, page: Page | None, is_document: bool) -> None:
        self.host.count("browser/bytes", n_bytes)
        self.host.received(n_bytes)
        if (visit := self._frames.get(page)) is not None:
            visit.received += n_bytes
            visit.is_weighed = visit.is_weighed or is_document

    async def _at_home(self, question: Coroutine[Any, Any, T]) -> T:
        """Ask in the thread of Scrapy."""
        if self._home is None or self._home is asyncio.get_running_loop():
            return await question
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(question, self._home))

    async def _watch_context(self, context: BrowserContext) -> Network | Routes:
        self.sizes.watch(context)
        await context.add_init_script(_NO_SERVICE_WORKERS)
        await self.sockets.watch(context)
        browser = context.browser
        if browser is None or browser.browser_type.name != "chromium" or self._is_shared:
            return await Routes.of(context, self)
        return await once(self._networks, browser, lambda: Network.of(browser, self))

    @property
    def _is_shared(self) -> bool:
        """Whether others may use the same browser."""
        return any(self.crawler.settings.get(name) for name in REMOTE)


def _context_for(request: Request) -> dict[str, Any]:
    """Return what lets a page of ours see nothing of those that the spider has rendered, and say who the crawl is."""
    agent = (request.headers.get("User-Agent") or b"").decode("latin-1")
    options: dict[str, Any] = {"service_workers": "block"}
    if agent:
        options["user_agent"] = agent
    return {"playwright_context": f"focus {agent}", "playwright_context_kwargs": options}


async def once(
    tasks: MutableMapping[Any, asyncio.Task[T]], key: object, make: Callable[[], Coroutine[Any, Any, T]]
) -> T:
    """Return what was made for a key, by whoever came first; made anew where that failed."""
    task = tasks.get(key)
    if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
        task = tasks[key] = asyncio.ensure_future(make())
    return await asyncio.shield(task)
