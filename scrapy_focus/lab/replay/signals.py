"""The reports of sitemaps and feeds of a recorded site about known pages, as in a live crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.types import Signal
from scrapy_focus.web.entries import LARGEST, LARGEST_FEED, Reading
from scrapy_focus.web.listing_news import ListingNews
from scrapy_focus.web.listings import beginning, listing_of

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from scrapy_focus.lab.recordings.format import RecordedSite
    from scrapy_focus.lab.replay.answers import Flight
    from scrapy_focus.web.entries import Listed

_AT_ONCE = 500  # signals, as live


class RecordedSignals:
    """Reads the sitemaps and feeds among the answers of a simulated crawl, where their bodies were recorded.

    ``counts`` is where it counts, as a live crawl does below ``focus/``.
    """

    def __init__(self, site: RecordedSite, counts: Counter[str]) -> None:
        self.site = site
        self.counts = counts
        self._listing_news = ListingNews()

    def of(self, flight: Flight, now: float) -> Iterator[list[Signal]]:
        """Yield the reports of a pick's page about others, in parts of limited size; ``now`` is the crawl's time."""
        body = self._body(flight)
        kind = listing_of(beginning(body))
        if kind not in ("sitemap", "feed"):
            return
        self.counts[f"signal/{kind}s"] += 1
        reading = Reading(body, kind, largest=LARGEST if kind == "sitemap" else LARGEST_FEED)
        waiting: list[Signal] = []
        for part in reading:
            self.counts["signal/entries"] += len(part)
            for entry in part:
                signal = self._signal(entry, flight, kind, now)
                if signal is not None:
                    waiting.append(signal)
            while len(waiting) >= _AT_ONCE:
                yield waiting[:_AT_ONCE]
                del waiting[:_AT_ONCE]
        yield waiting
        if reading.cut:
            self.counts["signal/cut"] += 1

    def _body(self, flight: Flight) -> bytes:
        """Return the body of a pick, empty if there is none."""
        if flight.answer < 0 or flight.is_head or not 200 <= self.site.answers.status[flight.answer] < 300:
            return b""
        return self.site.body(flight.answer) or b""

    def _signal(self, entry: Listed, flight: Flight, kind: str, now: float) -> Signal | None:
        """Return the report of an entry about another page of the site, if that is new."""
        news = self._listing_news.news(entry, self.site.urls[flight.final], now)
        if isinstance(news, str):
            self.counts[f"signal/{news}"] += 1
            return None
        page = self.site.find(news.url)
        if page in (-1, flight.pick.key):
            return None
        return Signal(page, self.site.hosts[page], news.modified, kind)
