"""The spider ``topic`` of the example project: whole crawls of many hosts, which a proxy on this machine serves."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from forked import Forked
from handmadehosts import Handmade, html

from manyhosts.server import WebServer, write_examples
from manyhosts.web import MadeUpWeb
from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.learn.matching import Keywords
from scrapy_focus.topic.examples import read_examples
from scrapy_focus.topic.models import load_relevance
from scrapy_focus.topic.relevance import LinearRelevance
from scrapy_focus.web.domains import domain_of
from scrapy_focus.web.html import html_text
from scrapy_focus.web.words import url_words, words_of
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_focus.lab.sites.server import SiteServer

PROJECT = Path(__file__).parents[2] / "example_project"
FIELDS = {
    "url": str, "title": str, "relevance": float, "host": str, "domain": str, "depth": int, "path": list, "why": str,
    "language": str, "fetched_at": str,
}  # fmt: skip
SETTINGS = {
    "DOWNLOAD_DELAY": 0, "TELNETCONSOLE_ENABLED": 0, "REMOTE_CONTROL_ENABLED": 0, "FOCUS_PROGRESS": "off", "FOCUS_SEED": 0,
}  # fmt: skip
REASONS = re.compile(
    r"keyword in the (anchor( and the URL)?|URL)|words of the link \d+ % on the topic|a seed|found on a seed|found on a relevant page|"
    r"\d+ clicks behind a relevant page|no relevant page on the way there|(about |more than )?\d+ relevant pages link there|"
    r"(about |more than )?\d+ relevant pages link there, \d+ % of all that do|a new domain|\d+ % of its domain relevant|"
    r"\d+ % of the links beside it relevant|words like these led (to|away from) relevant pages|"
    r"drawn at random|\d+ % likely to be relevant"
)


class Run(NamedTuple):
    """What a crawl left."""

    status: int
    log: str
    pages: list[dict[str, Any]]


def start(server: SiteServer, out: Path, settings: dict[str, Any] | None = None, **arguments: Any) -> Forked:
    """Start a crawl in a separate process."""
    command = [sys.executable, "-m", "scrapy", "crawl", "topic", "-a", f"out={out}"]
    for name, value in arguments.items():
        command += ["-a", f"{name}={value}"]
    for name, value in (SETTINGS | (settings or {})).items():
        command += ["-s", f"{name}={value}"]
    env = {**os.environ, "http_proxy": server.url, "no_proxy": "", "PYTHONPATH": str(PROJECT.parent)}
    log = out.with_suffix(".log").open("a")
    return Forked(command, cwd=PROJECT, env=env, stdout=log, stderr=log, text=True)


def crawl(server: SiteServer, out: Path, settings: dict[str, Any] | None = None, **arguments: Any) -> Run:
    """Crawl to the end."""
    status = start(server, out, settings, **arguments).wait(HANG)
    lines = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
    return Run(status, out.with_suffix(".log").read_text(), [json.loads(line) for line in lines])


class Bees(NamedTuple):
    """A crawl for a topic in a synthetic web, and its arguments."""

    web: MadeUpWeb
    folder: Path
    server: WebServer
    run: Run
    seeds: list[str]


BUDGET, CAP = 160, 3


@pytest.fixture(scope="module")
def bees(tmp_path_factory: pytest.TempPathFactory) -> Bees:
    web, folder = MadeUpWeb(seed=5, hosts=3000), tmp_path_factory.mktemp("bees")
    write_examples(web, "beekeeping", folder, seeds=6, examples=60)
    texts, labels, *_ = read_examples(folder / "positive", folder / "negative")
    LinearRelevance().fit(texts, labels).save(folder / "model.npz")
    with WebServer(web) as server:
        run = crawl(
            server, folder / "100%found.jsonl", seeds=folder / "seeds.txt", model=folder / "model.npz",
            keywords=folder / "keywords.txt", per_domain=CAP, budget=BUDGET,
        )  # fmt: skip
    return Bees(web, folder, server, run, (folder / "seeds.txt").read_text().split())


def test_each_fetched_page_is_a_line(bees: Bees) -> None:
    """The results have a line for each fetched page, once, relevant or not, with all fields filled."""
    assert bees.run.status == 0, "its budget is used up, as was asked for"
    assert "Traceback" not in bees.run.log
    came = [seen.path for seen in bees.server.log if seen.status == 200 and not seen.path.endswith("/robots.txt")]
    assert sorted(page["url"] for page in bees.run.pages) == sorted(came)
    assert len({*came}) == len(came) > BUDGET / 3
    model = load_relevance(bees.folder / "model.npz")
    for page in bees.run.pages:
        assert {name: type(value) for name, value in page.items()} == FIELDS
        there = bees.web.page(page["url"])
        assert (page["title"], page["host"], page["domain"]) == (there.title, there.host, domain_of(there.host))
        assert page["relevance"] == pytest.approx(model.score([html_text(there.html)])[0], abs=1e-6)
        assert f'lang="{page["language"]}"' in there.html
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", page["fetched_at"])
    assert {page["relevance"] >= 0.5 for page in bees.run.pages} == {True, False}


def test_the_budget_and_the_cap_are_exact(bees: Bees) -> None:
    """The server saw as many requests as the budget allows, and at most the limit of pages of each domain."""
    assert bees.server.requests == BUDGET
    came = [seen.path for seen in bees.server.log if seen.status == 200 and not seen.path.endswith("/robots.txt")]
    pages = Counter(domain_of(url.split("/")[2]) for url in came)
    assert max(pages.values()) == CAP
    assert len(pages) > BUDGET / 10


def test_each_page_says_how_it_was_reached(bees: Bees) -> None:
    """The path leads from a seed over pages that have those links to the page, a click each."""
    depths = set()
    for page in bees.run.pages:
        urls = [*(step["url"] for step in page["path"]), page["url"]]
        assert urls[0] in bees.seeds
        assert len(page["path"]) == page["depth"]
        for step, url in zip(page["path"], urls[1:], strict=True):
            there = bees.web.page(step["url"])
            if there.status == 200:
                anchors = {link.url: link.anchor for link in there.links}
                target = (
                    url if url in anchors else next(link for link in anchors if bees.web.page(link).location == url)
                )
                assert anchors[target] == step["anchor"]
            else:
                assert there.location == url
        depths.add(page["depth"])
    assert {0, 1, 2} <= depths


def test_each_page_says_why_it_was_fetched(bees: Bees) -> None:
    """The reasons are features of the link, in words, and they are true of it."""
    keywords = Keywords((bees.folder / "keywords.txt").read_text().split())
    relevance = {page["url"]: page["relevance"] for page in bees.run.pages}
    said = Counter[str]()
    new = []
    for page in bees.run.pages:
        why = page["why"].split("; ")
        assert all(REASONS.fullmatch(piece) for piece in why), page["why"]
        assert why[-1].endswith(" % likely to be relevant")
        said.update(re.sub(r"-?\d+(\.\d+)?", "N", piece) for piece in why)
        assert ("a seed" in why) == (page["depth"] == 0)
        assert ("found on a seed" in why) == (page["depth"] == 1)
        new += [page["domain"]] * ("a new domain" in why)
        if page["path"]:
            [words] = [piece for piece in why if piece.startswith("keyword in")] or [""]
            assert not keywords.found(words_of(page["path"][-1]["anchor"])) or "anchor" in words
            if "found on a relevant page" in why:
                assert relevance[page["path"][-1]["url"]] >= 0.5
        if len(page["path"]) == 0:
            assert ("keyword in the URL" in why) == keywords.found(url_words(page["url"]))
    assert len({*new}) == len(new) > 10
    for each in ("keyword in the URL", "keyword in the anchor", "found on a relevant page", "words of the link N % on the topic",
                 "N % of its domain relevant"):  # fmt: skip
        assert said[each], said


JAPANESE, GREEK = "養蜂の蜂蜜", "Μέλισσα και μέλι"


def test_all_languages_come_out(tmp_path: Path) -> None:
    """Pages in any script and encoding are decoded, listed in UTF-8, and found by keywords in their language."""
    greek = f"<title>{GREEK}</title><meta http-equiv=Content-Language content=el><p>μέλισσα μέλι μέλι".encode("cp1253")
    pages = {
        "http://start.test/": html(
            "http://japan.test/ja 蜂蜜の話", "http://greece.test/el Μέλι", "http://germany.test/de Über Bienen",
            "http://greece.test/list.pdf PDF", "http://greece.test/private/ Log in", "http://germany.test/plain Text", lang="en",
        ),
        "http://japan.test/ja": html(title=JAPANESE, text="養蜂と蜂蜜 " * 5, lang="ja"),
        "http://greece.test/el": Page.of(greek, mime="text/html; charset=windows-1253"),
        "http://germany.test/de": Page.of("<title>Für Bienen</title>".encode("latin-1"), mime="text/html; charset=latin-1"),
        "http://germany.test/plain": Page.of("蜂蜜 μέλι".encode(), mime="text/plain"),
    }  # fmt: skip
    with Handmade(pages) as server:
        run = crawl(server, tmp_path / "out.jsonl", seeds="http://start.test/", keywords="養蜂,蜂蜜,μέλι,μέλισσα")
    assert run.status == 0, run.log
    found = {page["url"]: page for page in run.pages}
    assert found.keys() == pages.keys() - {"http://germany.test/plain"}
    assert [found[url]["title"] for url in [*pages][:4]] == ["", JAPANESE, GREEK, "Für Bienen"]
    assert [found[url]["language"] for url in [*pages][:4]] == ["en", "ja", "el", ""]
    assert [found[url]["relevance"] >= 0.5 for url in [*pages][:4]] == [True, True, True, False]
    assert found["http://japan.test/ja"]["path"] == [{"url": "http://start.test/", "anchor": "蜂蜜の話"}]
    assert "keyword in the anchor" in found["http://japan.test/ja"]["why"]
    assert JAPANESE in (tmp_path / "out.jsonl").read_text(encoding="utf-8")
    assert sorted(server.asked_for) == sorted(pages)


@pytest.mark.parametrize("cap", [2, 3])
def test_a_redirect_to_another_domain_is_a_link(tmp_path: Path, cap: int) -> None:
    """A redirect or refresh to a domain at its limit is not followed; if there is room, the page's path shows it."""
    moved = Page.of(b"moved", status=301, mime="text/plain", location="http://full.test/3")
    refresh = Page.of(b'<meta http-equiv="refresh" content="0; url=http://full.test/4">')
    pages = {
        "http://start.test/": html("http://full.test/1 a", "http://www.full.test/2 b", "http://hop.test/near near"),
        "http://full.test/1": html("http://moved.test/ the third", "http://fresh.test/ the fourth"),
        "http://www.full.test/2": html("http://moved.test/ the third", "http://fresh.test/ the fourth"),
        "http://moved.test/": moved,
        "http://fresh.test/": refresh,
        "http://full.test/3": html(),
        "http://full.test/4": html(),
        "http://hop.test/near": Page.of(b"", status=302, location="http://www.hop.test/here"),
        "http://www.hop.test/here": html(title="here"),
    }
    with Handmade(pages) as server:
        run = crawl(server, tmp_path / "out.jsonl", seeds="http://start.test/", keywords="nothing", per_domain=cap)
    assert run.status == 3, run.log
    asked = server.asked_for
    assert {"http://moved.test/", "http://fresh.test/", "http://www.hop.test/here"} < {*asked}
    assert len([url for url in asked if "full.test" in url]) == cap
    found = {page["url"]: page for page in run.pages}
    assert found["http://www.hop.test/here"]["path"] == [{"url": "http://start.test/", "anchor": "near"}]
    if third := found.get("http://full.test/3"):
        assert [step["anchor"] for step in third["path"]][1:] == ["the third", "the third"]
        assert third["path"][-1]["url"] == "http://moved.test/"
    assert sum(url.startswith("http://full.test/") or "www.full.test" in url for url in found) == cap


