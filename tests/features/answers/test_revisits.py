"""Kept answers where pages are fetched again."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import test_visits
from crawls import Follower, crawl
from forked import Forked
from test_coming_back import EVERY, _slow_heartbeat, family, in_turn  # noqa: F401
from versionsite import VersionSite

from scrapy_focus.features.answers.file import KeptAnswers
from tests.made import HANG

if TYPE_CHECKING:
    from mocksite import MockSite


def test_a_304_that_was_kept_answers_no_other_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A visit may have conditions only before or only after a kill; the page is fetched then."""
    monkeypatch.setattr(KeptAnswers, "take", lambda self, key, question: NO_PAGE)
    with VersionSite(lambda path, n: 0) as site:
        settings = test_visits.again(
            4, JOBDIR=str(tmp_path), FOCUS_KILL_SAFE_FETCH=True, FOCUS_POLICY_PARAMS={"times": 1}
        )
        result = crawl(test_visits.Reader, settings, seeds=[site.url("/")])
    first, second = result.policy.of("/")
    assert (first.status, first.changed, first.error) == (200, None, "")
    assert (second.status, second.changed, second.error) == (304, False, "")
    assert len(site.asks("/")) == 1
    assert "focus/visit/doubted" not in result.stats


NO_PAGE = ("http://127.0.0.1/", 304, {}, b"", [], None, None)


CRAWL = """
import json, sys
from crawls import BASE, Follower
from scrapy.crawler import AsyncCrawlerProcess
from scrapy_focus import FocusScheduler
from tests.made import EachAgain
url, settings = sys.argv[1], json.loads(sys.argv[2])
ours = {"SCHEDULER": FocusScheduler, "FOCUS_POLICY": EachAgain, "CONCURRENT_REQUESTS": 1, "LOG_LEVEL": "WARNING"}
process = AsyncCrawlerProcess({**BASE, **ours, **settings})
process.crawl(Follower, seeds=[url])
process.start()
"""


@pytest.mark.slow
def test_kills_change_no_time_and_no_order(site: MockSite, tmp_path: Path) -> None:
    """Killed repeatedly, a crawl fetches each page as often as planned; only those in flight may be early."""
    family(site)
    every, budget = 2.0, 15
    settings = {
        "JOBDIR": str(tmp_path), "FOCUS_BUDGET_REQUESTS": budget, "FOCUS_POLICY_PARAMS": {"every": every},
        "FOCUS_KILL_SAFE_FETCH": True,
    }  # fmt: skip
    tests = Path(__file__).parents[2]
    paths = os.pathsep.join([str(tests.parent), str(tests / "scrapy"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", CRAWL, site.url("/"), json.dumps(settings)]
    kills = (2, 5, 8)
    for kill_at in (*kills, None):
        with Forked(command, env=os.environ | {"PYTHONPATH": paths}) as process:
            until = time.monotonic() + HANG
            while process.poll() is None and time.monotonic() < until:
                if kill_at is not None and len(site.log) >= kill_at:
                    time.sleep(0.3)  # its outcome, perhaps
                    process.kill()
                time.sleep(0.02)
            assert process.poll() is not None
    assert budget - len(kills) <= len(site.paths) <= budget
    assert max(Counter(site.paths).values()) - min(Counter(site.paths).values()) <= 1 + len(kills)
    too_early = 0
    for path in ("/", "/1", "/2"):
        visits = [seen.at for seen in site.log if seen.path == path]
        too_early += sum(two - one < every for one, two in pairwise(visits))
    assert too_early <= len(kills)


def test_an_answer_is_read_once(site: MockSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A response from before a kill is not used for a later visit, even if it was not forgotten yet."""
    family(site)
    monkeypatch.setattr(KeptAnswers, "forget", lambda self, key: None)
    settings = in_turn(site, 6, JOBDIR=str(tmp_path), FOCUS_KILL_SAFE_FETCH=True, CLOSESPIDER_PAGECOUNT=3)
    settings["FOCUS_POLICY_PARAMS"] = {"every": 4 * EVERY}
    crawl(Follower, settings, seeds=[site.url("/")])
    assert Counter(site.paths) == {"/": 1, "/1": 1, "/2": 1}
    monkeypatch.undo()
    second = crawl(Follower, settings, seeds=[site.url("/")])
    assert Counter(site.paths) == {"/": 2, "/1": 2, "/2": 2}
    assert "focus/answer/recalled" not in second.stats
