"""Crawls of a made-up site with several in flight, step by step, so that each can be interrupted anywhere."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from scrapy_focus import (
    Budget,
    Crawl,
    EventLog,
    FilesGoal,
    Job,
    Link,
    Outcome,
    Pick,
    Placement,
    Plateau,
    Policy,
    State,
    Vectors,
)
from scrapy_focus.core.busy import Busy
from scrapy_focus.frontiers.ledger import ASLEEP
from scrapy_focus.policies.bases import Bandit, Ordering
from tests.made import PDF, Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    from scrapy_focus import Drawn, Frontier, Mission, Ranked

DONE = (State.FETCHED, State.GIVEN_UP)

PAGES = 40
HOSTS = 4


@dataclass
class Page:
    """A fetched page, as long as it lasts."""

    url: str
    status: int
    headers: dict[str, str]
    text: str


class Hosts(Bandit):
    """One arm for each host, and a random order within it."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def arm(self, link: Link) -> int:
        return self.numbers.setdefault(link.host, len(self.numbers))


class Reader(Ordering):
    """Ranks links by the text of their page, and counts the words of all pages."""

    def __init__(self) -> None:
        self.words = 0
        self.types: dict[str, int] = {}

    def rank(self, link: Link, source: Outcome | None) -> float:
        if source is None or source.page is None:
            return 0.0
        return source.page.text.count("good") + link.key / 1000

    def learn(self, outcome: Outcome) -> None:
        if outcome.page is not None and outcome.status == 200:
            self.words += len(outcome.page.text.split())
            name = outcome.page.headers["Content-Type"]
            self.types[name] = self.types.get(name, 0) + 1


class Mover(Policy):
    """Moves links that are found again to the front, and fetches every page twice that is linked to thrice."""

    wants_known: ClassVar[frozenset[State]] = frozenset(State) - {State.NEW}

    frontier: Ranked

    def __init__(self) -> None:
        self.found: dict[int, int] = {}

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        placements: list[Placement | None] = []
        for link in links:
            n = self.found[link.key] = self.found.get(link.key, 0) + 1
            known = link.state in DONE
            placements.append(None if known and n != 3 else Placement(n % 3, n + link.key / 1000, _memo(n, link.depth)))
        return placements

    def select(self, busy: Collection[str]) -> Pick | None:
        awake = self.frontier.awake(busy)
        return (
            self.frontier.pop(int(np.argmax(np.where(awake > 0, self.frontier.heads, -np.inf))), busy)
            if awake.any()
            else None
        )


class Sampler(Policy):
    """Looks at some links of a random arm, and takes the one that scores best against what it learned."""

    frontier: Ranked

    def __init__(self) -> None:
        self.weights = np.zeros(2, np.float32)

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        return [Placement(link.key % 3, float(self.rng.random()), _memo(link.key % 7, link.depth)) for link in links]

    def select(self, busy: Collection[str]) -> Pick | None:
        awake = np.flatnonzero(self.frontier.awake(busy))
        if not len(awake):
            return None
        arm = int(self.rng.choice(awake))
        drawn = sorted(self.frontier.scan(arm), key=lambda each: (each[1].rank, each[0].key))
        drawn = [each for each in drawn if each[0].host not in busy][:3]
        best = max(drawn, key=lambda each: (float(each[1].memo @ self.weights), each[0].key))
        return self.frontier.take(best[0].key)

    def learn(self, outcome: Outcome) -> None:
        self.weights += np.float32(0.1) * (outcome.reward - self.weights @ outcome.pick.memo) * outcome.pick.memo


