"""The stores that ``scale.py`` compares, behind the same few verbs, and links by the million."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from scrapy_focus import Link, Placement, memory_frontier
from scrapy_focus.core.frontier import Ranks, Vectors
from scrapy_focus.core.types import State

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.core.types import Pick

SIDES = {
    "sqlite": "sqlite_frontier",
    "drawn": "sqlite_frontier, with vectors",
    "memory": "memory_frontier",
    "fifo": "Scheduler, PickleFifoDiskQueue",
    "lifo": "Scheduler, PickleLifoDiskQueue",
    "lifosqlite": "Scheduler, PickleLifoSQLiteQueue",
}
PAGE = 60  # links
DUE = 30_000  # changed links after which the frontier on disk writes
WIDTH = 23  # bytes of a vector, as the tree has them
_MIDDLE = 127  # value of a vector above which links are queued in another arm


def make(kind: str, folder: Path, made: Made) -> Side:
    """Return one of `SIDES`, new or as the folder has it."""
    return (FrontierSide if kind in ("sqlite", "drawn", "memory") else SchedulerSide)(kind, folder, made)


class Made:
    """Links by their number: the same number is the same link in every process."""

    def __init__(self, *, arms: int, hosts: int, payload: int) -> None:
        self.arms = arms
        self.hosts = [f"site-{i:05d}.example.org" for i in range(hosts)]
        self.payload = payload
        self.n = 0
        self._rng = np.random.default_rng(0)

    def keys(self, start: int, stop: int) -> list[int]:
        """63-bit keys that look random (splitmix64) and are different."""
        with np.errstate(over="ignore"):
            z = np.arange(start + 1, stop + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            z ^= z >> np.uint64(31)
        keys: list[int] = (z >> np.uint64(1)).tolist()
        return keys

    def page(self) -> tuple[list[Link], list[Placement]]:
        """The links of the next page, and their placements."""
        rng, start = self._rng, self.n
        self.n += PAGE
        arms, ranks = rng.integers(self.arms, size=PAGE).tolist(), rng.random(PAGE).tolist()
        hosts, noise = rng.integers(len(self.hosts), size=PAGE).tolist(), rng.bytes(PAGE * self.payload)
        links = []
        for j, key in enumerate(self.keys(start, self.n)):
            name, i = self.hosts[hosts[j]], start + j
            url = f"http://{name}/statistics/population/tables-{i % 977}/table-{i}.html"
            links.append(Link(url, key, name, 3, payload=noise[j * self.payload : (j + 1) * self.payload]))
        return links, [Placement(arm, rank) for arm, rank in zip(arms, ranks, strict=True)]

    def vectors(self) -> list[Placement]:
        """The placements of a page's links that have vectors."""
        arms = self._rng.integers(self.arms, size=PAGE).tolist()
        vectors = self._rng.integers(256, size=(PAGE, WIDTH), dtype=np.uint8)
        return [Placement(arm, 0.0, vector) for arm, vector in zip(arms, vectors, strict=True)]

    def arm(self) -> int:
        """Any arm."""
        return int(self._rng.integers(self.arms))


class Side(Protocol):
    """A measured store: made once empty, and once more from the files on disk."""

    made: Made
    pushed: int  # links handed to it
    backlog: int  # most changed links not yet written

    def prepare(self) -> Any:
        """Make a page; not timed."""

    def push(self, page: Any) -> object:
        """Store the links of a page."""

    def pop(self) -> Any:
        """Take a link out."""

    def settle(self, pick: Any) -> object:
        """Settle what was taken out."""

    def turn(self) -> object:
        """Whatever is due at the end of a turn of the loop."""

    def flush(self) -> object:
        """Return when all is on disk."""

    def close(self) -> object:
        """Stop cleanly."""

    def hand_over(self) -> object:
        """Write what has changed, if it is not writing anyway, and do not wait for it."""

    def safe(self) -> int | None:
        """How many links are on disk by its own account, should the process be killed now; ``None``: it has none."""

    def there(self, done: list[int]) -> tuple[int, int]:
        """How many links are queued, and how many of those pushed are intact; ``done`` are keys that were settled."""


