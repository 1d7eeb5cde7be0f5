"""Recordings where URLs have several answers, each from a time on."""

from __future__ import annotations

import math
import sqlite3
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from recordings import ROOT, links, page, record

from scrapy_focus import RecordingError
from scrapy_focus.lab.recordings.checksums import verify
from scrapy_focus.lab.recordings.format import RecordedPage, RecordedSite
from scrapy_focus.lab.recordings.summary import describe
from scrapy_focus.lab.recordings.writer import SiteWriter

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.lab.recordings.writer import Answer

ALWAYS = -math.inf


def changing() -> list[Answer]:
    """Return what a page with two links answered, later with a third, and at last not at all; the third is born."""
    return [
        page("/", links("1", "2"), since=100.0),
        page("/1", "one"),
        page("/2", links("/"), since=100.0),
        page("/", links("3", "1"), since=200.0),
        page("/3", "three", since=200.0),
        page("/1", "one, changed", since=250.0),
        page("/", "gone", status=410, since=300.0),
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return such a recording, with bodies."""
    record(tmp_path / "site.sqlite", *changing(), bodies=True).close()
    return tmp_path / "site.sqlite"


def anchors(site: RecordedSite, answer: int) -> list[str]:
    """Return where the links of an answer lead, and check that their texts say the same."""
    places = site.links(answer)
    urls = [site.urls[target].removeprefix(ROOT) for target in site.targets[places]]
    texts = site.texts(np.arange(places.start, places.stop))
    assert [anchor.strip("/") for anchor, _ in texts] == urls
    assert all(site.tag_path(place).endswith("/a") for place in range(places.start, places.stop))
    return urls


def test_each_answer_holds_until_the_next(path: Path) -> None:
    """Before the first the URL was not there, unless that is without a time; the columns of URLs are those of the first."""
    site = RecordedSite(path)
    root, one, two, three = (site.ids[ROOT + name] for name in ("", "1", "2", "3"))
    assert (site.begin, site.end, site.has_versions) == (100.0, 300.0, True)
    assert [site.at(root, time) for time in (99.9, 100.0, 199.9)] == [-1, root, root]
    later, gone = site.at(root, 200.0), site.at(root, 1e9)
    assert len({root, later, gone}) == 3
    assert min(later, gone) >= site.n_urls
    assert [anchors(site, answer) for answer in (root, later, gone)] == [["1", "2"], ["3", "1"], []]
    assert site.answers.status[[root, later, gone]].tolist() == [200, 200, 410]
    assert site.status.tolist() == [200] * 4
    assert site.answers.digest[root] == site.digest[root] != site.answers.digest[later]
    assert site.history(one) == [(ALWAYS, one), (250.0, site.at(one, 250.0))]
    assert [site.at(one, time) for time in (-1e9, 249.0)] == [one, one]
    assert site.history(two) == [(100.0, two)]
    assert (site.at(three, 199.0), site.at(three, 200.0)) == (-1, three)
    assert site.text(site.at(one, 300.0)) == "one, changed"
    old, new = RecordedPage(site, one), RecordedPage(site, one, site.at(one, 300.0))
    assert (old.text, new.text) == ("one", "one, changed")
    assert old.url == new.url == site.url_of(site.at(one, 300.0)) == f"{ROOT}1"
    assert site.headers(later) == site.headers(root)
    assert site.depth.tolist() == [0, 1, 1, 1], "by the links of all versions"


def test_the_order_of_writing_and_killed_writers_do_not_matter(tmp_path: Path) -> None:
    """Versions may come in any order, in several runs, and twice."""
    one, two = tmp_path / "one.sqlite", tmp_path / "two.sqlite"
    first, *rest = changing()
    record(one, first, *rest).close()
    for answer in [first, *reversed(rest), *rest]:
        with SiteWriter(two, roots=[ROOT]) as writer:
            writer.add(answer)
    seen = []
    for path in (one, two):
        site = RecordedSite(path)
        seen.append({
            url: [(since, site.answers.status[answer], site.answers.digest[answer], anchors(site, answer))
                  for since, answer in site.history(page)]
            for url, page in site.ids.items()
        })  # fmt: skip
    history = {url: [since for since, *_ in versions] for url, versions in seen[0].items()}
    assert history[ROOT] == [100.0, 200.0, 300.0]
    # of /1, the answer without a time came last, and the existing one stays the first
    assert {url: versions for url, versions in seen[0].items() if url != f"{ROOT}1"} == {
        url: versions for url, versions in seen[1].items() if url != f"{ROOT}1"
    }


def test_recordings_with_one_answer_are_what_they_were(tmp_path: Path) -> None:
    """Their files have no more tables, and the format that they had."""
    path = tmp_path / "site.sqlite"
    site = record(path, page("/", links("1")), page("/1"))
    assert (site.begin, site.end, site.has_versions, site.at(1, 5.0)) == (0.0, 0.0, False, 1)
    assert site.history(1) == [(ALWAYS, 1)]
    assert site.answers.status is site.status
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (1,)
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {"meta", "texts", "pages", "links"}
    with SiteWriter(path, roots=[ROOT]) as writer:
        writer.add(page("/1", "later", since=5.0))
    again = RecordedSite(path)
    assert again.history(1) == [(ALWAYS, 1), (5.0, 2)]
    assert verify(path) == "all is as it was written"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE versions SET since = 222 WHERE id = 0",
        "UPDATE begins SET since = 111 WHERE page = 0",
        "DELETE FROM version_links WHERE position = 1",
        "UPDATE versions SET status = 500 WHERE id = 1",
    ],
)
def test_checksums_are_over_versions_too(path: Path, statement: str) -> None:
    """Whatever changes in them is found."""
    assert verify(path) == "all is as it was written"
    with sqlite3.connect(path) as database:
        database.execute(statement)
    database.close()
    with pytest.raises(RecordingError, match="is not what was written"):
        verify(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE versions SET page = 99 WHERE id = 0",
        "UPDATE versions SET id = 77 WHERE id = 0",
        "UPDATE versions SET since = 9e999 WHERE id = 0",
        "UPDATE versions SET since = 'soon' WHERE id = 0",
        "UPDATE begins SET page = 99 WHERE page = 0",
        "UPDATE versions SET redirect = 99 WHERE id = 0",
        "UPDATE version_links SET target = 99",
        "UPDATE version_links SET source = 99",
        "DROP TABLE begins",
    ],
)
def test_a_damaged_recording_is_named(path: Path, statement: str) -> None:
    """It is not read."""
    with sqlite3.connect(path) as database:
        database.execute(statement)
    database.close()
    with pytest.raises(RecordingError, match=r"is damaged|cannot be read"):
        RecordedSite(path)


@pytest.mark.parametrize("since", [math.nan, math.inf])
def test_a_time_that_is_none_is_refused(tmp_path: Path, since: float) -> None:
    """And what was written stays."""
    with SiteWriter(tmp_path / "site.sqlite", roots=[ROOT]) as writer:
        with pytest.raises(RecordingError, match="seconds since the epoch"):
            writer.add(page("/", since=since))
        writer.add(page("/"))
    assert RecordedSite(tmp_path / "site.sqlite").recorded.tolist() == [True]


def test_the_summary_says_how_many_there_are(path: Path, tmp_path: Path) -> None:
    """And over which time."""
    assert "versions   3 later ones, from 1970-01-01 00:01:40 to 1970-01-01 00:05:00 UTC" in describe(path)
    record(tmp_path / "plain.sqlite", page("/")).close()
    assert "versions" not in describe(tmp_path / "plain.sqlite")


def test_redirects_may_change(tmp_path: Path) -> None:
    """Where they lead is a matter of time, too."""
    moved: Any = {"status": 301, "headers": {"Location": "/new"}, "body": b""}
    later = page("/old", since=50.0)
    site = record(
        tmp_path / "site.sqlite", page("/", links("old")), page("/old", "here", since=0.0),
        later.__class__(url=later.url, since=50.0, **moved), page("/new"),
    )  # fmt: skip
    old = site.ids[f"{ROOT}old"]
    assert site.redirect[old] == -1
    assert site.answers.redirect[site.at(old, 60.0)] == site.ids[f"{ROOT}new"]
