"""The cost of opening a recorded site, in one process and in several, and the speed of crawls afterwards.

It uses a recording of a synthetic web: each page links to 36 others, a third of which all pages share; every twelfth
URL is a data file. Measured:

* CPU and wall-clock time until :class:`~scrapy_focus.lab.recordings.format.RecordedSite` is open: the first time,
  which writes the columns, and later, with the files in the page cache;
* what opening adds to the memory of several processes that have the recording open at the same time: the differences
  of ``Pss`` (each page of memory shared by n processes counts as 1/n in each) and of ``Private_Clean`` and
  ``Private_Dirty`` in ``/proc/self/smaps_rollup``, taken when all have opened it, against before they did. What the
  interpreter and its libraries take is not in it, nor what the page cache holds of files that nobody maps;
* CPU of the ground truth and its own memory (``Anonymous``), and simulated requests for each minute of CPU without
it, each in a separate process.

Not measured: a disk that is slow, and files that are not in the page cache. ``--beside`` names another checkout of the
repository, which is measured in turn with this one on the same recording. ::

    python benchmarks/recording_columns.py                      # 20,000 pages
    python benchmarks/recording_columns.py --pages 1000000 --budget 20000 --beside ../before
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "http://site.example"
POLICIES = ("BreadthFirst", "BranchingBandit")
_SHARED = 12  # links of each page that all pages have
_CHILDREN = 4  # links of each page to pages that no other one before it links to
_EVERY_FILE = 12  # every so many-th URL is a data file
_PLACES = 3000  # tag paths
_AT_ONCE = 2000  # pages that are written at once


def record(path: Path, pages: int, links: int) -> None:
    """Write a recording of so many URLs, with so many links on each page."""
    from scrapy_focus.lab.recordings.format import APPLICATION, FORMAT, SCHEMA

    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA application_id = {APPLICATION}")
        database.execute(f"PRAGMA user_version = {FORMAT}")
        database.execute("PRAGMA synchronous = OFF")
        database.execute("PRAGMA cache_size = -400000")
        database.executescript(SCHEMA)
        meta = {"roots": [url_of(0)], "source": "synthetic", "bodies": False, "finished": True}
        database.executemany("INSERT INTO meta VALUES (?, ?)", [(key, json.dumps(meta[key])) for key in meta])
        database.executemany("INSERT INTO texts VALUES (?, ?)", _texts(pages))
        rng = random.Random(0)
        for first in range(0, pages, _AT_ONCE):
            some = range(first, min(pages, first + _AT_ONCE))
            database.executemany("INSERT INTO pages VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)", map(_page, some))
            for page in some:
                if not is_file(page):
                    database.executemany("INSERT INTO links VALUES (?,?,?,?,?,?)", _links(page, pages, links, rng))
        database.commit()
    os.utime(path, (time.time() - 10,) * 2)  # columns are kept of recordings that are not being written to


def is_file(page: int) -> bool:
    """Whether a URL is that of a data file."""
    return page % _EVERY_FILE == _EVERY_FILE - 1


def url_of(page: int) -> str:
    """Return the URL with a number."""
    section = page % 97
    return f"{HOST}/section-{section}/{page}.csv" if is_file(page) else f"{HOST}/section-{section}/report/{page}.html"


def _texts(pages: int) -> Iterator[tuple[int, str]]:
    """Yield all strings: the headers, then tag paths, then the anchor and the context of each URL."""
    yield 0, ""
    yield 1, json.dumps({"Content-Type": "text/html; charset=utf-8", "Server": "nginx"})
    yield 2, json.dumps({"Content-Type": "text/csv", "Server": "nginx"})
    for place in range(_PLACES):
        yield 3 + place, f"html/body.page/div#main.box-{place % 60}/ul.list-{place // 60}/li.item/a.link"
    for page in range(pages):
        yield 3 + _PLACES + 2 * page, f"Report {page} of section {page % 97}"
        yield 4 + _PLACES + 2 * page, f"Published with table {page}: figures by region and year, revised"


def _page(page: int) -> tuple[Any, ...]:
    file, digest = is_file(page), (page * 2654435761 % (1 << 63)).to_bytes(8, "big")
    return (
        page, url_of(page), url_of(page), 200, None, "text/csv" if file else "text/html", 20_000, 0.1, None, None,
        2 if file else 1, 80, digest, None,
    )  # fmt: skip


def _links(page: int, pages: int, links: int, rng: random.Random) -> Iterator[tuple[int, ...]]:
    """Yield the links of a page; most have the anchor of their URL, and one in three a context."""
    below = page - page // _EVERY_FILE  # the pages before it
    targets = dict.fromkeys(min(_CHILDREN * below + each, pages - 1) for each in range(1, _CHILDREN + 1))
    targets |= dict.fromkeys(range(min(_SHARED, pages)))
    while len(targets) < min(links, pages):
        targets[rng.randrange(pages)] = None
    for position, target in enumerate(targets):
        place = 3 + (page % 50 * 60 + position) % _PLACES
        texts = 3 + _PLACES + 2 * target
        yield page, position, target, place, texts, texts + 1 if position % 3 == 0 else 0


def memory() -> dict[str, int]:
    """Return what this process takes, in bytes."""
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    found = {name.strip(): 1024 * int(value.split()[0]) for name, value in (line.split(":", 1) for line in lines)}
    private = found["Private_Clean"] + found["Private_Dirty"]
    return {"pss": found["Pss"], "private": private, "anonymous": found["Anonymous"]}


def open_and_wait(path: Path) -> None:
    """At each line that comes: say what this process takes, open a recording, say what it takes with it, end."""
    from scrapy_focus.lab.recordings.format import RecordedSite

    print(json.dumps({}), flush=True)
    sys.stdin.readline()
    before = memory()
    print(json.dumps({}), flush=True)
    sys.stdin.readline()
    cpu, wall = time.process_time(), time.perf_counter()
    site = RecordedSite(path)
    took = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall, "urls": site.n_urls}
    print(json.dumps(took), flush=True)
    sys.stdin.readline()
    print(json.dumps({name: value - before[name] for name, value in memory().items()}), flush=True)
    sys.stdin.readline()


def crawl(path: Path, name: str, budget: int) -> None:
    """Make the ground truth, and simulate a crawl; print the cost of each, and a checksum of the requests."""
    from scrapy_focus import FilesGoal
    from scrapy_focus.lab.recordings.format import RecordedSite
    from scrapy_focus.lab.replay.simulate import simulate
    from scrapy_focus.lab.replay.truth import SiteTruth
    from scrapy_focus.policies.branching import BranchingBandit
    from scrapy_focus.policies.orderings import BreadthFirst
    from scrapy_focus.web.mime import blocked_extensions

    policy = {"BreadthFirst": BreadthFirst, "BranchingBandit": BranchingBandit}[name]()
    site, goal = RecordedSite(path), FilesGoal()
    before, began = memory(), time.process_time()
    truth = SiteTruth(site, goal, ignored=blocked_extensions(goal.types))
    told, took = memory(), time.process_time() - began
    began = time.process_time()
    harvest = simulate(policy, goal, site, budget=budget, truth=truth)
    seconds = time.process_time() - began
    said = {
        "truth": took, "truth_bytes": told["anonymous"] - before["anonymous"], "urls": truth.exhaustive.requests,
        "requests": harvest.requests, "seconds": seconds, "found": float(harvest.found[-1]),
        "asked": hash((harvest.pages.tobytes(), harvest.found.tobytes())),
    }  # fmt: skip
    print(json.dumps(said), flush=True)


def child(checkout: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start this script on a checkout."""
    variables = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONHASHSEED": "0"}
    return subprocess.Popen(
        [sys.executable, __file__, *arguments], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def said_by(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the next line that a process says."""
    assert process.stdout
    return dict(json.loads(process.stdout.readline()))


def let_on(process: subprocess.Popen[str]) -> None:
    """Tell a blocked process to resume."""
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def open_together(checkout: Path, path: Path, n: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Open a recording in so many processes, one after the other, and return what each took in time and in memory.

    Each step is made by all of them before any makes the next one: what a process shares changes with the others.
    """
    processes = [child(checkout, "--open", str(path)) for _ in range(n)]
    steps = [[said_by(process) for process in processes]]
    for _ in range(3):
        said = []
        for process in processes:
            let_on(process)
            said.append(said_by(process))
        steps.append(said)
    for process in processes:
        let_on(process)
        process.wait()
    return steps[2], steps[3]


def measure(options: argparse.Namespace, path: Path) -> None:
    """Print the tables."""
    checkouts = {"this": Path(__file__).resolve().parents[1]}
    if options.beside:
        checkouts["beside"] = options.beside.resolve()
    print(f"\n{options.pages:,} URLs, {options.links} links on a page, recording {path.stat().st_size / 1e6:,.0f} MB\n")
    print("| checkout | opening | CPU s | wall-clock s | MB, all of Pss | MB, private | processes |")
    print("|---|---|--:|--:|--:|--:|--:|", flush=True)
    for name, checkout in checkouts.items():
        if name == "this":
            path.with_name(f"{path.name}.columns").unlink(missing_ok=True)
        for what in ("first", "again"):
            opened, taken = open_together(checkout, path, 1 if what == "first" else options.processes)
            print(
                f"| {name} | {what} | {statistics.median(each['cpu'] for each in opened):.3f} | "
                f"{statistics.median(each['wall'] for each in opened):.3f} | "
                f"{sum(each['pss'] for each in taken) / 1e6:,.1f} | {sum(each['private'] for each in taken) / 1e6:,.1f} | "
                f"{len(opened)} |", flush=True,
            )  # fmt: skip
    beside = [file for file in path.parent.iterdir() if file != path]
    print("\nbeside it: " + ", ".join(f"{file.name} {file.stat().st_size / 1e6:,.0f} MB" for file in beside))
    if not options.rounds:
        return
    print(
        "\n| policy | checkout | ground truth, CPU s | its memory, MB | requests | requests a minute of CPU | found |"
    )
    print("|---|---|--:|--:|--:|--:|--:|", flush=True)
    for policy in options.policies:
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in checkouts}
        for _ in range(options.rounds):
            for name, checkout in checkouts.items():
                process = child(checkout, "--crawl", str(path), "--policies", policy, "--budget", str(options.budget))
                found[name].append(said_by(process))
                process.wait()
        for name, runs in found.items():
            print(
                f"| {policy} | {name} | {statistics.median(run['truth'] for run in runs):.1f} | "
                f"{statistics.median(run['truth_bytes'] for run in runs) / 1e6:,.0f} | {runs[0]['requests']:,} | "
                f"{statistics.median(60 * run['requests'] / run['seconds'] for run in runs):,.0f} | "
                f"{runs[0]['found']:,.0f} |", flush=True,
            )  # fmt: skip
        courses = {run["asked"] for runs in found.values() for run in runs}
        print(f"all crawls of {policy} the same: {len(courses) == 1}", flush=True)


def main() -> None:
    """Make the recording if there is none, and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--links", type=int, default=36)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--policies", nargs="*", default=POLICIES, choices=POLICIES)
    parser.add_argument("--budget", type=int, default=20_000, help="requests of a simulated crawl")
    parser.add_argument("--rounds", type=int, default=3, help="of simulated crawls; 0: none")
    parser.add_argument("--beside", type=Path, help="another checkout to measure in turn")
    parser.add_argument("--recording", type=Path, help="where the recording is, or is to be written and kept")
    parser.add_argument("--open", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--crawl", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.open:
        open_and_wait(options.open)
    elif options.crawl:
        crawl(options.crawl, options.policies[0], options.budget)
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = options.recording or Path(folder, "synthetic.sqlite")
            if not path.exists():
                began = time.process_time()
                record(path, options.pages, options.links)
                print(f"recorded in {time.process_time() - began:.0f} s of CPU")
            measure(options, path)


if __name__ == "__main__":
    main()
