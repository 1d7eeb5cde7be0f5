"""Renders pages with scripts in a browser where it is worth it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.abilities import Renders

if TYPE_CHECKING:
    from scrapy_focus.engine.feature import Feature
    from scrapy_focus.engine.host import Host


def make(host: Host) -> Feature | None:
    """Return the feature if the policy renders (``render``), or if ``FOCUS_RENDER`` asks for all pages."""
    if host.config.render != "always" and not issubclass(host.policy, Renders):
        return None
    from scrapy_focus.features.rendering.feature import Rendering

    return Rendering(host)
