"""Whole crawls for pages about something: what comes first, what is listed, and what a killed crawl knows."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from crawls import BREADTH_FIRST, Crawled, crawl
from forked import Forked
from mocksite import MockSite

from scrapy_focus.__main__ import main
from scrapy_focus.engine.ending import ending_of
from scrapy_focus.finders.structured.spider import StructuredSpider
from scrapy_focus.finders.topic.spider import TopicSpider
from scrapy_focus.frontiers.sqlite.database import read_notes
from scrapy_focus.jobs.doctor.check import check_job
from scrapy_focus.jobs.doctor.status import read_status
from scrapy_focus.jobs.pickles import Classes
from scrapy_focus.policies.treeq.policy import TreeQ
from scrapy_focus.topic.about import AboutTopic
from tests.finders.aboutsite import ABOUT, is_on, site_pages
from tests.made import HANG
from tests.pages import Reader
from tests.topicwords import OTHERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IN_TURN = {"FOCUS_MAX_INFLIGHT": 1, "FOCUS_SEED": 0}
FAST = ("-s", "DOWNLOAD_DELAY=0", "-s", "FOCUS_PROGRESS=off", "-s", "FOCUS_MAX_INFLIGHT=1", "-s", "FOCUS_SEED=0")
UNUSABLE = {
    "": "--about is empty; it takes a few words",
    " \t": "--about is empty; it takes a few words",
    "አዲስ አበባ": "no word of 'አዲስ አበባ' is known to the embedding",
    "é" * 1_001: "about has 1,001 characters; it takes a sentence of at most 1,000",
}


@pytest.fixture(scope="module")
def subjects() -> Iterator[MockSite]:
    with MockSite(pages=site_pages()) as site:
        yield site


def find(site: MockSite, out: Path, settings: dict[str, Any] | None = None, **arguments: str) -> Crawled:
    """Look for pages in this process, without any error."""
    site.log.clear()
    given = {"seeds": site.url("/"), "folder": str(out)} | arguments
    done = crawl(TopicSpider, {**IN_TURN, **(settings or {})}, addon=True, **given)
    assert done.errors == {}
    warned = warnings_of(done)
    assert all("does not read it: links whose words fit the topic get no priority" in each for each in warned)
    assert len(warned) == ((settings or {}).get("FOCUS_POLICY") == BREADTH_FIRST)
    return done


def warnings_of(done: Crawled) -> list[str]:
    """Return the warnings and errors of this package and the spider in the log."""
    return [
        each.getMessage()
        for each in done.records
        if each.levelname in ("WARNING", "ERROR") and not each.name.startswith("scrapy.")
    ]


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a list."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def path_of(line: dict[str, Any]) -> str:
    return urlsplit(line["url"]).path


def middle_of(paths: list[str]) -> float:
    """Return the place of the page in the middle of those on the subject, where the crawl fetched all pages."""
    places = [place for place, path in enumerate(paths) if is_on(path)]
    assert len(paths) == 73
    assert len(places) == 24
    return places[12]


def test_pages_about_the_sentence_come_first(subjects: MockSite, tmp_path: Path) -> None:
    """And only they are called relevant, in the list, the table, the rewards, and the page."""
    find(subjects, tmp_path / "broad", {"FOCUS_POLICY": BREADTH_FIRST}, about=ABOUT)
    broad = middle_of(subjects.paths)
    done = find(subjects, tmp_path / "found", about=ABOUT)
    assert middle_of(subjects.paths) <= broad / 2
    pages = {path_of(line): line for line in lines(tmp_path / "found" / "pages.jsonl")}
    del pages["/"]  # it has words of all subjects
    assert {path for path, page in pages.items() if page["relevance"] >= 0.5} == {path for path in pages if is_on(path)}
    assert len(pages) == 72
    assert done.stats["focus/reward"] in (24, 25)
    n_listed = sum(page["relevance"] >= 0.5 for page in lines(tmp_path / "found" / "pages.jsonl"))
    assert f"{n_listed} pages" in ending_of(done.crawler).sentence
    with (tmp_path / "found" / "pages.csv").open(encoding="utf-8-sig", newline="") as file:
        listed = {row["url"]: float(row["relevance"]) for row in csv.DictReader(file)}
    assert {path: listed[page["url"]] for path, page in pages.items()} == {
        path: page["relevance"] for path, page in pages.items()
    }
    text = Reader((tmp_path / "found" / "index.html").read_text()).text
    assert f'pages about "{ABOUT}"' in text
    assert done.logged(f"pages about '{ABOUT}'")


@pytest.mark.parametrize("policy", [TreeQ, "scrapy_focus.policies.bestfirst.BestFirst"])
def test_a_page_says_how_its_link_reads(subjects: MockSite, tmp_path: Path, policy: Any) -> None:
    """With the sentence and a number, which is high for the links of pages on the subject, and low for others."""
    find(subjects, tmp_path, {"FOCUS_POLICY": policy}, about=ABOUT)
    start = f'the link reads like "{ABOUT}" ('
    reads = {}
    for line in lines(tmp_path / "pages.jsonl"):
        assert start in line["why"]
        reads[path_of(line)] = float(line["why"].partition(start)[2].partition(")")[0])
    assert min(n for path, n in reads.items() if is_on(path)) > 0.6
    assert max(n for path, n in reads.items() if not is_on(path)) < 0.4
    rows = (tmp_path / "pages.csv").read_text(encoding="utf-8-sig")
    assert start.replace('"', '""') in rows


def test_keywords_and_examples_add_to_the_sentence(subjects: MockSite, tmp_path: Path) -> None:
    """Pages with the keywords are relevant, too; pages like the examples are more relevant than those like the others."""
    find(subjects, tmp_path / "words", about=ABOUT, keywords="court,lawyer,contract")
    on = {path_of(line) for line in lines(tmp_path / "words" / "pages.jsonl") if line["relevance"] >= 0.5}
    assert {path for path in on - {"/"} if not is_on(path)} == {
        path for path in site_pages() if path != "/" and int(path.split("/")[1]) % 3 == 1
    }
    assert len(on - {"/"}) == 48
    for name, words in (("positive", OTHERS["food"]), ("negative", OTHERS["law"])):
        (tmp_path / "examples" / name).mkdir(parents=True)
        for i in range(10):
            (tmp_path / "examples" / name / f"{i}.txt").write_text(" ".join(words[i % 3 :] + words[: i % 3]) * 9)
    done = find(subjects, tmp_path / "like", about=ABOUT, examples=str(tmp_path / "examples"))
    scores = {path_of(line): line["relevance"] for line in lines(tmp_path / "like" / "pages.jsonl")}
    del scores["/"]
    law, food = ([score for path, score in scores.items() if int(path.split("/")[1]) % 3 == n] for n in (1, 2))
    assert min(score for path, score in scores.items() if is_on(path)) >= 0.5 > max(food)
    assert min(food) > 3 * max(law)
    assert f'pages about "{ABOUT}", given examples ' in Reader((tmp_path / "like" / "index.html").read_text()).text
    assert isinstance(done.spider.relevance, AboutTopic)


def test_a_dry_run_says_what_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the sentence; one that cannot be used is refused in one line."""
    monkeypatch.chdir(tmp_path)
    for command, said in (
        (["topic", "a.test", "--about", ABOUT, "--keywords", "snow"], f'pages about "{ABOUT}", given the words snow'),
        (["structured", "a.test", "--types", "Event", "--about", ABOUT], f"pages with Event in json-ld or microdata about '{ABOUT}'"),
        (["files", "a.test", "--types", "pdf", "--about", ABOUT], f'files of type pdf about "{ABOUT}"'),
    ):  # fmt: skip
        with pytest.raises(SystemExit) as ended:
            main([*command, "--dry-run"])
        assert not ended.value.code
        assert f"Looks for       {said}" in capsys.readouterr().out
        for about, error in UNUSABLE.items():
            words = [about if word == ABOUT else word for word in command]
            for dry in (["--dry-run"], []):
                with pytest.raises(SystemExit) as ended:
                    main([*words, *dry])
                shown = capsys.readouterr()
                assert (ended.value.code, shown.out, shown.err.count("\n")) == (2, "", 1), shown
                assert error in shown.err
    assert not [*tmp_path.iterdir()]


