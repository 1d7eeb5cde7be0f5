"""Requests the targets of redirects at once where a host redirects only by a slash, to https, or to or from www."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from urllib.parse import urljoin

from scrapy.exceptions import DownloadCancelledError, StopDownload
from scrapy.utils.url import url_is_from_any_domain
from w3lib.url import safe_url_string

from scrapy_focus.core.printable import counted
from scrapy_focus.engine.feature import Feature, Shown
from scrapy_focus.engine.inflight import BrowserFailed, BudgetExhausted, MimeStop, RedirectSeen, TooLarge
from scrapy_focus.engine.marks import GIVEN, VISIT
from scrapy_focus.web.redirect_rules import REDIRECTS, Guess, RedirectRules, is_failure

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

    from scrapy_focus.core.types import Outcome
    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.inflight import Entry

_HELD = 4096  # links that were skipped, and may be followed later
#: Failures of a request that say nothing about its URL, or that the pick must see.
_FINAL = (BrowserFailed, BudgetExhausted, DownloadCancelledError, MimeStop, RedirectSeen, StopDownload, TooLarge)
_TRACE = ("redirect_urls", "redirect_times", "redirect_reasons")  # keys of meta, as Scrapy sets them
_SECRET = ("Authorization", "Cookie")  # headers that Scrapy does not send to another host


class Sent(NamedTuple):
    """A request that was sent to the target of its redirect."""

    original: str  # URL
    target: str  # URL
    guess: Guess
    meta: dict[str, Any]  # values of the original that were replaced


class Held(NamedTuple):
    """A request that was skipped, as the target of its redirect was already seen."""

    request: Request
    guess: Guess


class ForeseenRedirects(Feature):
    """Sends picks to the targets of their redirects; a pick whose target was already seen needs no request.

    Redirects are learned by :class:`~scrapy_focus.web.redirect_rules.RedirectRules`, in each process and each run
    anew. If a guess fails, the original URL is requested, too. The last 4,096 skipped links are held: if their rule
    ends, they are followed.

    Start requests, ``dont_filter``, HEADs, other methods than GET, requests with a body, and those that must not be
    redirected are sent unchanged. So are requests with credentials if the host or the scheme would change, and those
    whose target has a host that ``allowed_domains`` lacks.
    """

    name: ClassVar[str] = "redirect"
    abilities: ClassVar[frozenset[str]] = frozenset({"redirects"})
    order: ClassVar[int] = 350  # after rendering, which stores the original request

    def __init__(self, host: Host) -> None:
        self.host = host
        self.rules = RedirectRules()
        self._sent: dict[int, Sent] = {}  # by pick
        self._held: OrderedDict[str, Held] = OrderedDict()  # by URL

    def shown(self) -> Shown:
        n = self.host.counts["redirect/foreseen"] + self.host.counts["redirect/known"]
        n -= self.host.counts["redirect/wrong"]
        return Shown(lines=[f"{counted(n, 'redirect')} foreseen, which saved as many requests"] if n > 0 else ())

    def hand_out(self, entry: Entry, request: Request) -> bool | Request:
        """Skip a pick whose target was already seen, or return the request for its target."""
        if entry.pick.method != "GET" or entry.sent or not self._is_plain(request):
            return False
        guess = self.rules.guess(request.url.partition("#")[0])
        if guess is None:
            return False
        target = _to(request, guess)
        key = self.host.links.key(target)
        if key == entry.pick.key or not self._is_allowed(request, target):
            return False
        if self.host.seen.has(target, entry):
            self._hold(Held(request, guess))
            entry.verdict = "redirect_seen"
            entry.leads_to = key
            return True
        entry.also.append(self.host.links.claim(target))
        meta = {name: request.meta[name] for name in (*_TRACE, "download_slot") if name in request.meta}
        self._sent[entry.pick.id] = Sent(request.url, target.url, guess, meta)
        self.host.count("redirect/foreseen")
        return target

    def give_back(self, entry: Entry) -> None:
        """Queue the original request again."""
        sent = self._sent.pop(entry.pick.id, None)
        if sent is not None and entry.request is not None:
            entry.request = _original(entry.request, sent)

    def outcome(self, entry: Entry, outcome: Outcome) -> Outcome | None:
        self._sent.pop(entry.pick.id, None)
        return None

    def answered(self, request: Request, response: Response) -> Request | None:
        """Learn from a response; return the original request if it shows that a guess is wrong."""
        entry = self.host.inflight.find(request)
        if entry is None or request.method != "GET" or request.body:
            return None
        url, leads_to = request.url.partition("#")[0], _location(request, response)
        sent = self._sent.get(entry.pick.id)
        if sent is not None and request.url == sent.target:
            if is_failure(response.status) or leads_to == sent.original.partition("#")[0]:
                return self._ask_original(request, entry, sent)
            if 200 <= response.status < 300:
                self.rules.confirm(sent.guess)
        if self.rules.observe(url, response.status, leads_to):
            self._follow_held()
        return None

    def failed(self, request: Request, exception: Exception) -> Request | None:
        """Return the original request if there is no response, because of the host or the scheme of a guess."""
        entry = self.host.inflight.find(request)
        if entry is None or isinstance(exception, _FINAL) or self.host.closed:
            return None
        sent = self._sent.get(entry.pick.id)
        if sent is None or request.url != sent.target:
            return None
        return self._ask_original(request, entry, sent)

    def _ask_original(self, request: Request, entry: Entry, sent: Sent) -> Request:
        del self._sent[entry.pick.id]
        self.host.count("redirect/wrong")
        if self.rules.miss(sent.guess):
            self._follow_held()
        return _original(request, sent)

    def _is_plain(self, request: Request) -> bool:
        """Whether a request may be redirected, and is an ordinary link."""
        meta = request.meta
        if request.method != "GET" or request.body or request.dont_filter or meta.get("is_start_request"):
            return False
        if not {VISIT, GIVEN}.isdisjoint(meta) or meta.get("dont_redirect") or meta.get("handle_httpstatus_all"):
            return False
        lists = (meta.get("handle_httpstatus_list"), getattr(self.host.crawler.spider, "handle_httpstatus_list", ()))
        return all(REDIRECTS.isdisjoint(each or ()) for each in lists)

    def _is_allowed(self, request: Request, target: Request) -> bool:
        """Whether a request may be sent to the host and the scheme of its target."""
        if request.url.split("/", 3)[:3] == target.url.split("/", 3)[:3]:
            return True
        if request.cookies or any(name in request.headers for name in _SECRET):
            return False
        allowed = getattr(self.host.crawler.spider, "allowed_domains", None)
        return not allowed or url_is_from_any_domain(target.url, allowed)

    def _hold(self, held: Held) -> None:
        self._held[held.request.url] = held
        if len(self._held) > _HELD:
            self._held.popitem(last=False)
        self.host.count("redirect/known")

    def _follow_held(self) -> None:
        """Follow the skipped links whose rules ended."""
        ended = [held for held in self._held.values() if not self.rules.holds(held.guess)]
        for held in ended:
            del self._held[held.request.url]
        if ended:
            self.host.count("redirect/returned", len(ended))
            self.host.take_back(iter([held.request for held in ended]))


def _to(request: Request, guess: Guess) -> Request:
    """Return the request for the target of a redirect, with the trace that Scrapy leaves of one."""
    meta = dict(request.meta)
    meta["redirect_urls"] = [*meta.get("redirect_urls", ()), request.url]
    meta["redirect_times"] = meta.get("redirect_times", 0) + 1
    meta["redirect_reasons"] = [*meta.get("redirect_reasons", ()), "foreseen"]
    meta.pop("download_slot", None)
    return request.replace(url=guess.url, meta=meta)


def _original(request: Request, sent: Sent) -> Request:
    """Return the request as the pick has it."""
    meta = {name: value for name, value in request.meta.items() if name not in (*_TRACE, "download_slot")}
    return request.replace(url=sent.original, meta=meta | sent.meta)


def _location(request: Request, response: Response) -> str:
    """Return the URL that a response redirects to, without its fragment; ``""`` for none."""
    if response.status not in REDIRECTS or not (said := response.headers.get("Location")):
        return ""
    return urljoin(request.url, safe_url_string(said)).partition("#")[0]
