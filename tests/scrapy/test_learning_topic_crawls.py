"""Crawls whose topic learns from their pages: their start, their state after a kill, their messages."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from forked import Forked
from handmadehosts import Handmade, html

from manyhosts.server import WebServer, write_examples
from manyhosts.web import MadeUpWeb
from scrapy_focus.frontiers.sqlite.database import read_notes
from scrapy_focus.jobs.doctor.check import check_job
from scrapy_focus.jobs.doctor.status import read_status
from scrapy_focus.jobs.pickles import Classes
from tests.made import HANG

if TYPE_CHECKING:
    from scrapy_focus.lab.sites.portal.portal import Page
    from scrapy_focus.lab.sites.server import SiteServer

ROOT = Path(__file__).parents[2]
SETTINGS = {
    "DOWNLOAD_DELAY": 0, "TELNETCONSOLE_ENABLED": 0, "REMOTE_CONTROL_ENABLED": 0, "FOCUS_PROGRESS": "off", "FOCUS_SEED": 0,
    "FOCUS_MAX_INFLIGHT": 1,
}  # fmt: skip
SPIDER = """
from scrapy_focus.finders.topic.spider import TopicSpider
from tests.growing import Growing

class GrowingSpider(TopicSpider):
    def made_of(self, given):
        return Growing("bees", most={most})
"""
PLAIN = """
import scrapy

class PlainSpider(scrapy.Spider):
    name = "plain"
    start_urls = ["http://h0.test/"]

    def parse(self, response):
        yield from response.follow_all(css="a")
