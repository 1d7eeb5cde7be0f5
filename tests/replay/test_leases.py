"""Simulated crawls with several workers, who hold picks that were chosen ahead."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from handmade import GRAPHS, HOST, Watching, course, file, graph, page, site_of
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_focus import Bandit, Budget, ConfigError, FilesGoal
from scrapy_focus.core.outstanding import LEAST, most_out
from scrapy_focus.lab.replay.latency import LogNormal
from scrapy_focus.lab.replay.leases import Desk, Leases
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.policies.orderings import BreadthFirst, Random
from tests.examples import n_examples

if TYPE_CHECKING:
    from collections.abc import Collection

    from scrapy_focus import Link, Pick
    from scrapy_focus.lab.recordings.format import RecordedSite


class Asked(NamedTuple):
    """What a desk reads of a pick."""

    host: str


def flat(folder: Path, pages: int, hosts: int = 1) -> RecordedSite:
    """A page that links to so many others, in turns on each of so many hosts, with a file on each."""
    names = [HOST, *(f"http://h{i}.a.example" for i in range(1, hosts))]
    paths = [f"{names[i % hosts]}/p{i}" for i in range(pages)]
    answers = {path: page(f"/{i}.csv") for i, path in enumerate(paths)}
    files = {f"{path.rpartition('/')[0]}/{i}.csv": file(f"{i}") for i, path in enumerate(paths)}
    return site_of(folder, {"/": page(*paths), **answers, **files})


class Counting(Watching):
    """A :class:`Watching` that notes how many of its picks were out, in all and by host, when each was chosen."""

    def __init__(self) -> None:
        super().__init__()
        self.chosen: list[tuple[int, int]] = []  # those that were learned by then, and those that were out
        self.on: dict[str, int] = {}
        self.most_on = 0

    def select(self, busy: Collection[str]) -> Pick | None:
        pick = super().select(busy)
        if pick is not None:
            self.on[pick.host] = self.on.get(pick.host, 0) + 1
            self.most_on = max(self.most_on, self.on[pick.host])
            self.chosen.append((len(self.learnt), sum(self.on.values())))
        return pick

    def learn(self, outcome: Any) -> None:
        self.on[outcome.pick.host] -= 1
        super().learn(outcome)


def test_slots_of_one_worker_are_picks_in_flight(tmp_path: Path) -> None:
    """Without picks that lie ready, one worker is a crawl with so many in flight, request by request."""
    site = flat(tmp_path, 60, hosts=3)
    for slots in (1, 5, 16):
        plain, leased = (
            simulate(Random(), FilesGoal(), site, concurrency=how, latency=LogNormal(0.2), seed=2)
            for how in (slots, Leases(slots=slots))
        )
        assert plain.asked == leased.asked
        assert np.array_equal(plain.seconds, leased.seconds)
        assert plain.counts == leased.counts


def test_what_lies_ready_was_chosen_with_what_was_known_then(tmp_path: Path) -> None:
    """As many picks are in flight as are downloaded and ready; at most as many download as there are slots."""
    site = flat(tmp_path, 100)
    policy = Counting()
    harvest = simulate(policy, FilesGoal(), site, concurrency=Leases(slots=4, ahead=6), latency=1.0)
    assert max(out for _, out in policy.chosen) == 10
    assert [at for at, _ in policy.chosen[1:12]] == [1] * 10 + [2]
    assert np.bincount(harvest.seconds.astype(int))[2:-1].max() == 4
    assert harvest.seconds[-1] == 1 + np.ceil((harvest.requests - 1) / 4)
    assert harvest.found[-1] == 100


def test_what_lies_ready_leaves_in_the_order_in_which_it_was_chosen(tmp_path: Path) -> None:
    """Whatever was learned meanwhile."""
    site = flat(tmp_path, 30)
    policy = Watching()
    harvest = simulate(policy, FilesGoal(), site, concurrency=Leases(slots=1, ahead=5), latency=1.0)
    assert course(harvest, site) == [path for what, path in policy.seen if what == "select"]


def test_a_host_stays_with_a_worker_while_one_of_its_picks_is_out() -> None:
    """Then the worker with the fewest takes it; picks for full workers are skipped."""
    desk = Desk(Leases(workers=2, slots=1, ahead=1))
    a, b, c = (Asked(host) for host in "abc")
    for pick in (a, b, a):
        desk.lay_ready(pick)  # type: ignore[arg-type]
    assert desk.closed() == {"a"}
    assert desk.has_room(lambda: (0, 3))
    assert [desk.to_start(), desk.to_start(), desk.to_start()] == [a, b, None]
    desk.lay_ready(c)  # type: ignore[arg-type]
    assert not desk.has_room(lambda: (0, 3))
    assert desk.to_start() is None
    desk.end(b)  # type: ignore[arg-type]
    assert desk.to_start() is c
    desk.end(a)  # type: ignore[arg-type]
    assert desk.to_start() is a
    desk.end(a)  # type: ignore[arg-type]
    desk.lay_ready(b)  # type: ignore[arg-type]
    assert desk.closed() == frozenset()
    desk.lay_ready(b)  # type: ignore[arg-type]
    assert desk.closed() == {"b"}


def test_a_policy_that_learns_has_few_out_at_first(tmp_path: Path) -> None:
    """As in a live crawl with only a number; with leases, as many are in flight as these allow."""
    site = flat(tmp_path, 150)
    learns, ruled, free = Counting(), Counting(), Counting()
    simulate(learns, FilesGoal(), site, concurrency=64, latency=LogNormal(1.0))
    simulate(ruled, FilesGoal(), site, concurrency=Leases(slots=64, most_out=most_out), latency=LogNormal(1.0))
    simulate(free, FilesGoal(), site, concurrency=Leases(slots=64), latency=LogNormal(1.0))
    assert learns.chosen == ruled.chosen
    assert all(out <= most_out(known) for known, out in learns.chosen)
    assert max(out for _, out in learns.chosen) > 2 * LEAST
    assert max(out for _, out in free.chosen) == 64


def test_one_host_is_crawled_by_one_worker(tmp_path: Path) -> None:
    """However many there are; many hosts use all of them."""
    leases = Leases(workers=8, slots=2)
    few, many = Counting(), Counting()
    simulate(few, FilesGoal(), flat(tmp_path, 100), concurrency=leases, latency=1.0)
    (tmp_path / "many").mkdir()
    simulate(many, FilesGoal(), flat(tmp_path / "many", 100, hosts=25), concurrency=leases, latency=1.0)
    assert max(out for _, out in few.chosen) == 2
    assert max(out for _, out in many.chosen) == 16


def test_no_more_of_a_host_are_out_than_may_be(tmp_path: Path) -> None:
    """Nothing is chosen where all hosts have that many."""
    site = flat(tmp_path, 100, hosts=3)
    policy = Counting()
    harvest = simulate(policy, FilesGoal(), site, concurrency=Leases(slots=12, per_host=2), latency=1.0)
    assert policy.most_on == 2
    assert max(out for _, out in policy.chosen) == 6
    assert harvest.found[-1] == 100


@pytest.mark.parametrize("workers", [1, 8, 32])
def test_a_bound_holds_with_any_number_of_workers(tmp_path: Path, workers: int) -> None:
    """A number, or a rule that is asked at each choice."""
    site = flat(tmp_path, 150, hosts=40)
    fixed, ruled = Counting(), Counting()
    simulate(fixed, FilesGoal(), site, concurrency=Leases(workers=workers, slots=32, most_out=7), latency=1.0)
    simulate(ruled, FilesGoal(), site, concurrency=Leases(workers=workers, slots=64, most_out=most_out), latency=1.0)
    assert max(out for _, out in fixed.chosen) == 7
    assert all(out <= most_out(known, 40) for known, out in ruled.chosen)
    assert max(out for _, out in ruled.chosen) > 2 * LEAST
    assert ruled.chosen[-1][0] > 250


@settings(max_examples=n_examples(20), deadline=None)
@given(GRAPHS, st.integers(1, 30), st.integers(1, 3), st.integers(1, 3), st.integers(0, 3), st.integers(1, 3))
def test_requests_never_exceed_the_budget_whoever_holds_them(
    drawn: list[tuple[str, list[int], int]], budget: int, workers: int, slots: int, ahead: int, per_host: int
) -> None:
    """Every pick ends once, what was never sent is released, and without a budget all is asked for."""
    leases = Leases(workers=workers, slots=slots, ahead=ahead, per_host=per_host)
    with tempfile.TemporaryDirectory() as folder:
        site = graph(Path(folder), drawn)
        alone = simulate(BreadthFirst(), FilesGoal(), site, ignored=())
        whole = simulate(BreadthFirst(), FilesGoal(), site, ignored=(), concurrency=leases, latency=LogNormal(0.2))
        part = simulate(BreadthFirst(), FilesGoal(), site, concurrency=leases, latency=LogNormal(0.2), budget=budget)
        assert set(whole.pages.tolist()) == set(alone.pages.tolist())
        assert whole.counts["released"] == 0
        assert part.requests <= budget
        assert part.counts["selected"] == part.counts["outcomes"] + part.counts["released"] == len(part.asked)
        site.close()


def test_what_lies_ready_at_the_end_is_released(tmp_path: Path) -> None:
    """Where the time is over, only what is downloaded then still arrives."""
    site = flat(tmp_path, 100)
    leases = Leases(slots=3, ahead=20)
    harvest = simulate(BreadthFirst(), FilesGoal(), site, budget=Budget(seconds=4), concurrency=leases, latency=1.0)
    assert harvest.stopped == "budget_seconds"
    assert harvest.requests == 1 + 3 * 3
    assert harvest.counts["released"] == 20


class Sections(Bandit):
    """A bandit of folders."""

    alpha = 0.3

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def arm(self, link: Link) -> int:
        return self.numbers.setdefault(link.url.split("/")[3], len(self.numbers))


@pytest.mark.slow
def test_the_bound_saves_most_of_what_many_out_cost(tmp_path: Path) -> None:
    """Where there is something to learn: the files are in one of many folders."""
    folders = {f"/s{i}/": page(*(f"/s{i}/p{j}" for j in range(30))) for i in range(12)}
    pages = {f"/s{i}/p{j}": page(f"/s{i}/{j}.csv") if i == 7 else page() for i in range(12) for j in range(30)}
    files = {f"/s7/{j}.csv": file(f"{j}") for j in range(30)}
    site = site_of(tmp_path, {"/": page(*folders), **folders, **pages, **files})
    used = []
    for bound in (1, most_out, None):
        leases = Leases(slots=64, ahead=64, most_out=bound)
        runs = [simulate(Sections(), FilesGoal(), site, concurrency=leases, latency=1.0, seed=i) for i in range(3)]
        used.append(np.mean([np.argmax(each.found >= 27) for each in runs]))
    one, bounded, free = used
    assert free > 1.5 * one
    assert bounded - one < (free - one) / 3


@pytest.mark.parametrize(
    "mistake",
    [
        {"workers": 0}, {"slots": 0}, {"ahead": -1}, {"per_host": 0}, {"most_out": 0}, {"slots": 1.5}, {"workers": "8"},
        {"most_out": "all"},
    ],
)  # fmt: skip
def test_leases_that_make_no_sense_are_mistakes(mistake: dict[str, Any]) -> None:
    """Before anything is simulated; the message names what was given."""
    with pytest.raises(ConfigError, match=next(iter(mistake))):
        Leases(**mistake)
