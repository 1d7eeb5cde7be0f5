"""How many files a crawl finds with its first requests: live crawls of real sites, next to what people use otherwise.

Each crawl runs in a separate process and crawls a site of ``sites.py``, served on 127.0.0.1 by this one. Measured:
distinct URLs of wanted files (``FilesGoal``) that were downloaded after 100, 300 and 1,000 requests, by the log of the
server. Each GET or HEAD counts as a request, those for robots.txt and for redirects, dead links, pictures and style
sheets too. Not measured: time, delays, servers that refuse. The crawlers:

* ``focus``: ``focus files URL``, with its default policy;
* ``scrapy``: a stock Scrapy spider, breadth-first (``other_crawlers/scrapy_breadth_first.py``);
* ``wget``: ``wget --recursive --level=inf``, which can have only one request in flight;
* ``crawl4ai``: its best-first strategy with words of data files (``other_crawlers/crawl4ai_best_first.py``). It needs
  the path of a Python that has crawl4ai, in a separate environment (``--crawl4ai``).

All send requests without a pause, and skip links with the extensions of pictures, films, sounds, fonts, style sheets
and scripts. All follow links that pages mark as nofollow, as Scrapy and crawl4ai always do. ``focus files`` obeys such
marks by default, and wget those of whole pages. Both would not see the same site, so this script turns that off. All
but wget request robots.txt, which allows everything and does not count as a file. The server adds it because crawl4ai
requests a missing one again before each page. With more than one request in flight, each answer takes 200 ms. Each
crawl is stopped when the server has answered as many requests as the budget. Runs that are in the output are not
repeated. ::

    python -m venv c4 && c4/bin/pip install crawl4ai
    python benchmarks/first_requests.py run twisted asio --crawl4ai c4/bin/python --out first.jsonl
    python benchmarks/first_requests.py table first.jsonl
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from collections import Counter
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.lab.sites.server import SiteServer
from scrapy_focus.web.mime import BLOCKED_EXTENSIONS, extension
from sites import SITES, open_site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from scrapy_focus.lab.sites.server import Request, Site

MARKS = (100, 300, 1000)  # requests
BUDGET = 1050  # requests
WORDS = ("pdf", "doc", "ppt", "xls", "csv", "download", "data", "publication")
ROBOTS = "/robots.txt"
_OTHERS = Path(__file__).parent / "other_crawlers"
_SKIPPED = ",".join(sorted(BLOCKED_EXTENSIONS))
_LATENCY = 0.2  # seconds; with 0.02, the server had less than one request at once, as crawlers need longer to read
_STEP = 0.02  # seconds between two looks at the log
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


class AllowsAll:
    """A site with a robots.txt that allows everything."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def fetch(self, path: str) -> Page:
        """Return the answer to a request for `path`."""
        if path == ROBOTS:
            return Page.of(b"User-agent: *\nDisallow:\n", mime="text/plain")
        return self.site.fetch(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a crawler is asked for."""

    url: str  # of the first page
    out: str  # an empty folder
    budget: int  # requests
    in_flight: int
    seed: int
    python: str  # that has crawl4ai; "" for none


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawler:
    """How to start a crawler, and what is true of it."""

    command: Callable[[Asked], list[str]]
    most_in_flight: int | None = None  # None: any number
    is_random: bool = False  # whether it takes a seed
    good: frozenset[int] = frozenset({0})  # exit statuses of a crawl that went well


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The results of one crawl."""

    site: str
    crawler: str
    in_flight: int
    seed: int
    budget: int  # requests
    requests: int  # by the log
    heads: int  # of these
    skippable: int  # of these, for pictures, style sheets, scripts and the like
    statuses: dict[str, int]  # status -> requests
    found: tuple[int, ...]  # for each file, the number of the request that downloaded it first, from 1
    seconds: float
    ended: str  # "budget", "itself" if no link was left, "timeout"

    @property
    def key(self) -> tuple[str, str, int, int, int]:
        """What distinguishes the run from others of the same output."""
        return self.site, self.crawler, self.in_flight, self.seed, self.budget

    def files(self, requests: int) -> int | None:
        """Return how many files the first `requests` found, or ``None`` if the crawl was stopped before it sent them.

        A crawl that found no more links keeps its last number.
        """
        is_known = requests <= self.requests or (self.ended == "itself" and requests <= self.budget)
        if not is_known:
            return None
        return bisect_right(self.found, requests)


def focus_command(asked: Asked) -> list[str]:
    """``focus files URL`` without a delay, and with links that are marked as nofollow."""
    settings: dict[str, int | str] = {
        "CONCURRENT_REQUESTS": asked.in_flight,
        "CONCURRENT_REQUESTS_PER_DOMAIN": asked.in_flight,
        "DOWNLOAD_DELAY": 0,
        "FOCUS_SEED": asked.seed,
        "FOCUS_OBEY": "retry-after,robots-errors,crawl-delay",  # the default without nofollow
    }
    if asked.in_flight == 1:
        settings["FOCUS_MAX_INFLIGHT"] = 1  # else Scrapy takes the next link before it has read the last page
    command = [sys.executable, "-m", "scrapy_focus", "files", asked.url]
    command += ["--out", asked.out, "--budget", str(asked.budget), "--loglevel", "WARNING"]
    return command + _settings(settings)


def scrapy_command(asked: Asked) -> list[str]:
    """A stock spider, breadth-first."""
    command = [sys.executable, "-m", "scrapy", "runspider", str(_OTHERS / "scrapy_breadth_first.py")]
    command += ["-a", f"url={asked.url}", "-a", f"out={asked.out}", "-a", f"skip={_SKIPPED}", "--loglevel", "WARNING"]
    in_flight = asked.in_flight
    return command + _settings({"CONCURRENT_REQUESTS": in_flight, "CONCURRENT_REQUESTS_PER_DOMAIN": in_flight})


def wget_command(asked: Asked) -> list[str]:
    """Recursive download without a limit of the depth; robots=off is its only way to follow nofollow links."""
    rejected = ",".join(f".{each}" for each in sorted(BLOCKED_EXTENSIONS))
    command = ["wget", "--no-config", "--no-verbose", "--recursive", "--level=inf", f"--directory-prefix={asked.out}"]
    return [*command, f"--reject={rejected}", "--ignore-case", "--execute", "robots=off", asked.url]


def crawl4ai_command(asked: Asked) -> list[str]:
    """Best first by the words of the URL."""
    script, numbers = str(_OTHERS / "crawl4ai_best_first.py"), [str(asked.budget), str(asked.in_flight)]
    return [asked.python, script, asked.url, asked.out, *numbers, _SKIPPED, ",".join(WORDS)]


CRAWLERS = {
    "focus": Crawler(command=focus_command, is_random=True, good=frozenset({0, 3})),  # 3: no file was found
    "scrapy": Crawler(command=scrapy_command),
    "wget": Crawler(command=wget_command, most_in_flight=1, good=frozenset({0, 8})),  # 8: a link was dead
    "crawl4ai": Crawler(command=crawl4ai_command),
}


def crawl(
    site: Site,
    start: str,
    name: str,
    *,
    budget: int = BUDGET,
    in_flight: int = 1,
    seed: int = 0,
    python: str = "",
    patience: float = 900.0,
) -> tuple[list[Request], str]:
    """Crawl `site` from the path `start` with the crawler called `name`; return the log, and what ended the crawl.

    The log ends with the budget. After `patience` seconds the crawl is stopped with ``"timeout"``.

    Raises
    ------
    SystemExit
        The crawler failed; the message has its last lines.
    """
    crawler = CRAWLERS[name]
    environment = {key: value for key, value in os.environ.items() if key.lower() not in _PROXIES}
    latency = _LATENCY if in_flight > 1 else 0.0
    with SiteServer(AllowsAll(site), latency=latency) as server, tempfile.TemporaryDirectory() as folder:
        url, out = server.url.removesuffix("/") + start, str(Path(folder, "out"))
        asked = Asked(url=url, out=out, budget=budget, in_flight=in_flight, seed=seed, python=python)
        printed = Path(folder, "printed")
        with printed.open("wb") as file:
            child = subprocess.Popen(
                crawler.command(asked), cwd=folder, env=environment, stdout=file, stderr=file, start_new_session=True
            )
            ended = _wait(child, server, budget, patience)
        if ended == "itself" and child.returncode not in crawler.good:
            last = printed.read_text(errors="replace")[-2000:]
            raise SystemExit(f"{name} ended with status {child.returncode} after {server.requests} requests:\n{last}")
        return server.log[:budget], ended


def find_files(log: Iterable[Request], site: Site) -> tuple[int, ...]:
    """Return the numbers, from 1, of the requests that were the first to download a wanted file."""
    goal = FilesGoal()
    seen: set[str] = set()
    found = []
    for number, request in enumerate(log, 1):
        if request.method != "GET" or request.status != 200 or request.path == ROBOTS or request.path in seen:
            continue
        seen.add(request.path)
        if goal.wants(site.fetch(request.path).mime, request.path):
            found.append(number)
    return tuple(found)


def measure(name: str, folder: Path, crawler: str, in_flight: int, seed: int, budget: int, python: str) -> Run:
    """Crawl the site of ``sites.py`` called `name`, and count."""
    site = open_site(name, folder)
    began = time.monotonic()
    start = SITES[name].start
    log, ended = crawl(site, start, crawler, budget=budget, in_flight=in_flight, seed=seed, python=python)
    statuses = Counter(str(each.status) for each in log)
    return Run(
        site=name,
        crawler=crawler,
        in_flight=in_flight,
        seed=seed,
        budget=budget,
        requests=len(log),
        heads=sum(each.method == "HEAD" for each in log),
        skippable=sum(extension(each.path) in BLOCKED_EXTENSIONS for each in log),
        statuses=dict(sorted(statuses.items())),
        found=find_files(log, site),
        seconds=round(time.monotonic() - began, 1),
        ended=ended,
    )


def read_runs(path: Path) -> list[Run]:
    """Return the runs of an output, none if it does not exist.

    Raises
    ------
    SystemExit
        A line is not a run of this script.
    """
    if not path.exists():
        return []
    runs = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            fields = json.loads(line)
            runs.append(Run(**{**fields, "found": tuple(fields["found"])}))
        except (KeyError, TypeError, ValueError) as error:
            raise SystemExit(
                f"line {number} of {path} is not a run of first_requests.py ({error}); remove it, or name another file"
            ) from None
    return runs


def table(runs: Sequence[Run]) -> str:
    """A table in Markdown for each number of requests in flight: the mean of the seeds, and the least and the most.

    A number of requests that a crawl did not reach has ``-``.
    """
    lines = []
    for in_flight in sorted({run.in_flight for run in runs}):
        lines += [f"{in_flight} in flight: files after", ""]
        lines += ["| site | crawler | " + " | ".join(f"{mark:,}" for mark in MARKS) + " requests | sent |"]
        lines += ["|---|---|" + "--:|" * (len(MARKS) + 1)]
        for site, crawler in product(dict.fromkeys(run.site for run in runs), CRAWLERS):
            of = [run for run in runs if (run.site, run.crawler, run.in_flight) == (site, crawler, in_flight)]
            if of:
                cells = [_range([run.files(mark) for run in of]) for mark in MARKS]
                cells.append(_range([run.requests for run in of]))
                lines.append(f"| {site} | {crawler} | {' | '.join(cells)} |")
        lines.append("")
    for crawler in CRAWLERS:
        if not any(run.crawler == crawler for run in runs):
            lines.append(f"No run of {crawler} is in the file.")
    return "\n".join(lines).rstrip()


def _range(counts: Sequence[int | None]) -> str:
    """Return the mean, with the least and the most if they differ; ``-`` if one is unknown."""
    numbers = [count for count in counts if count is not None]
    if len(numbers) < len(counts):
        return "-"
    low, high = min(numbers), max(numbers)
    if low == high:
        return f"{low:,}"
    return f"{mean(numbers):,.0f} ({low:,} to {high:,})"


def _settings(settings: Mapping[str, int | str]) -> list[str]:
    options = []
    for name, value in settings.items():
        options += ["-s", f"{name}={value}"]
    return options


def _wait(child: subprocess.Popen[bytes], server: SiteServer, budget: int, patience: float) -> str:
    """Wait until the crawl ends or the budget is spent, leave no process, and return what ended it."""
    latest = time.monotonic() + patience
    ended = ""
    try:
        while not ended:
            time.sleep(_STEP)
            if server.requests >= budget:
                ended = "budget"
            elif child.poll() is not None:
                ended = "itself"
            elif time.monotonic() > latest:
                ended = "timeout"
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    return ended


def _run(options: argparse.Namespace) -> None:
    names = list(options.crawlers)
    for name, why in _missing(options).items():
        if name in names:
            print(f"{name} is left out: {why}", file=sys.stderr)
            names.remove(name)
    done = {run.key for run in read_runs(options.out)}
    for site, name, in_flight in product(options.sites, names, options.in_flight):
        crawler = CRAWLERS[name]
        if crawler.most_in_flight is not None and in_flight > crawler.most_in_flight:
            continue
        seeds = range(options.seeds if crawler.is_random else 1)
        for seed in seeds:
            if (site, name, in_flight, seed, options.budget) in done:
                continue
            run = measure(site, options.folder, name, in_flight, seed, options.budget, options.crawl4ai)
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(run)) + "\n")
            counts = " ".join(_range([run.files(mark)]) for mark in MARKS)
            print(
                f"{site} {name}, {in_flight} in flight, seed {seed}: {counts} files; {run.requests} requests, "
                f"{run.seconds} s, ended by {run.ended}",
                flush=True,
            )


