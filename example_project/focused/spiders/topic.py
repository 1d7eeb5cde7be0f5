"""``scrapy crawl topic -a examples=DIR -a seeds=FILE``: pages on a topic, on many hosts."""

from scrapy_focus.spiders.topic import TopicSpider


class Topic(TopicSpider):
    """The spider of ``scrapy_focus``; override it here for your crawls."""
