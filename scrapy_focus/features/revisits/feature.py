"""Asks servers whether a page has changed since its last visit, and detects changes itself.

A page has changed if its text and links have (:mod:`~scrapy_focus.web.digest`); a response without a body, 304, means
that it has not. Only pages that the spider has read count as seen, so no error of a callback hides a change.

Some servers answer 304 for changed pages. So now and then a page is fetched without conditions. If a different page
has the same ``ETag`` as before, the server is wrong. If it has another ``ETag``, the old one is sent once more: a
server that answers 304 to that is wrong, too. From then on, pages of a wrong host are always fetched in full.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy import signals
from scrapy.http import HtmlResponse
from scrapy.utils.httpobj import urlparse_cached

from scrapy_focus.core.printable import brief, printable_logger
from scrapy_focus.engine.conditions import has_conditions
from scrapy_focus.engine.feature import Feature
from scrapy_focus.engine.marks import VISIT
from scrapy_focus.engine.pages import can_be_read
from scrapy_focus.features.revisits.lastvisit import Coming, Visit
from scrapy_focus.web.digest import bytes_digest, page_digest
from scrapy_focus.web.validators import etag_of, max_age_of, modified_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

    from scrapy_focus.core.types import Outcome
    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.inflight import Entry

logger = printable_logger(__name__)

#: In ``response.flags`` of an empty response to conditions that were not ours: the file has not changed.
NOT_MODIFIED = "not modified"
#: In ``response.flags`` of a page that is the same as at its last visit, if spiders receive such pages.
UNCHANGED = "unchanged"

#: Responses 404 in a row after which a page counts as gone.
MISSES = 3

_UNMODIFIED, _NOT_FOUND, _GONE = 304, 404, 410
_RESTLESS = 5  # visits in a row with different pages each, after which the page counts as restless
_LARGE = 2_000_000  # bytes of a page; a larger one is not parsed for this
_FIRST, _LAST = 2, 20  # one visit in so many fetches the full page: at a new host, at one that proved right
_HOSTS = 10_000
_SHOWN = 3  # hosts named in the log
_LONGEST_TYPE = 100  # characters


class Visits(Feature):
    """Asks whether pages have changed, checks the answers, and withholds unchanged pages from the spider.

    Parameters
    ----------
    host
        The host of the crawl.
    shows_unchanged
        Whether the spider receives unchanged pages (``FOCUS_UNCHANGED``).
    """

    name: ClassVar[str] = "visit"
    abilities: ClassVar[frozenset[str]] = frozenset({"revisit"})
    order: ClassVar[int] = 400  # after renderings, as a visit is stored with what the next visit needs

    def __init__(self, host: Host, *, shows_unchanged: bool) -> None:
        self.host = host
        self.shows_unchanged = shows_unchanged
        self._coming: dict[int, Coming] = {}  # visits in flight, by pick
        self._asks = not host.crawler.settings.getbool("HTTPCACHE_ENABLED")  # else the cache does
        self._right: OrderedDict[str, int] = OrderedDict()  # by host: checks that confirmed its answers
        self._wrong: OrderedDict[str, None] = OrderedDict()  # hosts whose answers are not used
        self._named = 0
        host.crawler.signals.connect(self._on_response, signals.response_received)

    def last(self, entry: Entry) -> Visit:
        """Return the last visit of the page of a pick; a default one if there was none."""
        coming = self._coming.get(entry.pick.id)
        return Visit() if coming is None else coming.last

    def hand_out(self, entry: Entry, request: Request) -> bool:
        if entry.pick.method == "GET":
            entry.first, entry.visited = request.copy(), VISIT in request.meta
            self._coming[entry.pick.id] = Coming(Visit.unpack(request.meta.get(VISIT)))
        return False

    def give_back(self, entry: Entry) -> None:
        coming = self._coming.pop(entry.pick.id, None)
        if coming is not None:
            self._restore(coming, entry.request)

    def outcome(self, entry: Entry, outcome: Outcome) -> Outcome | None:
        """Store the request of a page so that it can be sent again, with the state of the visit."""
        coming = self._coming.pop(entry.pick.id, None)
        if coming is not None:
            self._restore(coming, entry.request)
        if outcome.pick.method == "HEAD":
            return None
        first = entry.first
        if first is None or self.host.links.key(first) != entry.pick.key:  # it is lost, or a further request
            return outcome._replace(once=True)
        if coming is not None:
            as_before = outcome, coming.last
            outcome, following = self.host.guard("visit", as_before, self._concluded, entry, coming, outcome)
            first.meta[VISIT] = following.pack()
        return outcome._replace(payload=self.host.requests.pack(entry.pick.key, first))

    def ask(self, request: Request) -> None:
        """Add conditions to a request about to be sent, if its page was seen and its server is trusted.

        Conditions of the spider or of another middleware stay. Redirects and retries are handled, too.
        """
        entry = self.host.inflight.find(request)
        coming = None if entry is None or entry.request is not request else self._coming.get(entry.pick.id)
        if entry is not None and coming is not None:
            self.host.guard("visit", None, self._ask, entry, coming, request)

    def _ask(self, entry: Entry, coming: Coming, request: Request) -> None:
        _take_back(coming, request)
        coming.owns = has_conditions(request)
        last, where = coming.last, _host(request)
        if last.is_doubted:
            _put(self._wrong, where, None)
        if coming.owns or where in self._wrong or not self._can_ask(entry, last, request):
            return
        coming.is_check = not last.is_stale and self._is_due(where, last, request)
        if coming.is_check:
            return
        if last.etag:
            coming.asks["If-None-Match"] = last.etag
        if last.modified:
            coming.asks["If-Modified-Since"] = last.modified
        request.headers.update(coming.asks)

    def _can_ask(self, entry: Entry, last: Visit, request: Request) -> bool:
        """Whether conditions on this request concern the page of the last visit."""
        if not last.has_validators or not self._asks:
            return False
        if request.method != "GET" or request.body or request.meta.get("playwright"):
            return False
        return request.url == (last.url or entry.pick.url)

    def _on_response(self, response: Response, request: Request) -> None:
        """Handle a response before the spider reads it."""
        entry = self.host.inflight.find(request)
        if entry is not None and entry.response is response and (coming := self._coming.get(entry.pick.id)) is not None:
            self.host.guard("visit", None, self._arrived, coming, response, request)
            entry.is_unchanged = coming.changed is False

    def _arrived(self, coming: Coming, response: Response, request: Request) -> None:
        """Examine a response before the spider receives it; withhold the page if it has not changed."""
        if response.status == _UNMODIFIED:
            self._told(coming, response)
        elif NOT_MODIFIED in response.flags:
            coming.changed = False if coming.last.visits else None
        elif 200 <= response.status < 300:
            self._compare(coming, response)
        if coming.changed is not False or (coming.owns and response.status == _UNMODIFIED):
            return
        self._withhold(coming, response, request)

    def _withhold(self, coming: Coming, response: Response, request: Request) -> None:
        """Withhold an unchanged page from the spider, or flag it if the spider wants such pages."""
        handled = request.meta.get("handle_httpstatus_list")
        coming.kept = request, request.callback, handled
        if response.status == _UNMODIFIED:  # or Scrapy drops it, and logs that
            request.meta["handle_httpstatus_list"] = [*(handled or ()), _UNMODIFIED]
        if self.shows_unchanged:
            response.flags.append(UNCHANGED)
        else:
            request.callback = _read_already

    def _restore(self, coming: Coming, request: Request | None) -> None:
        """Restore a request as the spider made it, after its visit."""
        if request is not None:
            _take_back(coming, request)
        if coming.kept is None:
            return
        request, callback, handled = coming.kept
        request.callback = callback
        if handled is None:
            request.meta.pop("handle_httpstatus_list", None)
        else:
            request.meta["handle_httpstatus_list"] = handled
        coming.kept = None

    def _concluded(self, entry: Entry, coming: Coming, outcome: Outcome) -> tuple[Outcome, Visit]:
        """Return the outcome of a visit, and the state for the next one.

        A page that is gone, by 410 or by 404 three times in a row, is not revisited: the outcome says ``once``.
        """
        response, last = entry.response, coming.last
        following = last._replace(visits=last.visits + 1)
        if response is None:
            return outcome, following
        outcome = outcome._replace(changed=coming.changed)
        if response.status == _NOT_FOUND:
            following = following._replace(misses=last.misses + 1)
        elif not outcome.error:
            following = following._replace(misses=0)
            outcome = outcome._replace(max_age=_max_age(response))
            if response.status == _UNMODIFIED:
                outcome = outcome._replace(mime=last.mime, size=0, page=None)
                following = following._replace(changes=0, was_told=True)
            elif coming.digest:
                following = self._seen(coming, following, outcome, response)
        if coming.lied or _host(response) in self._wrong:
            following = following._replace(is_doubted=True, is_stale=False, etag="", modified="")
        if response.status == _GONE or following.misses >= MISSES:
            self.host.count("visit/gone")
            outcome = outcome._replace(once=True)
        if coming.changed:
            self.host.count("visit/changed")
        elif coming.changed is not None:
            self.host.count("visit/unchanged")
        return outcome, following

    def _seen(self, coming: Coming, following: Visit, outcome: Outcome, response: Response) -> Visit:
        """Remember a page that the spider has read."""
        changes = following.changes + 1 if coming.changed else 0
        if changes == _RESTLESS:
            self.host.count("visit/restless")
        following = following._replace(
            digest=coming.digest, body=coming.body, mime=outcome.mime[:_LONGEST_TYPE], changes=changes, was_told=False,
            is_stale=coming.proves,
        )  # fmt: skip
        if coming.proves:
            return following
        url = "" if response.url == outcome.pick.url else response.url
        etag, modified = _validators(response)
        return following._replace(etag=etag, modified=modified, url=url)

    def _told(self, coming: Coming, response: Response) -> None:
        """Handle a server's answer that nothing has changed."""
        self.host.count("visit/not_modified")
        if coming.owns:
            coming.changed = False if coming.last.digest else None
        elif not coming.asks:
            self.host.count("visit/unasked")
            self._doubt(coming, response, "answered 304 to a request without conditions")
        elif coming.last.is_stale:
            self.host.count("visit/wrong")
            self._doubt(coming, response, "answered 304 for a page that had changed")
        else:
            coming.changed = False

    def _compare(self, coming: Coming, response: Response) -> None:
        """Compare a full page with its last visit, and with the answer of its server."""
        last = coming.last
        coming.body = bytes_digest(response.body)
        if not last.digest:
            coming.digest = _digest_of(response, coming.body)
            return
        if coming.body == last.body:
            coming.digest = last.digest
        else:
            coming.digest = _digest_of(response, coming.body)
        coming.changed = coming.digest != last.digest
        if last.is_stale:
            self._trust(response)
        elif last.has_validators:
            self._judge(coming, response)

    def _judge(self, coming: Coming, response: Response) -> None:
        """Check whether the validators of a server changed together with its page."""
        last = coming.last
        etag, modified = _validators(response)
        if etag and last.etag:
            is_same = etag == last.etag
        else:
            is_same = bool(modified) and modified == last.modified
        if coming.changed and is_same:
            self.host.count("visit/wrong")
            self._doubt(coming, response, "sent a different page with the same ETag or Last-Modified")
        elif coming.is_check and last.was_told:
            coming.proves = bool(coming.changed)
            if not coming.changed:
                self._trust(response)

    def _is_due(self, where: str, last: Visit, request: Request) -> bool:
        """Whether to fetch the full page as a check of the server; each page has its own turn."""
        one_in = min(_LAST, _FIRST + 2 * self._right.get(where, 0))
        return last.was_told and (last.body + last.visits) % one_in == 0

    def _trust(self, response: Response) -> None:
        where = _host(response)
        _put(self._right, where, self._right.get(where, 0) + 1)

    def _doubt(self, coming: Coming, response: Response, why: str) -> None:
        """Distrust a server that was wrong: from now on its pages are fetched without conditions."""
        coming.lied = True
        where = _host(response)
        if where in self._wrong:
            return
        _put(self._wrong, where, None)
        self.host.count("visit/doubted")
        self._named += 1
        if self._named <= _SHOWN:
            logger.warning(
                "%s %s (%s): from now on its pages are fetched in full (focus/visit/doubted)", where, why,
                brief(response.url),
            )  # fmt: skip


