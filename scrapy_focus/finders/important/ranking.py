"""Rank the pages of a crawl by importance, from the records of links between pages.

Each call computes PageRank anew and exactly, over all known pages, fetched or queued. A response that is not a page,
such as an error, has no rank; a link to it still takes its share.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from scrapy_focus.finders.important.link_book import read_links
from scrapy_focus.finders.kit.page.output import FoundThrough
from scrapy_focus.finders.kit.records.contents import NO_CONTENTS, Contents, contents_of
from scrapy_focus.finders.kit.records.folder_names import PAGES
from scrapy_focus.finders.kit.records.lines import lines_of, number_in, text_in
from scrapy_focus.learn.pagerank import solve

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from numpy.typing import NDArray

DAMPING = 0.9  # as in the paper, and in the policy
_DIGITS = 9  # decimals; values that differ beyond them are equal, as the order of summation decides them
_WAITING = 100_000  # pages not fetched that are ranked


class RankedPage(NamedTuple):
    """A known page."""

    rank: int  # from 1, among all known pages
    importance: float  # PageRank; 1 is the mean of all known pages
    links: int  # different fetched pages that link to it
    fetched: str  # "yes", "no"
    url: str
    title: str
    depth: int | str  # clicks from the start URL; "": it was not fetched
    status: int | str
    page: str  # URL of the page with the link that was followed
    anchor: str  # text of that link
    at: str  # ISO 8601
    through: tuple[FoundThrough, ...]  # the first links by which it was found
    contents: Contents = NO_CONTENTS

    @property
    def is_fetched(self) -> bool:
        """Whether it was fetched."""
        return self.fetched == "yes"


class Graph(NamedTuple):
    """Pages and the links between them; a redirect and its target are one page."""

    urls: list[str]  # of each page, "" if unknown
    is_page: NDArray[np.bool_]  # or is queued, shape (n,)
    is_fetched: NDArray[np.bool_]
    source: NDArray[np.int64]  # of each link, each pair once, shape (n_links,)
    target: NDArray[np.int64]
    outside: NDArray[np.int64]  # links of each page to other sites, or to something that is not a page
    through: dict[int, dict[int, str]]  # by page: texts of the first links to it, by the page with the link


def read_graph(folder: Path) -> Graph:
    """Return the graph of links; linear in pages and links.

    Raises
    ------
    ConfigError
        If the notes are damaged.
    """
    urls: list[str] = []
    came: dict[int, str] = {}
    at: dict[int, str] = {}
    links: dict[int, array[int]] = {}
    outside: dict[int, int] = {}
    texts: list[tuple[int, int, str]] = []
    same = _Same()
    for noted in read_links(folder):
        urls += noted.new
        for number, url in noted.named.items():
            urls[number] = url
        page = noted.page
        came[page], links[page], outside[page] = noted.came, array("i", noted.to), noted.outside
        if noted.came == "page":
            at[page] = noted.at or urls[page]
        for other in noted.also:
            same.join(page, other)
        texts += [(page, other, text) for other, text in noted.texts.items()]
    by_url: dict[str, int] = {}
    for page, url in at.items():
        same.join(by_url.setdefault(url, page), page)
    return _graph(urls, came, at, links, outside, texts, same)


def _graph(
    urls: list[str], came: dict[int, str], at: dict[int, str], links: dict[int, array[int]], outside: dict[int, int],
    texts: list[tuple[int, int, str]], same: _Same,
) -> Graph:  # fmt: skip
    n = len(urls)
    one = same.column(n)
    is_page, is_fetched = _states(came, one)
    reads = {one[page]: page for page in links if came[page] == "page"}  # of several numbers of one page, the last
    source, target = _pairs(reads, links, one)
    elsewhere = np.bincount(source[~is_page[target]], minlength=n)
    for page, number in reads.items():
        elsewhere[page] += outside[number]
    through: dict[int, dict[int, str]] = {}
    for page, other, text in texts:
        if one[page] != one[other] and is_fetched[one[page]]:
            through.setdefault(int(one[other]), {}).setdefault(int(one[page]), text)
    kept = is_page[target]
    names = _names(urls, came, at, one)
    return Graph(names, is_page, is_fetched, source[kept], target[kept], elsewhere, through)


def _states(came: dict[int, str], one: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which numbers are pages, and which of these were fetched; the others are queued. Shapes (n,)."""
    n = len(one)
    is_fetched, is_dead, waits = (np.zeros(n, np.bool_) for _ in range(3))
    for page in range(n):
        if page not in came:
            waits[one[page]] = True
    for page, what in came.items():
        if what == "page":
            is_fetched[one[page]] = True
        elif what == "nothing":
            is_dead[one[page]] = True
    return is_fetched | (waits & ~is_dead), is_fetched


