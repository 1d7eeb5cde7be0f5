"""With ``FOCUS_KILL_SAFE_FETCH``, what a site had answered before a kill is not asked for again."""

from __future__ import annotations

import os
import random
import re
import signal
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Follower, crawl
from forked import run as run_forked
from mocksite import MockSite, tree_page, tree_paths
from soaked import SUBJECTS, Cradle, Soak, SoakSite

from scrapy_focus.engine.ending import STATUS
from tests.made import HANG

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no SIGKILL here")

SPIDER = '''
import os, pathlib, signal
import scrapy

class Dying(scrapy.Spider):
    """Kills itself in the callback of each page that ``at`` names, the first time; nothing else is in flight then."""

    name = "dying"
    handle_httpstatus_list = [404]
    custom_settings = {
        "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False, "FOCUS_PROGRESS": "off", "FOCUS_MAX_INFLIGHT": 1
    }

    async def start(self):
        yield scrapy.Request(self.root, self.parse)

    async def parse(self, response):
        for path in self.at.split(","):
            died = pathlib.Path(path.replace("/", "_"))
            if response.url.endswith(path) and not died.exists():
                died.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        yield {"url": response.url, "type": type(response).__name__, "text": response.text, "server": str(response.ip_address),
               "header": response.headers.get("content-type").decode(), "times": response.meta.get("redirect_times", 0)}
        if isinstance(response, scrapy.http.HtmlResponse):
            for href in response.css("a::attr(href)").getall():
                yield response.follow(href, self.parse)
'''
PAGES = 20


def run(folder: Path, site: MockSite, at: str, **settings: Any) -> tuple[int, str]:
    """Run the spider once; return its exit status and what it logged."""
    (folder / "dying.py").write_text(SPIDER)
    given = {"JOBDIR": "job", "FEEDS": '{"items.jsonl": {"format": "jsonlines"}}', "FOCUS_POLICY": BREADTH_FIRST}
    command = [sys.executable, "-m", "scrapy", "runspider", "dying.py", "-a", f"at={at}"]
    command += ["-a", f"root={site.url(f'/page/0/{PAGES}')}"]
    for name, value in {**given, **settings}.items():
        command += ["-s", f"{name}={value}"]
    done = run_forked(command, cwd=folder, capture_output=True, text=True, check=False, timeout=HANG)
    return done.returncode, done.stderr


def stat(log: str, name: str) -> int:
    found = re.search(rf"'{name}': ([\d.]+)", log)
    return int(float(found[1])) if found else 0


@pytest.mark.parametrize("addon", [True], ids=["addon"])
def test_a_page_is_asked_for_once_though_its_callback_was_killed(site: MockSite, tmp_path: Path, addon: bool) -> None:
    """So is each step of a redirect; the page is unchanged and counted once, with the items of any other run."""
    site.pages[f"/page/5/{PAGES}"] = tree_page(5, PAGES) + '<a href="/redirect?to=/redirect?to=/ok?end">x</a>'
    with_it = {"ADDONS": '{"scrapy_focus.Addon": 500}'} if addon else {"SCHEDULER": "scrapy_focus.FocusScheduler"}
    with_it["FOCUS_KILL_SAFE_FETCH"] = "1"
    at = f"/page/3/{PAGES},/ok?end"
    for status in (-signal.SIGKILL, -signal.SIGKILL, 0):
        found, log = run(tmp_path, site, at, **with_it)
        assert found == status, log[-3000:]
    assert "Traceback" not in log
    ends = ["/redirect?to=/redirect?to=/ok?end", "/redirect?to=/ok?end", "/ok?end"]
    assert Counter(site.paths) == Counter([*tree_paths(PAGES), *ends])
    assert stat(log, "focus/requests") == len(site.log) == PAGES + 3
    assert stat(log, "focus/answer/recalled") == 1 + 3
    assert stat(log, "focus/reward") == PAGES + 1
    assert not (tmp_path / "job/focus/answers").exists()

    other = tmp_path / "other"
    other.mkdir()
    assert run(other, site, "/nowhere", **with_it)[0] == 0
    lines = {folder: (folder / "items.jsonl").read_text().splitlines() for folder in (tmp_path, other)}
    assert set(lines[tmp_path]) == set(lines[other])


def test_without_it_such_a_page_is_asked_for_again(site: MockSite, tmp_path: Path) -> None:
    """And nothing is written; responses stored by an earlier run with the setting are dropped."""
    at = f"/page/3/{PAGES}"
    line = {"SCHEDULER": "scrapy_focus.FocusScheduler"}
    assert run(tmp_path, site, at, FOCUS_KILL_SAFE_FETCH="1", **line)[0] == -signal.SIGKILL
    assert (tmp_path / "job/focus/answers").stat().st_size
    status, log = run(tmp_path, site, at, **line)
    assert status == 0
    assert not (tmp_path / "job/focus/answers").exists()
    assert Counter(site.paths) == Counter([*tree_paths(PAGES), at])
    assert stat(log, "focus/answer/recalled") == 0


def test_a_budget_is_not_used_again(site: MockSite, tmp_path: Path) -> None:
    """A budget that ended with answers on the disk: they are taken when there is more of it."""
    at = f"/page/3/{PAGES}"
    settings = {"SCHEDULER": "scrapy_focus.FocusScheduler", "FOCUS_KILL_SAFE_FETCH": "1"}
    assert run(tmp_path, site, at, **settings)[0] == -signal.SIGKILL
    sent = len(site.log)
    status, log = run(tmp_path, site, at, FOCUS_BUDGET_REQUESTS=sent, **settings)
    assert (status, len(site.log)) == (STATUS["budget"], sent)
    status, log = run(tmp_path, site, at, FOCUS_BUDGET_REQUESTS=sent + 3, **settings)
    assert (status, len(site.log)) == (STATUS["budget"], sent + 3)
    assert stat(log, "focus/answer/recalled") == 1
    status, log = run(tmp_path, site, at, **settings)
    assert Counter(site.paths) == Counter(tree_paths(PAGES))


def test_it_does_nothing_without_a_job(site: MockSite) -> None:
    """There is nowhere to keep anything."""
    done = crawl(Follower, {"FOCUS_KILL_SAFE_FETCH": True}, seeds=[site.url("/page/0/9")])
    assert done.stats["focus/requests"] == len(site.log) == 9
    assert done.errors == {}


@pytest.mark.slow
def test_killed_at_random(tmp_path: Path) -> None:
    """However a crawl is killed, only pages without a response are requested again; nothing else differs."""
    with Cradle() as cradle, SoakSite(n=200, seed=6, latency=0.004) as site:
        soak = Soak(
            SUBJECTS[2], site, tmp_path / "0", random.Random(5), budget=100, settings={"FOCUS_KILL_SAFE_FETCH": True}
        )
        done = soak.run(cradle, ["after_requests", "at_its_start", "told_to_stop", "after_requests", "in_a_checkpoint"])
    assert not soak.problems
    assert done.kills.total() >= 2
    assert done.arrived == 0
