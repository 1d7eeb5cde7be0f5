"""CPU per page of whole crawls: stock Scrapy and scrapy_focus, side by side in one run.

Measured: user and system CPU of the crawling process for an exhaustive crawl of the bundled portal (everything but
its endless calendar) over HTTP on 127.0.0.1, minus the cost of a crawl of one page, divided by the pages; the
configurations take turns, and the median over the rounds is given. The server is a separate process. Not measured:
waiting, memory, and real networks. ::

    python benchmarks/overhead.py --pages 2000 --rounds 5
    python benchmarks/overhead.py --pages 2000 --rounds 5 --jobdir
    python benchmarks/overhead.py --pages 2000 --rounds 5 --files

With ``--jobdir`` each crawl has a new, empty JOBDIR, whose last writing at a clean stop is also measured. Scrapy then
keeps requests in its default disk queue, PickleLifoDiskQueue: last in, first out, which is depth-first, as in memory
without a JOBDIR. The crawls are exhaustive, so that all orders fetch the same. What survives a ``kill -9`` differs:
nothing of that queue, everything of ours (``scale.py``, ``long_crawl.py``).

With ``--files`` it measures ``focus files``, complete and without some parts, over as many requests as the
site has pages. The optional parts are: links that differ in irrelevant parameters, the panel, and the folder (files,
list, notes of the crawl, page at the end, and the JOBDIR in it).
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

SPIDER = """
import scrapy

MEDIA = (".png", ".jpg", ".JPG", ".mp4", ".svg", ".webm", ".gif")

class Follow(scrapy.Spider):
    name = "follow"
    allowed_domains = ["127.0.0.1"]

    async def start(self):
        yield scrapy.Request(self.root)

    def parse(self, response):
        if "html" not in (response.headers.get("Content-Type") or b"").decode():
            yield {"url": response.url}
        elif not self.one:
            for href in response.xpath("//a/@href").getall():
                if "/calendar" not in href and not href.startswith("mailto:") and not href.endswith(MEDIA):
                    yield response.follow(href)