def _read_already(response: Response, **kwargs: Any) -> None:
    """Replaces the callback for an unchanged page."""


def _take_back(coming: Coming, request: Request) -> None:
    """Remove the conditions that :meth:`Visits.ask` added to a request or to its copy."""
    for name, value in coming.asks.items():
        if request.headers.get(name) == value.encode():
            del request.headers[name]
    coming.asks = {}


def _digest_of(response: Response, body: int) -> int:
    """Return a digest of a page's content; of its bytes for anything else, or for a page with little content."""
    if not isinstance(response, HtmlResponse) or len(response.body) > _LARGE or not can_be_read(response):
        return body
    return page_digest(response.selector.root) or body


def _validators(response: Response) -> tuple[str, str]:
    return etag_of(_header(response, "ETag")), modified_of(_header(response, "Last-Modified"))


def _max_age(response: Response) -> float | None:
    values = _header(response, "Cache-Control")
    if not values:
        return None
    return max_age_of(values, next(iter(_header(response, "Age")), ""))


def _header(response: Response, name: str) -> list[str]:
    return [value.decode("latin-1") for value in response.headers.getlist(name)]


def _host(carrier: Request | Response) -> str:
    return urlparse_cached(carrier).netloc


def _put(store: OrderedDict[str, Any], where: str, value: Any) -> None:
    store[where] = value
    if len(store) > _HOSTS:
        store.popitem(last=False)
