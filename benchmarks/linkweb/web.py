"""A synthetic web of any size that is nothing but links: to measure which order of a crawl takes important pages first.

Which pages are important follows from who links to whom, so pages have no text here: a million of them are a few NumPy
columns, made in seconds. The shape is what is commonly reported of the web: hosts have sizes that follow a power law
(Pareto), pages have log-normal numbers of links, three of four of which stay on their host and mostly lead to its first
pages (home page and menus), while most of the others lead to the home page of another host, popular hosts first.

*Dense clusters* are an option: hosts whose pages all link to each other, as the pages of a generated manual do, and to
which a single link leads from outside, or a few. A crawl that counts links sees ever more of them there, and stays
(Figure 3 of the paper). *Aliases* are another one: second addresses of pages that redirect to them.

It is a model, not a sample: no share in it was measured anywhere. Use it to tell orders apart, not as evidence about
the real web.

References
----------
Cho, Garcia-Molina, Page: Efficient crawling through URL ordering. Computer Networks 30 (1998), pages 161-172. Their web
was 179,000 pages of stanford.edu, of which 0.8 % were hot.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.lab.replay.importance_metrics import page_links

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray

    from scrapy_focus.lab.replay.importance_metrics import PageLinks

    Ints = NDArray[np.int64]

_PAGES_A_HOST = 20  # on average
_PARETO = 1.1  # of the sizes of hosts
_LOCAL = 0.75  # links that stay on their host
_HOME = 0.6  # of the others, those to a home page
_TO_FIRST = 2.5  # exponent; the larger it is, the more links lead to the first pages of their host
_TO_POPULAR = 3.0  # the same for hosts
_TO_FIRST_ELSEWHERE = 2.0  # the same for links from other hosts to pages that are no home page
_MOST_LINKS = 200  # of a page, apart from those within a cluster
_POPULAR = 10  # pages for each cluster, of which one links to it
_TRIED = 10  # hosts, for the one to start at
_BY_ALIAS = 0.5  # links to a page with an alias that take it


@dataclass(frozen=True, kw_only=True)
class LinkWeb:
    """Who links to whom, in columns. URLs are numbered from 0; those of a host are in a row, its home page first.

    Shapes: ``starts`` (n_urls + 1,), ``targets`` (n_links,), the others (n_urls,).
    """

    starts: Ints  # of the links of each URL in targets
    targets: NDArray[np.int32]  # sorted, each once a page, never the page itself
    hosts: NDArray[np.int32]
    redirects: NDArray[np.int32]  # where an alias leads; -1: it is a page

    @classmethod
    def make(
        cls,
        n_pages: int,
        *,
        seed: int,
        links: float = 8.0,
        clusters: int = 0,
        cluster_pages: int = 40,
        ways_in: int = 1,
        aliases: float = 0.0,
    ) -> Self:
        """Return a web, the same for equal arguments. Takes ten seconds for a million pages.

        Parameters
        ----------
        n_pages
            Pages on ordinary hosts; not all can be reached from one of them, see :meth:`reached`.
        seed
            Of all randomness.
        links
            Mean number of links on a page, before those are dropped that stand there twice.
        clusters, cluster_pages, ways_in
            How many dense clusters there are beside, the pages of each, and the links from popular pages to the first
            of these, which are all that lead there from outside. Pages of clusters also have ordinary links.
        aliases
            Share of the pages that have a second address, to which half of the links to them lead.
        """
        rng = np.random.default_rng(seed)
        sizes = np.concatenate([_host_sizes(rng, n_pages), np.full(clusters, cluster_pages, np.int64)])
        hosts = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        source, target = _links(rng, sizes, hosts, links)
        if clusters:
            source, target = _with_clusters(rng, source, target, n_pages, hosts, clusters, cluster_pages, ways_in)
        redirects = np.full(len(hosts), -1, np.int32)
        if aliases:
            target, hosts, redirects = _with_aliases(rng, target, hosts, aliases)
        return cls._of(source, target, hosts, redirects)

    @property
    def n_urls(self) -> int:
        """How many URLs there are, pages and aliases."""
        return len(self.hosts)

    @property
    def n_links(self) -> int:
        """How many links there are, each once a page."""
        return len(self.targets)

    @cached_property
    def urls(self) -> list[str]:
        """``http://h<host>.test/`` for the first URL of a host, ``http://h<host>.test/<n>`` for number n on it."""
        _, first, host = np.unique(self.hosts, return_index=True, return_inverse=True)
        numbers = (np.arange(self.n_urls) - first[host]).tolist()
        return [
            f"http://h{host}.test/{number or ''}" for host, number in zip(self.hosts.tolist(), numbers, strict=True)
        ]

    def reachable(self, start: int) -> Ints:
        """Return the URLs to which links and redirects lead from one, itself included, in breadth-first order."""
        from scipy.sparse.csgraph import breadth_first_order

        found: Ints = breadth_first_order(self._edges, start, return_predecessors=False).astype(np.int64)
        return found

    def reached(self) -> tuple[Self, int]:
        """Return what can be reached from the home page from which most can, of large hosts, and its number there."""
        n_hosts = int(self.hosts.max()) + 1
        first = np.searchsorted(self.hosts[self.redirects < 0], np.arange(n_hosts))
        sizes = np.bincount(self.hosts, minlength=n_hosts)
        largest = np.argsort(-sizes, kind="stable")[: min(_TRIED, np.count_nonzero(sizes))]
        found = [self.reachable(int(first[host])) for host in largest]
        best = max(found, key=len)
        return self.part(best), int(np.searchsorted(np.sort(best), best[0]))

    def part(self, urls: Ints) -> Self:
        """Return the web of these URLs and the links between them, numbered anew in the order that they have here.

        Aliases of pages that are not among them are left out.
        """
        kept = np.unique(urls)
        kept = kept[(self.redirects[kept] < 0) | np.isin(self.redirects[kept], kept)]
        number = np.full(self.n_urls, -1, np.int64)
        number[kept] = np.arange(len(kept))
        source, target = number[self._sources], number[self.targets]
        inside = (source >= 0) & (target >= 0)
        leads = self.redirects[kept]
        redirects = np.where(leads >= 0, number[leads], -1).astype(np.int32)
        return self._of(source[inside], target[inside], self.hosts[kept], redirects)

    def page_links(self) -> PageLinks:
        """Return the links between pages, for ``importance_metrics``; those to an alias lead to its page."""
        redirect = self.redirects.astype(np.int64)
        return page_links(self._sources, self.targets, is_page=redirect < 0, redirect=redirect)

    @classmethod
    def _of(cls, source: Ints, target: Ints, hosts: NDArray[np.int32], redirects: NDArray[np.int32]) -> Self:
        """Return the web of these links, each once, without those of a page to itself."""
        n_urls = len(hosts)
        other = source != target
        pairs = np.unique(source[other] * n_urls + target[other])
        counts = np.bincount(pairs // n_urls, minlength=n_urls)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(starts=starts, targets=(pairs % n_urls).astype(np.int32), hosts=hosts, redirects=redirects)

    @property
    def _sources(self) -> Ints:
        """The URL on which each link stands, shape (n_links,)."""
        return np.repeat(np.arange(self.n_urls), np.diff(self.starts))

    @cached_property
    def _edges(self) -> Any:
        """Links and redirects as a sparse matrix, shape (n_urls, n_urls)."""
        from scipy.sparse import csr_array

        aliases = np.flatnonzero(self.redirects >= 0)
        source = np.concatenate([self._sources, aliases])
        target = np.concatenate([self.targets, self.redirects[aliases]])
        return csr_array((np.ones(len(source), np.int8), (source, target)), shape=(self.n_urls, self.n_urls))


def _host_sizes(rng: np.random.Generator, n_pages: int) -> Ints:
    """Return how many pages each host has, n_pages in all."""
    weights = rng.pareto(_PARETO, max(1, n_pages // _PAGES_A_HOST)) + 1
    sizes = np.maximum(1, (weights / weights.sum() * n_pages).astype(np.int64))
    sizes = sizes[np.cumsum(sizes) <= n_pages]
    left = n_pages - int(sizes.sum())
    return np.append(sizes, left) if left else sizes


def _links(rng: np.random.Generator, sizes: Ints, hosts: NDArray[np.int32], mean: float) -> tuple[Ints, Ints]:
    """Return links, as sources and targets of shape (n,); a page may link to itself, and twice to the same one."""
    n_pages, n_hosts = len(hosts), len(sizes)
    first = np.cumsum(sizes) - sizes
    counts = rng.lognormal(np.log(mean) - 0.5, 1.0, n_pages).clip(0, _MOST_LINKS).astype(np.int64)
    source = np.repeat(np.arange(n_pages), counts)
    host = hosts[source].astype(np.int64)
    local = rng.random(len(source)) < _LOCAL
    n_remote = int(np.count_nonzero(~local))
    host[~local] = rng.permutation(n_hosts)[(n_hosts * rng.random(n_remote) ** _TO_POPULAR).astype(np.int64)]
    skewed = np.full(len(source), _TO_FIRST)
    skewed[~local] = _TO_FIRST_ELSEWHERE
    offset = (sizes[host] * rng.random(len(source)) ** skewed).astype(np.int64)
    offset[np.flatnonzero(~local)[rng.random(n_remote) < _HOME]] = 0
    return source, first[host] + offset


def _with_clusters(
    rng: np.random.Generator,
    source: Ints,
    target: Ints,
    n_pages: int,
    hosts: NDArray[np.int32],
    n: int,
    size: int,
    ways_in: int,
) -> tuple[Ints, Ints]:
    """Let the pages of the last ``n`` hosts link to each other, and popular pages link to the first of each."""
    from_outside = (target >= n_pages) & (hosts[source] != hosts[target])
    source, target = source[~from_outside], target[~from_outside]
    first = n_pages + size * np.arange(n)
    pair = np.arange(size * size)
    within = (first[:, None] + pair // size).ravel(), (first[:, None] + pair % size).ravel()
    popular = np.argsort(-np.bincount(target, minlength=n_pages)[:n_pages], kind="stable")[: _POPULAR * n]
    from_pages = rng.choice(popular, (n, ways_in)).ravel()
    return np.concatenate([source, within[0], from_pages]), np.concatenate(
        [target, within[1], np.repeat(first, ways_in)]
    )


def _with_aliases(
    rng: np.random.Generator, target: Ints, hosts: NDArray[np.int32], share: float
) -> tuple[Ints, NDArray[np.int32], NDArray[np.int32]]:
    """Give some pages a second address behind all others; return targets, hosts and redirects with them."""
    n_pages = len(hosts)
    named = np.flatnonzero(rng.random(n_pages) < share)
    alias = np.full(n_pages, -1, np.int64)
    alias[named] = n_pages + np.arange(len(named))
    takes = (alias[target] >= 0) & (rng.random(len(target)) < _BY_ALIAS)
    redirects = np.concatenate([np.full(n_pages, -1), named]).astype(np.int32)
    return np.where(takes, alias[target], target), np.concatenate([hosts, hosts[named]]), redirects
