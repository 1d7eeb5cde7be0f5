"""Crawls a site that it serves itself, and compares with breadth-first: ``python example_project/demo.py``."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from scrapy_focus.core.printable import printable
from scrapy_focus.sites.portal.portal import StatisticsPortal
from scrapy_focus.sites.server import SiteServer

PROJECT = Path(__file__).parent
BREADTH_FIRST = "scrapy_focus.policies.orderings.BreadthFirst"


def crawl(url: str, out: Path, *arguments: str) -> None:
    """Run the spider as a user would; on a terminal it shows its panel."""
    command = [sys.executable, "-m", "scrapy", "crawl", "datasets", "-a", f"root={url}", "-a", f"out={out}", *arguments]
    settings = {"DOWNLOAD_DELAY": "0", "CONCURRENT_REQUESTS_PER_DOMAIN": "8", "LOGSTATS_INTERVAL": "2"}
    quiet = {
        "TELNETCONSOLE_ENABLED": "0",
        "REMOTE_CONTROL_ENABLED": "0",
        "STATS_DUMP": "0",
        "LOG_FORMAT": "%(message)s",
    }
    for name, value in (settings | quiet).items():
        command += ["-s", f"{name}={value}"]
    subprocess.run(command, cwd=PROJECT, env=os.environ | {"PYTHONWARNINGS": "ignore"}, check=True)


def main() -> None:
    """Crawl with the learning frontier, then breadth-first until as many files are found, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=2000, help="size of the site")
    parser.add_argument("--budget", type=int, default=1000, help="requests that the learning crawl may use")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder for the files (emptied first)")
    options = parser.parse_args()
    out = options.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    console, portal = Console(), StatisticsPortal(pages=options.pages, seed=0)
    console.rule(f"a statistics portal: {portal.n_pages:,} pages, {portal.n_targets:,} data files")

    with SiteServer(portal) as server:
        console.print(
            f"[bold]scrapy crawl datasets -a root={server.url} -a budget={options.budget} -s DOWNLOAD_DELAY=0 "
            "-s CONCURRENT_REQUESTS_PER_DOMAIN=8"
        )
        crawl(server.url, out, "-a", f"budget={options.budget}", "-s", "FOCUS_SEED=0", "-s", "LOG_LEVEL=INFO")
        used = server.requests
    files = [json.loads(line) for line in (out / "manifest.jsonl").read_text().splitlines()]

    console.rule("the same number of files, breadth-first")
    with SiteServer(portal) as server:
        stop = ["-s", f"CLOSESPIDER_ITEMCOUNT={len(files)}", "-s", "LOG_LEVEL=ERROR", "-s", "FOCUS_PROGRESS=auto"]
        crawl(server.url, out / "breadth-first", "-s", f"FOCUS_POLICY={BREADTH_FIRST}", *stop)
        breadth = server.requests

    table = Table("url", "size", "found through", title="the last files")
    for file in files[-5:]:
        table.add_row(Text(printable(file["url"])), f"{file['size']:,}", Text(printable(file["anchor"])))
    console.print(table)
    console.print(
        f"[bold]{len(files):,} files[/] of {portal.n_targets:,} for [bold]{used:,} requests[/]; breadth-first needed "
        f"[bold]{breadth:,}[/], {breadth / used:.1f} times as many."
    )
    console.print(f"The files and their manifest are in {os.path.relpath(out)}.")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
