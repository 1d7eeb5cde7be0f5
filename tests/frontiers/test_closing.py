"""Drawn frontiers where many hosts are closed: what a question says is the same, however the hosts are named."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scrapy_focus import FrontierError, Link, Placement, memory_frontier
from scrapy_focus.core.busy import Busy
from scrapy_focus.core.frontier import Vectors
from scrapy_focus.frontiers import hosts
from scrapy_focus.frontiers.sqlite.frontier import sqlite_frontier

if TYPE_CHECKING:
    from pathlib import Path


def compare(frontier: Any, closed: frozenset[str], more: list[str], seed: int) -> None:
    """Ask in both ways, and see that the frontier is consistent."""
    busy, plain = Busy(closed, more), {*closed, *more}
    everything = frontier.draw(None, np.random.default_rng(0))
    names = [frontier.hosts[host] for host in everything.hosts.tolist()]
    left = [arm for arm, name in zip(everything.arms.tolist(), names, strict=True) if name not in plain]
    expected = [left.count(arm) for arm in range(len(frontier.waiting))]
    assert frontier.awake(busy).tolist() == frontier.awake(plain).tolist() == expected
    counts = np.full(len(frontier.waiting), 3)
    mask = np.array([name == "h1" for name in frontier.hosts], np.bool_)
    for shut in (None, mask):
        one = frontier.draw(counts, np.random.default_rng(seed), busy=busy, closed=shut)
        other = frontier.draw(counts, np.random.default_rng(seed), busy=plain, closed=shut)
        assert one.slots.tolist() == other.slots.tolist()
        one = frontier.draw(None, np.random.default_rng(seed), busy=busy, closed=shut)
        other = frontier.draw(None, np.random.default_rng(seed), busy=plain, closed=shut)
        assert one.slots.tolist() == other.slots.tolist()
    frontier.check()


@pytest.mark.few(1)
@pytest.mark.parametrize("few", [0, 10**6])
@pytest.mark.parametrize("seed", range(3))
def test_closed_hosts_are_as_busy_as_others(seed: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links come and go, new hosts too, arms are divided, and the closed hosts change now and then.

    So it is where the links of closed hosts are counted host by host, and where all are looked through.
    """
    monkeypatch.setattr(hosts, "FEW", few)
    rng, frontier = random.Random(seed), memory_frontier(Vectors(2))
    closed: frozenset[str] = frozenset()
    key, flying = 0, []
    for step in range(150):
        match rng.choice(["push", "push", "take", "take", "release", "settle", "drop", "divide", "close", "close one"]):
            case "push":
                found = [Link(f"http://h/{key + i}", key + i, f"h{rng.randrange(2 + step)}") for i in range(5)]
                vectors = [np.array([rng.randrange(256), 0], np.uint8) for _ in found]
                frontier.push(found, [Placement(rng.randrange(4), 0.0, vector) for vector in vectors])
                key += 5
            case "take" if (pick := frontier.take(rng.randrange(key + 1))) is not None:
                flying.append(pick)
            case "release" if flying:
                frontier.release(flying.pop())
            case "settle" if flying:
                frontier.settle(flying.pop())
            case "drop":
                frontier.drop([rng.randrange(key + 1)])
            case "divide" if step % 5 == 0:
                frontier.divide(rng.randrange(4), 0, rng.randrange(256), 4 + step)
            case "close":
                closed = frozenset(f"h{rng.randrange(40)}" for _ in range(rng.randrange(30)))
            case "close one":
                closed |= {f"h{rng.randrange(40)}"}
        compare(frontier, closed, [f"h{rng.randrange(9)}" for _ in range(step % 3)], step)


def test_closed_hosts_of_a_frontier_that_was_opened_again(tmp_path: Path) -> None:
    """What was counted of closed hosts is counted again."""
    frontier = sqlite_frontier(tmp_path / "links", Vectors(2))
    vectors = [np.array([i, 0], np.uint8) for i in range(40)]
    frontier.push(
        [Link(f"http://h/{i}", i, f"h{i % 7}") for i in range(40)],
        [Placement(i % 3, 0.0, vector) for i, vector in enumerate(vectors)],
    )
    closed = frozenset(("h2", "h3", "h6"))
    compare(frontier, closed, ["h1"], 0)
    frontier.checkpoint({})
    frontier.flush()
    frontier.close()
    again = sqlite_frontier(tmp_path / "links", Vectors(2))
    compare(again, closed, ["h1"], 0)
    again.close()


def test_a_wrong_count_of_closed_hosts_is_found() -> None:
    """The check of a frontier looks at what is counted of closed hosts, too."""
    frontier: Any = memory_frontier(Vectors(2))
    frontier.push([Link("http://a.test/", 1, "a.test")], [Placement(0, 0.0, np.zeros(2, np.uint8))])
    assert frontier.awake(Busy(frozenset(("a.test",)))).tolist() == [0]
    frontier.check()
    frontier._pool._pairs._hidden[0] += 1
    with pytest.raises(FrontierError, match="links on closed hosts"):
        frontier.check()
