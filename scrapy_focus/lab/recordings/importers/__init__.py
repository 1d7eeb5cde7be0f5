"""Makes recordings of what others wrote: folders, WARC files, the HTTP cache of Scrapy."""
