"""Public name of :class:`~scrapy_focus.finders.important.spider.ImportantSpider`."""

from scrapy_focus.finders.important.spider import ImportantSpider

__all__ = ["ImportantSpider"]
