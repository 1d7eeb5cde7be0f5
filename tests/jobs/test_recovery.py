"""Crawls that end at any instant, without any warning: the folder has all events until then."""

from __future__ import annotations

import errno
import os
import pickle
import random
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scrapy_focus import Crawl, Job, PolicyError, ResumeError, State, StorageError
from scrapy_focus.core.events import FORMAT, OLDEST_FORMAT
from scrapy_focus.frontiers.sqlite.frontier import sqlite_frontier
from scrapy_focus.jobs.journal import read_journal
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.focused import Focused
from scrapy_focus.policies.hotqueue import HotQueue
from scrapy_focus.policies.importance import Importance
from scrapy_focus.policies.orderings import BreadthFirst, DepthFirst, Random
from scrapy_focus.policies.tagpath.offline import TagPathOffline
from scrapy_focus.policies.tagpath.policy import TagPath
from tests.jobs.walks import (
    PAGES,
    Circling,
    Divider,
    Hosts,
    Moody,
    Mover,
    Reader,
    Rounds,
    Sampler,
    SometimesLater,
    Walk,
    World,
    all_waiting,
    answer,
    events,
    finish,
    link_to,
    reachable,
)
from tests.made import PDF

if TYPE_CHECKING:
    from pathlib import Path

LEARNING = {
    "bandit": Hosts,
    "heads": partial(TagPath, batch=3, alpha=1.0),
    "tagpath": partial(TagPath, probe=False, accounting="full", blocked=()),
    "reader": Reader,
    "mover": Mover,
    "sampler": Sampler,
    "divider": Divider,
    "focused": partial(Focused, warmup=8, batch=3),
    "offline": partial(TagPathOffline, warmup=12),
    "branching": partial(BranchingBandit, targets=[PDF], words=["page"]),
    "pagerank": partial(Importance, epsilon=0.01, work=30),
    "rounds": Rounds,
    "circling": Circling,
    "hot_queue": partial(HotQueue, words=["good"], base={"opic": 1, "location": 0.5}, max_distance=2, times=1),
}
ALL = LEARNING | {"breadth_first": BreadthFirst, "depth_first": DepthFirst, "random": Random}


def plain(value: Any, known: dict[int, Any] | None = None) -> Any:
    """Return what an object would be pickled as, in values that can be compared."""
    known = {} if known is None else known
    if isinstance(value, (str, bytes, int, float, bool, type(None))):
        return value
    if id(value) in known:
        return "again"
    known[id(value)] = value
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, np.random.Generator):
        return plain(value.bit_generator.state, known)
    if isinstance(value, dict):
        return [(plain(name, known), plain(each, known)) for name, each in value.items()]
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, value))
    if isinstance(value, (list, tuple)):
        return [plain(each, known) for each in value]
    if isinstance(value, type) or callable(value):
        return repr(value)
    made = value.__reduce_ex__(4)
    return [plain(each if not hasattr(each, "__next__") else list(each), known) for each in made if each is not None]


def remembered(crawl: Crawl) -> dict[str, Any]:
    """Return all that a crawl has to remember if it is killed now; what is in flight is queued again."""
    frontier, flying = crawl.frontier, list(crawl.frontier.flying.values())
    policy = pickle.loads(pickle.dumps(crawl.policy))
    policy.now = 0.0  # the clock runs on between two runs
    for pick in flying:
        policy.release(pick)
    waiting = {
        link.key: (
            link.url,
            link.host,
            link.depth,
            link.payload,
            place.arm,
            place.rank,
            place.method,
            plain(place.memo),
            place.after,
        )
        for link, place in all_waiting(frontier)
    }
    for pick in flying:
        arm = pick.arm
        if isinstance(policy, Divider):  # its arm may have been divided since
            arm = frontier._pool.follow(arm, pick.memo.tobytes())
        waiting[pick.key] = (
            pick.url, pick.host, pick.depth, pick.payload, arm, pick.rank, pick.method, plain(pick.memo),
            0.0,
        )  # fmt: skip
    keys = [*range(PAGES + 2), *range(1000, 1000 + PAGES)]
    # what an adapter counts is noted with the next outcome
    counts = Counter({name: n for name, n in crawl.counts.items() if name not in ("recovered", "requeued")})
    counts["released"] += len(flying)
    return {
        "policy": plain(policy),
        "waiting": waiting,
        "states": [State.WAITING if state == State.FLYING else state for state in frontier.states(keys)],
        "counts": +counts,
        "used": crawl.budget.requests_used,
        "closed": crawl.state.choices.closed,
        "rewards": crawl.rewards,
        "found_at": list(crawl.found_at),
        "plateau": None if crawl.stop is None else crawl.stop.state(),
        "stranded": list(crawl.state.choices._stranded),
    }


