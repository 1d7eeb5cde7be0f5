"""Live crawls whose policy revisits pages: at their times, as one link each, with their original requests."""

from __future__ import annotations

import time
from collections import Counter
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from crawls import Follower, crawl
from jumping import BEGIN, Jumping
from scrapy import Request
from scrapy.core.engine import ExecutionEngine
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro

from scrapy_focus import Crawl, Placement, memory_frontier
from scrapy_focus.core.clock import FastClock
from scrapy_focus.engine import choices
from scrapy_focus.engine.progress import progress
from scrapy_focus.policies.orderings import BreadthFirst
from tests.made import HANG, Clock, EachAgain, Recording, link

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mocksite import MockSite
    from scrapy.http import Response

    from scrapy_focus import Outcome


EVERY = 0.5  # seconds
_HEARTBEAT = 120.0  # seconds after which the engine asks in any case
LATE = _HEARTBEAT / 2  # seconds: nothing woke it


@pytest.fixture(autouse=True)
def _slow_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExecutionEngine, "_SLOT_HEARTBEAT_INTERVAL", _HEARTBEAT)


def again(site: MockSite, requests: int, **more: Any) -> dict[str, Any]:
    """Return the settings of a crawl that fetches its pages again, and ends after so many requests."""
    policy = {"FOCUS_POLICY": EachAgain, "FOCUS_POLICY_PARAMS": {"every": EVERY}}
    return {**policy, "FOCUS_BUDGET_REQUESTS": requests, "ROBOTSTXT_OBEY": False, "FOCUS_UNCHANGED": True, **more}


def in_turn(site: MockSite, requests: int, **more: Any) -> dict[str, Any]:
    """Return such settings with one request in flight: no page is revisited while another one is in flight."""
    return again(site, requests, FOCUS_MAX_INFLIGHT=1, **more)


def family(site: MockSite) -> None:
    """Have a page with two others."""
    site.pages |= {"/": '<a href="/1">1</a><a href="/2">2</a>', "/1": '<a href="/">home</a>', "/2": "2"}


@pytest.mark.reactor
@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_each_page_is_fetched_at_its_time(site: MockSite, addon: bool) -> None:
    """The engine is woken then; while all sleep the crawl is neither idle nor stuck, and only its budget ends it."""
    family(site)
    result = crawl(Follower, in_turn(site, 12), addon=addon, seeds=[site.url("/")])
    assert result.reason == "focus_budget_requests"
    assert Counter(site.paths) == {"/": 4, "/1": 4, "/2": 4}
    assert result.errors == {}
    assert result.outcomes == {"ok": 3, "unchanged": 9}
    for path in ("/", "/1", "/2"):
        visits = [seen.at for seen in site.log if seen.path == path]
        for one, two in pairwise(visits):
            assert EVERY <= two - one < EVERY + LATE
    assert len(result.items) == 12
    assert result.stats["focus/link/again"] == 12
    assert result.stats["focus/asleep"] + result.stats["focus/waiting"] == 3
    assert "focus/select/none" not in result.stats


def test_what_is_due_starts_while_others_are_on_their_way(site: MockSite, tmp_path: Path) -> None:
    """A page that takes long holds up none that is due meanwhile."""
    site.pages |= {"/": '<a href="/slow">1</a>'}

    came = []

    def slowly(n: int) -> Any:
        until = time.monotonic() + _HEARTBEAT / 2
        while site.paths.count("/") < 2 and time.monotonic() < until:
            time.sleep(0.02)
        came.append(site.paths.count("/"))
        return 200, {"Content-Type": "text/html"}, b"at last"

    site.answers["/slow"] = slowly
    result = crawl(Follower, again(site, 3, FOCUS_LOG=str(tmp_path / "log.jsonl")), seeds=[site.url("/")])
    chosen = [event["url"] for event in result.events() if event["event"] == "pick"]
    assert chosen[:3] == [site.url("/"), site.url("/slow"), site.url("/")]
    assert len(site.paths) == 3
    assert came == [2]


