"""A long crawl under a JOBDIR: memory, queued links and bytes on disk over time, with an occasional ``kill -9``.

Measured: a crawl of the bundled portal at a million pages over HTTP on 127.0.0.1, by the sleeping bandit with the add-on.
Every few seconds: resident memory of the crawler and of the server, requests, waiting links, size of ``JOBDIR/focus``, CPU
of the crawler, how late its event loop was at worst (which has the spider parse several pages in a turn), and how long the
engine waited at worst when it asked the scheduler for a request (which has the decision, the links of the pages since then,
and what is left of a checkpoint in that thread); both also less the time for which that thread had no core. The server is a
process of its own, and its log, with which it grows, tells which addresses were asked for more than once. With
``--kill-every`` the crawler is killed (SIGKILL) every so many seconds and started again with the same JOBDIR. At the end it
is asked to stop (SIGTERM), and its frontier is opened and checked. Not measured: real networks, and sites where a page
takes long. ::

    python benchmarks/long_crawl.py --pages 1000000 --minutes 30
    python benchmarks/long_crawl.py --pages 1000000 --minutes 30 --kill-every 300
    python benchmarks/long_crawl.py --pages 1000000 --minutes 30 --set JOBDIR=    # the same without one, in memory

Writes ``benchmarks/long_crawl.csv`` and ``benchmarks/long_crawl.png`` (``--output``), for which matplotlib is needed:
``pip install -e ".[lab]"``.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from scrapy_focus import Ranks, Vectors
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.lab.sites.server import SiteServer

SPIDER = """
import asyncio, json, os, time
from collections import deque
import scrapy
from scrapy import signals

MEDIA = (".png", ".jpg", ".JPG", ".mp4", ".svg", ".webm", ".gif")
STEP = 0.02  # seconds between two looks at the clock

class Tell:
    '''Writes what only the crawler knows, every second; what was worst, of the last seconds between two samples.'''

    def __init__(self, crawler):
        self.crawler, self.path = crawler, os.environ["TELL"]
        self.first = self.told = 0
        self.schedstat = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        self.now = dict.fromkeys(("late", "late_own", "call", "call_own"), 0.0)
        self.worst = deque(maxlen=max(1, round(float(os.environ["EVERY"]))) + 1)
        crawler.signals.connect(self.opened, signals.spider_opened)
        crawler.signals.connect(self.closed, signals.spider_closed)
        crawler.signals.connect(self.received, signals.response_received)

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    def clock(self):
        '''The time, and the seconds so far for which this thread could have run but had no core.'''
        return time.perf_counter(), int(os.pread(self.schedstat, 64, 0).split()[1]) / 1e9

    def note(self, what, start, expected=0.0):
        now = self.clock()
        took = now[0] - start[0] - expected
        self.now[what] = max(self.now[what], took)
        self.now[what + "_own"] = max(self.now[what + "_own"], took - (now[1] - start[1]))

    def opened(self):
        self.loop = asyncio.get_running_loop()
        self.start = self.clock()
        self.loop.call_later(STEP, self.look)
        scheduler = self.crawler.engine.scheduler
        ask = scheduler.next_request

        def next_request():
            start = self.clock()
            request = ask()
            self.note("call", start)
            return request

        scheduler.next_request = next_request

    def received(self):
        self.first = self.first or time.time()

    def look(self):
        self.note("late", self.start, STEP)
        if self.loop.time() - self.told > 1:
            self.worst.append(dict(self.now))
            self.now = dict.fromkeys(self.now, 0.0)
            self.tell()
            self.told = self.loop.time()
        self.start = self.clock()
        self.loop.call_later(STEP, self.look)

    def closed(self):
        self.tell()

    def tell(self):
        crawl = self.crawler.engine.scheduler.crawl
        known = {"requests": crawl.budget.requests_used, "waiting": len(crawl.frontier), "items": crawl.rewards}
        with open(self.path + ".new", "w") as file:
            worst = {name: max((each[name] for each in self.worst), default=0.0) for name in self.now}
            json.dump(known | worst | {"first": self.first, "pid": os.getpid()}, file)
        os.replace(self.path + ".new", self.path)

