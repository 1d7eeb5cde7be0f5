"""Orders of other crawlers, and of the paper as it stands, for webs of links; to compare with, not to crawl with.

They take the number of a page from its key, and so work in a :class:`~linkweb.crawl.WebCrawl` alone.
"""

from __future__ import annotations

from array import array
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from linkweb.crawl import key_of, number_of
from scrapy_focus.core.policy import Policy
from scrapy_focus.core.types import Placement
from scrapy_focus.lab.replay.importance_metrics import PageLinks, pagerank
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.frontier import Ranked
    from scrapy_focus.core.types import Link, Outcome, Pick

_HOSTS = 250  # that Heritrix asks in turn: 25 threads, answers of 0.3 s, a pause of 3 s for each host
_BALANCE = 3000  # pages of a host after which Heritrix lets another one take its place
_FIRST = 50  # pages after which PageRank is solved first


class BreadthFirstThatKnows(BreadthFirst):
    """Breadth-first that is given known links, as orders by importance are: the least that such an order can cost."""

    def know(self, keys: Sequence[int], source: Outcome) -> None:
        """Nothing is made of them."""


class Numbered(Policy):
    """Base of orders that look at the links of each page, by the numbers of pages."""

    frontier: Ranked

    def __init__(self, *, n_urls: int) -> None:
        self.n_urls = n_urls
        self.known = np.zeros(n_urls, np.bool_)
        self.fetched = np.zeros(n_urls, np.bool_)
        self._found: dict[int, list[int]] = {}

    def note(self, keys: Sequence[int], source: Outcome | None) -> list[int]:
        """Note the links of a page, and return their numbers."""
        numbers = [number_of(key) for key in keys]
        if source is not None:
            self._found.setdefault(source.pick.id, []).extend(numbers)
        return numbers

    def know(self, keys: Sequence[int], source: Outcome) -> None:
        self.note(keys, source)

    def fetch(self, outcome: Outcome) -> tuple[int, list[int]]:
        """Note that a page came, and return its number and those of the pages that it links to."""
        page = number_of(outcome.pick.key)
        self.fetched[page] = True
        return page, self._found.pop(outcome.pick.id, [])

    def release(self, pick: Pick) -> None:
        self._found.pop(pick.id, None)


class SolvedAnew(Numbered):
    """PageRank of what was seen, solved anew whenever so many more pages came, and all waiting links moved.

    A link that is found since then has what the page that it stands on passes on.
    """

    def __init__(self, *, n_urls: int, growth: float = 0.1, damping: float = 0.9) -> None:
        super().__init__(n_urls=n_urls)
        self.growth, self.damping = growth, damping
        self.solves = 0
        self._rank = np.ones(n_urls)
        self._source, self._target = array("q"), array("q")
        self._came, self._next = 0, _FIRST

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        numbers = self.note([link.key for link in links], source)
        rank = 1 - self.damping
        if source is not None:
            n_links = max(1, len(self._found[source.pick.id]))
            rank += self.damping * float(self._rank[number_of(source.pick.key)]) / n_links
        self.known[numbers] = True
        self._rank[numbers] = rank
        return [Placement(0, rank)] * len(links)

    def select(self, busy: Collection[str]) -> Pick | None:
        return self.frontier.pop(0, busy)

    def learn(self, outcome: Outcome) -> None:
        page, links = self.fetch(outcome)
        self._source.extend([page] * len(links))
        self._target.extend(links)
        self._came += 1
        if self._came >= self._next:
            self._next = 1 + int(self._came * (1 + self.growth))
            self._solve()

    def _solve(self) -> None:
        web = PageLinks(np.array(self._source), np.array(self._target), self.known)
        self._rank = pagerank(web, damping=self.damping, tolerance=1e-5)
        waiting = np.flatnonzero(self.known & ~self.fetched)
        places = [Placement(0, rank) for rank in self._rank[waiting].tolist()]
        self.frontier.move(keys_of(waiting), places)
        self.solves += 1


class Nutch(Numbered):
    """What Apache Nutch does with its plugin ``scoring-opic``: rounds of the best pages by what was handed to them.

    A page that is found has 0. One that comes back hands what it had when the round began to its links, in equal parts,
    and keeps it, too. What is handed out counts from the next round on; a round takes the best ``top`` pages, the ones
    that were found first of equal ones.
    """

    def __init__(self, *, n_urls: int, top: int = 1000) -> None:
        super().__init__(n_urls=n_urls)
        self.top = top
        self._score = np.zeros(n_urls)
        self._handed = np.zeros(n_urls)  # in this round
        self._found_at = np.zeros(n_urls, np.int64)
        self._n = 0

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        numbers = self.note([link.key for link in links], source)
        self.known[numbers] = True
        self._found_at[numbers] = np.arange(self._n, self._n + len(numbers))
        self._n += len(numbers)
        if source is None:
            self._score[numbers] = 1.0
        return [Placement(0, 0.0)] * len(links)

    def select(self, busy: Collection[str]) -> Pick | None:
        if not (len(self.frontier.waiting) > 1 and self.frontier.waiting[1]):
            self._generate()
        return self.frontier.pop(1, busy)

    def learn(self, outcome: Outcome) -> None:
        page, links = self.fetch(outcome)
        if links:
            self._handed[links] += self._score[page] / len(links)

    def _generate(self) -> None:
        """Begin a round."""
        self._score += self._handed
        self._handed[:] = 0.0
        waiting = np.flatnonzero(self.known & ~self.fetched)
        best = waiting[np.lexsort((self._found_at[waiting], -self._score[waiting]))][: self.top]
        places = [Placement(1, -float(place)) for place in range(len(best))]
        self.frontier.move(keys_of(best), places)


class Heritrix(Policy):
    """What Heritrix 3 does by default: hosts in turn, and of each host the page that was found first.

    With a pause for each host, about 250 of them are asked in turn at 25 threads; another one takes the place of a host
    in which nothing is left, or of which 3,000 pages came. Hops count only within a host, as what is found later is
    no fewer hops away.
    """

    frontier: Ranked

    def __init__(self) -> None:
        self._arms: dict[str, int] = {}
        self._waiting: list[int] = []  # links of each host
        self._balance: list[int] = []
        self._active: deque[int] = deque()
        self._others: deque[int] = deque()
        self._n = 0

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        return [self._place(link) for link in links]

    def select(self, busy: Collection[str]) -> Pick | None:
        while len(self._active) < _HOSTS and self._others:
            self._active.append(self._others.popleft())
            self._balance[self._active[-1]] = _BALANCE
        if not self._active:
            return None
        arm = self._active.popleft()
        self._waiting[arm] -= 1
        self._balance[arm] -= 1
        if self._waiting[arm]:
            (self._active if self._balance[arm] else self._others).append(arm)
        return self.frontier.pop(arm)

    def _place(self, link: Link) -> Placement:
        arm = self._arms.setdefault(link.host, len(self._arms))
        if arm == len(self._waiting):
            self._waiting.append(0)
            self._balance.append(0)
        if not self._waiting[arm]:
            self._others.append(arm)
        self._waiting[arm] += 1
        self._n += 1
        return Placement(arm, -float(self._n))


def keys_of(pages: NDArray[np.int64]) -> list[int]:
    """Return the keys of pages, by their numbers."""
    return [key_of(page) for page in pages.tolist()]
