"""The JSON that the scripts of a page ask for: what is in it, and how it stands in for a browser."""
