"""One page in a browser: its limits, and what happened to it."""

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
PLACES = 20  # navigation targets of a page noted before they are read
_ENDLESS = frozenset({"eventsource", "websocket", "ping", "media"})  # types of resources that never finish


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When a page that is read counts as done, and how much is done to it."""

    load: float = 10.0  # seconds until it is loaded, from its first bytes
    idle: float = 2.0  # likewise, while nothing is in flight
    requests: int = 500  # further requests of the page and its frames
    windows: int = 20  # that it opens; a page with more is abandoned
    moves: int = 5  # times that scripts may navigate before any action
    still: float = 0.09  # seconds without a change of the document, and with nothing in flight, until the page is quiet
    quiet: float = 10.0  # seconds to wait for that, at most
    restless: float = 1.0  # likewise, once it did not become quiet
    seconds: float = 20.0  # seconds for all, and since scrolling and clicking last brought links ...
    longest: float = 60.0  # ... but no longer than this, unless `seconds` is
    painted: float = 5.0  # seconds that an action may take until it is painted; other pages wait for it
    page_bytes: int = 64 << 20  # received for it, unpacked; then it is closed
    rounds: int = 100  # of scrolling and clicking that bring links; 0: no actions
    clicks: int = 5  # in each round
    downloads: int = 3  # buttons that are clicked for a file
    silence: float = 1.0  # seconds that a button for a file has to take effect while its page is quiet
    ending: float = 5.0  # seconds for a page to answer at the end; otherwise it hangs
    file_bytes: int = 16 << 20  # of a file that scripts make


class MadeFile(NamedTuple):
    """A file that scripts made when a button was clicked: it has no URL to request."""

    name: str  # as the browser would save it
    mime: str  # guessed from the name, which browsers derive from the script's type; "": unknown
    body: bytes


class Watcher(Protocol):
    """Watches over a visit."""

    stage: asyncio.Lock  # of the visible page

    async def watch(self, visit: Visit, page: Page) -> None:
        """Control all requests of a page."""

    async def close_up(self, page: Page) -> None:
        """Prepare a page that is about to load."""

    async def sent(self, page: Page | None) -> None:
        """Count a request of a page that was sent without asking."""

    async def break_off(self, page: Page) -> None:
        """Stop the running script of a page and its navigation, if the browser can."""

    def note(self, name: str, n: int = 1) -> None:
        """Add to the count that is written to the stats as ``focus/<name>``."""


class Visit:
    """A request of Scrapy that a browser answers; also the callback that scrapy-playwright calls with its page.

    A callback of the user is called after it. With `limits` the page is read: see
    :mod:`scrapy_focus.engine.browser.reading`.
    """

    def __init__(self, guard: Watcher, request: Request, limits: Limits | None = None) -> None:
        self.guard = guard
        self.request = request
        self.limits = limits
        self.own = request.meta.get(INIT)
        self.own_methods: Any = None  # of the page, as the user set them
        self.own_goto: Any = None  # how the page is opened, likewise
        self.frames: set[Hashable] = set()
        self.is_paid = True  # the page itself is counted before scrapy-playwright has it
        self.has_crashed = False  # its process is gone, which pages of a site may share
        self.is_over = False  # whether it was returned to the middleware
        self.is_weighed = False  # whether the bytes of the page itself are counted
        self.documents: set[str] = set()  # URLs of further documents that its main frame requested
        self.moves = 0  # how often scripts navigated
        self.refused: Refusal = ""  # why the page, or its redirect target, was refused
        self.unpacked = 0  # bytes received for it, as far as known
        self.is_too_large = False
        self.is_stopped = False  # whether it was closed because the budget of bytes was used up
        self.is_short = False  # whether the budget ended before all its requests were sent
        self.requests = 0  # further requests of its frames that were sent
        self.received = 0  # bytes of their responses, and of its own
        self.arrived = 0  # bytes of responses that were counted as they arrived, and are not complete
        self.traffic = Traffic()
        self.windows = 0  # opened by it
        self.is_direct = False  # whether no plain copy of the page was read
        self.document: Response | None = None  # of the page, as received, until it was examined
        self.is_file = False  # whether it is a file that the browser downloads, not a page
        self.announced = -1  # bytes of its document, by the headers; -1: unknown
        # For a page that is read
        self.is_acted_on = False  # from now on it must not navigate, and sends only GET requests
        self.left_for: list[str] = []  # URLs to which scripts tried to navigate since, until they are read
        self.unsafe = 0  # requests other than GET that were refused since
        self.actions: dict[str, int] = {}  # links that each kind of action brought, possibly 0
        self.links: int = 0  # to other pages at the end, including links that disappeared
        self.files: list[MadeFile] = []
        self.is_cut = False  # whether there was more to wait for, or to do
        self.is_growing = False  # whether the last scrolling and clicking brought links
        self.work: set[asyncio.Task[None]] = set()  # tasks to finish before it is read

    async def __call__(self, page: Page, request: Request) -> None:
        if self.is_too_large or self.is_stopped:  # scrapy-playwright tries again if a page was closed
            await _close(page)
            return
        await self.guard.watch(self, page)
        if self.limits is not None:
            self.traffic.watch(page)
            page.on("popup", lambda popup: self._window(page, popup))
            page.on("download", lambda download: self._file(page, download))
            page.on("response", self._head)
            page.on("crash", self._crash)
            if not self.own:  # a user's callback may answer dialogs
                page.on("dialog", self._dialog)
        if self.own:
            await load_object(self.own)(page, request)
        await self.guard.close_up(page)

    def _crash(self, _: Page) -> None:
        self.has_crashed = True

    def came(self, page: Page, size: int) -> None:
        """Count so many unpacked bytes of the page; close it if there are too many."""
        self.unpacked += size
        if self.limits is not None and self.unpacked > self.limits.page_bytes and not self.is_too_large:
            self.is_too_large = True
            self.start(_close(page))

    def run_short(self, page: Page) -> None:
        """Close the page, as the budget of bytes is used up."""
        if not self.is_stopped:
            self.is_stopped = self.is_short = True
            self.refused = self.refused or "budget"
            self.start(_close(page))

    def refuse(self, page: Page, download: Download) -> None:
        """Stop the download of a file, and count its request if that was sent without asking."""
        self.guard.note("browser/downloads")
        self.start(_cancel(download))
        if download.url.startswith(("http:", "https:")) and download.url not in self.documents:
            self.start(self.guard.sent(page))

    def _file(self, page: Page, download: Download) -> None:
        """Handle a file that arrives before any action: scripts navigated to it, or it is the page itself."""
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
        """Handle the headers of a response."""
        if is_document_of_page(response.request):
            if self.document is None:
                self.document = response
            length = response.headers.get("content-length", "")
            self.announced = int(length) if re.fullmatch(r"[0-9]{1,15}", length) else -1

    def _window(self, page: Page, popup: Page) -> None:
        """Close a window that was opened: it is not read."""
        self.windows += 1
        self.guard.note("browser/windows")
        self.start(_close(popup))
        if self.limits is not None and self.windows > self.limits.windows and not self.refused:
            self.refused = "windows"
            self.guard.note("browser/refused/windows")
            self.start(_close(page))

    def _dialog(self, dialog: Dialog) -> None:
        """Answer a script's dialog in the way that stops it least."""
        self.guard.note("browser/dialogs")
        self.start(_answer(dialog))

    @property
    def context(self) -> str:
        """The name of the page's browser context with scrapy-playwright."""
        return str(self.request.meta.get("playwright_context", ""))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task that has to finish before the page is read."""
        task = asyncio.ensure_future(work)
        self.work.add(task)
        task.add_done_callback(self.work.discard)


class Traffic:
    """The requests of a page in flight.

    Endless event streams, beacons and videos are not counted: no page becomes more complete with them.
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
        """Whether a document of the page or a frame is in flight: until it arrives, the page may not answer."""
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
