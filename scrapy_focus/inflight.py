"""What is known of each pick that the engine has, from the moment it is handed out until its outcome.

No hook of Scrapy sees every way in which a request can end: an exception in ``process_response`` and a redirect that a
signal handler vetoes show up nowhere. But the engine takes every request out of ``inprogress`` at the very end, after
callbacks, items and errbacks. So the hooks only note facts, and an outcome is drawn from them when the engine has let
go of the request: exactly once, on every path. The redirect or retry of a request is the same pick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Response, TextResponse
from scrapy.spidermiddlewares.httperror import HttpError

from scrapy_focus.config import PICK
from scrapy_focus.core.mime import parse_mime
from scrapy_focus.core.types import Link, Outcome, Pick

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler
    from twisted.python.failure import Failure

    from scrapy_focus.scheduler import FocusScheduler


class BudgetExhausted(IgnoreRequest):
    """Raised in the downloader middleware for a request that the budget does not allow."""


class MimeStop(IgnoreRequest):
    """Raised in the downloader middleware for a body that nobody wants."""


class Probed(IgnoreRequest):
    """Raised in the downloader middleware when a HEAD told what was asked: there is no page for the spider."""

    def __init__(self, response: Response) -> None:
        super().__init__(f"HEAD of {response.url}: {response.status}")
        self.response = response


class ResponsePage:
    """A :class:`~scrapy_focus.core.types.Page` that reads a response of Scrapy when asked."""

    __slots__ = ("_response",)

    def __init__(self, response: Response) -> None:
        self._response = response

    @property
    def url(self) -> str:
        return self._response.url

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return {str(name): value for name, value in self._response.headers.to_unicode_dict().items()}

    @property
    def text(self) -> str:
        return self._response.text if isinstance(self._response, TextResponse) else ""


class Entry:
    """One pick with the engine, and what is known of it so far."""

    __slots__ = (
        "failure", "holds_slot", "items", "links", "pick", "request", "response", "sent", "since", "slot",
        "spider_error", "stopped", "successor",
    )  # fmt: skip

    def __init__(self, pick: Pick, since: float) -> None:
        self.pick = pick
        self.since = since
        self.request: Request | None = None  # None while a redirect or retry of it waits to be handed out
        self.slot = ""
        self.holds_slot = False
        self.sent = False  # whether any request went out for it
        self.response: Response | None = None
        self.failure: BaseException | None = None
        self.spider_error = False
        self.items = 0.0
        self.stopped = False  # whether its body is not wanted for its MIME type
        self.successor = ""  # why it, or its last redirect, went no further
        self.links: list[Link] = []

    @property
    def returned(self) -> bool:
        """Whether the downloader is done with it, so that a request that carries its id comes from the spider."""
        return self.response is not None or self.failure is not None

    def label(self) -> str:
        """Return how it ended, as counted in ``focus/outcome/...``."""
        failure = self.failure
        if isinstance(failure, Probed):
            return "probed"
        if isinstance(failure, BudgetExhausted):
            return "budget"
        if self.stopped or isinstance(failure, (MimeStop, StopDownload)):
            return "mime_stop"
        if self.spider_error:
            return "spider_error"
        if isinstance(failure, HttpError) or (self.response is not None and self.response.status >= 400):
            return "http_error"
        if isinstance(failure, IgnoreRequest):
            return "ignored"
        if failure is not None:
            return "failure"
        if self.response is not None:
            return "ok"
        return self.successor or "filtered"

    def outcome(self, now: float) -> Outcome:
        """Draw the outcome from what is known; the reward is the goal's business."""
        label, pick = self.label(), self.pick
        response = self.failure.response if isinstance(self.failure, (Probed, HttpError)) else self.response
        error = "" if label in ("ok", "probed") else label
        if label == "failure":
            error = f"failure: {type(self.failure).__name__}"
        if response is None:
            return Outcome(pick=pick, error=error, items=self.items, seconds=now - self.since)
        if label != "probed" and pick.method == "HEAD":
            pick = pick._replace(method="GET")  # a cache answered with the page itself
        mime = (response.headers.get("Content-Type") or b"").decode("latin-1")
        announced = response.headers.get("Content-Length") or b""
        return Outcome(
            pick=pick, status=response.status, mime=parse_mime(mime), error=error, items=self.items,
            size=len(response.body) or (int(announced) if announced.isdigit() else 0), seconds=now - self.since,
            page=ResponsePage(response),
        )  # fmt: skip


class Errback:
    """Stands in for the errback of a request in flight: notes the failure, and does what the original would.

    Without an original it returns the failure, which Scrapy treats as if there were no errback.
    """

    def __init__(self, entry: Entry, original: Callable[[Failure], Any] | None) -> None:
        self.entry = entry
        self.original = original
        self.__name__ = getattr(original, "__name__", "errback")

    def __call__(self, failure: Failure) -> Any:
        self.entry.failure = failure.value
        if isinstance(failure.value, (Probed, BudgetExhausted)):
            return None  # nothing that happened to a page of the spider's
        return failure if self.original is None else self.original(failure)


def scheduler_of(crawler: Crawler) -> FocusScheduler | None:
    """Return the scheduler of a running crawl if it is one of ours."""
    from scrapy_focus.scheduler import FocusScheduler

    scheduler = crawler.engine.scheduler
    # For isinstance, anything with the methods of a scheduler is one: Scrapy's metaclass says so.
    return cast("FocusScheduler", scheduler) if FocusScheduler in type(scheduler).__mro__ else None


def entry_id(carrier: Any) -> int | None:
    """Return the id of the pick that a request carries, or the request of a response or failure."""
    request = getattr(carrier, "request", None) or carrier
    pick_id: int | None = getattr(request, "meta", {}).get(PICK)
    return pick_id