class FrontierSide:
    """A frontier of this package."""

    def __init__(self, kind: str, folder: Path, made: Made) -> None:
        self.frontier: Any
        self.made = made
        self.pushed = self._handed = self._safe = 0
        self.draws = kind == "drawn"
        if kind == "memory":
            self.frontier = memory_frontier()
        else:
            from scrapy_focus.frontiers.sqlite.frontier import sqlite_frontier

            self.frontier = sqlite_frontier(folder / "frontier.sqlite", Vectors(WIDTH) if self.draws else Ranks())
        for arm in range(made.arms if self.draws else 0):  # as a policy does whenever a crawl resumes
            self.frontier.divide(arm, 0, _MIDDLE, made.arms + arm)
        self.backlog = 0
        self._rng = np.random.default_rng(1)

    def prepare(self) -> tuple[list[Link], list[Placement]]:
        links, places = self.made.page()
        return links, self.made.vectors() if self.draws else places

    def push(self, page: tuple[list[Link], list[Placement]]) -> object:
        self.pushed += PAGE
        return self.frontier.push(*page, origin=0)

    def pop(self) -> Pick:
        while True:
            arm = self.made.arm()
            pick: Pick | None
            if self.draws:
                slots = self.frontier.draw({arm: 1}, self._rng).slots.tolist()
                pick = self.frontier.take_drawn(slots[0]) if slots else None
            else:
                pick = self.frontier.pop(arm)
            if pick is not None:
                return pick

    def settle(self, pick: Pick) -> object:
        return self.frontier.settle(pick)

    def turn(self) -> object:
        changed = getattr(self.frontier, "changed", 0)
        if changed < DUE:
            return None
        self.backlog = max(self.backlog, changed)
        return self.hand_over()

    def hand_over(self) -> object:
        if getattr(self.frontier, "writing", True):
            return None
        self._safe, self._handed = self._handed, self.pushed
        return self.frontier.checkpoint()

    def flush(self) -> object:
        if not hasattr(self.frontier, "flush"):
            return None
        self.frontier.checkpoint()
        return self.frontier.flush()

    def close(self) -> object:
        if hasattr(self.frontier, "flush"):
            self.frontier.checkpoint()
        return self.frontier.close()

    def safe(self) -> int | None:
        if not hasattr(self.frontier, "writing"):
            return None
        return self._safe if self.frontier.writing else self._handed

    def there(self, done: list[int]) -> tuple[int, int]:
        right, settled = 0, set(done)
        for start in range(0, self.pushed, 100_000):
            keys = self.made.keys(start, min(start + 100_000, self.pushed))
            for key, state in zip(keys, self.frontier.states(keys), strict=True):
                right += state == (State.FETCHED if key in settled else State.WAITING)
        return len(self.frontier), right


class SchedulerSide:
    """Scrapy's own scheduler with a job directory."""

    def __init__(self, kind: str, folder: Path, made: Made) -> None:
        from scrapy import Spider
        from scrapy.core.scheduler import Scheduler
        from scrapy.utils.httpobj import urlparse_cached
        from scrapy.utils.misc import build_from_crawler
        from scrapy.utils.test import get_crawler

        class Follow(Spider):
            name = "follow"

            def parse(self, response: Any) -> None:
                pass

        if kind == "lifosqlite":  # a database for each host, which takes longer to make than a request to store
            made.hosts = made.hosts[:20]
        queue = SIDES[kind].removeprefix("Scheduler, ")
        settings = {"JOBDIR": str(folder), "SCHEDULER_DISK_QUEUE": f"scrapy.squeues.{queue}", "LOG_LEVEL": "ERROR"}
        crawler = get_crawler(Follow, settings | {"TWISTED_REACTOR_ENABLED": False})
        self.spider = crawler.spider = Follow.from_crawler(crawler)
        # All that the queues ask of an engine: which slot a request belongs to, and how many are active in it (none).
        downloader = SimpleNamespace(slots={}, get_slot_key=lambda request: urlparse_cached(request).hostname or "")
        crawler._engine = SimpleNamespace(downloader=downloader)  # type: ignore[assignment]
        self.scheduler = build_from_crawler(Scheduler, crawler)
        self.scheduler.open(self.spider)
        self.made = made
        self.pushed = 0
        self.backlog = 0

    def prepare(self) -> list[Any]:
        from scrapy import Request

        links, _ = self.made.page()
        headers, meta = {"Referer": links[0].url}, {"depth": 3}
        return [Request(link.url, self.spider.parse, headers=headers, meta=meta) for link in links]

    def push(self, page: list[Any]) -> object:
        self.pushed += PAGE
        for request in page:
            self.scheduler.enqueue_request(request)
        return None

    def pop(self) -> Any:
        return self.scheduler.next_request()

    def settle(self, pick: Any) -> object:
        return None

    def turn(self) -> object:
        return None

    def flush(self) -> object:
        return None

    def close(self) -> object:
        return self.scheduler.close("finished")

    def hand_over(self) -> object:
        return None

    def safe(self) -> int | None:
        return None

    def there(self, done: list[int]) -> tuple[int, int]:
        return len(self.scheduler), len(self.scheduler) + len(done)
