"""Every frontier keeps the promises of ``core.frontier``, in memory and in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scrapy_focus import FrontierError, Link, Placement, State, check_drawn, check_ranked, memory_frontier
from scrapy_focus.core.frontier import Drawn, Frontier, Ranked, Ranks, Vectors
from scrapy_focus.frontiers.sqlite.frontier import sqlite_frontier

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from scrapy_focus.core.frontier import Keeps


RANKS = Ranks()


def stored_frontier(keeps: Keeps = RANKS) -> Any:
    """Return a new frontier in a temporary file."""
    return sqlite_frontier(None, keeps)


MAKERS = [memory_frontier, stored_frontier]


def members(protocol: type) -> set[str]:
    """Return what a protocol asks for besides a length."""
    return {name for name in vars(protocol) if not name.startswith("_")}


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("protocol", "keeps"), [(Ranked, Ranks()), (Drawn, Vectors(3))])
def test_frontiers_have_what_is_promised(make: Callable[..., Any], protocol: type, keeps: Keeps) -> None:
    """What a policy keeps decides which of the two protocols its frontier has, and the other one it has not."""
    frontier = make(keeps)
    assert all(hasattr(frontier, name) for name in members(Frontier) | members(protocol))
    other = {Ranked: "take_drawn", Drawn: "pop"}[protocol]
    assert not hasattr(frontier, other)
    frontier.close()


def test_protocols_are_small() -> None:
    """A ledger has ten members, with its length; an order has at most ten more."""
    assert len(members(Frontier)) + 1 == 10
    assert len(members(Ranked)) == 7
    assert len(members(Drawn)) == 10


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", MAKERS)
def test_promises_are_kept(make: Callable[..., Any], seed: int) -> None:
    """Over random operations a frontier says and does what a dictionary would."""
    check_ranked(make, seed=seed, steps=700)
    check_drawn(make, seed=seed, steps=500)


@pytest.mark.parametrize("keeps", [Ranks(), Vectors(2)])
def test_everything_comes_back_after_a_checkpoint(keeps: Keeps, tmp_path: Path) -> None:
    """A frontier that is opened again has every link, state and pick in flight as they were."""
    frontier = sqlite_frontier(tmp_path / "frontier", keeps)
    links = [Link(f"http://h{i % 3}/{i}", i, f"h{i % 3}", i, payload=bytes([i])) for i in range(40)]
    places = [Placement(i % 4, 0.0, None, "HEAD" if i % 5 == 0 else "GET") for i in range(40)]
    frontier.push(links, places, origin=2)
    picks = [frontier.take(i) for i in range(6)]
    for pick in picks[:3]:
        frontier.settle(pick)
    frontier.push([Link("", 50)], [None])
    frontier.checkpoint({"crawl": b"some bytes"})
    frontier.close()
    again = sqlite_frontier(tmp_path / "frontier", keeps)
    again.check()
    assert again.notes == {"crawl": b"some bytes"}
    names = ["PROBED", "FETCHED", "FETCHED", *["FLYING"] * 3, "WAITING", "NEW", "GIVEN_UP"]
    assert [state.name for state in again.states([*range(7), 40, 50])] == names
    assert repr(again.flying) == repr({pick.id: pick for pick in picks[3:]})
    for pick in picks[3:]:
        again.release(pick)
    taken = [again.take(key) for key in range(3, 40)]
    got = [(pick.url, pick.key, pick.host, pick.depth, pick.payload, pick.arm, pick.method) for pick in taken]
    given = zip(links, places, strict=True)
    wanted = [(link.url, link.key, link.host, link.depth, link.payload, at.arm, at.method) for link, at in given]
    assert got == wanted[3:]
    assert {pick.origin for pick in taken} == {2}
    assert min(pick.id for pick in taken) > max(pick.id for pick in picks)
    again.check()
    again.close()


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("keeps", [Ranks(), Vectors(2)])
def test_a_pick_gets_the_id_that_is_asked_for(make: Callable[..., Any], keeps: Keeps) -> None:
    """Later ids are larger, and one that is in flight is refused."""
    frontier = make(keeps)
    frontier.push([Link(f"http://h/{i}", i, "h") for i in range(6)], [Placement(0, 0.0)] * 6)
    assert frontier.take(2, pick_id=40).id == 40
    assert frontier.take(77, pick_id=40) is None
    with pytest.raises(FrontierError, match="pick 40 is in flight already"):
        frontier.take(3, pick_id=40)
    assert frontier.states([3]) == [State.WAITING]
    assert frontier.take(3).id == 41
    assert frontier.take(4, pick_id=7).id == 7
    assert frontier.take(5).id == 42
    frontier.check()
    frontier.close()


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("keeps", [Ranks(), Vectors(2)])
def test_what_was_given_up_is_not_what_was_fetched(make: Callable[..., Any], keeps: Keeps) -> None:
    """Keys of a redirect are fetched where they are new or given up; both kinds may be placed again."""
    frontier = make(keeps)
    links = [Link(f"http://h/{i}", i, "h") for i in range(8)]
    frontier.push(links, [None, None, *[Placement(0, 0.0)] * 6])
    flying, pick = frontier.take(2), frontier.take(3)
    head = frontier.take(4)
    frontier.settle(head._replace(method="HEAD"))
    frontier.settle(pick, also=[0, 2, 3, 4, 5, 99])
    names = ["FETCHED", "GIVEN_UP", "FLYING", "FETCHED", "PROBED", "WAITING", "FETCHED"]
    assert [state.name for state in frontier.states([0, 1, 2, 3, 4, 5, 99])] == names
    frontier.push(links, [None] * 8)
    assert [state.name for state in frontier.states([0, 1, 2, 3, 4, 5, 99])] == names
    assert frontier.push(links[:5], [Placement(0, 0.0)] * 5) == 4
    frontier.settle(flying)
    names = ["WAITING", "WAITING", "FETCHED", "WAITING", "WAITING"]
    assert [state.name for state in frontier.states(range(5))] == names
    frontier.check()
    frontier.close()
