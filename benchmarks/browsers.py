"""A browser for no page, for all, for given templates, or for learned ones: whole live crawls.

Measured: files of the synthetic scripted site that a crawl got, by the log of its server; the requests and bytes
there; the CPU of the crawling process, of the driver of the browser and of all processes of the browser, sampled
every tenth of a second; pages that a browser fetched, and those among them whose scripts bring nothing. *told*: the
default policy with a list of the templates that need a browser. *learned*: the default policy. Eight requests at
once, no delay, the default FOCUS_RENDER_COST. Not measured: other sites, blobs, and time. It needs scrapy-playwright,
a Chromium and Linux. ``--curves`` needs Matplotlib, and draws files over requests, bytes and CPU. ::

    python benchmarks/browsers.py --mix 5 30 80 --seeds 5 --output browsers.jsonl
    python benchmarks/browsers.py --curves browsers.jsonl browsers.png
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from bisect import bisect_right
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse

from renderings import Told
from scrapy_focus.lab.sites.scripted.plan import MIXES
from scrapy_focus.lab.sites.scripted.site import ScriptedSite
from scrapy_focus.lab.sites.server import SiteServer
from scrapy_focus.policies.branching.policy import BranchingBandit

MODES = ("plain", "all", "told", "learned")
_TICKS = os.sysconf("SC_CLK_TCK")


class FollowAll(scrapy.Spider):
    """Follows all links of a site."""

    name = "follow_all"

    def __init__(self, root: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [root]

    def parse(self, response: Any) -> Any:
        if isinstance(response, HtmlResponse):
            yield from response.follow_all(css="a[href]")


class Oracle(BranchingBandit):
    """The default policy, with a list of the templates that need a browser."""

    def __init__(self, *, root: str, mix: int, seed: int) -> None:
        super().__init__()
        self.root, self.site = root, ScriptedSite(mix=MIXES[mix], seed=seed)

    def open(self, frontier: Any, rng: Any, mission: Any) -> None:
        super().open(frontier, rng, mission)
        self.templates = Told(self.site, self.root)


def crawl(mode: str, root: str, mix: int, seed: int, log: str) -> None:
    """Crawl a site in this process, and print the stats."""
    settings: dict[str, Any] = {
        "ADDONS": {"scrapy_focus.Addon": 500}, "FOCUS_TARGETS": "csv", "FOCUS_PROGRESS": "off", "FOCUS_SEED": seed,
        "LOG_LEVEL": "WARNING", "CONCURRENT_REQUESTS_PER_DOMAIN": 8, "DOWNLOAD_DELAY": 0, "TELNETCONSOLE_ENABLED": False,
        "FOCUS_RENDER": {"plain": "never", "all": "always"}.get(mode, "learn"), "REMOTE_CONTROL_ENABLED": False,
    }  # fmt: skip
    if log:
        settings |= {"LOG_LEVEL": "DEBUG", "LOG_FILE": log, "FOCUS_LOG": f"{log}.jsonl"}
    if mode == "told":
        settings |= {
            "FOCUS_POLICY": Oracle,
            "FOCUS_POLICY_PARAMS": {"root": root.rstrip("/"), "mix": mix, "seed": seed},
        }
    process = CrawlerProcess(settings)
    crawler = process.create_crawler(FollowAll)
    process.crawl(crawler, root=root)
    process.start()
    print(json.dumps(crawler.stats.get_stats(), default=str))


def cpu_of(root: int, seen: dict[int, float]) -> None:
    """Record the seconds of CPU of a process and its descendants, by their numbers."""
    children = defaultdict(list)
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        fields = text.rpartition(")")[2].split()
        children[int(fields[1])].append((int(path.parent.name), (int(fields[11]) + int(fields[12])) / _TICKS))
    wanted, known = [root], {pid: used for each in children.values() for pid, used in each}
    while wanted:
        pid = wanted.pop()
        seen[pid] = max(seen.get(pid, 0.0), known.get(pid, 0.0))
        wanted += [child for child, _ in children[pid]]


def run(mode: str, mix: int, seed: int, log: str = "") -> dict[str, Any]:
    """Crawl a site that is served here in a separate process, and return the results."""
    site = ScriptedSite(mix=MIXES[mix], seed=seed)
    with SiteServer(site, validators=True) as server:
        asked = [sys.executable, __file__, "--crawl", mode, server.url, str(mix), str(seed), log]
        child = subprocess.Popen(asked, stdout=subprocess.PIPE, text=True)
        used: dict[int, float] = {}
        moments, spent = [0.0], [0.0]
        while child.poll() is None:
            cpu_of(child.pid, used)
            moments.append(time.monotonic())
            spent.append(sum(used.values()))
            time.sleep(0.1)
        stats = json.loads((child.stdout.read() if child.stdout else "").strip().splitlines()[-1])
        served = list(server.log)
    targets = set(site.targets())
    got = {each.path for each in served if each.method == "GET" and each.status == 200} & targets
    reached, curve, sent = set(), [], 0
    for n, each in enumerate(served, 1):
        sent += each.bytes_sent
        if each.path in got and each.path not in reached:
            reached.add(each.path)
            curve.append((n, sent, round(spent[bisect_right(moments, each.at) - 1], 2)))
    return {
        "mode": mode, "mix": mix, "seed": seed, "there": len(targets), "files": len(got), "requests": len(served),
        "counted": stats.get("focus/requests"), "bytes": sum(each.bytes_sent for each in served),
        "counted_bytes": stats.get("focus/bytes"), "cpu": round(sum(used.values()), 2),
        "rendered": stats.get("focus/browser/read", 0), "curve": curve,
        "stats": {name: value for name, value in stats.items() if "browser" in name or "error" in name},
    }  # fmt: skip


def draw(runs: str, image: str) -> None:
    """Draw the files found over the requests, the bytes and the CPU, the seeds of a mix side by side."""
    from matplotlib import pyplot

    found = [json.loads(line) for line in Path(runs).read_text().splitlines()]
    mixes = sorted({each["mix"] for each in found})
    figure, axes = pyplot.subplots(len(mixes), 3, figsize=(12, 3.2 * len(mixes)), sharey="row", squeeze=False)
    for row, mix in zip(axes, mixes, strict=True):
        for at, (axis, what, scale) in enumerate(
            zip(row, ("requests", "MB", "seconds of CPU"), (1, 1e6, 1), strict=True)
        ):
            for mode, colour in zip(MODES, ("tab:gray", "tab:red", "black", "tab:blue"), strict=True):
                for n, each in enumerate(each for each in found if (each["mix"], each["mode"]) == (mix, mode)):
                    steps = [step[at] / scale for step in each["curve"]]
                    shares = [100 * (k + 1) / each["there"] for k in range(len(steps))]
                    axis.plot(steps, shares, color=colour, linewidth=0.9, label=None if n else mode)
            axis.set_xlabel(what)
            if at == 2:
                axis.set_xscale("log")
        row[0].set_ylabel(f"mix {mix}: files, %")
    axes[0][0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(image, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mix", type=int, nargs="+", default=[5, 30, 80], choices=MIXES)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--mode", nargs="+", default=MODES, choices=MODES)
    parser.add_argument("--output", default="browsers.jsonl")
    parser.add_argument("--log", default="", help="a file for the log of a crawl")
    parser.add_argument("--curves", nargs=2, metavar=("RUNS", "IMAGE"), help="draw an output of this script")
    options = parser.parse_args()
    if options.curves:
        draw(*options.curves)
        return
    for mix in options.mix:
        rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for seed in range(options.first, options.first + options.seeds):
            for mode in options.mode:
                found = run(mode, mix, seed, options.log)
                rows[mode].append(found)
                with Path(options.output).open("a") as file:
                    file.write(json.dumps(found) + "\n")
        print(f"\nmix {mix}: mean of {options.seeds} sites\n")
        print("| | files | requests | counted | MB | CPU, s | rendered |\n|---|--:|--:|--:|--:|--:|--:|")
        for mode, runs in rows.items():
            means = [mean(each[name] for each in runs) for name in ("files", "requests", "counted", "bytes", "cpu")]
            rendered = mean(each["rendered"] for each in runs)
            files, requests, counted, sent, cpu = means
            print(
                f"| {mode} | {files:.0f} of {mean(each['there'] for each in runs):.0f} | {requests:,.0f} | {counted:,.0f} "
                f"| {sent / 1e6:.1f} | {cpu:.1f} | {rendered:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--crawl"]:
        crawl(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6])
    else:
        main()
