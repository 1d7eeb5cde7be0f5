"""Sites without end are left: too many links on a page, too deep paths, the same page under too many URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy_focus.engine.feature import Feature
    from scrapy_focus.engine.host import Host


def make(host: Host) -> Feature | None:
    """Return the feature, unless all of ``FOCUS_MAX_LINKS``, ``_FOLDERS``, ``_REPEATS`` and ``_COPIES`` are 0."""
    from scrapy_focus.features.traps.feature import Traps
    from scrapy_focus.features.traps.patterns import Limits

    config = host.config
    limits = Limits(config.max_links, config.max_folders, config.max_repeats, config.max_copies)
    return Traps(limits, host) if any(limits) else None
