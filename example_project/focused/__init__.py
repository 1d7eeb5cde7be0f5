"""An example project: spiders that use the learning frontier of scrapy_focus."""
