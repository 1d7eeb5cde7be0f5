"""Frontiers in one SQLite file."""
