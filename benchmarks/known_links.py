"""CPU per page on pages with many links: stock Scrapy and scrapy_focus, with a ``LinkExtractor`` and with ``NewLinks``.

Measured: CPU of the crawler's thread within turns of the event loop, from the opening of the spider to its closing,
divided by the pages, for exhaustive crawls of sites where each page has 20, 100 or 400 links, a third of them
navigation that all pages share (``linked_site.py``, a separate process, on the other core if there is one); how many
turns took more than 50 ms, and the longest. All configurations crawl in turn, so many rounds; the result is the
median of the ratios to the stock crawl of the same round. All have to fetch the same pages and give the same items.
Not measured: starting, imports, other threads (one writes checkpoints with a JOBDIR), memory, waiting. ::

    python benchmarks/known_links.py --rounds 3
    python benchmarks/known_links.py --links 100 --rounds 3 --jobdir
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

SPIDER = """
import asyncio, json, os, time
from asyncio.base_events import BaseEventLoop

import scrapy
from scrapy import signals
from scrapy.linkextractors import LinkExtractor

TURNS = []
RUN = BaseEventLoop._run_once

def run_once(self):
    before = time.thread_time()
    RUN(self)
    TURNS.append(time.thread_time() - before)

BaseEventLoop._run_once = run_once

class Follow(scrapy.Spider):
    name = "follow"
    new = ""

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.opened, signals.spider_opened)
        crawler.signals.connect(spider.closed_, signals.spider_closed)
        if spider.new:
            from scrapy_focus import NewLinks
            spider.extractor = NewLinks()
        else:
            spider.extractor = LinkExtractor()
        return spider

    def opened(self):
        TURNS.clear()

    def closed_(self):
        stats = self.crawler.stats.get_stats()
        measured = {
            "turns": TURNS, "pages": stats.get("response_received_count", 0), "items": stats.get("item_scraped_count", 0),
        }
        with open(os.environ["MEASURED"], "w") as file:
            json.dump(measured, file)

    async def start(self):
        yield scrapy.Request(self.root)

    def parse(self, response):
        if response.xpath("//body[@class='dataset']"):
            yield {"url": response.url}
        for link in self.extractor.extract_links(response):
            yield scrapy.Request(link.url)
