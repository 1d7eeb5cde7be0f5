"""Reads a page in a browser until it is quiet, and scrolling and clicking bring nothing more.

Much of this could last forever: pages that never rest, endless lists, scripts that do not return. Each wait is bounded,
and so is their sum, and what was found until then counts. Whatever we do to a page, it sends only GET requests, stays
where it is, and is never made to do anything harmful by its own words.
"""

from __future__ import annotations

import asyncio
import mimetypes
from contextlib import suppress
from functools import cache
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy.utils.misc import load_object

from scrapy_focus.core.errors import FocusError
from scrapy_focus.core.printable import printable_logger
from scrapy_focus.engine.browser.visit import INIT, MadeFile
from scrapy_focus.engine.browser.words import is_harm, says

if TYPE_CHECKING:
    from playwright.async_api import Download, JSHandle, Page

    from scrapy_focus.engine.browser.visit import Limits, Visit
    from scrapy_focus.engine.browser.words import Says

logger = printable_logger(__name__)

_METHODS = "playwright_page_methods"
_GOTO = "playwright_page_goto_kwargs"
_METHOD = "scrapy_playwright.page.PageMethod"  # it may not be installed
_MOVES = 3  # times that a script may replace a page before it is read
_ENDINGS = 3  # attempts to read the final page
_RESTLESS = 6  # rounds for a page that changes by itself: its links may never end
_GLANCE = 0.1  # seconds between checks for a file


class PageHangs(FocusError):
    """Raised for an unreadable page: its scripts do not return even when interrupted, or navigate on and on."""


def meta_of(visit: Visit) -> dict[str, Any]:
    """Return temporary ``meta`` for the request of a visit: it must not be stored in a job folder."""
    meta: dict[str, Any] = {INIT: visit}
    if visit.limits is not None:
        own = visit.request.meta.get(_METHODS) or ()
        visit.own_methods = visit.request.meta.get(_METHODS)
        visit.own_goto = visit.request.meta.get(_GOTO)
        meta[_GOTO] = {"wait_until": "commit", **(visit.own_goto or {})}
        meta[_METHODS] = [*(own.values() if isinstance(own, dict) else own), load_object(_METHOD)(read, visit)]
    return meta


def take_off(visit: Visit) -> None:
    """Remove what `meta_of` added."""
    meta = visit.request.meta
    for name, own in ((INIT, visit.own), (_METHODS, visit.own_methods), (_GOTO, visit.own_goto)):
        if own is not None:
            meta[name] = own
        elif name == INIT or visit.limits is not None:
            meta.pop(name, None)


async def read(page: Page, visit: Visit) -> None:
    """Wait until a page is done, and make it show everything, within the limits of its visit.

    Afterwards all links that existed at any time are in the document, and each button for a file is a link. The
    visit has a record of the actions.

    Raises
    ------
    PageHangs
        If the page does not answer any more, or its scripts navigated to a forbidden URL.
    """
    limits = visit.limits
    if limits is None or visit.is_file:
        return
    if visit.refused:
        raise PageHangs(
            f"{visit.request.url} redirects endlessly or to a forbidden URL ({visit.refused}); it is skipped"
        )
    reading = _Reading(page, visit, limits)
    page.on("download", reading.note_download)
    try:
        async with asyncio.timeout(limits.seconds) as reading.clock:
            await reading.load()
            await reading.wait()
            await reading.act()
    except TimeoutError:
        visit.is_cut = True
    except Exception as error:  # the page was closed, or replaced, or broke our script
        if page.is_closed() or visit.has_crashed:
            raise
        visit.is_cut = True
        logger.debug("scrapy_focus reads a page in its present state: %s (%s)", visit.request.url, error)
    visit.is_acted_on = True
    await reading.end()
    visit.guard.note("browser/read")
    visit.guard.note("browser/brought", sum(visit.actions.values()))
    if visit.is_cut:
        visit.guard.note("browser/cut")


