"""A frontier in one SQLite file."""

from scrapy_focus.frontiers.sqlite.frontier import SqliteFrontier

__all__ = ["SqliteFrontier"]