class Follow(scrapy.Spider):
    name = "follow"
    allowed_domains = ["127.0.0.1"]
    custom_settings = {"EXTENSIONS": {Tell: 900}}

    async def start(self):
        yield scrapy.Request(self.root)

    def parse(self, response):
        if "html" not in (response.headers.get("Content-Type") or b"").decode():
            yield {"url": response.url}
        else:
            for href in response.xpath("//a/@href").getall():
                if "/calendar" not in href and not href.startswith("mailto:") and not href.endswith(MEDIA):
                    yield response.follow(href)
"""
SETTINGS = {
    "ADDONS": '{"scrapy_focus.Addon": 500}', "FOCUS_PROGRESS": "off", "FOCUS_SEED": "0", "LOG_LEVEL": "INFO",
    "CONCURRENT_REQUESTS_PER_DOMAIN": "8", "ROBOTSTXT_OBEY": "0", "TELNETCONSOLE_ENABLED": "0",
    "REMOTE_CONTROL_ENABLED": "0",
}  # fmt: skip
_WORST = ("late", "late_own", "call", "call_own")
_PATIENCE = 300  # seconds for a clean stop


@dataclass(slots=True, kw_only=True)
class Sample:
    """One line of the table. Counts are those of all runs with this JOBDIR."""

    seconds: float  # since the start
    run: int  # 1 for the first, one more after each kill
    requests: int
    waiting: int  # links
    found: float  # data files
    crawler_mb: float  # resident
    server_mb: float  # resident
    disk_mb: float  # JOBDIR/focus
    cpu: float  # seconds of the crawler, all runs
    late_ms: float  # how late the event loop was at worst since the last sample
    late_own_ms: float  # the same, less what its thread waited for a core
    call_ms: float  # the longest that the engine waited for the scheduler since the last sample
    call_own_ms: float  # the same, less what its thread waited for a core


class Crawler:
    """The crawling process, and those that were killed before it."""

    def __init__(self, folder: Path, root: str, every: float, extra: dict[str, str]) -> None:
        self.folder = folder
        self.jobdir = folder / "job"
        self.runs = 0
        self.cpu = 0.0  # seconds, of the runs that have ended
        self.away: list[float] = []  # seconds from each start to the first response
        self._spider = folder / "follow.py"
        self._spider.write_text(SPIDER)
        self._tell = folder / "tell.json"
        self._root = root
        self._env = {**os.environ, "TELL": str(self._tell), "EVERY": str(every)}
        self._settings = SETTINGS | {"JOBDIR": str(self.jobdir), "LOG_FILE": str(folder / "crawl.log")} | extra
        self.process: subprocess.Popen[bytes]  # the one that runs, or ran last
        self._last: dict[str, Any] = {"requests": 0, "waiting": 0, "items": 0.0} | dict.fromkeys(_WORST, 0.0)
        self._started = 0.0

    def start(self) -> None:
        """Start, or start again with the same JOBDIR."""
        command = [sys.executable, "-m", "scrapy", "runspider", str(self._spider), "-a", f"root={self._root}"]
        for name, value in self._settings.items():
            command += ["-s", f"{name}={value}"]
        self.process = subprocess.Popen(command, env=self._env, cwd=self.folder)
        self._started = time.time()
        self.runs += 1

    def end(self, number: int) -> float:
        """Send a signal and wait; return the seconds until the process ended."""
        begun = time.monotonic()
        self.cpu += _cpu(self.process.pid)
        self.process.send_signal(number)
        self.process.wait(_PATIENCE)
        return time.monotonic() - begun

    def known(self) -> dict[str, Any]:
        """What the crawler said last; of the run before, until it says something."""
        if self._tell.exists():
            told = json.loads(self._tell.read_text())
            if told["pid"] == self.process.pid:
                self._last = told
                if told["first"] and len(self.away) < self.runs:
                    self.away.append(told["first"] - self._started)
            else:
                self._last |= dict.fromkeys(_WORST, 0.0)
        return self._last

    def sample(self, seconds: float, server: int) -> Sample:
        """Sample the current state."""
        known, pid = self.known(), self.process.pid
        return Sample(
            seconds=round(seconds, 1), run=self.runs, requests=known["requests"], waiting=known["waiting"],
            found=known["items"], crawler_mb=_resident(pid), server_mb=_resident(server),
            disk_mb=round(_size(self.jobdir / "focus") / 1e6, 2), cpu=round(self.cpu + _cpu(pid), 1),
            **{f"{name}_ms": round(1000 * known[name], 1) for name in _WORST},
        )  # fmt: skip


def _resident(pid: int) -> float:
    """Megabytes; 0 for a process that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((round(1.024e-3 * int(line.split()[1]), 1) for line in lines if line.startswith("VmRSS")), 0.0)


