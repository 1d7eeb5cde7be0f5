"""``scrapy crawl topic -a examples=DIR -a seeds=FILE``: as many pages on a topic as possible, on many hosts."""

from scrapy_focus.spiders.topic import TopicSpider


class Topic(TopicSpider):
    """What ``scrapy_focus`` brings; say here what your own crawls do otherwise."""
