"""Comparisons that are also judged by important pages: the numbers, and everything that shows them."""

from __future__ import annotations

import csv
import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from compared import USER_MODULE, comparison, record

from scrapy_focus import ConfigError, FilesGoal
from scrapy_focus.lab.compare import plots
from scrapy_focus.lab.compare.comparison import compare
from scrapy_focus.lab.compare.folder import write
from scrapy_focus.lab.compare.tables import terminal_table
from scrapy_focus.lab.compare.words import headline, value_text, warnings_of
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.replay.importance import IMPORTANCE_METRICS, ImportanceFacts, Measure
from scrapy_focus.lab.replay.importance_metrics import (
    crawl_and_stop,
    crawl_and_stop_with_threshold,
    page_order,
    pagerank,
)
from scrapy_focus.lab.replay.metrics import METRICS, summary
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.policies.orderings import Random
from tests.pages import Reader

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.lab.compare.comparison import Comparison

FACTS = ImportanceFacts(n_pages=200, n_hot=4, threshold=3.5)


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("sites")
    return [record(folder / "one.sqlite", seed=0), record(folder / "two.sqlite", seed=1)]


@pytest.fixture(scope="module")
def found(sites: list[Path]) -> Comparison:
    """Both sites with two policies and two seeds."""
    return compare(["BFS", "RANDOM"], sites, seeds=[1, 2], importance="pagerank", hot=0.05, jobs=1)


def made(values: dict[str, dict[str, list[float]]], metric: str = "pst_5") -> Comparison:
    """Return a comparison with these values of a metric of important pages."""
    result = comparison(values, metric=metric)
    result.conditions = replace(result.conditions, importance=Measure.of("pagerank"))
    result.sites.update({name: facts and replace(facts, importance=FACTS) for name, facts in result.sites.items()})
    for run in result.runs:
        run.metrics.update({key: 1.0 for key in IMPORTANCE_METRICS if key not in run.metrics})
    return result


@pytest.mark.slow
def test_numbers_are_those_of_the_measures(found: Comparison, sites: list[Path]) -> None:
    """They are P_ST and P_CS of the pages of each crawl; what it found is as it is without."""
    site = RecordedSite(sites[1])
    ranks = pagerank(site)
    harvest = simulate(Random(), FilesGoal(), site, seed=2)
    (run,) = (run for run in found.of("two", "RANDOM") if run.seed == 2)
    asked = np.unique(harvest.pages[1:])
    pages = asked[(site.status[asked] == 200) & (site.redirect[asked] < 0)]  # of a crawl that asked for everything
    order = page_order(harvest)
    order = np.searchsorted(pages, order[np.isin(order, pages)])
    n_hot = round(0.05 * len(pages))
    threshold = np.sort(ranks[pages])[-n_hot]
    pst = crawl_and_stop_with_threshold(order, ranks[pages], threshold)
    pcs = crawl_and_stop(order, ranks[pages])
    for mark in (5, 10, 20):
        at = round(mark / 100 * len(pages)) - 1
        assert run.metrics[f"pst_{mark}"] == pst[at]
        assert run.metrics[f"pcs_{mark}"] == pcs[at]
    assert {key: run.metrics[key] for key in METRICS} == summary(harvest)
    facts = found.sites["two"]
    assert facts is not None
    assert facts.importance == ImportanceFacts(
        n_pages=len(pages), n_hot=(ranks[pages] >= threshold).sum(), threshold=threshold
    )
    assert run.visits is not None
    assert (run.visits.pages[-1], run.visits.pst[-1], run.visits.pcs[-1]) == (100, 100, 100)
    assert len(run.visits.pages) <= 400
    assert run.visits.pages[0] == pytest.approx(100 / len(pages), abs=1e-4)


@pytest.mark.slow
def test_without_it_nothing_changes(found: Comparison, sites: list[Path], tmp_path: Path) -> None:
    """A comparison by finds has the same numbers, columns and pictures as before."""
    plain = compare(["BFS", "RANDOM"], sites, seeds=[1, 2], jobs=1)
    assert [run.metrics for run in plain.runs] == [{key: run.metrics[key] for key in METRICS} for run in found.runs]
    folder = write(plain, tmp_path / "out").parent
    assert (folder / "runs.csv").read_text().splitlines()[0].split(",")[6:] == list(METRICS)
    data = json.loads((folder / "summary.json").read_text())
    assert data["importance"] is None
    assert set(data["metrics"]) == set(METRICS)
    assert not list(folder.glob("overview-importance*"))
    assert "Hot page" not in (folder / "index.html").read_text()
    with pytest.raises(
        ConfigError, match=r"'pst_5' says how early important pages are visited; .*--importance pagerank"
    ):
        plain.table("pst_5")


