"""Writes the state of a running crawl to files that other programs read: JSON, and metrics for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.setting import Setting, path, seconds

if TYPE_CHECKING:
    from scrapy_focus.engine.feature import Feature
    from scrapy_focus.engine.host import Host

STATS_FILE = Setting("FOCUS_STATS_FILE", path(), default="")
METRICS_FILE = Setting("FOCUS_METRICS_FILE", path(), default="")
STATS_INTERVAL = Setting("FOCUS_STATS_INTERVAL", seconds(least=0.1), default=60.0, unit="seconds")
SETTINGS = (STATS_FILE, METRICS_FILE, STATS_INTERVAL)


def make(host: Host) -> Feature | None:
    """Return the feature if ``FOCUS_STATS_FILE`` or ``FOCUS_METRICS_FILE`` is set."""
    settings = host.crawler.settings
    rows = (STATS_FILE, METRICS_FILE)
    files = {row.name: found for row in rows if (found := row.of(settings))}
    if not files:
        return None
    from scrapy_focus.features.status_files.feature import StatusFiles

    return StatusFiles(host, files, every=STATS_INTERVAL.of(settings))
