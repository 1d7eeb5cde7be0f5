"""Recordings where pages have a second copy, as a browser showed them."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from recordings import HTML, ROOT, links, page, record

from scrapy_focus import RecordingError
from scrapy_focus.lab.recordings.checksums import verify
from scrapy_focus.lab.recordings.format import RecordedPage, RecordedSite
from scrapy_focus.lab.recordings.renderings import Shown
from scrapy_focus.lab.recordings.summary import describe
from scrapy_focus.lab.recordings.writer import Answer, Asset, Rendering, SiteWriter

if TYPE_CHECKING:
    from pathlib import Path

SHELL = "<script src='/app.js'></script>"
APP = Asset(f"{ROOT}app.js", 500)


def shown(path: str, html: str = "", **fields: Any) -> Rendering:
    """Return how a browser showed a page."""
    values = {"status": 200, "headers": HTML, "body": html.encode(), **fields}
    return Rendering(url=ROOT + path.lstrip("/"), **values)


def scripted() -> list[Answer | Rendering]:
    """Return a site with an app: two shells that a browser fills, a page that it was not asked for, and one without."""
    return [
        page("/", links("a", "b", "plain", "c")),
        page("/a", SHELL),
        page("/b", SHELL + links("plain")),
        page("/plain", "<script type='application/json'>{}</script>"),
        page("/c", SHELL),
        shown("/a", SHELL + links("b", "deep"), requests=2, received=900, assets=[APP], seconds=0.5),
        shown("/b", SHELL + links("plain"), requests=1, received=700, assets=[APP, Asset(f"{ROOT}app.css", 50)]),
        page("/deep", links("/a")),
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a recording of it, with bodies."""
    record(tmp_path / "site.sqlite", *scripted(), bodies=True, renderings=True).close()
    return tmp_path / "site.sqlite"


def leads(site: RecordedSite, answer: int) -> list[str]:
    """Return where the links of an answer lead, and check that their texts say the same."""
    places = site.links(answer)
    urls = [site.urls[target].removeprefix(ROOT) for target in site.targets[places]]
    texts = site.texts(np.arange(places.start, places.stop))
    assert [anchor.strip("/") for anchor, _ in texts] == urls
    assert all(site.tag_path(place).endswith("/a") for place in range(places.start, places.stop))
    return urls


def test_both_copies_are_there(path: Path) -> None:
    """With their links, and what the browser asked for besides; what pages share is kept apart."""
    site = RecordedSite(path)
    a, b, c, plain, deep = (site.ids[ROOT + name] for name in ("a", "b", "c", "plain", "deep"))
    assert (site.has_renderings, site.has_versions) == (True, False)
    assert (set(site.renderings), site.unrendered) == ({a, b}, {c})
    assert [[page in pages for page in (a, c, -1, site.n_urls)] for pages in (site.renderings, site.unrendered)] == [
        [True, False, False, False],
        [False, True, False, False],
    ]
    assert site.renderings.get(c) is None
    of_a, of_b = site.renderings[a], site.renderings[b]
    (script,) = of_a.assets
    assert of_a == Shown(of_a.answer, 2, 900, (script,))
    assert (of_b.requests, of_b.received, [size for _, size in of_b.assets]) == (1, 700, [500, 50])
    assert script in of_b.assets
    assert [leads(site, answer) for answer in (a, of_a.answer)] == [[], ["b", "deep"]]
    assert [leads(site, answer) for answer in (b, of_b.answer, deep)] == [["plain"], ["plain"], ["a"]]
    assert plain not in site.renderings
    assert site.text(a) == SHELL
    drawn = RecordedPage(site, a, of_a.answer)
    assert (drawn.text, drawn.url, drawn.status) == (SHELL + links("b", "deep"), f"{ROOT}a", 200)
    assert site.headers(of_a.answer) == HTML
    assert site.url_of(of_b.answer) == f"{ROOT}b"
    columns = site.answers
    assert columns.size[of_a.answer] == len(SHELL + links("b", "deep"))
    assert columns.seconds[of_a.answer] == 0.5
    assert columns.mimes[of_a.answer] == "text/html"
    assert len(site.status) == site.n_urls == 6
    assert site.depth.tolist() == [0, 1, 1, 1, 1, 2], "links of both copies count"


def test_what_is_still_to_be_rendered_follows_from_the_file(tmp_path: Path) -> None:
    """A resumed writer knows it, in any order of additions; the first rendering stays."""
    path = tmp_path / "site.sqlite"
    for number, each in enumerate(scripted()):
        with SiteWriter(path, roots=[ROOT], renderings=number < 3) as writer:
            writer.add(each)
            assert writer.renderings
    with SiteWriter(path, roots=[ROOT]) as writer:
        assert list(writer.unrendered()) == [f"{ROOT}c"]
        assert [writer.is_rendered(ROOT + name) for name in ("a", "c", "plain", "x", "[")] == [True, *[False] * 4]
        writer.add(shown("/a", "other", requests=99))
        writer.add(shown("/plain", "no scripts, and shown all the same"))
        writer.add(Rendering(url="http://elsewhere.example/"))
        done = writer.finish()
    assert (done.rendered, done.unrendered, done.missing) == (3, 1, 0)
    site = RecordedSite(path)
    assert site.completeness() == done
    assert str(done).endswith("(100.0%), 3 pages were rendered (1 with scripts were not)")
    assert site.renderings[site.ids[f"{ROOT}a"]].requests == 2
    assert site.ids[f"{ROOT}plain"] in site.renderings