def _missing(options: argparse.Namespace) -> dict[str, str]:
    """Return which crawlers cannot be run, and why."""
    missing = {}
    if shutil.which("wget") is None:
        missing["wget"] = "it is not installed; run apt-get install wget"
    if not options.crawl4ai:
        missing["crawl4ai"] = "give the Python of an environment that has it, as --crawl4ai c4/bin/python"
        return missing
    options.crawl4ai = str(Path(options.crawl4ai).absolute())  # not resolved: a symbolic link leaves the environment
    try:
        subprocess.run([options.crawl4ai, "-c", "import crawl4ai"], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"{options.crawl4ai} cannot import crawl4ai ({error}); run its pip install crawl4ai") from None
    return missing


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="crawl, and add a line for each crawl to the output")
    run.add_argument("sites", metavar="SITE", choices=sorted(SITES), nargs="+", help="a name of sites.py")
    run.add_argument("--folder", type=Path, default=Path("sites"), help="where sites.py fetched the packages")
    run.add_argument("--out", type=Path, default=Path("first_requests.jsonl"))
    run.add_argument("--crawlers", nargs="+", choices=CRAWLERS, default=list(CRAWLERS))
    run.add_argument("--in-flight", type=int, nargs="+", default=[1, 8])
    run.add_argument("--seeds", type=int, default=3, help="of focus; the others have none")
    run.add_argument("--budget", type=int, default=BUDGET, help="requests of a crawl")
    run.add_argument("--crawl4ai", default="", metavar="PYTHON", help="of an environment that has crawl4ai")
    show = commands.add_parser("table", help="print the tables of an output")
    show.add_argument("out", type=Path)
    options = parser.parse_args(arguments)
    if options.command == "run":
        if min(options.in_flight) < 1 or options.seeds < 1 or options.budget < 1:
            parser.error("--in-flight, --seeds and --budget take numbers from 1")
        _run(options)
        return
    runs = read_runs(options.out)
    if not runs:
        raise SystemExit(f"{options.out} has no runs; name an output of first_requests.py run")
    print(table(runs))


if __name__ == "__main__":
    main()
