"""Commands of the laboratory: ``scrapy focus-record``, ``scrapy focus-compare``."""
