"""The add-on: turns on everything in this package with one settings line."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy_focus.config import Config, check_names
from scrapy_focus.core.extras import require_extra
from scrapy_focus.core.setting import is_off
from scrapy_focus.downloadermiddlewares import (
    MeterMiddleware,
    MimeMiddleware,
    ProbeMiddleware,
    PublicOnlyMiddleware,
    RenderMiddleware,
    RevisitMiddleware,
    WarcMiddleware,
    replace_stock,
)
from scrapy_focus.engine.browser.found import set_browser
from scrapy_focus.engine.failure import in_one_line
from scrapy_focus.extensions import FocusExtension
from scrapy_focus.features import rows_of
from scrapy_focus.pipelines import RewardPipeline
from scrapy_focus.scheduler import FocusScheduler
from scrapy_focus.spidermiddlewares import (
    ItemIdMiddleware,
    KnownLinkMiddleware,
    LinkMiddleware,
    PageWishesMiddleware,
    RenderedItemsMiddleware,
)

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from scrapy_focus.core.setting import Setting

_READ_BY_COMPONENTS: tuple[Setting[Any], ...] = (
    Config.budget_bytes,
    Config.item_id,
    Config.longest_wait,
    Config.max_inflation,
    Config.obey,
    Config.public_only,
    Config.render,
    Config.warc,
)


class Addon:
    """``ADDONS = {"scrapy_focus.Addon": 500}`` turns on the scheduler, the middlewares, the pipeline and the extension.

    Values that a project or spider sets are kept: its ``SCHEDULER``, the order of one of our components, or ``None``
    to disable one. ``CONCURRENT_ITEMS`` becomes 4 if it is not set: Scrapy starts as many tasks for each response, and
    its default of 100 halves the speed on small pages. Our middlewares for robots.txt and compression, which do the
    same and more, replace Scrapy's, unless ``DOWNLOADER_MIDDLEWARES`` names those.
    """

    @classmethod
    def update_pre_crawler_settings(cls, settings: BaseSettings) -> None:
        """Apply settings that Scrapy reads before it creates the crawler."""
        settings.set("TWISTED_DNS_RESOLVER", "scrapy_focus.resolver.Resolver", "addon")

    def update_settings(self, settings: BaseSettings) -> None:
        with in_one_line():
            if is_off(settings.get(Config.features.name)):  # otherwise the scheduler does so, when they can be imported
                check_names(settings, rows_of(settings))
            for row in _READ_BY_COMPONENTS:
                row.of(settings)
            if Config.warc.of(settings):
                require_extra("FOCUS_WARC", "warc", "warcio")
        if settings.get(Config.cluster.name) and settings.get("JOBDIR"):  # workers may start at once
            with suppress(OSError):
                Path(settings["JOBDIR"]).mkdir(parents=True, exist_ok=True)
        settings.set("SCHEDULER", FocusScheduler, "addon")
        settings.set("CONCURRENT_ITEMS", 4, "addon")
        for name, component, order in (
            ("SPIDER_MIDDLEWARES", LinkMiddleware, 10),
            ("SPIDER_MIDDLEWARES", KnownLinkMiddleware, 950),
            ("SPIDER_MIDDLEWARES", PageWishesMiddleware, 955),
            ("SPIDER_MIDDLEWARES", ItemIdMiddleware, 960),
            ("SPIDER_MIDDLEWARES", RenderedItemsMiddleware, 970),
            ("DOWNLOADER_MIDDLEWARES", ProbeMiddleware, 110),
            ("DOWNLOADER_MIDDLEWARES", MimeMiddleware, 120),
            ("DOWNLOADER_MIDDLEWARES", PublicOnlyMiddleware, 940),
            ("DOWNLOADER_MIDDLEWARES", RevisitMiddleware, 945),
            ("DOWNLOADER_MIDDLEWARES", RenderMiddleware, 948),
            ("DOWNLOADER_MIDDLEWARES", MeterMiddleware, 950),
            ("DOWNLOADER_MIDDLEWARES", WarcMiddleware, 952),
            ("ITEM_PIPELINES", RewardPipeline, 900),
            ("EXTENSIONS", FocusExtension, 500),
        ):
            settings.setdefault_in_component_priority_dict(name, component, order)
        replace_stock(settings)
        if Config.render.of(settings) != "never":
            set_browser(settings)
