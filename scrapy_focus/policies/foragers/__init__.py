"""Foragers: a fleet of small crawlers, each with its own starting points and its own taste for links."""

from scrapy_focus.policies.foragers.policy import Foragers

__all__ = ["Foragers"]
