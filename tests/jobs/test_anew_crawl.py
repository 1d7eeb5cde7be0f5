"""Crawls whose policy was lost while links that were known before waited again: a new policy gets all of them."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus import Crawl, Job, Link, Outcome, Placement, State
from scrapy_focus.frontiers.sqlite import frontier as frontier_module
from scrapy_focus.frontiers.sqlite.frontier import Stored
from scrapy_focus.jobs.doctor.check import check_job
from scrapy_focus.jobs.doctor.cures import repair_job
from scrapy_focus.jobs.doctor.status import read_status
from scrapy_focus.policies.bases import Ordering
from tests.jobs.walks import all_waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from scrapy_focus import Pick
    from scrapy_focus.core.policy import Policy

N = 25


class HeadsFirst(Ordering):
    """Sends a HEAD to each link, and then places it before all links that were not probed yet."""

    def rank(self, link: Link, source: Outcome | None) -> float:
        return float(link.state == State.PROBED)

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        return [
            Placement(0, self.rank(link, source), None, "GET" if link.state == State.PROBED else "HEAD")
            for link in links
        ]


class Probing(HeadsFirst):
    """Sends all HEADs before the first GET."""

    def rank(self, link: Link, source: Outcome | None) -> float:
        return -super().rank(link, source)


class Revisiting(Ordering):
    """Fetches pages again when they are linked to again."""

    wants_known = frozenset({State.FETCHED})

    def rank(self, link: Link, source: Outcome | None) -> float:
        return float(link.state == State.FETCHED)


class Choosy(Ordering):
    """Places links at first; a choosy one gives up a random third of them."""

    is_choosy = False

    def rank(self, link: Link, source: Outcome | None) -> float:
        return 0.0

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        return [None if self.is_choosy and self.rng.random() < 1 / 3 else Placement(0, 0.0) for _ in links]


class Refusing(Ordering):
    """Places links at first; one that is created after the loss of its policy gives all up."""

    refuses = False

    def rank(self, link: Link, source: Outcome | None) -> float:
        return 0.0

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        return [None if self.refuses else Placement(0, 0.0) for _ in links]


class Killed(BaseException):
    """The process ends here."""


def link(key: int) -> Link:
    return Link(f"http://h{key % 3}/{key}", key, f"h{key % 3}", key % 4, payload=b"payload %d" % key)


def open_crawl(jobdir: Path, policy: Policy) -> Crawl:
    return Crawl(policy, strict=True, job=Job(jobdir / "focus", every=1000), seed=1)


def answer(crawl: Crawl) -> Pick | None:
    """Fetch one link."""
    pick = crawl.next()
    if pick is not None:
        crawl.sent(pick.id)
        crawl.report(Outcome(pick=pick, status=200, mime="text/html"))
    return pick


def killed(jobdir: Path, policy: Policy, *, fetched: int, again: int = 0, later: int = 0) -> dict[str, Any]:
    """Crawl, kill that with two picks in flight, lose the policy as ``focus-check --fix`` does; return what waited.

    After ``fetched`` outcomes, ``again`` links are found once more; ``later`` outcomes come after the checkpoint.
    """
    crawl = open_crawl(jobdir, policy)
    crawl.add([link(key) for key in range(N)])
    for _ in range(fetched):
        answer(crawl)
    crawl.add([link(key) for key in range(again)])
    flying = [crawl.next(), crawl.next()]
    crawl.checkpoint()
    crawl.job.flush()
    for _ in range(later):
        answer(crawl)
    waiting = {each.key for each, _ in all_waiting(crawl.frontier)} | {pick.key for pick in flying}
    states = dict(zip(range(N), crawl.knows(range(N)), strict=True))
    outcomes = crawl.counts["outcomes"]
    crawl.job.close()
    with closing(sqlite3.connect(jobdir / "focus/frontier.sqlite")) as database, database:
        database.execute("UPDATE notes SET value = x'8005' WHERE name = 'policy'")
    checkup = repair_job(jobdir, say=str)
    assert "dropped the policy" in checkup.done[0]
    return {"waiting": waiting, "states": states, "outcomes": outcomes, "flying": {pick.key for pick in flying}}


def kill_while_placing(jobdir: Path, policy: Policy, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Resume a crawl, and kill it when so many parts are placed again; -1: all, before they are stored."""
    parts, checkpoint = [], Stored.checkpoint

    def counted(self: Stored, notes: Mapping[str, bytes], then: Callable[[], None] | None = None) -> None:
        if len(parts) == part or (part == -1 and "policy" in notes):
            raise Killed
        parts.append(1)
        checkpoint(self, notes, then)

    job = Job(jobdir / "focus", every=1000)
    with monkeypatch.context() as patch:
        patch.setattr(Stored, "checkpoint", counted)
        with pytest.raises(Killed):
            Crawl(policy, strict=True, job=job, seed=1)
    job.close()


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Place only a few links at once."""
    monkeypatch.setattr(frontier_module, "_PLACED_AT_ONCE", 7)


@pytest.mark.few(3)
@pytest.mark.parametrize("kills", [(), (0,), (2, 1), (-1,)], ids=str)
@pytest.mark.parametrize(
    ("policy", "before"),
    [
        (HeadsFirst, {"fetched": 5}),
        (Probing, {"fetched": 30}),
        (Probing, {"fetched": 12, "later": 3}),
        (Revisiting, {"fetched": 12, "again": 8}),
        (Revisiting, {"fetched": 10, "again": 20, "later": 4}),
    ],
)
def test_all_that_waited_waits_again(
    policy: type[Policy], before: dict[str, int], kills: tuple[int, ...], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Links that were probed or fetched before, and those in flight, are queued as before, and are fetched."""
    was = killed(tmp_path, policy(), **before)
    known = {State.PROBED, State.FETCHED}
    for part in kills:
        kill_while_placing(tmp_path, policy(), part, monkeypatch)
        assert check_job(tmp_path, say=str).is_well
    crawl = open_crawl(tmp_path, policy())
    crawl.frontier.check()
    assert crawl.counts["outcomes"] == was["outcomes"]
    assert crawl.recovered == was["flying"]
    found = {each.key: each for each, _ in all_waiting(crawl.frontier)}
    assert found.keys() == was["waiting"]
    assert all((each.url, each.payload) == (link(key).url, link(key).payload) for key, each in found.items())
    states = crawl.knows(range(N))
    assert all(states[key] == state for key, state in was["states"].items() if state in known)
    fetched = []
    while (pick := answer(crawl)) is not None:
        assert (pick.url, pick.payload) == (link(pick.key).url, link(pick.key).payload)
        fetched += [pick.key] if pick.method == "GET" else []
    assert sorted(fetched) == sorted(was["waiting"])
    assert set(crawl.knows(range(N))) == {State.FETCHED}
    crawl.checkpoint()
    crawl.close()
    assert check_job(tmp_path, say=str).is_well
    assert read_status(tmp_path)["links"]["waiting"] == 0


