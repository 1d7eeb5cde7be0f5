"""Checks a custom frontier against the contract of :class:`~scrapy_focus.core.frontier.Ranked`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.core.frontier import Ranked
from scrapy_focus.core.types import METHODS, Placement
from scrapy_focus.lab.checks.ledger import LedgerMachine, any_of, as_tuple, link, require, some_hosts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

_ARMS = 6


def check_ranked(make: Callable[[], Ranked], *, steps: int = 2000, seed: int = 0) -> None:
    """Raise ``AssertionError`` if a frontier breaks its contract; compares it with a dictionary over random steps.

    Parameters
    ----------
    make
        Returns a new, empty frontier each time.
    steps
        Operations to try.
    seed
        Of the operations.

    Notes
    -----
    What the frontier raises itself comes through as it is. Links are on four hosts, in six arms, of ten ranks, so
    that many are equal: the one that was pushed first leaves first. Links sleep only in a frontier that is also
    :class:`~scrapy_focus.core.frontier.Sleeping`.
    """
    rng = np.random.default_rng(seed)
    machine = RankedMachine(make())
    for _ in range(steps):
        machine.step(rng)
        machine.compare(some_hosts(rng))
        machine.compare_arm(int(rng.integers(0, _ARMS + 1)))
    machine.end()


class RankedMachine(LedgerMachine[Ranked]):
    """The operations of a :class:`~scrapy_focus.core.frontier.Ranked` frontier."""

    def placed(self, key: int, place: Placement) -> tuple[int, tuple[float, ...] | None]:
        return place.arm, as_tuple(place.memo)

    def pop(self, arm: int, busy: Collection[str] = ()) -> None:
        """Take out the best link of an arm."""
        waiting = self.model.waiting
        keys = self.keys_in(arm, busy)
        best = min(keys, key=self._order, default=None)
        pick = self.frontier.pop(arm, busy)
        got = None if pick is None else pick.key
        if got is None or best is None or got not in waiting:
            require(got == best, f"pop({arm}, {busy}) gave the key {got}, it should be {best} of {len(keys)} links")
        else:
            got_place, best_place = (waiting[key][:4:3] for key in (got, best))
            require(
                got == best,
                f"pop({arm}, {busy}) gave the link with (age, rank) {got_place}, the best is {best_place}",
            )
        if pick is not None:
            self.fly(pick)

    def move(self, moves: Mapping[int, Placement | None]) -> None:
        """Give links another place, or up."""
        self.frontier.move(list(moves), list(moves.values()))
        for key, place in moves.items():
            if self.placed_before(key) is not None and place is not None:
                self._place(key, place, -1)
        self.give_up([key for key, place in moves.items() if place is None and self.placed_before(key) is not None])

    def drop(self, arm: int, n: int) -> None:
        """Give the worst links of an arm up."""
        worst = sorted(self.keys_in(arm), key=self._order, reverse=True)[:n]
        said = self.frontier.drop(arm, n)
        require(said == len(worst), f"drop({arm}, {n}) gave {said} links up, it should be {len(worst)}")
        self.give_up(worst)

    def drop_each(self, counts: Mapping[int, int]) -> None:
        """Give the worst links of some arms up, in one go."""
        worst = [key for arm, n in counts.items() for key in sorted(self.keys_in(arm), key=self._order)[::-1][:n]]
        said = self.frontier.drop_each(counts)
        require(said == len(worst), f"drop_each({counts}) gave {said} links up, it should be {len(worst)}")
        self.give_up(worst)

    def compare(self, busy: Collection[str] = ("b",)) -> None:
        super().compare(busy)
        for arm, head in enumerate(self.frontier.heads.tolist()):
            best = max((self.model.waiting[key].rank for key in self.keys_in(arm)), default=-math.inf)
            require(head == best, f"arm {arm} says that its best rank is {head}, it is {best}")

    def compare_arm(self, arm: int) -> None:
        """Compare what an arm holds with the model."""
        found = list(self.frontier.scan(arm))
        keys = sorted(each.key for each, _ in found)
        require(keys == sorted(self.keys_in(arm)), f"scan({arm}) gave other links than those queued there")
        for each, place in found:
            waits = self.model.waiting[each.key]
            got = place.arm, place.rank, as_tuple(place.memo), place.method
            require(got == waits[2:], f"scan({arm}) gave the place {got}, it should be {tuple(waits[2:])}")
            wanted = link(each.key)._replace(state=each.state)
            require(each == wanted, f"scan({arm}) gave {each}, it should be {wanted}")

    def step(self, rng: np.random.Generator) -> None:
        actions = [
            *[self._push_some] * 4, *[self._pop_any] * 3, *[self.land_any] * 2, self.take_any, self._move_some,
            self.wake_any, self._drop_some,
        ]  # fmt: skip
        actions[int(rng.integers(0, len(actions)))](rng)

    def _push_some(self, rng: np.random.Generator) -> None:
        self.push(list(self.random_pushes(rng, _random_place)), int(rng.integers(-1, 99)))

    def _pop_any(self, rng: np.random.Generator) -> None:
        self.pop(int(rng.integers(0, _ARMS + 1)), some_hosts(rng))

    def _move_some(self, rng: np.random.Generator) -> None:
        known = {**self.model.waiting, **self.model.asleep}
        keys = {any_of(rng, known) for _ in range(3)} if known else {0}
        moves = {key: self.perhaps_later(rng, _random_place(rng)) for key in sorted(keys)}
        self.move({key: None if rng.random() < 0.2 else place for key, place in moves.items()})

    def _drop_some(self, rng: np.random.Generator) -> None:
        if rng.random() < 0.4:
            self.drop(int(rng.integers(0, _ARMS + 1)), int(rng.integers(0, 4)))
        elif rng.random() < 0.4:
            self.drop_each(dict(enumerate(rng.integers(0, 5, _ARMS + 1).tolist())))

    def _order(self, key: int) -> tuple[float, int]:
        waits = self.model.waiting[key]
        return -waits.rank, waits.age


def _random_place(rng: np.random.Generator) -> Placement:
    memo = np.array([1.5, rng.integers(9)], np.float32) if rng.random() < 0.3 else None
    method = METHODS[int(rng.integers(len(METHODS)))]
    return Placement(int(rng.integers(0, _ARMS)), float(rng.integers(0, 10)), memo, method)
