"""Queued links with vectors, for drawing."""
