"""``scrapy crawl news -a root=https://... -a rate=2000/day``: new articles on some sites, soon after they appear."""

from scrapy_focus.spiders.news import NewsSpider


class News(NewsSpider):
    """The spider of ``scrapy_focus``; override it here for your crawls."""
