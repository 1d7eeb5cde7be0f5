"""Find the most important pages of a site: ``scrapy focus-important``, ``scrapy crawl important``."""
