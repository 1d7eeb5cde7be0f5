"""Refuses what is out of scope: links, queued links after a change of the rules, redirects, a browser's requests."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from w3lib.url import safe_url_string

from scrapy_focus.core.printable import brief, counted, printable_logger
from scrapy_focus.engine.failure import in_words_of_command
from scrapy_focus.engine.feature import Feature, Shown
from scrapy_focus.features.scope.record import SCOPE, ScopeRecord
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.web.areas import Area

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.inflight import Entry
    from scrapy_focus.features.scope.rules import Reason, Rules

logger = printable_logger(__name__)


class Scope(Feature):
    """Keeps a crawl within its scope.

    Links out of scope never become part of the crawl. Links that were queued under other rules are skipped when they
    are chosen. For redirects, HEADs and the requests of a browser,
    :class:`~scrapy_focus.downloadermiddlewares.ScopeMiddleware` calls :meth:`refusal` and :meth:`loading_refusal`.

    Start requests are never refused, nor what they redirect to, unless that is excluded. If a start request redirects
    to another host, the area of the crawl includes that, too. Each URL that is ruled out is counted once.

    Parameters
    ----------
    host
        The host of the crawl.
    rules
        The rules.
    """

    name: ClassVar[str] = "scope"
    order: ClassVar[int] = 50  # before traps, which count the links of a page
    abilities: ClassVar[frozenset[str]] = frozenset({"scope"})

    def __init__(self, host: Host, rules: Rules) -> None:
        self.host = host
        self.rules = rules
        self.area = Area(rules.reach)
        self.record = ScopeRecord(None if host.job is None else host.job.folder / SCOPE)
        self._has_warned = False  # that a start URL is out of scope
        for url in self.record.starts:
            self.area.add(url)
        for url in getattr(host.crawler.spider, "start_urls", ()):
            self._add(safe_url_string(url))
        for reason, n in self.record.n_ruled_out.items():
            host.counts[f"scope/{reason}"] = n
        if self.record.rules is not None and rules.is_wider_than(self.record.rules):
            logger.warning(
                "the scope is wider than in the last run: links that were out of scope are followed only if a page "
                "that is still to be fetched has them, too"
            )
        self.record.begin(rules)

    def shown(self) -> Shown:
        n_out = dict(self.record.n_ruled_out)
        if not n_out:
            return Shown()
        return Shown(lines=[f"{counted(sum(n_out.values()), 'URL')} out of scope"], notes={"scope": n_out})

    def refuse(self, request: Request, page: Entry | None) -> bool:
        if page is None and _is_start(request, None):
            self._start(request)
            return False
        reason = self._reason(request)
        if not reason and self.rules.depth is not None:
            reason = self._too_deep(_set_depth(request, page))
        if not reason and self.rules.n_pages:
            reason = self._full(request.url, self.host.links.key(request))
        if reason in ("depth", "host_full") and self.host.links.is_known(request):
            return False  # a shorter way led there, or it is one of the pages: the dupefilter drops it
        return self._refuses(reason, request.url)

    def hand_out(self, entry: Entry, request: Request) -> bool:
        if _is_start(request, entry):
            return False
        reason = self._reason(request) or self._too_deep(entry.pick.depth)
        if not reason and self.rules.n_pages:
            reason = self._full(request.url, entry.pick.key)
        if not self._refuses(reason, request.url):
            return False
        entry.verdict = "out_of_scope"
        return True

    def close(self) -> None:
        self.record.close()

    # For the downloader middleware

    def refusal(self, request: Request, entry: Entry | None) -> Reason:
        """Return why a request must not be sent, ``""`` if it may; a page is counted for its host.

        A request without a pick, except a HEAD, is part of something else, such as an image for a pipeline, and only
        has to match no exclusion.
        """
        url = request.url
        if entry is None and request.method != "HEAD":
            reason: Reason = "excluded" if self.rules.excludes(url) else ""
        elif _is_start(request, entry):
            reason = self._refusal_of_start(request)
        else:
            reason = self._reason(request)
        if not reason and entry is not None and self.rules.n_pages:
            most = math.inf if _is_start(request, entry) else self.rules.n_pages
            reason = "" if self.record.count(url, entry.pick.key, most) else "host_full"
        self._refuses(reason, url)
        return reason

    def loading_refusal(self, url: str, page: Request | None, *, is_document: bool) -> Reason:
        """Return why a browser must not load a URL, ``""`` if it may.

        ``page`` is the request whose page loads it in its main frame. Parts of a page, such as scripts, only have to
        match no exclusion.
        """
        entry = None if page is None else self.host.inflight.find(page)
        if is_document and page is not None and entry is not None:
            return self.refusal(page.replace(url=url, meta={"redirect_urls": [page.url], **page.meta}), entry)
        reason = self.rules.broken_by(url) or self._outside(url)
        if not is_document:
            reason = "excluded" if reason == "excluded" else ""
        self._refuses(reason, url)
        return reason

    # Rules

    def _reason(self, request: Request) -> Reason:
        """Return which expression rules out a URL, or the area that it is outside of."""
        reason = self.rules.broken_by(request.url)
        if reason or request.meta.get("allow_offsite"):
            return reason
        return self._outside(request.url)

    def _outside(self, url: str) -> Reason:
        """Return the area that a URL is outside of, ``""`` if it is inside; while no start URL is known, all are."""
        if url in self.area or not self.area:
            return ""
        reach, goal = self.rules.reach, self.host.config.goal
        is_file = reach == "page" and isinstance(goal, FilesGoal) and goal.wants("", url)
        return "" if reach == "any" or is_file else reach

    def _too_deep(self, depth: int) -> Reason:
        return "depth" if self.rules.depth is not None and depth > self.rules.depth else ""

    def _full(self, url: str, key: int) -> Reason:
        return "host_full" if self.record.is_full(url, key, self.rules.n_pages) else ""

    def _refuses(self, reason: Reason, url: str) -> bool:
        """Count a URL that is out of scope for a reason."""
        if reason and self.record.rule_out(reason, url):
            self.host.count(f"scope/{reason}")
        return bool(reason)

    # Start URLs

    def _start(self, request: Request) -> None:
        self._add(request.url)
        reason = self.rules.broken_by(request.url)
        if reason and not self._has_warned:
            self._has_warned = True
            rule = "FOCUS_EXCLUDE rules it out" if reason == "excluded" else "no FOCUS_INCLUDE matches it"
            said = f"the start URL {brief(request.url)} is requested, although {rule}"
            logger.warning("%s", in_words_of_command(said), extra={"spider": self.host.crawler.spider})

    def _refusal_of_start(self, request: Request) -> Reason:
        """Return why a start request must not be sent: never at first, but a redirect may be excluded."""
        if "redirect_urls" not in request.meta:
            return ""
        if self.rules.excludes(request.url):
            return "excluded"
        if self.rules.reach != "page" and self.area and not self._is_near(request.url):
            self._add(request.url)
            logger.warning(
                "%s redirects to %s: that is in the scope of the crawl, too",
                brief(request.meta["redirect_urls"][0]), brief(request.url), extra={"spider": self.host.crawler.spider},
            )  # fmt: skip
        return ""

    def _is_near(self, url: str) -> bool:
        """Whether a URL is in the area, or a start URL has its host."""
        return url in self.area or self.area.has_host(url)

    def _add(self, url: str) -> None:
        """Include a start URL in the area."""
        if self.rules.reach != "any" and url not in self.area:
            self.area.add(url)
            self.record.add_start(url)


def _is_start(request: Request, entry: Entry | None) -> bool:
    """Whether a request is a start request or its redirect.

    A spider may copy the ``meta`` of a page to its links; they are deeper, and have an origin.
    """
    meta = request.meta
    return bool(meta.get("is_start_request") and not meta.get("depth")) and (entry is None or entry.pick.origin < 0)


def _set_depth(request: Request, page: Entry | None) -> int:
    """Return the number of links from a start URL to a request, and set it in its ``meta``.

    A link of no page, such as a sitemap that robots.txt names, is one link away; a redirect is no link.
    """
    depth = request.meta.get("depth")
    if page is None:
        depth = max(1, depth if isinstance(depth, int) else 0)
    elif page.response is not None and 300 <= page.response.status < 400:
        depth = page.pick.depth
    elif not isinstance(depth, int):
        depth = page.pick.depth + 1
    request.meta["depth"] = depth
    return depth