def _cpu(pid: int) -> float:
    """Seconds, user and system; 0 for a process that has ended."""
    try:
        values = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")


def _size(folder: Path) -> int:
    """Bytes of the files in a folder; files may come and go meanwhile."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size
    return total


def serve(pages: int) -> None:
    """Serve the portal until SIGTERM; then print how many requests there were, and how many for the same again."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with SiteServer(StatisticsPortal(pages=pages)) as server:
        print(server.url, flush=True)
        stop.wait()
        n = len(server.log)
        print(json.dumps({"requests": n, "asked again": n - len({(each.method, each.path) for each in server.log})}))


def watch(crawler: Crawler, server: int, options: argparse.Namespace, table: IO[str]) -> list[Sample]:
    """Sample until the time is over or the crawl is; kill and start again when it is time."""
    writer = csv.writer(table)
    writer.writerow(field.name for field in fields(Sample))
    samples = []
    begun = last_kill = time.monotonic()
    end = begun + 60 * options.minutes
    crawler.start()
    while crawler.process.poll() is None and time.monotonic() < end:
        time.sleep(options.every)
        samples.append(sample := crawler.sample(time.monotonic() - begun, server))
        writer.writerow(asdict(sample).values())
        table.flush()
        if 0 < options.kill_every < min(time.monotonic() - last_kill, end - time.monotonic()):
            crawler.end(signal.SIGKILL)
            last_kill = time.monotonic()
            crawler.start()
    return samples


