"""Does it pay to read the sitemaps that robots.txt names? Crawls of the bundled portal with one, and of real ones without.

The portal is given a sitemap of all its pages (an index of files of 500 URLs, no data files among them), or one of half of
them that is years old. The spider is ``datasets``, with ``sitemaps=yes`` and ``sitemaps=no``; measured are the files that
were found with each budget, over several seeds of portal and policy. Not measured: time. ::

    python benchmarks/sitemaps.py --seeds 5
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import statistics
import sys
import tempfile
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy.crawler import AsyncCrawlerRunner

from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.lab.sites.portal.portal import Page, StatisticsPortal
from scrapy_focus.lab.sites.server import SiteServer

if TYPE_CHECKING:
    from collections.abc import Sequence

MARKS = (100, 200, 300, 400)
_IN_A_FILE = 500


class WithSitemap:
    """The portal with a sitemap of these pages."""

    def __init__(self, portal: StatisticsPortal, paths: Sequence[str]) -> None:
        self.portal = portal
        self.parts = [paths[at : at + _IN_A_FILE] for at in range(0, len(paths), _IN_A_FILE)]
        self.root = ""

    def fetch(self, path: str) -> Page:
        """Return the answer to a request."""
        if path == "/robots.txt":
            body = self.portal.fetch(path).body + b"\nSitemap: /sitemap.xml\n"
            return Page.of(body, mime="text/plain")
        if path == "/sitemap.xml":
            urls = [f"{self.root}sitemap-{number}.xml" for number in range(len(self.parts))]
            return _sitemap("sitemapindex", "sitemap", urls)
        if path.startswith("/sitemap-"):
            part = self.parts[int(path.removeprefix("/sitemap-").removesuffix(".xml"))]
            return _sitemap("urlset", "url", [self.root + each.lstrip("/") for each in part])
        return self.portal.fetch(path)


def _sitemap(root: str, element: str, urls: Sequence[str]) -> Page:
    rows = "".join(f"<{element}><loc>{url}</loc></{element}>" for url in urls)
    text = f'<?xml version="1.0"?><{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</{root}>'
    return Page.of(text.encode(), mime="application/xml")


def crawl(portal: StatisticsPortal, paths: Sequence[str], sitemaps: str, seed: int) -> list[int]:
    """Return how many files were found with each budget."""
    site = WithSitemap(portal, paths)
    with SiteServer(site) as server, tempfile.TemporaryDirectory() as folder:
        site.root = server.url
        settings = {
            "ADDONS": {"scrapy_focus.Addon": 500}, "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False,
            "TWISTED_REACTOR_ENABLED": False, "LOG_ENABLED": False, "FOCUS_PROGRESS": "off", "FOCUS_SEED": seed,
            "ROBOTSTXT_OBEY": True, "FOCUS_MAX_INFLIGHT": 4,
        }  # fmt: skip
        runner = AsyncCrawlerRunner(settings)
        crawler = runner.create_crawler(DatasetsSpider)
        given = {"root": server.url, "budget": str(MARKS[-1]), "out": folder, "sitemaps": sitemaps}
        asyncio.run(_run(runner, crawler, given))
        log = [(urlsplit(request.path).path, request.status) for request in server.log]
    targets = {urlsplit(path).path for path in portal.targets()}
    return [len({path for path, status in log[:mark] if status == 200} & targets) for mark in MARKS]


async def _run(runner: AsyncCrawlerRunner, crawler: object, given: dict[str, str]) -> None:
    await runner.crawl(crawler, **given)  # type: ignore[arg-type]


def main() -> int:
    """Print a row for each crawl, then the means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--pages", type=int, default=600)
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    rows: dict[str, list[list[int]]] = {}
    for seed in range(args.seeds):
        portal = StatisticsPortal(pages=args.pages, seed=seed)
        pages = list(portal.html_paths())
        for label, paths, sitemaps in (
            ("no sitemap read", pages, "no"),
            ("sitemap of all pages", pages, "yes"),
            ("sitemap of half of them", pages[::2], "yes"),
        ):
            found = crawl(portal, paths, sitemaps, seed)
            rows.setdefault(label, []).append(found)
            print(seed, label, found, flush=True)
    print("\n| portal of", args.pages, "pages |", " | ".join(f"files at {mark}" for mark in MARKS), "|")
    print("|---|" + "--:|" * len(MARKS))
    for label, crawls in rows.items():
        cells = [f"{statistics.mean(each):.1f} ± {statistics.stdev(each):.1f}" for each in zip(*crawls, strict=True)]
        print(f"| {label} | " + " | ".join(cells) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
