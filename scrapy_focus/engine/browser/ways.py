"""Ways to make a browser ask before it sends: the protocol of Chromium's developer tools, or routes of Playwright.

Playwright's routes see neither the second request of a redirect nor favicons; those of a page see no popup, shared
worker or service worker. Chromium itself sees them all, so where the browser is ours alone, it is asked. No other
browser can be.
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
    from collections.abc import Callable, Coroutine, Hashable, Iterable
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
    kind: str  # the type of resource, as Playwright names it
    method: str = "GET"
    frame: Hashable = None  # the page, or what its way knows it by, if its main frame asks
    is_first: bool = True  # whether it is no redirect

    @property
    def leaves_its_page(self) -> bool:
        """Whether scripts or a click lead to another page: were that blocked, an error would replace this one."""
        return self.kind == "document" and self.is_first


class Gate(Protocol):
    """Whom they ask."""

    crawler: Crawler
    token: str

    async def refusal(self, asked: Asked, stored: Stored | None = None) -> Refusal:
        """Return why a request must not go out, or ``""``; with what is stored, why it must not be answered by that."""

    def stored(self, asked: Asked) -> Stored | None:
        """Return the answer to a request that is kept from another page, if any; else it may be kept when it comes."""

    async def sent(self, page: Page | None) -> None:
        """A request of a page went out that could not be asked for."""

    async def withdrawn(self) -> None:
        """A request that might go out never did."""

    def received(self, n_bytes: int, page: Page | None = None) -> None:
        """So many bytes came."""


class Network:
    """Has a Chromium of our own ask for every request that it sends: redirects, popups, frames and workers too.

    Our session is nearest to the network. What a handler of the user's aborts or answers never gets here.
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
        """Return what Chromium calls the main frame of a page, for as long as there is the page."""
        session = self._sessions[page] = await page.context.new_cdp_session(page)
        page.once("close", lambda _: self._sessions.pop(page, None))  # what listens to it holds the page
        info = await session.send("Target.getTargetInfo")
        return str(info["targetInfo"]["targetId"])

    async def weigh(self, page: Page, came: Callable[[int], None]) -> None:
        """Say of each piece of an answer to a page how large it is, unpacked, as it comes."""
        session = self._sessions[page]
        session.on("Network.dataReceived", lambda event: came(int(event["dataLength"])))
        await session.send("Network.enable")

    async def frames(self, page: Page, has: Callable[[Hashable], None]) -> None:
        """Say of each frame of a page what Chromium calls it, when there is one."""
        session = self._sessions[page]
        session.on("Page.frameAttached", lambda event: has(str(event["frameId"])))
        await session.send("Page.enable")

    async def break_off(self, page: Page) -> None:
        """Break off the script that runs in a page, and what it is about to go to: until that comes, it may not answer.

        Through a session from before, as such a page answers to no new one.
        """
        if (session := self._sessions.get(page)) is not None:
            await session.send("Runtime.terminateExecution")
            await session.send("Page.stopLoading")

    async def close_up(self, page: Page) -> None:
        """A page is about to load."""

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
            await self.session.send("Fetch.continueRequest", {"requestId": request_id})
        except Exception as error:
            if "InterceptionId" in str(error):  # gone with its page
                await self.gate.withdrawn()

    def _headers(self, stored: Stored) -> Iterable[tuple[str, str]]:
        """Yield the headers of a stored answer; one with lines had several values, and several headers."""
        for name, values in stored.headers.items():
            for value in values.split("\n"):
                yield name, value
        yield STORED, self.gate.token


class Routes:
    """Asks in a route handler, for browsers other than Chromium and for those that others may use too.

    A redirect is counted when it has gone out, and shared workers are not seen at all. What a handler of the user's
    answers is counted as well.
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
        """Return what a page is known by."""
        known_by: Hashable = page
        return known_by

    async def weigh(self, page: Page, came: Callable[[int], None]) -> None:
        """Say of each piece of an answer how large it is: not known how."""

    async def frames(self, page: Page, has: Callable[[Hashable], None]) -> None:
        """Say of each frame of a page what it is called: not known how."""

    async def break_off(self, page: Page) -> None:
        """Break off the script that runs in a page: not known how."""

    async def close_up(self, page: Page) -> None:
        """A page is about to load: be asked before all handlers that it has."""
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
    """Asks before a page opens a web socket, which no other way sees, and counts the bytes that come through it.

    Those of workers are counted when they are open.
    """

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self._allowed: Counter[str] = Counter()
        self._tasks = Tasks()

    async def watch(self, context: BrowserContext) -> None:
        """Ask for the web sockets of all pages of a context."""
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
    """Keeps what is to be done from being collected before it is done."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something soon."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def kind_of(event: dict[str, Any]) -> str:
    """Return the type of resource of a paused request, as Playwright names it; an icon of a page is an image."""
    kind = str(event.get("resourceType", "other")).lower()
    headers = {name.lower(): value for name, value in event["request"].get("headers", {}).items()}
    return "image" if kind == "other" and headers.get("accept", "").startswith("image/") else kind


def _main_page(request: Request) -> Page | None:
    """Return the page whose main frame asks."""
    page = _page(request)
    return page if page is not None and request.frame == page.main_frame else None


def _page(request: Request) -> Page | None:
    with suppress(Exception):  # a popup that is just being opened has no page yet
        return request.frame.page
    return None


async def _maybe(value: Any) -> Any:
    return await value if isawaitable(value) else value
