"""A stock Scrapy project, and the same with one line added: items per 100 requests.

``scrapy startproject`` makes the project; its spider follows every link and yields an item on pages of one kind, as
spiders do, and does not use scrapy_focus. The site is the bundled portal (catalogue, news, archives, three languages,
an endless calendar), or a real one (``benchmarks/sites.py``), where an item is a data file. Measured: items whose
pages were fetched within the first 500, 1,000 and 1,500 requests, by the server's log, over several seeds of policy
and, for the portal, site. Not measured: time. ::

    python benchmarks/stock_project.py --seeds 5
    python benchmarks/stock_project.py --seeds 5 --site lily --site sklearn2
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.lab.sites.server import Site, SiteServer
from scrapy_focus.web.mime import DATA_TYPES
from sites import SITES, open_site, read_truth

PORTAL = "portal"
MARKS = (500, 1000, 1500)
SPIDER = """
import scrapy

class DatasetPages(scrapy.Spider):
    name = "dataset_pages"
    allowed_domains = ["127.0.0.1"]
    files = ""  # types of files that are items, in place of pages

    async def start(self):
        yield scrapy.Request(self.root)

    def parse(self, response):
        if not isinstance(response, scrapy.http.HtmlResponse):
            if self.files and response.headers.get("Content-Type", b"").decode().partition(";")[0] in self.files:
                yield {"url": response.url}
            return
        if response.css("#dataset-resources") and not self.files:
            yield {"url": response.url, "title": response.css("h1::text").get()}
        for href in response.css("a::attr(href)").getall():
            if not href.startswith("mailto:"):
                yield response.follow(href)
"""
BREADTH = {
    "DEPTH_PRIORITY": "1",
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
}
CONFIGURATIONS: dict[str, dict[str, str]] = {
    "stock (depth-first)": {},
    "stock, breadth-first settings": BREADTH,
    "+ SCHEDULER line": {"SCHEDULER": "scrapy_focus.FocusScheduler"},
    "+ SCHEDULER line, SB-CLASSIFIER": {"SCHEDULER": "scrapy_focus.SleepingBanditScheduler"},
    "+ SCHEDULER line, tree": {"SCHEDULER": "scrapy_focus.TreeFrontierScheduler"},
    "+ ADDONS line": {"ADDONS": '{"scrapy_focus.Addon": 500}'},
}


def crawl(project: Path, settings: dict[str, str], seed: int, name: str) -> tuple[list[int], int]:
    """Items at each of ``MARKS`` requests, and how many there are on the site."""
    feed = project / "items.jsonl"
    site: Site
    if name == PORTAL:
        site = portal = StatisticsPortal(pages=2000, seed=seed)
        there = sum(b'id="dataset-resources"' in portal.fetch(path).body for path in portal.html_paths())
    else:
        site, there = open_site(name), len(read_truth(name).targets)
    with SiteServer(site) as server:
        command = [
            sys.executable,
            "-m",
            "scrapy",
            "crawl",
            "dataset_pages",
            "-a",
            f"root={server.url}",
            "-O",
            str(feed),
        ]
        given = {"LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": "0", "REMOTE_CONTROL_ENABLED": "0", **settings}
        given |= {"DOWNLOAD_DELAY": "0", "CONCURRENT_REQUESTS_PER_DOMAIN": "8"}
        given["CLOSESPIDER_PAGECOUNT"] = str(MARKS[-1] + 50)
        if settings and settings is not BREADTH:
            given |= {"FOCUS_SEED": str(seed), "FOCUS_PROGRESS": "off"}
        for setting, value in given.items():
            command += ["-s", f"{setting}={value}"]
        if name != PORTAL:
            command += ["-a", f"files={','.join(sorted(DATA_TYPES))}"]
        subprocess.run(command, cwd=project, check=True)
        log = list(server.log)
    paths = {urlsplit(json.loads(line)["url"]).path for line in feed.read_text().splitlines()}
    found = [len({request.path for request in log[:mark] if request.method == "GET"} & paths) for mark in MARKS]
    return found, there


def compare(name: str, project: Path, seeds: int) -> None:
    """Print one line of JSON for each crawl of a site, then a table."""
    rows: dict[str, list[list[int]]] = {label: [] for label in CONFIGURATIONS}
    for seed in range(seeds):
        for label, settings in CONFIGURATIONS.items():
            found, there = crawl(project, settings, seed, name)
            rows[label].append(found)
            print(
                json.dumps({"site": name, "settings": label, "seed": seed, "found": found, "there": there}), flush=True
            )
    print(f"\n| {name} | " + " | ".join(f"items per 100, first {mark:,}" for mark in MARKS) + " |\n|---|---|---|---|")
    for label, runs in rows.items():
        cells = []
        for mark, values in zip(MARKS, zip(*runs, strict=True), strict=True):
            rates = [100 * value / mark for value in values]
            spread = statistics.stdev(rates) if len(rates) > 1 else 0.0
            cells.append(f"{statistics.mean(rates):.1f} ± {spread:.1f}")
        print(f"| {label} | " + " | ".join(cells) + " |")
    print(flush=True)


def main() -> None:
    """Make the project, and crawl each site with each configuration."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--site", action="append", choices=[PORTAL, *SITES], help="one of benchmarks/sites.py")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "scrapy", "startproject", "shop"], cwd=folder, check=True, stdout=subprocess.DEVNULL
        )
        project = Path(folder, "shop")
        (project / "shop" / "spiders" / "dataset_pages.py").write_text(SPIDER)
        for name in options.site or [PORTAL]:
            compare(name, project, options.seeds)


if __name__ == "__main__":
    main()
