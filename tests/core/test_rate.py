"""A rate is kept in the long run: evenly, exactly, over stops, kills and clocks that are set."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from scrapy_focus import Budget, ConfigError, Crawl, Mission, Placement, memory_frontier
from scrapy_focus.core.budget import Rate
from scrapy_focus.jobs.job import Job
from scrapy_focus.policies.orderings import BreadthFirst
from tests.made import Clock, EachAgain, Recording, fetch, links, page

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scrapy_focus import Link, Outcome

DAY = 86_400.0


@pytest.mark.parametrize(
    ("text", "said", "interval"),
    [
        ("2000/day", "2,000 requests a day", 43.2),
        (" 2,000 Requests per  Day ", "2,000 requests a day", 43.2),
        ("50 an hour", "50 requests an hour", 72.0),
        ("30/minutes", "30 requests a minute", 2.0),
        ("60/min", "60 requests a minute", 1.0),
        ("1/s", "1 request a second", 1.0),
        ("500/h", "500 requests an hour", 7.2),
        ("2000/d", "2,000 requests a day", 43.2),
        ("7/week", "7 requests a week", DAY),
        ("0.5 / second", "0.5 requests a second", 2.0),
        ("1 request a second", "1 request a second", 1.0),
    ],
)
def test_a_rate_is_read(text: str, said: str, interval: float) -> None:
    """In figures and words; it says itself in words."""
    rate = Rate.of(text)
    assert (str(rate), rate.interval, rate.per_second) == (said, pytest.approx(interval), pytest.approx(1 / interval))
    assert Budget(rate=text).rate == rate


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2000", "requests a day or an hour"),
        (2000, "requests a day or an hour"),
        ("0/day", "allows nothing"),
        ("0", "allows nothing"),
        ("-5/hour", "allows nothing"),
        ("many/day", "such as '2000/day'"),
        ("5/m", "in a unit of time, such as"),
        ("5/month", "in a unit of time, such as"),
        ("nan/day", "it takes a number"),
        ("1e400/day", "not a rate of requests"),
        ("1e-320/day", "not a rate of requests"),
        ("9" * 5000, "it takes a number"),
        ("", "it takes a number"),
        (True, "it takes a number"),
    ],
)
def test_what_is_no_rate_is_named(text: Any, words: str) -> None:
    """In a short message that says what to give."""
    with pytest.raises(ConfigError, match=words) as raised:
        Rate.of(text, "FOCUS_BUDGET_RATE")
    assert str(raised.value).startswith("FOCUS_BUDGET_RATE is ")
    assert len(str(raised.value)) < 500


class Paced:
    """A crawl with a thousand links at a rate that records when requests are sent."""

    def __init__(self, rate: str | None = "1000/day", job: Path | None = None, policy: Any = None) -> None:
        self.clock = Clock()
        self.times: list[float] = []
        self.rate, self.folder, self.make = rate, job, policy or Recording
        self.crawl = self._crawl()
        self.crawl.add(links(*range(2000)))

    def _crawl(self, **more: Any) -> Crawl:
        where: dict[str, Any] = {"frontier": memory_frontier} if self.folder is None else {"job": Job(self.folder)}
        budget = Budget(rate=self.rate, **more)
        return Crawl(self.make(), budget=budget, clock=self.clock, seed=0, strict=True, **where)

    def killed(self, rate: str | None = None) -> None:
        """Restart with the state after a kill."""
        self.crawl.close()
        self.rate = rate or self.rate
        self.crawl = self._crawl()

    def send(self, *, further: int = 0) -> bool:
        """Send a request if one may go out, and some for the same pick; whether one did."""
        pick = self.crawl.next()
        if pick is None:
            return False
        for _ in range(1 + further):
            assert self.crawl.sent(pick.id)
            self.times.append(self.clock.now)
        self.crawl.report(page(pick))
        return True

    def until(self, end: float, **how: Any) -> None:
        """Send requests, each as soon as it may go out."""
        while True:
            while self.send(**how):
                pass
            turn = self.crawl.next_turn
            assert turn is not None
            assert turn > self.clock.now
            assert self.crawl.status().due == self.crawl.status().next_turn == turn
            if turn >= end:
                self.clock.now = end
                return
            self.clock.now = turn

    def check(self, interval: float) -> None:
        """Fail if more went out from the first request until any other than the rate allows."""
        begin = self.times[0]
        assert all(i * interval <= at - begin + 1e-6 for i, at in enumerate(self.times))


def test_a_day_has_as_many_requests_as_were_asked_for() -> None:
    """One every 86.4 s, for three days."""
    paced = Paced()
    for day in (1, 2):
        paced.until(1000.0 + day * DAY)
        assert len(paced.times) == day * 1000
    gaps = {round(b - a, 3) for a, b in zip(paced.times, paced.times[1:], strict=False)}
    assert gaps == {86.4}


def test_who_comes_late_takes_the_turn_that_was_his() -> None:
    """Until the next one: then turns are lost, and nothing makes up for them."""
    paced = Paced("6/minute")
    assert paced.send()
    paced.clock.now += 19.0
    assert paced.send()
    assert not paced.send()
    assert paced.crawl.next_turn == 1020.0
    paced.clock.now += 2 * DAY
    assert [paced.send(), paced.send()] == [True, False]
    assert paced.crawl.next_turn == paced.clock.now + 10.0


def test_many_a_second_are_as_many_where_the_loop_is_slow() -> None:
    """What was missed within a second is made up for."""
    paced = Paced("100/second")
    for _ in range(10):
        while paced.send():
            pass
        paced.clock.now += 0.25
    assert len(paced.times) == pytest.approx(226, abs=1)
    paced.check(0.01)


def test_what_cannot_wait_makes_the_next_link_wait_longer() -> None:
    """Redirects, retries and robots.txt go out at once, and the rate is kept all the same."""
    paced = Paced()
    assert paced.crawl.sent()  # robots.txt
    paced.times.append(paced.clock.now)
    paced.until(1000.0 + DAY, further=3)
    assert 996 <= len(paced.times) <= 1003
    assert len({*paced.times}) == 251
    paced.until(1000.0 + 2 * DAY, further=3)
    assert 1996 <= len(paced.times) <= 2003


@pytest.mark.parametrize("back", ["release", "report"])
def test_a_pick_for_which_nothing_went_out_takes_no_turn(back: str) -> None:
    """Such as one from a cache, or one that robots.txt forbids."""
    paced = Paced()
    pick = paced.crawl.next()
    assert pick is not None
    assert paced.crawl.next() is None
    paced.crawl.release(pick.id) if back == "release" else paced.crawl.report(page(pick, error="ignored"))
    assert paced.send()
    assert not paced.send()


def test_a_connection_that_was_refused_is_no_reason_to_hurry() -> None:
    """The request counts for no budget, and its turn is over."""
    paced = Paced()
    pick = paced.crawl.next()
    assert pick is not None
    paced.crawl.sent(pick.id)
    paced.crawl.received(None)
    assert paced.crawl.budget.requests_used == 0
    assert paced.crawl.next() is None
    assert paced.crawl.next_turn == 1086.4


@pytest.mark.few(1)
@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("policy", [BreadthFirst, EachAgain])
def test_kills_change_nothing(tmp_path: Path, policy: Any, checkpoint: bool) -> None:
    """Killed within each pick, before and after its request: as many requests go out, at the same times."""
    paced = Paced(job=tmp_path / "focus", policy=policy)
    for number in range(12):
        paced.until(paced.clock.now + 30 * 86.4)
        paced.clock.now = paced.crawl.next_turn or paced.clock.now
        pick = paced.crawl.next()
        assert pick is not None
        if number % 2:
            assert paced.crawl.sent(pick.id)
            paced.times.append(paced.clock.now)
        if checkpoint:
            paced.crawl.checkpoint()
        paced.killed()
    paced.until(1000.0 + DAY)
    assert len(paced.times) == 1000
    paced.check(86.4)
    paced.crawl.close()


def test_a_crawl_that_lay_still_makes_up_for_nothing(tmp_path: Path) -> None:
    """After two days it sends one request, and the next one an interval later."""
    paced = Paced(job=tmp_path / "focus")
    paced.until(1500.0)
    paced.killed()
    paced.clock.now += 2 * DAY
    assert [paced.send(), paced.send()] == [True, False]
    assert paced.crawl.next_turn == paced.clock.now + 86.4
    paced.crawl.close()


class Asks(BreadthFirst):
    """Writes down at which rate it learns."""

    seen: ClassVar[list[float | None]]

    def learn(self, outcome: Outcome) -> None:
        self.seen.append(self.budget_rate)


@pytest.mark.parametrize(("then", "wait"), [("1/day", DAY), ("24/day", 3600.0), ("1000/day", 86.4)])
def test_another_rate_begins_with_the_last_request(tmp_path: Path, then: str, wait: float) -> None:
    """Whatever the rate was before; the policy knows, and a resumed crawl with it is the same crawl."""
    seen = Asks.seen = []
    paced = Paced("24/day", job=tmp_path / "focus", policy=Asks)
    assert paced.crawl.mission.rate == 24 / DAY
    paced.until(1000.0 + 2.01 * 3600)
    paced.killed(then)
    assert paced.crawl.next_turn == 1000.0 + 2 * 3600 + wait
    paced.clock.now += 2 * DAY
    assert paced.send()
    paced.killed()
    paced.clock.now += 2 * DAY
    assert paced.send()
    assert seen[:3] == [24 / DAY] * 3
    assert seen[-2:] == [Rate.of(then).per_second] * 2
    paced.crawl.close()


def test_a_rate_may_come_and_go(tmp_path: Path) -> None:
    """A crawl may resume without one, and with one again; requests sent meanwhile are not a debt."""
    paced = Paced(None, job=tmp_path / "focus")
    assert all(paced.send() for _ in range(200))
    paced.killed("1000/day")
    paced.until(1000.0 + 10 * 86.4)
    assert len(paced.times) in (210, 211)
    paced.rate = None
    paced.killed()
    assert all(paced.send() for _ in range(50))
    paced.crawl.close()


def test_a_clock_that_is_set_does_no_harm() -> None:
    """Set back, turns come as they would have; the crawl's time passes on."""
    paced = Paced()
    paced.until(1000.0 + 10 * 86.4)
    paced.clock.now -= 5000.0
    assert not paced.send() or not paced.send()
    paced.clock.now += 86.4
    assert paced.send()
    assert not paced.send()