class Divider(Policy):
    """Grows a tree over vectors, draws from all its leaves, takes the best, and places queued links again."""

    wants_known: ClassVar[frozenset[State]] = frozenset(State) - {State.NEW}

    frontier: Drawn

    def __init__(self) -> None:
        self.weights = np.zeros(3)
        self.divisions: list[tuple[int, int, int, int]] = []
        self.learned = 0

    def keeps(self, mission: Mission) -> Vectors:
        return Vectors(3)

    def attach(self, frontier: Frontier) -> None:
        super().attach(frontier)
        for division in self.divisions:
            self.frontier.divide(*division)

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        old = self.frontier.vectors([link.key for link in links])
        places: list[Placement | None] = []
        for link, vector in zip(links, old, strict=True):
            vector[:] = link.key % 7, link.depth, vector[2] + 1
            arm = 0
            for of, column, above, new_arm in self.divisions:
                arm = new_arm if arm == of and vector[column] > above else arm
            places.append(None if link.state in DONE else Placement(arm, 0.0, vector))
        return places

    def select(self, busy: Collection[str]) -> Pick | None:
        counts = np.where(self.frontier.waiting > 0, 2, 0)
        drawn = self.frontier.draw(counts, self.rng, busy=busy)
        return (
            self.frontier.take_drawn(int(drawn.slots[(drawn.vectors @ self.weights).argmax()]))
            if len(drawn.slots)
            else None
        )

    def learn(self, outcome: Outcome) -> None:
        self.learned += 1
        vector = outcome.pick.memo.astype(float) / 10
        self.weights += 0.1 * (outcome.reward - self.weights @ vector) * vector
        if self.learned % 4 == 0 and len(self.divisions) < 8:
            arm = int(self.rng.integers(len(self.divisions) + 1))
            column = self.learned // 4 % 3
            self.divisions.append((arm, column, (3, 2, 1)[column], len(self.divisions) + 1))
            self.frontier.divide(*self.divisions[-1])


class Rounds(Policy):
    """Fetches pages up to three times, now or seconds later, and knows the number of queued links when it learns."""

    frontier: Ranked

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        later = [self.now + 1.5 if link.key % 5 == 0 else 0.0 for link in links]
        return [
            Placement(link.key % 2, link.key % 4 * 1.0, _memo(1, link.key), after=after)
            for link, after in zip(links, later, strict=True)
        ]

    def select(self, busy: Collection[str]) -> Pick | None:
        awake = self.frontier.awake(busy)
        best = int(np.argmax(np.where(awake > 0, self.frontier.heads, -np.inf))) if awake.any() else -1
        return None if best < 0 else self.frontier.pop(best, busy)

    def learn(self, outcome: Outcome) -> None:
        self.seen.append((len(self.frontier), outcome.pick.key))

    def again(self, outcome: Outcome) -> Placement | None:
        n, key = outcome.pick.memo[0], outcome.pick.key
        if outcome.error or n >= 3:
            return None
        after = 0.0 if key % 4 == 0 else self.now + 2.0 + key % 3
        return Placement(outcome.pick.arm + 1, outcome.pick.rank, _memo(n + 1, key), after=after)


class Circling(Divider):
    """The same with vectors: a sleeping link that is found again may be queued at once."""

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        places = super().place(links, source)
        return [place and place._replace(after=self.now + 3.0 if place.memo[2] % 2 else 0.0) for place in places]

    def again(self, outcome: Outcome) -> Placement | None:
        vector = outcome.pick.memo + np.array([0, 0, 1], np.uint8)
        return None if vector[2] > 4 else Placement(0, 0.0, vector, after=self.now + outcome.pick.key % 4)


class Moody(Policy):
    """Depends on more than its inputs: arms, HEAD or GET, and which link is chosen, if any."""

    def __init__(self) -> None:
        self.learned = 0

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        looks = [link.state != State.PROBED and random.random() < 0.3 for link in links]
        return [Placement(random.randrange(4), random.random(), None, "HEAD" if look else "GET") for look in looks]

    def select(self, busy: Collection[str]) -> Pick | None:
        awake = np.flatnonzero(self.frontier.awake(busy))
        return self.frontier.pop(int(random.choice(awake)), busy) if len(awake) and random.random() < 0.8 else None

    def learn(self, outcome: Outcome) -> None:
        self.learned += 1


class SometimesLater:
    """Files earn 1; the rewards of a third of the pages come later."""

    def __call__(self, outcome: Outcome) -> float | None:
        if outcome.pick.method == "GET" and outcome.pick.key % 3 == 1:
            return None
        return float(outcome.mime == PDF)

    def __repr__(self) -> str:
        return "sometimes later"


def _memo(*values: float) -> Any:
    return np.array(values, np.float32)


