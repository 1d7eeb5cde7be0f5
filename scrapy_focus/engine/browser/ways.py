"""Intercepts a browser's requests: by the protocol of Chromium's developer tools, or by Playwright's routes.

Playwright's routes see neither the second request of a redirect nor favicons; a page's routes see no popups, shared
workers or service workers. Chromium's own protocol sees them all, so it is used if the browser is ours alone. Other
browsers do not offer it.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections import Counter
from contextlib import suppress
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from scrapy.utils.misc import load_object

from scrapy_focus.engine.browser.sizes import STORED

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable, Iterable, Mapping
    from typing import Self

    from playwright.async_api import (
        Browser,
        BrowserContext,
        CDPSession,
        Page,
        Request,
        Route,
        WebSocket,
        WebSocketRoute,
    )
    from scrapy.crawler import Crawler

    from scrapy_focus.engine.browser.rules import Refusal
    from scrapy_focus.engine.browser.store import Stored


class Asked(NamedTuple):
    """A request that a browser wants to send."""

    url: str
    kind: str  # the type of resource, by Playwright's names
    method: str = "GET"
    frame: Hashable = None  # the page, or the id of its main frame, if the main frame sends it
    is_first: bool = True  # False for a redirect

    @property
    def leaves_its_page(self) -> bool:
        """Whether it navigates the page: if it were blocked, an error page would replace the page."""
        return self.kind == "document" and self.is_first


class Gate(Protocol):
    """Whom they ask."""

    crawler: Crawler
    token: str

    async def refusal(self, asked: Asked, stored: Stored | None = None) -> Refusal:
        """Return why a request must not be sent, or ``""``; with `stored`, why that must not be used."""

    def stored(self, asked: Asked) -> Stored | None:
        """Return the stored response to a request, if there is one; otherwise, it may be stored when it arrives."""

    def headers(self, url: str) -> Mapping[str, bytes]:
        """Return headers to add to requests to the origin of a URL, by name."""

    async def sent(self, page: Page | None) -> None:
        """Count a request of a page that was sent without asking."""

    async def withdrawn(self) -> None:
        """Uncount a request that was allowed but never sent."""

    def received(self, n_bytes: int, page: Page | None = None) -> None:
        """Count so many bytes."""


class Network:
    """Intercepts every request of a Chromium of our own, including redirects, popups, frames and workers.

    Our session is the nearest to the network. Requests that a user's handler aborts or answers never get here.
    """

    def __init__(self, session: CDPSession, gate: Gate) -> None:
        self.session = session
        self.gate = gate
        self._tasks = Tasks()
        self._sessions: WeakKeyDictionary[Page, CDPSession] = WeakKeyDictionary()

    @classmethod
    async def of(cls, browser: Browser, gate: Gate) -> Self:
        network = cls(await browser.new_browser_cdp_session(), gate)
        network.session.on("Fetch.requestPaused", lambda event: network._tasks.start(network._decide(event)))
        await network.session.send("Fetch.enable", {"patterns": [{"urlPattern": "*", "requestStage": "Request"}]})
        return network

    async def frame_of(self, page: Page) -> Hashable:
        """Return Chromium's id of a page's main frame, which is valid while the page exists."""
        session = self._sessions[page] = await page.context.new_cdp_session(page)
        page.once("close", lambda _: self._sessions.pop(page, None))  # its listeners keep the page in memory
        info = await session.send("Target.getTargetInfo")
        return str(info["targetInfo"]["targetId"])

    async def weigh(self, page: Page, came: Callable[[int, int], None]) -> None:
        """Report the size of each piece of a response to a page as it arrives, unpacked and as received."""
        session = self._sessions[page]
        session.on("Network.dataReceived", lambda event: came(event["dataLength"], event["encodedDataLength"]))
        await session.send("Network.enable")

    async def frames(self, page: Page, has: Callable[[Hashable], None]) -> None:
        """Report Chromium's id of each frame of a page when the frame appears."""
        session = self._sessions[page]
        session.on("Page.frameAttached", lambda event: has(str(event["frameId"])))
        await session.send("Page.enable")

    async def break_off(self, page: Page) -> None:
        """Stop the running script of a page and its navigation, until whose end the page may not answer.

        Uses a session opened before, as such a page answers to no new one.
        """
        if (session := self._sessions.get(page)) is not None:
            await session.send("Runtime.terminateExecution")
            await session.send("Page.stopLoading")

    async def close_up(self, page: Page) -> None:
        """Prepare a page that is about to load."""

    async def _decide(self, event: dict[str, Any]) -> None:
        request_id = event["requestId"]
        asked = Asked(
            event["request"]["url"],
            kind_of(event),
            method=event["request"]["method"],
            frame=event.get("frameId"),
            is_first="redirectedRequestId" not in event,
        )
        stored = self.gate.stored(asked)
        if refused := await self.gate.refusal(asked, stored):
            reason = "Aborted" if asked.leaves_its_page and refused != "moves" else "BlockedByClient"
            with suppress(Exception):  # its page was closed meanwhile
                await self.session.send("Fetch.failRequest", {"requestId": request_id, "errorReason": reason})
            return
        if stored is not None:
            headers = [{"name": name, "value": value} for name, value in self._headers(stored)]
            answer = {"requestId": request_id, "responseCode": 200, "responseHeaders": headers, "body": stored.body}
            with suppress(Exception):
                await self.session.send("Fetch.fulfillRequest", answer)
            return
        try:
            await self.session.send("Fetch.continueRequest", {"requestId": request_id, **self._with_ours(event)})
        except Exception as error:
            if "InterceptionId" in str(error):  # gone with its page
                await self.gate.withdrawn()

    def _with_ours(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return the headers of a paused request with those of the crawl; they do not extend to its redirects."""
        ours = {name.lower(): value.decode() for name, value in self.gate.headers(event["request"]["url"]).items()}
        if not ours:
            return {}
        headers = {name.lower(): value for name, value in event["request"]["headers"].items()} | ours
        return {"headers": [{"name": name, "value": value} for name, value in headers.items()]}

    def _headers(self, stored: Stored) -> Iterable[tuple[str, str]]:
        """Yield the headers of a stored response; a value with several lines is several headers."""
        for name, values in stored.headers.items():
            for value in values.split("\n"):
                yield name, value
        yield STORED, self.gate.token


class Routes:
    """Intercepts in a route handler, for browsers other than Chromium and for shared ones.

    A redirect is counted after it was sent, and shared workers are not seen. Requests that a user's handler answers
    are counted as well.
    """

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self._tasks = Tasks()
        abort = gate.crawler.settings.get("PLAYWRIGHT_ABORT_REQUEST")
        self._aborts = load_object(abort) if abort else None

    @classmethod
    async def of(cls, context: BrowserContext, gate: Gate) -> Self:
        routes = cls(gate)
        context.on("request", routes._note)
        await context.route("**", routes._decide)  # popups; pages of scrapy-playwright do not get here
        return routes

    async def frame_of(self, page: Page) -> Hashable:
        """Return the page itself as its id."""
        known_by: Hashable = page
        return known_by

    async def weigh(self, page: Page, came: Callable[[int, int], None]) -> None:
        """Do nothing: sizes are not available."""

    async def frames(self, page: Page, has: Callable[[Hashable], None]) -> None:
        """Do nothing: frames are not available."""

    async def break_off(self, page: Page) -> None:
        """Do nothing: scripts cannot be stopped."""

    async def close_up(self, page: Page) -> None:
        """Prepare a page that is about to load: our handler has to come before its others."""
        await page.unroute("**", self._decide)
        await page.route("**", self._decide)

    async def _decide(self, route: Route, request: Request) -> None:
        if self._aborts is not None and await _maybe(self._aborts(request)):
            await route.fallback()  # scrapy-playwright asks, and aborts it
            return
        asked = Asked(request.url, request.resource_type, method=request.method, frame=_main_page(request))
        stored = self.gate.stored(asked)
        if refused := await self.gate.refusal(asked, stored):
            await route.abort("aborted" if asked.leaves_its_page and refused != "moves" else "blockedbyclient")
        elif stored is not None:
            headers = {**stored.headers, STORED: self.gate.token}
            await route.fulfill(status=200, headers=headers, body=b64decode(stored.body))
        else:
            await route.fallback()

    def _note(self, request: Request) -> None:
        if request.redirected_from is not None:
            self._tasks.start(self.gate.sent(_page(request)))


class Sockets:
    """Asks before a page opens a web socket, which nothing else sees, and counts its bytes.

    Web sockets of workers are counted once they are open.
    """

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self._allowed: Counter[str] = Counter()
        self._tasks = Tasks()

    async def watch(self, context: BrowserContext) -> None:
        """Intercept the web sockets of all pages of a context."""
        await context.route_web_socket("**", self._decide)
        context.on("page", self._listen)
        for page in context.pages:
            self._listen(page)

    def _listen(self, page: Page) -> None:
        page.on("websocket", lambda socket: self._opened(socket, page))

    async def _decide(self, route: WebSocketRoute) -> None:
        if await self.gate.refusal(Asked(route.url, "websocket")):
            await route.close(code=1008, reason="refused by scrapy_focus")
        else:
            self._allowed[route.url] += 1
            route.connect_to_server()

    def _opened(self, socket: WebSocket, page: Page) -> None:
        if self._allowed[socket.url]:
            self._allowed[socket.url] -= 1
        else:
            self._tasks.start(self.gate.sent(page))
        socket.on("framereceived", lambda payload: self.gate.received(len(payload)))


class Tasks:
    """Keeps references to tasks, so that they are not garbage-collected before they finish."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something soon."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def kind_of(event: dict[str, Any]) -> str:
    """Return the type of resource of a paused request, by Playwright's names; a page's icon is an image."""
    kind = str(event.get("resourceType", "other")).lower()
    headers = {name.lower(): value for name, value in event["request"].get("headers", {}).items()}
    return "image" if kind == "other" and headers.get("accept", "").startswith("image/") else kind


def _main_page(request: Request) -> Page | None:
    """Return the page whose main frame sends a request."""
    page = _page(request)
    return page if page is not None and request.frame == page.main_frame else None


def _page(request: Request) -> Page | None:
    with suppress(Exception):  # a popup that is just being opened has no page yet
        return request.frame.page
    return None


async def _maybe(value: Any) -> Any:
    return await value if isawaitable(value) else value