def _names(urls: list[str], came: dict[int, str], at: dict[int, str], one: NDArray[np.int64]) -> list[str]:
    """Return the URLs of pages: of the response if fetched, else of the link."""
    names = list(urls)
    for page in range(len(urls)):
        if page not in came:
            names[one[page]] = urls[page] or names[one[page]]
    for page, what in came.items():
        if what == "page":
            names[one[page]] = at[page]
    return names


def _pairs(
    reads: dict[int, int], links: dict[int, array[int]], one: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return source and target of each link between two pages, each pair once; shapes (n_links,)."""
    n = max(1, len(one))
    sources = np.repeat(np.array([*reads], np.int64), [len(links[page]) for page in reads.values()])
    targets = one[
        np.concatenate([np.zeros(0, np.int64), *(np.array(links[page], np.int64) for page in reads.values())])
    ]
    different = sources != targets
    pairs = np.unique(sources[different] * n + targets[different])  # a pair as one number, which sorts fast
    return pairs // n, pairs % n


def importance(graph: Graph) -> NDArray[np.float64]:
    """Return the PageRank of each page, shape (n,): 1 is the mean of all pages; 0 for anything that is not a page."""
    ranks = solve(graph.source, graph.target, is_page=graph.is_page, outside=graph.outside, damping=DAMPING)
    total = ranks.sum()
    if total:
        ranks = (ranks * np.count_nonzero(graph.is_page) / total).round(_DIGITS)
    return ranks


def read_ranking(folder: Path) -> list[RankedPage]:
    """Return all known pages of a folder, the most important first; at most 100,000 that were not fetched.

    Of equally important ones, those with more links come first, then those that were fetched.

    Raises
    ------
    ConfigError
        If a list is damaged.
    StorageError
        If one cannot be read.
    """
    graph, lines = read_graph(folder), {text_in(line, "url"): line for line in lines_of(folder / PAGES)}
    ranks, n_links = importance(graph), np.bincount(graph.target, minlength=len(graph.urls))
    listed = [page for page in np.flatnonzero(graph.is_page).tolist() if graph.urls[page]]
    listed.sort(key=lambda page: (-ranks[page], -n_links[page], not graph.is_fetched[page], graph.urls[page]))
    found, n_waiting = [], 0
    for rank, page in enumerate(listed, 1):
        is_fetched, url = bool(graph.is_fetched[page]), graph.urls[page]
        n_waiting += not is_fetched
        if is_fetched or n_waiting <= _WAITING:
            through = tuple(
                FoundThrough(graph.urls[other], text) for other, text in graph.through.get(page, {}).items()
            )
            line = lines.get(url, {}) if is_fetched else {}
            found.append(_ranked(rank, float(ranks[page]), int(n_links[page]), is_fetched, url, line, through))
    return found


def _ranked(
    rank: int, worth: float, n_links: int, is_fetched: bool, url: str, line: dict[str, Any],
    through: tuple[FoundThrough, ...],
) -> RankedPage:  # fmt: skip
    depth: int | str = ""
    status: int | str = ""
    first = FoundThrough("", "")
    if line:
        depth, status = number_in(line, "depth"), number_in(line, "status")
        first = FoundThrough(text_in(line, "page"), text_in(line, "anchor"))
    elif through:
        first = through[0]
    return RankedPage(
        rank=rank, importance=round(worth, 6), links=n_links, fetched="yes" if is_fetched else "no", url=url,
        title=text_in(line, "title"), depth=depth, status=status, page=first.page, anchor=first.anchor,
        at=text_in(line, "fetched_at"), through=through, contents=contents_of(line),
    )  # fmt: skip


class _Same:
    """Union-find over numbers of the same page: each points to another one, or represents the page."""

    def __init__(self) -> None:
        self._leads: dict[int, int] = {}

    def join(self, page: int, other: int) -> None:
        """Merge two numbers into one page."""
        ends = self._end(page), self._end(other)
        if ends[0] != ends[1]:
            self._leads[max(ends)] = min(ends)

    def column(self, n: int) -> NDArray[np.int64]:
        """Return the representative of each of n numbers, shape (n,)."""
        column = np.arange(n)
        for number in self._leads:
            column[number] = self._end(number)
        return column

    def _end(self, number: int) -> int:
        leads = self._leads
        while number in leads:
            leads[number] = number = leads.get(leads[number], leads[number])
        return number
