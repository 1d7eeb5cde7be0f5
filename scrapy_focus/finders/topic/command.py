"""``focus topic URL... --examples DIR``: pages on a topic, on many hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.finders.kit.commands.finding import FindCommand
from scrapy_focus.finders.kit.records.folder_names import PAGES

if TYPE_CHECKING:
    from scrapy import Spider

    from scrapy_focus.finders.kit.arguments.finder_arguments import FinderArguments


class TopicCommand(FindCommand):
    """Finds pages on a topic, on any host."""

    command = "focus-topic"
    arguments = "URL|FILE|-... --about SENTENCE|--keywords WORDS|--examples DIR|--model FILE [options]"
    summary = "Find pages on a topic, on many hosts"
    details = (
        "Find pages on a topic, on any host. The crawl starts at the given pages: URLs, or files with one URL per "
        "line. Define the topic by a sentence, keywords, examples or several of these, or by a trained model. The "
        "crawl learns which links lead to pages on the topic, and follows them to other hosts. It obeys robots.txt, "
        "and sends one request per second to each host. Stop it with Ctrl-C; the same command resumes it."
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
