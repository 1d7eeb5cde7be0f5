"""A million links and more: the frontier on disk, the one in memory, and Scrapy's own disk queues.

Measured, each side in a separate process: inserts (pages of 60 links; every link in a random arm, on a random host
and with a random rank, which is the worst case), pops, both mixed; resident memory, CPU, bytes on disk; the longest
pauses of the event loop; the time from reopening to the first pop, with the files still in the page cache, by the
index of a clean stop and by rows, as after a kill; inserts and pops after that; and which links are still there,
after a clean stop and after a ``kill -9``. Links and requests are made outside the timed part. The frontier on disk
writes whenever 30,000 links have changed, as a crawl does. Scrapy's queues are driven through its Scheduler with its
dupefilter, by requests as spiders make them (a callback, a Referer, a depth).

Not measured: the network, parsing, the policy, the journal of a crawl with JOBDIR (``long_crawl.py`` has all of
these; after a ``kill -9`` of the process the journal restores what was found since the last checkpoint), files that
are not in the page cache, and power failures. ::

    python benchmarks/scale.py --links 1000000
    python benchmarks/scale.py --links 10000000 --sides sqlite drawn
    python benchmarks/scale.py --links 1000000 --sides sqlite --hosts 1 1000 100000

PickleLifoSQLiteQueue commits every request: it gets 2,000 of them, on 20 hosts. Because Scrapy keeps one or two files
open for each host, its sides are skipped above 5,000 hosts. ``--json`` keeps all figures; the longest calls go to
standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from array import array
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from scale_sides import PAGE, SIDES, Made, Side, make

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

OURS = ("sqlite", "drawn", "memory")
INDEX = "frontier.sqlite-index"
FEW = 2_000  # requests for the queue that commits each of them
MANY_HOSTS = 5_000
KILLED_AFTER = 100_000  # links
STALL = 0.05  # acceptable pause of the event loop, in seconds


class Clock:
    """How long each call and each turn of the loop took, and what waiting for a core and garbage collection took of it."""

    def __init__(self) -> None:
        self.calls: dict[str, array[float]] = {}
        self.turns: dict[str, array[float]] = {}
        self.queued: dict[str, array[float]] = {}
        self.worst: list[tuple[float, str]] = []
        self.collected = 0.0
        self._collecting = 0.0
        self._schedstat = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        gc.callbacks.append(self._garbage)

    def call(self, what: str, function: Callable[..., T], *given: Any) -> T:
        """Call in the thread of the loop."""
        cpu, start = time.thread_time(), time.perf_counter()
        result = function(*given)
        took = time.perf_counter() - start
        self.calls.setdefault(what, array("d")).append(took)
        if took > STALL / 2:
            self.worst.append((took, f"{what}, {1000 * (time.thread_time() - cpu):.0f} ms of it CPU of this thread"))
        return result

    def waited(self) -> float:
        """Seconds that this thread could have run, but had no core, so far: other processes, and our own writer."""
        return int(os.pread(self._schedstat, 64, 0).split()[1]) / 1e9

    def turn(self, phase: str, took: float, queued: float) -> None:
        """A turn of the loop is over."""
        self.turns.setdefault(phase, array("d")).append(took)
        self.queued.setdefault(phase, array("d")).append(queued)

    def _garbage(self, phase: str, _: object) -> None:
        if phase == "start":
            self._collecting = time.perf_counter()
        else:
            self.collected = max(self.collected, time.perf_counter() - self._collecting)


class Measurement:
    """Everything that one process measures of one side."""

    def __init__(self, side: Side, options: argparse.Namespace, links: int) -> None:
        self.side = side
        self.options = options
        self.links = links
        self.clock = Clock()
        self.done: list[int] = []  # keys
        self.figures: dict[str, Any] = {"rss empty": _status("VmRSS")}
        self._idle = 0.0  # CPU seconds of making links

    async def run(self) -> None:
        """Fill, mix, pop, go slowly, stop."""
        few = self.links == FEW
        started = time.process_time()
        await self._phase("fill", self.links // PAGE, pops=0, push=True)
        self.figures["rss full"] = _status("VmRSS")
        await self._phase("mixed", 10 if few else max(2_000, self.links // 600), pops=1, push=True)
        await self._phase("pops", min(FEW // 4 if few else 100_000, self.links // 10), pops=1, push=False)
        if not few:
            await self._paced(self.options.paced)
        self.figures["cpu"] = time.process_time() - started - self._idle
        self.figures["rss peak"] = _status("VmHWM")
        self.side.flush()
        begun, cpu = time.perf_counter(), time.process_time()
        self.side.close()
        self.figures["stop"], self.figures["stop cpu"] = time.perf_counter() - begun, time.process_time() - cpu
        self.figures["pushed"], self.figures["done"] = self.side.pushed, len(self.done)
        self.figures["backlog"] = self.side.backlog
        self.figures["collected"] = self.clock.collected
        self.figures["calls"] = {what: _spread(times) for what, times in self.clock.calls.items()}
        self.figures["turns"] = {phase: _spread(times) for phase, times in self.clock.turns.items()}
        for phase, times in self.clock.queued.items():
            with_core = np.array(self.clock.turns[phase]) - np.array(times)
            self.figures["turns"][phase]["with core"] = int((with_core > STALL).sum())
        for took, what in sorted(self.clock.worst, reverse=True)[:8]:
            print(f"    {1000 * took:.0f} ms: {what}", file=sys.stderr)

    async def _phase(self, phase: str, pages: int, *, pops: int, push: bool) -> None:
        cpu, idle_before, wall = time.process_time(), self._idle, 0.0
        for _ in range(pages):
            page = self._prepare() if push else None
            queued, begun = self.clock.waited(), time.perf_counter()
            self._turn(phase, page, pops)
            await asyncio.sleep(0)
            took = time.perf_counter() - begun
            self.clock.turn(phase, took, self.clock.waited() - queued)
            wall += took
        begun = time.perf_counter()
        self.side.flush()
        flushed = wall + time.perf_counter() - begun
        cpu = time.process_time() - cpu - (self._idle - idle_before)
        self.figures[phase] = {"turns": pages, "wall": wall, "flushed": flushed, "cpu": cpu}

    async def _paced(self, seconds: float) -> None:
        """Pages at the rate of a fast crawl, while a ticker sees how late it is called."""

        async def tick() -> None:
            while True:
                queued, due = self.clock.waited(), time.perf_counter() + 0.001
                await asyncio.sleep(0.001)
                self.clock.turn("paced", time.perf_counter() - due, self.clock.waited() - queued)

        ticker = asyncio.create_task(tick())
        cpu = time.process_time()
        begun = time.perf_counter()
        for i in range(int(seconds * self.options.rate)):
            self._turn("paced", self._prepare(), 1)
            await asyncio.sleep(max(0.0, begun + (i + 1) / self.options.rate - time.perf_counter()))
        ticker.cancel()
        self.figures["paced"] = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - begun}

    def _prepare(self) -> Any:
        before = time.thread_time()
        page = self.side.prepare()
        self._idle += time.thread_time() - before
        return page

    def _turn(self, phase: str, page: Any, pops: int) -> None:
        call, side = self.clock.call, self.side
        for _ in range(pops):
            pick = call("pop", side.pop)
            self.done.append(getattr(pick, "key", 0))
            call("settle", side.settle, pick)
        if page is not None:
            call("push", side.push, page)
        call("checkpoint", side.turn)


def _status(name: str) -> int:
    """Bytes of ``VmRSS`` or ``VmHWM``."""
    with Path("/proc/self/status").open() as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


def _spread(times: array[float]) -> dict[str, float]:
    values = np.array(times)
    if not len(values):
        return {"n": 0, "median": 0, "p9999": 0, "max": 0, "stalls": 0}
    return {
        "n": len(values), "median": float(np.median(values)), "p9999": float(np.quantile(values, 0.9999)),
        "max": float(values.max()), "stalls": int((values > STALL).sum()),
    }  # fmt: skip


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def child(options: argparse.Namespace) -> dict[str, Any]:
    """Do one part in a separate process, and return its figures."""
    kind, folder = options.part[1], Path(options.folder)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    made = Made(arms=options.arms, hosts=options.hosts[0], payload=options.payload)
    links = FEW if kind == "lifosqlite" else options.links
    if options.part[0] == "run":
        measured = Measurement(make(kind, folder, made), options, links)
        asyncio.run(measured.run())
        (folder.parent / "done.pickle").write_bytes(pickle.dumps(measured.done))
        index = folder / INDEX
        return measured.figures | {"bytes": _size(folder), "index": index.stat().st_size if index.exists() else 0}
    if options.part[0] == "kill":
        _get_killed(make(kind, folder, made), min(links, KILLED_AFTER))
    done: list[int] = []
    with suppress(FileNotFoundError):
        done = pickle.loads((folder.parent / "done.pickle").read_bytes())
    if options.part[0] == "rows":
        (folder / INDEX).unlink(missing_ok=True)
    started, cpu = time.perf_counter(), time.process_time()
    side = make(kind, folder, made)
    opened, cpu = time.perf_counter() - started, time.process_time() - cpu
    figures: dict[str, Any] = {"opened": opened, "cpu": cpu, "rss": _status("VmRSS"), "peak": _status("VmHWM")}
    side.pushed = options.pushed
    figures["waiting"], figures["right"] = side.there(done)
    if figures["waiting"]:
        begun = time.perf_counter()
        side.pop()
        figures["resume"] = opened + time.perf_counter() - begun
    if options.part[0] != "kill" and kind in OURS:
        _work_on(side, figures, min(20_000, links // 100))
    side.close()
    return figures


def _work_on(side: Side, figures: dict[str, Any], n: int) -> None:
    """Pop some links, and insert some others; they are not written down."""
    cpu = time.process_time()
    for _ in range(n):
        side.settle(side.pop())
    figures["pop again"] = (time.process_time() - cpu) / n
    side.made.n, total, before = side.pushed, 0.0, side.pushed
    while side.pushed < before + n:
        page = side.prepare()
        cpu = time.process_time()
        side.push(page)
        total += time.process_time() - cpu
    figures["insert again"] = total / (side.pushed - before)


def _get_killed(side: Side, links: int) -> None:
    """Push links, say how many are safe, and be killed while the last of them are being written."""
    while side.pushed < links:
        side.push(side.prepare())
        side.turn()
    side.hand_over()
    print(json.dumps({"pushed": side.pushed, "safe": side.safe()}), flush=True)
    time.sleep(0.005)
    os.kill(os.getpid(), signal.SIGKILL)


def part(name: str, kind: str, folder: Path, options: argparse.Namespace, hosts: int, pushed: int = 0) -> Any:
    """Start a process for one part and return what it says."""
    command = [sys.executable, __file__, "--part", name, kind, "--folder", str(folder), "--pushed", str(pushed)]
    for option in ("links", "arms", "payload", "paced", "rate"):
        command += [f"--{option}", str(getattr(options, option))]
    done = subprocess.run([*command, "--hosts", str(hosts)], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, -signal.SIGKILL):
        raise SystemExit(f"{SIDES[kind]} failed in {name}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(kind: str, options: argparse.Namespace, hosts: int) -> dict[str, Any]:
    """All figures of one side."""
    with tempfile.TemporaryDirectory(dir=options.folder, prefix=f"{kind}-") as temporary:
        (folder := Path(temporary, "run")).mkdir()
        figures: dict[str, Any] = part("run", kind, folder, options, hosts)
        if kind == "memory":  # ends with its process
            return figures
        if kind in OURS:
            shutil.copytree(folder, folder.with_name("rows"))
            figures["rows"] = part("rows", kind, folder.with_name("rows"), options, hosts, figures["pushed"])
        figures["again"] = part("reopen", kind, folder, options, hosts, figures["pushed"])
    with tempfile.TemporaryDirectory(dir=options.folder, prefix=f"{kind}-") as temporary:
        (folder := Path(temporary, "run")).mkdir()
        figures["killed"] = part("kill", kind, folder, options, hosts)
        figures["killed"] |= part("reopen", kind, folder, options, hosts, figures["killed"]["pushed"])
    return figures


def rows(f: dict[str, Any]) -> dict[str, str]:
    """The lines of the table for one side."""
    fill, mixed, pops, turns = f["fill"], f["mixed"], f["pops"], f["turns"]
    n = fill["turns"] * PAGE
    lines = {
        "links inserted before anything else": f"{n:,}",
        "inserts a second": f"{n / fill['wall']:,.0f}",
        "inserts a second, until all are on disk": f"{n / fill['flushed']:,.0f}",
        "CPU us an insert, all threads": f"{1e6 * fill['cpu'] / n:.1f}",
        "most changed links that waited to be written": f"{f['backlog']:,}",
        "pages a second: one pop, 60 inserts": f"{mixed['turns'] / mixed['wall']:,.0f}",
        "pops a second": f"{pops['turns'] / pops['wall']:,.0f}",
        "CPU us a pop, all threads": f"{1e6 * pops['cpu'] / pops['turns']:.0f}",
        "resident when full, MB": f"{f['rss full'] / 1e6:,.0f}",
        "of it for each link, bytes": f"{(f['rss full'] - f['rss empty']) / n:,.0f}",
        "resident at most, MB": f"{f['rss peak'] / 1e6:,.0f}",
        "on disk, MB": f"{f['bytes'] / 1e6:,.0f}",
        "CPU s of all": f"{f['cpu']:,.1f}",
    }
    for phase, what in (("fill", "inserts"), ("mixed", "pages"), ("pops", "pops"), ("paced", "paced pages")):
        if phase in turns:
            t = turns[phase]
            lines[f"loop, {what}: longest turn, 99.99 %, ms"] = f"{1e3 * t['max']:,.1f}, {1e3 * t['p9999']:,.1f}"
            lines[f"loop, {what}: turns above 50 ms, not counting waits for a core"] = (
                f"{t['stalls']:,}, {t['with core']:,} of {t['n']:,}"
            )
        else:
            lines[f"loop, {what}: longest turn, 99.99 %, ms"] = ""
            lines[f"loop, {what}: turns above 50 ms, not counting waits for a core"] = ""
    for what in ("push", "pop", "settle", "checkpoint"):
        t = f["calls"][what]
        lines[f"{what}: longest, median, us"] = f"{1e6 * t['max']:,.0f}, {1e6 * t['median']:,.1f}"
    lines["longest garbage collection, ms"] = f"{1e3 * f['collected']:,.0f}"
    again, by_rows, killed = f.get("again"), f.get("rows"), f.get("killed")
    for what, said in (("index", again if f["index"] else None), ("rows", by_rows)):
        lines[f"opened by {what}: s, CPU s"] = f"{said['opened']:.2f}, {said['cpu']:.2f}" if said else ""
        lines[f"opened by {what}: resident, at most, MB"] = (
            f"{said['rss'] / 1e6:,.0f}, {said['peak'] / 1e6:,.0f}" if said else ""
        )
        lines[f"opened by {what}: CPU us a pop, an insert"] = (
            f"{1e6 * said['pop again']:.1f}, {1e6 * said['insert again']:.1f}" if said else ""
        )
        lines[f"opened by {what}: links as they should be"] = f"{said['right']:,} of {f['pushed']:,}" if said else ""
    lines["index, MB"] = f"{f['index'] / 1e6:,.0f}" if f["index"] else ""
    return lines | {
        "clean stop, s, CPU s": f"{f['stop']:.2f}, {f['stop cpu']:.2f}" if again else "",
        "open again to first pop, s": f"{again['resume']:.2f}" if again else "",
        "resident after opening, MB": f"{again['rss'] / 1e6:,.0f}" if again else "",
        "links as they should be, after a clean stop": f"{again['right']:,} of {f['pushed']:,}" if again else "0",
        "links there after a kill -9": f"{killed['waiting']:,} of {killed['pushed']:,}" if killed else "0",
        "of them, committed by its own account": f"{killed['safe']:,}" if killed and killed["safe"] else "",
    }


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--links", type=int, default=1_000_000)
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument("--hosts", type=int, nargs="+", default=[1_000], help="one table column for each number")
    parser.add_argument("--arms", type=int, default=100)
    parser.add_argument("--payload", type=int, default=60, help="bytes of a link that belong to the adapter")
    parser.add_argument("--paced", type=float, default=20.0, help="seconds at a steady rate")
    parser.add_argument("--rate", type=float, default=200.0, help="pages a second in those")
    parser.add_argument("--folder", help="where to work; the default is the system's place for temporary files")
    parser.add_argument("--json", type=Path, help="also write all figures there")
    parser.add_argument("--part", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--pushed", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(child(options)))
        return
    columns: dict[str, dict[str, Any]] = {}
    for hosts in options.hosts:
        for kind in options.sides:
            if kind in OURS or hosts <= MANY_HOSTS:
                name = SIDES[kind] + (f", hosts: {hosts:,}" if len(options.hosts) > 1 else "")
                print(name, file=sys.stderr)
                columns[name] = measure(kind, options, hosts)
    if options.json:
        options.json.write_text(json.dumps(columns, indent=1))
    table = {name: rows(figures) for name, figures in columns.items()}
    print(f"| | {' | '.join(table)} |\n|---|{'--:|' * len(table)}")
    for line in next(iter(table.values())):
        print(f"| {line} | {' | '.join(each[line] for each in table.values())} |")


if __name__ == "__main__":
    main()