"""
ADDON = {"ADDONS": '{"scrapy_focus.Addon": 500}', "FOCUS_PROGRESS": "off"}
SCHEDULERS: dict[str, dict[str, str]] = {
    "default policy": {"SCHEDULER": "scrapy_focus.FocusScheduler"},
    "sleeping bandit": {"SCHEDULER": "scrapy_focus.SleepingBanditScheduler"},
    "tree": {"SCHEDULER": "scrapy_focus.TreeFrontierScheduler"},
    "breadth-first": {
        "SCHEDULER": "scrapy_focus.FocusScheduler", "FOCUS_POLICY": "scrapy_focus.policies.orderings.BreadthFirst",
    },
}  # fmt: skip
NEW = {"new": "1"}
CONFIGURATIONS: dict[str, dict[str, str]] = {
    "stock": {},
    "stock, 4 items": {"CONCURRENT_ITEMS": "4"},
    **{f"{name}, one line": chosen for name, chosen in SCHEDULERS.items()},
    **{f"{name}, one line, NewLinks": chosen | NEW for name, chosen in SCHEDULERS.items()},
    **{f"{name}, add-on": chosen | ADDON for name, chosen in SCHEDULERS.items()},
    **{f"{name}, add-on, NewLinks": chosen | ADDON | NEW for name, chosen in SCHEDULERS.items()},
}


class Measured(NamedTuple):
    """What one crawl took."""

    ms_a_page: float
    turns: int
    late: int  # turns of more than 50 ms of CPU
    longest: float  # turn, in ms
    pages: int
    items: int


def crawl(folder: Path, root: str, settings: dict[str, str], *, core: int | None) -> Measured:
    """Crawl a site to its end."""
    given = {"LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": "0", "REMOTE_CONTROL_ENABLED": "0", "FOCUS_SEED": "1"}
    given |= {"ROBOTSTXT_OBEY": "0", "CONCURRENT_REQUESTS_PER_DOMAIN": "8", **settings}
    new = given.pop("new", "")
    command = [sys.executable, "-m", "scrapy", "runspider", "follow.py", "-a", f"root={root}", "-a", f"new={new}"]
    for name, value in given.items():
        command += ["-s", f"{name}={value}"]
    env = {**os.environ, "MEASURED": str(folder / "measured.json")}
    pin = None if core is None else lambda: os.sched_setaffinity(0, {core})
    done = subprocess.run(command, check=False, cwd=folder, env=env, capture_output=True, text=True, preexec_fn=pin)
    if done.returncode:
        raise SystemExit(f"{command} ended with status {done.returncode}: {done.stderr[-1000:]}")
    shutil.rmtree(folder / "job", ignore_errors=True)
    found: dict[str, Any] = json.loads((folder / "measured.json").read_text())
    turns = [1000 * seconds for seconds in found["turns"]]
    late = sum(turn > 50 for turn in turns)
    return Measured(sum(turns) / found["pages"], len(turns), late, max(turns), found["pages"], found["items"])


def measure(links: int, options: argparse.Namespace) -> None:
    """Print the table of a site."""
    cores = sorted(os.sched_getaffinity(0))
    ours, theirs = (cores[0], cores[-1]) if len(cores) > 1 else (None, None)
    chosen = {
        name: each for name, each in CONFIGURATIONS.items() if not options.only or name.startswith(tuple(options.only))
    }
    chosen = {"stock": {}, **chosen}
    pages = options.pages if links < 400 else options.pages // 2
    serve = [
        sys.executable,
        str(Path(__file__).with_name("linked_site.py")),
        "--pages",
        str(pages),
        "--links",
        str(links),
    ]
    rounds: dict[str, list[Measured]] = {name: [] for name in chosen}
    with tempfile.TemporaryDirectory() as name, subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
        folder = Path(name)
        (folder / "follow.py").write_text(SPIDER)
        try:
            assert server.stdout is not None
            if theirs is not None:
                os.sched_setaffinity(server.pid, {theirs})
            root = server.stdout.readline().strip()
            for _ in range(options.rounds):
                for label, settings in chosen.items():
                    given = {**settings, "JOBDIR": str(folder / "job")} if options.jobdir else settings
                    rounds[label].append(crawl(folder, root, given, core=ours))
        finally:
            server.terminate()
    found = {(each.pages, each.items) for runs in rounds.values() for each in runs}
    print(
        f"\n{links} links a page, {pages} pages{', JOBDIR' if options.jobdir else ''}; pages and items of all crawls: {found}\n"
    )
    print(
        "| configuration | of stock, median (range) | CPU ms a page | turns | above 50 ms | longest ms |\n|---|--:|--:|--:|--:|--:|"
    )
    for label, runs in rounds.items():
        ratios = [run.ms_a_page / stock.ms_a_page for run, stock in zip(runs, rounds["stock"], strict=True)]
        median = statistics.median(ratios)
        ms = statistics.median(run.ms_a_page for run in runs)
        late, longest = [run.late for run in runs], [run.longest for run in runs]
        print(
            f"| {label} | {median:.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | {ms:.2f} | "
            f"{statistics.median(run.turns for run in runs):.0f} | {min(late)} to {max(late)} | "
            f"{min(longest):.0f} to {max(longest):.0f} |",
            flush=True,
        )


def main() -> None:
    """Print a table for each site."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--links", type=int, nargs="+", default=[20, 100, 400])
    parser.add_argument("--pages", type=int, default=500, help="of a site (500; half as many with 400 links)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobdir", action="store_true", help="each crawl with a new JOBDIR")
    parser.add_argument("--only", nargs="+", default=[], help="only configurations whose name begins so, and stock")
    options = parser.parse_args()
    for links in options.links:
        measure(links, options)


if __name__ == "__main__":
    main()
