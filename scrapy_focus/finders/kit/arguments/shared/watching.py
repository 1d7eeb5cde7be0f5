"""What a crawl tells other programs while it runs, and when it ends."""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_focus.finders.kit.arguments.argument import Arguments


@dataclass(frozen=True, kw_only=True)
class WatchingArguments(Arguments):
    """What a crawl tells other programs while it runs, and when it ends."""

    heading = "watching"
