"""Looks into the folder of a crawl, and repairs it."""
