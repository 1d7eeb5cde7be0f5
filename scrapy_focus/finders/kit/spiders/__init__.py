"""Base classes of spiders, and the Scrapy components that they use."""
