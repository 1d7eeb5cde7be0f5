"""What happens between the engine of Scrapy and the crawl."""
