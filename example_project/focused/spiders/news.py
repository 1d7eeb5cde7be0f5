"""``scrapy crawl news -a root=https://... -a rate=2000/day``: what is new on some sites, soon after it appears."""

from scrapy_focus.spiders.news import NewsSpider


class News(NewsSpider):
    """What ``scrapy_focus`` brings; say here what your own crawls do otherwise."""
