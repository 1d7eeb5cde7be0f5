"""``scrapy crawl structured -a seeds=FILE -a types=Recipe``: pages that describe the wanted things."""

from scrapy_focus.spiders.structured import StructuredSpider


class Structured(StructuredSpider):
    """The spider of ``scrapy_focus``; override it here for your crawls."""
