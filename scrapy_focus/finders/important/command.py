"""``focus important https://...``: the most important pages of a site, with few requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.finders.kit.commands.finding import FindCommand
from scrapy_focus.finders.kit.records.folder_names import PAGES

if TYPE_CHECKING:
    from scrapy import Spider

    from scrapy_focus.finders.kit.arguments.finder_arguments import FinderArguments


class ImportantCommand(FindCommand):
    """Finds the most important pages of one or more sites."""

    command = "focus-important"
    arguments = "URL|FILE|-... [options]"
    summary = "Find the most important pages of a site"
    details = (
        "Fetch the most important pages of a site first, judged by the links seen so far: a page is important if many "
        "important pages link to it. Then rank all pages by PageRank. The crawl starts at URL, stays on the hosts of "
        "its URLs, obeys robots.txt, and sends one request per second. Stop it with Ctrl-C; the same command resumes "
        "it. After it has ended, the same command with a larger --budget, --time or --size continues it."
    )
    folder = "important"
    list_name = PAGES

    def takes(self) -> type[FinderArguments]:
        from scrapy_focus.finders.important.arguments import ImportantArguments

        return ImportantArguments

    def spider(self) -> type[Spider]:
        from scrapy_focus.finders.important.spider import ImportantSpider

        return ImportantSpider
