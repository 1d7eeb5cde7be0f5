"""Find pages on a topic, on any host: ``scrapy focus-topic``, ``scrapy crawl topic``."""
