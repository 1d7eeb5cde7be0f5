"""What a policy shows of itself, in the folders of whole crawls."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from crawls import crawl
from mocksite import MockSite

from scrapy_focus import PolicyTable
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.kit.page.policy_tables import Said, write_tables
from scrapy_focus.finders.kit.spiders import writings
from scrapy_focus.finders.news.spider import NewsSpider
from scrapy_focus.finders.outputs import write_report
from scrapy_focus.policies.orderings import BreadthFirst
from tests.pages import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SETTINGS: dict[str, Any] = {
    "SCHEDULER": "scrapy_focus.FocusScheduler", "DOWNLOAD_DELAY": 0, "FOCUS_PUBLIC_ONLY": False, "ROBOTSTXT_OBEY": False,
}  # fmt: skip
SPIDERS = [
    (DatasetsSpider, {"types": "csv", "sitemaps": "no"}),
    (NewsSpider, {"sitemaps": "no"}),
]


class Showing(BreadthFirst):
    """Shows outcomes, and how many links are queued."""

    def __init__(self) -> None:
        super().__init__()
        self.came: list[tuple[str, int]] = []

    def learn(self, outcome: Any) -> None:
        self.came.append((outcome.pick.url, outcome.size))

    def tables(self) -> Any:
        return [PolicyTable("Came", ("url", "bytes"), list(self.came)), ("Waits", ("links",), [(len(self.frontier),)])]


class Silent(BreadthFirst):
    """Shows nothing."""


class Babbling(BreadthFirst):
    """Returns invalid tables."""

    def tables(self) -> Any:
        return [("Came", ("url",), [(None,)])]


@pytest.fixture(scope="module")
def site() -> Iterator[MockSite]:
    pages = {"/": '<a href="/a">a</a><a href="/b">b</a>', "/a": '<a href="/">home</a>', "/b": ""}
    with MockSite(pages=pages) as served:
        yield served


def run(site: MockSite, out: Path, spider: Any, policy: type, **arguments: Any) -> Any:
    settings = {**SETTINGS, "FOCUS_POLICY": policy}
    return crawl(spider, settings, addon=True, root=site.url("/"), out=str(out), **arguments)


@pytest.mark.parametrize(("spider", "arguments"), SPIDERS, ids=lambda each: getattr(each, "name", ""))
def test_the_page_of_a_crawl_shows_the_tables_of_its_policy(
    site: MockSite, tmp_path: Path, spider: Any, arguments: dict[str, str]
) -> None:
    """As at the end of the crawl; ``focus-report`` shows them, too. If the next crawl has none, none is left."""
    crawled = run(site, tmp_path, spider, Showing, **arguments)
    assert crawled.errors == {}
    stored = json.loads((tmp_path / ".focus" / "tables.json").read_text())
    assert stored["policy"] == "Showing"
    assert sorted(row[0] for row in stored["tables"][0]["rows"]) == [site.url(path) for path in ("/", "/a", "/b")]
    assert stored["tables"][1] == {"title": "Waits", "columns": ["links"], "rows": [[0]]}
    for page in (tmp_path / "index.html", write_report(tmp_path)):
        reader = Reader(page.read_text())
        assert "(policy: Showing)" in reader.text
        assert {"href": site.url("/b"), "rel": "noreferrer"} in reader.all("a")
        assert " Came. url bytes " in reader.text


@pytest.mark.parametrize("policy", [Silent, Babbling], ids=lambda policy: policy.__name__)
def test_tables_of_an_earlier_crawl_do_not_stay(site: MockSite, tmp_path: Path, policy: type) -> None:
    """Nor does nonsense harm a crawl; it is counted."""
    run(site, tmp_path, DatasetsSpider, Showing, types="csv", sitemaps="no")
    assert (tmp_path / ".focus" / "tables.json").exists()
    crawled = run(site, tmp_path, DatasetsSpider, policy, types="csv", sitemaps="no")
    assert crawled.outcomes["ok"] == 3
    assert set(crawled.errors) == ({"tables"} if policy is Babbling else set())
    assert not (tmp_path / ".focus" / "tables.json").exists()
    assert "How it decides" not in (tmp_path / "index.html").read_text()


@pytest.mark.parametrize(("spider", "arguments"), SPIDERS, ids=lambda each: getattr(each, "name", ""))
def test_tables_are_written_while_a_crawl_runs(
    site: MockSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spider: Any, arguments: dict[str, str]
) -> None:
    """Not only when it begins and when it ends."""
    rows: list[int] = []

    def write(out: Path, said: Said) -> None:
        rows.append(len(said.tables[0].rows))
        write_tables(out, said)

    monkeypatch.setattr(writings, "write_tables", write)
    monkeypatch.setattr(writings, "_FIRST", 0.0)
    monkeypatch.setattr(writings, "_COST", 0.0)
    run(site, tmp_path, spider, Showing, **arguments)
    assert rows[0] == 0
    assert rows[-1] == 3
    assert set(rows) & {1, 2}
