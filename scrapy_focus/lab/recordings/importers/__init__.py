"""Makes recordings from other sources: folders, WARC files, the HTTP cache of Scrapy."""
