"""Live crawls at a rate: as many requests as set, evenly, also through kills; and each as soon as allowed."""

from __future__ import annotations

import math
import os
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Follower, SomeHeadsFirst, crawl
from jumping import DAY, Daily
from killer import Nursery
from mocksite import MockSite, tree_paths
from scrapy.core.engine import ExecutionEngine

from scrapy_focus import Budget, ConfigError
from scrapy_focus.commands.status import show
from scrapy_focus.core.clock import FastClock
from scrapy_focus.engine.progress import progress
from scrapy_focus.jobs.doctor.status import read_status
from tests.made import HANG, EachAgain

if TYPE_CHECKING:
    from pathlib import Path


ADDON = pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
LATE = 50.0  # seconds: less than a beat of the engine, whatever the machine does meanwhile


@pytest.fixture(autouse=True)
def _slow_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but us wakes the engine."""
    monkeypatch.setattr(ExecutionEngine, "_SLOT_HEARTBEAT_INTERVAL", 60.0)


def times(site: MockSite) -> list[float]:
    """Return the times of all requests in seconds of the crawl, robots.txt included."""
    return sorted(float(seen.headers["x-time"]) for seen in site.log)


def check_even(at: list[float], interval: float, *, extra: int) -> None:
    """Fail if at any time more requests had gone out since the first than the rate allows, and ``extra`` ones."""
    assert all((i - extra) * interval <= later - at[0] + 1e-3 for i, later in enumerate(at))


@pytest.mark.slow
def test_a_day_in_the_log_of_the_server(site: MockSite) -> None:
    """As many lines as requests a day, robots.txt among them; each waits for its turn, and for no more."""
    settings = {"SCHEDULER": "jumping.Jumping", "FOCUS_BUDGET_RATE": "300/day"}
    result = crawl(Daily, settings, root=site.url("").rstrip("/"))
    assert result.errors == {}
    assert len(site.log) == result.stats["focus/requests"] == 300
    check_even(times(site), DAY / 300, extra=1)
    assert {round(b - a) for a, b in pairwise(times(site)[1:])} <= {288, 576}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no SIGKILL here")
@pytest.mark.parametrize("rate", [300, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_day_with_five_kills(rate: int, tmp_path: Path) -> None:
    """As many lines, fewer only by requests that a kill prevented."""
    settings = {"JOBDIR": str(tmp_path / "job"), "FOCUS_BUDGET_RATE": f"{rate}/day"}
    with MockSite() as site, Nursery() as nursery:
        for part in range(1, 7):
            site.hold(part * rate // 6 + 5 if part < 6 else math.inf)
            running = nursery.start(settings=settings, root=site.url(""), out=str(tmp_path), spider="jumping.Daily")
            until = time.monotonic() + HANG
            while part < 6 and len(site.log) < part * rate // 6 and time.monotonic() < until:
                assert not running.ended(0.0005), (tmp_path / "output").read_text()[-3000:]
            if part < 6:
                running.kill()
                site.go_on()
                site.rest()
            else:
                assert running.ended(HANG)
        said = (tmp_path / "output").read_text()
    assert "a day is over" in said, said[-3000:]
    assert rate - 5 <= len(site.log) <= rate
    check_even(times(site), DAY / rate, extra=2)
    assert len({*site.paths}) > 0.9 * rate
    assert {*site.paths} <= {*tree_paths(2000)}


@pytest.mark.reactor
@ADDON
def test_each_request_goes_out_when_its_turn_has_come(site: MockSite, addon: bool) -> None:
    """The engine is woken then, and links found meanwhile may be the next; redirects and HEADs count."""
    site.pages["/"] = '<a href="/redirect?to=/ok?1">1</a>' + "".join(f'<a href="/ok?{i}">x</a>' for i in range(2, 6))
    settings = {
        "FOCUS_BUDGET_RATE": "4 per second", "FOCUS_POLICY": SomeHeadsFirst, "FOCUS_POLICY_PARAMS": {"modulus": 3},
    }  # fmt: skip
    result = crawl(Follower, settings, addon=addon, seeds=[site.url("/")])
    assert result.reason == "finished"
    assert result.outcomes["ok"] == 6
    at = sorted(seen.at for seen in site.log)
    check_even(at, 0.25, extra=2)
    assert (len(at) - 3) * 0.25 <= at[-1] - at[0] < len(at) * 0.25 + LATE


def test_a_turn_is_taken_while_others_are_on_their_way(site: MockSite) -> None:
    """A slow page does not block requests whose turn has come."""
    site.pages["/"] = '<a href="/slow">1</a><a href="/ok?2">2</a><a href="/ok?3">3</a>'
    came = []

    def slowly(n: int) -> Any:
        until = time.monotonic() + 30.0
        while len(site.paths) < 4 and time.monotonic() < until:
            time.sleep(0.02)
        came.append(len(site.paths))
        return 200, {"Content-Type": "text/html"}, b"at last"

    site.answers["/slow"] = slowly
    settings = {"FOCUS_BUDGET_RATE": "4/second", "FOCUS_POLICY": BREADTH_FIRST}
    assert crawl(Follower, settings, seeds=[site.url("/")]).reason == "finished"
    assert came == [4]


def test_time_may_pass_faster(site: MockSite) -> None:
    """Times of links and rates are in seconds of the crawl, and so are budgets of seconds."""
    site.pages["/"] = '<a href="/ok?1">1</a>'
    settings = {
        "_FOCUS_CLOCK": str(FastClock(DAY / 4, time.time())), "FOCUS_POLICY": EachAgain, "FOCUS_POLICY_PARAMS": {"every": DAY / 8},
        "FOCUS_BUDGET_RATE": "100/day",
    }  # fmt: skip
    begin = time.monotonic()
    result = crawl(Follower, {**settings, "FOCUS_BUDGET_REQUESTS": 6}, seeds=[site.url("/")])
    assert result.reason == "focus_budget_requests"
    assert time.monotonic() - begin < LATE  # a day and a half by the machine's clock
    at = {path: [seen.at for seen in site.log if seen.path == path] for path in ("/", "/ok?1")}
    assert sum(map(len, at.values())) == 6
    assert all(b - a > 0.49 for times in at.values() for a, b in pairwise(times))
    site.log.clear()
    begin = time.monotonic()
    result = crawl(Follower, {**settings, "FOCUS_BUDGET_SECONDS": DAY / 2}, seeds=[site.url("/")])
    assert result.reason == "focus_budget_seconds"
    assert 1.9 < time.monotonic() - begin < LATE
    assert len(site.paths) <= 10


def test_what_is_answered_by_a_cache_takes_no_turn(site: MockSite, tmp_path: Path) -> None:
    """A second run with Scrapy's HTTP cache is as fast as without a rate."""
    cached = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    crawl(Follower, cached, seeds=[site.url("/page/0/40")])
    n = len(site.log)
    result = crawl(Follower, {**cached, "FOCUS_BUDGET_RATE": "1/day"}, seeds=[site.url("/page/0/40")], patience=60)
    assert result.outcomes == {"ok": 40}
    assert len(site.log) == n


