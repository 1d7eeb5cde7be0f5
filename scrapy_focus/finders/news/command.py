"""``focus watch https://... --rate 2000/day``: new articles on a site, soon after they appear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

from scrapy_focus.finders.kit.commands.finding import FindCommand
from scrapy_focus.finders.kit.records.folder_names import NEWS

if TYPE_CHECKING:
    import argparse

    from scrapy import Spider

    from scrapy_focus.finders.kit.arguments.finder_arguments import FinderArguments


class WatchCommand(FindCommand):
    """Watches one or more sites for new articles."""

    command = "focus-watch"
    arguments = "URL|FILE|-... --rate 2000/day [options]"
    summary = "Watch a site for new articles, with a given number of requests per day"
    details = (
        "Find new articles on a site, soon after they appear. The crawl starts at URL, learns which pages link to new "
        "articles and how often, and revisits these pages as often as --rate allows. It writes news.jsonl (a line for "
        "each article when it is first seen and for each change), feed.xml (for feed readers), fresh.csv (how often "
        "each page is visited) and index.html. It stays on the hosts of its URLs, and obeys robots.txt. It runs until "
        "you stop it with Ctrl-C or SIGTERM (status 130); the same command resumes it."
    )
    folder = "watched"
    list_name = NEWS
    results = "news of another watch"
    noun = "watch"
    asks_for_urls = "what to watch? Give a URL"
    example = "https://example.org/ --rate 2000/day"
    prints = "the URLs of new articles"

    def read(self, args: list[str], opts: argparse.Namespace) -> tuple[dict[str, Any], FinderArguments]:
        if args and not opts.rate:
            raise UsageError("give a rate of requests, such as --rate 2000/day or --rate 50/hour")
        return super().read(args, opts)

    def takes(self) -> type[FinderArguments]:
        from scrapy_focus.finders.news.arguments import NewsArguments

        return NewsArguments

    def spider(self) -> type[Spider]:
        from scrapy_focus.finders.news.spider import NewsSpider

        return NewsSpider
