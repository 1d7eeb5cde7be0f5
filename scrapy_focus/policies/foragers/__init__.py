"""Foragers: a fleet of small crawlers, each with its own starting points and preferences for links."""

from scrapy_focus.policies.foragers.policy import Foragers

__all__ = ["Foragers"]