@pytest.mark.parametrize("part", [0, 1, -1])
def test_a_second_attempt_gives_up_the_same_links(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a kill while links are placed again, a random policy does not decide about them twice."""
    killed(tmp_path / "one", Choosy(), fetched=3)
    shutil.copytree(tmp_path / "one", tmp_path / "other")
    monkeypatch.setattr(Choosy, "is_choosy", True)
    waiting_before = read_status(tmp_path / "other")["links"]["waiting"]
    kill_while_placing(tmp_path / "other", Choosy(), part, monkeypatch)
    assert read_status(tmp_path / "other")["links"]["waiting"] == waiting_before
    found = []
    for folder in ("one", "other"):
        crawl = open_crawl(tmp_path / folder, Choosy())
        found.append((sorted(each.key for each, _ in all_waiting(crawl.frontier)), dict(crawl.counts)))
        crawl.close()
    assert found[0] == found[1]
    assert 2 < len(found[0][0]) < N - 3


def test_what_was_in_flight_keeps_its_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new policy may give everything up; pages in flight are fetched, from the same URL."""
    was = killed(tmp_path, Refusing(), fetched=3)
    monkeypatch.setattr(Refusing, "refuses", True)
    crawl = open_crawl(tmp_path, Refusing())
    crawl.frontier.check()
    assert {(each.key, each.url) for each, _ in all_waiting(crawl.frontier)} == {
        (key, link(key).url) for key in was["flying"]
    }
    crawl.close()
