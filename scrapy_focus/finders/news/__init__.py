"""Watch a site for new articles: ``focus watch``, ``scrapy crawl news``."""
