"""Crawls a :class:`~linkweb.web.LinkWeb` in memory, with the very loop that crawls live; returns the order of pages.

``replay/simulate.py`` does more: it keeps what a crawl found request by request, follows a clock, and needs a recording
in a file. Here a page is its links, answers take no time, and what is asked first comes back first. So a whole crawl of
a million pages takes minutes, and nearly all of that is the policy, the frontier and the loop.
"""

from __future__ import annotations

from collections import deque
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.core.abilities import Knows
from scrapy_focus.core.budget import Budget
from scrapy_focus.core.crawl import Crawl
from scrapy_focus.core.types import Link, Outcome, State
from scrapy_focus.frontiers.memory import memory_frontier

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from linkweb.web import LinkWeb
    from scrapy_focus.core.frontier import MakeFrontier
    from scrapy_focus.core.keeper import Keeper
    from scrapy_focus.core.policy import Policy
    from scrapy_focus.core.types import Pick

_SCATTER = 0x5DEECE66D1CE4E5B  # odd, so that no two numbers have the same key
_MASK = (1 << 63) - 1
_GATHER = pow(_SCATTER, -1, 1 << 63)


class WebCrawl:
    """A crawl of a web of links.

    New links go to the policy as links, those that were seen before as keys, unless the policy wants known links: as in
    a live crawl. Keys are spread over 63 bits, as fingerprints are. A redirect to a URL that was seen is not followed.

    Parameters
    ----------
    web
        What is crawled.
    policy
        Who decides; a new one for each crawl.
    start
        Number of the URL where the crawl starts.
    budget
        Requests; without one, until nothing is left.
    concurrency
        Picks in flight.
    seed
        Of the policy's randomness.
    frontier
        What makes the place where links wait.
    job
        Where to keep the crawl, in place of the frontier; a crawl that is in it is resumed.
    most_waiting
        Links that may wait; any number by default.

    Attributes
    ----------
    crawl
        The loop.
    """

    def __init__(
        self,
        web: LinkWeb,
        policy: Policy,
        *,
        start: int,
        budget: int | None = None,
        concurrency: int = 1,
        seed: int = 0,
        frontier: MakeFrontier = memory_frontier,
        job: Keeper | None = None,
        most_waiting: int | None = None,
    ) -> None:
        self.web = web
        self.concurrency = concurrency
        self.crawl = Crawl(
            policy, frontier=None if job is not None else frontier, job=job, goal=_nothing,
            budget=Budget(requests=budget), most_waiting=most_waiting, seed=seed, strict=True, clock=_no_time,
        )  # fmt: skip
        self._wanted = {State.NEW, *policy.wants_known}
        self._knows = isinstance(policy, Knows)
        self._flying: deque[Pick] = deque()
        self._order: list[int] = []
        if self.crawl.knows([key_of(start)])[0] == State.NEW:
            self.crawl.add(self._links([start], [key_of(start)], 0))

    def go(self, pages: int | None = None) -> NDArray[np.int64]:
        """Crawl until so many pages came back in all, or to the end; return them in the order in which they did."""
        wanted = self.web.n_urls if pages is None else pages
        while len(self._order) < wanted:
            while len(self._flying) < self.concurrency and (pick := self.crawl.next()) is not None:
                self._flying.append(pick)
            if not self._flying:
                break
            self._land(self._flying.popleft())
        return np.array(self._order, np.int64)

    def close(self) -> None:
        """Close the frontier, or the job."""
        self.crawl.close()

    def _land(self, pick: Pick) -> None:
        """Let a pick come back: a page with its links, or a redirect."""
        page = number_of(pick.key)
        leads = int(self.web.redirects[page])
        sent = self.crawl.sent(pick.id)
        if sent and leads >= 0:
            if self.crawl.knows([key_of(leads)])[0] != State.NEW:
                self.crawl.report(Outcome(pick, error="redirect_seen", also=(key_of(leads),)))
                return
            sent = self.crawl.sent(pick.id)
        if not sent:
            self.crawl.release(pick.id)
            return
        self._order.append(page if leads < 0 else leads)
        self._report(pick, self._order[-1], () if leads < 0 else (key_of(leads),))

    def _report(self, pick: Pick, page: int, also: tuple[int, ...]) -> None:
        outcome = Outcome(pick, status=200, mime="text/html", size=1, also=also)
        places = slice(*self.web.starts[page : page + 2].tolist())
        targets, keys = self.web.targets[places].tolist(), self._keys[self.web.targets[places]].tolist()
        states = self.crawl.knows(keys)
        wanted = [place for place, state in enumerate(states) if state in self._wanted]
        links = self._links([targets[place] for place in wanted], [keys[place] for place in wanted], pick.depth + 1)
        known = (
            [key for key, state in zip(keys, states, strict=True) if state not in self._wanted] if self._knows else ()
        )
        self.crawl.report(outcome, links, known)

    def _links(self, targets: Sequence[int], keys: Sequence[int], depth: int) -> list[Link]:
        urls, hosts = self.web.urls, self._hosts
        return [Link(urls[target], key, hosts[target], depth) for target, key in zip(targets, keys, strict=True)]

    @cached_property
    def _keys(self) -> NDArray[np.int64]:
        scattered = np.arange(self.web.n_urls, dtype=np.uint64) * np.uint64(_SCATTER) & np.uint64(_MASK)
        return scattered.astype(np.int64)

    @cached_property
    def _hosts(self) -> list[str]:
        names = [f"h{host}.test" for host in range(int(self.web.hosts.max()) + 1)]
        return [names[host] for host in self.web.hosts.tolist()]


def crawl_web(
    web: LinkWeb, policy: Policy, *, start: int, budget: int | None = None, concurrency: int = 1, seed: int = 0
) -> NDArray[np.int64]:
    """Crawl a web until the budget is used up or nothing is left; return its pages in the order in which they came."""
    crawl = WebCrawl(web, policy, start=start, budget=budget, concurrency=concurrency, seed=seed)
    try:
        return crawl.go()
    finally:
        crawl.close()


def key_of(url: int) -> int:
    """Return the key of a URL, by its number."""
    return url * _SCATTER & _MASK


def number_of(key: int) -> int:
    """Return the number of a URL, by its key."""
    return key * _GATHER & _MASK


def _nothing(outcome: Outcome) -> float:
    """Return what a page is worth where nothing is looked for."""
    return 0.0


def _no_time() -> float:
    """Return what a clock shows that stands still."""
    return 0.0
