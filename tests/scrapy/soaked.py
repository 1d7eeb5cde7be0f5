"""The subject of the soak: its crawls and commands, how it disturbs them, and what it counts afterwards."""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import soakinside
from killer import AT_MOST, LAST, PATIENCE, Hunt, Nursery, Running, import_what_crawls_need, size_of
from mocksite import MockSite

from scrapy_focus.jobs.doctor.check import check_job

if TYPE_CHECKING:
    from typing import Self

    from mocksite import Answer, Seen

HERE = Path(__file__).parent
PROJECT = Path(__file__).parents[2] / "example_project"
ROBOTS = "/robots.txt"
BAD = (" ERROR: ", " CRITICAL: ", "Traceback (most recent", "never retrieved")
FULL = ("ERROR: scrapy_focus stops the crawl: ", "[scrapy_focus.engine.feeds] ERROR: the feed ")  # where a disk is
DAY = 86_400.0


class SoakSite(MockSite):
    """A seeded random tree of pages and files, with links across; notes when each answer had left.

    From page 10 on, half of them are files, each with other content. A page links to its children and to up to six
    others. An answer takes half of ``latency`` to one and a half of it, by its path; a page has ``size`` bytes.
    """

    def __init__(self, *, n: int = 400, seed: int = 0, latency: float = 0.01, size: int = 2000) -> None:
        super().__init__()
        rng = random.Random(seed)
        self.n, self.wait, self.size = n, latency, size
        self.names = [f"/f/{i}.csv" if i >= 10 and rng.random() < 0.5 else f"/p/{i}" for i in range(n)]
        pages = [i for i in range(n) if self.names[i].startswith("/p/")]
        below: dict[int, list[int]] = {page: [] for page in pages}
        for i in range(1, n):
            below[rng.choice([page for page in pages if page < i][-25:])].append(i)
        self.links = {self.names[i]: [*below[i], *rng.sample(range(n), rng.randrange(7))] for i in pages}
        self.left: dict[int, float] = {}  # place in the log -> when all of its answer had left

    @property
    def asks(self) -> list[str]:
        """Paths that were asked for, in order."""
        return [seen.path for seen in self.log if seen.path != ROBOTS]

    @property
    def files(self) -> set[str]:
        """Paths of the files."""
        return {name for name in self.names if name.startswith("/f/")}

    def begin(self, seen: Seen) -> None:
        super().begin(seen)
        if seen.path != ROBOTS:
            time.sleep(self.wait * (0.5 + (sum(seen.path.encode()) % 100) / 100))

    def sent(self, path: str) -> None:
        with self._lock:
            place = max(i for i, seen in enumerate(self.log) if seen.path == path)
            self.left[place] = time.monotonic()

    def answer(self, path: str) -> Answer:
        if path == ROBOTS:
            return 200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /never\n"
        if path in self.files:
            return 200, {"Content-Type": "text/csv"}, self.content(path)
        if path not in self.links:
            return 404, {"Content-Type": "text/plain"}, b"no such page"
        rows = "".join(
            f'<li class="{"file" if self.names[i].startswith("/f/") else "page"}"><a href="{self.names[i]}">{i}</a></li>'
            for i in self.links[path]
        )
        text = f"<p>words of {path} </p>" * (self.size // 25)
        return 200, {"Content-Type": "text/html"}, f"<html><body><ul>{rows}</ul>{text}</body></html>".encode()

    def content(self, path: str) -> bytes:
        """Return the bytes of a file."""
        return f"name,value\n{path},{sum(path.encode())}\n".encode() * 20


#: Exit statuses, and wait statuses, of crawls that ended normally: done, nothing found, budget used up, interrupted.
PEACE = frozenset(status << shift for status in (0, 3, 6, 130) for shift in (0, 8))


@dataclass(frozen=True)
class Subject:
    """A command whose crawls are soaked."""

    name: str
    settings: dict[str, Any]

    @property
    def is_datasets(self) -> bool:
        return self.name == "datasets"


ADDON = {"ADDONS": {"scrapy_focus.Addon": 500}, "FOCUS_ITEM_ID": "item_id"}
SUBJECTS = [
    Subject("datasets", {"FEEDS": {}}),
    *(
        Subject(f"stock, {name}{', add-on' if addon else ''}", {"SCHEDULER": f"scrapy_focus.{name}"} | addon)
        for name in ("FocusScheduler", "SleepingBanditScheduler", "TreeFrontierScheduler")
        for addon in ({}, ADDON)
    ),
]


def serve() -> None:
    """Run commands of Scrapy in forks of this process, one after the other; see :func:`killer.serve`."""
    from scrapy import cmdline
    from sklearn.linear_model import SGDClassifier  # noqa: F401 (here and below: once, for all forks)

    import_what_crawls_need()
    import scrapy_focus.downloadermiddlewares
    import scrapy_focus.extensions
    import scrapy_focus.pipelines
    import scrapy_focus.schedulers
    import scrapy_focus.spidermiddlewares  # noqa: F401

    assert "twisted.internet.reactor" not in sys.modules  # one reactor for all forks would be one epoll
    for line in sys.stdin:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                run = json.loads(line)
                _become(run)
                cmdline.execute(run["argv"])
            except SystemExit as end:
                status = int(end.code or 0)
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stderr.flush()
                os._exit(status)
        print(pid, flush=True)
        print(os.waitpid(pid, 0)[1], flush=True)


def _become(run: dict[str, Any]) -> None:
    output = os.open(run["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(run["cwd"])
    os.environ.update(run["env"])
    sys.path[:0] = run["env"]["PYTHONPATH"].split(os.pathsep)
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Cradle(Nursery):
    """Starts commands of Scrapy in forks, to be closed; every fourth, and those whose clock is wrong, as a user does."""

    code = "import soaked; soaked.serve()"

    def __init__(self) -> None:
        super().__init__()
        self.runs = 0

    def start(self, **run: Any) -> Running:
        self.runs += 1
        self.forks = self.runs % 4 != 0 and "SOAK_CLOCK" not in run["env"]
        if self.forks:
            return super().start(**run)
        with Path(run["output"]).open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", *run["argv"]], cwd=run["cwd"], env={**os.environ, **run["env"]},
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip
        return Running(process.pid, process.wait)


@dataclass
class Counts:
    """What one crawl, or several, requested from the site and stored."""

    crawls: int = 0
    runs: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    full: int = 0  # times that the disk was
    jumps: int = 0  # runs whose clock was wrong
    asked: int = 0  # lines in the server's log, robots.txt apart
    lost_pages: int = 0
    lost_items: int = 0
    doubled_items: int = 0  # with the same id
    odd_items: int = 0  # cut lines, files that are not whole, two ids of one page
    overshoot: int = 0  # requests above the budget
    needless: int = 0  # requests repeated within one run
    twice: int = 0  # requests beyond the first for a path
    left: int = 0  # of these, those whose answer had left the server before the kill
    arrived: int = 0  # of these, those whose answer the crawler had read before the kill
    unclean: int = 0  # times that focus-check found anything
    errors: int = 0  # lines of the log

    def add(self, other: Counts) -> None:
        """Add the counts of other crawls."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    @property
    def faults(self) -> int:
        """How much is not as it should be."""
        lost = self.lost_pages + self.lost_items + self.odd_items
        return lost + self.overshoot + self.needless + self.unclean + self.errors


class Soak(Hunt):
    """Crawls a site with one command to its end, breaking in as planned; first under a budget, if there is one."""

    site: SoakSite

    def __init__(
        self,
        subject: Subject,
        site: SoakSite,
        folder: Path,
        rng: random.Random,
        *,
        budget: int = 0,
        settings: dict[str, Any] | None = None,
    ) -> None:
        given = {
            "CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 8, "DOWNLOAD_DELAY": 0, "LOG_LEVEL": "INFO",
            "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False, "STATS_CLASS": "soakinside.Dump",
            # on a full disk Scrapy leaves an empty spider.state, about which each later run logs errors
            "EXTENSIONS": {"soakinside.Arrived": 1, "scrapy.extensions.spiderstate.SpiderState": None},
            "FOCUS_PROGRESS": "off", "FOCUS_SEED": rng.randrange(1000),
            "FOCUS_CHECKPOINT_EVERY": rng.choice([7, 40, 1000]),
        }  # fmt: skip
        super().__init__(site, folder, {**given, **subject.settings, **(settings or {})}, rng)
        self.subject = subject
        self.budget = budget
        self.done = Counts(crawls=1)
        self.problems: list[str] = []  # what was counted as a fault, in words
        self.disk: Path | None = None  # the file system of the job, if it is separate
        self._killed: list[tuple[int, float, int]] = []  # lines in the server's log, time, process

    # One crawl

    def run(self, nursery: Cradle, plan: list[str], *, patience: float = PATIENCE) -> Counts:  # type: ignore[override]
        """Crawl, with one run for each step of the plan and one more; return the results."""
        self.nursery, self.patience = nursery, patience
        self.folder.mkdir(parents=True)
        with ExitStack() as stack:
            if "full_disk" in plan:
                stack.enter_context(SmallDisk(self, self.folder / "job"))
            if self.budget:
                half = self.rng.randint(1, max(1, len(plan) - 1))
                self._go(plan[:half], self.budget)
                used, seen = self.stats["focus/requests"], len(self.site.log)
                if seen > self.budget:
                    self._wrong(
                        "overshoot", f"{seen} requests of {self.budget} in the server's log", seen - self.budget
                    )
                if used != self.budget:
                    self._wrong("errors", f"{used} requests counted of a budget of {self.budget}")
                plan = plan[half:]
            self._go(plan, 0)
            self._count()
        return self.done

    def _go(self, plan: list[str], budget: int) -> None:
        self.total = budget or self.site.n
        (self.folder / "end").unlink(missing_ok=True)
        for step in [*plan, ""]:
            is_wrong = step == "wrong_clock" or (not step and "wrong_clock" in plan)
            if step == "wrong_clock":
                step = self.rng.choice(["after_requests", "told_to_stop"])  # noqa: PLW2901
            env = self._clock() if is_wrong else {}
            running = self._start(budget, env)
            if step == "full_disk":
                self.full_disk(running)
            elif step and getattr(self, step)(running):
                with suppress(ProcessLookupError):  # it has just ended
                    running.kill()
                    self.note(step, running)
            else:
                self.site.go_on()
                if not running.ended(self.patience):
                    running.kill()
                    raise AssertionError(f"{self}, and does not end: {self.output()[-3000:]}")
                if int(running.status) not in PEACE:
                    self._wrong("errors", f"ended with status {running.status}")
            if (self.folder / "end").exists():
                self.stats = json.loads((self.folder / "end").read_text())
                return
        raise AssertionError(f"{self}, and then did not finish: {self.output()[-3000:]}")

    def _start(self, budget: int, env: dict[str, str]) -> Running:
        self.runs += 1
        settings = self.settings | ({"FOCUS_BUDGET_REQUESTS": budget} if budget else {})
        command = ["crawl", "datasets", "-a", f"out={self.folder / 'found'}"]
        if not self.subject.is_datasets:
            command = ["runspider", soakinside.__file__]
        options = [
            f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in settings.items()
        ]
        argv = ["scrapy", *command, "-a", f"root={self.site.url('/p/0')}"]
        path = [str(HERE), str(PROJECT.parent), os.environ.get("PYTHONPATH", "")]
        if "SOAK_CLOCK" in env:
            path.insert(0, str(HERE / "wrongclock"))
        return self.nursery.start(
            argv=[*argv, *(word for option in options for word in ("-s", option))],
            cwd=str(PROJECT if self.subject.is_datasets else self.folder), output=str(self.folder / "output"),
            env={"PYTHONPATH": os.pathsep.join(filter(None, path)), "SOAK_END": str(self.folder / "end"), **env},
        )  # fmt: skip

    def _clock(self) -> dict[str, str]:
        """Return environment variables that make the clock of a run wrong from its start, and jump mid-run."""
        self.done.jumps += 1
        offs = [-3650 * DAY, -30 * DAY, -3600.0, -60.0, 0.0, 60.0, 3600.0, 30 * DAY, 3650 * DAY]
        off = [self.rng.choice(offs), self.rng.choice(offs), self.rng.uniform(0.5, 3)]
        return {"SOAK_CLOCK": json.dumps(off)}

    # When to interrupt, in addition to Hunt's instants

    def at_its_start(self, running: Running) -> bool:
        """While it is made, or recovers from the last kill."""
        self.hold()
        return not running.ended(self.rng.uniform(0.0, 0.35) if self.nursery.forks else self.rng.uniform(0.2, 2.0))

    def hold(self) -> None:
        """Let the site answer some more requests, but none of the crawl's last ones."""
        self.site.hold(min(len(self.site.log) + AT_MOST, (self.total or math.inf) - LAST))

    def told_to_stop(self, running: Running) -> bool:
        """While it ends in peace, up to 0.6 seconds after SIGTERM."""
        if not self.after_requests(running):
            return False
        os.kill(running.pid, signal.SIGTERM)
        self.site.go_on()
        return not running.ended(self.rng.uniform(0, 0.6))

    def full_disk(self, running: Running) -> None:
        """Fill the disk mid-crawl: the run ends with a status, and nothing is damaged."""
        if not self.after_requests(running):
            return
        fill(running.pid, self.disk, self.folder / "job/focus")
        self.site.go_on()
        if not running.ended(self.patience):
            running.kill()
            self._wrong("errors", "a full disk did not end the run")
        if self.disk is not None:
            (self.disk / "filler").unlink()
        said = [line for line in self.output().splitlines() if "scrapy_focus stops the crawl" in line]
        if (self.folder / "end").exists() and running.status is not None and int(running.status) in PEACE:
            return  # before it noticed
        (self.folder / "end").unlink(missing_ok=True)  # what was said last may not have been written
        self.done.full += 1
        self._broken(running)
        if not said or running.status is None or int(running.status) in PEACE:
            self._wrong("errors", f"a full disk ended the run with status {running.status}, and said {said[-1:]}")

    def note(self, when: str, running: Running) -> None:
        self.done.kills[when] += 1
        self._broken(running)

    def _broken(self, running: Running) -> None:
        """Note the site's state when a run did not end normally, and check the files that it left."""
        now = time.monotonic()
        self.site.go_on()
        self.site.rest()
        self._killed.append((len(self.site.log), now, running.pid))
        self._examine()

    # The results

    def _examine(self) -> None:
        """Run focus-check on a copy of the job."""
        if not (self.folder / "job/focus/frontier.sqlite").exists():
            return
        copy = self.folder / "copy"
        shutil.copytree(self.folder / "job/focus", copy)
        said: list[str] = []
        checkup = check_job(copy, say=said.append)
        if not checkup.is_well:
            self._wrong("unclean", f"focus-check after {self.runs} runs: {said}")
            copy.rename(self.folder / f"unclean-{self.runs}")
        else:
            shutil.rmtree(copy)

    def _count(self) -> None:
        done, site = self.done, self.site
        times = Counter(site.asks)
        done.runs, done.asked = self.runs, len(site.asks)
        if lost := set(site.names) - times.keys():
            self._wrong("lost_pages", f"never asked for: {sorted(lost)}", len(lost))
        self._count_repeats()
        (self._count_stored if self.subject.is_datasets else self._count_feed)()
        said = [line for line in self.output().splitlines() if any(word in line for word in BAD)]
        bad = [line for line in said if not (done.full and any(words in line for words in FULL))]
        if bad:
            self._wrong("errors", "\n".join(bad), len(bad))
        if self.stats["focus/requests"] < len(site.log):
            self._wrong("errors", f"{self.stats['focus/requests']} counted, {len(site.log)} in the server's log")
        self._examine()

    def _count_repeats(self) -> None:
        """Count repeated requests, and how far the response had come when the run was killed."""
        lines = (self.folder / "end.arrived").read_text().splitlines()
        arrived = {(int(pid), path) for pid, path in (line.split() for line in lines)}
        last: dict[str, int] = {}
        timeouts = self.folder / "end.timeouts"
        overdue = len(timeouts.read_text().splitlines()) if timeouts.exists() else 0
        for i, seen in enumerate(self.site.log):
            if seen.path == ROBOTS:
                continue
            if seen.path in last:
                self.done.twice += 1
                before = last[seen.path]
                kills = [(at, pid) for lines, at, pid in self._killed if before < lines <= i]
                if not kills and overdue:  # a clock that jumped ended the wait for its answer
                    overdue -= 1
                    continue
                if not kills:
                    self._wrong("needless", f"{seen.path} was asked for again, and was not in flight at a kill")
                    continue
                self.done.left += self.site.left.get(before, math.inf) < kills[0][0]
                self.done.arrived += (kills[0][1], seen.path) in arrived
            last[seen.path] = i

    def _count_feed(self) -> None:
        urls, ids = Counter[str](), set[tuple[str, str]]()
        for line in Path(*self.settings["FEEDS"]).read_text().splitlines():
            try:
                item = json.loads(line)
            except ValueError:
                self._wrong("odd_items", f"a line of the feed is {line!r}")
                continue
            urls[item["url"].removeprefix(self.site.url(""))] += 1
            ids.add((item["url"], item.get("item_id", "")))
        self._missing(self.site.files - urls.keys())
        self.done.doubled_items = urls.total() - len(urls)
        if len(ids) > len(urls):
            self._wrong("odd_items", "one item has several ids", len(ids) - len(urls))

    def _count_stored(self) -> None:
        found = self.folder / "found"
        sums = {hashlib.sha256(self.site.content(path)).hexdigest(): path for path in self.site.files}
        lines = [json.loads(line) for line in (found / "manifest.jsonl").read_text().splitlines()]
        self._missing({path for sum_, path in sums.items() if sum_ not in {line["sha256"] for line in lines}})
        self.done.doubled_items = len(lines) - len({line["sha256"] for line in lines})
        listed = {line["path"]: line["sha256"] for line in lines}
        for path in (path for path in (found / "files").rglob("*") if path.is_file()):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            if content != listed.get(path.relative_to(found).as_posix()) or content not in sums:
                self._wrong("odd_items", f"{path} holds {content}")

    def _missing(self, files: set[str]) -> None:
        if files:
            self._wrong("lost_items", f"no item of {sorted(files)}", len(files))

    def _wrong(self, kind: str, what: str, n: int = 1) -> None:
        setattr(self.done, kind, getattr(self.done, kind) + n)
        self.problems.append(f"{kind}: {what}")


class SmallDisk:
    """Makes the folder of a job a file system, if one can be mounted; otherwise a file limit replaces it."""

    def __init__(self, soak: Soak, folder: Path) -> None:
        self.soak = soak
        self.folder = folder

    def __enter__(self) -> Self:
        self.folder.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(self.folder)]
        if shutil.which("mount") and not subprocess.run(mount, check=False, capture_output=True).returncode:
            self.soak.disk = self.folder
            if not self.soak.subject.is_datasets and self.soak.rng.random() < 0.5:
                self.soak.settings["FEEDS"] = {str(self.folder / "feed.jsonl"): {"format": "jsonlines"}}
        return self

    def __exit__(self, *_: object) -> None:
        if self.soak.disk is not None:
            # Lazily, as a crawl that was interrupted may still have files open there.
            subprocess.run(["umount", "--lazy", str(self.folder)], check=True)


def fill(pid: int, disk: Path | None, job: Path) -> None:
    """Fill a disk; without a separate one, limit the files of a process to the journal's size."""
    if disk is None:
        size = max(map(size_of, job.glob("journal.*")), default=0)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size + 20_000, size + 20_000))
        return
    chunk = 1 << 20
    with (disk / "filler").open("wb", buffering=0) as filler:
        while chunk >= 1:
            try:
                filler.write(b"x" * chunk)
            except OSError:
                chunk //= 2
