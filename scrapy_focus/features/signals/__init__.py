"""Passes what sitemaps, feeds and pings say about known pages to the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.abilities import Hears

if TYPE_CHECKING:
    from scrapy_focus.engine.feature import Feature
    from scrapy_focus.engine.host import Host


def make(host: Host) -> Feature | None:
    """Return the feature if the policy listens (``hear``)."""
    if not issubclass(host.policy, Hears):
        return None
    from scrapy_focus.features.signals.feature import Signals

    return Signals(host)
