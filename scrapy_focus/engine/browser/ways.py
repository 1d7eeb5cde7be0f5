"""Ways to make a browser ask before it sends: the protocol of Chromium's developer tools, or routes of Playwright.

Playwright's routes see neither the second request of a redirect nor favicons; those of a page see no popup, shared
worker or service worker. Chromium itself sees them all, so where the browser is ours alone, it is asked. No other
browser can be.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Protocol

from scrapy.utils.misc import load_object

if TYPE_CHECKING:
    from collections.abc import Coroutine, Hashable
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


class Gate(Protocol):
    """Whom they ask."""

    crawler: Crawler

    async def refusal(self, url: str, kind: str, frame: Hashable = None, *, is_first: bool = True) -> str:
        """Return why a request must not go out, or ``""``."""

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

    @classmethod
    async def of(cls, browser: Browser, gate: Gate) -> Self:
        network = cls(await browser.new_browser_cdp_session(), gate)
        network.session.on("Fetch.requestPaused", lambda event: network._tasks.start(network._decide(event)))
        await network.session.send("Fetch.enable", {"patterns": [{"urlPattern": "*", "requestStage": "Request"}]})
        return network

    async def frame_of(self, page: Page) -> Hashable:
        """Return what Chromium calls the main frame of a page, for as long as there is the page."""
        session = await page.context.new_cdp_session(page)
        info = await session.send("Target.getTargetInfo")
        await session.detach()
        return str(info["targetInfo"]["targetId"])

    async def close_up(self, page: Page) -> None:
        """A page is about to load."""

    async def _decide(self, event: dict[str, Any]) -> None:
        url, request_id = event["request"]["url"], event["requestId"]
        is_first = "redirectedRequestId" not in event
        if await self.gate.refusal(url, kind_of(event), event.get("frameId"), is_first=is_first):
            with suppress(Exception):  # its page was closed meanwhile
                await self.session.send(
                    "Fetch.failRequest", {"requestId": request_id, "errorReason": "BlockedByClient"}
                )
            return
        try:
            await self.session.send("Fetch.continueRequest", {"requestId": request_id})
        except Exception as error:
            if "InterceptionId" in str(error):  # gone with its page
                await self.gate.withdrawn()


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

    async def close_up(self, page: Page) -> None:
        """A page is about to load: be asked before all handlers that it has."""
        await page.unroute("**", self._decide)
        await page.route("**", self._decide)

    async def _decide(self, route: Route, request: Request) -> None:
        if self._aborts is not None and await _maybe(self._aborts(request)):
            await route.fallback()  # scrapy-playwright asks, and aborts it
            return
        if await self.gate.refusal(request.url, request.resource_type, _main_page(request)):
            await route.abort("blockedbyclient")
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
        if await self.gate.refusal(route.url, "websocket"):
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
