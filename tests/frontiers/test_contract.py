"""Every frontier keeps the promises of ``frontiers.base``."""

from __future__ import annotations

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
    if cls is not Frontier and all(hasattr(cls, name) for name in VERBS)
]


def test_frontiers_are_found() -> None:
    """The frontier that crawls use by default is among those that are tested."""
    assert {"push", "pop", "settle"} <= set(VERBS)
    assert "MemoryFrontier" in [cls.__name__ for cls in FRONTIERS]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cls", FRONTIERS)
def test_promises_are_kept(cls: type[Frontier], seed: int) -> None:
    """Over random operations a frontier says and does what a dictionary would."""
    check_frontier(cls, seed=seed)


@pytest.mark.parametrize("cls", FRONTIERS)
def test_everything_comes_back_after_a_checkpoint(cls: type[Frontier], tmp_path: Path) -> None:
    """A frontier that is opened again has every link as it was, with what was in flight waiting, and the same states."""
    frontier = cls()
    links = [Link(f"http://h{i % 3}/{i}", i, f"h{i % 3}", i, payload=bytes([i])) for i in range(40)]
    places = [Placement(i % 4, float(i), None, "HEAD" if i % 5 == 0 else "GET") for i in range(40)]
    frontier.push(links, places, origin=2)
    for i in range(6):
        pick = frontier.take(i)
        assert pick is not None
        if i < 3:
            frontier.settle(pick)
    frontier.checkpoint(tmp_path)
    frontier.close()
    again = cls.resume(tmp_path)  # type: ignore[attr-defined]
    again.check()
    assert [state.name for state in again.states(range(7))] == ["PROBED", "FETCHED", "FETCHED", *["WAITING"] * 4]
    waiting = sorted((link.key, link, place) for arm in range(4) for link, place in again.scan(arm))
    assert [(link._replace(state=0), place) for _, link, place in waiting] == list(zip(links, places, strict=True))[3:]
    pick = again.take(5)
    assert (pick.origin, pick.method, pick.payload) == (2, "HEAD", b"\x05")
    again.close()
