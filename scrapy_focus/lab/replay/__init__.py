"""Crawls of recorded sites without a network, and what they would have cost."""
