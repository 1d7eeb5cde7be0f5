"""``scrapy crawl structured -a seeds=FILE -a types=Recipe``: as many pages as possible that describe what is wanted."""

from scrapy_focus.spiders.structured import StructuredSpider


class Structured(StructuredSpider):
    """What ``scrapy_focus`` brings; say here what your own crawls do otherwise."""
