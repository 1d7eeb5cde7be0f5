"""PageRank of a whole graph, solved to convergence; :mod:`~scrapy_focus.learn.linkgraph` updates one incrementally.

References
----------
Cho, Garcia-Molina, Page: Efficient crawling through URL ordering. Computer Networks 30 (1998), section 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def solve(
    source: NDArray[np.integer[Any]],
    target: NDArray[np.integer[Any]],
    *,
    is_page: NDArray[np.bool_],
    outside: NDArray[np.integer[Any]] | None = None,
    damping: float = 0.9,
    tolerance: float = 1e-9,
) -> NDArray[np.float64]:
    """Return the PageRank of each number, shape (n,); 0 for one that is not a page.

    ``IR(P) = (1 - d) + d * sum of IR(T) / c(T)`` over the pages T that link to P, with c(T) the number of links of T.
    A page without links counts as linking to every page. Without links to elsewhere, the mean over all pages is 1.

    Parameters
    ----------
    source, target
        Links between pages, each once, shape (n_links,).
    is_page
        Which numbers are pages, shape (n,).
    outside
        How many further links each page has that lead elsewhere: rank passed along them is lost, shape (n,).
    damping
        The d of the formula, from 0 to below 1.
    tolerance
        Mean change of an iteration below which it ends, at least 1e-12. The time of an iteration is linear in the
        links.

    Examples
    --------
    >>> solve(np.array([0, 0, 1]), np.array([1, 2, 2]), is_page=np.ones(3, bool), damping=0.5).round(3).tolist()
    [0.727, 0.909, 1.364]
    """
    n, n_pages = len(is_page), max(1, np.count_nonzero(is_page))
    source, target = source.astype(np.intp), target.astype(np.intp)  # of smaller ones NumPy makes such each time
    n_links = np.bincount(source, minlength=n) + (0 if outside is None else outside)
    share = 1 / np.maximum(n_links, 1)
    dangling = is_page & (n_links == 0)
    rank: NDArray[np.float64] = is_page.astype(np.float64)
    while True:
        votes = np.bincount(target, (share * rank)[source], n)
        fresh = (1 - damping) + damping * (votes + rank[dangling].sum() / n_pages)
        fresh[~is_page] = 0
        change = np.abs(fresh - rank).sum() / n_pages
        rank = fresh
        if change < tolerance:
            return rank
