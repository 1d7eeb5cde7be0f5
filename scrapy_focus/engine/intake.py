"""Drops known and refused requests, and makes links of the others."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

from scrapy.utils.httpobj import urlparse_cached

from scrapy_focus.core.placer import PART
from scrapy_focus.core.printable import PARAGRAPH, printable_logger, reason_of
from scrapy_focus.core.types import Link
from scrapy_focus.engine.marks import PICK
from scrapy_focus.engine.redirects import Redirects
from scrapy_focus.engine.requests import Unsendable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scrapy import Request

    from scrapy_focus.core.types import Outcome
    from scrapy_focus.engine.feature import Hook
    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.inflight import Entry

logger = printable_logger(__name__)

_AT_ONCE = 100  # links taken back in one batch
_SHOWN_ERRORS = 3  # later ones are only counted


class Intake:
    """Makes links of requests. Links of a page are reported with its outcome; others are placed before each choice.

    Parameters
    ----------
    host
        The host of the crawl.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self.redirects = Redirects(host)
        self.spilled: deque[Request] = deque()  # accepted after an internal error, outside the policy
        self._loose: list[tuple[Link, Request, bool]] = []  # links of no page, not packed yet
        self._notes_priority = host.priorities is None

    @property
    def is_waiting(self) -> bool:
        """Whether the policy still has to receive links that belong to no page in flight."""
        return bool(self._loose or self.host.returned)

    @property
    def has_loose(self) -> bool:
        """Whether links of no page still have to be placed."""
        return bool(self._loose)

    def take(self, request: Request) -> bool:
        """Make a link of a request, or let a pick continue with it; ``False`` if it is dropped."""
        host = self.host
        pick_id = request.meta.pop(PICK, None)
        entry = None if pick_id is None else host.inflight.entries.get(pick_id)
        if entry is not None:
            entry.yielded.discard(hash(request.url))
            entry.quiet = 0
            if not entry.returned:
                return self._continue(entry, request)
        return self._take_link(request, entry)

    def _continue(self, entry: Entry, request: Request) -> bool:
        """Let a pick continue with a redirect or retry."""
        seen = not self.redirects.returns(entry, request) and self._is_seen(request, entry)
        return self.redirects.follow(entry, request, seen=seen)

    def _take_link(self, request: Request, entry: Entry | None) -> bool:
        """Make a link of a request; ``entry``: of its page, if the request names it."""
        host = self.host
        source = entry or host.inflight.page_of(request)
        page = source if source is not None and source.returned else None
        if page is not None and host.seen.passes(request, page):
            return False
        if self._is_refused(host.features.refuse, request, page):
            return False
        seen = self._is_seen(request, entry)
        if source is None and self._has_begun(request):
            return False
        if seen and not host.seen.is_wanted(request):
            if source is not None:
                host.seen.note(request, source)
            return False
        if not seen and self._is_refused(host.features.refuse_new, request, page):
            host.seen.forget([request.url])
            return False
        self._note_priority(request)
        if source is None:
            return self._keep_loose(request, seen)
        return self._add(request, source, seen)

    def place(self) -> None:
        """Place the next links of no page."""
        if self._loose:
            self.add([*self._packed()])
            if self._loose:
                self.host.ask_again()

    def add(self, links: Sequence[Link], source: Outcome | None = None) -> None:
        """Let the crawl place links."""
        self.host.crawl.add(links, source)
        self.host.seen.forget(self.host.links.placed(links))

    def _is_refused(self, hooks: list[Hook], request: Request, page: Entry | None) -> bool:
        for hook in hooks:
            try:
                if hook.call(request, page):
                    return True
            except Exception as error:
                self.host.note_error(hook.name, error)
        return False

    def _is_seen(self, request: Request, entry: Entry | None) -> bool:
        seen = self.host.seen.has(request, entry)
        if seen and self.host.resumed and request.meta.get("is_start_request"):
            return not self.host.links.is_recalled(request)
        return seen

    def _has_begun(self, request: Request) -> bool:
        """Whether this is a start request that an earlier run of the job has; notes the hosts of start requests."""
        if request.meta.get("is_start_request"):
            self.host.seeds.add(urlparse_cached(request).hostname or "")
        return self.host.job is not None and self.host.links.is_stored_start(request)

    def _keep_loose(self, request: Request, seen: bool) -> bool:
        """Keep a request of no page: the caller may modify it until it is placed."""
        self.host.count("link/loose")
        self._make_loose(request, seen)
        return not seen

    def _make_loose(self, request: Request, seen: bool) -> None:
        self._loose.append((self.host.links.make(request, seen=seen, later=True), request, seen))

    def _add(self, request: Request, source: Entry, seen: bool) -> bool:
        """Add a request to the links of its page."""
        try:
            link = self.host.links.make(request, seen=seen)
        except Unsendable as error:
            self._note_unsendable(request, error)
            return False
        source.found += 1
        source.links.append(link)
        if not seen:
            self._count_enqueued(link)
        return not seen

    def take_back(self) -> None:
        """Queue the next requests that a feature had refused and now returns."""
        returned = self.host.returned
        if not returned:
            return
        n_taken = 0
        for request in islice(returned[0], _AT_ONCE):  # each becomes a link before the next one is requested
            n_taken += 1
            self.host.guard("enqueue_request", None, self._make_loose, request, False)
        if n_taken < _AT_ONCE:
            del returned[0]
        self.host.ask_again()

    def _packed(self) -> Iterator[Link]:
        """Yield the next links of no page, with their requests as they are now."""
        loose, self._loose = self._loose[:PART], self._loose[PART:]
        for link, request, seen in loose:
            packed = self.host.guard("enqueue_request", request, self._pack, link, request, seen)
            if packed is request:
                self.spilled.append(request)
            elif isinstance(packed, Link):
                yield packed

    def _pack(self, link: Link, request: Request, seen: bool) -> Link | None:
        """Return a link of no page with its request as it is now; ``None`` if that cannot be sent."""
        try:
            packed = self.host.links.pack(link, request, seen=seen)
        except Unsendable as error:
            self._note_unsendable(request, error)
            return None
        if not seen:
            self._count_enqueued(packed)
        return packed

    def _count_enqueued(self, link: Link) -> None:
        self.host.count_as_scrapy("enqueued", stored=bool(link.payload))
        if self.host.crawl.is_kept and not link.payload:
            self.host.crawler.stats.inc_value("scheduler/unserializable")

    def _note_unsendable(self, request: Request, error: Unsendable) -> None:
        host = self.host
        host.seen.forget([request.url])
        host.count("link/unsendable")
        if host.counts["link/unsendable"] <= _SHOWN_ERRORS:
            logger.error("%s", reason_of(error, PARAGRAPH), extra={"spider": host.crawler.spider})

    def _note_priority(self, request: Request) -> None:
        """Log once that a priority has no effect."""
        if request.priority and self._notes_priority and "retry_times" not in request.meta:  # Scrapy's own
            self._notes_priority = False
            crawler = self.host.crawler
            by = "DEPTH_PRIORITY" if crawler.settings.getint("DEPTH_PRIORITY") else "Request.priority"
            logger.info(
                "%s is used, but has no effect: the policy chooses the next request. FOCUS_REQUEST_PRIORITY = True "
                "sends higher priorities first", by, extra={"spider": crawler.spider},
            )  # fmt: skip
