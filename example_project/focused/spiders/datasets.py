"""``scrapy crawl datasets -a root=https://...``: as many data files of a site as possible, with few requests."""

from scrapy_focus.spiders.datasets import DatasetsSpider


class Datasets(DatasetsSpider):
    """What ``scrapy_focus`` brings; say here what your own crawls do otherwise."""
