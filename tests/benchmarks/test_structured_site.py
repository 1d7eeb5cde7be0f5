"""The benchmark of pages with structured data: its figures are those worked by hand, without a network and over HTTP."""

from __future__ import annotations

import json
from math import inf
from typing import TYPE_CHECKING

import pytest

import structured_site
from scrapy_focus.goals.structured import StructuredDataGoal
from scrapy_focus.lab.recordings.importers.folder import FolderSite, record_site
from structured_site import Site, live, measure, simulated, table, until

if TYPE_CHECKING:
    from pathlib import Path

# Name of a page -> the types on it, and its links. "gone" does not exist.
PAGES = {
    "index": ("Organization", "a b c"),
    "a": ("", "d gone"),
    "b": ("WebPage", "a"),
    "c": ("Recipe", ""),
    "d": ("Recipe Recipe Person", "index"),
}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site of five pages, recorded with its pages; three things of a wanted type are on two of them."""
    folder = tmp_path / "site"
    folder.mkdir()
    for name, (types, links) in PAGES.items():
        things = json.dumps([{"@context": "https://schema.org", "@type": each} for each in types.split()])
        anchors = "".join(f'<a href="{link}.html">{link}</a>' for link in links.split())
        page = f'<html><script type="application/ld+json">{things}</script><body>{anchors}</body></html>'
        (folder / f"{name}.html").write_text(page)
    record_site(FolderSite(folder), tmp_path / "five.sqlite", root="http://a.example/index.html", bodies=True)
    return Site(tmp_path / "five.sqlite")


def test_requests_are_counted_until_a_share_is_found() -> None:
    """A page counts when it is first asked for; what never comes, and what was asked by HEAD (-1), counts for nothing."""
    assert until([0, 3, 3, -1, 4], {3: 1, 4: 2}) == [5, 5, 5]
    assert until([0, 3, 3, -1, 4], {3: 1, 4: 1}) == [2, 5, 5]
    assert until([0, 3, 3], {3: 1, 4: 1}) == [2, inf, inf]


def test_the_census_counts_pages_and_things(site: Site) -> None:
    """A type has as many pages as describe anything of it, however many things that is."""
    assert "five, 5 pages:" in site.census()
    assert "| Recipe | 2 | 40.0 | 3 |" in site.census()
    assert "| Person | 1 | 20.0 | 1 |" in site.census()


def test_orders_have_the_figures_worked_by_hand(site: Site) -> None:
    """Breadth-first asks for index, a, b, c, d; who knows where things are asks for the two pages that have any."""
    goal = StructuredDataGoal(["Recipe"])
    runs = list(measure(site, "Recipe", simulated(site, goal, 2)))
    assert {run["order"] for run in runs} == set(structured_site.ORDERS)
    first, last = runs[0], runs[-1]
    assert (first["order"], first["requests"], first["pages"], first["things"]) == (
        "breadth-first", 6, [4, 5, 5], [5, 5, 5]
    )  # fmt: skip
    assert (last["order"], last["requests"]) == ("OMNISCIENT", 2)
    assert "| breadth-first | 4 | 5 | 5 | 5 | 5 | 5 |  |" in table(runs)
    assert table(runs).endswith("| 0 of 1 |")


@pytest.mark.slow
def test_crawls_over_http_ask_for_every_page(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once each, the dead one too, and twice for the first, which a page links to; so stock Scrapy and the scheduler do."""
    settings = structured_site.LIVE["FocusScheduler"]
    monkeypatch.setattr(structured_site, "LIVE", {"stock": structured_site.BREADTH, "focus": settings})
    runs = list(measure(site, "Recipe", live(site, StructuredDataGoal(["Recipe"]), 1)))
    assert [(run["order"], run["requests"]) for run in runs] == [("stock", 7), ("focus", 7)]
    assert all(run["things"][-1] <= 7 for run in runs)
