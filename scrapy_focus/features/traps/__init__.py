"""Limits endless sites: too many links on a page, too deep paths, the same page at too many URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.setting import Setting, whole

if TYPE_CHECKING:
    from scrapy_focus.engine.feature import Feature
    from scrapy_focus.engine.host import Host

MAX_COPIES = Setting("FOCUS_MAX_COPIES", whole(), default=100, unit="URLs with the same HTML page")
MAX_FOLDERS = Setting("FOCUS_MAX_FOLDERS", whole(), default=32, unit="parts of the path of a URL")
MAX_LINKS = Setting("FOCUS_MAX_LINKS", whole(), default=6000, unit="new links of one page")
MAX_REPEATS = Setting("FOCUS_MAX_REPEATS", whole(), default=5, unit="times that one part occurs in the path of a URL")
SETTINGS = (MAX_COPIES, MAX_FOLDERS, MAX_LINKS, MAX_REPEATS)


def make(host: Host) -> Feature | None:
    """Return the feature, unless all of ``FOCUS_MAX_LINKS``, ``_FOLDERS``, ``_REPEATS`` and ``_COPIES`` are 0."""
    from scrapy_focus.features.traps.feature import Traps
    from scrapy_focus.features.traps.patterns import Limits

    settings = host.crawler.settings
    limits = Limits(
        links=MAX_LINKS.of(settings),
        folders=MAX_FOLDERS.of(settings),
        repeats=MAX_REPEATS.of(settings),
        copies=MAX_COPIES.of(settings),
    )
    return Traps(limits, host) if any(limits) else None
