"""Reads pages, URLs and MIME types."""
