"""The links of a recorded site in columns: how they are read fast, and how far from the roots each page is.

A site has a hundred links per page, and most runs look at few of them by name. So links become numbers in two columns,
ordered by page, and whatever needs all of them is an expression over these.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from numpy.typing import NDArray


def read_links(
    database: sqlite3.Connection, n_urls: int, n_targets: int | None = None, *, table: str = "links"
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Return where the links of each page start, where each link leads, and the number of its tag path.

    Shapes: (n_urls + 1,), (n_links,), (n_links,). About 0.5 microseconds a link. In ``table="version_links"`` they are
    those of ``n_urls`` versions, and lead to ``n_targets`` URLs.

    Raises
    ------
    ValueError
        If a link belongs or leads to a page that is not there, or has a negative tag path.
    """
    n_links = database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 (one of two constants)
    rows = database.execute(f"SELECT source, target, tag_path FROM {table} ORDER BY source, position")  # noqa: S608
    links = np.fromiter(chain.from_iterable(rows), np.int32, count=3 * n_links).reshape(-1, 3)
    highest = np.array([n_urls, n_urls if n_targets is None else n_targets])
    if len(links) and not (links.min() >= 0 and (links[:, :2].max(axis=0) < highest).all()):
        raise ValueError("a link belongs or leads to a page that is not there")
    starts = np.concatenate([[0], np.cumsum(np.bincount(links[:, 0], minlength=n_urls))])
    return starts.astype(np.int64), np.ascontiguousarray(links[:, 1]), np.ascontiguousarray(links[:, 2])


def depths(
    roots: Sequence[int], starts: NDArray[np.int64], targets: NDArray[np.int32], redirect: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return how many clicks each page is away from the nearest root, -1 where no links lead. Redirects cost nothing.

    O(links). ``redirect`` is -1 where a page leads on to no other, shape (n_urls,).

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
