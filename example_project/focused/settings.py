"""Settings of the example project: polite by default, with everything of scrapy_focus turned on."""

BOT_NAME = "focused"
SPIDER_MODULES = ["focused.spiders"]
NEWSPIDER_MODULE = "focused.spiders"

ADDONS = {"scrapy_focus.Addon": 500}
DOWNLOADER_MIDDLEWARES = {"focused.middlewares.LongPagesAreCut": 585}

ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_DELAY = 1
COOKIES_ENABLED = False
FEED_EXPORT_ENCODING = "utf-8"
