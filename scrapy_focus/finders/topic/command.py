"""``scrapy focus-topic URL... --examples DIR``: as many pages on a topic as possible, on many hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.finders.kit.commands.finding import FindCommand
from scrapy_focus.finders.kit.records.folder_names import PAGES

if TYPE_CHECKING:
    from scrapy import Spider

    from scrapy_focus.finders.kit.arguments.finder_arguments import FinderArguments


class TopicCommand(FindCommand):
    """Finds pages on a topic, wherever they are."""

    command = "focus-topic"
    arguments = "URL|FILE... --examples DIR|--model FILE|--keywords WORDS [options]"
    summary = "Find pages on a topic, on many hosts"
    details = (
        "Find pages on a topic, from some pages to start from: URLs, or files with a URL on each line. What is on the "
        "topic, examples say, keywords, or both, or a model that was trained before. The crawl learns which links "
        "lead there, and follows them to other hosts. It obeys robots.txt, and sends each host a request a second. "
        "Stop it with Ctrl-C; the same command resumes there."
    )
    folder = "pages"
    starts = "seeds"
    list_name = PAGES
    asks_for_urls = "where to start? Give pages on the topic"
    example = "https://example.org/ ..."

    def takes(self) -> type[FinderArguments]:
        from scrapy_focus.finders.topic.arguments import TopicArguments

        return TopicArguments

    def spider(self) -> type[Spider]:
        from scrapy_focus.finders.topic.spider import TopicSpider

        return TopicSpider
