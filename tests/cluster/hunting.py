"""Crawls of several processes that are killed or stopped for a while: a leader behind a socket, its workers, and who
kills them.

All are forks of one process that has imported everything.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tests.made import HANG

if TYPE_CHECKING:
    import random
    from typing import Self

    from killed import KilledSite

TESTS = Path(__file__).parents[1]
AHEAD = 24  # requests that a site answers before it waits for who kills, more than a worker has leases


def serve() -> None:
    """Run leaders and workers in forks, as requested on stdin; report their process ids and statuses."""
    import killer

    import scrapy_focus.scheduler  # noqa: F401
    from tests.cluster import sockets

    killer.import_what_crawls_need()
    lock = threading.Lock()

    def wait(pid: int) -> None:
        status = os.waitpid(pid, 0)[1]
        with lock:
            print("ended", pid, status, flush=True)

    for line in sys.stdin:
        run = json.loads(line)
        with lock:
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                try:
                    if "path" in run:
                        _to(run["output"])
                        sockets.serve(run["path"])
                    killer._run(**run)
                    os._exit(0)
                except BaseException:
                    import logging

                    logging.getLogger().exception("this run failed")
                    os._exit(1)
            print("began", pid, flush=True)
        threading.Thread(target=wait, args=(pid,), daemon=True).start()


def _to(path: str) -> None:
    import logging

    output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    logging.basicConfig(level=logging.INFO, format="leader: %(levelname)s %(message)s")


class Forks:
    """Starts leaders and workers; to be closed."""

    def __init__(self) -> None:
        paths = [str(TESTS.parent), str(TESTS / "scrapy"), os.environ.get("PYTHONPATH", "")]
        quiet = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from tests.cluster import hunting; hunting.serve()"],
            env={**os.environ, **quiet}, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.running: set[int] = set()
        self.ended: dict[int, int] = {}  # how
        self._begun: list[int] = []
        self._news = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in [*self.running]:
            self.kill(pid)
        self._process.stdin.close()
        self._process.wait()

    def start(self, **run: Any) -> int:
        """Start a leader or worker, and return its process id."""
        self._process.stdin.write(json.dumps(run) + "\n")
        self._process.stdin.flush()
        with self._news:
            assert self._news.wait_for(lambda: self._begun, HANG)
            return self._begun.pop()

    def kill(self, pid: int) -> bool:
        """End a process with SIGKILL, and wait until it is gone; ``False`` if it had ended."""
        with self._news:
            if pid not in self.running:
                return False
            os.kill(pid, signal.SIGKILL)
            assert self._news.wait_for(lambda: pid not in self.running, HANG)
            return self.ended[pid] == signal.SIGKILL

    def wait(self, pid: int, seconds: float) -> bool:
        """Wait for the end of a process; ``False`` if it does not end."""
        with self._news:
            return self._news.wait_for(lambda: pid not in self.running, seconds)

    def _read(self) -> None:
        for line in self._process.stdout:
            word, pid, *status = line.split()
            with self._news:
                if word == "began":
                    self.running.add(int(pid))
                    self._begun.append(int(pid))
                else:
                    self.running.discard(int(pid))
                    self.ended[int(pid)] = int(status[0])
                self._news.notify_all()


class SharedHunt:
    """Crawls a site with some workers, killing them or their leader over and over, or stopping them for longer than a
    lease, until the crawl ends by itself.

    Parameters
    ----------
    forks
        Who starts processes.
    site
        What is crawled.
    folder
        Where everything goes.
    settings
        Of the workers.
    rng
        When to kill.
    workers
        How many there are at a time.
    spider
        The import path of the spider.
    """

    def __init__(
        self, forks: Forks, site: KilledSite, folder: Path, settings: dict[str, Any], rng: random.Random,
        *, workers: int = 2, spider: str = "killed.Killed",
    ) -> None:  # fmt: skip
        self.forks, self.site, self.folder, self.rng, self.spider = forks, site, folder, rng, spider
        folder.mkdir(parents=True, exist_ok=True)
        self.address = str(folder / "socket")
        self.settings = {
            "JOBDIR": str(folder / "job"), "FOCUS_CLUSTER": self.address, "FOCUS_CLUSTER_LEASE": 2.0,
            "FOCUS_CLUSTER_ENGINE": "tests.cluster.sockets.SocketEngine",
            "FEEDS": {str(folder / "feed-%(worker)s.jsonl"): {"format": "jsonlines"}},
            **settings,
        }  # fmt: skip
        self.workers: list[int] = []
        self.outs: list[Path] = []
        self.leaders: list[int] = []
        self.kills: list[str] = []
        self.stops: list[str] = []
        self._n = workers

    def __str__(self) -> str:
        return f"{self.folder}: {len(self.outs)} workers, {len(self.leaders)} leaders, killed {self.kills or 'nobody'}, stopped {self.stops or 'nobody'}"

    def run(self, plan: list[str], *, led: bool = True, patience: float = HANG) -> None:
        """Kill as planned, each time after some more requests to the site; then let all processes end normally."""
        if led:
            self._lead()
        for _ in range(self._n):
            self._work()
        for who in plan:
            enough = len(self.site.log) + self.rng.randint(5, 50)
            self.site.hold(enough + AHEAD)
            if not self._until(enough):
                break
            time.sleep(self.rng.uniform(0, 0.05))
            if who.endswith("stops"):
                self._stop(who.partition(" ")[0])
            if who in ("leader", "both"):
                self._kill(self.leaders[-1], "leader")
                Path(self.address).unlink(missing_ok=True)
            if who in ("worker", "both"):
                self._kill(self.workers.pop(self.rng.randrange(len(self.workers))), "worker")
                self._work()
            if who in ("leader", "both"):
                time.sleep(self.rng.choice([0, 0, 0.3]))
                self._lead()
        self.site.go_on()
        is_awaited = not self._lead_again(patience)
        last = [*self.workers, *(self.leaders[-1:] if is_awaited else [])]
        for pid in last:
            assert self.forks.wait(pid, patience), f"{self} and then did not end: {self.output()[-3000:]}"
        statuses = [self.forks.ended[pid] for pid in last]
        assert not any(statuses), f"{self} and then ended with {statuses}: {self.output()[-3000:]}"

    def output(self) -> str:
        """Return what all logged."""
        return "".join(path.read_text() for path in sorted(self.folder.glob("*/output")))

    def items(self) -> Counter[str]:
        """Return how often the pipelines yielded each item."""
        return self._ids(out / "items" for out in self.outs)

    def feeds(self) -> Counter[str]:
        """Return how often each item is in the feeds."""
        return self._ids(self.folder.glob("feed-*.jsonl"))

    def _ids(self, paths: Any) -> Counter[str]:
        return Counter(
            json.loads(line)["id"] for path in paths if path.exists() for line in path.read_text().splitlines()
        )

    def _lead(self) -> None:
        out = self.folder / f"leader-{len(self.leaders)}"
        out.mkdir()
        self.leaders.append(self.forks.start(path=self.address, output=str(out / "output")))

    def _work(self) -> None:
        out = self.folder / f"worker-{len(self.outs)}"
        out.mkdir()
        self.outs.append(out)
        self.workers.append(
            self.forks.start(settings=self.settings, root=self.site.url(""), out=str(out), spider=self.spider)
        )

    def _kill(self, pid: int, who: str) -> None:
        if self.forks.kill(pid):
            self.kills.append(f"{who} after {len(self.site.log)} requests")

    def _stop(self, who: str) -> None:
        """Pause one worker, the leader or all of them for about as long as a lease, or longer."""
        pids = {"worker": [self.rng.choice(self.workers)], "leader": self.leaders[-1:]}
        begun = [pid for pid in pids.get(who, [*self.workers, self.leaders[-1]]) if pid in self.forks.running]
        for pid in begun:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(self.rng.choice([1.5, 2.5, 4.0]))
        for pid in begun:
            os.kill(pid, signal.SIGCONT)
        self.stops.append(f"{who} after {len(self.site.log)} requests")

    def _lead_again(self, patience: float) -> bool:
        """Act as the engine that starts a leader for workers that return after the last one closed.

        Returns whether there may be a leader without workers, which does not end.
        """
        end, n = time.monotonic() + patience, len(self.leaders)
        while self.leaders and {*self.workers} & self.forks.running and time.monotonic() < end:
            if self.leaders[-1] not in self.forks.running:
                Path(self.address).unlink(missing_ok=True)
                self._lead()
            time.sleep(0.05)
        return len(self.leaders) > n

    def _until(self, requests: int) -> bool:
        """Wait for so many requests; ``False`` where a worker ends before."""
        end = time.monotonic() + HANG
        while len(self.site.log) < requests:
            if not {*self.workers} <= self.forks.running or time.monotonic() > end:
                return False
            time.sleep(0.002)
        return True


class Remembers:
    """An extension with which the goal of its process finds the scheduler."""

    crawler: ClassVar[Any] = None

    @classmethod
    def from_crawler(cls, crawler: Any) -> Remembers:
        cls.crawler = crawler
        return cls()


def later(outcome: Any) -> None:
    """A goal that reports the reward of a page, its items, a moment later."""
    reward = Remembers.crawler.engine.scheduler.reward
    asyncio.get_running_loop().call_later(0.03, reward, outcome.pick.id, outcome.items)
