"""Every frontier keeps the promises of ``frontiers.base``."""

from __future__ import annotations

from inspect import isabstract
from typing import TYPE_CHECKING

import pytest

import scrapy_focus.frontiers
from scrapy_focus import Frontier, Link, Placement, check_frontier
from tests.made import classes_of

if TYPE_CHECKING:
    from pathlib import Path

VERBS = [name for name in vars(Frontier) if not name.startswith("_")]
FRONTIERS = [
    cls
    for cls in classes_of(scrapy_focus.frontiers)
    if cls is not Frontier and not isabstract(cls) and all(hasattr(cls, name) for name in VERBS)
]


def test_frontiers_are_found() -> None:
    """The frontiers that crawls use are among those that are tested."""
    assert {"push", "pop", "settle"} <= set(VERBS)
    assert {"memory_frontier", "SqliteFrontier"} <= {cls.__name__ for cls in FRONTIERS}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cls", FRONTIERS)
def test_promises_are_kept(cls: type[Frontier], seed: int) -> None:
    """Over random operations a frontier says and does what a dictionary would."""
    check_frontier(cls, seed=seed)


@pytest.mark.parametrize("cls", [cls for cls in FRONTIERS if hasattr(cls, "checkpoint")])
def test_everything_comes_back_after_a_checkpoint(cls: type, tmp_path: Path) -> None:
    """A frontier that is opened again has every link, state and pick in flight as they were."""
    frontier = cls(tmp_path / "frontier")
    links = [Link(f"http://h{i % 3}/{i}", i, f"h{i % 3}", i, payload=bytes([i])) for i in range(40)]
    places = [Placement(i % 4, float(i), None, "HEAD" if i % 5 == 0 else "GET") for i in range(40)]
    frontier.push(links, places, origin=2)
    picks = [frontier.take(i) for i in range(6)]
    for pick in picks[:3]:
        frontier.settle(pick)
    frontier.checkpoint({"crawl": b"some bytes"})
    frontier.close()
    again = cls(tmp_path / "frontier")
    again.check()
    assert again.notes == {"crawl": b"some bytes"}
    names = ["PROBED", "FETCHED", "FETCHED", *["FLYING"] * 3, "WAITING", "NEW"]
    assert [state.name for state in again.states([*range(7), 40])] == names
    assert again.flying == {pick.id: pick for pick in picks[3:]}
    for pick in picks[3:]:
        again.release(pick)
    waiting = sorted((link.key, link, place) for arm in range(4) for link, place in again.scan(arm))
    assert [(link._replace(state=0), place) for _, link, place in waiting] == list(zip(links, places, strict=True))[3:]
    pick = again.take(5)
    assert (pick.origin, pick.method, pick.payload) == (2, "HEAD", b"\x05")
    assert pick.id > max(pick.id for pick in picks)
    again.check()
    again.close()


@pytest.mark.parametrize("cls", [cls for cls in FRONTIERS if hasattr(cls, "steer")])
@pytest.mark.parametrize("verb", ["pop", "take"])
def test_a_frontier_can_be_steered(cls: type, verb: str) -> None:
    """The next pick is the link that was named, whatever is asked for; those after it are as usual."""
    frontier = cls()
    frontier.push([Link(f"http://h/{i}", i, "h") for i in range(6)], [Placement(0, float(i)) for i in range(6)])

    def ask():
        pick = frontier.pop(3, {"h"}) if verb == "pop" else frontier.take(77)
        return pick and pick.key

    frontier.steer(2, 40)
    assert (ask(), ask()) == (2, None)
    assert list(frontier.flying) == [40]
    frontier.steer(2, 41)
    assert ask() is None
    frontier.settle(frontier.flying[40])
    frontier.push([Link("http://h/2", 2, "h")], [Placement(1, 1.0)])
    assert (ask(), ask()) == (2, None)
    frontier.steer(4, 41)
    assert ask() is None
    frontier.settle(frontier.flying[41])
    assert ask() == 4
    frontier.steer(3, 7)
    frontier.let_go()
    assert ask() is None
    assert frontier.pop(0)[:2] == (42, 5)
    frontier.check()
    frontier.close()


@pytest.mark.parametrize("cls", [cls for cls in FRONTIERS if hasattr(cls, "amend")])
def test_a_pick_is_kept_with_its_chance(cls: type) -> None:
    """A pick in flight can be replaced by one that says how likely it was."""
    frontier = cls()
    frontier.push([Link("http://h/1", 1, "h")], [Placement(0, 1.0)])
    pick = frontier.pop(0)._replace(chance=0.25)
    frontier.amend(pick)
    assert frontier.flying == {pick.id: pick}
    frontier.settle(pick)
    frontier.amend(pick)
    assert not frontier.flying
    frontier.close()
