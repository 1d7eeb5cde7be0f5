"""Crawls of a small web of many hosts, step by step, with several in flight."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from scrapy_focus import Crawl, Link, memory_frontier
from tests.made import Clock, failure, page

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from scrapy_focus import Pick, Policy

KINDS = ("recipes", "news", "shop/item", "about")


class ManyHosts:
    """A web of ``n`` pages on some hosts, two of each domain; some hosts have data on most of their recipes.

    A page is worth something if ``good`` says so of its number. Links stay on their host, or lead anywhere.
    """

    def __init__(self, n: int = 300, *, domains: int = 6, seed: int = 0, dead: float = 0.0) -> None:
        rng = random.Random(seed)
        self.n = n
        self.host = [rng.randrange(2 * domains) for _ in range(n)]
        self.kind = [rng.choice(KINDS) for _ in range(n)]
        self.good = [
            rng.random() < (0.8 if self.host[i] % 3 == 0 else 0.1) * (self.kind[i] == "recipes") + 0.02
            for i in range(n)
        ]
        self.dead = {i for i in range(1, n) if rng.random() < dead}
        same = [[i for i in range(n) if self.host[i] == host] for host in range(2 * domains)]
        self.targets = [
            [rng.choice(same[self.host[i]]) if rng.random() < 0.5 else rng.randrange(n) for _ in range(rng.randrange(7))]
            for i in range(n)
        ]  # fmt: skip
        for i in range(1, n):
            self.targets[i // 2].append(i)

    def link(self, number: int) -> Link:
        """Return the link to a page."""
        host = f"w{self.host[number] % 2}.d{self.host[number] // 2}.test"
        return Link(f"http://{host}/{self.kind[number]}/{number}.html", number + 1, host)

    def links(self, pick: Pick) -> list[Link]:
        """Return the links of the page of a pick."""
        return [] if pick.key - 1 in self.dead else [self.link(target) for target in self.targets[pick.key - 1]]

    def report(self, crawl: Crawl, pick: Pick) -> None:
        """Report the outcome of a pick."""
        is_dead = pick.key - 1 in self.dead
        crawl.report(failure(pick) if is_dead else page(pick, items=float(self.good[pick.key - 1])), self.links(pick))


def crawl_of(policy: Policy, *seeds: Link, **options: Any) -> Crawl:
    """Return a crawl that begins with some links."""
    if "job" not in options:
        options["frontier"] = memory_frontier
    crawl = Crawl(policy, strict=True, clock=Clock(), **({"seed": 0} | options))
    crawl.add(list(seeds))
    return crawl


def steps(
    crawl: Crawl,
    web: ManyHosts,
    *,
    in_flight: int = 1,
    n: int = 10**6,
    busy: Callable[[int], Collection[str]] = lambda at: (),
    flying: list[Pick] | None = None,
) -> Iterator[Pick]:
    """Crawl, and yield each pick when it was chosen, before anything else happens.

    The oldest pick's outcome arrives when so many are in flight, or nothing may be chosen. ``busy`` returns the busy
    hosts at each step. Ends after ``n`` picks, with those in ``flying`` in flight.
    """
    flying = [] if flying is None else flying
    for at in range(n):
        while len(flying) >= in_flight or (pick := crawl.next(busy(at))) is None:
            if not flying:
                return
            web.report(crawl, flying.pop(0))
        flying.append(pick)
        assert crawl.sent(pick.id)
        yield pick


def keys(picks: Iterator[Pick] | Sequence[Pick]) -> list[int]:
    """Return which pages were chosen, in order."""
    return [pick.key for pick in picks]
