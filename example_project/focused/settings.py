"""Settings of the example project: polite by default, with all features of scrapy_focus turned on."""

from scrapy_focus.spiders.polite import *  # noqa: F403

BOT_NAME = "focused"
SPIDER_MODULES = ["focused.spiders"]
NEWSPIDER_MODULE = "focused.spiders"

# Override settings for your crawls here: DOWNLOAD_DELAY = 0.2, USER_AGENT = "mybot (+https://example.org/contact)"