@pytest.mark.slow
def test_the_folder_has_both_kinds_of_numbers(found: Comparison, tmp_path: Path) -> None:
    """Columns, means and curves of important pages are beside those of finds; pictures too."""
    folder = write(found, tmp_path / "out", metric="pst_5").parent
    assert {path.name for path in folder.glob("*.svg")} == {
        "one.svg",
        "two.svg",
        "overview.svg",
        "overview-importance.svg",
    }
    rows = list(csv.DictReader((folder / "runs.csv").open(newline="")))
    assert float(rows[0]["pst_10"]) == found.runs[0].metrics["pst_10"]
    assert float(rows[0]["requests_90"]) == found.runs[0].metrics["requests_90"]
    data = json.loads((folder / "summary.json").read_text())
    assert data["importance"] == {"by": "pagerank", "hot": 0.05}
    assert data["sites"][0]["importance"]["n_hot"] > 1
    assert {cell["metric"] for cell in data["table"]} == METRICS.keys() | IMPORTANCE_METRICS.keys()
    words = data["command"].split()
    assert words[words.index("--importance") + 1 : words.index("--importance") + 4] == ["pagerank", "--hot", "0.05"]
    curve = json.loads((folder / "curves.json").read_text())[0]
    assert curve["pst"] == found.runs[0].visits.pst.tolist()  # type: ignore[union-attr]
    assert len(curve["pages"]) == len(curve["pcs"]) == len(curve["pst"])


@pytest.mark.slow
def test_the_page_shows_both_side_by_side(found: Comparison, tmp_path: Path) -> None:
    """It says what a hot page is, has the best order and one by chance, and the tables of both measures."""
    read = Reader(write(found, tmp_path / "out", metric="pst_5").read_text())
    for words in (
        "Hot page",
        "importance is the PageRank, told from the whole recording, and 5 % of the pages are hot",
        "Beside it",
        "ideal order",
        "by chance",
        "(PageRank: ",
        "In the third picture of a site",
    ):
        assert words in read.text
    for metric in IMPORTANCE_METRICS.values():
        assert metric.description in read.text
    assert len(read.all("svg")) == 2 * 4
    ids = [value for _, attributes in read.elements if (value := attributes.get("id"))]
    assert len(ids) == len(set(ids))
    heads = [len(row) for row in table_rows(read)]
    assert heads.count(5) >= 2  # site, two policies, ideal order, by chance


def table_rows(read: Reader) -> list[list[str]]:
    """Return the heads of each table of a page by their rows."""
    rows: list[list[str]] = []
    for tag, attributes in read.elements:
        if tag == "tr":
            rows.append([])
        elif tag == "th" and attributes.get("scope") == "col":
            rows[-1].append(tag)
    return [row for row in rows if row]


def test_panels_have_references(found: Comparison) -> None:
    """Important pages come first, each with the best order and one by chance as lines; what was found has neither."""
    figure = plots.draw_site(found, "one")
    assert len(figure.axes) == 4
    assert [len(axis.lines) for axis in figure.axes] == [4, 4, 2, 2]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["BFS", "RANDOM", plots.IDEAL, plots.AT_RANDOM]
    facts = found.sites["one"]
    assert facts is not None
    assert facts.importance is not None
    ideal = figure.axes[0].lines[2].get_xydata()
    share = 100 * facts.importance.n_hot / facts.importance.n_pages
    assert np.asarray(ideal) == pytest.approx(np.array([[0, 0], [share, 100], [100, 100]]))
    mean = plots.mean_curve(found, "one", "BFS", "pcs")
    assert mean is not None
    assert (mean.x[0], mean.x[-1], mean.y[-1]) == (0, 100, 100)
    assert len(plots.draw_overview(found, "pst").axes[0].lines) == 4


