"""Which URLs a crawl may request."""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_focus.finders.kit.arguments.argument import Arguments


@dataclass(frozen=True, kw_only=True)
class ScopeArguments(Arguments):
    """Which URLs a crawl may request."""

    heading = "scope"
