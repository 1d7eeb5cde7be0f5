"""Clusters that form as vectors arrive."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from scrapy_focus import ConfigError
from scrapy_focus.learn.clusters import Clusters
from scrapy_focus.learn.text import GramProjector

INDEXES = ["numpy", "hnswlib"]


@pytest.fixture(params=INDEXES)
def index(request: pytest.FixtureRequest) -> str:
    """Both ways to find the nearest centroid."""
    if request.param == "hnswlib":
        pytest.importorskip("hnswlib", reason="hnswlib is not installed: pip install 'scrapy-focus[hnsw]'")
    return request.param


def sparse(*values: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions and values that are not 0."""
    dense = np.array(values, np.float32)
    return np.flatnonzero(dense), dense[dense != 0]


def test_a_centroid_is_the_mean_direction_of_its_members(index: str) -> None:
    """(1, 0) and (1, 1) make (2, 1); (0, 1) stays apart, and draws (1, 2), whose cosines are 0.8 and 0.894."""
    clusters = Clusters(dim=2, threshold=0.7, index=index)
    assert clusters.nearest(*sparse(1, 0)) == (-1, -1.0)
    assert [clusters.assign(*sparse(*v)) for v in ((1, 0), (1, 1), (0, 1), (1, 2))] == [0, 0, 1, 1]
    assert clusters.centroid(0).tolist() == [2, 1]
    assert clusters.centroid(1).tolist() == [1, 3]
    cluster, cosine = clusters.nearest(*sparse(1, 1))
    assert (cluster, cosine) == (0, pytest.approx(3 / np.sqrt(10)))


@pytest.mark.parametrize(("threshold", "joins"), [(0.6, True), (0.6 + 1e-9, False)])
def test_the_threshold_is_inclusive(threshold: float, joins: bool, index: str) -> None:
    """The cosine of (3, 4) to (1, 0) is 0.6: near enough for a threshold of 0.6, not for one a little above."""
    clusters = Clusters(dim=2, threshold=threshold, index=index)
    clusters.assign(*sparse(1, 0))
    assert clusters.assign(*sparse(3, 4)) == (0 if joins else 1)
    assert clusters.n_clusters == (1 if joins else 2)


