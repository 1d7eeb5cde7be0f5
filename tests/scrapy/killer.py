"""Starts crawlers and kills them: at random instants, and at those where it hurts.

A :class:`Nursery` runs the spider of :mod:`killed`, or another one, in forks of a process that has imported everything, so
that the fortieth start costs as little as the first. :class:`CommandLine` starts that of :mod:`killed` as a user does.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import killed
from scrapy.core.engine import ExecutionEngine
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.utils.misc import load_object

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from killed import KilledSite

AT_MOST = 60  # requests until a kill
LAST = 20  # requests: the end of a crawl
#: Seconds after which a process hangs for good, as in tests/made.py, which not all who use this can import.
PATIENCE = 900.0


def serve() -> None:
    """Run spiders in forks, one after another, as requested on stdin; report their process ids and statuses."""
    from sklearn.linear_model import SGDClassifier  # noqa: F401 (here and below: once, for all forks)

    import_what_crawls_need()
    import scrapy_focus.scheduler  # noqa: F401
    from scrapy_focus.policies import focused  # noqa: F401
    from scrapy_focus.policies.tagpath import offline, policy  # noqa: F401

    for line in sys.stdin:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            try:
                _run(**json.loads(line))
                os._exit(0)
            except BaseException:
                logging.getLogger().exception("this run failed")
                os._exit(1)
        print(pid, flush=True)
        print(os.waitpid(pid, 0)[1], flush=True)


def _run(settings: dict[str, Any], root: str, out: str, spider: str = "killed.Killed") -> None:
    output = os.open(Path(out, "output"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    ExecutionEngine._SLOT_HEARTBEAT_INTERVAL = 0.1
    process = AsyncCrawlerProcess({"TWISTED_REACTOR_ENABLED": False, **settings})
    process.crawl(load_object(spider), root=root, out=out)
    process.start()


def import_what_crawls_need() -> None:
    """Import everything that a crawl imports at its start: once, for all forks."""
    with suppress(ImportError):  # of Scrapy before 2.19
        import_module("scrapy.core.downloader.handlers._aiohttp")
    from scrapy.settings.default_settings import DOWNLOADER_MIDDLEWARES_BASE, EXTENSIONS_BASE, SPIDER_MIDDLEWARES_BASE

    for components in (EXTENSIONS_BASE, DOWNLOADER_MIDDLEWARES_BASE, SPIDER_MIDDLEWARES_BASE):
        for component in components:
            load_object(component)


class Nursery:
    """Starts runs of the spider, one at a time; to be closed."""

    code: ClassVar[str] = "import killer; killer.serve()"

    def __init__(self) -> None:
        path = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
        quiet = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path}
        self._process = subprocess.Popen(
            [sys.executable, "-c", self.code], env={**os.environ, **quiet}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def start(self, **run: Any) -> Running:
        """Start a run."""
        self._process.stdin.write(json.dumps(run) + "\n")
        self._process.stdin.flush()
        return Running(int(self._process.stdout.readline()), self._process.stdout.readline)


class CommandLine:
    """Starts runs of the spider as a user does."""

    def start(self, settings: dict[str, Any], root: str, out: str) -> Running:
        """Start a run."""
        options = [
            f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in settings.items()
        ]
        spider = [
            sys.executable,
            "-m",
            "scrapy",
            "runspider",
            killed.__file__,
            "-a",
            f"root={root}",
            "-a",
            f"out={out}",
        ]
        with Path(out, "output").open("ab") as output:
            process = subprocess.Popen(
                [*spider, *(word for option in options for word in ("-s", option))], stdout=output, stderr=output
            )
        return Running(process.pid, process.wait)


class Running:
    """A process that crawls."""

    def __init__(self, pid: int, wait: Callable[[], Any]) -> None:
        self.pid = pid
        self.begun = time.monotonic()
        self._ended = threading.Event()
        self.status: Any = None

        def watch() -> None:
            self.status = wait()
            self._ended.set()

        threading.Thread(target=watch, daemon=True).start()

    def ended(self, within: float = 0.0) -> bool:
        """Whether it ended, at the latest after so many seconds."""
        return self._ended.wait(within)

    def kill(self) -> None:
        """End it with SIGKILL, and wait until it is gone."""
        os.kill(self.pid, signal.SIGKILL)
        assert self.ended(PATIENCE)


@dataclass
class Kill:
    """One kill."""

    when: str
    seconds: float  # since the start of its process
    asked: int  # how many requests, without robots.txt, the site had got by then
    folder: Path  # a copy of the job as it was then


class Hunt:
    """Crawls a site in one job, killing the process over and over, until the crawl ends by itself.

    ``total`` is how many requests the whole crawl takes: with that, the site keeps it from its end until it was killed,
    however late that is.
    """

    def __init__(
        self, site: KilledSite, folder: Path, settings: dict[str, Any], rng: random.Random, *, total: int | None = None
    ) -> None:
        self.site = site
        self.total = total
        self.folder = folder
        self.settings = {
            "JOBDIR": str(folder / "job"),
            "FOCUS_LOG": str(folder / "log.jsonl"),
            "FEEDS": {str(folder / "feed.jsonl"): {"format": "jsonlines"}},
            **settings,
        }
        self.rng = rng
        self.kills: list[Kill] = []
        self.runs = 0
        self.stats: dict[str, Any] = {}

    def __str__(self) -> str:
        kills = ", ".join(f"{kill.when} after {kill.seconds:.3f} s" for kill in self.kills)
        return f"{self.folder}: {self.runs} runs, killed {kills or 'never'}"

    def run(self, nursery: Nursery | CommandLine, plan: list[str], *, patience: float = PATIENCE) -> None:
        """Kill as planned, by names of methods of this class; then let it run to its end."""
        self.folder.mkdir(parents=True)
        for when in [*plan, ""]:
            running = nursery.start(settings=self.settings, root=self.site.url(""), out=str(self.folder))
            self.runs += 1
            if when and getattr(self, when)(running):
                running.kill()
                self.note(when, running)
            else:
                self.site.go_on()
                assert running.ended(patience), f"{self}, and does not end"
                assert int(running.status) in (0, 130, 130 << 8), (  # interrupted by SIGTERM: an exit, or a wait status
                    f"{self}, and then ended with {running.status}: {self.output()[-3000:]}"
                )
            if (self.folder / "end").exists():
                self.stats = json.loads((self.folder / "end").read_text())
                break
            assert when, f"{self}, and then did not finish: {self.output()[-3000:]}"

    def note(self, when: str, running: Running) -> None:
        """Keep how things were when it was killed."""
        seconds = time.monotonic() - running.begun
        self.site.go_on()
        self.site.rest()
        copy = self.folder / f"killed-{len(self.kills)}"
        if (self.folder / "job/focus").exists():
            shutil.copytree(self.folder / "job/focus", copy)
        self.kills.append(Kill(when, seconds, len(self.site.asks), copy))

    def output(self) -> str:
        """Return what all runs logged."""
        return (self.folder / "output").read_text()

    # When to kill: each waits for its moment, and says whether it came before the process ended

    def sometime(self, running: Running) -> bool:
        """At any instant of the first second and a half."""
        self.hold()
        return not running.ended(self.rng.uniform(0.2, 1.5))

    def at_its_start(self, running: Running) -> bool:
        """While it is made, or recovers from the last kill."""
        self.hold()
        return not running.ended(self.rng.uniform(0.0, 0.35))

    def after_requests(self, running: Running) -> bool:
        """When the site has got some requests more."""
        enough = len(self.site.log) + self.rng.randint(1, AT_MOST)
        self.hold()
        return self._until(running, lambda: len(self.site.log) >= enough, self.rng.uniform(0, 0.02))

    def in_a_checkpoint(self, running: Running) -> bool:
        """When the file of a transaction has just grown, for example for the third time."""
        path = self.folder / "job/focus/frontier.sqlite-wal"
        sizes, enough = [size_of(path)], self.rng.randint(1, 8)
        self.hold()

        def grown() -> bool:
            if (size := size_of(path)) != sizes[-1]:
                sizes.append(size)
            return len(sizes) > enough

        return self._until(running, grown, self.rng.choice([0, 0, 0.001, 0.003]))

    def at_a_new_journal(self, running: Running) -> bool:
        """When a checkpoint was begun a moment ago."""
        folder, enough = self.folder / "job/focus", self.rng.randint(1, 4)
        known: set[str] = set()
        self.hold()

        def begun() -> bool:
            known.update(path.name for path in folder.glob("journal.*"))
            return len(known) > enough

        return self._until(running, begun, self.rng.choice([0, 0.001, 0.005]))

    def near_its_end(self, running: Running) -> bool:
        """When nothing was asked for in a while, so that it is about to close."""
        last = [len(self.site.log), time.monotonic() + 1.5]

        def quiet() -> bool:
            if len(self.site.log) != last[0]:
                last[:] = len(self.site.log), time.monotonic()
            return time.monotonic() - last[1] > 0.16

        return self._until(running, quiet, self.rng.uniform(0, 0.25))

    def hold(self) -> None:
        """Let the site hold back the crawl's last answers."""
        if self.total is not None:
            self.site.hold(self.total - LAST)

    def _until(self, running: Running, condition: Callable[[], bool], later: float) -> bool:
        while not condition() and not self.site.holds:
            if running.ended(0.0005):
                return False
        return not running.ended(later)


def size_of(path: Path) -> int:
    """Return the size of a file; -1 if it is gone by now."""
    try:
        return path.stat().st_size
    except OSError:
        return -1
