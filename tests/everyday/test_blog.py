"""A blog with hostile titles: its posts on a topic, its structured data, its files, its important pages, and its news."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from everydaycrawls import check_page, gets, manifest, rows, run
from everydaysites import Blog

from scrapy_focus.lab.sites.server import SiteServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer(Blog(30)) as running:
        yield running


def test_files_with_hostile_names_are_found(server: SiteServer, tmp_path: Path) -> None:
    """Each post has a report; login links are requested last, and do not end the crawl."""
    done = run(tmp_path, "files", server.url, "--types", "pdf", "--cost-limit", "0")
    assert done.status == 0
    assert done.last.startswith("Done: 30 files found in ")
    assert {urlsplit(line["url"]).path for line in manifest(tmp_path / "found")} == {
        f"/wp-content/uploads/report-{post}.pdf" for post in range(30)
    }
    seen = [entry.path for entry in sorted(server.log, key=lambda entry: entry.at)]
    reports = [at for at, path in enumerate(seen) if path.startswith("/wp-content/")]
    logins = [at for at, path in enumerate(seen) if path.startswith("/wp-login.php")]
    assert len([at for at in logins if at < reports[-1]]) <= 2
    check_page(tmp_path / "found")


def test_posts_on_a_topic_are_found(server: SiteServer, tmp_path: Path) -> None:
    """Posts about bees are found, and none about cats."""
    done = run(tmp_path, "topic", server.url, "--keywords", "beekeeping,honey,hive,nectar", "--budget", "120")
    assert done.status == 0
    (folder,) = [path.parent for path in tmp_path.rglob("pages.jsonl")]
    found = {urlsplit(row["url"]).path for row in rows(folder / "pages.csv") if float(row["relevance"]) > 0.5}
    posts = {post: server.site.path_of(post) for post in range(30)}
    assert {path for post, path in posts.items() if post % 2 == 0} <= found
    assert not {path for post, path in posts.items() if post % 2} & found
    check_page(folder)


def test_recipes_are_found(server: SiteServer, tmp_path: Path) -> None:
    """Every fifth post describes one as JSON-LD."""
    pytest.importorskip("extruct")
    done = run(tmp_path, "structured", server.url, "--types", "Recipe", "--scope", "host", "--budget", "150")
    assert done.status == 0
    lines = (tmp_path / "entities" / "entities.jsonl").read_text(encoding="utf-8").splitlines()
    found = {urlsplit(json.loads(line)["url"]).path for line in lines}
    assert found == {server.site.path_of(post) for post in range(0, 30, 5)}
    check_page(tmp_path / "entities")


def test_important_pages_come_first(server: SiteServer, tmp_path: Path) -> None:
    """The menu pages, which all others link to, are at the top; each page is requested once."""
    done = run(tmp_path, "important", server.url, "--budget", "60")
    assert done.status == 0
    (table,) = (tmp_path / "important").glob("*.csv")
    best = [urlsplit(row["url"]).path for row in rows(table)[:6]]
    assert {"/", "/category/bees/", "/category/cats/"} <= set(best)
    assert set(gets(server).values()) == {1}
    check_page(tmp_path / "important")


def test_a_watch_finds_new_posts_and_marks_no_other_as_changed(server: SiteServer, tmp_path: Path) -> None:
    """The list of recent posts next to each article changes with every post, but the articles do not."""
    watch = ("watch", server.url, "--rate", "100000/hour", "-s", 'FOCUS_POLICY_PARAMS={"shortest": 0.1}', "--budget")
    assert run(tmp_path, *watch, "60").status == 0
    server.site.posts += 3
    done = run(tmp_path, *watch, "180")
    assert done.status == 0
    news = [json.loads(line) for line in (tmp_path / "watched" / "news.jsonl").read_text(encoding="utf-8").splitlines()]
    listed = [urlsplit(line["url"]).path for line in news]
    assert {server.site.path_of(post) for post in (31, 32)} <= set(listed)
    assert len(listed) == len(set(listed)), "an article is listed twice only if it changed"
    assert len(server.log) == 180
    assert not [path for path in gets(server) if path.startswith("/wp-login.php")]
    assert f"{len(listed)} new articles" in check_page(tmp_path / "watched")
