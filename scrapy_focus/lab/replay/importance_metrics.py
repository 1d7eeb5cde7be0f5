"""How early a crawl visits the important pages: the measures of Cho, Garcia-Molina and Page.

Which pages are important is known only when the whole site is known. So importance is computed from a recorded site
or the links of any other web (:func:`backlinks`, :func:`pagerank`, or custom numbers), and the order of a crawl is
judged by it:

- Crawl and Stop: after K pages, how many of them are among the K most important ones?
- Crawl and Stop with Threshold: how many of the pages that are important enough has it visited?
- Limited Buffer: of the B pages that it keeps, how many are among the B most important ones?

An ``order`` has shape (n_visited,) and holds different numbers of pages, first visited first; ``importance`` has shape
(n_pages,). Percentages are from 0 to 100.

References
----------
Cho, Garcia-Molina, Page: Efficient crawling through URL ordering. Computer Networks 30 (1998), pages 161-172.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import brief
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.learn.pagerank import solve
from scrapy_focus.learn.similarity import Query
from scrapy_focus.web.html import title_and_text

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from scrapy_focus.lab.replay.harvest import Harvest


class PageLinks(NamedTuple):
    """Which pages of a web link to which others, each pair once; made by :func:`page_links`.

    URLs are numbered from 0. ``source`` and ``target`` have shape (n_links,), ``is_page`` has (n_urls,).
    """

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    is_page: NDArray[np.bool_]  # of each URL


def page_links(
    source: ArrayLike, target: ArrayLike, *, is_page: NDArray[np.bool_], redirect: NDArray[np.int64]
) -> PageLinks:
    """Return the links between the pages of a web, whose URLs may link to themselves, twice, or to URLs that are not
    pages.

    A link to a URL that redirects leads to the page at the end of the redirects.

    Parameters
    ----------
    source, target
        Links by the numbers of their URLs, shape (n,).
    is_page
        Which URLs answer with a page, shape (n_urls,).
    redirect
        The URL that each one redirects to, -1 for none, shape (n_urls,).

    Examples
    --------
    URL 0 links to itself and twice to 1, which redirects to 2:

    >>> whole = page_links([0, 0, 0], [0, 1, 1], is_page=np.array([True, False, True]), redirect=np.array([-1, 2, -1]))
    >>> whole.source.tolist(), whole.target.tolist()
    ([0], [2])
    """
    n_urls = len(is_page)
    sources, targets = np.asarray(source, np.int64), ends_of(redirect)[np.asarray(target, np.int64)]
    real = is_page[sources] & is_page[targets] & (sources != targets)
    pairs = np.unique(sources[real] * n_urls + targets[real])
    return PageLinks(pairs // max(1, n_urls), pairs % max(1, n_urls), is_page)


def ends_of(redirect: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the final URL of the redirects from each URL, shape (n_urls,): itself, if it does not redirect (-1).

    Examples
    --------
    >>> ends_of(np.array([-1, 2, 0])).tolist()
    [0, 0, 0]
    """
    leads = np.where(redirect >= 0, redirect, np.arange(len(redirect)))
    for _ in range(len(redirect).bit_length()):  # of a chain, each round skips twice as many
        leads = leads[leads]
    return leads


def pages_of(site: RecordedSite) -> NDArray[np.bool_]:
    """Return which URLs of a recorded site are its pages: successful answers that do not redirect."""
    return (site.status >= 200) & (site.status < 300) & (site.redirect < 0)


def page_order(harvest: Harvest) -> NDArray[np.int64]:
    """Return the different URLs that a crawl requested with GET, in their first order, by numbers on the site."""
    pages = harvest.pages[1:][~harvest.heads[1:]]
    _, first = np.unique(pages, return_index=True)
    return pages[np.sort(first)]


