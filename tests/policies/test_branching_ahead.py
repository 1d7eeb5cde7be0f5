"""What is planned ahead, against the same in plain steps; what is remembered of arms, against what is worked out."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scrapy_focus.policies.branching import ahead as planning
from scrapy_focus.policies.branching.ahead import Ahead, Dear
from scrapy_focus.policies.branching.arms import BranchingArms

if TYPE_CHECKING:
    from numpy.typing import NDArray

ARMS, HORIZON, SHRINK, DISCOUNT = 12, 4, 1.0, 0.95


class Made:
    """Some arms that reveal each other, at random; ``scale``: how many links a pull reveals."""

    def __init__(self, seed: int, scale: float) -> None:
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 60))
        self.rows, self.columns = rng.integers(ARMS, size=n), rng.integers(ARMS, size=n)
        self.counts = rng.random(n) * scale
        self.general, self.pulls = rng.random(ARMS) * scale, rng.integers(0, 9, ARMS).astype(float)
        self.pages = rng.random(ARMS) < 0.7
        self.own, self.costs = rng.random(ARMS) * rng.integers(0, 2, ARMS), 0.5 + rng.random(ARMS)
        self.among = rng.random(ARMS) < 0.5
        self.among[int(rng.integers(ARMS))] = True
        self.ahead = Ahead(
            self.rows, self.columns, self.counts, Dear(), self.general, 3.0, self.pages, self.pulls,
            shrink=SHRINK, discount=DISCOUNT, horizon=HORIZON,
        )  # fmt: skip

    def values(self, index: float) -> NDArray[np.float64]:
        """Return what a pull of each arm is worth beyond its price, in plain steps."""
        net = self.own - index * self.costs
        value = net.copy()
        for _ in range(HORIZON):
            price = np.maximum(value, 0)
            revealed = np.zeros(ARMS)
            for row, column, count in zip(self.rows, self.columns, self.counts, strict=True):
                revealed[row] += count * price[column]
            prior = SHRINK * float(self.general @ price) / 3.0 * self.pages
            value = net + DISCOUNT * (revealed + prior) / (self.pulls + SHRINK)
        return value


@pytest.mark.parametrize("many", [0, 10**6])
@pytest.mark.parametrize("scale", [0.3, 3.0])
@pytest.mark.parametrize("seed", range(10))
def test_the_best_index_is_where_a_pull_is_just_worth_it(
    seed: int, scale: float, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below it one of the arms is worth its price with all that it reveals, above it none is."""
    monkeypatch.setattr(planning, "MANY", many)
    made = Made(seed, scale)
    for near in (1e-3, 0.5, 30.0):
        low, high = made.ahead.index(made.own, made.costs, made.among, near)
        assert low < high <= low * 1.26
        assert low <= planning.LEAST or made.values(low)[made.among].max() >= 0
        assert high >= planning.MOST or made.values(high)[made.among].max() < 0


@pytest.mark.parametrize("scale", [0.3, 3.0])
@pytest.mark.parametrize("index", [0.01, 0.3, 50.0])
def test_prices_follow_from_an_index(index: float, scale: float) -> None:
    """What a link is worth beyond its price, after as many steps as are planned, and what all revealed is worth."""
    made = Made(3, scale)
    price, revealed = made.ahead.prices(made.own - index * made.costs)
    value = made.own - index * made.costs + made.ahead.later(revealed, price)
    assert value == pytest.approx(made.values(index))
    assert (price > 0).any() == (index < 1)


def test_arms_whose_links_are_worth_nothing_any_more_are_let_go() -> None:
    """Once most of those that were worth something are not, only the others are summed; and more again if need be."""
    rows, columns = np.arange(6), np.array([0, 1, 2, 0, 1, 2])
    dear, worth = Dear(), np.array([True, True, True])
    assert dear.find(worth, rows, columns)
    assert dear.places.tolist() == [0, 1, 2, 3, 4, 5]
    dear.forget()
    one = np.array([False, True, False])
    assert not dear.find(one, rows, columns)
    dear.forget()
    assert dear.find(one, rows, columns)
    assert (dear.places.tolist(), dear.columns.tolist()) == ([1, 4], [1, 1])
    assert dear.find(one, np.arange(7), np.append(columns, 1))
    assert dear.places.tolist() == [1, 4, 6]
    assert dear.find(np.array([False, False, True, False]), np.arange(7), np.append(columns, 1))
    assert dear.places.tolist() == [1, 2, 4, 5, 6]


def walk(arms: BranchingArms, rng: np.random.Generator) -> list[Any]:
    """Let something happen to arms, and return what they say of it all."""
    said: list[Any] = []
    for step in range(120):
        kind = rng.integers(6)
        if kind == 0 or not arms.n_arms:
            arms.new(int(rng.integers(2)), str(rng.choice(["", "parse"])))
        elif kind == 1:
            awake = rng.random(arms.n_arms) < 0.6
            awake[0] = True
            arms.plan(awake)
        elif kind == 2:
            arms.reveal({int(other): 2.0 for other in rng.integers(arms.n_arms, size=2)})
        else:
            revealed = {int(other): 1.0 for other in rng.integers(arms.n_arms, size=4)}
            arms.earn(int(rng.integers(arms.n_arms)), float(rng.random() < 0.3), 1.0, revealed)
        copy: BranchingArms = pickle.loads(pickle.dumps(arms))
        for mine, anew in zip(arms.worth(None), copy.worth(None), strict=True):
            assert np.array_equal(mine, anew), f"after step {step}, {kind}"
        said += [each.tolist() for each in (*arms.worth(None), *arms.worth(rng))]
    return said


def test_what_is_remembered_of_arms_is_what_would_be_worked_out() -> None:
    """After each event, arms that remember nothing, as they were pickled just now, say the same to the bit."""
    walk(BranchingArms(window=5.0), np.random.default_rng(0))


@pytest.mark.parametrize("entries", [1 << 17, 40])
def test_a_plan_with_many_entries_is_that_of_all(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether all are summed or those that are worth something, what comes out is the same to the bit."""
    monkeypatch.setattr("scrapy_focus.policies.branching.arms._ENTRIES", entries)
    said = []
    for many in (0, 10**6):
        monkeypatch.setattr(planning, "MANY", many)
        said.append(walk(BranchingArms(window=5.0), np.random.default_rng(4)))
    assert said[0] == said[1]
