"""Crawls a site that it serves itself, and compares with breadth-first: ``python example_project/demo.py``."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from scrapy_focus.core.printable import printable
from scrapy_focus.engine.ending import STATUS
from scrapy_focus.engine.progress import duration
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.lab.sites.server import SiteServer

PROJECT = Path(__file__).parent
BETWEEN = 3.0  # seconds between two lines that say how far a crawl is
SECONDS_PER_REQUEST = 0.015  # on two cores of 2023
BREADTH = 2.75  # requests of breadth-first order for each of the learning crawl
BREADTH_FIRST = "scrapy_focus.policies.orderings.BreadthFirst"


def crawl(console: Console, server: SiteServer, out: Path, *arguments: str) -> int:
    """Run the spider as a user would, and return how many requests it sent.

    On a terminal the crawl shows its panel; elsewhere a line says every few seconds how far it is.
    """
    command = [sys.executable, "-m", "scrapy", "crawl", "datasets", "-a", f"root={server.url}", "-a", f"out={out}"]
    command += arguments
    settings = {"DOWNLOAD_DELAY": "0", "CONCURRENT_REQUESTS_PER_DOMAIN": "8"}
    quiet = {
        "TELNETCONSOLE_ENABLED": "0",
        "REMOTE_CONTROL_ENABLED": "0",
        "STATS_DUMP": "0",
        "LOG_LEVEL": "WARNING",
        "LOG_FORMAT": "%(message)s",
    }
    for name, value in (settings | quiet).items():
        command += ["-s", f"{name}={value}"]
    with subprocess.Popen(command, cwd=PROJECT, env=os.environ | {"PYTHONWARNINGS": "ignore"}) as process:
        while True:
            try:
                status = process.wait(None if sys.stderr.isatty() else BETWEEN)
                break
            except subprocess.TimeoutExpired:
                console.print(f"  {server.requests:,} requests, {len(listed(out)):,} files")
    if status not in (0, STATUS["budget"]):
        sys.exit(status)
    return server.requests


def listed(out: Path) -> list[dict[str, Any]]:
    """Return what the manifest of a folder lists so far."""
    manifest = out / "manifest.jsonl"
    lines = manifest.read_text(encoding="utf-8").splitlines(keepends=True) if manifest.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def main() -> None:
    """Crawl with the learning frontier, then breadth-first until as many files are found, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=2000, help="size of the site")
    parser.add_argument("--budget", type=int, default=1000, help="requests that the learning crawl may use")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder for the files (emptied first)")
    options = parser.parse_args()
    out = options.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    console, portal = Console(highlight=False), StatisticsPortal(pages=options.pages, seed=0)
    console.rule(f"a statistics portal: {portal.n_pages:,} pages, {portal.n_targets:,} data files")
    console.print(
        f"This machine serves the portal to itself, nothing leaves it. It is crawled twice: with {options.budget:,} "
        "requests in the order that the frontier learns, and then breadth-first, for as many files. Both together take "
        f"{duration(SECONDS_PER_REQUEST * (options.budget + BREADTH * options.budget))} or so; Ctrl-C stops."
    )
    console.rule("1 of 2: in the order that the frontier learns")
    with SiteServer(portal) as server:
        console.print(f"[bold]scrapy crawl datasets -a root={server.url} -a budget={options.budget}")
        used = crawl(console, server, out, "-a", f"budget={options.budget}", "-s", "FOCUS_SEED=0")
    files = listed(out)

    console.rule(f"2 of 2: breadth-first, until {len(files):,} files are found")
    with SiteServer(portal) as server:
        stop = ["-s", f"CLOSESPIDER_ITEMCOUNT={len(files)}", "-s", f"FOCUS_POLICY={BREADTH_FIRST}"]
        breadth = crawl(console, server, out / "breadth-first", *stop)

    table = Table("url", "size", "found through", title="the last files")
    for file in files[-5:]:
        table.add_row(Text(printable(file["url"])), f"{file['size']:,}", Text(printable(file["anchor"])))
    console.print(table)
    console.print(
        f"[bold]{len(files):,} files[/] of {portal.n_targets:,} for [bold]{used:,} requests[/]; breadth-first needed "
        f"[bold]{breadth:,}[/], {breadth / used:.1f} times as many."
    )
    page = out / "index.html"
    if page.exists():
        console.print(f"Open this page in a browser: [bold]{os.path.relpath(page)}", soft_wrap=True)
    else:
        console.print(f"The files and their manifest are in {os.path.relpath(out)}.", soft_wrap=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
