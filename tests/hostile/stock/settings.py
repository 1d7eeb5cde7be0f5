"""Settings of a stock project, and one line."""

BOT_NAME = "stock"
SPIDER_MODULES = ["stock.spiders"]
NEWSPIDER_MODULE = "stock.spiders"
FEED_EXPORT_ENCODING = "utf-8"

SCHEDULER = "scrapy_focus.FocusScheduler"
