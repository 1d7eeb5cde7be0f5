"""``scrapy crawl important -a root=https://...``: the most important pages of a site, with few requests."""

from scrapy_focus.spiders.important import ImportantSpider


class Important(ImportantSpider):
    """What ``scrapy_focus`` brings; say here what your own crawls do otherwise."""