class Taped:
    """A walk to its end, with the files and the expected state after each step."""

    def __init__(
        self, world: World, folder: Path, *, seed: int = 0, steps: int = 10_000, every: int = 1, **how: Any
    ) -> None:
        self.world = world
        self.saved: list[tuple[Path, dict[str, Any], int, set[int]]] = []
        crawl, lines = world.open(), [0]
        write = crawl.log._write

        def counted(**fields: Any) -> None:
            lines[0] += 1
            write(**fields)

        crawl.log._write = counted
        rng = random.Random(seed)
        for number, _ in enumerate(Walk(crawl, rng, **how).steps()):
            if number == steps:
                break
            if number % every == 0:
                crawl.job.flush()
                flying = {pick.id for pick in crawl.frontier.flying.values()}
                saved = world.save(folder / str(number))
                self.saved.append((saved, remembered(crawl), lines[0], flying))
        crawl.close()
        self.lines = world.lines()

    def check(self, copy: Path, expected: dict[str, Any], n_lines: int, flying: set[int]) -> None:
        """Open the crawl as it was saved, and compare."""
        self.world.restore(copy)
        crawl = self.world.open()
        got = remembered(crawl)
        assert not crawl.status().in_flight
        assert len(crawl.recovered) == len(flying)
        crawl.frontier.check()
        crawl.close()
        for name, value in expected.items():
            assert got[name] == value, f"{name} differs in {copy}"
        lines = self.world.lines()
        assert lines[:n_lines] == self.lines[:n_lines]
        assert sorted(lines[n_lines:]) == sorted(f'{{"event": "release", "id": {id_}}}' for id_ in flying)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.slow)])
def test_nothing_is_forgotten(every: int, name: str, tmp_path: Path) -> None:
    """After any step, the files are enough to resume with the same links, counts, budget, log and learning."""
    world = World(tmp_path / "world", ALL[name], goal=SometimesLater(), plateau={"window": 3, "patience": 10**6})
    tape = Taped(world, tmp_path / "saved", every=min(every, 3) if name == "bandit" else every)
    assert len(tape.saved) > 15
    for saved in tape.saved:
        tape.check(*saved)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["bandit", "divider", "branching"])
@pytest.mark.parametrize("every", [5, 10**6])
def test_closed_hosts_are_closed_again(every: int, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """After any step of a crawl whose hosts close and open, the same are closed, and the same choices follow."""
    world = World(tmp_path / "world", ALL[name], every=every)
    tape = Taped(world, tmp_path / "saved", every=6, closes=True)
    closed = [expected["closed"] for _, expected, *_ in tape.saved]
    assert len(set(closed)) > 4
    for saved in tape.saved:
        tape.check(*saved)
    assert "choices differently" not in caplog.text


FEW = 7  # links that may be queued


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["bandit", "heads", "mover", "divider", "branching", "depth_first"])
def test_what_was_given_up_is_given_up_again(name: str, tmp_path: Path) -> None:
    """After any step of a crawl with few queued links, the same links are left, even if more are allowed by then."""
    world = World(tmp_path / "world", ALL[name], goal=SometimesLater(), most_waiting=FEW)
    tape = Taped(world, tmp_path / "saved", every=5)
    dropped = [expected["counts"]["link/dropped"] for _, expected, *_ in tape.saved]
    assert len(set(dropped)) > 2
    world.most_waiting = None
    for saved in tape.saved:
        tape.check(*saved)


@pytest.mark.parametrize("name", ["bandit", "divider"])
def test_a_kill_before_links_are_given_up(name: str, tmp_path: Path) -> None:
    """Killed with too many links queued and none given up yet, a crawl starts the next run with that."""
    world = World(tmp_path / "world", ALL[name], most_waiting=FEW, every=10**6)
    crawl = world.open()
    size, found = 0, 0
    for _ in Walk(crawl, random.Random(2), at_once=1).steps():
        records = list(read_journal(world.journal()))
        ends = [0, *(end for _, end in records)]
        is_cut = ends[-1] > size and records[-1][0][0] == "give_up"
        size = ends[-1]
        if not is_cut:
            continue
        found += 1
        expected = remembered(crawl)
        copy = world.save(tmp_path / f"copy-{found}")
        crawl_then = World(copy, ALL[name], most_waiting=FEW, every=10**6)
        os.truncate(crawl_then.journal(), ends[-2])
        again = crawl_then.open()
        got = remembered(again)
        again.close()
        assert {**got, "policy": 0, "found_at": 0} == {**expected, "policy": 0, "found_at": 0}
    crawl.close()
    assert found > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bandit", "heads", "mover"])
