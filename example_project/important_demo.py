"""Crawl a third of a synthetic web by importance, and compare with breadth-first.

Run it in a clone, as the web is in ``benchmarks``: ``python example_project/important_demo.py``.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from scrapy_focus.core.printable import printable
from scrapy_focus.engine.ending import STATUS
from scrapy_focus.lab.replay.importance_metrics import pagerank
from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.lab.sites.server import SiteServer

PROJECT = Path(__file__).parent
sys.path.insert(0, str(PROJECT.parent / "benchmarks"))
from linkweb.web import LinkWeb  # noqa: E402


class Served:
    """A web that consists of links only, as one site: each of its hosts is a folder."""

    def __init__(self, pages: int) -> None:
        self.web, start = LinkWeb.make(pages, seed=1, clusters=pages // 300).reached()
        paths = [url.removeprefix("http://").replace(".test", "") for url in self.web.urls]
        paths[start] = ""
        self.paths = [f"/{path}" for path in paths]
        self._numbers = {path: number for number, path in enumerate(self.paths)}

    def fetch(self, path: str) -> Page:
        """Return a page with its links."""
        number = self._numbers.get(path)
        if number is None:
            return Page.of(b"no such page", status=404)
        targets = self.web.targets[self.web.starts[number] : self.web.starts[number + 1]]
        links = "".join(f'<li><a href="{self.paths[other]}">page {other}</a></li>' for other in targets)
        return Page.of(f"<html><title>Page {number}</title><body><ul>{links}</ul></body></html>".encode())

    def importance(self) -> Any:
        """Return the PageRank of each page of the whole web, shape (n_urls,)."""
        return pagerank(self.web.page_links())

    def numbers(self, root: str, urls: list[str]) -> list[int]:
        """Return the numbers of the pages with these URLs."""
        return [self._numbers[f"/{url.removeprefix(root)}"] for url in urls]


def crawl(served: Served, out: Path, *arguments: str) -> list[int]:
    """Run the spider as a user would, and return the pages that it fetched."""
    settings = {
        "DOWNLOAD_DELAY": "0", "CONCURRENT_REQUESTS_PER_DOMAIN": "8", "TELNETCONSOLE_ENABLED": "0",
        "REMOTE_CONTROL_ENABLED": "0", "STATS_DUMP": "0", "LOG_LEVEL": "WARNING", "LOG_FORMAT": "%(message)s",
    }  # fmt: skip
    with SiteServer(served) as server:
        command = [sys.executable, "-m", "scrapy", "crawl", "important", "-a", f"root={server.url}", "-a", f"out={out}"]
        command += [*arguments, *(word for name, value in settings.items() for word in ("-s", f"{name}={value}"))]
        env = os.environ | {"PYTHONWARNINGS": "ignore"}
        status = subprocess.run(command, cwd=PROJECT, env=env, check=False).returncode
        if status not in (0, STATUS["budget"]):
            sys.exit(status)
        with (out / "importance.csv").open(encoding="utf-8-sig", newline="") as file:
            return served.numbers(server.url, [row["url"] for row in csv.DictReader(file) if row["fetched"] == "yes"])


def main() -> None:
    """Crawl by importance, then breadth-first with as many requests, and compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=2000, help="number of pages (default: 2000)")
    parser.add_argument("--out", type=Path, default=Path("demo-output/important"), help="folder, emptied first")
    options = parser.parse_args()
    out = options.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    console, served = Console(highlight=False), Served(options.pages)
    importance = served.importance()
    n = served.web.n_urls
    budget = n // 3
    console.rule(f"a synthetic web: {n:,} pages, {served.web.n_links:,} links")
    console.print(
        f"This machine serves the web to itself; nothing leaves it. A third of it is crawled twice, with {budget:,} "
        "requests each: the most important pages first, judged by the links seen so far, and breadth-first."
    )
    runs = {}
    for number, (name, by) in enumerate({"by importance": "pagerank", "breadth-first": "breadth"}.items(), 1):
        console.rule(f"{number} of 2: {name}")
        console.print(f"[bold]scrapy crawl important -a root=http://127.0.0.1/ -a budget={budget} -a by={by}")
        folder = out if by == "pagerank" else out / by
        runs[name] = crawl(served, folder, "-a", f"budget={budget}", "-a", f"by={by}")

    ranked = np.argsort(-importance, kind="stable")
    best = {f"the best {share} %": {*ranked[: n * share // 100].tolist()} for share in (1, 5, 10, 33)}
    table = Table("", "pages", *best, title="share of the most important pages of the whole web, by true PageRank")
    for name, pages in runs.items():
        shares = [f"{len(those & {*pages}) / max(1, len(those)):.0%}" for those in best.values()]
        table.add_row(name, f"{len(pages):,}", *shares)
    console.print(table)
    console.print(
        f"Open this page in a browser: [bold]{printable(os.path.relpath(out / 'index.html'))}", soft_wrap=True
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