"""
FOCUS = "scrapy_focus.FocusScheduler"
BREADTH = {"FOCUS_POLICY": "scrapy_focus.policies.orderings.BreadthFirst"}
ADDON = {"ADDONS": '{"scrapy_focus.Addon": 500}', "FOCUS_PROGRESS": "off"}
CONFIGURATIONS: dict[str, dict[str, str]] = {
    "stock": {},
    "stock, 4 items": {"CONCURRENT_ITEMS": "4"},
    "breadth-first, scheduler alone": {"SCHEDULER": FOCUS, **BREADTH},
    "breadth-first, add-on": {**ADDON, **BREADTH},
    "sleeping bandit, scheduler alone": {"SCHEDULER": "scrapy_focus.SleepingBanditScheduler"},
    "sleeping bandit, add-on": ADDON,
}
KEPT = {"sleeping bandit, add-on, kill-safe fetch": {**ADDON, "FOCUS_KILL_SAFE_FETCH": "1"}}  # with a JOBDIR
BARE = {"out": "-", "FOCUS_PROGRESS": "off", "FOCUS_IGNORE_PARAMETERS": "0"}
PARTS = {
    "near copies": {"FOCUS_IGNORE_PARAMETERS": "1"},
    "the panel": {"FOCUS_PROGRESS": "panel"},
    "the folder": {"out": "found"},
}
FILES: dict[str, dict[str, str]] = {
    "focus-files without all three": BARE,
    **{f"with {name} only": BARE | part for name, part in PARTS.items()},
    "focus-files as it is": BARE | PARTS["near copies"] | PARTS["the panel"] | PARTS["the folder"],
}


def find(spider: Path, root: str, settings: dict[str, str], *, pages: int) -> tuple[float, int]:
    """CPU seconds and responses of ``focus files`` with a budget of so many requests."""
    settings = dict(settings)
    out = settings.pop("out")
    command = [sys.executable, "-m", "scrapy_focus", "files", root, "--budget", str(pages), "--out", out]
    given = {"DOWNLOAD_DELAY": "0", "FOCUS_SEED": "1", **settings}
    measured = run(spider, command, given, statuses=(0, 3, 6))
    shutil.rmtree(spider.with_name("found"), ignore_errors=True)
    return measured


def crawl(
    spider: Path, root: str, settings: dict[str, str], *, one: bool = False, jobdir: bool = False
) -> tuple[float, int]:
    """CPU seconds and responses of one crawl."""
    command = [sys.executable, "-m", "scrapy", "runspider", str(spider), "-a", f"root={root}", "-a", f"one={one or ''}"]
    given = {"LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": "0", "REMOTE_CONTROL_ENABLED": "0", **settings}
    job = spider.with_name("job")
    if jobdir:
        given["JOBDIR"] = str(job)
    measured = run(spider, command, given)
    shutil.rmtree(job, ignore_errors=True)
    return measured


def run(
    spider: Path, command: list[str], settings: dict[str, str], statuses: tuple[int, ...] = (0, 3)
) -> tuple[float, int]:
    """CPU seconds and responses of a command, whose exit status has to be one of these."""
    stats = spider.with_name("stats.json")
    given = settings | {
        "CONCURRENT_REQUESTS_PER_DOMAIN": "8",
        "STATS_CLASS": "stats_file.ToFile",
        "ROBOTSTXT_OBEY": "0",
    }
    for name, value in given.items():
        command += ["-s", f"{name}={value}"]
    path = os.pathsep.join(filter(None, [str(spider.parent), os.environ.get("PYTHONPATH", "")]))
    env = {**os.environ, "STATS_FILE": str(stats), "PYTHONPATH": path, "FORCE_COLOR": "1", "TERM": "xterm"}
    before = os.times()
    done = subprocess.run(command, check=False, cwd=spider.parent, env=env, capture_output=True, text=True)
    after = os.times()
    if done.returncode not in statuses:
        raise SystemExit(f"{command} ended with status {done.returncode}: {done.stderr[-1000:]}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return cpu, json.loads(stats.read_text())["response_received_count"]


STATS = """
import json, os
from scrapy.statscollectors import MemoryStatsCollector

class ToFile(MemoryStatsCollector):
    def close_spider(self, spider=None, reason=None):
        with open(os.environ["STATS_FILE"], "w") as file:
            json.dump(self.get_stats(), file, default=str)
"""


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobdir", action="store_true", help="each crawl with a new JOBDIR")
    parser.add_argument("--files", action="store_true", help="focus-files, as it is and without its parts")
    options = parser.parse_args()
    serve = [sys.executable, "-m", "scrapy_focus.lab.sites.server", "--pages", str(options.pages), "--port", "0"]
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            root = server.stdout.readline().split()[0]
            spider = Path(folder, "follow.py")
            spider.write_text(SPIDER)
            spider.with_name("stats_file.py").write_text(STATS)
            configurations = FILES if options.files else CONFIGURATIONS | (KEPT if options.jobdir else {})
            figures: dict[str, list[float]] = {name: [] for name in configurations}
            pages = {}
            for _ in range(options.rounds):
                for name, settings in configurations.items():
                    if options.files:
                        idle, _ = find(spider, root, settings, pages=1)
                        cpu, pages[name] = find(spider, root, settings, pages=options.pages)
                    else:
                        idle, _ = crawl(spider, root, settings, one=True, jobdir=options.jobdir)
                        cpu, pages[name] = crawl(spider, root, settings, jobdir=options.jobdir)
                    figures[name].append(1000 * (cpu - idle) / pages[name])
        finally:
            server.terminate()
    against = next(iter(figures))
    first = statistics.median(figures[against])
    suffix = ", JOBDIR" if options.jobdir else ""
    print(
        f"| configuration | responses | CPU ms per response, median (min to max) | against {against} |\n|---|---|---|---|"
    )
    for name, values in figures.items():
        median = statistics.median(values)
        spread = f"{median:.2f} ({min(values):.2f} to {max(values):.2f})"
        print(f"| {name}{suffix} | {pages[name]:,} | {spread} | {100 * (median / first - 1):+.0f} % |")


if __name__ == "__main__":
    main()
