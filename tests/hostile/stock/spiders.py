"""Spiders that know nothing of scrapy_focus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.http import HtmlResponse
from scrapy.spiders import SitemapSpider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response


class StockSpider(Spider):
    """Follows every link on its hosts, and yields an item for each page with an article."""

    name = "stock"

    def __init__(self, root: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.roots = root.split(",")
        self.allowed_domains = [urlsplit(url).hostname or "" for url in self.roots]

    async def start(self) -> AsyncIterator[Any]:
        for url in self.roots:
            yield Request(url)

    def parse(self, response: Response) -> Iterator[Any]:
        if not isinstance(response, HtmlResponse):
            return
        if response.css("article.good"):
            yield {"url": response.url, "title": response.css("title::text").get()}
        for href in response.css("a::attr(href), iframe::attr(src)").getall():
            try:
                yield response.follow(href)
            except ValueError:
                self.logger.debug("no URL: %r", href)


class StockSitemapSpider(SitemapSpider):
    """Reads sitemaps, and yields an item for each page that they list."""

    name = "sitemaps"

    def __init__(self, root: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sitemap_urls = [f"{url.rstrip('/')}/robots.txt" for url in root.split(",")]
        self.allowed_domains = [urlsplit(url).hostname or "" for url in root.split(",")]

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
