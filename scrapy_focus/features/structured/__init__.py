"""Counts what the pages of a crawl say to machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.goals.structured import StructuredDataGoal

if TYPE_CHECKING:
    from scrapy_focus.engine.feature import Feature
    from scrapy_focus.engine.host import Host


def make(host: Host) -> Feature | None:
    """Return the feature where pages with structured data are looked for (``FOCUS_STRUCTURED``)."""
    if not isinstance(host.config.goal, StructuredDataGoal):
        return None
    from scrapy_focus.features.structured.feature import CountStructured

    return CountStructured(host, host.config.goal)
