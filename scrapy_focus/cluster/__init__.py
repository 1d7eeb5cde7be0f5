"""One crawl on several machines: a leader has the crawl, and any number of workers fetch for it."""
