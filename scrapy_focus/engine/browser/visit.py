"""One page in a browser: what is asked of it, and what it noted."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from scrapy.utils.misc import load_object

from scrapy_focus.engine.browser.sizes import is_document_of_page

if TYPE_CHECKING:
    from collections.abc import Coroutine, Hashable

    from playwright.async_api import Dialog, Download, Page, Response
    from playwright.async_api import Request as Asked
    from scrapy import Request

    from scrapy_focus.engine.browser.rules import Refusal

INIT = "playwright_page_init_callback"
PLACES = 20  # where a page may lead, of those that are noted until somebody looks
_ENDLESS = frozenset({"eventsource", "websocket", "ping", "media"})  # types of resources that no page is done without


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When a page that is read is done, and how much is done to it."""

    load: float = 10.0  # seconds until it is loaded, from when its first bytes came
    idle: float = 2.0  # the same while nothing is in flight
    requests: int = 500  # that it asks for besides, its frames' too
    windows: int = 20  # that it opens; one with more is left
    moves: int = 5  # times that scripts may lead elsewhere before anything is done to it
    still: float = 0.09  # seconds without a change of the document, and with nothing in flight, after which it is quiet
    quiet: float = 10.0  # seconds to wait for that, at most
    restless: float = 1.0  # the same once it did not become quiet
    seconds: float = 20.0  # for all, and from when links came last by scrolling and clicking ...
    longest: float = 60.0  # ... but no longer than this, unless `seconds` is
    painted: float = 5.0  # seconds that an action may take until it is painted; other pages wait for it
    page_bytes: int = 64 << 20  # that come for it, unpacked, after which it is closed
    rounds: int = 100  # of scrolling and clicking that bring links; 0: nothing is done to the page
    clicks: int = 5  # in each round
    downloads: int = 3  # buttons that are clicked for a file
    silence: float = 1.0  # seconds that a button for a file has to do something, when its page is quiet
    ending: float = 5.0  # seconds for a page to answer at the end; one that does not hangs
    file_bytes: int = 16 << 20  # of a file that scripts make


class MadeFile(NamedTuple):
    """A file that scripts made when a button was clicked: it has no URL that could be asked for."""

    name: str  # as the browser would save it
    mime: str  # guessed from the name, in which browsers put what scripts say; "": not known
    body: bytes


class Watcher(Protocol):
    """Who watches over it."""

    stage: asyncio.Lock  # of the page that is seen

    async def watch(self, visit: Visit, page: Page) -> None:
        """Let nothing of a page out unasked."""

    async def close_up(self, page: Page) -> None:
        """A page is about to load."""

    async def sent(self, page: Page | None) -> None:
        """A request of a page went out that could not be asked for."""

    async def break_off(self, page: Page) -> None:
        """Break off the script that runs in a page, and what it is about to go to, where a browser can."""

    def note(self, name: str, n: int = 1) -> None:
        """Add to the count that is written to the stats as ``focus/<name>``."""


