"""Watches a site for what is new: ``scrapy focus-watch``, ``scrapy crawl news``."""
