"""Workers that speak to a leader without any network, and the site that they ask: what happens is in dictionaries."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scrapy_focus import Budget, Crawl, FilesGoal, Job, Mission
from scrapy_focus.cluster.leader import Leader, RemoteGoal
from scrapy_focus.cluster.messages import Exchange, Hello, added_said, outcome_said
from scrapy_focus.policies.orderings import BreadthFirst
from tests.jobs.walks import HOSTS, answer, link_to, links_of
from tests.made import PDF, Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from scrapy_focus import Link, Outcome, Pick, Policy
    from scrapy_focus.cluster.messages import Answer, Said, Welcome

LEASE = 30.0
LINGER = 60.0


class Site:
    """The log of a server: a request for each line."""

    def __init__(
        self, links: Callable[[int], list[Link]] = links_of, answers: Callable[[Pick], Outcome] = answer
    ) -> None:
        self.links = links
        self.answers = answers
        self.log: list[tuple[str, str, float]] = []  # worker, host, time
        self.sent: Counter[int] = Counter()  # by pick
        self.extra: Counter[str] = Counter()  # by worker: requests beyond one for each pick
        self.fetched: Counter[int] = Counter()  # by key: sent


@dataclass
class FakeWorker:
    """Has leases, and reports their outcomes; a test decides which messages are lost."""

    name: str
    site: Site
    clock: Clock
    goal: Any = field(default_factory=lambda: FilesGoal(types=[PDF]))
    agreed: dict[str, str] = field(default_factory=dict)
    session: str = ""
    waiting: dict[int, Pick] = field(default_factory=dict)  # leases whose request did not go out
    flying: dict[int, Pick] = field(default_factory=dict)  # whose request did
    hosts: dict[str, float] = field(default_factory=dict)  # when each was had last
    outbox: list[Said] = field(default_factory=list)
    told: set[int] = field(default_factory=set)  # keys of links
    spare: int = 0
    granted: int = 0
    lost: set[int] = field(default_factory=set)  # leases that were no longer its own when it returned

    @property
    def held(self) -> set[int]:
        """Ids of all its leases."""
        return {*self.waiting, *self.flying, *(said[1] for said in self.outbox if said[0] in ("outcome", "release"))}

    def join(self, leader: Leader) -> Welcome:
        """Join or rejoin."""
        since = self.clock() - LINGER
        hosts = [host for host, at in self.hosts.items() if at > since]
        holding = self.held
        welcome = leader.join(Hello(self.name, self.agreed, [*holding], hosts, self.granted))
        if welcome.session:
            gone = holding - set(welcome.kept)
            self.lost |= gone
            for pick_id in gone:
                self.waiting.pop(pick_id, None)
                self.flying.pop(pick_id, None)
            for said in self.outbox:
                if said[0] in ("outcome", "add") and said[1] in gone:
                    self.told -= {values[1] for values in (said[4] if said[0] == "outcome" else said[3])}
            self.outbox = [said for said in self.outbox if said[1] is None or said[1] not in gone]
            self.session = welcome.session
        return welcome

    def message(self, want: int = 0, extra: int = 0, n_bytes: int = 0) -> Exchange:
        """Return all pending reports as a message, now."""
        unused, self.spare = self.spare, 0
        self.granted -= unused
        alive = [*self.waiting, *self.flying]
        return Exchange(self.name, self.session, [*self.outbox], want, extra, unused, n_bytes, alive)

    def hear(self, answer: Answer) -> list[Pick]:
        """Get what the leader answered, and return the new leases as picks."""
        if answer.rejoin:
            self.session = ""
            return []
        self.outbox.clear()
        self.told -= set(answer.unplaced)
        self.spare += answer.granted
        self.granted += answer.granted
        picks = [lease.pick() for lease in answer.leases]
        for pick in picks:
            self.waiting[pick.id] = pick
            self.hosts[pick.host] = self.clock()
        return picks

    def exchange(self, leader: Leader, want: int = 0, extra: int = 0, *, is_lost: bool = False) -> Answer:
        """Send all reports; if the answer is lost, so is the session."""
        said = leader.exchange(self.message(want, extra))
        if is_lost:
            self.session = ""
        else:
            self.hear(said)
        return said

    def send(self, pick_id: int) -> None:
        """Send the request of a lease."""
        pick = self.flying[pick_id] = self.waiting.pop(pick_id)
        self.hosts[pick.host] = self.clock()
        self.site.log.append((self.name, pick.host, self.clock()))
        self.site.sent[pick_id] += 1
        self.site.fetched[pick.key] += 1

    def send_more(self) -> None:
        """Send a request that was granted beyond one for each lease."""
        self.spare -= 1
        self.site.extra[self.name] += 1

    def conclude(self, pick_id: int) -> Outcome:
        """Note a response; report it with the next message."""
        pick = self.flying.pop(pick_id)
        outcome = self.site.answers(pick)
        outcome = outcome._replace(reward=float(self.goal(outcome) or 0.0))
        found = self.site.links(pick.key - 1) if outcome.is_html and pick.method == "GET" else []
        fresh = [link for link in found if link.key not in self.told]
        self.told.update(link.key for link in fresh)
        read = None if outcome.page is None else {"text": outcome.page.text, "headers": dict(outcome.page.headers)}
        self.outbox.append(outcome_said(outcome, fresh, [], is_sent=True, read=read))
        return outcome

    def release(self, pick_id: int) -> None:
        """A lease was not fetched, or has to be fetched again; report it with the next message."""
        is_sent = self.waiting.pop(pick_id, None) is None
        self.flying.pop(pick_id, None)
        self.outbox.append(("release", pick_id, is_sent))

    def add(self, links: Sequence[Link]) -> None:
        """Tell of links of no page."""
        fresh = [link for link in links if link.key not in self.told]
        self.told.update(link.key for link in fresh)
        self.outbox.append(added_said(None, fresh))

    def work(self, leader: Leader, want: int = 8) -> Answer:
        """Fetch all its pages, report them, and ask for more."""
        if not self.session:
            self.join(leader)
        for pick_id in [*self.waiting]:
            self.send(pick_id)
        for pick_id in [*self.flying]:
            self.conclude(pick_id)
        return self.exchange(leader, want)


class Realm:
    """A folder with a crawl that a leader leads: it can be killed, and led again by another."""

    def __init__(
        self, folder: Path, policy: Callable[[], Policy] = BreadthFirst, *, every: int = 10**6, seed: int = 1,
        budget: dict[str, Any] | None = None, stop: Callable[[], Any] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self.folder = folder
        self.policy = policy
        self.every = every
        self.seed = seed
        self.budget = budget or {}
        self.stop = stop
        self.options = options
        self.clock = Clock()
        self.lives = 0

    def crawl(self, *, is_shared: bool = True, **options: Any) -> Crawl:
        """Open the crawl; of one process, if it is not shared."""
        goal: Any = FilesGoal(types=[PDF])
        return Crawl(
            self.policy(), goal=RemoteGoal(goal) if is_shared else goal, mission=Mission.of(goal), seed=self.seed,
            clock=self.clock,
            job=Job(self.folder / "focus", every=self.every), budget=Budget(**self.budget),
            stop=self.stop() if self.stop else None, is_shared=is_shared, strict=True, **options,
        )  # fmt: skip

    def lead(self, **options: Any) -> Leader:
        """Return a leader of the crawl in the folder."""
        self.lives += 1
        how = {"lease": LEASE, "linger": LINGER, "most_out": 16, "per_host": 4} | self.options | options
        return Leader(self.crawl(), clock=self.clock, **how)

    def kill(self, leader: Leader) -> None:
        """Leave the folder as a kill of the leader leaves it."""
        leader.crawl.job.flush()
        self.restore(self.save(), leader)

    def save(self) -> Path:
        """Copy all files as a kill would leave them now."""
        copy = self.folder.with_name(f"{self.folder.name}-{self.lives}-{len([*self.folder.parent.iterdir()])}")
        return shutil.copytree(self.folder, copy)

    def restore(self, copy: Path, leader: Leader) -> None:
        """Restore the files from their copies; the leader that has them is gone."""
        leader.crawl.close()
        shutil.rmtree(self.folder)
        copy.rename(self.folder)


def seeds() -> list[Link]:
    """Return the links that start a crawl of the site of the walks."""
    return [link_to(0), link_to(1)]


def many_links(pages: int) -> Callable[[int], list[Link]]:
    """Return a function with the links of each page of a larger site."""

    def found(n: int) -> list[Link]:
        rng = random.Random(n)
        numbers = [2 * n + 1, 2 * n + 2, *(rng.randrange(pages) for _ in range(4))]
        return [link_to(number)._replace(host=f"h{number % HOSTS}") for number in numbers if number < pages]

    return found
