"""Watching a site for news, and keeping files current: whole days in seconds, on sites that change."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from crawls import crawl
from forked import Forked
from mocksite import MockSite
from scrapy.exceptions import UsageError

from scrapy_focus.core.clock import FastClock
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.kit.records.times import time_of, time_text
from scrapy_focus.finders.kit.spiders.writings import Writings
from scrapy_focus.finders.news.arguments import NewsArguments
from scrapy_focus.finders.news.spider import NewsSpider
from scrapy_focus.jobs.doctor.status import read_status
from scrapy_focus.lab.sites.news.plan import BEGIN, DAY, HOUR, Manner
from scrapy_focus.lab.sites.news.site import NewsSite
from scrapy_focus.lab.sites.server import SiteServer
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SPEED = 6000.0  # an hour in 0.6 s
CALM = 600.0  # of a clock that passes on while a command starts: an article is new for 144 s
CALMER = 60.0  # so slow that hardly anything happens within thirty requests, and they find the same
SMALL = Manner(sections=3, topics=6, archive=30, per_hour=7.0)
SETTINGS: dict[str, Any] = {"DOWNLOAD_DELAY": 0, "FOCUS_PUBLIC_ONLY": False, "FOCUS_SEED": 1}
ATOM = "{http://www.w3.org/2005/Atom}"


class Unhurried:
    """The machine's time, without delays of the machine: while everything is stopped, so are the days."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._machine = self._now = time.time()

    def __call__(self) -> float:
        with self._lock:
            machine = time.time()
            self._now += min(max(0.0, machine - self._machine), 0.05)
            self._machine = machine
            return self._now


