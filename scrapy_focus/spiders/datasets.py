"""Public name of :class:`~scrapy_focus.finders.files.spider.DatasetsSpider`."""

from scrapy_focus.finders.files.spider import DatasetsSpider

__all__ = ["DatasetsSpider"]
