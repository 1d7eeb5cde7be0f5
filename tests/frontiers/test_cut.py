"""Many waiting links that are given up together: nothing is read for it, and all that they took is used again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scrapy_focus import Placement, State, Vectors, memory_frontier
from scrapy_focus.core.frontier import Ranks
from scrapy_focus.core.giving_up import give_up
from scrapy_focus.frontiers.sqlite.frontier import sqlite_frontier
from tests.made import links

if TYPE_CHECKING:
    from pathlib import Path

N = 3000
KEEPS = [Ranks(), Vectors(2)]


def place(keeps: Any, key: int) -> Placement:
    """Return the placement of a link: one of three arms, one of a hundred ranks."""
    memo = np.array([key % 7, key % 5], np.uint8) if isinstance(keeps, Vectors) else None
    return Placement(key % 3, float(key * 7 % 100), memo)


def push(frontier: Any, keeps: Any, keys: range) -> None:
    """Queue links on 50 hosts."""
    frontier.push(
        [each._replace(host=f"h{each.key % 50}") for each in links(*keys)], [place(keeps, key) for key in keys]
    )


@pytest.mark.parametrize("keeps", KEEPS, ids=["ranked", "drawn"])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_no_record_is_read(keeps: Any, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a tenth that is given up; those records that are left are theirs."""
    frontier = memory_frontier(keeps) if kind == "memory" else sqlite_frontier(None, keeps)
    push(frontier, keeps, range(N))
    if kind == "sqlite":
        frontier.checkpoint()
        frontier.flush()
    with monkeypatch.context() as patched:
        patched.setattr(frontier._records, "read", None)
        slots = [] if keeps == Ranks() else frontier.draw(np.full(3, 200), np.random.default_rng(0)).slots
        n = frontier.drop_each({0: 100, 1: 100, 2: 100}) if keeps == Ranks() else frontier.drop(slots)
    assert 300 <= n <= 600
    assert len(frontier) == N - n
    assert frontier.states(range(N)).count(State.GIVEN_UP) == n
    frontier.check()
    frontier.close()


@pytest.mark.parametrize("keeps", KEEPS, ids=["ranked", "drawn"])
@pytest.mark.parametrize("more", [0, 500])
def test_a_file_has_no_rows_of_them(keeps: Any, more: int, tmp_path: Path) -> None:
    """After the next checkpoint; a reopened frontier has the same links in the same states."""
    frontier = sqlite_frontier(tmp_path / "f.sqlite", keeps)
    push(frontier, keeps, range(N))
    frontier.checkpoint()
    push(frontier, keeps, range(N, N + more))
    give_up(frontier, 600, np.random.default_rng(0))
    states = frontier.states(range(N + more))
    frontier.checkpoint()
    frontier.close()
    again = sqlite_frontier(tmp_path / "f.sqlite", keeps)
    assert again.states(range(N + more)) == states
    assert len(again) == states.count(State.WAITING) == N + more - 600
    again.check()
    give_up(again, 1000, np.random.default_rng(0))
    again.check()
    again.close()


@pytest.mark.few(1)
@pytest.mark.parametrize("keeps", KEEPS, ids=["ranked", "drawn"])
def test_what_they_took_is_used_again(keeps: Any) -> None:
    """However often a tenth is given up and as many come, no column gets more than twice as long."""
    frontier = memory_frontier(keeps)
    push(frontier, keeps, range(N))
    for first in range(N, 7 * N, 300):
        assert give_up(frontier, 300, np.random.default_rng(first)) == 300
        push(frontier, keeps, range(first, first + 300))
    assert len(frontier) == N
    assert len(frontier._order.record) <= 2 * N
    assert len(frontier._records._url) <= N + 300
    frontier.check()
