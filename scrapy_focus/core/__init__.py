"""Types, protocols and the loop. Start with ``types``, then ``policy``, then ``crawl``."""
