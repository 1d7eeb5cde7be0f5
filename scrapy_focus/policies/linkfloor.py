"""The link floor: how few requests could be enough for a crawl that has to follow links and knows the whole site.

OMNISCIENT requests URLs that nobody gave it. A crawl has to find them, so its distance from OMNISCIENT says little if
targets are many clicks deep. Two goals conflict here. The shortest crawl is a hard problem: choosing few pages that
show all targets is set cover. But each recorded site should have its floor within seconds. So the crawl is greedy,
and the data for a choice are updated incrementally rather than computed for each choice.
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
    """The link floor: a greedy crawl that knows where each link leads, but requests only URLs that it has a link to.

    A target is fetched as soon as a link to it was seen. If no target is queued, the crawl follows the path of pages
    and redirects that shows most new targets for its requests: largest ``g / (g + d)``, for a path of ``d`` pages
    whose last one links to ``g`` targets without a known link. Among equal paths it takes the shorter one, then the
    one whose last page is first in a breadth-first crawl. It ends when no path leads to a target any more.

    Notes
    -----
    It shows what a crawl could save that learns where targets are, and so whether there is anything to learn on a
    site. No crawl that has to learn can know as much. Yet it is not a strict bound: it is greedy, and another order
    of the pages may need a few requests less. All targets count alike, whatever their rewards. With several requests
    in flight it waits for the page that its plan depends on.

    At the start it reads all links of the site, 12 bytes each in memory. Distances only shrink while links are found,
    so a request costs no more than the links of those URLs that it brought nearer, and a logarithm of the pages.

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
        self._seen: list[int] = []  # keys of the URLs with a known link
        self._visited: list[int] = []  # keys of those that have an outcome
        self._paths: _Paths | None = None  # built from the truth and the above, on demand

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        keys = [link.key for link in links]
        if source is None:  # the plan starts from the seeds and follows their links
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
            paths.visit([path.first])  # it is not queued any more, because links may be given up elsewhere
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
        """Never, if no path leads to a target any more: the remaining links are worth nothing."""
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
        """Return the plan, up to date; it depends only on what was seen so far, even after a resume."""
        if self._paths is None:
            self._paths = _Paths(self.truth, self._seeds)
            self._paths.know(self._seen)
            self._paths.visit(self._visited)
        return self._paths


class _Path(NamedTuple):
    """A path to a page that links to new targets."""

    first: int  # key of the URL to request, which has a known link
    pages: int  # on it, including the last one
    targets: int  # new ones that the last page links to


class _Paths:
    """The shortest path to each URL from those with a known link, and the new targets that it shows.

    URLs are numbered in breadth-first order from the seeds. The following holds after each call. The distance of a
    URL that is seen and not visited is 1. That of any other unvisited one is 1 more than that of the nearest URL that
    leads to it. A page with a gain above 0 has an entry in the heap that is at least as good as its current value.
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
        #: How many targets without a known link each URL leads to, shape (n,).
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
        """Record that these URLs have links now."""
        numbers = self._numbers(keys)
        fresh = numbers[~self._seen[numbers]]
        self._seen[fresh] = True
        for target in fresh[self._target[fresh]].tolist():
            self._gain[self._in.at(target)] -= 1
        self._come_near(fresh)

    def visit(self, keys: Iterable[int]) -> None:
        """Record that these URLs were requested, and their links seen."""
        numbers = self._numbers(keys)
        self._visited[numbers] = True
        if not self._seen[self._out.of(numbers)].all():  # some links were not: there are fewer paths than expected
            self._distance[:] = self._unreached
            self._come_near(np.flatnonzero(self._seen))

    def best(self) -> _Path | None:
        """Return the path that shows most new targets for its requests; ``None`` if none shows any."""
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
        """Return the first URL on the shortest path to another one; among equal paths the breadth-first one."""
        while (distance := self._distance[i]) > 1:
            before = self._in.at(i)
            i = int(before[(self._distance[before] == distance - 1) & ~self._visited[before]].min())
        return i

    def _come_near(self, numbers: NDArray[np.integer]) -> None:
        """Set the distance of these URLs to one request, and update the URLs behind them."""
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

    ends: NDArray[np.int64]  # shape (n + 1,): those of URL i are to[ends[i] : ends[i + 1]]
    to: NDArray[np.int32]  # shape (n_edges,)

    def at(self, i: int) -> NDArray[np.int32]:
        """Return those of one URL."""
        return self.to[self.ends[i] : self.ends[i + 1]]

    def of(self, numbers: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return those of several, one after the other, with repetitions."""
        counts = self.ends[numbers + 1] - self.ends[numbers]
        skipped = self.ends[numbers] - (counts.cumsum() - counts)
        found: NDArray[np.int32] = self.to[np.repeat(skipped, counts) + np.arange(counts.sum())]
        return found

    def turned(self, n: int) -> _Edges:
        """Return which URLs lead to each of ``n`` URLs, in ascending order."""
        rows = np.repeat(np.arange(len(self.ends) - 1, dtype=np.int32), np.diff(self.ends))
        counts = np.bincount(self.to, minlength=n)
        return _Edges(np.concatenate([[0], counts.cumsum()]), rows[np.argsort(self.to, kind="stable")])