"""


def begin(server: SiteServer, log: Path, *command: object, **settings: object) -> Forked:
    """Start a Scrapy command in a separate process, with all hosts on one server."""
    words = [sys.executable, "-m", "scrapy", *map(str, command)]
    for name, value in (SETTINGS | settings).items():
        words += ["-s", f"{name}={value}"]
    env = {**os.environ, "http_proxy": server.url, "no_proxy": "", "PYTHONPATH": os.pathsep.join(sys.path)}
    with log.open("a") as file:
        return Forked(words, cwd=ROOT / "example_project", env=env, stdout=file, stderr=file, text=True)


def given(**arguments: object) -> list[str]:
    return [word for name, value in arguments.items() for word in ("-a", f"{name}={value}")]


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a list."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def chain(n: int) -> dict[str, Page]:
    """Pages that each link to the next and have a word; that of the first is also on the second, and so on."""
    return {
        f"http://h{i}.test/": html(
            f"http://h{i + 1}.test/ next", text=f"{name(i)} {name(i + 1)}", title="bees" * (not i)
        )
        for i in range(n)
    }


def name(i: int) -> str:
    return "word" + "".join("abcdefghij"[int(digit)] for digit in str(i))


def test_a_killed_crawl_knows_what_its_topic_learned(tmp_path: Path) -> None:
    """After kill -9 the topic is as at the last checkpoint, and the job is intact: no page is repeated or missing."""
    (tmp_path / "spider.py").write_text(SPIDER.format(most=1000))
    command = (
        "runspider",
        tmp_path / "spider.py",
        *given(seeds="http://h0.test/", keywords="bees", out=tmp_path / "out.jsonl"),
    )
    job = {"JOBDIR": tmp_path / "job", "FOCUS_CHECKPOINT_EVERY": 5}
    job |= {"FOCUS_POLICY": "scrapy_focus.policies.bestfirst.BestFirst"}  # small, so that checkpoints are as often
    with Handmade(chain(60)) as server:
        for enough in (12, 35):
            process = begin(server, tmp_path / "log", *command, **job)
            try:
                while process.poll() is None and len(lines(tmp_path / "out.jsonl")) < enough:
                    time.sleep(0.002)
            finally:
                process.send_signal(signal.SIGKILL)
                process.wait(HANG)
            assert check_job(tmp_path / "job", say=str).is_well
        assert begin(server, tmp_path / "log", *command, **job).wait(HANG) == 0, (tmp_path / "log").read_text()
    pages = lines(tmp_path / "out.jsonl")
    assert [page["url"] for page in pages] == [f"http://h{i}.test/" for i in range(60)]
    state = Classes().loads(read_notes(tmp_path / "job" / "focus" / "frontier.sqlite")["goal"])
    state = state["topic"]
    _, seen, relevant = state["counts"].tolist()
    assert 60 - 2 * 7 <= seen <= 62, "a kill loses what came since a checkpoint, which is made at each fifth page"
    assert relevant > 5
    assert name(1) in state["words"]


def test_a_topic_that_drifts_is_seen(tmp_path: Path) -> None:
    """The log warns once, the stats count, the page and focus-status show it, with the share of the topic."""
    (tmp_path / "spider.py").write_text(SPIDER.format(most=10))
    with Handmade(chain(40)) as server:
        arguments = given(seeds="http://h0.test/", keywords="bees", folder=tmp_path / "found")
        process = begin(
            server, tmp_path / "log", "runspider", tmp_path / "spider.py", *arguments, JOBDIR=tmp_path / "job"
        )
        assert process.wait(HANG) == 0
    log = (tmp_path / "log").read_text()
    assert len(re.findall(r"WARNING: the topic drifts: too many words", log)) == 1
    [counted] = re.findall(r"'focus/topic/drift': (\d+)", log)
    assert 20 < int(counted) < 40
    page = (tmp_path / "found" / "index.html").read_text()
    assert '<div class="warning" role="note"><p>the topic drifts: too many words</p></div>' in page
    [share] = re.findall(r"<li>About ([\d.]+) % of the pages seen are on the topic, by its estimate\.</li>", page)
    found = read_status(tmp_path / "job")
    assert found["alarm"] == "the topic drifts: too many words"
    assert f"{share} %" in found["said"][0]


def test_a_topic_in_settings_makes_a_topic_crawl(tmp_path: Path) -> None:
    """One setting makes any spider look for a topic: here the links with its words come first."""
    (tmp_path / "spider.py").write_text(PLAIN)
    pages = {"http://h0.test/": html(*(f"http://x{i}.test/ steel" for i in range(9)), "http://y.test/ honey"),
             "http://y.test/": html(text="honey of the bees, honey and bees"),
             **{f"http://x{i}.test/": html(text="steel of the mill") for i in range(9)}}  # fmt: skip
    with Handmade(pages) as server:
        topic = json.dumps({"keywords": ["honey", "bees"]})
        command = ("runspider", tmp_path / "spider.py")
        process = begin(server, tmp_path / "log", *command, FOCUS_TOPIC=topic, SCHEDULER="scrapy_focus.FocusScheduler")
        assert process.wait(HANG) == 0
    log = (tmp_path / "log").read_text()
    assert server.asked_for[:2] == ["http://h0.test/", "http://y.test/"], log
    assert len(server.asked_for) == 11
    assert "'focus/reward': 1.0" in log


class Herbs(NamedTuple):
    """A made-up web, and examples of one of its topics."""

    web: MadeUpWeb
    folder: Path


@pytest.fixture(scope="module")
def herbs(tmp_path_factory: pytest.TempPathFactory) -> Herbs:
    web, folder = MadeUpWeb(seed=4, hosts=3_000), tmp_path_factory.mktemp("herbs")
    write_examples(web, "beekeeping", folder, seeds=6, examples=10)
    return Herbs(web, folder)


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["positives", "keywords", "positives and keywords"])
def test_positives_or_keywords_alone_are_enough(herbs: Herbs, tmp_path: Path, kind: str) -> None:
    """Pages on the topic and no others, keywords and no pages, or both begin a crawl; a model with pages learns from it.

    How much each finds is measured in ``benchmarks/topic_live.py``.
    """
    arguments: dict[str, object] = {"seeds": herbs.folder / "seeds.txt", "budget": 100}
    if "positives" in kind:
        shutil.copytree(herbs.folder / "positive", tmp_path / "examples" / "positive")
        arguments["examples"] = tmp_path / "examples"
    if "keywords" in kind:
        arguments["keywords"] = herbs.folder / "keywords.txt"
    with WebServer(herbs.web) as server:
        job = {"JOBDIR": tmp_path / "job"}
        process = begin(
            server, tmp_path / "log", "crawl", "topic", *given(**arguments, out=tmp_path / "out.jsonl"), **job
        )
        assert process.wait(HANG) == 0, (tmp_path / "log").read_text()
        assert server.requests == 100
    pages = lines(tmp_path / "out.jsonl")
    assert any(herbs.web.is_relevant(page["url"], "beekeeping") for page in pages)
    assert {page["relevance"] >= 0.5 for page in pages} == {True, False}
    found = read_status(tmp_path / "job")
    assert found["rewards"] == pytest.approx(
        sum(page["relevance"] >= 0.5 for page in pages), abs=4
    )  # it learns between
    said = r"about \d.* % of the pages seen are on the topic, by its estimate"
    assert all(re.fullmatch(said, each) for each in found["said"])
    assert len(found["said"]) == ("positives" in kind), "keywords alone learn nothing"
    assert check_job(tmp_path / "job", say=str).is_well
    assert "Traceback" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            ["crawl", "topic", "-a", "seeds=http://a.test/", "-a", "examples=nowhere"],
            "nowhere/positive is not a folder",
        ),
        (["crawl", "topic", "-a", "seeds=http://a.test/", "-a", "examples=HALF"], "positive has no example pages"),
        (
            ["crawl", "topic", "-a", "seeds=http://a.test/", "-a", "keywords=bees", "-a", "frequency=3"],
            "frequency is '3'",
        ),
        (["crawl", "topic", "-a", "seeds=http://a.test/", "-a", "keywords=!"], "keywords is"),
        (["focus-topic", "a.test", "--examples", "nowhere"], "nowhere/positive is not a folder"),
        (["focus-topic", "a.test", "--examples", "HALF"], "positive has no example pages"),
        (["focus-topic", "a.test", "--keywords", "bees", "--frequency", "3"], "--frequency is '3'"),
        (["focus-topic", "a.test", "--keywords", "!"], "keywords is"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_errors_are_one_line(tmp_path: Path, command: list[str], said: str) -> None:
    """An unusable value is one line, without a traceback, and the exit status is 2."""
    for kind in ("positive", "negative"):
        (tmp_path / "half" / kind).mkdir(parents=True)
    command = [word.replace("HALF", str(tmp_path / "half")) for word in command]
    command += ["--out", str(tmp_path / "out")] if command[0] == "focus-topic" else []
    with Handmade({}) as server:
        process = begin(server, tmp_path / "log", *command, **({"LOG_LEVEL": "INFO"} if command[0] == "crawl" else {}))
        assert process.wait(HANG) == 2
        assert not server.asked_for
    log = (tmp_path / "log").read_text()
    assert "Traceback" not in log
    assert "never retrieved" not in log
    assert [line for line in log.splitlines() if said in line][1:] == []
    assert said in log
