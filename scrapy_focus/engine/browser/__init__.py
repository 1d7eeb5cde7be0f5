"""What a browser asks for on behalf of a page (scrapy-playwright), under the budget and the rules of the crawl."""
