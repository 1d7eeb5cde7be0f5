"""Pages that are visited again when that pays, beside new ones."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scrapy_focus import (
    ConfigError,
    Crawl,
    Job,
    Link,
    Mission,
    Outcome,
    Revisits,
    Signal,
    check_policy,
    memory_frontier,
)
from scrapy_focus.learn.changes import DAY, record_of
from tests.made import Clock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scrapy_focus import Pick

HOUR = 3600.0


class Hubs:
    """A site with some pages where links to new targets appear at regular times, and with old pages.

    Page 0 links to all others; the targets of page ``i`` have the numbers 1000 * i and up.
    """

    def __init__(self, hours: Sequence[float], old: int = 0) -> None:
        self.hours = hours  # between two targets, of each page
        self.old = old

    def links(self, key: int, now: float) -> list[Link]:
        if key == 1:
            return [self.link(i + 2) for i in range(len(self.hours))] + [self.link(500 + i) for i in range(self.old)]
        if 2 <= key < len(self.hours) + 2:
            born = int(now / HOUR / self.hours[key - 2])
            return [self.link(1000 * key + i) for i in range(max(0, born - 10), born)]
        return []

    def link(self, key: int) -> Link:
        path = "html/body/main/ul/li/a" if key >= 1000 else "html/body/nav/a" if key < 500 else "html/body/aside/p/a"
        return Link(f"http://h.test/{key}", key, "h.test", 1, str(key), path)


def begun(policy: Revisits, clock: Clock, **options: Any) -> Crawl:
    """Return a crawl of a target a page, from its first page."""
    where = options if "job" in options else {"frontier": memory_frontier, **options}
    crawl = Crawl(
        policy, goal=lambda outcome: float(outcome.pick.key >= 1000), strict=True, clock=clock, seed=1, **where
    )
    if not crawl.status().counts["outcomes"]:
        crawl.add([Link("http://h.test/1", 1, "h.test")])
    return crawl


def answer(crawl: Crawl, pick: Pick, site: Hubs, clock: Clock, seen: dict[int, tuple[int, ...]]) -> None:
    """Report the outcome of a page in its current state."""
    crawl.sent(pick.id)
    found = site.links(pick.key, clock.now)
    version = tuple(link.key for link in found)
    changed = seen[pick.key] != version if pick.key in seen else None
    seen[pick.key] = version
    crawl.report(Outcome(pick=pick, status=200, mime="text/html", size=1000, changed=changed), found)


def follow(crawl: Crawl, site: Hubs, clock: Clock, *, until: float, each: float) -> list[tuple[float, int]]:
    """Crawl with a request every so many seconds, and return when which page was fetched."""
    fetched: list[tuple[float, int]] = []
    seen: dict[int, tuple[int, ...]] = {}
    while clock.now < until:
        pick = crawl.next()
        if pick is not None:
            fetched.append((clock.now, pick.key))
            answer(crawl, pick, site, clock, seen)
        clock.now += each
    return fetched


@pytest.mark.slow
def test_it_keeps_its_promises() -> None:
    """As a policy for copies; the contract's tests show it for news."""
    check_policy(lambda: Revisits(goal="copies", explore=0.5, shortest=1.0, longest=0.01), pages=20)


@pytest.mark.slow
def test_pages_are_visited_by_the_square_root_of_what_appears_on_them() -> None:
    """Sixteen times as many targets, four times as many visits; all of the budget is used, and nothing is missed."""
    site, clock = Hubs([1.0, 1.0, 16.0, 16.0]), Clock()
    policy = Revisits(per_day=200.0, explore=0.0)
    fetched = follow(begun(policy, clock), site, clock, until=12 * DAY, each=DAY / 200)
    late = Counter(key for at, key in fetched if at > 6 * DAY)
    quick, slow = (late[2] + late[3]) / 2, (late[4] + late[5]) / 2
    assert 2.5 < quick / slow < 6
    assert sum(late.values()) > 0.9 * 6 * 200
    known = {key for at, key in fetched if key >= 1000}
    assert len({key for key in known if key < 3000}) > 270


def test_what_appears_on_a_known_page_goes_before_what_may_be_old() -> None:
    """Though both are at the same place of similar pages, and most queued links are old."""
    site, clock = Hubs([2.0], old=400), Clock()
    policy = Revisits(per_day=100.0, explore=0.0)
    fetched = follow(begun(policy, clock), site, clock, until=10 * DAY, each=DAY / 100)
    first = {key: at for at, key in reversed(fetched) if key >= 1000}
    delays = [at - (key % 1000 + 1) * 2 * HOUR for key, at in first.items() if at > 3 * DAY]
    assert len(delays) > 70
    assert np.mean(delays) < 3 * HOUR
    earned = [reward for name, reward, _ in policy.best_arms(10) if name.startswith("new on a known page: ")]
    assert sum(earned) > 70, "they have arms of their own"
    assert policy.tables() == policy.new.tables() != []