def crawl_and_stop(order: ArrayLike, importance: ArrayLike) -> NDArray[np.float64]:
    """Return P_CS after 1, 2, ... pages, in %, shape (n_visited,).

    After K pages it is ``100 * M / K``, with M the visited ones among the hot pages. A page is hot if it is at least
    as important as the K-th most important of all, so ties with that one are hot, too. The ideal is 100 throughout; a
    random order has :func:`at_random`, if no two pages are equally important.

    Takes one sort: a page that is visited as number p, and has r - 1 more important ones, counts from ``max(p, r)`` on.

    Examples
    --------
    >>> crawl_and_stop([0, 2, 1], importance=[5.0, 1.0, 3.0, 4.0]).round(1).tolist()
    [100.0, 50.0, 66.7]
    """
    visited, values = _checked(order, importance)
    rank = 1 + len(values) - np.searchsorted(np.sort(values), values[visited], side="right")
    since = np.maximum(np.arange(1, len(visited) + 1), rank)
    hot = np.cumsum(np.bincount(since, minlength=len(visited) + 1)[1 : len(visited) + 1])
    return 100 * hot / np.arange(1, len(visited) + 1)


def crawl_and_stop_with_threshold(order: ArrayLike, importance: ArrayLike, threshold: float) -> NDArray[np.float64]:
    """Return P_ST after 1, 2, ... pages, in %, shape (n_visited,): how many of the hot pages are visited.

    A page is hot if its importance is at least the threshold; if none is, all values are 100. The ideal is
    :func:`ideal_with_threshold`; a random order has :func:`at_random`.

    Examples
    --------
    >>> crawl_and_stop_with_threshold([0, 2, 1], importance=[5.0, 1.0, 3.0, 4.0], threshold=4).tolist()
    [50.0, 50.0, 50.0]
    """
    visited, values = _checked(order, importance)
    hot = values >= threshold
    n_hot = np.count_nonzero(hot)
    return 100 * np.cumsum(hot[visited]) / n_hot if n_hot else np.full(len(visited), 100.0)


def limited_buffer(
    order: ArrayLike,
    importance: ArrayLike,
    size: int,
    *,
    threshold: float | None = None,
    estimates: ArrayLike | None = None,
) -> float:
    """Return P_BC, in %: how many of the places in a buffer hold a hot page when the crawl is over.

    The buffer holds ``size`` pages. When it is full, the page with the least estimated importance leaves, the latest
    among equals. Places that stay empty are not hot. The ideal is 100; a random choice has :func:`at_random` with the
    size for the number of visited pages, if no two pages are equally important.

    Parameters
    ----------
    order, importance
        See above.
    size
        Pages that the buffer holds (B), 1 to n_pages.
    threshold
        Importance at which a page is hot; by default, that of the B-th most important page. The paper leaves it open.
    estimates
        The importance of each page as the crawl estimated it, shape (n_pages,); by default, it knows.

    Raises
    ------
    ConfigError
        If an argument cannot be used.

    Examples
    --------
    >>> limited_buffer([0, 2, 1], importance=[5.0, 1.0, 3.0, 4.0], size=2)
    50.0
    """
    visited, values = _checked(order, importance)
    if not 1 <= size <= len(values):
        raise ConfigError(f"a buffer of {size} pages cannot be filled from {len(values)}; give a size from 1 to that")
    believed = values if estimates is None else np.asarray(estimates, np.float64)
    if believed.shape != values.shape:
        raise ConfigError(f"there are {len(believed)} estimates and {len(values)} pages; give one for each page")
    hot = values >= (np.sort(values)[-size] if threshold is None else threshold)
    kept = visited[np.argsort(-believed[visited], kind="stable")[:size]]
    return 100 * float(np.count_nonzero(hot[kept])) / size


def at_random(visited: ArrayLike, n_pages: int) -> NDArray[np.float64]:
    """Return the expected value of a random order after so many pages, in %: ``100 * K / T`` in all three models.

    The paper says that its random crawler revisits pages; here none is visited twice.

    Examples
    --------
    >>> at_random([1, 5, 10], n_pages=10).tolist()
    [10.0, 50.0, 100.0]
    """
    return 100 * np.asarray(visited, np.float64) / n_pages


def ideal_with_threshold(visited: ArrayLike, n_hot: int) -> NDArray[np.float64]:
    """Return the best P_ST after so many pages, in %: ``100 * K / H`` until all H hot pages are visited.

    Examples
    --------
    >>> ideal_with_threshold([1, 4, 8], n_hot=4).tolist()
    [25.0, 100.0, 100.0]
    """
    return 100 * np.minimum(1.0, np.asarray(visited, np.float64) / max(n_hot, 1e-9))


