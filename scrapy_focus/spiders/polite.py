"""Public name of :mod:`scrapy_focus.finders.kit.spiders.polite`, the settings of polite crawls."""

from scrapy_focus.finders.kit.spiders.polite import *  # noqa: F403
