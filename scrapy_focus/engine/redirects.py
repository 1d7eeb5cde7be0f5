"""Redirects and retries: the same pick continues with another request."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from scrapy_focus.core.types import State
from scrapy_focus.engine.slots import slot_name

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.inflight import Entry

_RETURNS = 3  # redirects of a pick to a URL of its own


class Redirects:
    """Redirects and retries of picks, queued until their hosts are free."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.waiting: deque[tuple[Entry, Request]] = deque()

    def returns(self, entry: Entry, request: Request) -> bool:
        """Whether a pick is redirected to a URL of its own that may answer differently now, at most three times.

        It may if a cookie was set on the way, or if the URL is spelled differently.
        """
        if request.dont_filter or entry.returns >= _RETURNS:
            return False
        if self.host.links.key(request) not in (entry.pick.key, *entry.also):
            return False
        url, *before = (each.partition("#")[0] for each in (request.url, *request.meta.get("redirect_urls", ())))
        if url in before and not entry.has_cookie:
            return False
        entry.returns += 1
        entry.has_cookie = False
        return True

    def follow(self, entry: Entry, request: Request, *, seen: bool) -> bool:
        """Let a pick continue with another request, unless its URL was already seen."""
        host, links = self.host, self.host.links
        if seen and not self._leads_back(entry, request):
            entry.verdict = "redirect_seen"
            entry.leads_to = links.key(request)
            return False
        is_other = links.key(request) not in (entry.pick.key, *entry.also)
        if is_other and (not request.dont_filter or host.crawl.comes_back):
            entry.also.append(links.claim(request))
        host.inflight.succeed(entry)
        self.waiting.append((entry, request))
        host.count("requeued")
        host.count_as_scrapy("enqueued")
        return True

    def next(self) -> Request | None:
        """Hand out the first queued request whose host is free; ``None`` if there is none."""
        host = self.host
        for _ in range(len(self.waiting)):
            entry, request = self.waiting.popleft()
            if slot_name(host.crawler.engine.downloader.get_slot_key(request)) not in host.slots.busy:
                host.count_as_scrapy("dequeued")
                return host.inflight.hand_out(entry, request)
            self.waiting.append((entry, request))
        return None

    def _leads_back(self, entry: Entry, request: Request) -> bool:
        """Whether a revisited page is redirected to a page that was fetched, too, and is not queued by itself."""
        return entry.visited and self.host.crawl.knows([self.host.links.key(request)]) == [State.FETCHED]
