"""Importance first: the queued link whose page seems to matter most, by the links seen so far.

Which pages of a site matter is certain only when all of it is known. Cho, Garcia-Molina and Page asked how early a
crawler can know. They found that PageRank of the known part leads to the important pages long before the rest is
known.

References
----------
Cho, Garcia-Molina, Page: Efficient crawling through URL ordering. Computer Networks 30 (1998), pages 161-172.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

import numpy as np
from attrs import field

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.frontier import Ranked
from scrapy_focus.core.noted import NotedPage
from scrapy_focus.core.parameters import NUMBER, configurable, parameter
from scrapy_focus.core.policy import Policy
from scrapy_focus.core.printable import brief
from scrapy_focus.core.reason import Part, Reason, depth_of
from scrapy_focus.core.types import Placement, State
from scrapy_focus.frontiers.keys import KeyMap
from scrapy_focus.learn.linkgraph import Backlinks, Cash, LinkGraph, PageRank, Value
from scrapy_focus.learn.similarity import Query, Similarity
from scrapy_focus.web.html import title_and_text
from scrapy_focus.web.words import url_words, words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.types import Link, Outcome, Page, Pick

ORDERS = ("pagerank", "backlinks", "opic", "location", "breadth", "similarity")

_MOVES = 1_000  # maximum links to move after a page; the others are moved after the next page
_SWEPT = 16  # pages whose ranks are checked after each page, if several orders are added up
_CUTS = 256  # intervals that the values of an order are cut into
_FIRST, _GROWTH = 8, 1.1  # known pages before values are first cut, and growth before each further cut
_STEP = 1 / _CUTS  # change of a rank that is worth a move


def weights_of(by: str | Mapping[str, float]) -> dict[str, float]:
    """Return the weight of each order.

    Raises
    ------
    ConfigError
        If there is no such order, or a weight is not a number above 0.
    """
    weights: Mapping[str, float] = {by: 1.0} if isinstance(by, str) else by
    if not isinstance(weights, Mapping) or not weights:
        raise ConfigError(f"give one of {', '.join(ORDERS)}, or a dict of them with their weights")
    for name, weight in weights.items():
        if name not in ORDERS:
            close = get_close_matches(str(name), ORDERS, 1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise ConfigError(f"{brief(name)} is not an order; {hint}There are {', '.join(ORDERS)}")
        if not NUMBER.fits(weight) or not weight > 0:
            raise ConfigError(f"the weight of {name} is {brief(weight)}; give a number above 0")
    return dict(weights)


def _check_query(text: str) -> None:
    if not Query(text):
        raise ConfigError("give words of two letters or more")


@configurable
class Importance(Policy):
    """Takes the link that seems most important by the pages fetched so far.

    Notes
    -----
    The links of a page are those that its callback requests, seen before or not; repeated ones count once, and those
    to itself do not count. A redirect and its target are one page.

    As published, and what this class does:

    * *PageRank* is solved again after every page there; here it is updated incrementally, see
      :class:`~scrapy_focus.learn.linkgraph.PageRank`.
    * *Equal values*: the paper does not specify an order. Here the link that was found first is first.
    * *Pages that fail* are pages without links.
    * *Similarity* estimates the text of a page that is not fetched by the anchor of the link that found it, as
      published, and by the words of its URL.

    *Memory*: 45 bytes a known page with PageRank, 8 more for a fetched one, and 4 for each of its links: of a million
    pages with six links each, 74 MB.

    Raises
    ------
    ConfigError
        If a parameter is not in its range.

    Examples
    --------
    >>> import numpy as np
    >>> from scrapy_focus import Crawl, Link, Outcome, memory_frontier
    >>> crawl = Crawl(Importance(), frontier=memory_frontier, seed=0)
    >>> home, a, b = (Link(f"http://x/{name}", key) for key, name in enumerate(["", "a", "b"], 1))
    >>> crawl.add([home, a, b])
    3
    >>> first = crawl.next()
    >>> crawl.report(Outcome(first, 200, "text/html"), [a, b, b])
    >>> crawl.next().url
    'http://x/a'
    """

    summary: ClassVar[str] = (
        "Takes the pages first that seem most important by the links seen so far: by PageRank or another measure."
    )
    reads_page: ClassVar[bool] = False
    #: Links given up by the limit are queued again if their pages turn out to be important.
    wants_known: ClassVar[frozenset[State]] = frozenset({State.GIVEN_UP})

    frontier: Ranked = field(init=False)

    by: str | Mapping[str, float] = parameter(
        """
        What makes a page important:

        - ``"pagerank"``: PageRank of what was seen;
        - ``"backlinks"``: the number of pages that link to it;
        - ``"opic"``: the cash that it would share out, see :class:`~scrapy_focus.learn.linkgraph.Cash`;
        - ``"location"``: its URL alone, see :func:`location`;
        - ``"breadth"``: when it was found, the first first;
        - ``"similarity"``: how similar it is to ``query``, see
          :class:`~scrapy_focus.learn.similarity.Similarity`. The link that found it stands for its text.

        Several are added up with their weights, ``{"pagerank": 1, "location": 0.2}``: each is brought to its rank among
        the queued pages first, from 0 to 1, as the values themselves cannot be compared.
        """,
        default="pagerank",
        check=weights_of,
    )
    damping: float = parameter(
        "Of PageRank: the fraction of its rank that a page passes on; 0.9 in the paper.",
        default=0.9,
        at_least=0,
        below=1,
    )
    epsilon: float = parameter(
        "Of PageRank: how much rank a page may hold before it passes it on; a page begins with ``1 - damping``. "
        "Smaller numbers give more exact values, and more of them change after each page.",
        default=0.1,
        above=0,
    )
    work: int = parameter("Of PageRank: links used to pass it on after each page, roughly.", default=20_000, at_least=1)
    outside: bool = parameter(
        "Whether links to places outside the crawl count when a page divides the rank that it passes on, if "
        "the adapter counts them (``Outcome.outside``): a live crawl does if the spider requests them; a recording "
        "has none.",
        default=True,
    )
    url_suffixes: Collection[str] = parameter(
        "Of the location: suffixes of hosts that are preferred.", default=(), convert=tuple
    )
    url_words: Collection[str] = parameter(
        "Of the location: words of paths that are preferred.", default=("home", "index"), convert=tuple
    )
    query: str | None = parameter(
        "Of the similarity: a text, by default the words of the mission (``FOCUS_KEYWORDS``).",
        default=None,
        check=_check_query,
    )
    idf: bool = parameter(
        "Of the similarity: whether a word counts less the more often it is in the pages fetched so far; otherwise all "
        "words count alike.",
        default=True,
    )

    def __attrs_post_init__(self) -> None:
        weights = weights_of(self.by)
        self._graph = LinkGraph()
        self._keys = array("q")  # of the pages, by number
        self._numbers = KeyMap()  # of the keys
        self._changed: dict[int, None] = {}  # pages whose links are to be moved, if they are queued
        self._values = {name: self._value(name) for name in weights}
        self._scale = Scale(weights, self._values) if len(weights) > 1 else None
        self._found: dict[int, list[int]] = {}  # by pick: the links of its page, as far as received
        self._least: dict[int, float] = {}  # by arm: the lowest queued rank when links were last given up
        if self._similarity is not None:
            self.__dict__.update(reads_page=True, reads_outcome=True)

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        if self._similarity is not None:
            query = Query(self._query_of(mission))
            if not query:
                raise ConfigError(
                    f"{type(self).__qualname__} orders pages by their similarity to a query, and has none: give it "
                    "query, or set FOCUS_KEYWORDS"
                )
            self._similarity.ask(query)
        super().open(frontier, rng, mission)

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        pages = [self._page(link.key, link) for link in links]
        if source is not None:
            self._found.setdefault(source.pick.id, []).extend(pages)
        elif isinstance(cash := self._values.get("opic"), Cash):
            for page in pages:
                cash.give(page)
        places = [Placement(self._arm(page), self._rank(page)) for page in pages]
        if not self._least:
            return places
        return [
            place if link.state != State.GIVEN_UP or place.rank > self._least.get(place.arm, -math.inf) else None
            for link, place in zip(links, places, strict=True)
        ]

    def know(self, keys: Sequence[int], source: Outcome) -> None:
        self._found.setdefault(source.pick.id, []).extend(map(self._page, keys))

    def select(self, busy: Collection[str]) -> Pick | None:
        return self.frontier.pop(0, busy)

    def release(self, pick: Pick) -> None:
        self._found.pop(pick.id, None)

    def learn(self, outcome: Outcome) -> None:
        page, links = self._page(outcome.pick.key), self._found.pop(outcome.pick.id, ())
        values = self._values.values()
        for value in values:
            value.unlink(page)
        for key in outcome.also:
            self._join(page, self._page(key))
        if not (outcome.error and self._graph.is_fetched(page)):  # redirects to a fetched page have its links
            self._graph.connect(page, links, outcome.outside if self.outside else 0)
            if self._similarity is not None:
                self._similarity.say(page, _counts_of(outcome, self._similarity.query))
        for value in values:
            value.link(page)
        self._linked(page)
        if self._scale is not None:
            self._scale.sweep(self._graph, self._changed)
        self._move()

    def give_up(self, n: int) -> int:
        gone = self._drop(n)
        self._least = {arm: self._least_of(arm, waiting) for arm, waiting in enumerate(self.frontier.waiting.tolist())}
        return gone

    def explain(self, pick: Pick) -> Reason:
        page = self._page(pick.key)
        values = {name: round(value.of(page), 6) for name, value in self._values.items()}
        return Reason(depth_of(pick), *(Part(f"{name} {value:g}", {name: value}) for name, value in values.items()))

    def values(self, keys: Sequence[int]) -> NDArray[np.float64]:
        """Return the current importance of pages, shape (n,): of any with a placed or known link."""
        return np.array([self._rank(self._page(key)) for key in keys], np.float64)

    @property
    def _similarity(self) -> Similarity | None:
        value = self._values.get("similarity")
        return value if isinstance(value, Similarity) else None

    def _value(self, name: str) -> Value:
        """Return the object that keeps the values of an order."""
        if name == "pagerank":
            return PageRank(
                self._graph, self._changed, damping=self.damping, epsilon=self.epsilon, work=self.work
            )  # fmt: skip
        if name == "similarity":
            return Similarity(self._graph, self._changed, idf=self.idf)
        return {"opic": Cash, "backlinks": Backlinks}.get(name, Said)(self._graph, self._changed)

    def _page(self, key: int, link: Link | None = None) -> int:
        """Return the number of a page, a new one if it has none."""
        number = self._numbers.get(key, -1)
        if number >= 0:
            return self._graph.page(number)
        number = self._graph.add()
        self._keys.append(key)
        self._numbers.set(key, number)
        for name, value in self._values.items():
            value.add()
            if isinstance(value, Said):
                value.say(number, self._said(name, number, link))
            elif isinstance(value, Similarity) and link is not None:
                value.say(number, value.query.count(f"{link.anchor} {' '.join(url_words(link.url))}"))
        if self._scale is not None:
            self._scale.add()
        return number

    def _query_of(self, mission: Mission) -> str:
        """Return the query of the similarity, ``""`` for none."""
        return " ".join(mission.words) if self.query is None else self.query

    def _said(self, name: str, number: int, link: Link | None) -> float:
        if name == "breadth":
            return -float(number)
        return -math.inf if link is None else location(link.url, suffixes=self.url_suffixes, words=self.url_words)

    def _join(self, page: int, other: int) -> None:
        """Merge a page without links with another one."""
        if page == other:
            return
        for value in self._values.values():
            value.unlink(other)
            value.merge(page, other)
        self._graph.join(page, other)

    def _rank(self, page: int) -> float:
        if self._scale is not None:
            return self._scale.rank(page)
        [value] = self._values.values()
        return value.of(page)

    def _drop(self, n: int) -> int:
        """Give up the least important links."""
        return self.frontier.drop_each({0: n})

    def _in_arm(self, arm: int) -> NDArray[np.bool_]:
        """Return which pages belong in an arm, shape (n,)."""
        return np.ones(len(self._graph), np.bool_)

    def _least_of(self, arm: int, n_waiting: int) -> float:
        """Return the lowest rank of the links queued in an arm: so many of its pages, the best of them."""
        [*values] = self._values.values()
        ranks = values[0].column() if self._scale is None else self._scale.column()
        ranks = ranks[self._graph.waiting() & self._in_arm(arm)]
        return float(-np.partition(-ranks, n_waiting - 1)[n_waiting - 1]) if 0 < n_waiting <= len(ranks) else -math.inf

    def _linked(self, page: int) -> None:
        """Set the links of a page."""

    def _arm(self, page: int) -> int:
        """Return the arm where the link of a page is queued."""
        return 0

    def _move(self) -> None:
        """Move queued links to their current ranks."""
        pages = [*islice(self._changed, _MOVES)]
        for page in pages:
            del self._changed[page]
        waiting = [page for page in pages if not self._graph.is_fetched(page)]
        if waiting:
            places = [Placement(self._arm(page), self._rank(page)) for page in waiting]
            self.frontier.move([self._keys[page] for page in waiting], places)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_numbers"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._numbers = KeyMap()
        self._numbers.update_many(np.array(self._keys, np.int64), np.arange(len(self._keys), dtype=np.int32))


def _counts_of(outcome: Outcome, query: Query) -> tuple[int, ...]:
    """Return how often each word of a query is in the text of a page; of a recorded page, only these are recorded."""
    if outcome.page is None or not outcome.is_html:
        return query.count("")

    def count(page: Page) -> tuple[int, ...]:
        return query.count(title_and_text(page.text)[1])

    return tuple(outcome.page.made("similarity", count) if isinstance(outcome.page, NotedPage) else count(outcome.page))


class Said(Value):
    """A value given when a page is first found; no link changes it.

    *Memory*: 8 bytes a page.
    """

    def __init__(self, graph: LinkGraph, changed: dict[int, None]) -> None:
        super().__init__(graph, changed)
        self.said = array("d")

    def say(self, page: int, value: float) -> None:
        """Set the value of a page."""
        self.said[page] = value

    def add(self) -> None:
        self.said.append(-math.inf)

    def unlink(self, page: int) -> None:
        """Do nothing, as :meth:`link` does."""

    def link(self, page: int) -> None:
        """Do nothing: no link changes the values."""

    def merge(self, page: int, other: int) -> None:
        """Do nothing: a page keeps the value of the first of its URLs."""

    def of(self, page: int) -> float:
        return self.said[page]

    def column(self) -> NDArray[np.float64]:
        return np.array(self.said)


class Scale:
    """Adds up values with different scales: each is converted to its place among those of the queued pages.

    A place runs from 0, below all of them, to 1. The places are updated whenever the number of known or of fetched
    pages has grown by a tenth, and pages whose place changed by that are found step by step.

    *Time*: 0.1 s for an update with a million pages. *Memory*: 4 bytes a page.
    """

    _fetched = 0
    _fetched_then = 0  # at the last cut

    def __init__(self, weights: Mapping[str, float], values: Mapping[str, Value]) -> None:
        self._values = [(weights[name], values[name]) for name in weights]
        self._cuts: list[list[float]] = [[] for _ in weights]  # values that cut those of the waiting pages into parts
        self._placed = array("f")  # by page, as last returned
        self._known = 0  # pages at the last cut
        self._next = 0  # next page to check

    def column(self) -> NDArray[np.float64]:
        """Return the value of each page from the last call of :meth:`rank`, shape (n,)."""
        return np.array(self._placed, np.float64)

    def add(self) -> None:
        """Add a page."""
        self._placed.append(0.0)

    def rank(self, page: int) -> float:
        """Return the value of a page, from 0 to the sum of the weights."""
        rank = self._worked_out(page)
        self._placed[page] = rank
        return rank

    def sweep(self, graph: LinkGraph, changed: dict[int, None]) -> None:
        """Check some pages again, and record queued ones whose place changed."""
        self._fetched += 1
        if len(graph) > _GROWTH * self._known + _FIRST or self._fetched > _GROWTH * self._fetched_then + _FIRST:
            self._cut(graph)
        for page in range(self._next, min(self._next + _SWEPT, len(self._placed))):
            if not graph.is_fetched(page) and abs(self._worked_out(page) - self._placed[page]) > _STEP:
                changed[page] = None
        self._next += _SWEPT
        if self._next >= len(self._placed):
            self._next = 0

    def _worked_out(self, page: int) -> float:
        return sum(
            weight * (bisect_left(cuts, value.of(page)) + bisect_right(cuts, value.of(page))) / (2 * _CUTS)
            for (weight, value), cuts in zip(self._values, self._cuts, strict=True)
        )

    def _cut(self, graph: LinkGraph) -> None:
        waiting = graph.waiting()
        self._known, self._fetched_then = len(graph), self._fetched
        if waiting.any():
            shares = (np.arange(_CUTS) + 0.5) / _CUTS
            self._cuts = [
                np.quantile(value.column()[waiting], shares, method="nearest").tolist() for _, value in self._values
            ]


def location(url: str, *, suffixes: Collection[str] = (), words: Collection[str] = ()) -> float:
    """Return the importance of a page by its URL alone: 1 for a suffix of its host, 1 for each word, minus 1 for each
    folder.

    This is the location metric of the paper, section 2, with custom weights.

    Examples
    --------
    >>> location("http://a.example.com/home", suffixes=["com"], words=["home"])
    2.0
    >>> location("http://a.example.com/a/b/page.html", suffixes=["com"], words=["home"])
    -1.0
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].partition(":")[0].lower()
    there = frozenset(words_of(f"{parts.path} {parts.query}"))
    is_preferred = any(host.endswith(suffix.lower()) for suffix in suffixes)
    folders = parts.path.strip("/").count("/")
    return float(is_preferred + sum(word.lower() in there for word in words) - folders)
