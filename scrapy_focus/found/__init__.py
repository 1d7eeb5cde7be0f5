"""What a crawl for files leaves in its folder, and what the next crawl with the same folder begins with."""
