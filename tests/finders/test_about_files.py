"""Whole crawls for files about something: what is stored, in which order it is listed, and what the next crawl knows."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from crawls import Crawled, crawl
from forked import Forked
from scrapy.exceptions import UsageError

from scrapy_focus.core.goal import noun_of
from scrapy_focus.engine.ending import ending_of
from scrapy_focus.finders.files.arguments import FilesArguments
from scrapy_focus.finders.files.file_list import read_files
from scrapy_focus.finders.files.found_files import read_list
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.outputs import write_report
from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.lab.sites.server import SiteServer
from tests.finders.aboutwords import AboutWords, stand_in
from tests.found.foundfolders import EVIL, hit, line, make
from tests.made import HANG
from tests.pages import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator

ABOUT = "river lake water"
PLAIN = (
    "name", "kind", "size", "state", "host", "section", "url", "page", "anchor", "path", "crawl", "at", "mime",
    "sha256", "cut",
)  # fmt: skip
FILES = {  # text of the link, and before it, by path: relevance 0, 1/3, 2/3 and 1 with the title of the page
    "/water": {"/f/1.csv": "Levels", "/f/2.csv": "Levels of each river", "/f/river-3.csv": "Lake <b>levels</b>"},
    "/roads": {"/f/4.csv": "Bridges <img src=x onerror=alert(1)>", "/f/5.csv": "Lake: |Tunnels", "/f/6.csv": ""},
}
TITLES = {"/water": "Water", "/roads": "Roads"}
RELEVANCE = {
    "/f/1.csv": 0.3333, "/f/2.csv": 0.6667, "/f/river-3.csv": 1.0, "/f/4.csv": 0.0, "/f/5.csv": 0.3333, "/f/6.csv": 0.0,
}  # fmt: skip
RUN = "from tests.finders.aboutwords import install; install(); from scrapy_focus.__main__ import main; main()"
ROOT = Path(__file__).parents[2]
FAST = ("-s", "DOWNLOAD_DELAY=0", "-s", "FOCUS_PROGRESS=off", "-s", "CONCURRENT_REQUESTS=1", "-s", "FOCUS_SEED=0")


class Archive:
    """A site with two pages of files, one of them on water."""

    def __init__(self) -> None:
        self.most: int | None = None  # files that are answered until a test says that the others may be, too
        self.stuck, self.goes_on = Event(), Event()
        self.titles = dict(TITLES)

    def fetch(self, path: str) -> Page:
        files = {name for each in FILES.values() for name in each}
        if path == "/":
            return self._page("Archive", dict.fromkeys(FILES, "More"))
        if path in FILES:
            return self._page(self.titles[path], FILES[path])
        if path not in files:
            return Page.of(b"", status=404)
        if self.most is not None:
            self.most -= 1
            if self.most < 0:
                self.stuck.set()
                self.goes_on.wait(HANG)
        body = f"number\n{path}\n".encode() * 50
        return Page(status=200, mime="text/csv", size=len(body), etag=path[-5:-4], modified=1e9, make=lambda: body)

    def _page(self, title: str, links: dict[str, str]) -> Page:
        parts = [(url, *text.rpartition("|")) for url, text in links.items()]
        listed = "".join(f'<li>{before}<a href="{url}">{text}</a></li>' for url, before, _, text in parts)
        return Page.of(f"<!DOCTYPE html><title>{title}</title><h1>Page</h1><ul>{listed}</ul>".encode())


@pytest.fixture
def archive() -> Archive:
    return Archive()


@pytest.fixture
def server(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> Iterator[SiteServer]:
    monkeypatch.setitem(sys.modules, "scrapy_focus.topic.about", stand_in())
    with SiteServer(archive, validators=True) as running:
        yield running


def visit(server: SiteServer, out: Path | str, settings: dict[str, Any] | None = None, **args: str) -> Crawled:
    """Crawl the site in this process, without any error."""
    server.log.clear()
    common = {"CONCURRENT_REQUESTS": 1, "COOKIES_ENABLED": False, "FOCUS_SEED": 0}
    result = crawl(DatasetsSpider, {**common, **(settings or {})}, addon=True, root=server.url, out=str(out), **args)
    assert result.errors == {}
    assert not [record for record in result.records if record.levelname == "ERROR"]
    return result


def lines(out: Path, crawl: int = 1) -> dict[str, dict[str, Any]]:
    """Return the lines of a crawl in the manifest, by path."""
    read = [json.loads(each) for each in (out / "manifest.jsonl").read_text().splitlines()]
    return {path_of(each["url"]): each for each in read if each["crawl"] == crawl}


def path_of(url: str) -> str:
    return "/" + url.split("/", 3)[3]


def table(out: Path) -> list[dict[str, str]]:
    """Return the rows of the table."""
    with (out / "files.csv").open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def shown(out: Path) -> str:
    return (out / "index.html").read_text(encoding="utf-8")


def asked(server: SiteServer) -> Counter[int]:
    """Return how often files were answered with each status."""
    return Counter(each.status for each in server.log if each.path.startswith("/f/"))


def test_files_are_listed_by_relevance(server: SiteServer, tmp_path: Path) -> None:
    """The link, its surroundings, the name and the title of the page count, and the reward is the sum."""
    done = visit(server, tmp_path, about=ABOUT)
    found = lines(tmp_path)
    assert {path: each["relevance"] for path, each in found.items()} == RELEVANCE
    assert {path_of(item.url): item.relevance for item in done.items} == RELEVANCE
    assert done.stats["focus/reward"] == pytest.approx(sum(RELEVANCE.values()), abs=1e-3)
    assert all((tmp_path / each["path"]).is_file() for each in found.values())
    assert found["/f/river-3.csv"]["words"] == "river, lake"
    assert found["/f/river-3.csv"]["why"].startswith('the file reads like "river lake water" (1.00): river, lake; ')
    assert found["/f/4.csv"]["why"].startswith('the file reads like "river lake water" (0.00); ')
    rows = table(tmp_path)
    assert tuple(rows[0]) == (*PLAIN, "relevance", "words", "why")
    assert [float(row["relevance"]) for row in rows] == sorted(RELEVANCE.values(), reverse=True)
    assert rows[0]["words"] == "river, lake"
    reader = Reader(shown(tmp_path))
    assert [each["value"] for each in reader.all("meter")] == ["100", "67", "33", "33", "0", "0"]
    assert not reader.all("img")
    assert "Relevance" in reader.text
    assert "100 % river, lake" in reader.text
    assert 'The files are ordered by their relevance to "river lake water", from 0 to 1' in reader.text
    assert "In all it is 2.3: so many relevant files are to be expected." in reader.text
    assert "Each file counts as its relevance, a number from 0 to 1." in reader.text
    assert "About river lake water" in reader.text
    topic = done.spider.goal.relevance
    assert (topic.pages, topic.links >= len(RELEVANCE)) == (3, True)
    assert noun_of(done.spider.goal) == "relevant files"
    assert "2.3 relevant files found" in ending_of(done.crawler).sentence


def test_the_default_policy_stays(server: SiteServer, tmp_path: Path) -> None:
    """It learns from graded rewards; a cost limit wants half a relevant file, and a few poor ones do not pass for it."""
    done = visit(server, tmp_path / "about", about=ABOUT)
    assert type(done.policy).__name__ == "BranchingBandit"
    assert not done.logged("topic")
    limited = visit(server, tmp_path / "limited", {"FOCUS_COST_LIMIT": 50}, about=ABOUT)
    assert limited.scheduler.crawl.stop.least == 0.5
    plain = visit(server, tmp_path / "plain", {"FOCUS_COST_LIMIT": 50})
    assert plain.scheduler.crawl.stop.least == 0


def test_links_are_read_for_the_goal_whatever_the_policy_reads(server: SiteServer, tmp_path: Path) -> None:
    """A policy without an interest in pages, too, gets rewards for what is next to a link."""
    done = visit(server, tmp_path, {"FOCUS_POLICY": "scrapy_focus.policies.orderings.BreadthFirst"}, about=ABOUT)
    assert not done.policy.reads_page
    assert {path: each["relevance"] for path, each in lines(tmp_path).items()} == RELEVANCE


def test_nothing_relevant_is_said(server: SiteServer, tmp_path: Path) -> None:
    """With the words of the user."""
    done = visit(server, tmp_path, about="mountains", about_least="0.5", types="csv")
    assert 'No csv about "mountains" in ' in ending_of(done.crawler).sentence


def test_the_list_of_the_script_has_the_same_order(server: SiteServer, tmp_path: Path) -> None:
    """And relevance in per cent and words, in front of further links."""
    visit(server, tmp_path, about=ABOUT)
    (found,) = re.findall(r'id="data">(.*?)</script>', shown(tmp_path), re.DOTALL)
    data = json.loads(found)
    rated = [(row[12], data["texts"][row[13]]) for row in data["rows"]]
    assert rated == sorted(rated, key=lambda each: -each[0])
    assert {*rated} == {(100, "river, lake"), (67, "river"), (33, ""), (0, "")}


def test_a_crawl_without_a_sentence_is_as_it_was(server: SiteServer, tmp_path: Path) -> None:
    """Its lists have no relevance, and its page no bar."""
    done = visit(server, tmp_path)
    assert done.stats["focus/reward"] == 6
    assert not any({"relevance", "words"} & each.keys() for each in lines(tmp_path).values())
    assert {item.relevance for item in done.items} == {None}
    assert tuple(table(tmp_path)[0]) == PLAIN
    assert not Reader(shown(tmp_path)).all("meter")
    assert "elevan" not in re.sub(r"<(script|style)>.*?</\1>", "", shown(tmp_path), flags=re.DOTALL)
    assert "about" not in (tmp_path / ".focus/crawls.jsonl").read_text()
    assert "6 files found" in ending_of(done.crawler).sentence


def test_a_crawl_without_a_sentence_imports_nothing_for_it() -> None:
    """Neither what remembers links, nor a model."""
    code = (
        "import sys; from scrapy_focus.finders.files.spider import DatasetsSpider; "
        "DatasetsSpider(root='http://a.test/'); "
        "sys.exit(any(name in sys.modules for name in ('scrapy_focus.goals.link_relevance', "
        "'scrapy_focus.topic.about', 'scrapy_focus.learn.embedding')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_less_relevant_files_are_listed_only(server: SiteServer, tmp_path: Path) -> None:
    """They have a line without a path, are neither items nor rewards, and the page says how many there are."""
    done = visit(server, tmp_path, about=ABOUT, about_least="0.5")
    found = lines(tmp_path)
    assert {path: each["relevance"] for path, each in found.items()} == RELEVANCE
    stored = {path for path, each in found.items() if each["path"]}
    assert stored == {"/f/2.csv", "/f/river-3.csv"} == {path_of(item.url) for item in done.items}
    assert len(list((tmp_path / "files").rglob("*.csv"))) == 2
    assert done.stats["focus/reward"] == pytest.approx(5 / 3, abs=1e-3)
    assert done.stats["file/new"] == 2
    text = Reader(shown(tmp_path)).text
    assert "4 files are listed without being stored." in text
    assert "Least relevance 0.5" in text
    assert [row["path"] != "" for row in table(tmp_path)] == [True, True, False, False, False, False]


def test_a_content_that_was_only_listed_is_stored_where_it_is_relevant(tmp_path: Path) -> None:
    """A copy of it under a relevant link is the file; one under another link is a copy."""
    from scrapy.exceptions import DropItem

    from scrapy_focus.finders.files.pipelines import StoreFiles
    from scrapy_focus.finders.kit.spiders.items import DataFile

    def file(url: str, *, irrelevant: bool) -> DataFile:
        return DataFile(
            url=f"http://x/{url}", mime="text/csv", size=1, page="", anchor="", name=f"{url}.csv", body=b"1" * 99,
            relevance=0.2 if irrelevant else 0.9, irrelevant=irrelevant,
        )  # fmt: skip

    pipeline = StoreFiles(tmp_path)
    pipeline.open_spider()
    with pytest.raises(DropItem, match="listed only, as it is not relevant enough"):
        pipeline.process_item(file("a", irrelevant=True))
    kept = pipeline.process_item(file("b", irrelevant=False))
    assert (tmp_path / kept.path).read_bytes() == b"1" * 99
    with pytest.raises(DropItem):
        pipeline.process_item(file("c", irrelevant=True))
    listed = read_list(tmp_path)
    assert [(each.url, bool(each.path), each.relevance) for each in listed] == [
        ("http://x/a", False, 0.2), ("http://x/b", True, 0.9),
    ]  # fmt: skip
    assert pipeline.files.counts()["new"] == 1


def test_the_next_crawl_keeps_the_relevance_of_known_files(server: SiteServer, tmp_path: Path) -> None:
    """It knows neither the surroundings of their links nor the titles of pages; what was judged with them stays."""
    visit(server, tmp_path, about=ABOUT)
    again = visit(server, tmp_path, about=ABOUT)
    assert {path: each["relevance"] for path, each in lines(tmp_path, 2).items()} == RELEVANCE
    assert {each["state"] for each in lines(tmp_path, 2).values()} == {"same"}
    assert asked(server) == {304: 6}
    assert again.logged("Files: 0 new, 0 changed, 6 same, 0 gone, 0 unseen")
    assert Reader(shown(tmp_path)).all("meter")[0]["value"] == "100"


def test_the_next_crawl_stores_what_is_relevant_enough_then(server: SiteServer, tmp_path: Path) -> None:
    """With a lower least relevance, listed files are fetched and new; with the same one, not even their bodies are."""
    visit(server, tmp_path, about=ABOUT, about_least="0.5")
    visit(server, tmp_path, about=ABOUT, about_least="0.5")
    assert asked(server) == {304: 6}
    assert {path for path, each in lines(tmp_path, 2).items() if each["path"]} == {"/f/2.csv", "/f/river-3.csv"}
    third = visit(server, tmp_path, about=ABOUT, about_least="0.3")
    states = {path: each["state"] for path, each in lines(tmp_path, 3).items() if each["path"]}
    assert states == {"/f/1.csv": "new", "/f/2.csv": "same", "/f/river-3.csv": "same", "/f/5.csv": "new"}
    assert asked(server) == {304: 4, 200: 2}
    assert all((tmp_path / each["path"]).is_file() for each in lines(tmp_path, 3).values() if each["path"])
    assert third.stats["file/new"] == 2


def test_the_next_crawl_may_look_for_something_else(server: SiteServer, tmp_path: Path) -> None:
    """What it fetches is judged anew, and what was judged by other words is listed last, without a bar."""
    visit(server, tmp_path, about=ABOUT)
    visit(server, tmp_path, {"CLOSESPIDER_ITEMCOUNT": 2}, about="tunnels")
    second = {path: each["relevance"] for path, each in lines(tmp_path, 2).items()}
    assert set(second.values()) <= {0.0, 1.0}
    rows = table(tmp_path)
    assert [row["relevance"] == "" for row in rows] == sorted(row["relevance"] == "" for row in rows)
    assert sum(row["relevance"] == "" for row in rows) == 6 - len(second)


def test_a_folder_of_an_earlier_version_goes_on(server: SiteServer, tmp_path: Path) -> None:
    """Its files have no relevance until they are fetched again."""
    visit(server, tmp_path)
    again = visit(server, tmp_path, about=ABOUT)
    assert {path: each["relevance"] for path, each in lines(tmp_path, 2).items()}.keys() == RELEVANCE.keys()
    assert lines(tmp_path, 2)["/f/river-3.csv"]["relevance"] == pytest.approx(2 / 3, abs=1e-3)  # "water" is a title
    assert again.stats["file/same"] == 6


def test_files_that_are_gone_keep_their_relevance(server: SiteServer, archive: Archive, tmp_path: Path) -> None:
    """They are listed where they were."""
    visit(server, tmp_path, about=ABOUT)
    fetch = archive.fetch
    archive.fetch = lambda path: Page.of(b"", status=410) if "river" in path else fetch(path)  # type: ignore[method-assign]
    visit(server, tmp_path, about=ABOUT)
    gone = read_files(tmp_path)[f"{server.url}f/river-3.csv"]
    assert (gone.state, gone.relevance, gone.words) == ("gone", 1.0, "river, lake")
    assert table(tmp_path)[0]["state"] == "gone"


def test_files_that_are_not_relevant_enough_are_not_printed(
    server: SiteServer, capfd: pytest.CaptureFixture[str]
) -> None:
    """With `out=-`, the URLs of the others are."""
    visit(server, "-", about=ABOUT, about_least="0.5")
    assert {path_of(url) for url in capfd.readouterr().out.split()} == {"/f/2.csv", "/f/river-3.csv"}


def test_a_killed_crawl_resumes_with_its_sentence_only(server: SiteServer, archive: Archive, tmp_path: Path) -> None:
    """What it knew of links is there again, and another sentence is refused by name."""
    archive.most = 2
    out = tmp_path / "found"
    command = [sys.executable, "-c", RUN, "files", server.url, "--out", str(out), *FAST]
    killed = Forked([*command, "--about", ABOUT], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert archive.stuck.wait(HANG)
    killed.send_signal(signal.SIGKILL)
    killed.wait(HANG)
    archive.most = None
    archive.goes_on.set()
    before = len(lines(out))
    assert 0 < before < len(RELEVANCE)

    def run(*words: str) -> tuple[int, str]:
        process = Forked([*command, *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said, logged = process.communicate(timeout=HANG)
        return process.wait(), said + logged

    status, said = run("--about", "roads")
    assert status == 2
    assert f"began with --about {ABOUT}, and cannot resume with --about roads" in said
    assert "no --about" in run()[1]
    status, said = run("--about", ABOUT)
    assert status == 0, said
    assert 'about "river lake water"' in said
    assert {path: each["relevance"] for path, each in lines(out).items()} == RELEVANCE


def test_arguments_say_what_is_looked_for() -> None:
    """In the first line of the command; a sentence that cannot be used is refused in one line."""
    read = FilesArguments.read({"root": "https://a.test/", "types": "pdf", "about": " river \n lake "})
    assert read.about == "river lake"
    assert read.looks_for == 'files of type pdf about "river lake"'
    assert read.fixed["about"] == "river lake"
    assert FilesArguments.read({"root": "https://a.test/"}).looks_for == "data files"


def test_a_sentence_without_a_known_word_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the model, before anything is sent."""
    monkeypatch.setitem(sys.modules, "scrapy_focus.topic.about", stand_in())
    asked = FilesArguments.read({"root": "https://a.test/", "about": "???"})
    with pytest.raises(UsageError, match="no word of it is known"):
        asked.check_files()
    fine = FilesArguments.read({"root": "https://a.test/", "about": "river"})
    fine.check_files()
    assert isinstance(fine.goal.relevance, AboutWords)


def test_words_and_numbers_of_a_list_are_only_text(tmp_path: Path) -> None:
    """Markup in them is shown literally, and a relevance that is no number from 0 to 1 is none."""
    listed = [line(n, relevance=0.5, words=evil, why=evil, anchor=evil) for n, evil in enumerate(EVIL)]
    odd = [*EVIL, -1, 2, True, None, [1]]
    listed += [line(100 + n, relevance=each, words=each) for n, each in enumerate(odd)]
    folder = make(tmp_path / "found", listed, [hit(1)], reason="finished")
    html = write_report(folder).read_bytes()
    reader = Reader(html.decode())
    assert html.count(b"<script") == 2
    assert not reader.all("img")
    assert {each["value"] for each in reader.all("meter")} == {"50"}
    assert "<script>alert(1)</script>" in reader.text
    cells = [row["words"] for row in table(folder)]
    assert not [cell for cell in cells if cell.startswith(("=", "\x1b"))]
