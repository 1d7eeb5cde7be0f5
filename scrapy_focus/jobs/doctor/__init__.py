"""Inspects, checks and repairs the folder of a crawl."""
