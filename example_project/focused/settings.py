"""Settings of the example project: polite by default, with everything of scrapy_focus turned on."""

BOT_NAME = "focused"
SPIDER_MODULES = ["focused.spiders"]
NEWSPIDER_MODULE = "focused.spiders"

ADDONS = {"scrapy_focus.Addon": 500}
DOWNLOADER_MIDDLEWARES = {"scrapy_focus.spiders.middlewares.LongPagesAreCut": 585}

ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_DELAY = 1
COOKIES_ENABLED = False

FOCUS_OBEY = ["retry-after", "robots-errors", "crawl-delay", "nofollow"]
FOCUS_PUBLIC_ONLY = True  # unless a start URL has a private address
FOCUS_MAX_INFLATION = 100
DOWNLOAD_MAXSIZE = 100_000_000
DOWNLOAD_WARNSIZE = 50_000_000
FEED_EXPORT_ENCODING = "utf-8"
