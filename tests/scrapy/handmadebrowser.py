"""A browser for machines without one: the pages contain what it shows in addition to the plain pages."""

from __future__ import annotations

import asyncio
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_focus.engine.browser import found, keeper, reading
from scrapy_focus.engine.browser.visit import INIT, MadeFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    import pytest
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

#: Without a reactor, Scrapy's handlers have the priority of a project's.
HANDLERS = {"DOWNLOAD_HANDLERS": dict.fromkeys(found.SCHEMES, found.OWN_HANDLER)}
#: A script in a page, in place of ``%s``, which only a browser shows.
SCRIPT = "<script>//%s//</script>"
_SHOWN = re.compile(rb"<script>//(.*?)//</script>")


class HandmadeBrowser:
    """Shows what scripts would show, and sends one further request for each page."""

    started: ClassVar[int] = 0
    fails: ClassVar[Callable[[str], Exception | None]] = staticmethod(lambda url: None)
    hangs: ClassVar[Callable[[str], bool]] = staticmethod(lambda url: False)
    cuts: ClassVar[Callable[[str], bool]] = staticmethod(lambda url: False)
    grows: ClassVar[Callable[[str], bool]] = staticmethod(lambda url: False)
    starts: ClassVar[bool] = True
    closed: ClassVar[list[HandmadeBrowser]] = []
    files: ClassVar[tuple[MadeFile, ...]] = ()
    out: ClassVar[int] = 0
    most: ClassVar[int] = 0

    def __init__(self, crawler: Crawler) -> None:
        self.plain = build_from_crawler(load_object(crawler.settings["DOWNLOAD_HANDLERS_BASE"]["https"]), crawler)
        self.config = SimpleNamespace(target_closed_max_retries=3)
        self.shown = 0  # pages
        self.is_closed = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def _maybe_launch_in_thread(self) -> None:
        """Start what starts browsers."""

    def _maybe_future_from_coro(self, work: Any) -> Any:
        return work

    async def _maybe_launch_browser(self) -> None:
        if not self.starts:
            raise OSError("libnss3.so is not there")
        type(self).started += 1
        self.browser = SimpleNamespace(is_connected=lambda: not self.is_closed)

    async def download_request(self, request: Request) -> Response:
        visit = request.meta[INIT]
        if (error := self.fails(request.url)) is not None:
            raise error
        if self.hangs(request.url):
            await asyncio.Event().wait()
        of_all = type(self)
        of_all.out += 1
        of_all.most = max(of_all.most, of_all.out)
        response: Response = await self.plain.download_request(request)
        of_all.out -= 1
        visit.requests += 1
        visit.is_short = self.cuts(request.url)
        visit.is_growing = self.grows(request.url)
        visit.files.extend(self.files)
        self.shown += 1
        return response.replace(body=_SHOWN.sub(rb"\1", response.body), flags=["playwright"])

    async def close(self) -> None:
        self.is_closed = True
        self.closed.append(self)
        await self.plain.close()


class NoMethod:
    """In place of scrapy-playwright's PageMethod."""

    def __init__(self, *args: Any) -> None:
        self.args = args


class TargetClosedError(Exception):
    """As Playwright's, of a browser that died."""


def put_in(monkeypatch: pytest.MonkeyPatch, **attributes: Any) -> type[HandmadeBrowser]:
    """Give all crawls of a test this browser; return it, with other attributes."""
    browser = type("Browser", (HandmadeBrowser,), {"closed": [], **attributes})
    monkeypatch.setattr(keeper, "HANDLER", browser)
    monkeypatch.setattr(reading, "_METHOD", NoMethod)
    monkeypatch.setattr(found, "find_browser", lambda _: found.Found("a browser of the tests"))
    return browser
