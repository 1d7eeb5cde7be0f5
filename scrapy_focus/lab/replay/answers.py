"""What the network and Scrapy would have done with each pick, computed from a recording.

Redirects are followed unless their URL was seen before, failures are retried, unwanted bodies are stopped, known
links are dropped: as in ``scheduler.py``, ``inflight.py`` and ``downloadermiddlewares.py`` with Scrapy's default
middlewares. The tests compare both, request by request.

If pages have a second copy, a pick may be rendered: its answer is what a browser showed, with the requests of the
browser. Scripts and style sheets that several pages share are requested once.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np

from scrapy_focus.core.types import Link, Outcome, State
from scrapy_focus.lab.recordings.format import RecordedPage
from scrapy_focus.lab.recordings.html import REDIRECTING, redirect_of
from scrapy_focus.lab.recordings.versions import NOT_YET
from scrapy_focus.lab.replay.visits import Known
from scrapy_focus.web.mime import matches
from scrapy_focus.web.redirect_rules import REDIRECTS, RedirectRules, is_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.types import Pick
    from scrapy_focus.lab.recordings.format import RecordedSite
    from scrapy_focus.lab.recordings.renderings import Shown
    from scrapy_focus.web.redirect_rules import Guess

#: Which pages a browser shows, as ``FOCUS_RENDER``: none, those that the policy requests, or all with scripts.
Render: TypeAlias = Literal["never", "learn", "always"]
#: Statuses that Scrapy retries, its ``RETRY_HTTP_CODES``.
RETRIED = frozenset({500, 502, 503, 504, 522, 524, 408, 429})
_UNSENT = ("failure: CannotResolveHostError", "failure: DownloadConnectionRefusedError")  # nothing left this machine
_FINAL = ("BadGzipFile", "DownloadCancelledError", "UnsupportedURLSchemeError", "error")  # that Scrapy does not retry
_REDIRECTS = 20  # REDIRECT_MAX_TIMES
_VISITED = b"visited"  # payload of the links of pages that were fetched before
_NOT_FOUND, _NOT_MODIFIED = 404, 304
_NOWHERE = np.zeros(0, np.int64)
_SMALL = 64 * 1024  # bytes: smaller bodies are not stopped


class Items(Protocol):
    """Predicts how many items a spider would make of each page of a site, in one crawl."""

    def __call__(self, site: RecordedSite) -> Callable[[int], float]:
        """Start a crawl, and return a function from the number of an answer to its number of items: of a URL's first
        answer, a later one, or a rendering.
        """


def new_files(site: RecordedSite) -> Callable[[int], float]:
    """One item for each file with new content, and none for pages: what the spider ``datasets`` stores."""
    stored: set[int] = set()

    def items(page: int) -> float:
        digest = int(site.answers.digest[page])
        if "html" in site.answers.mimes[page] or digest in stored:
            return 0.0
        if digest:
            stored.add(digest)
        return 1.0

    return items


class Flight:
    """A pick whose requests are on their way."""

    __slots__ = (
        "all_received",
        "also",
        "answer",
        "besides",
        "changed",
        "coming",
        "error",
        "final",
        "guess",
        "hops",
        "is_plain",
        "is_short",
        "is_told",
        "leads_to",
        "out",
        "page",
        "pick",
        "received",
        "requests",
        "shown",
        "since",
        "tries",
    )

    def __init__(self, pick: Pick, since: float) -> None:
        self.pick = pick
        self.since = since
        self.page = pick.key  # the URL of the next request; -1: none
        self.out = -1  # the URL of the current request; -1: none
        self.requests = 0  # requests sent
        self.hops = 0  # redirects
        self.tries = 0  # number of retries
        self.received = 0  # bytes of the last answer
        self.all_received = 0  # bytes of all answers
        self.final = -1  # the URL that answered in the end; -1: none
        self.answer = -1  # the number of its answer, at that time; -1: none
        self.error = ""
        self.guess: Guess | None = None  # the foreseen redirect that its request goes to
        self.also: list[int] = []  # the URLs that it was redirected to
        self.leads_to = -1  # its last redirect, to a known URL
        self.changed: bool | None = None  # whether the content changed since its last visit
        self.is_told = False  # whether that was answered with 304
        self.shown = -1  # the URL whose page a browser has
        self.besides: list[int] = []  # bytes of the answers that it has yet to request for that
        self.is_plain = False  # whether a browser failed with its page, so that the plain copy is fetched
        self.is_short = False  # whether the budget ended before all was requested
        self.coming: list[int] = []  # missing ones among these

    @property
    def is_head(self) -> bool:
        """Whether only its headers are requested."""
        return self.pick.method == "HEAD"

    @property
    def is_rendering(self) -> bool:
        """Whether its page was fetched before, and is to be rendered."""
        return self.pick.method == "RENDER"

    def end(self, error: str = "", *, final: int = -1, answer: int = -1) -> None:
        """Send nothing more for it."""
        self.page = -1
        self.error = error
        self.final = final
        self.answer = answer


class Answers:
    """Answers picks from a recording, for one crawl.

    Parameters
    ----------
    site
        The recording. The key of a link is the number of its URL.
    ignored, items, retries, blocked
        See :func:`~scrapy_focus.lab.replay.simulate.simulate`.
    wanted
        MIME types that are never stopped.
    reads_page, wants_known
        As of the :class:`~scrapy_focus.Policy` of the crawl.
    knows
        Returns the states of keys, if pages are revisited.
    render
        Which pages a browser shows, where the recording has both copies.
    foresees
        Whether redirects are foreseen.
    """

    def __init__(
        self,
        site: RecordedSite,
        *,
        ignored: Collection[str],
        items: Items,
        retries: int,
        blocked: Collection[str],
        wanted: Collection[str],
        reads_page: bool,
        wants_known: bool,
        knows: Callable[[Sequence[int]], Sequence[State]] | None = None,
        render: Render = "learn",
        foresees: bool = False,
    ) -> None:
        self.site = site
        self.render = render
        self.retries = retries
        self.blocked = blocked
        self.wanted = wanted
        self.reads_page = reads_page
        self._rules = RedirectRules() if foresees else None
        self._items = items(site)
        self._columns = _Columns(site)
        self._blocked: dict[str, bool] = {}  # by MIME type
        self._ignored = site.with_extension(ignored)
        self._had = np.zeros(site.n_urls, np.bool_)  # URLs known to the dupefilter
        self._passing = ~self._ignored  # links to these are passed to the policy
        self._wants_known = wants_known
        self._knows = knows
        self._known = None if knows is None else Known(site)
        self._kept: set[int] = set()  # scripts and style sheets already requested
        self._gave: dict[int, float] = {}  # items of plain pages that may be rendered
        self._plain: set[int] = set()  # keys of picks whose plain pages were fetched, likewise

    def roots(self) -> list[Link]:
        """Return the links that a crawl starts with."""
        return [Link(self.site.urls[page], page, self.site.hosts[page]) for page in self.site.roots]

    def start(self, links: Sequence[Link]) -> Sequence[Link]:
        """Register links that a crawl starts with, and return them."""
        self._note([link.key for link in links])
        return links

    def foresee(self, flight: Flight) -> None:
        """Let the first request of a pick go to the target of its redirect, or end it if that was already seen.

        A recording shows whether a known target is right, so the pick ends only if it is. A live crawl ends it in any
        case, and follows its link when the rule ends.
        """
        site, key = self.site, flight.pick.key
        guess = self._rules.guess(site.urls[key]) if self._rules is not None and flight.pick.method == "GET" else None
        target = -1 if guess is None else site.ids.get(guess.url, -1)
        if target < 0 or target == key or not self._columns.recorded[target]:
            return
        if not self._had[target]:
            flight.guess = guess
            self._follow(flight, target)
        elif self._columns.redirect[key] == target:
            flight.end("redirect_seen")
            flight.leads_to = target

    def _unless_foreseen(self, flight: Flight) -> bool:
        """Whether the target of a foreseen redirect failed, so that the original URL is requested next."""
        if flight.guess is None or self._rules is None:
            return False
        self._rules.miss(flight.guess)
        flight.guess = None
        flight.page = flight.pick.key
        return True

    def next_request(self, flight: Flight) -> int:
        """Return the URL of a pick's next request, by its number; -1 if its outcome is known."""
        if flight.page >= 0 and flight.guess is not None and self.site.errors.get(flight.page) == "ignored":
            self._unless_foreseen(flight)
        if flight.page >= 0 and self.site.errors.get(flight.page) == "ignored":
            flight.end("ignored")
        return flight.page

    def receive(self, flight: Flight, now: float | None = None) -> int | None:
        """Process the answer of the current request: decide how its pick continues, and return the bytes received.

        ``None``: no connection could be made, and the request is not counted. ``now`` is the time, in seconds since
        the epoch, if URLs have several versions; without it, each gives its first answer.
        """
        site, page, columns = self.site, flight.out, self._columns
        answer = page if now is None else site.at(page, now)
        if answer == NOT_YET:
            flight.end(final=page, answer=NOT_YET)
            return 0
        if not columns.recorded[answer]:
            flight.end("unrecorded")
            return 0
        if self._is_rendered(flight) and answer == page:
            if (shown := site.renderings.get(page)) is not None:
                return self._show(flight, shown)
            if page in site.unrendered:
                flight.end("unrecorded")
                return 0
        if not columns.status[answer]:
            return self._fail(flight, site.answers.errors.get(answer, "failure: unknown"))
        if self._rules is not None and not flight.is_head and self._is_wrong(flight, answer, self._rules):
            return columns.header_size[answer] + columns.size[answer]
        return self._respond(flight, answer)

    def _respond(self, flight: Flight, answer: int) -> int:
        """Process a response: follow it, retry it, or stop there; return the bytes received."""
        columns = self._columns
        status, size, redirect = columns.status[answer], columns.size[answer], columns.redirect[answer]
        blocked = not flight.is_head and self._is_blocked(answer)
        if blocked and size >= _SMALL:
            flight.end("mime_stop")
            return 0
        if redirect >= 0 and not (flight.is_head and status not in REDIRECTING):  # a HEAD sees no refresh
            self._redirect(flight, redirect)
        elif status in REDIRECTING and self._leads_elsewhere(flight.out, answer):
            flight.end("ignored" if flight.is_head else "filtered")
        elif status in RETRIED and flight.tries < self.retries:
            flight.tries += 1
        elif blocked:
            flight.end("mime_stop")
        else:
            flight.end(final=flight.out, answer=answer)
            self._compare(flight, answer)
        received = columns.header_size[answer]
        if not flight.is_head and not flight.is_told:
            received += size
        return received

    def _is_wrong(self, flight: Flight, answer: int, rules: RedirectRules) -> bool:
        """Whether an answer shows that a redirect was foreseen wrongly; learns from it."""
        columns, urls = self._columns, self.site.urls
        if columns.size[answer] >= _SMALL and self._is_blocked(answer):  # stopped
            return False
        status, target = columns.status[answer], columns.redirect[answer]
        leads_to = target if status in REDIRECTS else -1
        if is_failure(status) or leads_to == flight.pick.key:
            if self._unless_foreseen(flight):
                return True
        elif flight.guess is not None and 200 <= status < 300:
            rules.confirm(flight.guess)
        rules.observe(urls[flight.out], status, "" if leads_to < 0 else urls[leads_to])
        return False

    def _leads_elsewhere(self, page: int, answer: int) -> bool:
        """Whether an answer redirects to another site."""
        site = self.site
        target = redirect_of(site.urls[page], self._columns.status[answer], site.headers(answer))
        return target.startswith("http")

    def _compare(self, flight: Flight, answer: int) -> None:
        """Record whether a page has changed since its last visit, and whether the server could report it."""
        if self._known is None or flight.pick.method != "GET":
            return
        if 200 <= self._columns.status[answer] < 300:
            flight.changed = self._known.changed(flight.pick.key, answer)
            flight.is_told = flight.changed is False and self._known.can_tell(answer)

    def outcome(self, flight: Flight, now: float) -> Outcome:
        """Return the outcome of a pick that sends nothing more."""
        bare = self._without_answer(flight, now)
        pick = bare.pick
        if flight.final < 0:
            return bare._replace(error=flight.error)
        if flight.answer == NOT_YET:
            return bare._replace(
                status=_NOT_FOUND,
                error="" if flight.is_head else "http_error",
                once=not flight.is_head and self._is_gone(pick, _NOT_FOUND),
            )
        outcome = self._with_answer(bare, flight)
        if outcome.scripted:
            self._plain.add(pick.key)
        if self._known is None or pick.method != "GET":
            return outcome
        return self._as_visit(outcome, flight, self._known)

    def _without_answer(self, flight: Flight, now: float) -> Outcome:
        """Return the fields that every outcome has: its pick, the requests and the bytes received."""
        pick = flight.pick
        if flight.is_plain or (flight.is_rendering and self.render == "never"):
            pick = pick._replace(method="GET")
        return Outcome(
            pick=pick, seconds=now - flight.since, also=tuple(flight.also),
            payload=None if self._knows is None else _VISITED, requests=flight.requests, received=flight.all_received,
        )  # fmt: skip

    def _as_visit(self, outcome: Outcome, flight: Flight, known: Known) -> Outcome:
        """Return an outcome with the findings of a revisit: how long the page stays unchanged, or that it is gone."""
        status = self._columns.status[flight.answer]
        if flight.is_told:
            outcome = outcome._replace(status=_NOT_MODIFIED, size=0, page=None)
        return outcome._replace(
            max_age=known.max_age(flight.answer) if 200 <= status < 300 else None,
            once=self._is_gone(outcome.pick, status),
        )

    def _with_answer(self, outcome: Outcome, flight: Flight) -> Outcome:
        """Return an outcome with the last response."""
        answer, columns = flight.answer, self._columns
        status = columns.status[answer]
        well = 200 <= status < 300
        items = 0.0
        if well and not flight.is_head and flight.changed is not False:
            items = self._items_of(flight)
        return outcome._replace(
            status=status,
            mime=columns.mimes[answer],
            size=columns.size[answer],
            items=items,
            error="" if well or flight.is_head else "http_error",
            changed=flight.changed,
            page=RecordedPage(self.site, flight.final, answer),
            scripted=self._may_be_rendered(flight) and well,
        )

    def _is_gone(self, pick: Pick, status: int) -> bool:
        """Whether a page of an earlier visit is gone."""
        return self._known is not None and self._known.is_gone(pick.key, status)

    def links(self, flight: Flight) -> list[Link]:
        """Return the links that the spider and the dupefilter would let through, in document order."""
        pages, places = self.leads_to(flight)
        if not pages:
            return []
        site, depth = self.site, flight.pick.depth + 1
        urls, hosts = site.urls.some(pages), site.hosts.some(pages)
        if not self.reads_page:
            return [Link(url, page, host, depth) for url, page, host in zip(urls, pages, hosts, strict=True)]
        texts, paths = site.texts(places), site.tag_paths_of(places.tolist())
        return [
            Link(url, page, host, depth, anchor, path, context)
            for url, page, host, path, (anchor, context) in zip(urls, pages, hosts, paths, texts, strict=True)
        ]

    def leads_to(self, flight: Flight) -> tuple[list[int], NDArray[np.int64]]:
        """Return the numbers of the URLs that these links lead to, and the places of the links in the columns."""
        if flight.changed is False:  # the spider is not called
            return [], _NOWHERE
        places = self.site.links(flight.answer)
        targets = self.site.targets[places]
        fresh = self._passing.take(targets).nonzero()[0]
        pages: list[int] = targets[fresh].tolist()
        if pages:
            self._note(pages)
        return pages, fresh + places.start

    def _is_rendered(self, flight: Flight) -> bool:
        """Whether a browser asks for the page of a pick."""
        if flight.is_plain:
            return False
        if self.render == "always":
            return not flight.is_head
        return flight.is_rendering and self.render == "learn"

    def _may_be_rendered(self, flight: Flight) -> bool:
        """Whether the page of a pick has scripts, and no browser has rendered it yet."""
        page = flight.final
        is_plain = flight.pick.method == "GET" and flight.answer == page and not flight.is_plain
        return is_plain and self.render == "learn" and page in self.site.renderings

    def _show(self, flight: Flight, shown: Shown) -> int:
        """Pass the page to a browser: record its further requests, and return the bytes of the page itself."""
        site, page = self.site, flight.out
        flight.shown = page
        if site.answers.status[shown.answer]:
            flight.end(final=page, answer=shown.answer)
        elif site.answers.errors[shown.answer] == "ignored":
            flight.end("ignored")
        elif flight.is_rendering and flight.pick.key in self._plain:
            flight.end("browser")
        else:
            flight.is_plain = True
        kept = [(asset, size) for asset, size in shown.assets if asset not in self._kept]
        self._kept.update(asset for asset, _ in kept)
        itself = shown.received
        if shown.requests:
            itself = min(itself, int(site.answers.header_size[page]) + int(site.answers.size[page]))
            flight.besides = [shown.received - itself] + [0] * (shown.requests - 1)
        flight.besides += [size for _, size in kept]
        return itself

    def _items_of(self, flight: Flight) -> float:
        """Return the items of a page, without those that its plain copy gave in this crawl."""
        items = self._items(flight.answer)
        if flight.is_rendering:
            return max(0.0, items - self._gave.get(flight.final, 0.0))
        if flight.final in self.site.renderings:
            self._gave[flight.final] = items
        return items

    def forget(self, links: Sequence[Link]) -> None:
        """Record that the policy left these links unchanged: it is to receive the next ones to their URLs."""
        pages = [link.key for link in links]
        self._had[pages] = False
        if not self._wants_known:
            self._passing[pages] = ~self._ignored[pages]

    def _fail(self, flight: Flight, error: str) -> int | None:
        if self._unless_foreseen(flight):
            pass
        elif flight.tries < self.retries and _is_retried(error):
            flight.tries += 1
        else:
            flight.end(error)
        return None if error in _UNSENT else 0

    def _redirect(self, flight: Flight, target: int) -> None:
        flight.hops += 1
        if flight.hops > _REDIRECTS:
            flight.end("ignored")
        elif self._is_rendered(flight):  # the browser follows it
            flight.page = target
        elif not flight.is_head and self._had[target] and not self._leads_back(flight, target):
            flight.end("redirect_seen")
            flight.leads_to = target
        else:
            self._follow(flight, target)

    def _follow(self, flight: Flight, target: int) -> None:
        flight.page = target
        if not flight.is_head:
            self._note([target])
            flight.also.append(target)

    def _leads_back(self, flight: Flight, target: int) -> bool:
        """Whether a known page redirects to another known page, and is not queued by itself."""
        return bool(flight.pick.payload) and self._knows is not None and self._knows([target]) == [State.FETCHED]

    def _note(self, pages: list[int]) -> None:
        self._had[pages] = True
        if not self._wants_known:
            self._passing[pages] = False

    def _is_blocked(self, answer: int) -> bool:
        mime = self._columns.mimes[answer]
        is_blocked = self._blocked.get(mime)
        if is_blocked is None:
            is_blocked = self._blocked[mime] = matches(mime, self.blocked) and not matches(mime, self.wanted)
        return is_blocked


class _Columns:
    """Columns of answers that every request needs; indexing a memory view is faster than indexing an array."""

    __slots__ = ("header_size", "mimes", "recorded", "redirect", "size", "status")

    def __init__(self, site: RecordedSite) -> None:
        columns = site.answers
        self.status = columns.status.data
        self.recorded = columns.recorded.data
        self.size = columns.size.data
        self.header_size = columns.header_size.data
        self.redirect = columns.redirect.data
        self.mimes = columns.mimes


def _is_retried(error: str) -> bool:
    """Whether Scrapy retries after a failure: not after one in its own code."""
    name = error.removeprefix("failure: ")
    known = getattr(builtins, name, None)
    return issubclass(known, OSError) if isinstance(known, type) else name not in _FINAL