@contextmanager
def newspaper(
    speed: float = CALM, machine: Callable[[], float] = time.time
) -> Iterator[tuple[str, NewsSite, FastClock]]:
    """Serve a news site a day old, whose clock is fast, and which begins to run now."""
    manner, clock = SMALL, FastClock(speed, BEGIN + DAY, machine=machine)
    site = NewsSite(manner, seed=3, days=30.0, clock=clock)
    with SiteServer(site, validators=True) as server:
        site.origin = server.url.rstrip("/")
        yield server.url, site, clock


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a list."""
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.slow
def test_a_day_in_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """New pages are listed soon and once, with their date and linking page; hubs are visited repeatedly."""
    with newspaper(SPEED, Unhurried()) as (url, site, clock):
        monkeypatch.setattr(FastClock, "of", lambda text: clock)
        began = clock()
        crawled = crawl(
            NewsSpider, {**SETTINGS, "_FOCUS_CLOCK": str(clock)}, addon=True, root=url, rate="80/hour", time="8h",
            out=str(tmp_path),
        )  # fmt: skip
        ended = clock()
    assert crawled.reason == "focus_budget_seconds"
    assert crawled.errors == {}
    status = crawled.scheduler.crawl.status()
    assert status.used["requests"] <= 80 * (ended - began) / HOUR + 2
    lines = lines_of(tmp_path / "news.jsonl")
    new = [line for line in lines if line["state"] == "new"]
    assert len({line["url"] for line in new}) == len(new)
    born = {f"{site.origin}{each.path}": each.at for each in site.born(began - DAY, ended)}
    assert {line["url"] for line in new} <= born.keys()
    surely = [line for line in new if ended - born[line["url"]] < DAY]  # others may have grown old on their way
    assert 0 < len(surely) <= status.rewards <= len(new)
    assert {abs(time_of(line["published"]) - born[line["url"]]) < 1 for line in new} == {True}
    assert {time_of(line["at"]) >= born[line["url"]] - 1 for line in new} == {True}
    assert any(born[line["url"]] > began for line in new), "what was born meanwhile"
    assert {line["by"] for line in new} <= {"page", "feed", "sitemap"}
    assert all(line["page"].startswith(site.origin) for line in new)
    rows = {row["url"]: row for row in csv.DictReader((tmp_path / "fresh.csv").read_text("utf-8-sig").splitlines())}
    assert int(rows[url]["visits"]) > 1
    assert float(rows[url]["changes_a_day_low"]) <= float(rows[url]["changes_a_day_high"])
    assert len(ET.parse(tmp_path / "feed.xml").getroot().findall(f"{ATOM}entry")) == min(100, len(new))
    page = (tmp_path / "index.html").read_text()
    assert f"{len(new)} new articles" in page
    assert f"Watched for 8 hours, as asked: {status.rewards:,.0f} new articles" in page
    assert str(tmp_path) not in page, "the folder may be anywhere"
    assert "It may send 80 requests an hour." in page
    assert crawled.stats["focus/visit/first"] > 0
    hours = [line["hour"] for line in lines_of(tmp_path / ".focus" / "hours.jsonl")]
    assert any(hours[0] < hour < hours[-1] for hour in hours), "a line when an hour is over in which something came"
    assert len(crawled.items) == len(lines)


def start(folder: Path, *words: str) -> Forked:
    """Start ``python -m scrapy_focus`` in a folder."""
    settings = [word for name, value in SETTINGS.items() for word in ("-s", f"{name}={value}")]
    env = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_")}
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "scrapy_focus", *words, *settings]
    return Forked(command, cwd=folder, stdout=pipe, stderr=pipe, text=True, env=env)


def run(folder: Path, *words: str) -> tuple[int, str]:
    """Run it to its end, and return its status and output."""
    process = start(folder, *words)
    said, logged = process.communicate(timeout=HANG)
    return process.returncode, said + logged


def wait_for_lines(path: Path, n: int, process: subprocess.Popen[str]) -> None:
    """Wait until a list has so many lines."""
    until = time.monotonic() + HANG
    while time.monotonic() < until and process.poll() is None:
        if path.exists() and path.read_bytes().count(b"\n") >= n:
            return
        time.sleep(0.02)
    raise AssertionError(f"{path.name} has no {n} lines; status {process.poll()}")


def test_the_same_command_resumes_a_watch(tmp_path: Path) -> None:
    """Killed or stopped, it lists no article twice; a stop is the way it ends, with status 130 and a sentence; another
    question, or another crawl, with its folder is refused in one line.
    """
    out = tmp_path / "watched"
    news = out / "news.jsonl"
    with newspaper() as (url, _, clock):
        words = ["watch", url, "--rate", "400/hour", "--out", "watched", "-s", f"_FOCUS_CLOCK={clock}"]
        process = start(tmp_path, *words)
        wait_for_lines(news, 10, process)
        process.kill()
        process.communicate()
        n = len(lines_of(news))
        process = start(tmp_path, *words)
        wait_for_lines(news, n + 5, process)
        process.send_signal(signal.SIGINT)
        said, logged = process.communicate(timeout=HANG)
        assert process.returncode == 130
        assert "the watch resumes" in said
        assert "Interrupted, with" in said + logged
        assert "the same command resumes" in said + logged
        page = (out / "index.html").read_text()
        assert "Interrupted, with" in page
        status, said = run(tmp_path, *words, "--hours", "12", "--dry-run")
        assert (status, said.count("\n")) == (2, 1)
        assert "began with --hours 24, and cannot resume with --hours 12" in said
        status, said = run(tmp_path, "watch", "http://127.0.0.1:1/", "--rate", "1/hour", "--out", "watched")
        assert (status, said.count("\n")) == (2, 1)
        assert f"began with {url}, and cannot resume with http://127.0.0.1:1/" in said
        status, said = run(tmp_path, "files", url, "--out", "watched")
        assert (status, said.count("\n")) == (2, 1)
        assert "--out is 'watched', the folder of focus watch; name another folder" in said
    urls = Counter(line["url"] for line in lines_of(news) if line["state"] == "new")
    assert max(urls.values()) == 1
    assert (out / ".focus" / "job" / "focus").exists()
    assert (out / "feed.xml").exists()
    assert (out / "fresh.csv").exists()
    news.rename(out / "manifest.jsonl")
    status, said = run(tmp_path, "watch", "http://127.0.0.1:1/", "--rate", "1/hour", "--out", "watched")
    assert status == 2
    assert "the folder of focus files; name another folder" in said


def test_foragers_watch_a_site_too(tmp_path: Path) -> None:
    """One setting is enough: they find news, resume after a kill, and show themselves; without it they do not resume."""
    out = tmp_path / "watched"
    news = out / "news.jsonl"
    with newspaper() as (url, site, clock):
        words = ["watch", url, "--rate", "400/hour", "--out", "watched", "-s", f"_FOCUS_CLOCK={clock}"]
        foragers = ["-s", "SCHEDULER=scrapy_focus.ForagerScheduler"]
        process = start(tmp_path, *words, *foragers)
        wait_for_lines(news, 5, process)
        process.kill()
        process.communicate()
        n = len(lines_of(news))
        process = start(tmp_path, *words, *foragers)
        wait_for_lines(news, n + 5, process)
        process.send_signal(signal.SIGINT)
        said, logged = process.communicate(timeout=HANG)
        assert process.returncode == 130, said + logged
        assert "the watch resumes" in said
        status, said = run(tmp_path, *words)
        assert status == 2
        assert "Foragers" in said
        born = {f"{site.origin}{each.path}" for each in site.born(0.0, clock())}
    new = [line["url"] for line in lines_of(news) if line["state"] == "new"]
    assert len(set(new)) == len(new)
    assert set(new) <= born
    page = (out / "index.html").read_text()
    assert "(policy: Foragers)" in page
    assert "Which pages are watched" in page
    assert (out / "fresh.csv").read_text("utf-8-sig").count(f"\n{url}") > 0
    assert "Interrupted, with" in page
    [table] = read_status(out / ".focus" / "job")["tables"]
    assert table["title"].startswith("Foragers")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"root": ""}, "say where to start"),
        ({"root": "example.org"}, "say where to start"),
        ({"rate": "2000"}, "rate is '2000': requests a day or an hour?"),
        ({"rate": "0/day"}, "allows nothing"),
        ({"rate": "many"}, "rate is 'many'; it takes a number of requests"),
        ({"hours": "-3"}, "hours is '-3'; it takes a number of hours above 0"),
        ({"hours": "nan"}, "hours is 'nan'"),
        ({"hours": "1e99"}, "hours is '1e99'"),
        ({"time": "7"}, "time is '7'; it takes a time with its unit, such as -a time=30min"),
        ({"time": "0d"}, "time is '0d'"),
        ({"budget": "-1"}, "budget is '-1'"),
        ({"sitemaps": "maybe"}, "sitemaps is 'maybe'"),
        ({"interval": "1h"}, "unknown argument interval"),
    ],
)
def test_what_cannot_be_meant_is_said(arguments: dict[str, str], said: str) -> None:
    """With a suggestion."""
    with pytest.raises(UsageError) as caught:
        NewsSpider(**{"root": "https://example.org/", "rate": "2000/day", **arguments})
    assert said in str(caught.value)


def test_a_command_line_has_other_words() -> None:
    """The options, as the command has them."""
    with pytest.raises(UsageError) as caught:
        NewsArguments.read({"root": "https://example.org/", "time": "7"}, NewsArguments.option_names())
    assert str(caught.value).startswith("--time is '7'; it takes a time")
    assert "--time 12h" in str(caught.value)


def test_without_a_rate_or_url_the_command_says_what_is_missing(tmp_path: Path) -> None:
    """In one line, with status 2; a dry run prints what would be sent, and creates nothing."""
    for words, said in (
        (["watch"], "what to watch? Give a URL"),
        (["watch", "example.org"], "give a rate of requests"),
    ):
        status, printed = run(tmp_path, *words)
        assert (status, printed.count("\n")) == (2, 1)
        assert said in printed
    status, printed = run(tmp_path, "watch", "example.org", "--rate", "2000/day", "--time", "7d", "--dry-run")
    assert status == 0
    for fact in ("https://example.org", "at most 2,000 requests a day, for 7 days", "articles of the last 24 hours"):
        assert fact in printed
    assert not list(tmp_path.iterdir())


def test_a_site_that_cannot_be_reached_is_named_at_once(tmp_path: Path) -> None:
    """Though the watch waits for it, and ends only when it is stopped."""
    process = start(tmp_path, "watch", "http://127.0.0.1:1/", "--rate", "100/second", "-s", "RETRY_ENABLED=0")
    assert process.stderr is not None
    while "Could not read http://127.0.0.1:1/: the connection was refused" not in (line := process.stderr.readline()):
        assert line
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=HANG)
    assert process.returncode == 130


def test_lines_go_to_a_pipe(tmp_path: Path) -> None:
    """With ``out=-`` the URLs of new articles are printed, and nothing is stored."""
    with newspaper(CALMER) as (url, _, clock):
        status, said = run(
            tmp_path, "watch", url, "--rate", "400/hour", "--out", "-", "--budget", "30", "-s", f"_FOCUS_CLOCK={clock}"
        )
    assert status == 0
    assert said.count(f"\n{url}2026/") >= 3
    assert not list(tmp_path.iterdir())


def test_an_article_changes_with_its_text(tmp_path: Path) -> None:
    """A list of recent posts next to it that changes at each visit makes no other version of it."""
    said = "Bees make honey of nectar that they gather from flowers, and store it in the combs of their hive. " * 3
    begin = time_text(BEGIN)

    def post(n: int, text: str) -> tuple[int, dict[str, str], bytes]:
        recent = "".join(f"<li><a href=/r/{n + i}>recent {n + i}</a>" for i in range(3))
        body = f"<article><h1>Bees</h1><p>{text}</article><aside><ul>{recent}</ul></aside>"
        date = json.dumps({"@context": "https://schema.org", "@type": "Article", "datePublished": begin})
        script = f"<script type=application/ld+json>{date}</script>"
        return 200, {"Content-Type": "text/html"}, f"<html><body>{script}{body}</body></html>".encode()

    with MockSite(pages={"/": '<a href="/same">a</a><a href="/other">b</a>'}) as site:
        site.answers = {"/same": lambda n: post(n, said), "/other": lambda n: post(n, said + f" Version {n}.")}
        settings = {**SETTINGS, "_FOCUS_CLOCK": str(FastClock(50_000.0, BEGIN)), "ROBOTSTXT_OBEY": False}
        crawled = crawl(
            NewsSpider, settings, addon=True, root=site.url("/"), rate="500/day", budget="60", hours="999",
            out=str(tmp_path), sitemaps="no",
        )  # fmt: skip
    assert crawled.errors == {}
    asked = Counter(site.paths)
    assert min(asked["/same"], asked["/other"]) >= 3
    lines = lines_of(tmp_path / "news.jsonl")
    states = {name: [line["state"] for line in lines if line["url"] == site.url(name)] for name in ("/same", "/other")}
    assert states == {"/same": ["new"], "/other": ["new", *["changed"] * (asked["/other"] - 1)]}


def test_files_are_kept_current(tmp_path: Path) -> None:
    """With a rate, files are revisited: versions have lines and are stored, gone files have one, unchanged ones none.

    The page and the table of visits exist.
    """
    csv_type = {"Content-Type": "text/csv"}
    with MockSite(pages={"/": '<a href="/a.csv">a</a><a href="/b.csv">b</a><a href="/c.csv">c</a>'}) as site:
        site.answers = {
            "/a.csv": lambda n: (200, csv_type, b"version,%d" % min(n, 2)),
            "/b.csv": lambda n: (200, csv_type, b"always,the,same"),
            "/c.csv": lambda n: (200, csv_type, b"for,a,while") if n < 3 else (410, {}, b""),
        }
        settings = {**SETTINGS, "_FOCUS_CLOCK": str(FastClock(50_000.0, BEGIN)), "ROBOTSTXT_OBEY": False}
        crawled = crawl(
            DatasetsSpider, settings, addon=True, root=site.url("/"), types="csv", rate="100/day", budget="40",
            out=str(tmp_path), sitemaps="no",
        )  # fmt: skip
    assert crawled.errors == {}
    assert crawled.reason == "focus_budget_requests"
    assert type(crawled.scheduler).__name__ == "FreshScheduler"
    lines = lines_of(tmp_path / "manifest.jsonl")
    states = {name: [line["state"] for line in lines if line["url"] == site.url(f"/{name}.csv")] for name in "abc"}
    assert states == {"a": ["new", "changed"], "b": ["new"], "c": ["new", "gone"]}
    stored = {line["path"] for line in lines if line["state"] != "gone"}
    assert len(stored) == 4
    assert {(tmp_path / path).read_bytes() for path in stored} == {
        b"version,1", b"version,2", b"always,the,same", b"for,a,while",
    }  # fmt: skip
    rows = {row["url"]: row for row in csv.DictReader((tmp_path / "fresh.csv").read_text("utf-8-sig").splitlines())}
    assert int(rows[site.url("/b.csv")]["visits"]) >= 3
    assert int(rows[site.url("/a.csv")]["changes"]) == 1
    assert site.url("/c.csv") not in rows
    page = (tmp_path / "index.html").read_text()
    assert "3 files" in page


def test_files_of_earlier_crawls_are_kept_current(tmp_path: Path) -> None:
    """A crawl at a rate fetches files of an earlier one, and detects changes since then and later ones."""
    csv_type = {"Content-Type": "text/csv"}
    with MockSite(pages={"/": '<a href="/a.csv">a</a><a href="/b.csv">b</a>'}) as site:
        site.answers = {
            "/a.csv": lambda n: (200, csv_type, b"version,%d" % min(n, 3)),
            "/b.csv": lambda n: (200, {**csv_type, "ETag": '"b"'}, b"always,the,same"),
        }
        words: dict[str, Any] = {"root": site.url("/"), "types": "csv", "out": str(tmp_path), "sitemaps": "no"}
        crawl(DatasetsSpider, {**SETTINGS, "ROBOTSTXT_OBEY": False}, addon=True, **words)
        settings = {**SETTINGS, "_FOCUS_CLOCK": str(FastClock(50_000.0, BEGIN)), "ROBOTSTXT_OBEY": False}
        crawled = crawl(DatasetsSpider, settings, addon=True, rate="100/day", budget="30", **words)
    assert crawled.errors == {}
    lines = lines_of(tmp_path / "manifest.jsonl")
    seen = [(line["crawl"], line["state"]) for line in lines if line["url"] == site.url("/a.csv")]
    assert seen == [(1, "new"), (2, "changed"), (2, "changed")]
    assert [line["state"] for line in lines if line["url"] == site.url("/b.csv")] == ["new", "same"]


def test_what_came_is_written_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, not for each new entry; later the longer it runs, and the longer writing takes."""
    clock, planned, written = [100.0], [], []

    def later(seconds: float, call: Any) -> Any:
        planned.append((seconds, call))
        return SimpleNamespace(cancel=planned.clear)

    monkeypatch.setattr(f"{Writings.__module__}.monotonic", lambda: clock[0])
    monkeypatch.setattr(f"{Writings.__module__}.call_later", later)

    def write(*args: Any) -> None:
        written.append((clock[0], *args))
        clock[0] += 1.0 if len(written) == 3 else 30.0 if len(written) == 4 else 0.0

    writings = Writings(write)
    for _ in range(3):
        writings.came()
    assert [seconds for seconds, _ in planned] == [15.0]
    clock[0] += 15.0
    planned.pop()[1]()
    assert written == [(115.0,)]
    writings.came()
    assert planned[0][0] == 15.0
    clock[0] += 2000.0
    planned.pop()[1]()
    writings.came()
    assert planned[0][0] == pytest.approx(201.5), "a tenth of the time since the beginning"
    clock[0] += 10_000.0
    planned.pop()[1]()
    writings.came()
    assert planned[0][0] == pytest.approx(300.0), "five minutes at most"
    planned.pop()[1]()
    writings.came()
    assert planned[0][0] == pytest.approx(600.0), "but for what takes long"
    writings.stop()
    assert not planned
    writings.now("at the end")
    assert written[-1][1:] == ("at the end",)


def test_files_at_a_rate_take_no_new_only() -> None:
    """Who wants files current asks for them again."""
    with pytest.raises(UsageError, match="new_only and rate are given"):
        DatasetsSpider(root="https://example.org/", new_only="1", rate="100/day", out="-")
