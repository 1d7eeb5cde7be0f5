"""``scrapy focus-structured URL... --types Recipe``: pages that describe such things to machines, and what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.finders.kit.commands.finding import FindCommand
from scrapy_focus.finders.kit.records.folder_names import ENTITIES

if TYPE_CHECKING:
    from scrapy import Spider

    from scrapy_focus.finders.kit.arguments.finder_arguments import FinderArguments


class StructuredCommand(FindCommand):
    """Finds pages with structured data, and what it says."""

    command = "focus-structured"
    arguments = "URL|FILE... [--types TYPES] [options]"
    summary = "Find pages with structured data, such as recipes or events"
    details = (
        "Find pages that describe things in a form that machines read (JSON-LD or microdata), such as recipes, events, "
        "jobs or data sets, from some pages to start from: URLs, or files with a URL on each line; and store what they "
        "say, a line of JSON for each thing. The crawl learns which hosts and links lead there, and follows them to "
        "other hosts, unless it is told to stay. It obeys robots.txt, and sends each host a request a second. Stop it "
        "with Ctrl-C; the same command resumes there, and with a larger --budget after its end, too."
    )
    folder = "entities"
    starts = "seeds"
    list_name = ENTITIES
    asks_for_urls = "where to start? Give some pages"
    example = "https://example.org/ ..."
    prints = "the entities that are found, as JSON"

    def takes(self) -> type[FinderArguments]:
        from scrapy_focus.finders.structured.arguments import StructuredArguments

        return StructuredArguments

    def spider(self) -> type[Spider]:
        from scrapy_focus.finders.structured.spider import StructuredSpider

        return StructuredSpider
