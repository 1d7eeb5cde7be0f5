"""A data portal, crawled by ``focus files`` as a user would: once, with a budget, with a larger one, and again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from everydaycrawls import IN_TURN, check_page, gets, manifest, rows, run
from everydaysites import DataPortal

from scrapy_focus.lab.sites.server import SiteServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer(DataPortal(24)) as running:
        yield running


def paths(folder: Path) -> list[str]:
    """Return the paths of the files in a manifest."""
    return [urlsplit(line["url"]).path for line in manifest(folder)]


def test_all_files_are_found_stored_and_listed(server: SiteServer, tmp_path: Path) -> None:
    """Each is once in the manifest, the table, the page and on disk; no URL is requested twice, no forbidden one at all."""
    portal = server.site
    done = run(tmp_path, "files", server.url, "--cost-limit", "0", "--out", "found")
    assert done.status == 0
    assert done.last.startswith(f"Done: {len(portal.files)} files found in ")
    found = tmp_path / "found"
    assert sorted(paths(found)) == sorted(portal.files)
    for line in manifest(found):
        assert (found / line["path"]).read_bytes() == portal.ask("GET", urlsplit(line["url"]).path, {}, b"").body
    assert {urlsplit(row["url"]).path for row in rows(found / "files.csv")} == set(portal.files)
    assert set(gets(server).values()) == {1}
    assert not [path for path in gets(server) if path.startswith(("/user/", "/api/"))]
    shown = check_page(found)
    assert f"{len(portal.files)} files" in shown


def test_a_larger_budget_resumes(server: SiteServer, tmp_path: Path) -> None:
    """A used-up budget is a success; with a larger one no request is repeated, and each counts once."""
    for budget in (60, 130):
        done = run(tmp_path, "files", server.url, "--budget", str(budget), "--out", "found", *IN_TURN)
        assert done.status == 0
        assert len(server.log) == budget
        assert set(gets(server).values()) == {1}
        assert "files left to find is unknown" in check_page(tmp_path / "found"), "most of them are two steps away"
    with SiteServer(DataPortal(24)) as other:  # the second process fetches robots.txt again
        run(tmp_path, "files", other.url, "--budget", "129", "--out", "at once", *IN_TURN)
    assert sorted(paths(tmp_path / "found")) == sorted(paths(tmp_path / "at once"))


def test_the_next_crawl_says_what_changed(server: SiteServer, tmp_path: Path) -> None:
    """Its last line counts new, changed, unchanged and gone files."""
    portal = server.site
    run(tmp_path, "files", server.url, "--cost-limit", "0", "--out", "found")
    first, second = sorted(portal.files)[:2]
    portal.changed.add(first)
    portal.gone.add(second)
    done = run(tmp_path, "files", server.url, "--cost-limit", "0", "--out", "found")
    assert done.status == 0
    said = re.search(r"(\d+) new, (\d+) changed, (\d+) same, (\d+) gone", done.last)
    assert said is not None, done.last
    assert [*map(int, said.groups())] == [0, 1, len(portal.files) - 2, 1]