class Twice(Follower):
    """Starts with two requests for one page, which go past the dupefilter, and asks for it twice more."""

    name = "twice"
    dont_filter = True

    async def start(self) -> AsyncIterator[Any]:
        for _ in range(2):
            for seed in self.seeds:
                yield Request(seed, dont_filter=True)

    def parse(self, response: Response) -> Any:
        yield from super().parse(response)
        if response.url.endswith("/1"):
            yield response.follow("/2", dont_filter=True)


@pytest.mark.parametrize("jobdir", [False, True])
def test_a_page_is_one_link(site: MockSite, jobdir: bool, tmp_path: Path) -> None:
    """Start requests that bypass the dupefilter, links to their page and similar requests are revisited as one.

    This holds in each run of a job.
    """
    family(site)
    settings = again(site, 30, **({"JOBDIR": str(tmp_path)} if jobdir else {}))
    settings["FOCUS_POLICY_PARAMS"] = {"every": EVERY, "times": 2}
    for run in range(2 if jobdir else 1):
        result = crawl(Twice, settings, seeds=[site.url("/")])
        assert result.reason == "finished"
        visits = Counter(site.paths)
        assert (visits["/"], visits["/1"]) == (3, 3)
        # requested additionally at each visit of the other page: it is fetched, but not revisited
        assert visits["/2"] == 3 + 3
        assert result.stats["focus/asleep"] == 0
        assert run == 0 or result.stats["focus/selected"] == 12


def test_without_such_a_policy_start_requests_are_what_they_were(site: MockSite) -> None:
    """Both are sent, and the page is fetched once more for its link."""
    family(site)
    crawl(Twice, {"FOCUS_POLICY": BreadthFirst, "ROBOTSTXT_OBEY": False}, seeds=[site.url("/")])
    assert Counter(site.paths) == {"/": 3, "/1": 1, "/2": 2}


def test_a_crawl_may_have_a_faster_clock(site: MockSite) -> None:
    """Pages are revisited at their times by the given clock, on which an hour takes less than a second."""
    family(site)
    speed, begin = 5000.0, 1e6
    settings = in_turn(site, 9, _FOCUS_CLOCK=str(FastClock(speed, begin)))
    settings["FOCUS_POLICY_PARAMS"] = {"every": 3600.0}
    result = crawl(Follower, settings, seeds=[site.url("/")])
    assert Counter(site.paths) == {"/": 3, "/1": 3, "/2": 3}
    for path in ("/", "/1", "/2"):
        visits = [seen.at for seen in site.log if seen.path == path]
        assert all(two - one >= 0.99 * 3600 / speed for one, two in pairwise(visits))
    times = [at for _, at in result.scheduler.crawl.policy.learned]
    assert begin < times[0] < times[-1] < begin + speed * HANG
    assert times[-1] - times[0] > 2 * 3600
    assert site.log[-1].at - site.log[0].at < HANG / 10


class Unstorable(Follower):
    """Requests its pages with values that can neither be stored nor copied."""

    name = "unstorable"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.shared: list[str] = []

    async def start(self) -> AsyncIterator[Any]:
        for seed in self.seeds:
            yield Request(seed, callback=partial(self.note), meta={"shared": self.shared})

    def note(self, response: Response) -> Any:
        assert response.meta["shared"] is self.shared
        self.shared.append(response.url)
        yield {"url": response.url}
        for path in ("/1", "/retried"):
            yield response.follow(path, callback=partial(self.note), meta={"shared": self.shared})


@pytest.mark.parametrize("jobdir", [False, True])
def test_a_request_that_cannot_be_stored_survives_its_outcome(site: MockSite, jobdir: bool, tmp_path: Path) -> None:
    """It is sent again unchanged, also after a retry."""
    site.pages |= {"/": "home", "/1": "1"}
    site.answers["/retried"] = lambda n: (503 if n % 2 else 200, {"Content-Type": "text/html"}, b"busy")
    settings = again(site, 30, **({"JOBDIR": str(tmp_path)} if jobdir else {}))
    settings["FOCUS_POLICY_PARAMS"] = {"every": EVERY, "times": 2}
    result = crawl(Unstorable, settings, seeds=[site.url("/")])
    assert result.reason == "finished"
    assert Counter(site.paths) == {"/": 3, "/1": 3, "/retried": 6}
    assert Counter(result.spider.shared) == {site.url("/"): 3, site.url("/1"): 3, site.url("/retried"): 3}
    assert result.outcomes == {"ok": 3, "unchanged": 6}


