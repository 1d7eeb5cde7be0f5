"""Public name of :class:`~scrapy_focus.finders.news.spider.NewsSpider`."""

from scrapy_focus.finders.news.spider import NewsSpider

__all__ = ["NewsSpider"]
