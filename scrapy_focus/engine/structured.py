"""Counts what the pages of a crawl say to machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy_focus.core.types import Outcome
    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.inflight import Entry
    from scrapy_focus.goals.structured import StructuredDataGoal


class CountStructured:
    """A listener of outcomes that counts what a goal reads; the goal then finds it read."""

    def __init__(self, host: Host, goal: StructuredDataGoal) -> None:
        self.host = host
        self.goal = goal

    def __call__(self, entry: Entry, outcome: Outcome) -> None:
        page = self.goal.page_of(outcome)
        if page is None:
            return
        reading = self.goal.reading(page)
        if reading.entities or reading.facts:
            self.host.count("structured/pages")
            self.host.count("structured/entities", len(reading.entities))
            self.host.count("structured/wanted", len(self.goal.wanted(reading)))
        if reading.broken:
            self.host.count("structured/broken", reading.broken)
        if reading.cut:
            self.host.count("structured/cut")
