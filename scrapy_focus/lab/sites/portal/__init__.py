"""A synthetic portal of a statistics office, the one synthetic site that ships."""

from scrapy_focus.lab.sites.portal.portal import StatisticsPortal

__all__ = ["StatisticsPortal"]
