"""What sitemaps, feeds and pings say of known pages reaches the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy_focus.engine.feature import Feature
    from scrapy_focus.engine.host import Host


def make(host: Host) -> Feature | None:
    """Return the feature where the policy listens (``Policy.hear``)."""
    if not host.policy.can("hear"):
        return None
    from scrapy_focus.features.signals.feature import Signals

    return Signals(host)
