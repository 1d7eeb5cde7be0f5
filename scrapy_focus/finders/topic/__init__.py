"""Find pages on a topic, on any host: ``focus topic``, ``scrapy crawl topic``."""
