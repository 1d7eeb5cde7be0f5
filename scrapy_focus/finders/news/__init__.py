"""Watch a site for new articles: ``scrapy focus-watch``, ``scrapy crawl news``."""
