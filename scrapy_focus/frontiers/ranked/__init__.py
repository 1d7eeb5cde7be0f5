"""Queued links in the order of their ranks."""