def test_another_policy_and_another_feed(tmp_path: Path) -> None:
    """With breadth-first instead of TRES, each page is listed with a reason if known; the user's feeds work, too."""
    pages = {f"http://h{i}.test/": html(f"http://h{i + 1}.test/ next", text="bees honey") for i in range(30)}
    settings = {
        "FOCUS_POLICY": "scrapy_focus.policies.orderings.BreadthFirst",
        "FEEDS": json.dumps({str(tmp_path / "other.csv"): {"format": "csv"}}),
    }
    with Handmade(pages) as server:
        run = crawl(server, tmp_path / "out.jsonl", settings, seeds="http://h0.test/", keywords="bees,honey")
    where = r"; from queue 0 at rank -?\d+, 0 links left there"
    ways = ("a seed", "found on a seed", "2 clicks from a seed")
    for page, way in zip(run.pages, ways, strict=False):
        assert re.fullmatch(way + where, page["why"]), page["why"]
    assert [page["url"] for page in run.pages] == [*pages]
    assert len((tmp_path / "other.csv").read_text().splitlines()) == 31
    last = run.pages[-1]["path"]
    assert [step["url"] for step in last] == ["http://h0.test/", *(f"http://h{i}.test/" for i in range(10, 29))]


class HeldHosts(Handmade):
    """Answers nothing once so many lines are listed, until it is released: no crawl ends before."""

    def __init__(self, pages: dict[str, Page]) -> None:
        super().__init__(pages)
        self.enough: Callable[[], bool] = bool  # whether there are
        self.let_go = threading.Event()

    def fetch(self, url: str) -> Page:
        if self.enough():
            self.let_go.wait(HANG)
        return super().fetch(url)