def command_for(site: MockSite, out: Path, *words: str) -> Forked:
    """Start ``focus topic`` in a separate process."""
    command = [sys.executable, "-m", "scrapy_focus", "topic", site.url("/"), "--out", str(out), *FAST, *words]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(out.parent), *sys.path])}
    pipe = subprocess.PIPE
    return Forked(command, cwd=out.parent, stdout=pipe, stderr=pipe, text=True, env=env)


def run(site: MockSite, out: Path, *words: str, expect: int = 0) -> tuple[str, str]:
    process = command_for(site, out, *words)
    said, logged = process.communicate(timeout=HANG)
    assert process.returncode == expect, said + logged
    return said, logged


def test_a_killed_crawl_knows_what_its_sentence_learned(tmp_path: Path) -> None:
    """It resumes with the same sentence and embedding only, and ends as if it had not been killed."""
    out = tmp_path / "found"
    with MockSite(pages=site_pages()) as site:
        site.hold(60)
        process = command_for(site, out, "--about", ABOUT, "-s", "FOCUS_CHECKPOINT_EVERY=5")
        try:
            assert site.wait_until_it_holds(HANG)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(HANG)
        site.go_on()
        stored = learned(out)
        assert stored["refits"] >= 1
        assert 25 <= stored["_seen"] < 60
        assert stored["frequency"] > 0.2
        [line] = read_status(out / ".focus" / "job")["said"]
        assert line == f"about {100 * stored['frequency']:.0f} % of the pages seen are on the topic, by its estimate"
        asked = len(site.log)
        _, said = run(site, out, "--about", "rain", expect=2)
        assert f"began with --about {ABOUT}, and cannot resume with --about rain" in said
        own = "tests.finders.aboutsite.OneWord"
        _, said = run(site, out, "--about", ABOUT, "--embedding", own, expect=2)
        assert f"began with no --embedding, and cannot resume with --embedding {own}" in said
        assert len(site.log) == asked
        said, _ = run(site, out, "--about", ABOUT)
        assert "the last crawl resumes" in said.splitlines()[0]
        assert f'pages about "{ABOUT}"' in said.splitlines()[0]
    pages = [path_of(line) for line in lines(out / "pages.jsonl")]
    assert sorted(pages) == sorted(site_pages())
    assert check_job(out / ".focus" / "job", say=str).is_well
    assert learned(out)["_seen"] > stored["_seen"]  # a kill loses only what came since the last checkpoint
    assert learned(out)["frequency"] == pytest.approx(1 / 3, abs=0.15)


