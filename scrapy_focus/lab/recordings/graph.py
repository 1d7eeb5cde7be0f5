"""The links of a recorded site in columns: reading them fast, and the distance of each page from the roots.

A site has a hundred links per page, and most runs look at few of them by name. So links become numbers in two
columns, ordered by page, and code that needs all of them is an expression over these.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from numpy.typing import NDArray

_AT_ONCE = 100_000  # links


def read_links(
    database: sqlite3.Connection,
    n_urls: int,
    n_targets: int | None = None,
    *,
    table: str = "links",
    columns: Sequence[str] = ("target",),
) -> tuple[NDArray[np.int64], list[NDArray[np.int32]]]:
    """Return where the links of each page start, and their columns, the first of which has their targets.

    Shapes: (n_urls + 1,), (n_links,). About 0.2 microseconds a link and column. In ``table="version_links"`` they are
    those of ``n_urls`` versions, and lead to ``n_targets`` URLs.

    Raises
    ------
    ValueError
        If a link belongs or leads to a missing page, or has a negative number of a text.
    """
    n_links = int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 (constants)
    rows = database.execute(f"SELECT source, {', '.join(columns)} FROM {table} ORDER BY source, position")  # noqa: S608
    counts = np.zeros(n_urls, np.int64)
    found = [np.empty(n_links, np.int32) for _ in columns]
    highest = np.array([n_urls, n_urls if n_targets is None else n_targets])
    width = 1 + len(columns)
    for first in range(0, n_links, _AT_ONCE):
        n = min(_AT_ONCE, n_links - first)
        links = np.fromiter(chain.from_iterable(islice(rows, n)), np.int32, count=width * n).reshape(-1, width)
        if not (links.min() >= 0 and (links[:, :2].max(axis=0) < highest).all()):
            raise ValueError("a link belongs or leads to a page that is not there")
        begin = links[0, 0]
        some = np.bincount(links[:, 0] - begin)
        counts[begin : begin + len(some)] += some
        for column, values in zip(found, links.T[1:], strict=True):
            column[first : first + n] = values
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), found


def depths(
    roots: Sequence[int], starts: NDArray[np.int64], targets: NDArray[np.int32], redirect: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the clicks from the nearest root to each page, -1 if it is unreachable. Redirects cost nothing.

    O(links). ``redirect`` is -1 for a page that does not redirect, shape (n_urls,).

    Examples
    --------
    Page 0 links to page 1, which redirects to page 2, which links to page 3:

    >>> depths([0], np.array([0, 1, 1, 2, 2]), np.array([1, 3]), np.array([-1, 2, -1, -1])).tolist()
    [0, 1, 1, 2]
    """
    found = np.full(len(redirect), -1, np.int64)
    layer = np.unique(np.array(roots, np.int64))
    depth = 0
    while len(layer):
        found[layer] = depth
        reached = [layer]
        while len(layer):
            layer = np.unique(redirect[layer])
            layer = layer[(layer >= 0) & (found[layer] < 0)]
            found[layer] = depth
            reached.append(layer)
        layer = np.unique(targets[_links_of(np.concatenate(reached), starts)]).astype(np.int64)
        layer = layer[found[layer] < 0]
        depth += 1
    return found


def _links_of(pages: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of all links of some pages."""
    first, count = starts[pages], starts[pages + 1] - starts[pages]
    ends = np.cumsum(count)
    return np.repeat(first - ends + count, count) + np.arange(ends[-1] if len(ends) else 0)
