"""Looks into the folder of a crawl, checks it, and repairs it."""
