"""Pages with scripts are looked at in a browser where that pays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.abilities import Renders

if TYPE_CHECKING:
    from scrapy_focus.engine.feature import Feature
    from scrapy_focus.engine.host import Host


def make(host: Host) -> Feature | None:
    """Return the feature where the policy renders (``render``), or ``FOCUS_RENDER`` says that all pages are."""
    if host.config.render != "always" and not issubclass(host.policy, Renders):
        return None
    from scrapy_focus.features.rendering.feature import Rendering

    return Rendering(host)
