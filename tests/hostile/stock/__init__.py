"""A Scrapy project as ``scrapy startproject`` makes it, with the one line that names our scheduler."""
