"""Sites that were recorded, to be crawled again without a network."""
