"""Hosts that are closed for a while: a set like any other, and passed to the keeper of a crawl when they change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scrapy_focus import Crawl, Job, Link, memory_frontier
from scrapy_focus.core.busy import Busy, parts_of
from scrapy_focus.jobs.journal import read_journal
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scrapy_focus import Policy

HOSTS = [f"h{i}.test" for i in range(6)]


def links(n: int) -> list[Link]:
    """Return links to some hosts in turn."""
    return [Link(f"http://{HOSTS[i % 6]}/{i}", i, HOSTS[i % 6]) for i in range(n)]


@pytest.mark.parametrize("more", [(), ("b",), ("a", "c"), {"a", "b"}, ["c", "c"]])
@pytest.mark.parametrize("closed", [(), ("a",), ("a", "b")])
def test_it_holds_the_hosts_of_both_parts(closed: tuple[str, ...], more: tuple[str, ...]) -> None:
    """Each host is in it once."""
    busy = Busy(frozenset(closed), more)
    assert sorted(busy) == sorted({*closed, *more})
    assert len(busy) == len({*closed, *more})
    assert bool(busy) == bool({*closed, *more})
    assert [host in busy for host in "abcd"] == [host in {*closed, *more} for host in "abcd"]
    assert busy | {"z"} == {*closed, *more, "z"}
    assert busy - {"a"} == {*closed, *more} - {"a"}
    assert repr(busy).startswith("Busy(")


def test_hosts_in_any_other_collection_are_not_closed() -> None:
    """They are busy now, and that is all."""
    assert parts_of(["a"]) == (frozenset(), ["a"])
    assert parts_of(Busy(frozenset("a"), ["b"])) == (frozenset("a"), ["b"])


@pytest.mark.parametrize("policy", [BreadthFirst, BranchingBandit])
def test_nothing_is_chosen_of_closed_hosts(policy: Callable[[], Policy]) -> None:
    """Whatever the policy, it chooses of the hosts that are left, until another set says otherwise."""
    crawl = Crawl(policy(), frontier=memory_frontier, seed=0, strict=True)
    crawl.add(links(60))
    closed = frozenset(HOSTS[:4])
    picks = [crawl.next(Busy(closed, [HOSTS[4]])) for _ in range(10)]
    assert {pick.host for pick in picks if pick is not None} == {HOSTS[5]}
    assert crawl.next(Busy(closed, HOSTS[4:])) is None
    assert crawl.next(Busy(frozenset(HOSTS))) is None
    picks = [crawl.next(Busy(frozenset(HOSTS[1:]))) for _ in range(10)]
    assert {pick.host for pick in picks if pick is not None} == {HOSTS[0]}
    assert crawl.next() is not None


def test_closed_hosts_are_written_down_when_they_change(tmp_path: Path) -> None:
    """A pick names the others only; what closes or opens is one event, however many picks follow."""
    crawl = Crawl(BranchingBandit(), job=Job(tmp_path, every=10**6), seed=0, strict=True)
    crawl.add(links(60))
    for closed in ((), HOSTS[:3], HOSTS[:3], HOSTS[1:4], ()):
        for _ in range(4):
            crawl.next(Busy(frozenset(closed), HOSTS[5:]) if closed else HOSTS[5:])
    crawl.close()
    records = [record for record, _ in read_journal(tmp_path / "journal.1")]
    told = [tuple(map(list, record[1:])) for record in records if record[0] == "close"]
    assert told == [(HOSTS[:3], []), ([HOSTS[3]], [HOSTS[0]]), ([], HOSTS[1:4])]
    assert {record[3] for record in records if record[0] == "pick"} == {(HOSTS[5],)}
