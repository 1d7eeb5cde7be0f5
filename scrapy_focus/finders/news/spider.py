"""``scrapy crawl news -a root=https://... -a rate=2000/day``: new articles on some sites, soon after they appear."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import DropItem, UsageError
from scrapy.http import HtmlResponse

from scrapy_focus.core.printable import printable
from scrapy_focus.engine.host import host_of
from scrapy_focus.engine.inflight import ResponsePage
from scrapy_focus.engine.marks import LINK, page_of
from scrapy_focus.engine.pages import can_be_read
from scrapy_focus.features import existing
from scrapy_focus.finders.kit.arguments.argument import passed_on
from scrapy_focus.finders.kit.arguments.output import try_out
from scrapy_focus.finders.kit.records.times import time_text
from scrapy_focus.finders.kit.spiders.following_spider import NO_PAGES, FollowingSpider, new_links
from scrapy_focus.finders.kit.spiders.items import NewsArticle
from scrapy_focus.finders.kit.spiders.listings import NamedSitemaps, feeds_named_in, links_of_listing, listing_in
from scrapy_focus.finders.kit.spiders.middlewares import LongPagesAreCut
from scrapy_focus.finders.kit.spiders.print_urls import PrintUrls
from scrapy_focus.finders.kit.spiders.site_spider import SiteSpider
from scrapy_focus.finders.news.arguments import NewsArguments
from scrapy_focus.finders.news.news_list import Article, NewsList
from scrapy_focus.finders.news.watch_notes import WatchNotes
from scrapy_focus.web.digest import text_digest
from scrapy_focus.web.html import link_text
from scrapy_focus.web.mime import FILE_TYPES, blocked_extensions, extension

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_focus.finders.kit.spiders.items import By

_TITLE = 300  # characters of a title


class NewsSpider(FollowingSpider, SiteSpider):
    """Finds new articles on some sites, soon after they appear, until it is stopped.

    The scheduler is :class:`scrapy_focus.FreshScheduler`: it revisits pages when something new is expected on them, as
    often as the rate allows.

    Arguments
    ---------
    root
        URLs to start from, separated by commas, or a file with one per line. The crawl stays on their hosts and
        sub-domains, ignoring ``www.``, and on the hosts that they redirect to.
    rate
        The limit of requests of all kinds per day or hour: ``2000/day``, ``100/hour``.
    hours
        The largest age of a new article at the first visit; 24 by default.
    out
        Folder for the results: ``news.jsonl``, ``feed.xml``, ``fresh.csv`` and ``index.html``. With ``-``, the crawl
        stores nothing, and prints the URLs of new articles, one per line.
    sitemaps
        ``yes``, the default: the sitemaps that robots.txt names are links, too; ``no``: they are not fetched.
    """

    name = "news"
    custom_settings = {
        "SCHEDULER": "scrapy_focus.FreshScheduler",
        "FOCUS_BLOCKED_MIMES": [*NO_PAGES],
        **existing({"FOCUS_IGNORE_PARAMETERS": True}),
        "LOG_LEVEL": "INFO",
    }

    def __init__(self, root: str | Sequence[str] = "", **given: Any) -> None:
        self.asked = asked = NewsArguments.read({"root": root, **given})
        super().__init__(asked.starts, stays=asked.reach == "host", **passed_on(given))
        self.rate = asked.rate
        self.hours = asked.hours
        self.goal = asked.goal
        self.duration = asked.time  # the name that the ending reads
        self.budget = asked.budget
        self.sitemaps = asked.sitemaps
        self.named_sitemaps: NamedSitemaps | None = None  # those of robots.txt
        self.out = None if asked.out == "-" else Path(asked.out).absolute()
        self.news: NewsList | None = None
        self.watching: WatchNotes | None = None
        self._ignored = blocked_extensions() | FILE_TYPES.keys()

    def set_up(self, crawler: Crawler) -> None:
        """Apply the arguments, and prepare the folder.

        Raises
        ------
        UsageError
            If it cannot be written, or contains the news of another crawl.
        """
        settings = crawler.settings
        settings.set("FOCUS_GOAL", self.goal, "spider")
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", LongPagesAreCut, 585)
        if self.rate:
            settings.set("FOCUS_BUDGET_RATE", str(self.rate), "spider")
        self.asked.set_up(crawler)
        if self.sitemaps:
            self.named_sitemaps = NamedSitemaps(crawler)
        if self.out is None:
            settings.setdefault_in_component_priority_dict("ITEM_PIPELINES", PrintUrls, 300)
            return
        settings.setdefault_in_component_priority_dict("ITEM_PIPELINES", ListNews, 300)
        job = settings["JOBDIR"]
        resumes = bool(job) and Path(job, "focus").exists()
        try_out(self.out / "news.jsonl", self.out)
        self.news = NewsList(self.out)
        if len(self.news) and not resumes:
            raise UsageError(
                f"{self.out} contains the news of another crawl: name another folder with -a out=FOLDER, or give the "
                "JOBDIR of that crawl to resume it"
            )
        self.news.begin()
        self.follow_roots(self.out)
        self.watching = WatchNotes(crawler, out=self.out, resumes=resumes, facts=self.facts())

    def facts(self) -> dict[str, Any]:
        """Return the arguments of the crawl, as values of JSON."""
        return {
            "spider": self.name, "roots": self.roots, "types": repr(self.goal), "rate": str(self.rate or ""),
            "until": str(self.duration or ""), "budget": self.budget, "fixed": self.asked.fixed,
            "scope": self.asked.stays_on,
        }  # fmt: skip

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        listing = listing_in(response)
        if listing != "sitemap" or self.sitemaps:
            yield from links_of_listing(response, listing, feeds=True)
        if listing or not isinstance(response, HtmlResponse) or not can_be_read(response):
            return
        yield from self.article(response)
        yield from feeds_named_in(response)
        for url, element in new_links(response, self.notes):
            if extension(url) not in self._ignored:
                yield from self.link(response, url, link_text(element))

    def article(self, response: HtmlResponse) -> Iterator[NewsArticle]:
        """Yield an item for a new article, or for a new version of one."""
        at = self._now()
        reading = self.goal.reading(ResponsePage(response))
        is_known = self.news is not None and response.url in self.news
        if not (is_known or self.goal.is_news(reading, at)):
            return
        title = response.selector.root.find(".//title")
        yield NewsArticle(
            url=response.url,
            title="" if title is None else printable(" ".join("".join(title.itertext()).split()), _TITLE),
            state="changed" if is_known else "new",
            at=at,
            published=self.goal.published(reading, at),
            by=_by(response),
            page="" if response.request is None else page_of(response.request),
            anchor=printable(response.meta.get("link_text", "")),
            digest=reading.digest.hex(),
            text=text_digest(response.selector.root),
        )

    def _now(self) -> float:
        host = host_of(self.crawler)
        return 0.0 if host is None else host.status().at


class ListNews:
    """Adds a line to ``news.jsonl`` for each new article and each change of one, before its page is settled.

    It drops articles that are already listed: fetched again after a kill, or with unchanged text.
    """

    def __init__(self, spider: NewsSpider) -> None:
        self.spider = spider

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler.spider)  # type: ignore[arg-type]  # its only user

    def close_spider(self) -> None:
        if self.spider.watching is not None:
            self.spider.watching.list_pages()

    def process_item(self, item: Any) -> Any:
        news = self.spider.news
        if not isinstance(item, NewsArticle) or news is None:
            return item
        listed = news.see(Article(
            url=item.url, title=item.title, state="changed" if item.state == "changed" else "new", at=item.at,
            first_seen=item.at, published=item.published, by=item.by, page=item.page, anchor=item.anchor,
            digest=item.digest, text=item.text,
        ))  # fmt: skip
        if listed is None:
            raise DropItem(f"{item.url} is listed already", log_level="DEBUG")
        item.first_seen, item.changed_since = time_text(listed.first_seen), time_text(listed.changed_since)
        return item


def _by(response: Response) -> By:
    """Return where the link to a page was found."""
    place = str((response.meta.get(LINK) or {}).get("tag_path", ""))
    for by in ("feed", "sitemap"):
        if place.startswith(f"({by})"):
            return by
    return "page" if response.meta.get("depth", 0) else "start"
