"""Models of topics: what says how relevant a page is, and what it learns that from."""
