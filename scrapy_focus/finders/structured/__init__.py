"""Find pages with structured data: ``focus structured``, ``scrapy crawl structured``."""
