"""The spiders; ``scrapy list`` lists them."""