class Visit:
    """A request of Scrapy that a browser answers; as the callback that scrapy-playwright makes with its page.

    A callback of the user's is called after it. With `limits` the page is read: see
    :mod:`scrapy_focus.engine.browser.reading`.
    """

    def __init__(self, guard: Watcher, request: Request, limits: Limits | None = None) -> None:
        self.guard = guard
        self.request = request
        self.limits = limits
        self.own = request.meta.get(INIT)
        self.own_methods: Any = None  # of the page, as the user gave them
        self.own_goto: Any = None  # how it is gone to, likewise
        self.frames: set[Hashable] = set()
        self.is_paid = True  # the page itself is counted before scrapy-playwright has it
        self.has_crashed = False  # its process is gone, which pages of a site may share
        self.is_over = False  # whether it was given back: nobody asks for it any more
        self.is_weighed = False  # whether the bytes of the page itself are counted
        self.documents: set[str] = set()  # URLs of documents that its main frame wanted besides
        self.moves = 0  # how often scripts led elsewhere
        self.refused: Refusal = ""  # why the page, or what it redirects to, was refused
        self.unpacked = 0  # bytes that came for it, where they are known
        self.is_too_large = False
        self.is_short = False  # whether the budget ended before it had all that it asked for
        self.requests = 0  # that its frames asked for besides, and that went out
        self.received = 0  # bytes of their answers, and of its own
        self.traffic = Traffic()
        self.windows = 0  # that it opened
        self.is_direct = False  # whether no plain copy of the page was read
        self.document: Response | None = None  # of the page, as it came, until somebody has looked at it
        self.is_file = False  # whether it is no page at all, and the browser takes it
        self.announced = -1  # bytes of its document, by the headers; -1: they do not tell
        # of a page that is read
        self.is_acted_on = False  # from now on it stays where it is, and asks for nothing but by GET
        self.left_for: list[str] = []  # URLs for which scripts would have left it since, until somebody looks
        self.unsafe = 0  # requests other than GETs that were refused since
        self.actions: dict[str, int] = {}  # what was done: links that each kind brought, 0 where it brought none
        self.links: int = 0  # to other pages at the end, those that are gone included
        self.files: list[MadeFile] = []
        self.is_cut = False  # whether there was more to wait for, or to do
        self.is_growing = False  # whether links came when it was scrolled and clicked last
        self.work: set[asyncio.Task[None]] = set()  # that is to be done before it is read

    async def __call__(self, page: Page, request: Request) -> None:
        if self.is_too_large:  # scrapy-playwright tries again where a page was closed
            await _close(page)
            return
        await self.guard.watch(self, page)
        if self.limits is not None:
            self.traffic.watch(page)
            page.on("popup", lambda popup: self._window(page, popup))
            page.on("download", lambda download: self._file(page, download))
            page.on("response", self._head)
            page.on("crash", self._crash)
            if not self.own:  # who has a callback may answer dialogs
                page.on("dialog", self._dialog)
        if self.own:
            await load_object(self.own)(page, request)
        await self.guard.close_up(page)

    def _crash(self, _: Page) -> None:
        self.has_crashed = True

    def came(self, page: Page, size: int) -> None:
        """So many bytes came for the page, unpacked: one that brings too many is closed."""
        self.unpacked += size
        if self.limits is not None and self.unpacked > self.limits.page_bytes and not self.is_too_large:
            self.is_too_large = True
            self.start(_close(page))

    def refuse(self, page: Page, download: Download) -> None:
        """Let no more of a file come, and count the request for it, if that went out unasked."""
        self.guard.note("browser/downloads")
        self.start(_cancel(download))
        if download.url.startswith(("http:", "https:")) and download.url not in self.documents:
            self.start(self.guard.sent(page))

    def _file(self, page: Page, download: Download) -> None:
        """A file comes before anything is done to the page: scripts lead to it, or it is the page itself."""
        if self.is_acted_on:
            return
        is_itself = page.url in ("", "about:blank")
        if is_itself and self.limits is not None and 0 <= self.announced <= self.limits.page_bytes:
            self.is_file = True
            return
        self.refuse(page, download)
        if not is_itself and download.url.startswith(("http:", "https:")) and len(self.left_for) < PLACES:
            self.left_for.append(download.url)

    def _head(self, response: Response) -> None:
        """The headers of an answer came."""
        if is_document_of_page(response.request):
            if self.document is None:
                self.document = response
            length = response.headers.get("content-length", "")
            self.announced = int(length) if re.fullmatch(r"[0-9]{1,15}", length) else -1

    def _window(self, page: Page, popup: Page) -> None:
        """A window was opened: nobody reads it."""
        self.windows += 1
        self.guard.note("browser/windows")
        self.start(_close(popup))
        if self.limits is not None and self.windows > self.limits.windows and not self.refused:
            self.refused = "windows"
            self.guard.note("browser/refused/windows")
            self.start(_close(page))

    def _dialog(self, dialog: Dialog) -> None:
        """A script waits for an answer: it gets the one that stops it least."""
        self.guard.note("browser/dialogs")
        self.start(_answer(dialog))

    @property
    def context(self) -> str:
        """The name that the browser context of the page has with scrapy-playwright."""
        return str(self.request.meta.get("playwright_context", ""))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something, which is to be done before the page is read."""
        task = asyncio.ensure_future(work)
        self.work.add(task)
        task.add_done_callback(self.work.discard)


class Traffic:
    """What a page has in flight.

    An endless stream of events, a beacon or a film is not counted: no page is more complete with it.
    """

    def __init__(self) -> None:
        self.begun = 0  # requests so far
        self._flying: set[Asked] = set()
        self._calm = asyncio.Event()
        self._calm.set()

    def watch(self, page: Page) -> None:
        """Listen to a page."""
        page.on("request", self._begin)
        page.on("requestfinished", self._end)
        page.on("requestfailed", self._end)

    @property
    def is_calm(self) -> bool:
        """Whether nothing is in flight."""
        return not self._flying

    @property
    def is_leaving(self) -> bool:
        """Whether a document is in flight, of the page or of a frame: until it is there the page may not answer."""
        return any(request.is_navigation_request() for request in self._flying)

    async def calm(self) -> None:
        """Wait until nothing is in flight."""
        await self._calm.wait()

    def _begin(self, request: Asked) -> None:
        if request.resource_type not in _ENDLESS:
            self.begun += 1
            self._flying.add(request)
            self._calm.clear()

    def _end(self, request: Asked) -> None:
        self._flying.discard(request)
        if not self._flying:
            self._calm.set()


async def _close(page: Page) -> None:
    with suppress(Exception):  # it was closed already
        await page.close()


async def _cancel(download: Download) -> None:
    with suppress(Exception):  # it has ended
        await download.cancel()


async def _answer(dialog: Dialog) -> None:
    with suppress(Exception):  # its page was closed
        await (dialog.accept() if dialog.type == "beforeunload" else dialog.dismiss())
