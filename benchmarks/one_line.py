"""Items of a stock ``CrawlSpider`` in its first pages, without and with the line ``SCHEDULER``.

The spider follows every link and yields an item for each page of a data set, as spiders do; it knows nothing of
scrapy_focus. Everything else is as Scrapy has it: requests leave last in, first out. The site is the bundled portal,
with 130 data sets among news, archives, three languages and a calendar without end. Each seed is another portal of that
kind, and another seed of the policy. Not measured: time. ::

    python benchmarks/one_line.py
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.lab.sites.server import SiteServer

SPIDER = """
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule


class DataSets(CrawlSpider):
    name = "data_sets"
    allowed_domains = ["127.0.0.1"]
    start_urls = ["%s"]
    rules = [Rule(LinkExtractor(), callback="parse_page", follow=True)]

    def parse_page(self, response):
        if isinstance(response, HtmlResponse) and response.css("#dataset-resources"):
            yield {"url": response.url, "title": response.css("h1::text").get()}
"""
LINES = {
    "stock Scrapy": {},
    'SCHEDULER = "scrapy_focus.FocusScheduler"': {"SCHEDULER": "scrapy_focus.FocusScheduler"},
}


def count_items(settings: dict[str, str], *, pages: int, seed: int) -> int:
    """Return how many items the spider yields in its first pages."""
    with tempfile.TemporaryDirectory() as folder, SiteServer(StatisticsPortal(pages=2000, seed=seed)) as server:
        spider, items = Path(folder, "data_sets.py"), Path(folder, "items.jsonl")
        spider.write_text(SPIDER % server.url)
        command = [sys.executable, "-m", "scrapy", "runspider", str(spider), "-O", str(items)]
        given = {"CLOSESPIDER_PAGECOUNT": str(pages), "LOG_LEVEL": "ERROR", "DOWNLOAD_DELAY": "0"} | settings
        if settings:
            given |= {"FOCUS_SEED": str(seed)}
        command += [word for name, value in given.items() for word in ("-s", f"{name}={value}")]
        subprocess.run(command, check=True)
        return len(items.read_text().splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=300, help="pages of each crawl")
    parser.add_argument("--seeds", type=int, default=5, help="portals of each kind")
    options = parser.parse_args()
    for name, settings in LINES.items():
        counts = sorted(count_items(settings, pages=options.pages, seed=seed) for seed in range(options.seeds))
        print(f"{name}: {counts[0]} to {counts[-1]} items in {options.pages} pages ({counts})", flush=True)


if __name__ == "__main__":
    main()
