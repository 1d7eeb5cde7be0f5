"""Requests the targets of redirects at once where a host redirects only by a slash, to https, or to or from www."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.setting import Setting, flag

if TYPE_CHECKING:
    from scrapy_focus.engine.feature import Feature
    from scrapy_focus.engine.host import Host

LEARN_REDIRECTS = Setting("FOCUS_LEARN_REDIRECTS", flag(), default=True)
SETTINGS = (LEARN_REDIRECTS,)


def make(host: Host) -> Feature | None:
    """Return the feature if ``FOCUS_LEARN_REDIRECTS`` is set, redirects are followed, and no pages are revisited."""
    settings = host.crawler.settings
    if not LEARN_REDIRECTS.of(settings) or host.crawl.comes_back or not settings.getbool("REDIRECT_ENABLED"):
        return None
    from scrapy_focus.features.redirects.feature import ForeseenRedirects

    return ForeseenRedirects(host)