class Job:
    """Runs of one job."""

    def __init__(self, server: SiteServer, folder: Path, **arguments: Any) -> None:
        self.server = server
        self.out = folder / "out.jsonl"
        self.settings = {"JOBDIR": folder / "job", "FOCUS_CHECKPOINT_EVERY": 20}
        self.arguments = arguments

    def run(self, lines: int = 0, how: int = 0) -> int:
        """Run to the end, or until so many pages are listed; return the exit status."""
        held = self.server if isinstance(self.server, HeldHosts) and how else None
        if held is not None:
            held.let_go.clear()
            held.enough = lambda: len(self.lines()) >= lines + 10
        process = start(self.server, self.out, self.settings, **self.arguments)
        try:
            while how and process.poll() is None and len(self.lines()) < lines:
                time.sleep(0.002)
            if how:
                process.send_signal(how)
            if held is not None:
                held.enough = bool
                held.let_go.set()
            return process.wait(HANG)
        finally:
            process.kill()

    def lines(self) -> list[bytes]:
        """The lines of the results that are whole."""
        lines = self.out.read_bytes().splitlines(keepends=True) if self.out.exists() else []
        return [line for line in lines if line.endswith(b"\n")]

    def pages(self) -> list[dict[str, Any]]:
        """What is listed."""
        log = self.out.with_suffix(".log").read_text()
        assert "Traceback" not in log, log
        return [json.loads(line) for line in self.lines()]