def test_the_rate_is_shown(site: MockSite) -> None:
    """In the first line of the log, and wherever progress is."""

    class Asking(Follower):
        said: list[str] = []

        def parse(self, response: Any) -> Any:
            self.said += progress(self.crawler.engine.scheduler.focus_host)
            yield from super().parse(response)

    result = crawl(Asking, {"FOCUS_BUDGET_RATE": "12/hour", "FOCUS_BUDGET_REQUESTS": 2}, seeds=[site.url("/ok")])
    assert result.logged("budget 2 requests, at most 12 requests an hour")
    assert any(line.startswith("at most 12 requests an hour, the next one in ") for line in Asking.said)


def test_the_status_of_a_job_says_the_rate(site: MockSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """That of its last run, which may be another one than before."""
    for n, rate in enumerate(("50/second", "60 per second", None), 1):
        settings = {"JOBDIR": str(tmp_path), "FOCUS_BUDGET_RATE": rate, "FOCUS_BUDGET_REQUESTS": 3 * n}
        result = crawl(Follower, settings, seeds=[site.url("/page/0/40")])
        assert (result.reason, len(site.log)) == ("focus_budget_requests", 3 * n)
        show(read_status(tmp_path))
        said = capsys.readouterr().out
        assert (f"rate        at most {Budget(rate=rate).rate}" in said) if rate else ("rate        " not in said)


@pytest.mark.parametrize(
    ("rate", "words"), [("2000", "a day or an hour"), ("0/day", "allows nothing"), (-3, "nothing")]
)
def test_a_wrong_rate_ends_before_anything_is_asked(site: MockSite, rate: Any, words: str) -> None:
    """With the error, and what to set."""
    with pytest.raises(ConfigError, match=f"FOCUS_BUDGET_RATE is .*{words}"):
        crawl(Follower, {"FOCUS_BUDGET_RATE": rate}, seeds=[site.url("/ok")])
    assert not site.log
