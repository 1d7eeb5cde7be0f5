"""Starts the browser of a crawl when needed, renews it, and continues without a dead or hanging one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_focus.core.printable import printable_logger, reason_of
from scrapy_focus.engine.browser.found import HANDLER
from scrapy_focus.engine.browser.visit import INIT
from scrapy_focus.engine.host import host_of
from scrapy_focus.engine.inflight import BrowserFailed
from scrapy_focus.engine.marks import RENDERED

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_focus.engine.browser.visit import Visit

logger = printable_logger(__name__)

_PAGES = 200  # rendered pages after which a browser is renewed: memory that it does not free would add up
_AT_ONCE = 4  # pages rendered at once
_LONGEST = 90.0  # seconds for a page, from the start of its turn
_CLOSING = 15.0  # seconds for a browser to close
_DYING = 0.5  # seconds until it shows whether the browser dies, or only a page
_FAILURES = 4  # in a row, of a browser that does not start or hangs, after which no further one is started


class BrowserHandler:
    """The download handler that the add-on sets if pages may be rendered.

    Requests without ``meta["playwright"]`` go to Scrapy's handler. The others go to scrapy-playwright, which is
    imported and started with the first of them.
    """

    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        base = load_object(crawler.settings["DOWNLOAD_HANDLERS_BASE"]["https"])
        self.plain = build_from_crawler(base, crawler)
        self.keeper = keeper_of(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def download_request(self, request: Request) -> Response:
        """Return the response to a request.

        Raises
        ------
        BrowserFailed
            If it needs a browser, and there is none, or it hangs.
        """
        if request.meta.get("playwright"):
            return await self.keeper.render(request)
        response: Response = await self.plain.download_request(request)
        return response

    async def close(self) -> None:
        """Close connections and browsers."""
        await self.plain.close()
        await self.keeper.close()


class Running:
    """A browser, and the number of its pages."""

    def __init__(self, handler: Any) -> None:
        self.handler = handler
        self.pages = 0
        self.out = 0  # pages in progress
        self.is_retired = False  # it gets no more pages, and is closed when none is in progress

    @property
    def is_dead(self) -> bool:
        """Whether it was started, and has died."""
        return self.pages > 0 and not (hasattr(self.handler, "browser") and self.handler.browser.is_connected())


class Keeper:
    """The browsers of one crawl: one for new pages, and older ones that still work on some."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.gone = ""  # why there is no browser any more
        self._running: Running | None = None
        self._all: set[Running] = set()
        self._starting = asyncio.Lock()
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._closing: set[asyncio.Task[None]] = set()
        self._failures = 0

    async def render(self, request: Request) -> Response:
        """Return the page that a browser renders for a request.

        Raises
        ------
        BrowserFailed
            If there is no browser, or it hangs or dies, or the process of the page does. Other errors are those of
            Playwright.
        """
        async with self._turns:
            browser = await self._browser()
            browser.pages += 1
            browser.out += 1
            try:
                async with asyncio.timeout(_LONGEST):
                    response: Response = await browser.handler.download_request(request)
            except TimeoutError as error:
                self._failed(browser, f"it did not respond for {_LONGEST:.0f} s")
                raise BrowserFailed(f"{request.url} took the browser more than {_LONGEST:.0f} s") from error
            except Exception as error:
                visit: Visit | None = request.meta.get(INIT) if RENDERED in request.meta else None
                if visit is not None and (browser.is_dead or visit.has_crashed):
                    if not browser.is_dead:
                        await asyncio.sleep(_DYING)
                    raise BrowserFailed(f"the browser died while it rendered {request.url}") from error
                raise
            finally:
                browser.out -= 1
                if browser.pages >= _PAGES or browser.is_dead:
                    self._retire(browser)
                self._close_if_idle(browser)
        self._failures = 0
        return response

    async def close(self) -> None:
        """Close all browsers; called once for each scheme."""
        for browser in [*self._all]:
            self._retire(browser)
            self._start_closing(browser)
        if self._closing:
            await asyncio.wait([*self._closing])

    async def _browser(self) -> Running:
        """Return the browser for the next page; starts one if there is none."""
        async with self._starting:
            if self.gone:
                raise BrowserFailed(self.gone)
            if self._running is None:
                try:
                    self._running = await self._start()
                except Exception as error:
                    self._failed(None, f"it does not start: {reason_of(error)}")
                    raise BrowserFailed(f"the browser does not start: {reason_of(error)}") from error
            return self._running

    async def _start(self) -> Running:
        running = Running(handler := load_object(HANDLER).from_crawler(self.crawler))
        self._all.add(running)
        handler.config.target_closed_max_retries = 0  # the caller tries again, and each attempt counts
        try:
            async with asyncio.timeout(_LONGEST):
                await handler._maybe_launch_in_thread()  # what the signal of the engine's start, long past, would do
                await handler._maybe_future_from_coro(handler._maybe_launch_browser())  # otherwise the first page would
        except BaseException:
            self._start_closing(running)
            raise
        self.count("browser/started")
        logger.info("A browser was started to render pages; each takes about a hundred times the CPU of a plain page")
        return running

    def _failed(self, browser: Running | None, why: str) -> None:
        if browser is None:
            self.count("browser/unstarted")
        else:
            self.count("browser/hung")
            self._retire(browser)
        self._failures += 1
        if self._failures >= _FAILURES and not self.gone:
            self.gone = f"the browser is no longer used: {why}"
            logger.warning("Pages are no longer rendered: the browser failed %d times in a row, %s", _FAILURES, why)

    def _retire(self, browser: Running) -> None:
        """Give a browser no more pages."""
        browser.is_retired = True
        if self._running is browser:
            self._running = None

    def _close_if_idle(self, browser: Running) -> None:
        if browser.is_retired and not browser.out:
            self._start_closing(browser)

    def _start_closing(self, browser: Running) -> None:
        if browser not in self._all:
            return
        self._all.discard(browser)
        task = asyncio.ensure_future(self._close(browser))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close(self, browser: Running) -> None:
        try:
            async with asyncio.timeout(_CLOSING):
                await browser.handler.close()
        except Exception as error:  # it is dead, or does not answer
            self.count("error/browser")
            logger.warning("A browser could not be closed: %s", reason_of(error))

    def count(self, name: str) -> None:
        """Add one to the count that is written to the stats as ``focus/<name>``."""
        if (host := host_of(self.crawler)) is not None:
            host.count(name)


_keepers: WeakKeyDictionary[Crawler, Keeper] = WeakKeyDictionary()


def keeper_of(crawler: Crawler) -> Keeper:
    """Return the keeper of a crawl: Scrapy makes a handler for each scheme, and they share the browser."""
    if crawler not in _keepers:
        _keepers[crawler] = Keeper(crawler)
    return _keepers[crawler]
