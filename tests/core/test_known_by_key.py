"""A policy with ``known_by_key`` receives known links as their keys alone, whoever reports them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from scrapy_focus import Crawl, Job, Link, Outcome, Placement, Policy, State, Vectors, memory_frontier

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Counter(Policy):
    """Counts in the vector of each link how many pages have it, and fetches what most have."""

    wants_known: ClassVar[frozenset[State]] = frozenset({State.WAITING})
    known_by_key: ClassVar[bool] = True

    def __init__(self) -> None:
        self.given: list[list[Link]] = []

    def keeps(self, mission: Any) -> Vectors:
        return Vectors(2)

    def place(self, links: Sequence[Link], source: Outcome | None) -> list[Placement | None]:
        self.given.append(list(links))
        vectors = self.frontier.vectors([link.key for link in links])
        vectors[:, 0] += 1
        return [Placement(0, 0.0, vector) for vector in vectors]

    def select(self, busy: Any) -> Any:
        drawn = self.frontier.draw(None, self.rng, busy=busy)
        if not len(drawn.slots):
            return None
        return self.frontier.take_drawn(int(drawn.slots[np.argmax(drawn.vectors[:, 0])]))


def link(key: int) -> Link:
    return Link(f"http://h{key % 3}.test/{key}", key, f"h{key % 3}.test", anchor=f"to {key}", payload=b"request")


def report(crawl: Crawl, pick: Any, links: Sequence[Link], known: Sequence[int] = ()) -> None:
    crawl.sent(pick.id)
    crawl.report(Outcome(pick, status=200, mime="text/html"), links, known)


def test_known_links_come_as_keys() -> None:
    """Before the new ones, with their states; whether they were reported as links or as keys makes no difference."""
    crawls = []
    for as_keys in (False, True):
        crawl = Crawl(Counter(), frontier=memory_frontier, seed=0, strict=True)
        crawl.add([link(1), link(2), link(3), link(4)])
        first = crawl.next()
        assert first.key == 1
        known = [link(3), link(1), link(4), link(3)]
        if as_keys:
            report(crawl, first, [link(5)], [each.key for each in known])
        else:
            report(crawl, first, [link(5), *known])
        crawls.append(crawl)
    for crawl in crawls:
        *_, given = crawl.policy.given
        assert given == [Link("", key, state=State.WAITING) for key in (3, 4, 3)] + [link(5)]
        assert crawl.frontier.vectors([2, 3, 4, 5])[:, 0].tolist() == [1, 2, 2, 1]
        assert [crawl.frontier.hosts[host] for host in crawl.frontier.hosts_of([3, 4, 5])] == [
            "h0.test",
            "h1.test",
            "h2.test",
        ]
        assert crawl.frontier.hosts_of([1, 99]).tolist() == [-1, -1]
        pick = crawl.next()
        assert (pick.key, pick.url, pick.payload, pick.host) == (3, link(3).url, b"request", "h0.test")
        crawl.frontier.check()


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_keys_survive(tmp_path: Path, how: str) -> None:
    """A crawl that is killed or stopped after each page is given the same, and chooses the same, as one in one piece."""

    def steps(crawl: Crawl, n: int) -> list[int]:
        keys = []
        for _ in range(n):
            pick = crawl.next()
            keys.append(pick.key)
            others = [(7 * pick.key + 3 * step) % 200 + 1 for step in range(6)]
            states = crawl.knows(others)
            new = [link(key) for key, state in zip(others, states, strict=True) if state == State.NEW]
            report(crawl, pick, new, [key for key, state in zip(others, states, strict=True) if state != State.NEW])
        return keys

    whole = Crawl(Counter(), frontier=memory_frontier, seed=0, strict=True)
    whole.add([link(1)])
    expected = steps(whole, 40)
    parts: list[int] = []
    while len(parts) < 40:
        crawl = Crawl(Counter(), job=Job(tmp_path / "job", every=7), seed=0, strict=True)
        if not parts:
            crawl.add([link(1)])
        parts += steps(crawl, 4)
        if how == "stopped":
            crawl.checkpoint()
        crawl.close()
    assert parts == expected
