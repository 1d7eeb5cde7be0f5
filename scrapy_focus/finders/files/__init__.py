"""Find and store data files: ``scrapy focus-files``, ``scrapy crawl datasets``."""