def test_a_kill_within_a_checkpoint(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its commit, and after it before the older journals are removed, nothing is missing or doubled."""
    monkeypatch.setattr(Job, "_remove_before", lambda self, number: None)
    world = World(tmp_path / "world", ALL[name], goal=SometimesLater(), every=6)
    tape = Taped(world, tmp_path / "saved", every=7)
    for (older, *_), (newer, *expected) in zip(tape.saved, tape.saved[2:], strict=False):
        tape.check(newer, *expected)
        for path in [*(newer / "focus").glob("frontier.sqlite*")]:
            path.unlink()
        for path in (older / "focus").glob("frontier.sqlite*"):
            shutil.copy(path, newer / "focus")
        tape.check(newer, *expected)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["bandit", "tagpath"])
def test_a_record_that_is_cut_off_is_left_out(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Wherever a journal ends, or is damaged, all before it counts; and it resumes there."""
    world = World(tmp_path / "world", ALL[name], every=10**6)
    tape = Taped(world, tmp_path / "saved", steps=90)
    sizes = {(copy / "focus/journal.1").stat().st_size: saved for copy, *saved in tape.saved}
    last, rng = tape.saved[-1][0], random.Random(1)
    ends = [0, *(end for _, end in read_journal(last / "focus/journal.1"))]
    for _ in range(40):
        at = rng.randrange(ends[-1])
        end = max(end for end in ends if end <= at)
        if end not in sizes or end == at:
            continue
        cut = tmp_path / "cut"
        shutil.copytree(last, cut)
        content = bytearray((cut / "focus/journal.1").read_bytes())
        if rng.random() < 0.5:
            del content[at:]
        else:
            content[at] ^= 1 << rng.randrange(8)
        (cut / "focus/journal.1").write_bytes(content)
        caplog.clear()
        if len(content) > at and end != ends[-2]:  # whole events after the damage are not dropped silently
            world.restore(cut)
            with pytest.raises(
                StorageError, match=rf"damaged at byte {end:,}, and \d+ later events are intact.*focus check"
            ):
                world.open()
        else:
            tape.check(cut, *sizes[end])
            assert f"the last {len(content) - end} bytes of" in caplog.text
        shutil.rmtree(cut)
    world.restore(last)
    os.truncate(world.journal(), ends[-1] - 1)
    crawl = world.open()
    finish(crawl, rng)
    crawl.close()
    kept = remembered(crawl)
    crawl = world.open()
    assert remembered(crawl) == kept
    crawl.close()


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("name", "log", "most_waiting"),
    [
        *((name, "log.jsonl", None) for name in ALL if name != "sampler"),
        ("tagpath", "log.jsonl.gz", None),
        *((name, "log.jsonl", FEW) for name in ("bandit", "mover", "divider", "branching")),
    ],
)
def test_choices_are_those_of_a_crawl_that_was_not_killed(
    name: str, log: str, most_waiting: int | None, tmp_path: Path
) -> None:
    """Killed while nothing is in flight, a crawl continues with the same log, line by line, and learns the same."""
    whole = World(tmp_path / "whole", ALL[name], log=log, most_waiting=most_waiting)
    crawl = whole.open()
    finish(crawl, random.Random(3), at_once=1)
    crawl.close()
    killed = World(tmp_path / "killed", ALL[name], log=log, seed=1, every=7, most_waiting=most_waiting)
    rng, kills = random.Random(3), 0
    crawl = killed.open()
    walk = Walk(crawl, rng, at_once=1)
    while True:
        for number, step in enumerate(walk.steps()):
            if step == "report" and number > 17:
                break
        else:
            break
        kills += 1
        crawl.job.flush()
        copy = killed.save(tmp_path / f"copy-{kills}")
        crawl.close()
        killed.seed = 99  # it resumes with its stored random stream
        killed.restore(copy)
        crawl = killed.open()
        walk = Walk(crawl, rng, at_once=1)
    crawl.close()
    assert kills >= (4 if most_waiting is None else 1)
    assert events(killed.log) == events(whole.log)
    one, two = whole.open(), killed.open()
    assert remembered(one) == remembered(two)
    one.close()
    two.close()


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_with_a_policy_that_chooses_otherwise(
    seed: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A policy that decides differently the second time changes nothing that happened; a warning says so."""
    world, rng = World(tmp_path / "world", Moody, goal=SometimesLater(), every=40), random.Random(seed)
    fetched, in_flight = Counter[int](), Counter[int]()
    for kill in range(12):
        crawl = world.open()
        walk = Walk(crawl, rng)
        for number, _ in enumerate(walk.steps()):
            if number == 14:
                break
        crawl.job.flush()
        copy = world.save(tmp_path / f"copy-{kill}")
        in_flight.update(pick.key for pick in crawl.frontier.flying.values())
        fetched.update(walk.fetched)
        crawl.close()
        world.restore(copy)
    assert "choices differently" in caplog.text
    crawl = world.open()
    walk = finish(crawl, rng)
    fetched.update(walk.fetched)
    crawl.frontier.check()
    crawl.close()
    assert fetched.keys() >= reachable()
    assert all(n <= 2 + in_flight[key] for key, n in fetched.items()), "a HEAD and a GET, and what was in flight"
    log = events(world.log)
    picked = [event["id"] for event in log if event["event"] == "pick"]
    ended = [event["id"] for event in log if event["event"] != "pick"]
    assert len(set(picked)) == len(picked)
    assert sorted(picked) == sorted(ended)


def test_a_reward_that_is_owed_is_asked_for_again(tmp_path: Path) -> None:
    """A page without a reward when the process ended is fetched again, and its reward counts once."""
    world = World(tmp_path / "world", Hosts, goal=SometimesLater())
    crawl = world.open()
    crawl.add([link_to(0)])
    pick = crawl.next()
    assert crawl.sent(pick.id)
    crawl.report(answer(pick))
    copy = world.save(tmp_path / "copy")
    assert crawl.reward(pick.id, 1.0)
    crawl.close()
    world.restore(copy)
    crawl = world.open()
    assert not crawl.reward(pick.id, 1.0)
    assert crawl.recovered == {pick.key}
    assert crawl.rewards == 0
    again = crawl.next()
    assert again.key == pick.key
    assert again.id != pick.id
    assert crawl.sent(again.id)
    crawl.report(answer(again))
    assert crawl.reward(again.id, 1.0)
    assert (crawl.rewards, crawl.budget.requests_used) == (1.0, 2)
    crawl.close()


@pytest.mark.parametrize("at_once", [1, 5])
def test_a_budget_is_kept_to_over_all_runs(at_once: int, tmp_path: Path) -> None:
    """Whenever it is killed, a crawl sends exactly as many requests as it may."""
    world, rng, sent = World(tmp_path / "world", Hosts, budget=25), random.Random(5), []
    for kill in range(100):
        crawl = world.open()
        send, receive = crawl.sent, crawl.received
        crawl.sent = lambda pick_id=None: send(pick_id) and not sent.append(1)  # noqa: B023 (called in this round only)
        crawl.received = lambda size: (size is None and sent.pop(), receive(size))  # noqa: B023
        walk = Walk(crawl, rng, at_once=at_once)
        for number, _ in enumerate(walk.steps()):
            if number == 9 or crawl.finished():
                break
        crawl.job.flush()
        copy, over = world.save(tmp_path / f"copy-{kill}"), crawl.finished()
        crawl.close()
        world.restore(copy)
        if over:
            break
    assert over == "budget_requests"
    assert len(sent) == 25
    crawl = world.open()
    assert crawl.budget.requests_used == 25
    assert crawl.next() is None
    crawl.close()


@pytest.mark.parametrize("full_at", [1, 2, 7, 30])
def test_a_disk_that_fills_up(full_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call that could not be written down fails, and so do all later ones; what was written before is enough."""
    world = World(tmp_path / "world", Hosts, every=10**6)
    crawl = world.open()
    journal, calls, write = world.journal(), [0], os.write

    def written(file: int, content: bytes) -> int:
        if not os.path.samestat(os.fstat(file), journal.stat()):
            return write(file, content)
        calls[0] += 1
        if calls[0] > full_at:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, content[: len(content) // 2] if calls[0] == full_at else content)

    monkeypatch.setattr("os.write", written)
    steps, step, before = Walk(crawl, random.Random(2)).steps(), "", {}
    with pytest.raises(StorageError, match=r"journal\.1 cannot be written: .*No space left.*make room"):  # noqa: PT012
        while step is not None:
            before = remembered(crawl)
            step = next(steps, None)
    monkeypatch.undo()
    size = journal.stat().st_size
    with pytest.raises(StorageError):
        crawl.add([link_to(3)])
    with pytest.raises(StorageError):
        crawl.sent()
    crawl.close()
    assert journal.stat().st_size == size
    assert sum(1 for _ in read_journal(journal)) == full_at - 1
    later = world.open()
    got = remembered(later)
    later.close()
    assert {name: value for name, value in got.items() if before[name] != value} == {}


def test_a_folder_is_for_one_process(tmp_path: Path) -> None:
    """While a process has a crawl open, others see its id; when it is gone, in whatever way, they may open it."""
    world = World(tmp_path / "world", BreadthFirst)
    world.open().close()
    code = f"""
from pathlib import Path
from scrapy_focus import Job
job = Job(Path({str(tmp_path / "world/focus")!r}))
print("open", flush=True)
input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "open\n"
        with pytest.raises(ResumeError, match=f"is in use by process {other.pid}: stop it first"):
            world.open()
        other.kill()
        other.wait()
    world.open().close()


def test_a_folder_is_free_again_after_a_refusal(tmp_path: Path) -> None:
    """A refused process can try again with other settings."""
    world = World(tmp_path / "world", BreadthFirst)
    world.open().close()
    job = Job(world.folder / "focus")
    with pytest.raises(ResumeError, match=r"BreadthFirst and is .*Hosts"):
        Crawl(Hosts(), goal=world.goal, job=job)
    job.close()
    world.open().close()


def test_what_cannot_be_pickled_is_refused_at_once(tmp_path: Path) -> None:
    """A policy that could not be stored does not begin; its folder is as good as new."""
    policy = Hosts()
    policy.numbers = {"x": lambda: 1}
    job = Job(tmp_path / "focus")
    with pytest.raises(PolicyError, match=r"the policy Hosts cannot be stored.*__getstate__"):
        Crawl(policy, job=job)
    job.close()
    job = Job(tmp_path / "focus")
    assert job.is_new
    Crawl(Hosts(), job=job).close()


def test_a_kill_before_the_first_checkpoint(tmp_path: Path) -> None:
    """A folder in which nothing was stored yet counts as new, whatever files it has."""
    Job(tmp_path / "world/focus").close()
    sqlite_frontier(tmp_path / "world/focus/frontier.sqlite").close()  # made before the first journal is
    (tmp_path / "world/focus/journal.1").write_bytes(b"")
    world = World(tmp_path / "world", BreadthFirst)
    crawl = world.open()
    assert not crawl.recovered
    finish(crawl, random.Random(0))
    assert crawl.counts["outcomes"] >= len(reachable())
    crawl.close()


def test_journals_that_are_missing_are_named(tmp_path: Path) -> None:
    """Without the events after the last checkpoint, a crawl does not resume as if nothing had happened."""
    world = World(tmp_path / "world", BreadthFirst)
    crawl = world.open()
    crawl.add([link_to(0)])
    crawl.close()
    world.journal().unlink()
    with pytest.raises(StorageError, match=r"journal\.1 is missing.*put it back"):
        world.open()


def test_an_older_format_is_named(tmp_path: Path) -> None:
    """Files of version 0.1.0 are distinguished from missing ones."""
    (tmp_path / "focus").mkdir()
    (tmp_path / "focus/crawl.json").write_text("{}")
    with pytest.raises(ResumeError, match=r"written by scrapy_focus 0\.1\.0.*another JOBDIR"):
        Job(tmp_path / "focus")
    assert [path.name for path in (tmp_path / "focus").iterdir()] == ["crawl.json"]


def test_another_format_is_named(tmp_path: Path) -> None:
    """Files of a later version are refused, and not changed."""
    world = World(tmp_path / "world", BreadthFirst)
    world.open().close()
    with sqlite3.connect(tmp_path / "world/focus/frontier.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(
        ResumeError,
        match=rf"has format 99, of a later version of scrapy_focus; this one reads {OLDEST_FORMAT} to {FORMAT}: .*another JOBDIR",
    ):
        world.open()
