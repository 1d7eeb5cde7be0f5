"""Clusters that form as vectors arrive: the nearest centroid if it is near enough, else a new one.

The vectors are sparse (a dozen entries of thousands) and every one that joins a cluster moves its centroid. An index
of dense vectors pays for all dimensions at each look-up and must be updated at each move. Here the sums of the
members are in a matrix with one row per dimension: a look-up reads as many rows as the vector has entries, and a move
writes as many numbers. Cosine similarity is the same for a sum and a mean.
"""

from __future__ import annotations

import mmap
import sys
from array import array
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from scrapy_focus.core.extras import require_extra

if TYPE_CHECKING:
    from numpy.typing import NDArray

Index = Literal["numpy", "hnswlib"]

_ROOM = 4096  # clusters allocated at once: a growing matrix is copied, which delays a crawl
_ENTRIES = 128  # of a centroid, on average over max_clusters
_LEAST_ENTRIES = 1 << 19


class Clusters:
    """Online clusters of sparse vectors by cosine similarity.

    Parameters
    ----------
    dim
        Dimensions of the vectors.
    threshold
        A vector joins the nearest cluster if the cosine to its centroid is at least this.
    max_clusters
        When there are so many, every vector joins the nearest.
    index
        How the nearest centroid is found. ``"numpy"`` compares the entries of the vector with all centroids, and never
        misses the nearest. ``"hnswlib"`` is for comparison with the published system: its graph, an HNSW index with
        hnswlib's defaults, often misses the nearest and is slower (``benchmarks/graph_index.py``).

    Raises
    ------
    ConfigError
        If hnswlib is asked for and not installed.

    Notes
    -----
    *Memory*: ``4 * dim * max_clusters`` bytes at most (64 MiB for 4,096 dimensions and clusters), allocated by the
    system in pages of 4 KiB as they are written: one page for each dimension that occurs and each 1,024 clusters.
    Clusters are never removed. The graph takes as much again and 300 bytes a cluster. Only nonzero entries are pickled,
    8 bytes each, and their places take as much again. All centroids together have at most 524,288 of these, or 128
    times ``max_clusters``. Above that, the centroid with the most drops the smaller half of its entries: those that few
    of its members had. A tag path has a dozen; the 2,742 clusters of a portal of 20,000 pages had 55,461.

    *The graph* depends on the order in which centroids came and moved. It uses one thread and a fixed seed, so the same
    vectors make the same clusters. It is not pickled: unpickling adds the centroids again, in the order of their
    numbers. The new graph may miss other centroids, so a resumed crawl may differ from one that never stopped.

    References
    ----------
    Malkov, Yashunin: Efficient and robust approximate nearest neighbor search using Hierarchical Navigable Small World
    graphs. arXiv:1603.09320.
    """

    def __init__(self, *, dim: int, threshold: float, max_clusters: int = 4096, index: Index = "numpy") -> None:
        self.dim = dim
        self.threshold = threshold
        self.max_clusters = max_clusters
        self.index = index
        self.n_clusters = 0
        room = min(max_clusters, _ROOM)
        self._sums = _zeros(dim, room)
        self._norms = np.zeros(room)  # squared
        self._entries = np.zeros(room, np.int64)  # of each centroid, the nonzero ones
        self._n_entries = 0
        self._where = array("q")  # dim * cluster + dimension of all these, perhaps twice, and of some that are 0 again
        self._max_entries = max(_LEAST_ENTRIES, _ENTRIES * max_clusters)
        self._graph = _Graph(dim, room) if index == "hnswlib" else None

    def nearest(self, where: NDArray[np.intp], values: NDArray[np.float32]) -> tuple[int, float]:
        """Return the cluster with the nearest centroid and the cosine to it, (-1, -1.0) if there is none."""
        if not self.n_clusters:
            return -1, -1.0
        first, end = 0, self.n_clusters
        if self._graph is not None:
            first = self._graph.nearest(where, values)
            end = first + 1
        dots = values @ self._sums[where, first:end]
        cosines = dots / np.sqrt(self._norms[first:end] * float(values @ values))
        best = int(np.argmax(cosines))
        return first + best, float(cosines[best])

    def assign(self, where: NDArray[np.intp], values: NDArray[np.float32], count: int = 1) -> int:
        """Add a vector, or ``count`` equal ones, to a cluster, and return which; the cluster may be new."""
        cluster, cosine = self.nearest(where, values)
        if cluster < 0 or (cosine < self.threshold and self.n_clusters < self.max_clusters):
            cluster = self._new()
        old = self._sums[where, cluster]
        new = old + count * values
        self._sums[where, cluster] = new
        self._norms[cluster] += float(new @ new - old @ old)
        self._note(cluster, where, old, new)
        if self._graph is not None:
            self._graph.move(cluster, self._sums[:, cluster])
        while self._n_entries > self._max_entries:
            self._thin(int(np.argmax(self._entries)))
        if len(self._where) > 2 * self._max_entries:
            self._where = array("q", self._occupied().tobytes())
        return cluster

    def centroid(self, cluster: int) -> NDArray[np.float32]:
        """Return the direction of a centroid: the sum of its members, shape (dim,)."""
        return self._sums[:, cluster].copy()

    def __getstate__(self) -> dict[str, Any]:
        where = np.array(self._where)
        clusters = where // self.dim
        values = self._sums.ravel().take((where - clusters * self.dim) * self._sums.shape[1] + clusters)
        if len(where) > self._n_entries:
            where, values = where[values != 0], values[values != 0]
        small = where.astype(np.uint32) if self._sums.size <= 1 << 32 else where
        n = self.n_clusters
        kept = {"_norms": self._norms[:n].copy(), "_entries": self._entries[:n].copy()}
        return {**self.__dict__, **kept, "_graph": None, "_where": small, "_sums": (self._sums.shape, values)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        where = state["_where"].astype(np.int64)
        shape, values = state["_sums"]
        sums = _zeros(*shape)
        sums[where % state["dim"], where // state["dim"]] = values
        more = np.zeros(shape[1] - state["n_clusters"], np.int64)
        norms, entries = (
            np.concatenate([state[name], more.astype(state[name].dtype)]) for name in ("_norms", "_entries")
        )
        where_all = array("q", where.tobytes())
        self.__dict__.update(state, _sums=sums, _norms=norms, _entries=entries, _where=where_all, _graph=None)
        if self.index == "hnswlib":
            self._graph = _Graph(self.dim, shape[1])
            for cluster in range(self.n_clusters):
                self._graph.move(cluster, self._sums[:, cluster])

    def _new(self) -> int:
        room = self._sums.shape[1]
        if self.n_clusters == room:
            extra = min(room, self.max_clusters - room)
            self._sums = np.concatenate([self._sums, np.zeros((self.dim, extra), np.float32)], axis=1)
            self._norms = np.concatenate([self._norms, np.zeros(extra)])
            self._entries = np.concatenate([self._entries, np.zeros(extra, np.int64)])
            if self._graph is not None:
                self._graph.resize(room + extra)
        self.n_clusters += 1
        return self.n_clusters - 1

    def _note(self, cluster: int, where: NDArray[np.intp], old: NDArray[np.float32], new: NDArray[np.float32]) -> None:
        """Track the nonzero entries."""
        before = int(np.count_nonzero(old))
        more = int(np.count_nonzero(new)) - before
        if before < len(old):
            self._where.frombytes((self.dim * cluster + where[(old == 0) & (new != 0)]).astype(np.int64).tobytes())
        self._entries[cluster] += more
        self._n_entries += more

    def _occupied(self) -> NDArray[np.int64]:
        dimensions, clusters = np.nonzero(self._sums[:, : self.n_clusters])
        return self.dim * clusters + dimensions

    def _thin(self, cluster: int) -> None:
        """Drop the smaller half of the entries of a centroid."""
        column = self._sums[:, cluster].copy()
        where = np.flatnonzero(column)
        column[where[np.argsort(np.abs(column[where]), kind="stable")[: (len(where) + 1) // 2]]] = 0
        self._sums[:, cluster] = column
        self._norms[cluster] = float(np.square(column, dtype=np.float64).sum())
        self._n_entries += len(where) // 2 - int(self._entries[cluster])
        self._entries[cluster] = len(where) // 2
        if self._graph is not None:
            self._graph.move(cluster, column)


def _zeros(rows: int, columns: int) -> NDArray[np.float32]:
    """Return a matrix that takes memory only where it is written."""
    if sys.platform != "linux":
        return np.zeros((rows, columns), np.float32)
    # NumPy's own zeros request 2 MiB at a time from the system, which would soon be the whole matrix
    memory = mmap.mmap(-1, 4 * rows * columns, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # of a system that has no pages of 2 MiB
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, np.float32).reshape(rows, columns)


class _Graph:
    """The HNSW index of the published system: hnswlib's, with its defaults (M = 16, ef_construction = 200, ef = 10)."""

    def __init__(self, dim: int, room: int) -> None:
        require_extra(
            "index='hnswlib'", "hnsw", "hnswlib", otherwise="use index='numpy', which never misses the nearest"
        )
        import hnswlib

        self.dim = dim
        self._index: Any = hnswlib.Index(space="cosine", dim=dim)
        self._index.init_index(max_elements=room, M=16, ef_construction=200, random_seed=100)
        self._index.set_ef(10)

    def nearest(self, where: NDArray[np.intp], values: NDArray[np.float32]) -> int:
        """Return a near cluster, mostly the nearest."""
        dense = np.zeros(self.dim, np.float32)
        dense[where] = values
        labels, _ = self._index.knn_query(dense, k=1, num_threads=1)
        return int(labels[0, 0])

    def move(self, cluster: int, centroid: NDArray[np.float32]) -> None:
        """Add a centroid, or move it, which connects it again to those that are near now."""
        self._index.add_items(centroid, cluster, num_threads=1)

    def resize(self, room: int) -> None:
        """Make room for so many centroids."""
        self._index.resize_index(room)
