"""How early a crawl visits important pages: which pages count, which are hot, and what a file may say of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from handmade import GONE, file, moved, page, site_of, url_of

from scrapy_focus import ConfigError, FilesGoal
from scrapy_focus.lab.recordings.format import numbers_of
from scrapy_focus.lab.replay.importance import IMPORTANCE_METRICS, KNOWN_METRICS, Measure, SiteImportance
from scrapy_focus.lab.replay.importance_metrics import backlinks, pagerank
from scrapy_focus.lab.replay.metrics import METRICS
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scrapy_focus.lab.recordings.format import RecordedSite
    from scrapy_focus.lab.replay.importance import Visits

SITE = {
    "/": page("/a", "/old", "/dead", "/b", "/film.mp4", "/data.csv"),
    "/a": page("/c", "/b"),
    "/b": page("/c"),
    "/c": page("/", "/old", "/data.csv"),
    "/old": moved("/new"),
    "/new": page("/c"),
    "/dead": GONE,
    "/film.mp4": file(10, "video/mp4"),
    "/data.csv": file(),
    "/island": page("/c", "/a"),
}


@pytest.fixture
def site(tmp_path: Path) -> RecordedSite:
    return site_of(tmp_path, SITE)


def judge(
    site: RecordedSite, measure: Measure, *, unknown: Sequence[str] = ("mp4",), budget: int | None = None
) -> tuple[SiteImportance, Visits]:
    """Judge a breadth-first crawl; of URLs with some extensions the truth knows nothing."""
    importance = SiteImportance(site, SiteTruth(site, FilesGoal(), ignored=unknown), measure)
    return importance, importance.visits(simulate(BreadthFirst(), FilesGoal(), site, ignored=("mp4",), budget=budget))


def test_a_crawl_by_hand(site: RecordedSite) -> None:
    """It visits /, /a, /new, /b, /data.csv, /c: redirects and failures are not pages, nor are URLs that no crawl
    requests.
    """
    importance, visits = judge(site, Measure.of("backlinks", 2))
    assert importance.values.tolist() == [1, 2, 2, 2, 4, 2]  # of /, /a, /b, /data.csv, /c, /new
    assert (importance.facts.n_pages, importance.facts.n_hot, importance.facts.threshold) == (6, 5, 2)
    assert visits.pst.tolist() == [0, 20, 40, 60, 80, 100]
    assert visits.pcs.tolist() == pytest.approx([0, 50, 200 / 3, 75, 80, 100])
    assert [metric.of(visits) for metric in IMPORTANCE_METRICS.values()] == [0, 0, 0, 0, 0, 0]  # one page is 17 %


def test_similarity_to_a_query(tmp_path: Path) -> None:
    """The pages with the word are hot; its name is that in a sentence. A query without a word is refused."""
    pages = {"/": page("/a", "/b", text="none"), "/a": page(text="wine, wine"), "/b": page(text="Wine")}
    importance, visits = judge(site_of(tmp_path, pages, bodies=True), measure := Measure.of("similarity:wine", 2))
    assert importance.values.tolist() == pytest.approx([0, 2 / 9, 1 / 9])
    assert visits.pst.tolist() == [0, 50, 100]
    assert measure.said == "similarity to 'wine'"
    measure.check([tmp_path / "site.sqlite"])
    (tmp_path / "other").mkdir()
    with pytest.raises(ConfigError, match=r"compares the text of pages, and site.sqlite has none"):
        measure.check([site_of(tmp_path / "other", pages).path])
    for by in ("similarity", "similarity:", "similarity:?"):
        with pytest.raises(ConfigError, match="has no query; give words of two letters or more"):
            Measure.of(by)


def test_measures_are_those_of_the_recording(site: RecordedSite) -> None:
    """Each page has the PageRank or the back-links that it has on the whole site."""
    everything = {url_of(path) for path in ("/", "/a", "/b", "/c", "/new", "/data.csv")}
    for name, measure in (("pagerank", pagerank), ("backlinks", backlinks)):
        importance, _ = judge(site, Measure.of(name))
        expected = [value for url, value in zip(site.urls, measure(site).tolist(), strict=True) if url in everything]
        assert importance.values.tolist() == expected


def test_hot_pages_are_a_share_or_a_number(site: RecordedSite) -> None:
    """One page at least; those as important as the last one too; all of them, and no more, where more are asked for."""
    for hot, n_hot, threshold in ((0.008, 1, 4), (1, 1, 4), (0.3, 5, 2), (6, 6, 1), (1000, 6, 1)):
        facts = judge(site, Measure.of("backlinks", hot))[0].facts
        assert (facts.n_hot, facts.threshold) == (n_hot, threshold)


def test_importance_from_a_file(site: RecordedSite, tmp_path: Path) -> None:
    """URLs missing in it have none and are never hot; a redirect stands for its page, where the larger number counts."""
    (tmp_path / "a.csv").write_text(f"URL,hits\n{url_of('/old')},7\n{url_of('/new')},3\n\n{url_of('/b')}, 2.5\n")
    measure = Measure.of(tmp_path / "a.csv", 4)
    measure.check([site.path])
    importance, visits = judge(site, measure)
    assert importance.values.tolist() == [0, 0, 2.5, 0, 0, 7]
    assert (importance.facts.n_hot, importance.facts.threshold) == (2, 2.5)
    assert visits.pst.tolist() == [0, 0, 50, 100, 100, 100]


def test_a_site_without_important_pages(site: RecordedSite, tmp_path: Path) -> None:
    """It has no hot page, and every order has all of none."""
    (tmp_path / "a.csv").write_text(f"{url_of('/dead')},7\n")
    importance, visits = judge(site, Measure.of(tmp_path / "a.csv"))
    assert (importance.facts.n_hot, importance.facts.threshold) == (0, math.inf)
    assert visits.pst.tolist() == [100] * 6


def test_a_crawl_that_stopped_has_no_number_for_what_came_later(tmp_path: Path) -> None:
    """Of 40 pages, 5 % are two, 10 % four, and 20 % eight; a crawl of five requests was not there."""
    paths = [f"/{number}" for number in range(39)]
    site = site_of(tmp_path, {"/": page(*paths), **{path: page("/0", "/1", "/2") for path in paths}})
    importance, visits = judge(site, Measure.of("backlinks", 3), budget=5)
    assert importance.facts.n_pages == 40
    values = {key: metric.of(visits) for key, metric in IMPORTANCE_METRICS.items()}
    assert values == pytest.approx(
        {"pst_5": 100 / 3, "pst_10": 100, "pst_20": math.inf, "pcs_5": 50, "pcs_10": 75, "pcs_20": math.inf}
    )
    ideal = {key: importance.facts.ideal(key) for key in values}
    assert ideal == pytest.approx(
        {"pst_5": 200 / 3} | dict.fromkeys(("pst_10", "pst_20", "pcs_5", "pcs_10", "pcs_20"), 100)
    )
    assert [importance.facts.at_random(key) for key in ("pst_5", "pcs_20")] == [5, 20]


def test_metrics_can_be_told_apart() -> None:
    """Keys and labels are unique among all metrics, and each says what it is in a sentence."""
    assert KNOWN_METRICS.keys() == METRICS.keys() | IMPORTANCE_METRICS.keys()
    assert len({metric.label for metric in KNOWN_METRICS.values()}) == len(KNOWN_METRICS)
    for metric in IMPORTANCE_METRICS.values():
        assert metric.better == "more"
        assert metric.description.endswith(".")


@pytest.mark.parametrize("hot", [0, -1, 1.0, 2.5, math.nan, math.inf, True, -0.1])
def test_an_odd_number_of_hot_pages_is_explained(hot: float) -> None:
    """Anything but a share between 0 and 1 or a whole number from 1 is refused in one line."""
    with pytest.raises(ConfigError, match=r"give a share below 1, as 0\.008 for 0.8 %, or a whole number") as error:
        Measure.of("pagerank", hot)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no importance of any page"),
        ("url,importance\n", "has no importance of any page"),
        ("http://a.example/,much\n", "line 1: the importance is 'much'; give a number from 0"),
        ("url,n\nhttp://a.example/,nan\n", "line 2: the importance is 'nan'"),
        ("http://a.example/,-1\n", "line 1: the importance is '-1'"),
        ("http://a.example/,1e999\n", "line 1: the importance is '1e999'"),
        ("http://a.example/\n", "line 1 has 1 columns; give a URL and its importance"),
        ("http://a.example/,1,2\n", "line 1 has 3 columns"),
        ("http://a.example/,1\n\nhttp://a.example/,2\n", "line 3: 'http://a.example/' is in an earlier line too"),
        ("\x00\xff", "which cannot be read"),
    ],
)
def test_a_file_that_makes_no_sense_is_explained(tmp_path: Path, text: str, message: str) -> None:
    """One line says which line of the file has what, and what to give."""
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError) as error:
        Measure.of(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_measure_that_is_none_is_explained() -> None:
    """Neither a name nor a file: the message lists the valid values."""
    with pytest.raises(
        ConfigError,
        match=r"give pagerank, backlinks, similarity:QUERY, or a CSV file with a URL and a number in each line",
    ):
        Measure.of("pagrank")


def test_urls_that_no_recording_has_are_named(site: RecordedSite, tmp_path: Path) -> None:
    """A URL of the file has to be in one of the recordings; spelled otherwise, it is the same one."""
    (tmp_path / "other").mkdir()
    other = site_of(tmp_path / "other", {"/x": page()}, roots=["/x"])
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{url_of(name)},1\n" for name in ("/a", "/x", "/b#part", "/gone")))
    measure = Measure.of(path)
    assert numbers_of(site.path, ["HTTP://A.EXAMPLE/b#part", "no url", "http://[", ""]) == {
        "HTTP://A.EXAMPLE/b#part": site.ids[url_of("/b")]
    }
    with pytest.raises(
        ConfigError, match=r"a.csv has .* no recording has: 'http://a.example/gone'; leave them out"
    ) as error:
        measure.check([site.path, other.path])
    assert "\n" not in str(error.value)
    path.write_text("".join(f"{url_of(name)},1\n" for name in ("/a", "/x")))
    Measure.of(path).check([site.path, other.path])
    with pytest.raises(ConfigError, match="/x"):
        Measure.of(path).check([site.path])
    path.write_text("".join(f"{url_of(f'/{number}')},1\n" for number in range(1000)))
    with pytest.raises(ConfigError, match="and 997 more"):
        Measure.of(path).check([site.path])


def test_order_and_importance_have_the_same_pages(site: RecordedSite) -> None:
    """Where a crawl asks for more than the truth knows of, only what that counts is followed."""
    importance, visits = judge(site, Measure.of("pagerank"), unknown=("mp4", "csv"))
    assert len(importance.values) == importance.facts.n_pages == 5
    assert np.isfinite(importance.values).all()
    assert len(visits.pst) == len(visits.pcs) == 5