class Past(Follower):
    """Starts with requests that go past the dupefilter."""

    name = "past"

    async def start(self) -> AsyncIterator[Any]:
        for seed in self.seeds:
            yield Request(seed, dont_filter=True)


@pytest.mark.parametrize("spider", [Follower, Past])
def test_a_redirect_leads_to_the_same_page_again(site: MockSite, spider: type[Follower]) -> None:
    """Of a start request and of a link; the target page is not a separate link."""
    site.pages |= {"/": '<a href="/redirect?to=/1">1</a>', "/1": '<a href="/">home</a><a href="/1">me</a>'}
    result = crawl(spider, in_turn(site, 15), seeds=[site.url("/redirect?to=/")])
    visits = Counter(site.paths)
    assert visits["/redirect?to=/"] >= 3
    assert visits["/redirect?to=/1"] >= 3
    assert visits["/"] in (visits["/redirect?to=/"], visits["/redirect?to=/"] - 1)
    assert visits["/1"] in (visits["/redirect?to=/1"], visits["/redirect?to=/1"] - 1)
    assert set(result.outcomes) <= {"ok", "unchanged", "budget"}


@pytest.mark.parametrize("spider", [Follower, Past])
def test_a_start_request_is_tried_again(site: MockSite, spider: type[Follower]) -> None:
    """Even though its page is known by then; and so is its redirect target."""
    busy = (503, {"Content-Type": "text/html"}, b"busy")
    site.answers["/"] = lambda n: busy if n == 1 else None
    site.answers["/new"] = lambda n: busy if n == 1 else None
    site.pages |= {"/": "home", "/new": "new"}
    settings = again(site, 20)
    settings["FOCUS_POLICY_PARAMS"] = {"every": EVERY, "times": 1}
    result = crawl(spider, settings, seeds=[site.url("/"), site.url("/redirect?to=/new")])
    assert Counter(site.paths) == {"/": 3, "/redirect?to=/new": 2, "/new": 3}
    assert result.outcomes == {"ok": 2, "unchanged": 2}
    assert result.reason == "finished"


class Leaving(Follower):
    """Ends its crawl when three pages sleep."""

    name = "leaving"
    leaves = True

    def parse(self, response: Response) -> Any:
        if self.leaves and response.url in self.seeds:
            self.leave()
        yield from super().parse(response)

    def leave(self) -> None:
        if self.crawler.engine.scheduler.crawl.sleepers.asleep < 3:
            call_later(0.02, self.leave)
        else:
            deferred_from_coro(self.crawler.engine.close_spider_async(reason="all sleep"))


def test_what_sleeps_is_kept_for_the_next_run(site: MockSite, tmp_path: Path) -> None:
    """A crawl that is stopped while all sleep resumes with the same pages and times."""
    family(site)
    settings = in_turn(site, 6, JOBDIR=str(tmp_path), _FOCUS_CLOCK=str(FastClock(1.0, BEGIN)))
    settings["FOCUS_POLICY_PARAMS"] = {"every": 3600.0}
    first = crawl(Leaving, settings, seeds=[site.url("/")])
    assert first.reason == "all sleep"
    assert (first.stats["focus/asleep"], first.stats["focus/waiting"]) == (3, 0)
    due = first.scheduler.crawl.sleepers.next_due
    began = time.monotonic()
    settings["_FOCUS_CLOCK"] = str(FastClock(1.0, due - 2.0))  # nearly an hour later
    second = crawl(Leaving, settings, seeds=[site.url("/")], leaves=False)
    assert second.logged("resumed with 0 links queued and 3 asleep")
    assert second.reason == "focus_budget_requests"
    assert Counter(site.paths) == {"/": 2, "/1": 2, "/2": 2}
    learned = second.scheduler.crawl.policy.learned
    assert due <= learned[3][1] < due + HANG
    for path in ("/", "/1", "/2"):
        one, two = (at for url, at in learned if url == site.url(path))
        assert two - one >= 3600.0
    assert all(2.0 <= seen.at - began < LATE for seen in site.log[3:])