def link_to(n: int, *, payload: bytes = b"") -> Link:
    """Return the link to a page, or a file for every fifth."""
    kind, place = ("data", "main/table/tr/td") if n % 5 == 0 else ("news", ["nav/ul/li", "main/p", "footer/div"][n % 3])
    end = ".pdf" if n % 5 == 0 and n % 2 else ""
    return Link(
        f"http://h{n % HOSTS}/{kind}/{n}{end}", n + 1, f"h{n % HOSTS}", n % 7, anchor=f"{kind} {n}",
        tag_path=f"html/body.c{n % 4}/{place}/a", context="about", payload=payload or b"payload %d" % n,
    )  # fmt: skip


def links_of(n: int) -> list[Link]:
    """Return the links of a page."""
    rng = random.Random(n)
    return [link_to(k % PAGES) for k in (2 * n + 1, 2 * n + 2, rng.randrange(PAGES), rng.randrange(PAGES))]


def answer(pick: Pick, seconds: float = 0.25) -> Outcome:
    """Return the outcome of a pick."""
    n = pick.key - 1
    if n % 11 == 7:
        return Outcome(pick=pick, status=404, mime="text/html", size=10, seconds=seconds, error="http_error")
    if n % 13 == 12:
        return Outcome(pick=pick, error="failure: TimeoutError", seconds=seconds)
    mime = PDF if n % 5 == 0 else "text/html"
    body = "" if n % 5 == 0 or pick.method == "HEAD" else "good " * (n % 4) + "text"
    page = Page(pick.url, 200, {"Content-Type": mime}, body)
    return Outcome(pick=pick, status=200, mime=mime, size=100 + n, seconds=seconds, items=float(n % 5 == 0), page=page)


def reachable() -> set[int]:
    """Return the keys of all pages that a crawl is to fetch."""
    found, todo = {0, 1}, [0, 1]
    while todo:
        n = todo.pop()
        pick = Pick(0, n + 1, "", "", 0, 0, 0.0, None, -1, "GET", b"")
        new = {link.key - 1 for link in links_of(n)} - found if answer(pick).is_html else set()
        found |= new
        todo.extend(new)
    return {n + 1 for n in found}


class World:
    """A folder with a job and a log, and what it takes to open the crawl in it."""

    def __init__(
        self, folder: Path, policy: Callable[[], Policy], *, goal: Any = None, every: int = 5, log: str = "log.jsonl",
        seed: int = 1, budget: int | None = None, plateau: dict[str, Any] | None = None,
        most_waiting: int | None = None,
    ) -> None:  # fmt: skip
        self.folder = folder
        self.policy = policy
        self.goal = goal or FilesGoal(types=["application/pdf"])
        self.every = every
        self.log = folder / log
        self.seed = seed
        self.budget = budget
        self.plateau = plateau
        self.most_waiting = most_waiting
        self.clock = Clock()
        folder.mkdir(parents=True, exist_ok=True)

    def open(self) -> Crawl:
        """Open the crawl: start or resume it."""
        return Crawl(
            self.policy(), goal=self.goal, seed=self.seed, strict=True, clock=self.clock, patience=1e9,
            budget=Budget(requests=self.budget), stop=Plateau(**self.plateau) if self.plateau else None,
            most_waiting=self.most_waiting,
            log=EventLog(self.log), job=Job(self.folder / "focus", every=self.every),
        )  # fmt: skip

    def save(self, to: Path) -> Path:
        """Copy all files as a kill would leave them now."""
        shutil.copytree(self.folder, to)
        return to

    def restore(self, copy: Path) -> None:
        """Put the files back as they were, at the same place."""
        shutil.rmtree(self.folder)
        shutil.copytree(copy, self.folder)

    def journal(self) -> Path:
        """Return the journal that is being written."""
        return max((self.folder / "focus").glob("journal.*"), key=lambda path: int(path.suffix[1:]))

    def lines(self) -> list[str]:
        """Return what is logged, without how long it took."""
        return self.log.read_text().splitlines()


