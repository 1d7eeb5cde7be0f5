"""What a crawl keeps of the pages that it fetches."""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_focus.finders.kit.arguments.argument import Arguments


@dataclass(frozen=True, kw_only=True)
class ContentArguments(Arguments):
    """What a crawl keeps of the pages that it fetches."""

    heading = "contents"