def test_progress_says_who_sleeps() -> None:
    """And when the first of them is due."""
    clock = Clock()
    inside = Crawl(
        Recording(answer=lambda link, source: Placement(1, 0.0, after=1125.0)), frontier=memory_frontier, clock=clock
    )
    inside.add([link(1), link(2)])
    host: Any = SimpleNamespace(
        status=inside.status,
        pace=SimpleNamespace(put_off_hosts=(0, 0.0)),
        shown=list,
        policy=BreadthFirst,
        noun="pages",
    )
    assert "2 links are not due yet, the next is due in 2 min 5 s" in progress(host)
    clock.now = 2000.0
    assert "2 links are not due yet, the next is due in 0 s" in progress(host)
    assert inside.next() is not None
    assert not [line for line in progress(host) if "not due yet" in line]


class AtOnce(EachAgain):
    """Makes all pages due at one time."""

    def again(self, outcome: Outcome) -> Placement | None:
        place = super().again(outcome)
        return place and place._replace(after=self.every)


def test_many_that_are_due_wake_in_turns_of_the_event_loop(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is chosen until all are awake, so the order is the same as if they woke together."""
    asked, left = [], []

    def wake(self: Crawl, most: int | None = None) -> bool:
        awake = whole(self, most)
        if most is not None and not awake:
            left.append(self.sleepers.asleep)
        return awake

    whole = Crawl.wake
    monkeypatch.setattr(Crawl, "wake", wake)
    for at_once in (1000, 4):
        monkeypatch.setattr(choices, "_WOKEN", at_once)
        monkeypatch.setattr(choices, "_WAKING", -1.0)
        site.log.clear()
        policy = {"FOCUS_POLICY": AtOnce, "FOCUS_POLICY_PARAMS": {"every": BEGIN + 1000.0, "times": 1}}
        settings = {**policy, "SCHEDULER": Jumping, "FOCUS_MAX_INFLIGHT": 1, "ROBOTSTXT_OBEY": False}
        assert crawl(Follower, settings, seeds=[site.url("/page/0/19")]).reason == "finished"
        asked.append(site.paths)
    assert asked[0] == asked[1]
    assert len(asked[0]) == 2 * 19
    assert left == [15, 11, 7, 3]


class Later(BreadthFirst):
    """Lets new links sleep, forever or for as long as a page says."""

    def place(self, links: Any, source: Any) -> Any:
        return [
            place._replace(after=self.now + (EVERY if source is not None else 0.0))
            for place in super().place(links, source)
        ]


def test_new_links_may_sleep(site: MockSite) -> None:
    """Without pages to revisit, the crawl ends when the last one was fetched."""
    family(site)
    result = crawl(Follower, {"FOCUS_POLICY": Later}, seeds=[site.url("/")])
    assert sorted(site.paths) == ["/", "/1", "/2"]
    assert result.reason == "finished"
    assert site.log[-1].at - site.log[0].at >= EVERY


class Wakeless:
    """A frontier that knows nothing of times."""

    def __new__(cls, keeps: Any) -> Any:
        from scrapy_focus import memory_frontier

        frontier = memory_frontier(keeps)
        names = [name for name in dir(frontier) if name not in ("asleep", "next_due", "wake", "__class__")]
        wakeless = type("Wakeless", (), {name: _passed(frontier, name) for name in names if name[0] != "_"})
        wakeless.__len__ = lambda self: len(frontier)  # type: ignore[attr-defined]
        return wakeless()


def _passed(frontier: Any, name: str) -> Any:
    return property(lambda self: getattr(frontier, name))


def test_a_frontier_without_times_says_so(site: MockSite) -> None:
    """The pages are fetched once, and the log says why they are not revisited."""
    family(site)
    result = crawl(Follower, again(site, 9, FOCUS_FRONTIER=Wakeless), seeds=[site.url("/")])
    assert sorted(site.paths) == ["/", "/1", "/2"]
    assert result.errors == {"again": 3}
    assert result.logged("Wakeless has no asleep, next_due and wake(): take another frontier")