def test_a_mission_says_the_rate() -> None:
    """That of the budget, in requests per second; without one, that which it was made with."""
    mission = Mission(words=("a",))
    with_rate = Crawl(BreadthFirst(), frontier=memory_frontier, mission=mission, budget=Budget(rate="7200/hour"))
    assert with_rate.mission == replace(mission, rate=2.0)
    assert with_rate.policy.budget_rate == 2.0
    assert "rate" not in with_rate.mission.describe()
    for rate in (None, 0.5):
        without = Crawl(BreadthFirst(), frontier=memory_frontier, mission=mission.at_rate(rate))
        assert without.mission.rate == without.policy.budget_rate == rate
    for rate in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="requests per second"):
            Mission(rate=rate)


def test_without_a_rate_nothing_waits() -> None:
    """And nothing of it is stored."""
    paced = Paced(None)
    assert [paced.send() for _ in range(10)] == [True] * 10
    assert paced.crawl.next_turn is None
    assert paced.crawl.status().rate is None
    assert [*paced.crawl.budget.state()] == ["requests", "bytes", "seconds"]
    assert repr(Budget(requests=1000, rate="2000/day")) == "1,000 requests, at most 2,000 requests a day"


class Sleepy(Recording):
    """Lets each link sleep for a while."""

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        return [Placement(1, float(link.key % 7), after=2000.0 + link.key % 3) for link in links]


