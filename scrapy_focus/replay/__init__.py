"""Sites to crawl again and again: synthetic or recorded, served over HTTP or simulated."""
