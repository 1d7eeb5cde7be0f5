"""The link graph of millions of pages, and the values of pages that follow from it.

A page is a number here, in the order in which pages become known; the caller keeps the URLs. The links of a page are
stored once, when it is fetched. Three values are updated with every page rather than recomputed: :class:`PageRank`,
:class:`Cash` and :class:`Backlinks`.

References
----------
Cho, Garcia-Molina, Page: Efficient crawling through URL ordering. Computer Networks 30 (1998), pages 161-172.
Andersen, Chung, Lang: Local graph partitioning using PageRank vectors. FOCS 2006, section 3 (forward push).
Abiteboul, Preda, Cobena: Adaptive on-line page importance computation. WWW 2003, section 3 (OPIC).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_NOT_FETCHED = -1
_JOINED = -2  # minus the number of the page that it is one with


class LinkGraph:
    """The links of fetched pages. Pages that redirect to each other are joined: one page with several numbers.

    ``at`` has the place of the links of each number, and less than 0 for a page that is not fetched.

    Notes
    -----
    *Memory*: 4 bytes a page, 8 more for a fetched one, 4 for each of its links; growing columns have at most an
    eighth of spare room.

    Examples
    --------
    >>> graph = LinkGraph()
    >>> home, news, moved = graph.add(), graph.add(), graph.add()
    >>> graph.connect(home, [news, moved, home, news])
    >>> list(graph.links(home)), graph.n_links(home)
    ([1, 2], 2)
    >>> graph.join(news, moved)
    >>> graph.page(moved) == news, list(graph.links(home))
    (True, [1, 1])
    """

    def __init__(self) -> None:
        self.at = array("i")
        self.n_joined = 0
        self._links = array("i")  # of each fetched page: how many, among how many it divides, and their numbers

    def __len__(self) -> int:
        """How many numbers there are."""
        return len(self.at)

    def add(self) -> int:
        """Add a page, and return its number."""
        self.at.append(_NOT_FETCHED)
        return len(self.at) - 1

    def page(self, number: int) -> int:
        """Return the number of the joined page that a page belongs to."""
        at = self.at
        while at[number] <= _JOINED:
            to = _JOINED - at[number]
            if at[to] <= _JOINED:
                at[number] = at[to]  # one step less, next time
            number = to
        return number

    def is_fetched(self, page: int) -> bool:
        """Whether the links of a page are known."""
        return self.at[page] >= 0

    def links(self, page: int) -> Iterable[int]:
        """Return the pages that a page links to, all different when it was fetched; none if it is not fetched.

        Until :meth:`tidy`, a page is listed twice if two of its links were joined since, and a page joined with the
        page itself is skipped, but counted by :meth:`n_links`.
        """
        at = self.at[page]
        if at < 0:
            return ()
        links = self._links[at + 2 : at + 2 + self._links[at]]
        return [other for other in map(self.page, links) if other != page] if self.n_joined else links

    def n_links(self, page: int) -> int:
        """Return the number of links among which a page divides its rank, including those that lead outside."""
        at = self.at[page]
        return self._links[at + 1] if at >= 0 else 0

    def connect(self, page: int, links: Iterable[int], outside: int = 0) -> None:
        """Set the links of a page, with the number of links to elsewhere, in place of earlier ones.

        Repeated links count once, and links to itself do not count.
        """
        different = dict.fromkeys(map(self.page, links) if self.n_joined else links)
        different.pop(page, None)
        at = self.at[page]
        if at < 0 or self._links[at] < len(different):
            at = self.at[page] = len(self._links)
            self._links.extend((0, 0, *different))
        self._links[at : at + 2 + len(different)] = array("i", (len(different), len(different) + outside, *different))

    def is_untidy(self, page: int) -> bool:
        """Whether pages that a page links to were joined to others since it was fetched."""
        at = self.at[page]
        links = self._links[at + 2 : at + 2 + self._links[at]] if self.n_joined and at >= 0 else ()
        return any(self.at[other] <= _JOINED for other in links)

    def tidy(self, page: int) -> None:
        """Remove repeated links of a page after joins, and count no others but those outside."""
        at = self.at[page]
        links, outside = self._links[at + 2 : at + 2 + self._links[at]], self._links[at + 1] - self._links[at]
        self.connect(page, links, outside)

    def join(self, page: int, other: int) -> None:
        """Join two pages into ``page``. It gets the links of the other one if it has none itself."""
        if self.at[page] < 0:
            self.at[page] = self.at[other]
        self.at[other] = _JOINED - page
        self.n_joined += 1

    def waiting(self) -> NDArray[np.bool_]:
        """Return which numbers are of pages that are not fetched, shape (n,)."""
        waiting: NDArray[np.bool_] = np.array(self.at, np.int32) == _NOT_FETCHED
        return waiting


class Value(ABC):
    """The values of pages by the links seen so far.

    Parameters
    ----------
    graph
        The link graph. It is updated for each page between :meth:`unlink` and :meth:`link`.
    changed
        Collects pages that are not fetched and whose value changed.
    """

    def __init__(self, graph: LinkGraph, changed: dict[int, None]) -> None:
        self.graph = graph
        self.changed = changed

    @abstractmethod
    def add(self) -> None:
        """Add a page, with the next number."""

    @abstractmethod
    def unlink(self, page: int) -> None:
        """Withdraw what flows along the links of a page, before it gets other links or is joined to another page."""

    @abstractmethod
    def link(self, page: int) -> None:
        """Let it flow along the current links of a page, if it is fetched."""

    @abstractmethod
    def merge(self, page: int, other: int) -> None:
        """Merge the value of another page into a page, before the two are joined; both are unlinked."""

    @abstractmethod
    def of(self, page: int) -> float:
        """Return what a page is worth."""

    @abstractmethod
    def column(self) -> NDArray[np.float64]:
        """Return the value of each page, shape (n,); the values of numbers that were joined to others are
        meaningless.
        """


class PageRank(Value):
    """PageRank of what was seen, by forward push: pages pass on what they receive, and those not fetched keep it.

    A page begins with ``1 - damping``. As soon as it holds more than ``epsilon``, it passes on what it received,
    times ``damping``, in equal parts to the pages that it links to. A page that is not fetched has no links yet, and
    keeps all; so does one without links. (The paper lets such a page link to every page, which multiplies all values
    by the same number.) So values are exact except for what pages hold, whatever the order in which pages are
    fetched; the other exception are pages that linked to two which turned out to be one, until they pass on more.

    Parameters
    ----------
    graph, changed
        See :class:`Value`.
    damping
        The d of the paper, from 0 to below 1.
    epsilon
        The amount that a page may hold, more than 0.
    work
        Links to push along after each page, roughly; the rest is done after the next page.

    Notes
    -----
    *Memory*: 16 bytes a page beside the graph.

    Examples
    --------
    >>> graph = LinkGraph()
    >>> rank = PageRank(graph, {}, damping=0.5, epsilon=0.01, work=1000)
    >>> for page in range(3):
    ...     assert graph.add() == page
    ...     rank.add()
    >>> graph.connect(0, [1, 2])
    >>> rank.link(0)
    >>> rank.column().tolist()
    [0.5, 0.625, 0.625]
    >>> graph.connect(1, [2])
    >>> rank.link(1)
    >>> rank.column().tolist()
    [0.5, 0.625, 0.9375]
    """

    def __init__(
        self, graph: LinkGraph, changed: dict[int, None], *, damping: float, epsilon: float, work: int
    ) -> None:
        super().__init__(graph, changed)
        self.damping = damping
        self.epsilon = epsilon
        self.work = work
        self.received = array("d")
        self.held = array("d")  # received amounts that are not passed on yet
        self._queue: deque[int] = deque()  # fetched pages that hold more than epsilon, or got links

    def add(self) -> None:
        self.received.append(1 - self.damping)
        self.held.append(1 - self.damping)

    def unlink(self, page: int) -> None:
        passed, n_links = self.received[page] - self.held[page], self.graph.n_links(page)
        self.held[page] = self.received[page]
        if passed and n_links:
            self._pass(page, -self.damping * passed / n_links)

    def link(self, page: int) -> None:
        if self.graph.is_fetched(page):
            self._queue.appendleft(page)
        queue, held, graph, work = self._queue, self.held, self.graph, self.work
        while queue and work > 0:
            page = graph.page(queue.popleft())
            if graph.is_untidy(page):
                self.unlink(page)
                graph.tidy(page)
            mass, n_links, held[page] = held[page], graph.n_links(page), 0.0
            work -= 1 + n_links
            if mass and n_links:
                self._pass(page, self.damping * mass / n_links)

    def merge(self, page: int, other: int) -> None:
        more = self.received[other] - (1 - self.damping)
        self.received[page] += more
        self.held[page] += more
        self.received[other] = self.held[other] = 0.0
        self.changed.pop(other, None)
        self.changed[page] = None

    def of(self, page: int) -> float:
        return self.received[page]

    def column(self) -> NDArray[np.float64]:
        return np.array(self.received)

    def _pass(self, page: int, share: float) -> None:
        """Give so much to each page that a page links to."""
        received, held, at, changed = self.received, self.held, self.graph.at, self.changed
        epsilon, queue = self.epsilon, self._queue
        for other in self.graph.links(page):
            received[other] += share
            before = held[other]
            held[other] = after = before + share
            if at[other] < 0:
                changed[other] = None
            elif (after > epsilon or after < -epsilon) and -epsilon <= before <= epsilon:
                queue.append(other)


class Cash(Value):
    """Cash of OPIC: a fetched page divides its cash among its links, and then has none.

    A seed starts with some. Cash that a fetched page receives later stays there until it is fetched again.

    Notes
    -----
    *Memory*: 8 bytes a page beside the graph.

    Examples
    --------
    >>> graph = LinkGraph()
    >>> cash = Cash(graph, {})
    >>> for page in range(3):
    ...     assert graph.add() == page
    ...     cash.add()
    >>> cash.give(0)
    >>> graph.connect(0, [1, 2])
    >>> cash.link(0)
    >>> cash.column().tolist()
    [0.0, 0.5, 0.5]
    """

    def __init__(self, graph: LinkGraph, changed: dict[int, None]) -> None:
        super().__init__(graph, changed)
        self.cash = array("d")

    def give(self, page: int) -> None:
        """Give a page the cash of a seed, 1."""
        self.cash[page] += 1.0
        self.changed[page] = None

    def add(self) -> None:
        self.cash.append(0.0)

    def unlink(self, page: int) -> None:
        """Do nothing: distributed cash is not withdrawn."""

    def link(self, page: int) -> None:
        if not (n_links := self.graph.n_links(page)):
            return
        share, self.cash[page] = self.cash[page] / n_links, 0.0
        for other in self.graph.links(page):
            self.cash[other] += share
            self.changed[other] = None

    def merge(self, page: int, other: int) -> None:
        self.cash[page] += self.cash[other]
        self.cash[other] = 0.0
        self.changed[page] = None

    def of(self, page: int) -> float:
        return self.cash[page]

    def column(self) -> NDArray[np.float64]:
        return np.array(self.cash)


class Backlinks(Value):
    """The number of links from fetched pages to each page; each of these pages counts once, unless pages were joined.

    Notes
    -----
    *Memory*: 4 bytes a page beside the graph.

    Examples
    --------
    >>> graph = LinkGraph()
    >>> backlinks = Backlinks(graph, {})
    >>> for page in range(3):
    ...     assert graph.add() == page
    ...     backlinks.add()
    >>> for page, links in enumerate([[1, 2, 2], [2]]):
    ...     graph.connect(page, links)
    ...     backlinks.link(page)
    >>> backlinks.column().tolist()
    [0.0, 1.0, 2.0]
    """

    def __init__(self, graph: LinkGraph, changed: dict[int, None]) -> None:
        super().__init__(graph, changed)
        self.n = array("i")

    def add(self) -> None:
        self.n.append(0)

    def unlink(self, page: int) -> None:
        self._count(page, -1)

    def link(self, page: int) -> None:
        self._count(page, 1)

    def merge(self, page: int, other: int) -> None:
        self.n[page] += self.n[other]
        self.n[other] = 0
        self.changed[page] = None

    def of(self, page: int) -> float:
        return float(self.n[page])

    def column(self) -> NDArray[np.float64]:
        return np.array(self.n, np.float64)

    def _count(self, page: int, more: int) -> None:
        for other in self.graph.links(page):
            self.n[other] += more
            self.changed[other] = None