@pytest.mark.slow
def test_copies_are_visited_by_what_they_are_worth_and_none_is_forgotten() -> None:
    """Targets are revisited, and one that always changes after the longest interval at the latest."""
    policy, clock = Revisits(goal="copies", per_day=48.0, longest=2.0, explore=0.0), Clock()
    crawl = Crawl(
        policy, frontier=memory_frontier, goal=lambda outcome: float(outcome.pick.key), strict=True, clock=clock, seed=0
    )
    crawl.add([Link(f"http://h.test/{key}", key, "h.test") for key in range(1, 61)])
    visits: dict[int, list[float]] = {}
    while clock.now < 40 * DAY:
        pick = crawl.next()
        if pick is not None:
            visits.setdefault(pick.key, []).append(clock.now)
            crawl.sent(pick.id)
            days = 0.01 if pick.key % 2 else 3.0  # between two changes
            times = visits[pick.key]
            changed = None if len(times) == 1 else times[-1] // (days * DAY) != times[-2] // (days * DAY)
            crawl.report(Outcome(pick=pick, status=200, mime="text/csv", changed=changed))
        clock.now += DAY / 48
    gaps = [np.diff(times[2:]).max() for times in visits.values()]
    assert len(visits) == 60
    assert max(gaps) < 3 * DAY
    counts = {key: len(times) for key, times in visits.items()}
    slow = [counts[key] for key in range(2, 61, 2)]
    assert np.mean(slow[-10:]) > 1.3 * np.mean(slow[:10])


@pytest.mark.parametrize(
    ("outcome", "hours"),
    [
        ({"status": 503, "error": "http_error"}, [1, 2, 4]),
        ({"status": None, "error": "failure: TimeoutError"}, [1, 2, 4]),
        ({"status": 429, "error": "http_error"}, [1, 2, 4]),
        ({"status": 404, "error": "http_error"}, []),
    ],
)
def test_a_page_that_could_not_be_had_is_asked_for_later_and_later(outcome: dict[str, Any], hours: list[int]) -> None:
    """Where that may pass: an hour, then two; a page that is not there is left."""
    policy, clock = Revisits(), Clock()
    crawl = begun(policy, clock)
    waits = []
    for _ in range(3):
        pick = crawl.next()
        if pick is None:
            break
        crawl.sent(pick.id)
        crawl.report(Outcome(pick=pick, **outcome))
        if crawl.sleepers.next_due is not None:
            waits.append((crawl.sleepers.next_due - clock.now) / HOUR)
            clock.now = crawl.sleepers.next_due
    assert waits == pytest.approx(hours)


def test_waits_after_failures_begin_anew_once_a_page_came_back() -> None:
    """An hour after the first failure in a row, and two after the second, however many there were before."""
    policy, clock = Revisits(), Clock()
    crawl = begun(policy, clock)
    waits = []
    for is_there in (True, False, False, True, False, False):
        pick = crawl.next()
        assert pick is not None
        crawl.sent(pick.id)
        bad = {"status": 503, "error": "http_error"}
        crawl.report(Outcome(pick=pick, mime="text/html", **({"status": 200} if is_there else bad)))
        assert crawl.sleepers.next_due is not None
        waits.append(None if is_there else (crawl.sleepers.next_due - clock.now) / HOUR)
        clock.now = crawl.sleepers.next_due
    assert waits == [None, pytest.approx(1), pytest.approx(2)] * 2


def test_a_page_that_failed_for_ever_is_left() -> None:
    """After the longest interval, and nothing is planned for it any more."""
    policy, clock = Revisits(longest=0.2), Clock()
    crawl = begun(policy, clock)
    for _ in range(10):
        if (pick := crawl.next()) is None:
            break
        crawl.sent(pick.id)
        crawl.report(Outcome(pick=pick, status=500, error="http_error"))
        clock.now = math.inf if crawl.sleepers.next_due is None else crawl.sleepers.next_due
    assert crawl.sleepers.asleep == 0
    assert policy.plan.pages == 0


