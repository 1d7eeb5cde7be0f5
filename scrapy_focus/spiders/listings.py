"""Public names of :mod:`scrapy_focus.finders.kit.spiders.listings`."""

from scrapy_focus.finders.kit.spiders.listings import NamedSitemaps, listing_links

__all__ = ["NamedSitemaps", "listing_links"]
