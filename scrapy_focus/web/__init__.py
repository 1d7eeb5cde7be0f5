"""How pages, URLs and MIME types are read."""
