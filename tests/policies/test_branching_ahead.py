"""What is planned ahead, against the same in plain steps; what is remembered of arms, against what is worked out."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scrapy_focus.policies.branching import ahead as planning
from scrapy_focus.policies.branching.ahead import Ahead, Dear, Search
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
        search = Search(near)
        while search.next is not None:
            search = made.ahead.look(made.own, made.costs, made.among, search)
        low, high = search.at(search.pays), search.at(search.fails)
        assert low < high <= low * 1.03
        assert low <= planning.LEAST or made.values(low)[made.among].max() >= 0
        assert high >= planning.MOST or made.values(high)[made.among].max() < 0


@pytest.mark.parametrize("scale", [0.3, 3.0])
@pytest.mark.parametrize("index", [0.01, 0.3, 50.0])
def test_prices_follow_from_an_index(index: float, scale: float) -> None:
    """What a link is worth beyond its price, after as many steps as are planned, and what all revealed is worth."""
    made = Made(3, scale)
    price, revealed = made.ahead.prices(made.own, made.costs, index)
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


def test_an_index_is_looked_for_near_the_last_one() -> None:
    """Where it is that one still, two looks show it; one that is 25 % above is found in nine, and is in the same grid."""
    made = Made(3, 0.3)
    found = search_from(made, 0.5)
    index = found[-1].at(found[-1].pays)
    assert len(search_from(made, index)) == 2
    above = search_from(made, index / 1.25)
    assert above[-1].pays == 8
    assert len(above) <= 9
    assert above[-1].at(8) == pytest.approx(index)


def search_from(made: Made, near: float) -> list[Search]:
    """Return what is known after each look."""
    steps = [made.ahead.look(made.own, made.costs, made.among, Search(near))]
    while steps[-1].next is not None:
        steps.append(made.ahead.look(made.own, made.costs, made.among, steps[-1]))
    return steps


@pytest.mark.parametrize("scale", [0.3, 3.0])
@pytest.mark.parametrize("index", [0.01, 0.3, 50.0])
def test_prices_continue_what_was_looked_at(index: float, scale: float) -> None:
    """At an index that was looked at they are, to the bit, what they are at one that was not."""
    looked, plain = Made(3, scale), Made(3, scale)
    looked.ahead.look(looked.own, looked.costs, looked.among, Search(index))
    for one, other in zip(
        looked.ahead.prices(looked.own, looked.costs, index),
        plain.ahead.prices(plain.own, plain.costs, index),
        strict=True,
    ):
        assert np.array_equal(one, other)


def grown() -> tuple[BranchingArms, NDArray[np.bool_]]:
    """Return arms that earned and revealed at random, whose index is far from where it is looked for."""
    arms, rng = BranchingArms(), np.random.default_rng(6)
    for number in range(40):
        arms.new(number % 2)
    for _ in range(600):
        revealed = {int(other): 1.0 for other in rng.integers(40, size=5)}
        arms.earn(int(rng.integers(40)), float(rng.random() < 0.3), 1.0, revealed)
    arms.index = 20.0
    return arms, np.arange(40) % 3 > 0


def test_a_plan_in_steps_is_that_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step looks once, which are at most as many sums as pulls are planned ahead, and until the last one nothing changes."""
    sums = []
    of = Ahead.sum
    monkeypatch.setattr(Ahead, "sum", lambda self, price: sums.append(1) or of(self, price))
    arms, awake = grown()
    at_once, _ = grown()
    at_once.plan(awake)
    before, looked = arms.worth(None).later.tolist(), []
    while len(looked) < 100:
        del sums[:]
        is_made = arms.plan_on(awake, 1)
        looked.append(len(sums))
        arms = pickle.loads(pickle.dumps(arms))
        if is_made:
            break
        assert arms.worth(None).later.tolist() == before
        assert arms.index == 20.0
    assert len(looked) == 18
    assert max(looked) == arms.horizon
    assert 0.01 < arms.index == at_once.index < 10
    for mine, other in zip(arms.worth(None), at_once.worth(None), strict=True):
        assert np.array_equal(mine, other)


@pytest.mark.parametrize(("looks", "steps"), [(1, 18), (3, 6), (5, 4), (100, 1)])
def test_a_step_looks_as_often_as_it_may(looks: int, steps: int) -> None:
    """Eighteen looks, the prices among them, take as many steps as follows."""
    arms, awake = grown()
    most = looks * arms.horizon * len(arms.known().rows)
    done = 1
    while not arms.plan_on(awake, most):
        done += 1
    assert done == steps


def test_a_plan_begun_is_left_for_a_whole_one() -> None:
    """Planning at once does not continue an unfinished plan."""
    arms, awake = grown()
    arms.plan_on(awake, 1)
    other, _ = grown()
    for each in (arms, other):
        each.plan(~awake)
    assert arms.index == other.index
    assert arms.plan_on(awake, 1e9)


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
