"""Public name of :class:`~scrapy_focus.finders.topic.spider.TopicSpider`."""

from scrapy_focus.finders.topic.spider import TopicSpider

__all__ = ["TopicSpider"]
