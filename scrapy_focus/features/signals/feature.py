"""What sitemaps, feeds and pings say of known pages reaches the policy, where it listens."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from scrapy import Request

from scrapy_focus.core.printable import brief, printable_logger
from scrapy_focus.core.types import Signal, State
from scrapy_focus.engine.feature import Feature
from scrapy_focus.engine.slots import slot_name
from scrapy_focus.web.entries import LARGEST, LARGEST_FEED, Listed, Reading
from scrapy_focus.web.listings import beginning, listing_of
from scrapy_focus.web.told import Told, absolute

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scrapy_focus.core.types import Outcome
    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.inflight import Entry
    from scrapy_focus.web.listings import Listing
    from scrapy_focus.web.told import Reason

logger = printable_logger(__name__)

_AT_ONCE = 500  # signals
_LONG = 100_000  # bytes of a listing that is read in turns of the event loop
_SKEW = 60.0  # seconds by which a ping may be ahead

_SAID: dict[str, str] = {
    "future": "%s says that %s changed at %s, which is to come: no such date is believed",
    "elsewhere": "%s says that %s changed at %s: it is believed of its own domain only",
    "unreadable": "%s says that %s changed at %s, which is no date that can be read",
}


class Signals(Feature):
    """Reads the sitemaps and feeds among the answers of a crawl, whoever asked for them, and tells the crawl.

    New URLs in them are none of its business: those the spider asks for. What an entry says is told once, as a
    :class:`~scrapy_focus.core.types.Signal`; the crawl passes over what it does not know.

    Parameters
    ----------
    host
        Of the crawl.
    """

    name: ClassVar[str] = "hear"
    abilities: ClassVar[frozenset[str]] = frozenset({"ping"})
    order: ClassVar[int] = 100

    def __init__(self, host: Host) -> None:
        self.host = host
        self.crawler = host.crawler
        self._hear = host.crawl.hear
        self._knows_all = not host.crawl.where  # else what is not known here may be known to another machine
        self._told = Told()
        self._noted: set[str] = set()  # reasons that were logged

    def outcome(self, entry: Entry, outcome: Outcome) -> None:
        """A listing that takes long to be read is read in turns of the event loop."""
        if entry.response is not None and len(entry.response.body) > _LONG and self._kind(entry):
            entry.takes_turns = True

    def read_page(self, entry: Entry, outcome: Outcome) -> Iterator[None]:
        return self.hearing(entry)

    def hearing(self, entry: Entry) -> Iterator[None]:
        """Let the policy hear what the page of a pick says of others, if it is a sitemap or a feed; pauses now and
        then.
        """
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
        """Let the policy hear that a page changed, now by default; ``False`` where that does nothing: the page is not
        known, or what is said cannot be.
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
        """Return what kind of listing the page of a pick is, ``""`` for any other page."""
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
            news = self._told.news(entry, listing, now)
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
        """Say once for each reason what was met first."""
        if reason not in self._noted:
            self._noted.add(reason)
            shown = [brief(each) if isinstance(each, str) else each for each in what]
            logger.info(f"{said}; see focus/signal/ in the stats", *shown, extra={"spider": self.crawler.spider})
