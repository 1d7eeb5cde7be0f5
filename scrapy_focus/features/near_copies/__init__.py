"""Skips links that differ from a known page only in parameters that do not matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.setting import Setting, flag

if TYPE_CHECKING:
    from scrapy_focus.engine.feature import Feature
    from scrapy_focus.engine.host import Host

IGNORE_PARAMETERS = Setting("FOCUS_IGNORE_PARAMETERS", flag(), default=False)
SETTINGS = (IGNORE_PARAMETERS,)


def make(host: Host) -> Feature | None:
    """Return the feature if ``FOCUS_IGNORE_PARAMETERS`` is set."""
    if not IGNORE_PARAMETERS.of(host.crawler.settings):
        return None
    from scrapy_focus.features.near_copies.feature import PARAMETERS, NearCopyFilter

    return NearCopyFilter(host, None if host.job is None else host.job.folder / PARAMETERS)
