"""Find and store data files: ``focus files``, ``scrapy crawl datasets``."""
