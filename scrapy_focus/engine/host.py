"""What our components may ask of the scheduler of a crawl: all that they know of each other.

Scrapy makes each of them by itself, from its settings, and with another scheduler they do nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_focus.core.crawl import Status
    from scrapy_focus.core.policy import Policy, PolicyTable, WatchedPage
    from scrapy_focus.core.types import Outcome, State
    from scrapy_focus.engine.apis import Apis
    from scrapy_focus.engine.inflight import Entry, InFlight
    from scrapy_focus.engine.known import KnownLinks
    from scrapy_focus.web.nearcopies import Ignored

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D")


class Host(Protocol):
    """The scheduler, as our middlewares, dupefilter, pipeline and extension see it."""

    inflight: InFlight
    seeds: set[str]
    apis: Apis | None  # by which pages are read that else a browser would show; None where none is rendered
    when_earned: list[Callable[[Entry, Outcome, float], None]]  # told of each outcome, with what it earned so far
    listeners: list[Callable[[Entry, Outcome], None]]  # told of each outcome before the crawl is, its reward not known
    when_seen: list[Callable[[Entry, Outcome], None]]  # the same, when its new links have their places
    when_closing: list[Callable[[], None]]  # called once, when all came back, while the frontier can still be read

    @property
    def policy(self) -> type[Policy]:
        """The class of who decides."""

    @property
    def noun(self) -> str:
        """What several things that are looked for are called: ``"files"``."""

    @property
    def progress(self) -> str:
        """How to show progress: ``"auto"``, ``"panel"``, ``"log"`` or ``"off"``."""

    @property
    def is_interrupted(self) -> bool:
        """Whether the process was asked to stop, so that only what is in flight is waited for."""

    @property
    def is_resumable(self) -> bool:
        """Whether the crawl is kept in a folder, where the next run resumes it."""

    def is_wanted(self, mime: str, url: str = "") -> bool:
        """Whether bodies of a MIME type, from this URL, are read."""

    def status(self, *, best: int = 0) -> Status:
        """Return how the crawl stands; ``best``: with so many of the best arms, and what is expected to be left."""

    def watched(self, most: int) -> list[WatchedPage]:
        """Return up to so many of the pages that come back, those with most visits first."""

    def tables(self) -> list[PolicyTable]:
        """Return the tables that the policy shows of itself."""

    def knows(self, keys: Sequence[int]) -> list[State]:
        """Return what the crawl knows about each key."""

    def count(self, name: str, n: int = 1) -> None:
        """Add to the count that is written to the stats as ``focus/<name>``."""

    def note_yielded(self, pick_id: int, request: Request) -> None:
        """The page of a pick gave a request that no spider middleware held back."""

    def drops(self, request: Request, response: Response | None) -> bool:
        """Whether a request from the page of a response goes no further, as its URL was requested before."""

    def known_on(self, response: Response) -> KnownLinks | None:
        """Return what is known of the links of a page, ``None`` where nobody knows."""

    async def is_first(self, request: Request) -> bool:
        """Wait until it is known whether another machine asks for the page to which a request was redirected: then it
        is not to go out.
        """

    async def sent(self, request: Request | None) -> bool:
        """Use one request of the budget for a request on its way out; ``False``: it must not go out.

        ``None`` stands for one that Scrapy does not know: a browser's. Waits where another machine has to allow it.
        """

    def ask(self, request: Request) -> None:
        """Let a request on its way out ask whether its page has changed, where it was seen before."""

    def is_spent(self) -> bool:
        """Whether nothing more may be asked for: a budget is used up, or the crawl is over."""

    def loads_elsewhere(self, kind: str) -> bool:
        """Whether pages in a browser may load a type of resource from hosts that the spider does not crawl."""

    def received(self, n_bytes: int | None) -> None:
        """An answer came, of so many bytes; ``None``: its request never left, as no connection could be made."""

    def put_off(self, request: Request, seconds: float, why: str) -> None:
        """Ask the host of a request for nothing for so long, but no longer than ``FOCUS_LONGEST_WAIT``."""

    def owe(self, request: Request, n_requests: int) -> None:
        """A browser sent further requests for the page of a request: its host is left alone for as many delays."""

    def is_put_off(self, request: Request) -> bool:
        """Whether the host of a request is to be asked for nothing now."""

    def slow_down(self, request: Request, delay: float) -> None:
        """Let so many seconds pass between requests to the host of this one, at most ``FOCUS_LONGEST_WAIT``."""

    @property
    def put_off_hosts(self) -> tuple[int, float]:
        """How many hosts are put off, and in how many seconds the first of them is asked again."""

    def recall(self, request: Request) -> Response | None:
        """Return the answer to a request that had arrived when an earlier run was killed, if it did."""

    def ignored_parameters(self) -> list[Ignored]:
        """Return which parameters of URLs do not change the page, by host."""

    def flush_stats(self) -> None:
        """Write the counts of the crawl to the stats of Scrapy."""

    def guard(self, what: str, default: D, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | D:
        """Call something; what it raises is logged, counted as ``focus/error/<what>``, and answered by a default."""


def host_of(crawler: Crawler) -> Host | None:
    """Return the scheduler of a running crawl if it is one of ours.

    It says so itself: Scrapy's metaclass makes ``isinstance`` take everything with the methods of a scheduler for one.
    """
    try:
        engine = crawler.engine
    except RuntimeError:  # no crawl runs: in a test of a middleware, say
        return None
    return getattr(getattr(engine, "scheduler", None), "focus_host", None)