def test_a_rendering_may_fail_or_lead_elsewhere(tmp_path: Path) -> None:
    """What failed has its reason and its costs; links are read by the URL that scripts led to."""
    failed = Rendering(url=f"{ROOT}a", error="failure: TimeoutError", requests=3, received=10)
    moved = shown("/b", links("there"), shown_at=f"{ROOT}sub/page")
    gone = shown("/c", links("never"), status=403)
    site = record(
        tmp_path / "site.sqlite", page("/", links("a", "b", "c")), *(page(f"/{name}", SHELL) for name in "abc"),
        failed, moved, gone, renderings=True,
    )  # fmt: skip
    a, b, c = (site.renderings[site.ids[ROOT + name]] for name in "abc")
    assert (site.answers.status[a.answer], site.answers.errors[a.answer]) == (0, "failure: TimeoutError")
    assert (a.requests, a.received) == (3, 10)
    assert [site.urls[target] for target in site.targets[site.links(b.answer)]] == [f"{ROOT}sub/there"]
    assert site.answers.status[c.answer] == 403
    assert site.links(c.answer).start == site.links(c.answer).stop
    assert site.status.tolist() == [200] * 4 + [0]


def test_recordings_without_are_what_they_were(tmp_path: Path) -> None:
    """Scripts or not: no more tables, the format that they had, and no rendering can be added later."""
    path = tmp_path / "site.sqlite"
    site = record(path, page("/", SHELL))
    assert (site.has_renderings, site.renderings, site.unrendered) == (False, {}, frozenset())
    assert "rendered" not in str(site.completeness()) + describe(path)
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (1,)
    with pytest.raises(RecordingError, match="was begun without renderings: resume it without them"):
        SiteWriter(path, roots=[ROOT], renderings=True)
    with SiteWriter(path, roots=[ROOT]) as writer:
        assert not writer.renderings
        assert list(writer.unrendered()) == []
        assert not writer.is_rendered(ROOT)
        with pytest.raises(RecordingError, match="was begun without renderings: write to another file"):
            writer.add(shown("/"))
    assert verify(path) == "all is as it was written"


def test_versions_and_renderings_together(tmp_path: Path) -> None:
    """A later version has a number between URLs and renderings, and the rendering stays that of the first."""
    path = tmp_path / "site.sqlite"
    site = record(
        path, page("/", SHELL), shown("/", links("new")), page("/", links("later"), since=5.0), page("/new"),
        page("/later"), renderings=True,
    )  # fmt: skip
    drawn, later = site.renderings[0].answer, site.at(0, 9.0)
    assert (later, drawn) == (3, 4)
    assert [leads(site, answer) for answer in (0, later, drawn)] == [[], ["later"], ["new"]]
    assert site.url_of(later) == site.url_of(drawn) == ROOT
    assert site.depth.tolist() == [0, 1, 1]
    assert "1 later ones" in describe(path)
    assert verify(path) == "all is as it was written"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE renderings SET requests = 0 WHERE id = 0",
        "UPDATE renderings SET received = 1 WHERE id = 0",
        "DELETE FROM rendering_links WHERE position = 1",
        "UPDATE assets SET size = 5",
        "DELETE FROM assets",
    ],
)
def test_checksums_are_over_renderings_too(path: Path, statement: str) -> None:
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
        "UPDATE renderings SET page = 99 WHERE id = 0",
        "UPDATE renderings SET id = 77 WHERE id = 0",
        "UPDATE renderings SET requests = -1 WHERE id = 0",
        "UPDATE renderings SET received = 'much' WHERE id = 0",
        "UPDATE renderings SET redirect = 99 WHERE id = 0",
        "UPDATE rendering_links SET target = 99",
        "UPDATE rendering_links SET source = 99 WHERE position = 1",
        "UPDATE assets SET rendering = 99 WHERE rendering = 0",
        "UPDATE assets SET size = -1",
        "DROP TABLE assets",
        "DROP TABLE rendering_links",
    ],
)
def test_a_damaged_recording_is_named(path: Path, statement: str) -> None:
    """It is not read."""
    with sqlite3.connect(path) as database:
        database.execute(statement)
    database.close()
    with pytest.raises(RecordingError, match=r"is damaged|cannot be read"):
        RecordedSite(path)


def test_the_summary_says_what_renderings_took(path: Path) -> None:
    """What pages share counts once."""
    said = "2 pages, by 5 requests besides, 0.0 MB in all; 1 with scripts were left"
    assert f"rendered   {said}" in describe(path)
