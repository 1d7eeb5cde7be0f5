"""Clusters that form as vectors arrive: the nearest centroid if it is near enough, else a new one.

The vectors are sparse (a dozen entries of thousands) and every one that joins a cluster moves its centroid. An index of
dense vectors pays for all dimensions at each look and must be told of each move. Here the sums of the members stand in
a matrix with one row per dimension: a look reads as many rows as the vector has entries, and a move writes as many
numbers. Cosine similarity does not care whether a centroid is a sum or a mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from scrapy_focus.core.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Index = Literal["numpy", "hnswlib"]


class Clusters:
    """Online clusters of sparse vectors by cosine similarity.

    Parameters
    ----------
    dim
        Dimensions of the vectors.
    threshold
        A vector joins the nearest cluster if the cosine to its centroid is at least this.
    max_clusters
        When there are so many, every vector joins the nearest. Memory is ``4 * dim * max_clusters`` bytes at most.
    index
        How the nearest centroid is found: ``"numpy"`` compares with all, exactly; ``"hnswlib"`` asks a navigable
        small-world graph for the nearest few and compares with these. Both find the same clusters. The graph is there
        because the published system has one: at 2,000 centroids that move, NumPy takes 25 microseconds for a vector,
        the graph milliseconds (``benchmarks/micro.py``).

    Raises
    ------
    ConfigError
        If hnswlib is asked for and not installed.
    """

    def __init__(self, *, dim: int, threshold: float, max_clusters: int = 4096, index: Index = "numpy") -> None:
        self.dim = dim
        self.threshold = threshold
        self.max_clusters = max_clusters
        self.index = index
        self.n_clusters = 0
        self._sums = np.zeros((dim, 16), np.float32)
        self._norms = np.zeros(16)  # squared
        self._graph = _Graph(dim) if index == "hnswlib" else None

    def nearest(self, where: NDArray[np.intp], values: NDArray[np.float32]) -> tuple[int, float]:
        """Return the cluster with the nearest centroid and the cosine to it, (-1, -1.0) where there is none."""
        if not self.n_clusters:
            return -1, -1.0
        norm = float(values @ values)
        if self._graph is None:
            dots = values @ self._sums[where, : self.n_clusters]
            cosines = dots / np.sqrt(self._norms[: self.n_clusters] * norm)
            best = int(np.argmax(cosines))
            return best, float(cosines[best])
        few = self._graph.query(where, values)
        dots = values @ self._sums[np.ix_(where, few)]
        cosines = dots / np.sqrt(self._norms[few] * norm)
        best = int(np.argmax(cosines))
        return int(few[best]), float(cosines[best])

    def assign(self, where: NDArray[np.intp], values: NDArray[np.float32], count: int = 1) -> int:
        """Let a vector, or ``count`` equal ones, join a cluster, and return which; the cluster may be new."""
        cluster, cosine = self.nearest(where, values)
        if cluster < 0 or (cosine < self.threshold and self.n_clusters < self.max_clusters):
            cluster = self._new()
        old = self._sums[where, cluster]
        new = old + count * values
        self._sums[where, cluster] = new
        self._norms[cluster] += float(new @ new - old @ old)
        if self._graph is not None:
            self._graph.moved(cluster, self._sums[:, cluster], count)
        return cluster

    def centroid(self, cluster: int) -> NDArray[np.float32]:
        """Return the direction of a centroid: the sum of its members, shape (dim,)."""
        return self._sums[:, cluster].copy()

    def _new(self) -> int:
        if self.n_clusters == self._sums.shape[1]:
            self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)], axis=1)
            self._norms = np.concatenate([self._norms, np.zeros_like(self._norms)])
        self.n_clusters += 1
        return self.n_clusters - 1


class _Graph:
    """The nearest few centroids by hnswlib, whose index takes dense vectors.

    A centroid of n members moves by 1/n at most with the next, so its place in the graph is renewed when its members
    have grown by half: what the graph answers is compared with the centroids as they are.
    """

    def __init__(self, dim: int, near: int = 16) -> None:
        try:
            import hnswlib
        except ImportError as error:
            raise ConfigError(
                "index='hnswlib' needs the package hnswlib: pip install 'scrapy-focus[hnsw]' (its build needs a C++ "
                "compiler), or use index='numpy', which finds the same clusters"
            ) from error
        self.dim = dim
        self.near = near
        self._index = hnswlib.Index(space="cosine", dim=dim)
        self._index.init_index(max_elements=1024, ef_construction=200, M=16, random_seed=100)
        self._index.set_ef(64)
        self._index.set_num_threads(1)
        self._members: list[int] = []
        self._due: list[int] = []

    def query(self, where: NDArray[np.intp], values: NDArray[np.float32]) -> NDArray[np.intp]:
        dense = np.zeros(self.dim, np.float32)
        dense[where] = values
        labels, _ = self._index.knn_query(dense, k=min(self.near, len(self._members)))
        return np.sort(labels[0]).astype(np.intp)

    def moved(self, cluster: int, centroid: NDArray[np.float32], count: int) -> None:
        if cluster == len(self._members):
            self._members.append(0)
            self._due.append(1)
            if cluster == self._index.get_max_elements():
                self._index.resize_index(2 * cluster)
        self._members[cluster] += count
        if self._members[cluster] >= self._due[cluster]:
            self._index.add_items(centroid, cluster)
            self._due[cluster] = self._members[cluster] + max(1, self._members[cluster] // 2)