def learned(out: Path) -> dict[str, Any]:
    """Return the state of the topic in the job of a crawl."""
    state: dict[str, Any] = Classes().loads(read_notes(out / ".focus" / "job" / "focus" / "frontier.sqlite")["goal"])
    return dict(state["topic"])


def test_structured_data_about_a_sentence(tmp_path: Path) -> None:
    """Entities of all pages with the type are listed with their relevance; only pages about it are finds."""
    with MockSite(pages=site_pages(thing="Event")) as site:
        done = crawl(
            StructuredSpider, IN_TURN, addon=True, seeds=site.url("/"), types="Event", about=ABOUT, folder=str(tmp_path)
        )
        assert done.errors == {}
        assert not warnings_of(done)
        assert middle_of(site.paths) < 20
    entities = {path_of(line): line["relevance"] for line in lines(tmp_path / "entities.jsonl")}
    with_events = {path for path in site_pages() if path != "/" and not int(path.split("/")[1]) % 2}
    assert entities.keys() == with_events
    finds = {path for path, relevance in entities.items() if relevance >= 0.5}
    assert finds == {path for path in with_events if is_on(path)}
    assert len(finds) == 12
    assert done.stats["focus/reward"] == 12
    text = Reader((tmp_path / "index.html").read_text()).text
    assert f"pages with Event in json-ld or microdata about '{ABOUT}'" in text