@pytest.mark.parametrize(
    ("how", "after"),
    [
        pytest.param(signal.SIGKILL, (10, 50), id="killed"),
        pytest.param(signal.SIGTERM, (50,), marks=pytest.mark.slow, id="stopped"),
    ],
)
def test_a_job_loses_no_page(tmp_path: Path, how: int, after: tuple[int, ...]) -> None:
    """However often a job is stopped or killed, in the end each page is listed once, with its whole path."""
    hosts, ways = range(12), range(6)
    pages = {
        f"http://h{i}.test/{j}": html(
            *(f"http://h{(i + k) % 12}.test/{j + 1} bees" for k in (1, 2, 5, 7)), text=f"bees {i}"
        )
        for i in hosts
        for j in range(3)
    }
    pages |= {f"http://h{i}.test/3": html(*(f"http://m{i}-{k}.test/ moved" for k in ways), text="bees") for i in hosts}
    pages |= {f"http://h{i}.test/3/{k}": html() for i in hosts for k in ways}
    moved = {
        f"http://m{i}-{k}.test/": Page.of(b"", status=301, location=f"http://h{i}.test/3/{k}")
        for i in hosts
        for k in ways
    }
    with HeldHosts(pages | moved) as server:
        job = Job(server, tmp_path, seeds="http://h0.test/0,http://h7.test/0", keywords="bees")
        for lines in after:
            job.run(lines, how)
        assert 50 <= len(job.lines()) < 90
        assert job.run() == 0
        found = job.pages()
        assert job.run() == 0
        assert job.pages() == found
    urls = [page["url"] for page in found]
    assert len(urls) == len({*urls})
    assert {*urls} == {url for url in server.asked_for if url in pages}
    assert {f"http://h{i}.test/3/{k}" for i in hosts for k in ways} < {*urls}
    for page in found:
        assert len(page["path"]) == page["depth"]
        way = [step["url"] for step in page["path"]] + [page["url"]]
        assert way[0] in ("http://h0.test/0", "http://h7.test/0")
        assert any(url in moved for url in way) == (page["depth"] > 3)


@pytest.mark.slow
def test_a_job_that_is_killed_keeps_budget_and_cap(bees: Bees, tmp_path: Path) -> None:
    """All runs of a job together send no more requests than the budget, and get at most the limit of a domain.

    Pages in flight at a kill come in addition: they are queued again, and their domain may reach its limit meanwhile.
    """
    examples = tmp_path / "examples"
    for kind in ("positive", "negative"):
        shutil.copytree(bees.folder / kind, examples / kind)
    with WebServer(bees.web) as server:
        files = {"seeds": bees.folder / "seeds.txt", "examples": examples, "keywords": bees.folder / "keywords.txt"}
        job = Job(server, tmp_path, **files, per_domain=CAP, budget=BUDGET)
        job.settings["FOCUS_LOG"] = tmp_path / "log.jsonl"
        for lines in (5, 40):
            job.run(lines, signal.SIGKILL)
            shutil.rmtree(examples, ignore_errors=True)  # which is needed no more
        assert job.run() == 0
        pages = job.pages()
    assert BUDGET - 2 * 16 <= server.requests <= BUDGET  # what was killed on its way out had been counted
    came = {seen.path for seen in server.log if seen.status == 200 and not seen.path.endswith("/robots.txt")}
    assert {page["url"] for page in pages} <= came
    assert len(pages) == len({page["url"] for page in pages}) > BUDGET / 4
    events = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    done = {event["id"] for event in events if event["event"] == "outcome"}
    had = {event["url"] for event in events if event["event"] == "pick" and event["id"] in done}
    assert max(Counter(page["domain"] for page in pages if page["url"] in had).values()) == CAP
    assert sum(page["url"] not in had for page in pages) <= 2 * 16
    assert all(len(page["path"]) == page["depth"] and " % likely to be relevant" in page["why"] for page in pages)
    assert job.out.with_suffix(".log").read_text().count("The model starts with 60 examples") == 1
