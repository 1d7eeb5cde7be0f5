"""Spiders of this package."""
