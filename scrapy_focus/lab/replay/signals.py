"""What the sitemaps and feeds of a recorded site say of known pages, as a live crawl hears it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.types import Signal
from scrapy_focus.web.entries import LARGEST, LARGEST_FEED, Reading
from scrapy_focus.web.listings import beginning, listing_of
from scrapy_focus.web.told import Told

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from scrapy_focus.lab.recordings.format import RecordedSite
    from scrapy_focus.lab.replay.answers import Flight

_AT_ONCE = 500  # signals, as live


class RecordedSignals:
    """Reads the sitemaps and feeds among the answers of a simulated crawl, where their bodies were recorded.

    ``counts`` is where it counts, as a live crawl does below ``focus/``.
    """

    def __init__(self, site: RecordedSite, counts: Counter[str]) -> None:
        self.site = site
        self.counts = counts
        self._told = Told()

    def of(self, flight: Flight, now: float) -> Iterator[list[Signal]]:
        """Yield what the page of a pick says of others, so many signals at a time; ``now`` as the crawl is told."""
        site = self.site
        if flight.answer < 0 or flight.is_head:
            return
        if not 200 <= site.answers.status[flight.answer] < 300:
            return
        body = site.body(flight.answer) or b""
        kind = listing_of(beginning(body))
        if kind not in ("sitemap", "feed"):
            return
        self.counts[f"signal/{kind}s"] += 1
        reading = Reading(body, kind, largest=LARGEST if kind == "sitemap" else LARGEST_FEED)
        waiting: list[Signal] = []
        for part in reading:
            self.counts["signal/entries"] += len(part)
            for entry in part:
                news = self._told.news(entry, site.urls[flight.final], now)
                if isinstance(news, str):
                    self.counts[f"signal/{news}"] += 1
                elif (page := site.find(news.url)) not in (-1, flight.pick.key):
                    waiting.append(Signal(page, site.hosts[page], news.modified, kind))
            while len(waiting) >= _AT_ONCE:
                yield waiting[:_AT_ONCE]
                del waiting[:_AT_ONCE]
        yield waiting
        if reading.cut:
            self.counts["signal/cut"] += 1