def test_the_plan_holds_exactly_the_pages_that_sleep_or_wait() -> None:
    """Whatever came of their visits."""
    site, clock = Hubs([1.0, 3.0, 7.0], old=30), Clock()
    policy = Revisits(per_day=100.0)
    crawl = begun(policy, clock)
    follow(crawl, site, clock, until=2 * DAY, each=DAY / 100)
    due = sum(int(crawl.frontier.waiting[arm]) for arm in policy.known_arms)
    assert policy.plan.pages == crawl.sleepers.asleep + due > 30


def test_a_copy_counts_as_long_as_the_page_is_there() -> None:
    """Even if a later visit is not a find any more."""
    policy, clock = Revisits(goal="copies"), Clock()
    rewards = iter((5.0, 0.0, 2.0))
    crawl = Crawl(policy, frontier=memory_frontier, goal=lambda _: next(rewards), strict=True, clock=clock, seed=0)
    crawl.add([Link("http://h.test/1", 1, "h.test")])
    for changed in (None, True, True):
        pick = crawl.next()
        assert pick is not None
        crawl.sent(pick.id)
        crawl.report(Outcome(pick=pick, status=200, mime="text/csv", changed=changed))
        kept = policy.frontier.kept(policy.known_arms)
        assert record_of(kept.vectors[0])["weight"] == 5.0
        assert crawl.sleepers.next_due is not None
        clock.now = crawl.sleepers.next_due


def test_a_page_that_is_gone_is_planned_for_no_more() -> None:
    """Neither if it is gone, nor if it is revisited under another key."""
    site, clock = Hubs([1.0, 1.0]), Clock()
    policy = Revisits(per_day=100.0, explore=0.0)
    crawl = begun(policy, clock)
    seen: dict[int, tuple[int, ...]] = {}
    gone = set()
    while len(gone) < 2:
        clock.now += DAY / 100
        if (pick := crawl.next()) is None:
            continue
        if pick.key not in seen or pick.key == 1:
            answer(crawl, pick, site, clock, seen)
            continue
        planned = policy.plan.pages
        crawl.sent(pick.id)
        error = "http_error" if not gone else ""
        crawl.report(Outcome(pick=pick, status=410 if error else 200, error=error, mime="text/html", once=True))
        assert policy.plan.pages == planned - 1
        gone.add(pick.key)


def test_new_links_are_given_up_before_pages_that_are_watched() -> None:
    """The plan forgets what was given up of those."""
    site, clock = Hubs([0.2, 0.2, 50.0, 50.0], old=30), Clock()
    policy = Revisits(per_day=100.0)
    crawl = begun(policy, clock)
    follow(crawl, site, clock, until=DAY, each=DAY / 100)
    clock.now += 20 * DAY
    crawl.wake()
    known = sum(int(crawl.frontier.waiting[arm]) for arm in policy.known_arms)
    new = len(crawl.frontier) - known
    assert known == policy.plan.pages > 20
    assert new > 5
    assert policy.give_up(new - 1) == new - 1
    assert (len(crawl.frontier), policy.plan.pages) == (known + 1, known)
    assert policy.give_up(11) == 11
    assert len(crawl.frontier) == policy.plan.pages == known - 10
    assert crawl.next() is not None


def test_what_is_said_of_a_page_wakes_it_as_far_as_it_proved_right() -> None:
    """A signal wakes a page that sleeps; one of the past, of the future, or of a new page does not."""
    site, clock = Hubs([1.0]), Clock()
    policy = Revisits(per_day=100.0, explore=0.0)
    crawl = begun(policy, clock)
    follow(crawl, site, clock, until=DAY, each=DAY / 100)
    clock.now += 1.0
    while crawl.status().waiting:
        pick = crawl.next()
        assert pick is not None
        answer(crawl, pick, site, clock, {})
    asleep = crawl.sleepers.asleep
    clock.now += 60.0
    crawl.hear([Signal(2, "h.test", modified, "sitemap") for modified in (1.0, clock.now + 10 * DAY)])
    assert crawl.sleepers.asleep == asleep
    for _ in range(30):
        policy.belief.said("h.test", "sitemap", right=True)
    policy.typical = 1e-9
    crawl.wake()
    asleep = crawl.sleepers.asleep
    crawl.hear([Signal(2, "h.test", clock.now - 1, "sitemap")])
    assert crawl.sleepers.asleep == asleep - 1
    picks = [crawl.next() for _ in range(len(crawl.frontier))]  # one of the others may be due by itself
    pick = next(pick for pick in picks if pick is not None and pick.key == 2)
    before = policy.belief.trust("h.test", "sitemap")
    crawl.sent(pick.id)
    crawl.report(Outcome(pick=pick, status=200, mime="text/html", changed=False))
    assert policy.belief.trust("h.test", "sitemap") < before


