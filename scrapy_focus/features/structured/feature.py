"""Counts the structured data of the pages of a crawl."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, ClassVar

from scrapy_focus.core.printable import printable
from scrapy_focus.engine.feature import Feature
from scrapy_focus.goals.structured import types_seen

if TYPE_CHECKING:
    from scrapy_focus.core.types import Outcome
    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.inflight import Entry
    from scrapy_focus.goals.structured import StructuredDataGoal


_OTHERS = "other types"
_KEPT = 100  # types with a count each


class CountStructured(Feature):
    """Counts what the goal reads of pages, before the goal itself reads it."""

    name: ClassVar[str] = "note"

    def __init__(self, host: Host, goal: StructuredDataGoal) -> None:
        self.host = host
        self.goal = goal
        self._types: set[str] | None = None  # counted types; None: unknown yet

    def outcome(self, entry: Entry, outcome: Outcome) -> None:
        page = self.goal.page_of(outcome)
        if page is None or outcome.changed is False:
            return
        reading = self.goal.reading(page)
        if reading.entities or reading.facts:
            self.host.count("structured/pages")
            self.host.count("structured/entities", len(reading.entities))
            self.host.count("structured/wanted", len(self.goal.wanted(reading)))
            for name, n in Counter(name for entity in reading.entities for name in entity.types).items():
                self.host.count(f"structured/type/{self._counted(printable(name))}", n)
        if reading.broken:
            self.host.count("structured/broken", reading.broken)
        if reading.cut:
            self.host.count("structured/cut")

    def _counted(self, name: str) -> str:
        """Return the name under which a type is counted: memory is bounded, whatever types pages name."""
        if self._types is None:
            self._types = {*types_seen(self.host.status().counts)}  # of earlier runs
        if name in self._types or len(self._types) < _KEPT:
            self._types.add(name)
            return name
        return _OTHERS
