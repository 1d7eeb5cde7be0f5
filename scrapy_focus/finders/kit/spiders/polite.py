"""Polite settings for crawls of sites that are not yours, with all features of this package turned on.

The commands use them where a project does not set anything. A project adopts them with
``from scrapy_focus.finders.kit.spiders.polite import *`` in its ``settings.py``.
"""

import scrapy

import scrapy_focus

ADDONS = {"scrapy_focus.Addon": 500}

USER_AGENT = f"scrapy_focus/{scrapy_focus.__version__} (Scrapy/{scrapy.__version__}; +https://scrapy.org)"
ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_DELAY = 1
COOKIES_ENABLED = False
DOWNLOAD_VERIFY_CERTIFICATES = True

FOCUS_OBEY = ["retry-after", "robots-errors", "crawl-delay", "nofollow"]
FOCUS_PUBLIC_ONLY = True  # unless a start URL has a private address
FOCUS_MAX_INFLATION = 100
FOCUS_POOR_LAST = True
DOWNLOAD_MAXSIZE = 100_000_000
DOWNLOAD_WARNSIZE = 50_000_000
FEED_EXPORT_ENCODING = "utf-8"
FOCUS_EXIT_STATUS = True
