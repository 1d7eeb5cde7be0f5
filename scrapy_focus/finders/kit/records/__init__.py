"""Files in the folder of a crawl: written while it runs, and read by the next crawl and by its page."""