def test_the_terminal_shows_both_side_by_side(found: Comparison) -> None:
    """Below the policies of each site are the best order and one by chance, only where that is known."""
    from rich.console import Console

    console = Console(width=120, record=True, file=open(os.devnull, "w"))  # noqa: PTH123, SIM115
    console.print(terminal_table(found, ["pst_5", "requests_90"]))
    lines = console.export_text().splitlines()
    references = [line.split("│")[1:-1] for line in lines if "by chance" in line]
    assert len(references) == 2
    facts = found.sites["one"]
    assert facts is not None
    assert facts.importance is not None
    assert [cell.strip() for cell in references[0]] == [
        "by chance",
        f"{facts.importance.at_random('pst_5'):.1f}",
        "",
        "",
        "",
    ]
    assert any("Hot pages after 5 %" in line and "Requests until 90 %" in line for line in lines)


@pytest.mark.parametrize(
    ("metric", "sentence"),
    [
        ("pst_5", "RANDOM visits 60 % more hot pages than BFS in the first 5 % of the pages on a."),
        (
            "pcs_20",
            "RANDOM visits 60 % more of the 20 % most important pages than BFS in the first 20 % of the pages on a.",
        ),
    ],
)
def test_the_headline_says_what_it_means(metric: str, sentence: str) -> None:
    """In words, and with the sites where it is so."""
    result = made({"a": {"BFS": [50.0, 50.0], "RANDOM": [80.0, 80.0]}}, metric)
    assert headline(result, metric, "RANDOM", result.paired(metric)["RANDOM"]) == sentence


def test_where_nothing_is_important_or_nothing_is_to_be_found() -> None:
    """Each measure has the sites with a value: they are independent."""
    values = {"BFS": [50.0, 50.0], "RANDOM": [80.0, 80.0]}
    result = made({"a": values, "b": values, "c": values})
    for name, change in (("b", {"n_hot": 0}), ("c", {})):
        facts = result.sites[name]
        assert facts is not None
        assert facts.importance is not None
        importance, worth = replace(facts.importance, **change), 0.0 if name == "c" else 50.0
        result.sites[name] = replace(facts, importance=importance, exhaustive=replace(facts.exhaustive, worth=worth))
    assert list(result.paired("pst_5")["RANDOM"].verdicts) == ["a", "c"]
    assert list(result.paired("requests_90")["RANDOM"].verdicts) == ["a", "b"]
    assert [value_text(result, site, "RANDOM", "pst_5") for site in "abc"] == [
        "80.0 ± 0.0",
        "nothing to find",
        "80.0 ± 0.0",
    ]
    assert result.best("c", "pst_5") == ["RANDOM"]
    assert "No page is important on b." in warnings_of(result)


@pytest.mark.slow
def test_a_file_for_several_sites(sites: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its numbers reach other processes; a URL that none of the sites has ends the comparison before it begins."""
    urls = RecordedSite(sites[0]).urls
    path = tmp_path / "visits.csv"
    path.write_text("url,visits\n" + "".join(f"{url},{number}\n" for number, url in enumerate(urls[:40])))
    found = compare(["BFS"], sites, seeds=[1], importance=path, hot=3, jobs=2)
    facts = found.sites["one"]
    assert not found.failures
    assert facts is not None
    assert facts.importance is not None
    assert facts.importance.n_hot == 3
    assert facts.importance.threshold > 0
    path.write_text(path.read_text() + "http://elsewhere.example/,1\n")
    with pytest.raises(ConfigError, match=r"'http://elsewhere.example/'; leave them out, or record them"):
        compare(["BFS"], sites, seeds=[1], importance=path, jobs=1)


@pytest.mark.slow
def test_a_policy_that_fails_or_stops_is_in_no_mean(
    sites: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that fails has no curve, and one that stopped before so many pages has none of their numbers."""
    name = f"user_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(USER_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    found = compare(["BFS", f"{name}.Failing"], sites[:1], seeds=[1], importance="backlinks", budget=40, jobs=1)
    assert [run.policy for run in found.failures] == ["Failing"]
    assert value_text(found, "one", "BFS", "pst_20") == "> budget (1 of 1 seed)"
    assert value_text(found, "one", "BFS", "pst_5").replace(".", "").isdecimal()
    assert write(found, tmp_path / "out", metric="pcs_5").is_file()
