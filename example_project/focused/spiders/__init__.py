"""The spiders: ``scrapy list`` names them."""
