"""``scrapy crawl important -a root=https://...``: the most important pages of a site, with few requests."""

from scrapy_focus.spiders.important import ImportantSpider


class Important(ImportantSpider):
    """The spider of ``scrapy_focus``; override it here for your crawls."""
