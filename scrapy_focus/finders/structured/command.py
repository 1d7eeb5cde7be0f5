"""``focus structured URL... --types Recipe``: pages with structured data, and that data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.finders.kit.commands.finding import FindCommand
from scrapy_focus.finders.kit.records.folder_names import ENTITIES

if TYPE_CHECKING:
    from scrapy import Spider

    from scrapy_focus.finders.kit.arguments.finder_arguments import FinderArguments


class StructuredCommand(FindCommand):
    """Finds pages with structured data, and lists the data."""

    command = "focus-structured"
    arguments = "URL|FILE|-... [--types TYPES] [options]"
    summary = "Find pages with structured data, such as recipes or events"
    details = (
        "Find pages that describe things in machine-readable form (JSON-LD or microdata), such as recipes, events, "
        "jobs or data sets, and store each description as a line of JSON. The crawl starts at the given pages: URLs, "
        "or files with one URL per line. It learns which hosts and links lead to such pages, and follows them to other "
        "hosts, as far as --scope allows. It obeys robots.txt, and sends one request per second to each host. Stop it "
        "with Ctrl-C; the same command resumes it. After it has ended, the same command with a larger --budget, "
        "--time or --size continues it."
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
