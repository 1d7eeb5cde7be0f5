"""What ``FOCUS_LEARN_REDIRECTS`` saves on sites that redirect by a slash, and what a wrong guess costs.

A synthetic site has 200 pages, which are linked without a slash. All of them, or those of one half of its four
folders, redirect to the URL with a slash; elsewhere that URL is not found. Or each page is linked in both spellings.
Each crawl follows all links, over HTTP on 127.0.0.1 with one request in flight, with the setting off and on, with the
default policy and breadth-first. Measured: requests until everything was fetched, wrong guesses, and pages that were
never fetched. Not measured: time, real networks, and redirects to https or ``www.``. ::

    python benchmarks/redirects.py --seeds 5
"""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING, Any, cast

import scrapy
from scrapy.crawler import AsyncCrawlerRunner

from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.lab.sites.server import SiteServer

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDERS, PAGES = 4, 50
KINDS = ("all redirect", "first half of the folders", "every other folder", "both spellings", "none redirects")
POLICIES = {"default": {}, "breadth-first": {"FOCUS_POLICY": "scrapy_focus.policies.orderings.BreadthFirst"}}


class Folders:
    """A home page with links to all folders, which link to their pages."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def redirects(self, folder: int) -> bool:
        """Whether the pages of a folder redirect to URLs with a slash."""
        if self.kind == "first half of the folders":
            return folder < FOLDERS // 2
        if self.kind == "every other folder":
            return folder % 2 == 0
        return self.kind != "none redirects"

    def fetch(self, path: str) -> Page:
        parts, has_slash = path.strip("/").split("/"), path.endswith("/")
        if path == "/":
            return _page(*(f"/folder-{k}.html" for k in range(FOLDERS)))
        folder = int(parts[0].removeprefix("folder-").removesuffix(".html")) if "folder" in path else -1
        if folder >= 0 and path.endswith(".html"):
            links = [f"/folder-{folder}/{i}" for i in range(PAGES)]
            return _page(*(f"{link}/" for link in links if self.kind == "both spellings"), *links)
        if folder < 0 or has_slash != self.redirects(folder):
            is_redirect = folder >= 0 and not has_slash
            return Page.of(b"", status=301, location=f"{path}/") if is_redirect else Page.of(b"none", status=404)
        return _page("/", text=f"This is page {path}")


def _page(*links: str, text: str = "") -> Page:
    anchors = "".join(f'<p><a href="{link}">to {link}</a></p>' for link in links)
    return Page.of(f"<html><body>{text}{anchors}".encode())


class Follower(scrapy.Spider):
    """Follows all links, and remembers the pages."""

    name = "follower"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seen: set[str] = set()

    def parse(self, response: Any) -> Iterator[Any]:
        self.seen.add(response.url)
        yield from response.follow_all(css="a")


async def crawl(kind: str, policy: str, *, on: bool, seed: int) -> tuple[int, int, int]:
    """Return requests, wrong guesses, and pages that were never fetched."""
    with SiteServer(Folders(kind)) as server:
        settings = {
            "SCHEDULER": "scrapy_focus.FocusScheduler", "FOCUS_SEED": seed, "FOCUS_MAX_INFLIGHT": 1,
            "FOCUS_LEARN_REDIRECTS": on, "FOCUS_PROGRESS": "off", "LOG_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False, "TWISTED_REACTOR_ENABLED": False, **POLICIES[policy],
        }  # fmt: skip
        runner = AsyncCrawlerRunner(settings)
        crawler = runner.create_crawler(Follower)
        await runner.crawl(crawler, start_urls=[server.url])
        missing = 1 + FOLDERS + FOLDERS * PAGES - len(cast("Follower", crawler.spider).seen)
        return len(server.log), crawler.stats.get_value("focus/redirect/wrong", 0), missing


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    print("| site | policy | requests, off | on | wrong guesses | pages missing |\n|---|---|---|---|---|---|")
    for kind in KINDS:
        for policy in POLICIES:
            rows = [
                [asyncio.run(crawl(kind, policy, on=on, seed=seed)) for seed in range(asked.seeds)]
                for on in (False, True)
            ]
            means = [[sum(column) / asked.seeds for column in zip(*row, strict=True)] for row in rows]
            (off, _, _), (n, wrong, missing) = means
            print(f"| {kind} | {policy} | {off:.0f} | {n:.0f} | {wrong:.1f} | {missing:.0f} |", flush=True)


if __name__ == "__main__":
    main()