def test_many_that_are_due_at_once_wake_in_parts(tmp_path: Path) -> None:
    """Some at each call, and all before a link is chosen; after a kill the choices are the same."""
    chosen = []
    for folder in (None, tmp_path / "focus"):
        clock = Clock()
        where: dict[str, Any] = {"frontier": memory_frontier} if folder is None else {"job": Job(folder)}
        crawl = Crawl(Sleepy(), seed=0, strict=True, clock=clock, **where)
        crawl.add(links(*range(100)))
        assert crawl.wake(10)
        clock.now = 2002.0
        left = 100
        while not crawl.wake(10):
            left -= 10
            assert crawl.sleepers.asleep == left
            assert (crawl.sleepers.next_due or 0.0) <= 2002.0
            crawl.frontier.check()
            if folder is not None and left == 50:
                crawl.close()
                crawl = Crawl(Sleepy(), seed=0, strict=True, clock=clock, job=Job(folder))
                assert crawl.sleepers.asleep == left
        assert crawl.sleepers.asleep == 0
        chosen.append([fetch(crawl).key for _ in range(100)])
        crawl.close()
    clock = Clock()
    clock.now = 2002.0
    crawl = Crawl(Sleepy(), seed=0, strict=True, clock=clock, frontier=memory_frontier)
    crawl.add(links(*range(100)))
    assert [fetch(crawl).key for _ in range(100)] == chosen[0] == chosen[1]