class _Reading:
    """Reads one page."""

    def __init__(self, page: Page, visit: Visit, limits: Limits) -> None:
        self.page = page
        self.visit = visit
        self.limits = limits
        self.until = monotonic() + limits.seconds
        self.last = monotonic() + max(limits.seconds, limits.longest)
        self.clock: asyncio.Timeout | None = None  # for the actions so far
        self.helper: JSHandle | None = None  # reading.js in the page
        self.is_restless = False
        self._used: set[int] = set()  # buttons that are ignored: they bring nothing, or send POST requests
        self._downloads: list[Download] = []

    # -- until it is quiet --------------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Wait until the page is loaded.

        Some pages never are: a resource does not arrive, or they were about to navigate to something other than a
        page. They count as loaded after a while; sooner if nothing is in flight.
        """
        traffic, limits = self.visit.traffic, self.limits
        loaded = asyncio.ensure_future(self.page.wait_for_load_state())
        try:
            end = calm = monotonic()
            end += limits.load
            begun = traffic.begun
            while not (await asyncio.wait([loaded], timeout=_GLANCE))[0]:
                now = monotonic()
                if not traffic.is_calm or traffic.begun != begun:
                    begun, calm = traffic.begun, now
                if now >= min(end, calm + limits.idle):
                    self.visit.is_cut = True
                    return await self._break()
            await loaded
        finally:
            loaded.cancel()

    async def wait(self) -> None:
        """Wait until the page, or the page that its scripts navigate to, is quiet."""
        for _ in range(_MOVES):
            try:
                self.helper = await self.page.evaluate_handle(_script())
                await self.quiet()
                return
            except Exception:  # its scripts navigated meanwhile
                if self.page.is_closed() or self.visit.has_crashed:
                    raise
                self.helper = None
                await self.page.wait_for_load_state(timeout=1000 * self.limits.quiet)
        self.visit.is_cut = True

    async def quiet(self) -> None:
        """Wait until nothing is in flight, and the document does not change."""
        traffic, limits = self.visit.traffic, self.limits
        seconds = limits.restless if self.is_restless else limits.quiet
        end = min(monotonic() + seconds, self.until)
        while (rest := end - monotonic()) > 0:
            try:
                await asyncio.wait_for(traffic.calm(), rest)
            except TimeoutError:
                if traffic.is_leaving:
                    await self._break()
            begun = traffic.begun
            is_still = await self.ask("still", 1000 * limits.still, 1000 * max(0.0, end - monotonic()))
            if is_still and traffic.is_calm and traffic.begun == begun:
                return
        self.is_restless = self.visit.is_cut = True

    # -- actions ------------------------------------------------------------------------------------------------------

    async def act(self) -> None:
        """Scroll and click while links arrive; then click the buttons for files."""
        if self.helper is None or not self.limits.rounds:
            return
        visit = self.visit
        visit.is_acted_on = True
        visit.links = _number(await self.ask("begin"))
        offers: list[tuple[int, Says]] = []
        for done in range(1, self.limits.rounds + 1):
            fresh, offers = await self._act_once()
            visit.is_growing = bool(fresh) or visit.requests >= self.limits.requests
            if not fresh or (self.is_restless and done >= _RESTLESS):
                break
            self.extend()
        visit.is_cut = visit.is_cut or visit.is_growing
        for number in [number for number, kind in offers if kind == "download"][: self.limits.downloads]:
            await self.click(number, "download")

    async def _act_once(self) -> tuple[int, list[tuple[int, Says]]]:
        """Scroll down, and click what may show more; return the number of new links, and the buttons to click then."""
        await self.show("scroll")
        await self.quiet()
        fresh, offers = await self.look("scroll")
        for number, kind in self._to_click(offers):
            n, offers = await self.click(number, kind)
            fresh += n
        return fresh, offers

    def _to_click(self, offers: list[tuple[int, Says]]) -> list[tuple[int, Says]]:
        """Return the buttons of a list that were not clicked before, as many as are allowed in a round."""
        clicks: list[tuple[int, Says]] = []
        for number, kind in offers:
            if kind in ("more", "next") and number not in self._used:
                clicks.append((number, kind))
        return clicks[: self.limits.clicks]

    def extend(self) -> None:
        """Allow more time, within limits, since links arrived."""
        self.until = min(monotonic() + self.limits.seconds, self.last)
        if self.clock is not None:
            self.clock.reschedule(asyncio.get_running_loop().time() + self.until - monotonic())

    async def click(self, number: int, kind: Says) -> tuple[int, list[tuple[int, Says]]]:
        """Click a button; return how many links that brought, and the buttons afterwards."""
        visit = self.visit
        unsafe = visit.unsafe
        await self.show("click", number)
        await self.quiet()
        end = monotonic() + self.limits.silence
        while kind == "download" and not (self._downloads or visit.left_for or await self.ask("led")):
            if monotonic() >= end:
                break
            await asyncio.sleep(_GLANCE)
        fresh, offers = await self.look(kind, number)
        if not fresh or visit.unsafe > unsafe:
            self._used.add(number)
        return fresh, offers

    async def show(self, name: str, *given: object) -> None:
        """Run a function in the page while it is visible: Chromium hardly paints a page behind another one.

        If a page is not painted, its scripts learn seconds late what scrolls into view.
        """
        try:
            async with self.visit.guard.stage, asyncio.timeout(self.limits.painted):
                await self.page.bring_to_front()
                await self.ask(name, *given)
        except TimeoutError:
            await self._break()

    async def look(self, kind: str, number: int = -1) -> tuple[int, list[tuple[int, Says]]]:
        """Return the number of links that an action brought, and the present buttons with what they say."""
        seen = await self.ask("look")
        found = [*seen["opened"], *self.visit.left_for]
        self.visit.left_for.clear()
        for download in self._downloads:
            if download.url.startswith(("http:", "https:")):
                found.append(download.url)
            else:
                await self._keep(download)
        self._downloads.clear()
        found = [url for url in dict.fromkeys(map(str, found)) if url.startswith(("http:", "https:"))]
        placed = [await self.ask("place", number, url) for url in found]
        fresh = _number(seen["fresh"])
        actions = self.visit.actions
        actions[kind] = actions.get(kind, 0) + fresh + placed.count(True)
        return fresh, [
            (_number(offer[0]), kind_of)
            for offer in seen["offers"]
            if (kind_of := says(str(offer[1]))) and not is_harm(str(offer[2]))
        ]

    def note_download(self, download: Download) -> None:
        """Note that a file arrives, or would arrive."""
        if not self.visit.is_acted_on:
            return
        is_one_too_many = len(self._downloads) >= self.limits.downloads
        if download.url.startswith(("http:", "https:")) or is_one_too_many:
            self.visit.refuse(self.page, download)
        if not is_one_too_many:
            self._downloads.append(download)

    async def _keep(self, download: Download) -> None:
        """Keep a file that scripts made."""
        visit, name = self.visit, download.suggested_filename
        try:
            async with asyncio.timeout(self.limits.quiet):
                path = Path(await download.path())
            if path.stat().st_size > self.limits.file_bytes or len(visit.files) >= self.limits.downloads:
                visit.is_cut = True
            else:
                visit.files.append(MadeFile(name, mimetypes.guess_type(name)[0] or "", path.read_bytes()))
                visit.actions["download"] = visit.actions.get("download", 0) + 1
            await download.delete()
        except Exception as error:  # it did not end, or its browser is on another machine
            visit.is_cut = True
            logger.debug("scrapy_focus could not keep %s of %s: %s", name, visit.request.url, error)
            self.visit.refuse(self.page, download)

    # -- at the end ---------------------------------------------------------------------------------------------------

    async def end(self) -> None:
        """Leave the page in the state in which it is to be read."""
        self.page.remove_listener("download", self.note_download)
        if self.visit.work:
            await asyncio.wait(self.visit.work, timeout=self.limits.ending)
        for _ in range(_ENDINGS):
            try:
                async with asyncio.timeout(self.limits.ending):
                    if self.helper is None:
                        await self.page.evaluate("0")
                    else:
                        for url in self.visit.left_for:
                            await self.ask("place", -1, url)
                        await self.recall()
                        self.visit.links = _number((await self.ask("end"))["links"])
                return await self._leave()
            except TimeoutError:
                await self._break()
            except PageHangs:
                raise
            except Exception:  # its scripts navigated meanwhile
                if self.page.is_closed() or self.visit.has_crashed:
                    raise
                self.helper = None
        raise PageHangs(f"{self.visit.request.url} does not respond: its scripts do not return; it is skipped")

    async def recall(self) -> None:
        """Note the content of the page before its scripts ran, if no plain copy was read.

        A consent wall may have replaced it.
        """
        document, self.visit.document = self.visit.document, None
        if document is None or not self.visit.is_direct:
            return
        try:
            await self.ask("recall", await document.text())
        except TimeoutError:
            raise
        except Exception as error:  # it is gone, or broke our script
            logger.debug("scrapy_focus could not read the plain page: %s (%s)", self.visit.request.url, error)

    async def _leave(self) -> None:
        """Pass the page to scrapy-playwright, which waits once more until it is loaded."""
        if not self.page.url.startswith(("http:", "https:")):
            raise PageHangs(f"{self.visit.request.url} was replaced by its scripts with {self.page.url[:100]}")
        try:
            async with asyncio.timeout(_GLANCE):
                await self.page.wait_for_load_state()
        except TimeoutError:
            _take_for_loaded(self.page)

    async def _break(self) -> None:
        """Stop the running script and its navigation, if the browser can."""
        self.visit.is_cut = True
        with suppress(Exception):
            async with asyncio.timeout(self.limits.ending):
                await self.visit.guard.break_off(self.page)

    async def ask(self, name: str, *given: object) -> Any:
        """Call a function of reading.js."""
        if self.helper is None:
            raise RuntimeError("the page is not loaded yet")
        return await self.helper.evaluate("(page, [name, given]) => page[name](...given)", [name, given])


def _take_for_loaded(page: Page) -> None:
    """Let the next caller not wait for the load: some resource never arrives."""

    async def at_once(*_: object, **__: object) -> None:
        del page.wait_for_load_state

    page.wait_for_load_state = at_once


@cache
def _script() -> str:
    return Path(__file__).with_name("reading.js").read_text(encoding="utf-8")


def _number(value: object) -> int:
    """Return a number that a page reports: its scripts may have broken ours."""
    if isinstance(value, int | float) and 0 <= value < 1e9:
        return int(value)
    return 0
