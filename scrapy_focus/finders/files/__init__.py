"""Finds data files, and stores them: ``scrapy focus-files``, ``scrapy crawl datasets``."""
