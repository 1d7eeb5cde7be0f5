"""Recorded sites, to be crawled again without a network."""
