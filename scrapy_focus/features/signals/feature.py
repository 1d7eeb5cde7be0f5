"""Passes what sitemaps, feeds and pings say about known pages to a policy that listens."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from scrapy import Request

from scrapy_focus.core.printable import brief, printable_logger
from scrapy_focus.core.types import Signal, State
from scrapy_focus.engine.feature import Feature
from scrapy_focus.engine.slots import slot_name
from scrapy_focus.web.entries import LARGEST, LARGEST_FEED, Listed, Reading
from scrapy_focus.web.listing_news import ListingNews, absolute
from scrapy_focus.web.listings import beginning, listing_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scrapy_focus.core.types import Outcome
    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.inflight import Entry
    from scrapy_focus.web.listing_news import Reason
    from scrapy_focus.web.listings import Listing

logger = printable_logger(__name__)

_AT_ONCE = 500  # signals
_LONG = 100_000  # bytes of a listing; a longer one is read over several turns of the event loop
_SKEW = 60.0  # seconds by which the time of a ping may be in the future

_SAID: dict[str, str] = {
    "future": "%s says that %s changed at %s, which is in the future: such dates are ignored",
    "elsewhere": "%s says that %s changed at %s: it is believed about its own domain only",
    "unreadable": "%s says that %s changed at %s, which is not a readable date",
}


class Signals(Feature):
    """Reads the sitemaps and feeds among the responses of a crawl, whoever requested them, and informs the policy.

    It ignores new URLs in them: the spider requests those. What an entry says is passed on once, as a
    :class:`~scrapy_focus.core.types.Signal`; the crawl skips unknown pages.

    Parameters
    ----------
    host
        The host of the crawl.
    """

    name: ClassVar[str] = "hear"
    abilities: ClassVar[frozenset[str]] = frozenset({"ping"})
    order: ClassVar[int] = 100

    def __init__(self, host: Host) -> None:
        self.host = host
        self.crawler = host.crawler
        self._hear = host.crawl.hear
        self._knows_all = not host.crawl.where  # otherwise another machine may know pages unknown here
        self._listing_news = ListingNews()
        self._noted: set[str] = set()  # reasons already logged

    def outcome(self, entry: Entry, outcome: Outcome) -> None:
        """Have a long listing read over several turns of the event loop."""
        if entry.response is not None and len(entry.response.body) > _LONG and self._kind(entry):
            entry.takes_turns = True

    def read_page(self, entry: Entry, outcome: Outcome) -> Iterator[None]:
        return self.hearing(entry)

    def hearing(self, entry: Entry) -> Iterator[None]:
        """Pass what a sitemap or feed says about other pages to the policy; yields now and then."""
        kind, response = self._kind(entry), entry.response
        if not kind or response is None:
            return
        self.host.count(f"signal/{kind}s")
        reading = Reading(response.body, kind, largest=LARGEST if kind == "sitemap" else LARGEST_FEED)
        now = self.host.status().at
        waiting: list[Signal] = []
        for part in reading:
            waiting += self._signals(part, response.url, kind, now, entry.pick.key)
            while len(waiting) >= _AT_ONCE:
                self._hear(waiting[:_AT_ONCE])
                del waiting[:_AT_ONCE]
            yield
        self._hear(waiting)
        if reading.cut:
            self.host.count("signal/cut")
            self._note("cut", "%s is read up to %d bytes or %d entries", response.url, reading.largest, reading.most)

    def ping(self, url: str, modified: float | None, kind: str) -> bool:
        """Tell the policy that a page changed, by default now.

        Returns ``False`` if that has no effect: the page is unknown, or the time is impossible.
        """
        now = self.host.status().at
        modified = now if modified is None else modified
        signal: Signal | Reason = "no_url"
        if not math.isfinite(modified):
            signal = "unreadable"
        elif modified > now + _SKEW:
            signal = "future"
        elif there := absolute("", url):
            signal = self._signal(there, min(modified, now), kind)
        if isinstance(signal, str):
            self._pass_over(signal, Listed(url, changed=str(modified)), kind)
            return False
        if self._knows_all and self.host.crawl.knows([signal.key]) == [State.NEW]:
            return False
        self._hear([signal])
        return True

    def _kind(self, entry: Entry) -> Listing:
        """Return the kind of listing of a pick's page, ``""`` for any other page."""
        response = entry.response
        if response is None or entry.failure is not None or entry.stopped:
            return ""
        if not 200 <= response.status < 300:
            return ""
        kind = listing_of(beginning(response.body))
        return kind if kind in ("sitemap", "feed") else ""

    def _signals(self, part: Sequence[Listed], listing: str, kind: str, now: float, own: int) -> Iterator[Signal]:
        self.host.count("signal/entries", len(part))
        for entry in part:
            news = self._listing_news.news(entry, listing, now)
            signal = news if isinstance(news, str) else self._signal(news.url, news.modified, kind)
            if isinstance(signal, str):
                self._pass_over(signal, entry, listing)
            elif signal.key != own:
                yield signal

    def _signal(self, url: str, modified: float, kind: str) -> Signal | Reason:
        try:
            request = Request(url)
            key = self.host.links.key(request)
        except ValueError:
            return "no_url"
        slot = slot_name(self.crawler.engine.downloader.get_slot_key(request))
        priorities = self.host.links.priorities
        return Signal(key, slot if priorities is None else priorities.name(slot, 0), modified, kind)

    def _pass_over(self, reason: Reason, entry: Listed, listing: str) -> None:
        self.host.count(f"signal/{reason}")
        if said := _SAID.get(reason):
            self._note(reason, said, listing, entry.url, entry.changed)

    def _note(self, reason: str, said: str, *what: object) -> None:
        """Log the first case of each reason."""
        if reason not in self._noted:
            self._noted.add(reason)
            shown = [brief(each) if isinstance(each, str) else each for each in what]
            logger.info(f"{said}; see focus/signal/ in the stats", *shown, extra={"spider": self.crawler.spider})