@pytest.mark.slow
def test_a_crawl_that_was_killed_chooses_what_it_would_have_chosen(tmp_path: Path) -> None:
    """Due times and rates are what they would have been."""
    site = Hubs([1.0, 2.0, 5.0], old=20)
    clock = Clock()
    whole = follow(begun(Revisits(per_day=200.0), clock), site, clock, until=2 * DAY, each=DAY / 200)
    clock, seen, fetched = Clock(), {}, []
    crawl = begun(Revisits(per_day=200.0), clock, job=Job(tmp_path / "0"))
    while clock.now < 2 * DAY:
        if len(fetched) in (30, 31, 90, 200):
            crawl.job.flush()
            copy = shutil.copytree(tmp_path / str(0), tmp_path / f"{len(fetched)}")
            crawl.close()
            shutil.rmtree(tmp_path / "0")
            copy.rename(tmp_path / "0")
            crawl = begun(Revisits(per_day=200.0), clock, job=Job(tmp_path / "0"))
        pick = crawl.next()
        if pick is not None:
            fetched.append((clock.now, pick.key))
            answer(crawl, pick, site, clock, seen)
        clock.now += DAY / 200
    crawl.close()
    assert crawl.state.choices.otherwise == 0
    assert fetched == whole


def test_it_explains_a_visit() -> None:
    """By rates a day, and by the value that a new link would have had."""
    site, clock = Hubs([1.0]), Clock()
    policy = Revisits(per_day=100.0)
    crawl = begun(policy, clock, explain=True)
    follow(crawl, site, clock, until=2 * DAY, each=DAY / 100)
    while True:
        clock.now += DAY / 100
        pick = crawl.next()
        if pick is None:
            continue
        if pick.key == 2:
            break
        answer(crawl, pick, site, clock, {})
    assert crawl.why["visit"] > 5
    assert 4 < crawl.why["targets_a_day"] < 60
    low, high = crawl.why["interval"]
    assert low < crawl.why["changes_a_day"] < high


def test_what_it_plans_for_follows_from_the_mission() -> None:
    """Copies where types are looked for, and the rate that the crawl may use."""
    rates = {}
    for name, mission in (("files", Mission(types=frozenset({"text/csv"}), rate=0.5)), ("none", Mission())):
        policy = Revisits()
        policy.budget_rate = mission.rate
        policy.open(memory_frontier(policy.keeps(mission)), np.random.default_rng(0), mission)
        rates[name] = (policy.keeps_copies, policy.rate)
    assert rates == {"files": (True, 0.5), "none": (False, 2000 / DAY)}


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"goal": "fresh"}, "goal"),
        ({"per_day": 0}, "per_day"),
        ({"longest": 0.0001}, "longest"),
        ({"explore": 1.5}, "explore"),
        ({"discovery": {"theta": 7}}, "discovery"),
        ({"discovery": [1]}, "discovery"),
    ],
)
def test_parameters_that_cannot_be_are_errors(params: dict[str, Any], said: str) -> None:
    """With the name of the parameter."""
    with pytest.raises(ConfigError, match=said):
        Revisits(**params)


def test_the_next_crawl_begins_with_what_was_learned(tmp_path: Path) -> None:
    """By places of new links: those on known pages count for their own places, too. The arms of known pages are
    excluded.
    """
    site, clock = Hubs([2.0, 8.0], old=40), Clock()
    first = Revisits(per_day=100.0)
    follow(begun(first, clock), site, clock, until=3 * DAY, each=DAY / 100)
    assert first._twins, "links appeared on known pages"
    first.save(tmp_path / "learned.npz")
    after = Revisits(per_day=100.0)
    after.load(tmp_path / "learned.npz")
    crawl = begun(after, clock)
    expected: Counter[str] = Counter()
    for name, (pulls, hits, *_) in zip(first.new._names, first.new.arms.known().records.tolist(), strict=True):
        expected[name.removeprefix("new on a known page: ")] += hits * min(1, 5 / max(pulls, 1))
    hits: Counter[str] = Counter()
    for name, (_, n, *_) in zip(after.new._names, after.new.arms.known().records.tolist(), strict=True):
        hits[name] += n
    place = "html/body/main/ul/li/a"
    assert hits[place] == pytest.approx(expected[place])
    assert hits[place] > 5, "more than one arm can say"
    assert {name for name, n in hits.items() if n} == {place}
    fetched = follow(crawl, site, clock, until=clock.now + DAY, each=DAY / 100)
    assert sum(key >= 1000 for _, key in fetched) > 8
    after.save(tmp_path / "learned.npz")
    Revisits().load(tmp_path / "learned.npz")
