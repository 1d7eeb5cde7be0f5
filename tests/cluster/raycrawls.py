"""Crawls on Ray on this machine: a head to kill and restart, worker processes, and a site of many hosts.

``python -m tests.cluster.raycrawls SETTINGS ROOT`` is a worker, ``... focus-stop`` and the like a command.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider

from scrapy_focus.jobs.doctor.status import read_status
from tests.made import HANG

SCRAPY_TESTS = Path(__file__).parents[1] / "scrapy"
sys.path[:0] = [] if str(SCRAPY_TESTS) in sys.path else [str(SCRAPY_TESTS)]

from mocksite import MockSite  # noqa: E402

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncIterator, Callable, Iterator

    from mocksite import Answer, Seen
    from scrapy.http import Response

TOKEN = "0123456789abcdef" * 4


class ManyHosts(MockSite):
    """A tree of pages on loopback addresses: page K is on host K modulo their number. One in seven is a target.

    One page in twenty is reached over a redirect alone. Each page links to others that are linked elsewhere, too.
    """

    def __init__(self, pages: int, hosts: int, *, latency: float = 0.02) -> None:
        super().__init__("0.0.0.0", latency=latency)
        self.pages_in_all = pages
        self.hosts = hosts

    def page(self, k: int) -> str:
        """Return the address of a page."""
        return f"http://127.0.0.{2 + k % self.hosts}:{self.port}/p/{k}"

    @property
    def targets(self) -> int:
        return len(range(3, self.pages_in_all, 7))

    @property
    def fetched(self) -> Counter[int]:
        """How often each page was asked for."""
        return Counter(int(seen.path[3:]) for seen in [*self.log] if seen.path.startswith("/p/"))

    @property
    def robots(self) -> Counter[str]:
        """How often the robots.txt of each host was asked for."""
        return Counter(seen.headers["host"] for seen in [*self.log] if seen.path == "/robots.txt")

    def gaps(self) -> list[float]:
        """Return the seconds between two requests to one host, robots.txt apart, in order of their lengths."""
        times: dict[str, list[float]] = {}
        for seen in [*self.log]:
            if seen.path != "/robots.txt":
                times.setdefault(seen.headers["host"], []).append(seen.at)
        return sorted(b - a for each in times.values() for a, b in pairwise(each))

    def respond(self, seen: Seen) -> Answer:
        if seen.path == "/robots.txt":
            return 200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /forbidden\n"
        if seen.path.startswith("/to/"):
            return 302, {"Location": self.page(int(seen.path[4:]))}, b""
        k = int(seen.path[3:])
        below = [j for j in (2 * k + 1, 2 * k + 2) if j < self.pages_in_all]
        links = "".join(f'<li><a href="{self._way(j)}">{j}</a>' for j in below)
        across = "".join(f'<p><a href="{self.page(j)}">{j}</a>' for j in (k // 2, k // 5) if not _is_moved(j))
        kind = "<h1>target</h1>" if k % 7 == 3 else ""
        return 200, {"Content-Type": "text/html"}, f"<html><body>{kind}<ul>{links}</ul>{across}</body></html>".encode()

    def _way(self, k: int) -> str:
        return self.page(k).replace("/p/", "/to/") if _is_moved(k) else self.page(k)


def _is_moved(k: int) -> bool:
    return k % 20 == 19


class Followed(Spider):
    """Follows every link; a target is an item."""

    name = "followed"
    custom_settings = {
        "ADDONS": {"scrapy_focus.Addon": 500},
        "FOCUS_PROGRESS": "off",
        "LOG_LEVEL": "INFO",
        "LOGSTATS_INTERVAL": 0,
        "REMOTE_CONTROL_ENABLED": False,
        "RETRY_TIMES": 3,
        "ROBOTSTXT_OBEY": True,
        "TELNETCONSOLE_ENABLED": False,
    }

    def __init__(self, root: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.root = root

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.root)

    def parse(self, response: Response) -> Iterator[Any]:
        if response.css("h1"):
            yield {"id": response.url}
        for link in response.css("a"):
            yield response.follow(link)


class Ray:
    """A cluster of this machine alone: its head can be killed, and brought back at the same address."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder  # of a short path, as sockets are in it
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.env = {
            **os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN, "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), str(SCRAPY_TESTS)]),
        }  # fmt: skip
        self.env.pop("RAY_ADDRESS", None)

    def __enter__(self) -> Ray:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start head and raylet, and wait until they answer."""
        self._head = subprocess.Popen(
            [
                sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--num-cpus", "0",
                "--node-ip-address", "127.0.0.1", "--port", str(self.port), "--include-dashboard", "false",
                "--disable-usage-stats", "--object-store-memory", "100000000", "--temp-dir", str(self.folder),
            ],
            env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        for line in self._head.stdout:
            if "Ray runtime started" in line:
                return
        raise AssertionError(f"Ray did not start; see {self.folder}")

    def kill(self) -> None:
        """Kill the head, its raylet, and all their child processes with SIGKILL at once."""
        for pid in [self._head.pid, *_below(self._head.pid)]:
            _kill(pid)
        self._head.wait()
        self._head.stdout.close()

    def command(self, *words: str, expect: int = 0) -> str:
        """Run a command of ``scrapy``, and return what it prints."""
        run = subprocess.run(
            [sys.executable, "-m", "tests.cluster.raycrawls", *words], cwd=SCRAPY_TESTS.parents[1], env=self.env,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert run.returncode == expect, run.stdout + run.stderr
        return run.stdout + run.stderr

    def leader(self) -> int:
        """Return the process id of the leader, 0 while there is none."""
        return next((pid for pid in _below(self._head.pid) if _line(pid).startswith("ray::LeaderActor")), 0)


def _below(pid: int) -> list[int]:
    """Return the child processes of one, and theirs."""
    below: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended
            below.setdefault(int(path.read_text().rpartition(")")[2].split()[1]), []).append(int(path.parent.name))
    found = [pid]
    for each in found:
        found += below.get(each, [])
    return found[1:]


def _line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


class Fleet:
    """Worker processes of one crawl; killed ones are restarted."""

    def __init__(
        self, ray: Ray, site: ManyHosts, folder: Path, rng: random.Random, n: int = 3, **settings: Any
    ) -> None:
        self.ray = ray
        self.site = site
        self.folder = folder
        self.rng = rng
        self.n = n
        folder.mkdir(parents=True)
        self.job = folder / "job"
        self.settings = {
            "FOCUS_CLUSTER": ray.address,
            "FOCUS_CLUSTER_NAME": folder.name,
            "FOCUS_CLUSTER_LEASE": 6,
            "JOBDIR": str(self.job),
            "FEEDS": {str(folder / "items-%(worker)s.jsonl"): {"format": "jsonlines"}},
            **settings,
        }
        self.processes: list[subprocess.Popen[bytes]] = []
        self.kills: list[str] = []
        self.begun = time.monotonic()

    def __str__(self) -> str:
        return f"{self.folder}: killed {self.kills} within {time.monotonic() - self.begun:.0f} s"

    def __enter__(self) -> Fleet:
        for _ in range(self.n):
            self.processes.append(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        if pid := self.ray.leader():
            _kill(pid)

    def _start(self) -> subprocess.Popen[bytes]:
        with (self.folder / "output").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.cluster.raycrawls", json.dumps(self.settings), self.site.page(0)],
                cwd=SCRAPY_TESTS.parents[1], env=self.ray.env, stdout=output, stderr=output,
            )  # fmt: skip

    # What is killed

    def worker(self) -> None:
        """Kill a worker; another one starts."""
        at = self.rng.randrange(self.n)
        self.processes[at].kill()
        self.processes[at].wait()
        self.processes[at] = self._start()

    def leader(self) -> None:
        """Kill the leader, as soon as there is one."""
        while not (pid := self.ray.leader()):
            if self.is_over():
                return
            time.sleep(0.02)
        _kill(pid)

    def head(self) -> None:
        """Kill the head and its raylet, and bring them back after some seconds."""
        self.ray.kill()
        time.sleep(self.rng.uniform(0, 6))
        self.ray.start()

    def both(self) -> None:
        """Kill the leader and a worker."""
        self.leader()
        self.worker()

    # How it goes

    def is_over(self) -> bool:
        """Whether no worker runs."""
        return all(process.poll() is not None for process in self.processes)

    def run(self, plan: list[str], *, pause: float = 4.0, end: float = HANG) -> None:
        """Kill as planned, by names of methods, at random instants while pages arrive; then let the crawl end."""
        for what in plan:
            before = len(self.site.log)
            self._until(lambda before=before: len(self.site.log) > before + self.rng.randrange(1, 20), end)
            if self.is_over():
                break
            time.sleep(self.rng.uniform(0, pause))
            if self.is_over():
                break
            getattr(self, what)()
            self.kills.append(what)
        self._until(self.is_over, end)
        codes = [process.returncode for process in self.processes]
        assert set(codes) <= {0, 4}, f"{self}: {codes}: {self.output()[-3000:]}"  # 4: came when all was fetched
        self._wait(lambda: not self.ray.leader(), HANG)  # a worker that was killed near the end is missed for a lease

    def _until(self, condition: Callable[[], bool], seconds: float) -> None:
        """Wait for something, or until no worker runs."""
        self._wait(lambda: condition() or self.is_over(), seconds)

    def _wait(self, condition: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"{self}: hangs; {self.output()[-3000:]}"
            time.sleep(0.05)

    # What is left

    @property
    def status(self) -> dict[str, Any]:
        """What is in the folder of the crawl."""
        return read_status(self.job)

    @property
    def items(self) -> list[str]:
        lines = [line for path in self.folder.glob("items-*") for line in path.read_text().splitlines()]
        return [json.loads(line)["id"] for line in lines]

    def output(self) -> str:
        """Return what all workers logged."""
        return (self.folder / "output").read_text(errors="replace")

    def check(self) -> None:
        """Fail unless every page was fetched, every target was counted once, and every item exists."""
        site, status = self.site, self.status
        assert set(site.fetched) == set(range(site.pages_in_all)), self
        assert status["rewards"] == site.targets, self
        assert len(set(self.items)) == site.targets, self
        assert (status["state"], status["links"]["waiting"], status["links"]["in_flight"]) == ("stopped", 0, 0), self
        if not {"worker", "both"} & {*self.kills}:
            assert status["used"]["requests"] == len(site.log), self
            assert set(site.fetched.values()) == {1}, (self, site.fetched.most_common(3))
            assert len(self.items) == site.targets, self
        else:
            assert status["used"]["requests"] >= len(site.log), self


def main(settings: str, root: str) -> None:
    """Run a worker."""
    from scrapy.crawler import AsyncCrawlerProcess

    process = AsyncCrawlerProcess({"TWISTED_REACTOR_ENABLED": False, **json.loads(settings)})
    crawler = process.create_crawler(Followed)
    process.crawl(crawler, root=root)
    process.start()
    sys.exit(0 if crawler.stats.get_value("finish_reason") == "finished" else 4)


def command(words: list[str]) -> None:
    """Run a command of ``scrapy`` that this tree has, whatever is installed."""
    from scrapy import cmdline

    from scrapy_focus.commands.status import StatusCommand
    from scrapy_focus.commands.stop import StopCommand

    found = cmdline._get_commands_dict
    ours = {"focus-status": StatusCommand(), "focus-stop": StopCommand()}
    cmdline._get_commands_dict = lambda *args: {**found(*args), **ours}
    cmdline.execute(["scrapy", *words])


if __name__ == "__main__":
    command(sys.argv[1:]) if sys.argv[1].startswith("focus-") else main(*sys.argv[1:])
