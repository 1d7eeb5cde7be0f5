"""How a crawl presents itself to sites, and how fast it is."""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_focus.finders.kit.arguments.argument import Arguments


@dataclass(frozen=True, kw_only=True)
class AccessArguments(Arguments):
    """How a crawl presents itself to sites, and how fast it is."""

    heading = "access"
