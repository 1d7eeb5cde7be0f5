"""Counts the structured data of the pages of a crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.goals.structured import StructuredDataGoal

if TYPE_CHECKING:
    from scrapy_focus.engine.feature import Feature
    from scrapy_focus.engine.host import Host


def make(host: Host) -> Feature | None:
    """Return the feature if pages with structured data are looked for (``FOCUS_STRUCTURED``)."""
    if not isinstance(host.config.goal, StructuredDataGoal):
        return None
    from scrapy_focus.features.structured.feature import CountStructured

    return CountStructured(host, host.config.goal)
