"""How few requests could do for a crawl that has to follow links: it is told the whole site, and plans by that.

OMNISCIENT asks for addresses that nobody gave it. A crawl has to find them, so its distance from OMNISCIENT says little
where targets lie many clicks deep. Two goals conflict here. The shortest crawl of all is a hard problem: to choose few
pages that show all targets is set cover. But each recorded site should have its floor within seconds. So the crawl is
greedy, and what a choice looks at is kept up to date in place of being computed for each choice.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from scrapy_focus.core.printable import counted
from scrapy_focus.core.reason import Part, Reason, depth_of
from scrapy_focus.core.types import Placement, State
from scrapy_focus.policies.tagpath.oracles import Informed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.frontier import Ranked
    from scrapy_focus.core.types import Link, Outcome, Pick
    from scrapy_focus.policies.tagpath.oracles import Truth

TARGETS, PAGES = 0, 1  # the arms


class LinkFloor(Informed):
    """The link floor: a greedy crawl that knows where each link leads, but asks only for URLs that it has a link to.

    A target is fetched as soon as a link to it was seen. Where none waits, the crawl follows the path of pages and
    redirects that shows most new targets for its requests: largest ``g / (g + d)``, for a path of ``d`` pages whose
    last one links to ``g`` targets that no link was seen to. Of equal ones it takes the shorter path, then the one
    whose last page is first in a breadth-first crawl. It ends where no path leads to a target any more.

    Notes
    -----
    It shows what a crawl could save that learns where targets are, and so whether there is anything to learn on a site.
    No crawl that has to learn can know as much. Yet it is no bound in the strict sense: it is greedy, and another order
    of the pages may need a few requests less. Targets count alike, whatever they are worth. With several requests in
    flight it waits for the page on which its plan depends.

    Once in a crawl it reads all links of the site, 12 bytes each in memory. Distances only shrink while links are
    found, so a request costs no more than the links of those URLs that came nearer by it, and a logarithm of the pages.

    Examples
    --------
    >>> from scrapy_focus import Crawl, FilesGoal, Link, memory_frontier
    >>> class Portal:  # page 1 links to page 2 and to the list 3, that one to two targets
    ...     def kind(self, url):
    ...         return "target" if url.endswith(".csv") else "page"
    ...     def targets(self):
    ...         return [Link("http://a/1.csv", 4), Link("http://a/2.csv", 5)]
    ...     def leads_to(self, key):
    ...         return np.array({1: [2, 3], 3: [4, 5]}.get(key, []), np.int64)
    >>> policy = LinkFloor()
    >>> policy.inform(Portal())
    >>> crawl = Crawl(policy, frontier=memory_frontier, goal=FilesGoal())
    >>> crawl.add([Link("http://a/", 1), Link("http://a/about", 2), Link("http://a/data", 3)])
    2
    >>> crawl.next().url
    'http://a/data'
    """

    summary: ClassVar[str] = (
        "Is given the whole site, but asks only for addresses that it has found: for targets at once, and else for the "
        "pages that show most new targets for a request."
    )
    paper_names: ClassVar[Mapping[str, Mapping[str, Any]]] = {"LINK-FLOOR": {}}
    reads_page: ClassVar[bool] = False

    frontier: Ranked

    def __init__(self) -> None:
        self._seeds: list[int] = []
        self._seen: list[int] = []  # keys of the URLs that there was a link to
        self._visited: list[int] = []  # keys of those that have an outcome
        self._paths: _Paths | None = None  # made of the truth and the above, where it is needed

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        keys = [link.key for link in links]
        if source is None:  # the plan reaches as far as links lead from the seeds
            self._seeds += keys
            self._paths = None
        paths = self._plan()
        paths.know(keys)
        first = len(self._seen)
        self._seen += keys
        placements: list[Placement | None] = []
        for rank, key in enumerate(keys, first):
            if paths.is_target(key):
                placements.append(Placement(TARGETS, -float(rank)))
            elif paths.leads_on(key):
                placements.append(Placement(PAGES, -float(rank)))
            else:
                placements.append(None)
        return placements

    def select(self, busy: Collection[str]) -> Pick | None:
        paths = self._plan()
        if (pick := self.frontier.pop(TARGETS, busy)) is not None:
            return pick
        while (path := paths.best()) is not None:
            state = self.frontier.states([path.first])[0]
            if state in (State.WAITING, State.FLYING):
                break
            paths.visit([path.first])  # it waits no more, as links may be given up elsewhere
        if path is None or (pick := self.frontier.take(path.first)) is None:
            return None
        if pick.host in busy:
            self.frontier.release(pick)
            return None
        return pick

    def learn(self, outcome: Outcome) -> None:
        also = list(outcome.also)
        fetched = [key for key, state in zip(also, self.frontier.states(also), strict=True) if state == State.FETCHED]
        paths = self._plan()
        paths.know(also)
        paths.visit([outcome.pick.key, *fetched])
        self._seen += also
        self._visited += [outcome.pick.key, *fetched]

    def due(self) -> float | None:
        """Never, where no path leads to a target any more: what waits then is worth nothing."""
        return None if self.frontier.waiting[TARGETS : TARGETS + 1].any() or self._plan().best() else math.inf

    def explain(self, pick: Pick) -> Reason:
        path = self._plan().best() if pick.arm == PAGES else None
        if path is None:
            return Reason(depth_of(pick), Part("a known find", {"kind": "known target"}))
        sentence = f"{counted(path.pages, 'request')} from here to {counted(path.targets, 'new find')}"
        numbers = {"kind": "page", "new targets": path.targets, "requests to them": path.pages}
        return Reason(depth_of(pick), Part(sentence, numbers))

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_paths": None}

    def _plan(self) -> _Paths:
        """Return the plan as it is after all that was seen so far; it follows from that alone, after a resume too."""
        if self._paths is None:
            self._paths = _Paths(self.truth, self._seeds)
            self._paths.know(self._seen)
            self._paths.visit(self._visited)
        return self._paths


class _Path(NamedTuple):
    """A path to a page that links to new targets."""

    first: int  # key of the URL to ask for, a link to which was seen
    pages: int  # on it, the last one included
    targets: int  # new ones, that the last page links to


class _Paths:
    """The shortest path to each URL from those that links were seen to, and what it shows that is new.

    URLs are numbered in breadth-first order from the seeds. These hold after each call: the distance of a URL that is
    seen and not visited is 1, and of any other one that is not visited 1 more than that of the nearest URL which leads
    to it. A page whose gain is above 0 has an entry in the heap that is at least as good as the page is now.
    """

    def __init__(self, truth: Truth, seeds: Iterable[int]) -> None:
        self._number = {key: i for i, key in enumerate(dict.fromkeys(seeds))}
        self._keys = list(self._number)
        ends, to = [0], []
        for key in self._keys:  # it grows meanwhile
            found = truth.leads_to(key).tolist()
            for each in found:
                if each not in self._number:
                    self._number[each] = len(self._keys)
                    self._keys.append(each)
            to += [self._number[each] for each in found]
            ends.append(len(to))
        n = len(self._keys)
        self._unreached = n + 1
        self._out = _Edges(np.array(ends, np.int64), np.array(to, np.int32))
        self._in = self._out.turned(n)
        self._target = np.zeros(n, np.bool_)
        self._target[[self._number[link.key] for link in truth.targets() if link.key in self._number]] = True
        #: How many targets each URL leads to that no link was seen to, shape (n,).
        self._gain = np.bincount(self._in.of(np.flatnonzero(self._target)), minlength=n)
        self._seen = np.zeros(n, np.bool_)
        self._visited = np.zeros(n, np.bool_)
        self._distance = np.full(n, self._unreached, np.int64)
        self._heap: list[tuple[float, int, int]] = []  # minus new targets per page of the path, its pages, the URL

    def is_target(self, key: int) -> bool:
        """Whether a URL is a target."""
        return bool(self._target[self._number[key]]) if key in self._number else False

    def leads_on(self, key: int) -> bool:
        """Whether a URL leads to any other."""
        return bool(len(self._out.of(self._numbers([key]))))

    def know(self, keys: Iterable[int]) -> None:
        """There are links to these URLs now."""
        numbers = self._numbers(keys)
        fresh = numbers[~self._seen[numbers]]
        self._seen[fresh] = True
        for target in fresh[self._target[fresh]].tolist():
            self._gain[self._in.at(target)] -= 1
        self._come_near(fresh)

    def visit(self, keys: Iterable[int]) -> None:
        """These URLs were asked for, and what they lead to was seen."""
        numbers = self._numbers(keys)
        self._visited[numbers] = True
        if not self._seen[self._out.of(numbers)].all():  # not all of it was: there are fewer paths than there seemed
            self._distance[:] = self._unreached
            self._come_near(np.flatnonzero(self._seen))

    def best(self) -> _Path | None:
        """Return the path that shows most new targets for its requests; ``None`` where none shows any."""
        heap = self._heap
        while heap:
            i = heap[0][2]
            gain, distance = int(self._gain[i]), int(self._distance[i])
            if self._visited[i] or not gain or distance == self._unreached:
                heapq.heappop(heap)
            elif heap[0] != (entry := (-gain / distance, distance, i)):
                heapq.heapreplace(heap, entry)
            else:
                return _Path(self._keys[self._begin(i)], distance, gain)
        return None

    def _begin(self, i: int) -> int:
        """Return the URL with which the shortest path to another begins, of equal paths the breadth-first one."""
        while (distance := self._distance[i]) > 1:
            before = self._in.at(i)
            i = int(before[(self._distance[before] == distance - 1) & ~self._visited[before]].min())
        return i

    def _come_near(self, numbers: NDArray[np.integer]) -> None:
        """One request is enough for these URLs now, and fewer than before for what is behind them."""
        distance = 1
        while len(near := numbers[(self._distance[numbers] > distance) & ~self._visited[numbers]]):
            near = np.unique(near)
            self._distance[near] = distance
            for i in near[self._gain[near] > 0].tolist():
                heapq.heappush(self._heap, (-int(self._gain[i]) / distance, distance, i))
            numbers = self._out.of(near)
            distance += 1

    def _numbers(self, keys: Iterable[int]) -> NDArray[np.int64]:
        return np.array([self._number[key] for key in dict.fromkeys(keys) if key in self._number], np.int64)


class _Edges(NamedTuple):
    """Which URLs each URL leads to."""

    ends: NDArray[np.int64]  # shape (n + 1,): those of URL i stand in to[ends[i] : ends[i + 1]]
    to: NDArray[np.int32]  # shape (n_edges,)

    def at(self, i: int) -> NDArray[np.int32]:
        """Return those of one URL."""
        return self.to[self.ends[i] : self.ends[i + 1]]

    def of(self, numbers: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return those of several, one after the other, as often as they are there."""
        counts = self.ends[numbers + 1] - self.ends[numbers]
        skipped = self.ends[numbers] - (counts.cumsum() - counts)
        found: NDArray[np.int32] = self.to[np.repeat(skipped, counts) + np.arange(counts.sum())]
        return found

    def turned(self, n: int) -> _Edges:
        """Return which URLs lead to each of ``n`` URLs, in ascending order."""
        rows = np.repeat(np.arange(len(self.ends) - 1, dtype=np.int32), np.diff(self.ends))
        counts = np.bincount(self.to, minlength=n)
        return _Edges(np.concatenate([[0], counts.cumsum()]), rows[np.argsort(self.to, kind="stable")])
