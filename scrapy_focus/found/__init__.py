"""What a crawl for files leaves in its folder: for the next crawl with it, and for a person to read."""
