"""``scrapy crawl datasets -a root=https://...``: as many data files of a site as possible, with few requests."""

from scrapy_focus.spiders.datasets import DatasetsSpider


class Datasets(DatasetsSpider):
    """The spider of ``scrapy_focus``; override it here for your crawls."""