class Walk:
    """Drives a crawl with up to ``at_once`` in flight, one step at a time; each writes one record at most.

    With ``closes``, some hosts are closed, others from time to time; a step may write one record more then.
    """

    def __init__(self, crawl: Crawl, rng: random.Random, *, at_once: int = 5, closes: bool = False) -> None:
        self.crawl = crawl
        self.rng = rng
        self.at_once = at_once
        self.closes = closes
        self.closed: frozenset[str] = frozenset()
        self.unsent: list[Pick] = []
        self.sent: list[Pick] = []
        self.owed: list[Pick] = []
        self.fetched: list[int] = []

    def steps(self) -> Iterator[str]:
        """Take steps until nothing is left, and yield the name of each."""
        if not self.crawl.recovered and not self.crawl.counts["selected"]:
            self.crawl.add([link_to(0), link_to(1)])
            yield "add"
        while True:
            if self.crawl.comes_back:
                self.crawl.clock.now += 0.5  # type: ignore[attr-defined]
            step = self.rng.choice(["next", "next", "next", "send", "send", "report", "report", "reward", "odd"])
            if step == "next" and len(self.unsent) + len(self.sent) + len(self.owed) < self.at_once:
                busy = [f"h{n}" for n in range(HOSTS) if self.at_once > 1 and self.rng.random() < 0.2]
                pick = self.crawl.next(Busy(self._some_closed(), busy) if self.closes else busy)
                if pick is not None:
                    self.unsent.append(pick)
                elif not (
                    len(self.crawl.frontier) or self.crawl.sleepers.asleep or self.unsent or self.sent or self.owed
                ):
                    return
            elif step == "send" and self.unsent:
                pick = self.unsent.pop(self.rng.randrange(len(self.unsent)))
                assert self.crawl.sent(pick.id)
                self.sent.append(pick)
            elif step == "report" and self.sent:
                self._report(self.sent.pop(self.rng.randrange(len(self.sent))))
            elif step == "reward" and self.owed:
                pick = self.owed.pop(self.rng.randrange(len(self.owed)))
                assert self.crawl.reward(pick.id, 1.0 + pick.key % 2)
            elif step == "odd" and self.at_once > 1:
                self._odd(self.rng.random())
            else:
                continue
            yield step

    def _some_closed(self) -> frozenset[str]:
        if self.rng.random() < 0.2:
            self.closed = frozenset(f"h{n}" for n in range(HOSTS) if self.rng.random() < 0.4)
        return self.closed

    def _report(self, pick: Pick) -> None:
        outcome = answer(pick)
        self.fetched.append(pick.key)
        n = pick.key - 1
        found = links_of(n) if outcome.is_html and pick.method == "GET" else []
        also = (1000 + n,) if n % 6 == 5 else ()
        waits = self.crawl.goal(outcome) is None
        self.crawl.report(outcome._replace(also=also), found)
        if waits:
            self.owed.append(pick)

    def _odd(self, which: float) -> None:
        if which < 0.2 and self.unsent:
            self.crawl.release(self.unsent.pop().id)
        elif which < 0.4 and self.sent:
            self.crawl.received(None)
            assert self.crawl.sent(self.sent[-1].id)
        elif which < 0.7 and self.sent:  # links that come before their page is done
            self.crawl.add(links_of(self.sent[-1].key + 3), answer(self.sent[-1]))
        elif which < 0.8:
            self.crawl.add([link_to(self.rng.randrange(PAGES))])
        else:
            self.crawl.counts["requeued"] += 1


def all_waiting(frontier: Any) -> Iterator[tuple[Link, Placement]]:
    """Yield every queued or sleeping link of a frontier of either order."""
    for key, slot in frontier._known.items():
        if slot >= 0:
            record = frontier._records.read([frontier._order.record[slot]])[0]
            host, arm, rank = frontier._order.place(slot)
            name = frontier._order.hosts.names[host]
            link = Link(record.url, key, name, record.depth, payload=record.payload)
            yield link, Placement(arm, rank, frontier._memo(slot, record), record.method)
        elif slot <= ASLEEP:
            bed = ASLEEP - slot
            _, number, _, host, arm, rank, vector = frontier._sleepers.get(bed)
            record = frontier._records.read([number])[0]
            link = Link(record.url, key, frontier.hosts[host], record.depth, payload=record.payload)
            arm = frontier._pool.follow(arm, vector) if vector else arm  # it may have been divided since
            memo = frontier._unpacked(vector or record.memo)
            yield link, Placement(arm, rank, memo, record.method, -frontier._sleepers._down[bed])


def finish(crawl: Crawl, rng: random.Random, *, at_once: int = 5) -> Walk:
    """Run a crawl to its end."""
    walk = Walk(crawl, rng, at_once=at_once)
    for _ in walk.steps():
        pass
    return walk


def events(path: Path) -> list[dict[str, Any]]:
    """Return the events of a log."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        return [json.loads(line) for line in file]
