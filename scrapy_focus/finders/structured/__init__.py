"""Find pages with structured data: ``scrapy focus-structured``, ``scrapy crawl structured``."""
