"""Requests that a browser sends for a page (scrapy-playwright), under the budget and the rules of the crawl."""
