"""Revisits pages: servers are asked whether they changed, and spiders receive the changed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.setting import Setting, flag

if TYPE_CHECKING:
    from scrapy_focus.engine.feature import Feature
    from scrapy_focus.engine.host import Host

UNCHANGED = Setting("FOCUS_UNCHANGED", flag(), default=False)
SETTINGS = (UNCHANGED,)


def make(host: Host) -> Feature | None:
    """Return the feature if the policy revisits pages (``again``)."""
    if not host.crawl.comes_back:
        return None
    from scrapy_focus.features.revisits.feature import Visits

    return Visits(host, shows_unchanged=UNCHANGED.of(host.crawler.settings))
