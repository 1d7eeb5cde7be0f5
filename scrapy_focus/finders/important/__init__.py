"""Find the most important pages of a site: ``focus important``, ``scrapy crawl important``."""