def backlinks(web: RecordedSite | PageLinks) -> NDArray[np.float64]:
    """Return how many other pages of a web link to each URL, shape (n_urls,): the importance IB.

    A link to a URL that redirects counts for the final one. On a recorded site, anything but a successful answer,
    including a redirect, is not a page: it has 0, and links to it do not count.
    """
    links = _links_of(web)
    return np.bincount(links.target, minlength=len(links.is_page)).astype(np.float64)


def pagerank(web: RecordedSite | PageLinks, *, damping: float = 0.9, tolerance: float = 1e-9) -> NDArray[np.float64]:
    """Return the PageRank of each URL of a web, shape (n_urls,): the importance IR.

    ``IR(P) = (1 - d) + d * sum of IR(T) / c(T)`` over the pages T that link to P, with c(T) the number of pages that
    T links to. A page without links counts as linking to every page. So the mean over all pages is 1.
    :func:`backlinks` defines pages and links; a URL that is not a page has 0.

    Parameters
    ----------
    web
        A recording, or links. The time of an iteration is linear in them.
    damping
        The d of the formula, in [0, 1). The paper's text has d for the probability of a jump to a random page, its
        formula has 1 - d, and its value 0.9 fits the formula.
    tolerance
        Mean change of an iteration below which it ends, at least 1e-12; with 0.9, 1e-9 takes 200 iterations at most.

    Raises
    ------
    ConfigError
        If an argument is not in its range.
    """
    if not 0 <= damping < 1 or tolerance < 1e-12:  # below, rounding may keep it from ever ending
        raise ConfigError(
            f"pagerank(damping={damping}, tolerance={tolerance}): the damping must be in [0, 1), the tolerance at "
            "least 1e-12"
        )
    links = _links_of(web)
    return solve(links.source, links.target, is_page=links.is_page, damping=damping, tolerance=tolerance)


def similarity(site: RecordedSite, query: str, *, idf: bool = True) -> NDArray[np.float64]:
    """Return how similar the text of each page of a recorded site is to a query, shape (n_urls,): the importance IS.

    It is the inner product of their vectors: the number of times that a word occurs, times one divided by the number
    of times that it occurs on all pages (:mod:`~scrapy_focus.learn.similarity`). A URL that is not an HTML page has 0.

    Parameters
    ----------
    site
        A recording with the text of its pages (``--bodies``), all of which are read.
    query
        A text with words of two letters or more.
    idf
        Whether words have an inverse document frequency; otherwise all words count alike.

    Raises
    ------
    ConfigError
        If the query has no word.
    RecordingError
        If the site was recorded without bodies.
    """
    asked = Query(query)
    if not asked:
        raise ConfigError(f"the query {brief(query)} has no word; give words of two letters or more")
    counts = np.zeros((site.n_urls, len(asked.words)), np.int64)
    for page in np.flatnonzero(pages_of(site)).tolist():
        if "html" in site.mimes[page]:
            counts[page] = asked.count(title_and_text(site.text(page))[1])
    values: NDArray[np.float64] = counts @ np.array(asked.weights(counts.sum(axis=0).tolist(), idf=idf))
    return values


def _links_of(web: RecordedSite | PageLinks) -> PageLinks:
    if not isinstance(web, RecordedSite):
        return web
    source = np.repeat(np.arange(web.n_urls), np.diff(web.starts[: web.n_urls + 1]))
    return page_links(source, web.targets[: len(source)], is_page=pages_of(web), redirect=web.redirect)


def _checked(order: ArrayLike, importance: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    visited, values = np.asarray(order, np.int64), np.asarray(importance, np.float64)
    if len(visited) and not 0 <= visited.min() <= visited.max() < len(values):
        raise ConfigError(
            f"the order has pages from {visited.min()} to {visited.max()}, and there is the importance of "
            f"{len(values)}; give numbers of pages, from 0"
        )
    if len(np.unique(visited)) != len(visited):
        raise ConfigError("the order visits a page twice; give each page once, as page_order() does")
    return visited, values