def test_equal_vectors_may_come_at_once(index: str) -> None:
    """A vector that comes with a count is that many members."""
    once, each = (Clusters(dim=3, threshold=0.5, index=index) for _ in range(2))
    for clusters, count in ((once, 5), (each, 1)):
        clusters.assign(*sparse(1, 0, 2))
        for _ in range(5 // count):
            clusters.assign(*sparse(0.5, 0, 3), count)
    assert once.centroid(0).tolist() == each.centroid(0).tolist() == [3.5, 0, 17]
    assert once.nearest(*sparse(0, 1, 1)) == pytest.approx(each.nearest(*sparse(0, 1, 1)))


def test_there_are_no_more_clusters_than_allowed(index: str) -> None:
    """When there are so many, every vector joins the nearest."""
    clusters = Clusters(dim=50, threshold=0.9, max_clusters=20, index=index)
    unit = np.eye(50, dtype=np.float32)
    assert [clusters.assign(*sparse(*row)) for row in unit[:20]] == list(range(20))
    for row in unit[20:]:
        assert clusters.assign(*sparse(*(row + 0.1 * unit[7]))) == 7
    assert clusters.n_clusters == 20


def test_there_is_room_for_many(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Far more clusters than there was room for at first keep their places."""
    monkeypatch.setattr("scrapy_focus.learn.clusters._ROOM", 16)
    clusters = Clusters(dim=1100, threshold=0.9, index=index)
    for i in range(1100):
        assert clusters.assign(np.array([i]), np.array([1.0], np.float32)) == i
    assert clusters.n_clusters == 1100
    for i in (0, 15, 16, 1023, 1024, 1099):
        assert np.flatnonzero(clusters.centroid(i)).tolist() == [i]
        if index == "numpy":  # the graph finds no way between centroids that share no dimension
            assert clusters.nearest(np.array([i]), np.array([2.0], np.float32)) == (i, pytest.approx(1.0))


def stream(n: int) -> list[tuple[str, int]]:
    """Return tag paths as pages have them: menus, listings with ids, tables, footers; and how many links share each."""
    rng = np.random.default_rng(3)
    frames = ["body", "body.front", "body.page two-col", "body.archive"]
    regions = ["header/nav#menu", "main/div.listing", "main/article", "main/section.downloads", "aside.box", "footer"]
    ends = [
        "ul/li/a",
        "ul/li.odd/a",
        "table.data/tbody/tr/td/a",
        "p/a",
        "h3/a.title",
        "div.pager/span/a",
        "dl/dd/a.file",
    ]
    paths = []
    for _ in range(n):
        frame, region, end = rng.choice(frames), rng.choice(regions), rng.choice(ends)
        extra = f"/div#item-{rng.integers(0, 40)}" if rng.random() < 0.3 else "/div" * int(rng.integers(0, 4))
        paths.append((f"html/{frame}/{region}{extra}/{end}", int(rng.integers(1, 6))))
    return paths


def assigned(index: str, theta: float, *, stop: int = -1) -> list[int]:
    """Return the clusters of the stream; pickled once on the way if asked."""
    projector, clusters = GramProjector(), Clusters(dim=4096, threshold=theta, index=index)
    found = []
    for i, (path, count) in enumerate(stream(500)):
        if i == stop:
            projector, clusters = pickle.loads(pickle.dumps((projector, clusters)))
        found.append(clusters.assign(*projector.project(path, ["", *path.split("/")]), count))
    return found


@pytest.mark.parametrize("theta", [0.6, 0.75, 0.9])
def test_the_graph_makes_nearly_the_same_clusters(theta: float) -> None:
    """On 500 tag paths it makes 27 to 377 clusters, at most two fewer or more than NumPy, and the same ones again."""
    pytest.importorskip("hnswlib", reason="hnswlib is not installed: pip install 'scrapy-focus[hnsw]'")
    exact, graph = len(set(assigned("numpy", theta))), assigned("hnswlib", theta)
    assert exact > 20
    assert abs(len(set(graph)) - exact) <= 2
    assert graph == assigned("hnswlib", theta)


def test_the_graph_misses_centroids_that_share_no_dimension() -> None:
    """Of 200 unit vectors, each of which is a centroid, it finds some and misses some; NumPy finds all."""
    pytest.importorskip("hnswlib", reason="hnswlib is not installed: pip install 'scrapy-focus[hnsw]'")
    graph, exact = (Clusters(dim=200, threshold=0.9, index=index) for index in ("hnswlib", "numpy"))
    unit = [sparse(*row) for row in np.eye(200)]
    for clusters in (graph, exact):
        assert [clusters.assign(*vector) for vector in unit] == list(range(200))
    assert {exact.nearest(*vector)[1] for vector in unit} == {1.0}
    found = [graph.nearest(*vector) for vector in unit]
    assert {cosine for _, cosine in found} == {0.0, 1.0}
    assert all((cluster == i) == (cosine == 1) for i, (cluster, cosine) in enumerate(found))


def test_clusters_can_be_stored() -> None:
    """After pickling they continue unchanged."""
    assert assigned("numpy", 0.75, stop=250) == assigned("numpy", 0.75)


def test_the_graph_is_made_again() -> None:
    """After pickling, the graph has all centroids where they were: it finds the clusters of 200 tag paths as before."""
    pytest.importorskip("hnswlib", reason="hnswlib is not installed: pip install 'scrapy-focus[hnsw]'")
    projector, clusters = GramProjector(), Clusters(dim=4096, threshold=0.75, index="hnswlib")
    vectors = [projector.project(path, ["", *path.split("/")]) for path, _ in stream(200)]
    for vector in vectors:
        clusters.assign(*vector)
    copy = pickle.loads(pickle.dumps(clusters))
    assert [copy.nearest(*vector) for vector in vectors] == [clusters.nearest(*vector) for vector in vectors]
    assert copy.assign(*vectors[0]) == clusters.assign(*vectors[0])


def test_a_missing_index_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without hnswlib the message says which extra to install, and what works without; numpy works."""
    monkeypatch.setitem(sys.modules, "hnswlib", None)
    with pytest.raises(ConfigError, match=r"scrapy-focus\[hnsw\].*index='numpy'"):
        Clusters(dim=4, threshold=0.5, index="hnswlib")
    assert Clusters(dim=4, threshold=0.5).assign(*sparse(1, 0, 0, 0)) == 0


def crowded(index: str, *, entries: int | None, stop: int = -1) -> tuple[Clusters, list[int]]:
    """Return three clusters whose members share two dimensions and have one of 600 each, and where 900 vectors went."""
    clusters = Clusters(dim=603, threshold=0.7, index=index)
    if entries is not None:
        clusters._max_entries = entries
    rng, found = np.random.default_rng(5), []
    for i in range(900):
        if i == stop:
            clusters = pickle.loads(pickle.dumps(clusters, protocol=5))
        where = np.array([rng.integers(0, 600), 600 + i % 3])
        found.append(clusters.assign(where, np.array([0.3, 1.0], np.float32)))
        assert clusters._n_entries == clusters._entries.sum() == np.count_nonzero(clusters._sums)
        assert set(clusters._occupied()) <= set(clusters._where)
        assert len(clusters._where) <= 2 * clusters._max_entries
    return clusters, found


@pytest.mark.few(1)
def test_centroids_forget_what_few_members_have(index: str) -> None:
    """With room for 90 entries, what all members share stays, vectors go where they went without a limit, and no more than 90 are kept."""
    clusters, found = crowded(index, entries=90)
    unlimited, expected = crowded(index, entries=None)
    assert found == expected
    assert clusters.n_clusters == 3
    assert unlimited._n_entries > 500
    assert clusters._n_entries <= 90
    for cluster in range(3):
        centroid = clusters.centroid(cluster)
        assert np.argmax(centroid) == 600 + cluster
        assert centroid.max() == unlimited.centroid(cluster).max() == 300
        assert np.sqrt(clusters._norms[cluster]) == pytest.approx(np.linalg.norm(centroid), rel=1e-4)


@pytest.mark.slow
def test_thinned_clusters_can_be_stored(index: str) -> None:
    """After pickling among evictions they continue unchanged."""
    assert crowded(index, entries=90, stop=450)[1] == crowded(index, entries=90)[1]


def test_entries_may_become_zero_and_come_back() -> None:
    """Vectors that cancel each other leave nothing, and what comes after that is stored as well."""
    clusters = Clusters(dim=3, threshold=-1.0)
    for first in (1, -1, 2, -2, 3):
        clusters.assign(*sparse(first, 5))
        copy = pickle.loads(pickle.dumps(clusters))
        assert copy.centroid(0).tolist() == clusters.centroid(0).tolist()
        assert clusters._n_entries == copy._n_entries == np.count_nonzero(clusters._sums)


def test_the_cluster_with_the_most_entries_is_thinned() -> None:
    """It loses the smaller half of its entries; of equal ones, those with the smallest dimensions; others lose nothing."""
    clusters = Clusters(dim=10, threshold=0.5)
    clusters._max_entries = 8
    clusters.assign(*sparse(0, 0, 0, 0, 0, 0, 0, 0, 1, 1))
    clusters.assign(*sparse(5, 3, 3, 3, 1, 9))
    assert clusters._n_entries == 8
    assert clusters.assign(*sparse(0, 0, 0, 0, 0, 18, 2)) == 1
    assert clusters.centroid(1).tolist() == [5, 0, 0, 3, 0, 27, 0, 0, 0, 0]
    assert clusters.centroid(0).tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 1, 1]


def test_room_ends_at_the_limit(index: str) -> None:
    """With 40 clusters at most there are never more than 40."""
    clusters = Clusters(dim=50, threshold=0.9, max_clusters=40, index=index)
    for row in np.eye(50, dtype=np.float32):
        clusters.assign(*sparse(*row))
    assert clusters._sums.shape == (50, 40)
    assert clusters.n_clusters == len(clusters._norms) == len(clusters._entries) == 40


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/statm is Linux's")
def test_room_for_many_takes_no_memory_before_they_come() -> None:
    """Of 64 MiB, 300 clusters in 600 dimensions take less than 8, and so do they after pickling; none is copied."""
    before = resident()
    clusters = Clusters(dim=4096, threshold=0.9)
    sums = clusters._sums
    for i in range(300):
        assert clusters.assign(np.array([i * 6, 2000 + i * 6]), np.ones(2, np.float32)) == i
    assert clusters._sums is sums
    assert resident() - before < 8 << 20
    copy = pickle.loads(pickle.dumps(clusters))
    assert copy.centroid(7).tolist() == clusters.centroid(7).tolist()
    assert resident() - before < 16 << 20


def resident() -> int:
    """Return how many bytes of this process are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_only_entries_are_stored() -> None:
    """2,048 clusters of 12 entries in 4,096 dimensions, 32 MiB in memory, take 8 bytes an entry and 16 a cluster."""
    clusters = Clusters(dim=4096, threshold=0.99)
    rng = np.random.default_rng(0)
    for _ in range(2048):
        clusters.assign(rng.choice(4096, 12, replace=False), rng.random(12).astype(np.float32))
    stored = pickle.dumps(clusters, protocol=5)
    assert clusters.n_clusters == 2048
    assert len(stored) < 8 * 12 * 2048 + 16 * 2048 + 2000
    assert (pickle.loads(stored)._sums == clusters._sums).all()
