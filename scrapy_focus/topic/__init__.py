"""Models of topics, which score how relevant a page is, and their training data."""
