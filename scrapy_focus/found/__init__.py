"""What a crawl for files leaves in its folder, and the page that a person reads of it."""