def draw(samples: list[Sample], path: Path, title: str) -> None:
    """Draw memory, links and disk over time."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    minutes = [sample.seconds / 60 for sample in samples]
    figure = Figure(figsize=(8, 8.5), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=11)
    panels = figure.subplots(4, 1, sharex=True)
    for panel, label, lines in (
        (panels[0], "resident memory, MB", (("crawler", "crawler_mb", 1.0), ("server", "server_mb", 1.0))),
        (panels[1], "thousands", (("links waiting", "waiting", 1e-3), ("requests", "requests", 1e-3))),
        (panels[2], "JOBDIR/focus, MB", (("on disk", "disk_mb", 1.0),)),
        (
            panels[3],
            "ms at worst, given a core",
            (("event loop late", "late_own_ms", 1.0), ("scheduler", "call_own_ms", 1.0)),
        ),
    ):
        for (name, field, scale), colour, dashes in zip(lines, ("#0072B2", "#D55E00"), ("-", "--"), strict=False):
            values = [scale * getattr(sample, field) for sample in samples]
            panel.plot(minutes, values, color=colour, linestyle=dashes, linewidth=1.5, label=name)
        kills = [b.seconds / 60 for a, b in pairwise(samples) if b.run > a.run]
        for i, kill in enumerate(kills):
            panel.axvline(kill, color="#888888", linewidth=0.8, linestyle=":", label="kill -9" if i == 0 else None)
        panel.set_ylabel(label)
        panel.set_ylim(bottom=0)
        panel.set_xlim(0, minutes[-1])
        panel.grid(color="#d8dce1", linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
        if len(lines) > 1 or kills:
            panel.legend(frameon=False, loc="best", fontsize=9)
    panels[-1].set_xlabel("minutes")
    figure.savefig(path, dpi=130)


def check(folder: Path) -> str:
    """Open and check a frontier, and report its queued links."""
    if not folder.exists():
        return "none"
    from scrapy_focus.frontiers.sqlite.frontier import sqlite_frontier

    path = folder / "frontier.sqlite"
    with closing(sqlite3.connect(path)) as database:
        width = dict(database.execute("SELECT name, value FROM counters")).get("width", 0)
    frontier = sqlite_frontier(path, Vectors(width) if width else Ranks())
    frontier.check()
    waiting = len(frontier)
    frontier.close()
    return f"{waiting:,}"


def _worst(samples: list[Sample], name: str) -> str:
    values = [getattr(sample, name) for sample in samples]
    return f"{max(values):,.0f} ms at most, above 50 ms in {sum(value > 50 for value in values):,} of {len(values):,} samples"


def summary(crawler: Crawler, samples: list[Sample], stopped: float, log: dict[str, int]) -> str:
    """The figures as a table."""
    last = samples[-1]
    lines = {
        "minutes": f"{last.seconds / 60:.1f}",
        "kills": f"{crawler.runs - 1}",
        "requests, by the server's log": f"{log['requests']:,}",
        "requests, as the crawler counts": f"{crawler.known()['requests']:,}",
        "of them, addresses asked for again": f"{log['asked again']:,}",
        "data files found": f"{crawler.known()['items']:,.0f}",
        "links waiting at the end": f"{crawler.known()['waiting']:,}",
        "links waiting when opened again": check(crawler.jobdir / "focus"),
        "requests a second": f"{last.requests / last.seconds:.0f}",
        "CPU ms a request, crawler": f"{1000 * last.cpu / max(last.requests, 1):.2f}",
        "resident at most, crawler, MB": f"{max(sample.crawler_mb for sample in samples):,.0f}",
        "JOBDIR/focus at most, MB": f"{max(sample.disk_mb for sample in samples):,.0f}",
        "event loop late": _worst(samples, "late_ms"),
        "event loop late, not counting waits for a core": _worst(samples, "late_own_ms"),
        "scheduler asked": _worst(samples, "call_ms"),
        "scheduler asked, not counting waits for a core": _worst(samples, "call_own_ms"),
        "start to first response, s, each run": ", ".join(f"{seconds:.1f}" for seconds in crawler.away),
        "clean stop, s": f"{stopped:.1f}",
    }
    return "| | |\n|---|--:|\n" + "\n".join(f"| {what} | {value} |" for what, value in lines.items())


def main() -> None:
    """Crawl, write the samples and the plot, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two samples")
    parser.add_argument("--kill-every", type=float, default=0.0, help="seconds between two kills; 0 for none")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="another setting of Scrapy")
    parser.add_argument("--folder", help="where JOBDIR and crawl.log are made and left; the default is removed")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name("long_crawl.png"))
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.pages)
        return
    extra = dict(each.split("=", 1) for each in options.set)
    command = [sys.executable, __file__, "--serve", "--pages", str(options.pages)]
    with (
        tempfile.TemporaryDirectory() as temporary,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        options.output.with_suffix(".csv").open("w", newline="") as table,
    ):
        assert server.stdout is not None
        folder = Path(options.folder or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        crawler = Crawler(folder, server.stdout.readline().strip(), options.every, extra)
        try:
            samples = watch(crawler, server.pid, options, table)
            stopped = crawler.end(signal.SIGTERM)
        finally:
            crawler.process.kill()
            server.terminate()
        log = json.loads(server.stdout.readline())
        draw(samples, options.output, f"The bundled portal at {options.pages:,} pages, sleeping bandit, add-on, JOBDIR")
        print(summary(crawler, samples, stopped, log))


if __name__ == "__main__":
    main()
