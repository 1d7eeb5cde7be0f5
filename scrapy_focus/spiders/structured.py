"""Public name of :class:`~scrapy_focus.finders.structured.spider.StructuredSpider`."""

from scrapy_focus.finders.structured.spider import StructuredSpider

__all__ = ["StructuredSpider"]
