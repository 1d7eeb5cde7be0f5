"""A regression tree that grows while rewards come in."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_focus import ConfigError
from scrapy_focus.policies.treeq.tree import RegressionTree, Split
from tests.examples import n_examples

RULES = ["chi2", "variance", "sample-variance"]

Experience = tuple[tuple[int, ...], Any]


def variance(rewards: list[Any], less: int = 0) -> Any:
    """Return the population variance, or with 1 ``less`` that of a sample, in the numbers that it is given."""
    mean = sum(rewards) / len(rewards)
    return sum((reward - mean) ** 2 for reward in rewards) / max(len(rewards) - less, 1)


def gain(there: list[Experience], column: int, above: int, less: int = 0) -> Any:
    """Return by how much a split of these experiences lowers the variance."""
    low = [reward for code, reward in there if code[column] <= above]
    high = [reward for code, reward in there if code[column] > above]
    parts = sum(len(part) * variance(part, less) for part in (low, high) if part)
    return variance([reward for _, reward in there], less) - parts / len(there)


def exhaustive(there: list[Experience], tree: RegressionTree) -> tuple[int, int] | None:
    """Return the best split as the rules say it, with fractions, from every column and threshold."""
    n = len(there)
    whole = variance([reward for _, reward in there])
    best, found = Fraction(0), None
    least = tree.min_child if tree.rule == "chi2" else max(1, Fraction(str(tree.min_share)) * n)
    for column in range(tree.n_columns):
        before = n
        for above in range(63):
            high = sum(code[column] > above for code, _ in there)
            if high < before and min(high, n - high) >= least:  # else both sides are as with the threshold before
                this = gain(there, column, above, less=tree.rule == "sample-variance")
                if this > best:
                    best, found = this, (column, above)
            before = high
    if found is None:
        return None
    enough = n * best / whole >= tree.tau if tree.rule == "chi2" else n >= tree.min_samples
    return found if enough else None


codes = st.lists(st.one_of(st.sampled_from([0, 1, 31, 62, 63]), st.integers(0, 63)), min_size=3, max_size=3).map(tuple)
rewards = st.one_of(
    st.sampled_from([Fraction(0), Fraction(1)]), st.integers(-4096, 4096).map(lambda n: Fraction(n, 64))
)


@given(
    rule=st.sampled_from(RULES),
    told=st.lists(st.tuples(codes, rewards), max_size=30),
    tau=st.sampled_from([1.0, 4.0, 8.0]),
    least=st.integers(1, 5),
    share=st.sampled_from([0.0, 0.1, 0.2, 0.3]),
)
@settings(max_examples=n_examples(100), deadline=None)
def test_a_split_is_that_of_an_exhaustive_search(
    rule: Any, told: list[Experience], tau: float, least: int, share: float
) -> None:
    """After each experience its leaf splits as trying all columns and thresholds in fractions says, or does not split."""
    tree = RegressionTree(3, rule=rule, tau=tau, min_samples=least, min_child=least, min_share=share)
    leaves: list[list[Experience]] = [[]]
    for code, reward in told:
        leaf = int(tree.route(np.array([code], np.uint8))[0])
        there = leaves[leaf]
        there.append((code, reward))
        expected = exhaustive(there, tree)
        split = tree.add(np.array(code, np.uint8), float(reward))
        assert split == (None if expected is None else Split(leaf, *expected, len(leaves)))
        if split is not None:
            leaves[leaf] = [e for e in there if e[0][split.column] <= split.above]
            leaves.append([e for e in there if e[0][split.column] > split.above])
        assert tree.counts.tolist() == [len(leaf) for leaf in leaves]
        assert tree.means.tolist() == [float(sum(r for _, r in leaf) / max(len(leaf), 1)) for leaf in leaves]


@given(st.lists(st.tuples(codes, st.floats(-1e9, 1e9)), min_size=12, max_size=12))
@settings(max_examples=n_examples(100), deadline=None)
def test_any_rewards_are_weighed_to_a_millionth(told: list[Experience]) -> None:
    """With rewards of any size, no split gains more than the one that was made, but for rounding."""
    tree = RegressionTree(3, rule="variance", min_samples=len(told))
    splits = [tree.add(np.array(code, np.uint8), reward) for code, reward in told]
    assert splits[:-1] == [None] * (len(told) - 1)
    most = max(gain(told, column, above) for column in range(3) for above in {code[column] for code, _ in told})
    rounding = max(abs(reward) for _, reward in told) ** 2 / 2**20
    made = 0.0 if splits[-1] is None else gain(told, splits[-1].column, splits[-1].above)
    assert made >= most - rounding


@pytest.mark.parametrize(("rule", "splits"), [("variance", True), ("sample-variance", False)])
def test_a_split_lowers_the_weighted_variance_by_hand(rule: Any, splits: bool) -> None:
    """Equation 4 (section 2.6): rewards 0 and 1 on one side, 0, 0 and 1 on the other, so 2 of 5 in all.

    Variances of the whole: 6/25 = 0.24; of the sides 1/4 and 2/9; the gain is 0.24 - 2/5 * 1/4 - 3/5 * 2/9 = 1/150. Of
    samples: 0.3, 1/2 and 1/3, and 0.3 - 2/5 * 1/2 - 3/5 * 1/3 = -0.1: no split.
    """
    tree = RegressionTree(1, rule=rule, min_samples=5)
    table = [(10, 0.0), (10, 1.0), (20, 0.0), (20, 0.0), (20, 1.0)]
    found = [tree.add(np.array([code], np.uint8), reward) for code, reward in table]
    assert found == [None] * 4 + [Split(0, 0, 10, 1) if splits else None]


@pytest.mark.parametrize(("tau", "splits"), [(6.349, True), (6.350, False)])
def test_tau_is_a_chi_square_for_rewards_0_and_1(tau: float, splits: bool) -> None:
    """Six zeros and two ones on one side, one and seven on the other: 16 * (6 * 7 - 2 * 1)**2 / (8 * 8 * 7 * 9) = 6.3492."""
    tree = RegressionTree(1, tau=tau, min_child=8)
    table = [(10, 0.0)] * 6 + [(10, 1.0)] * 2 + [(20, 0.0)] + [(20, 1.0)] * 7
    found = [tree.add(np.array([code], np.uint8), reward) for code, reward in table]
    assert found == [None] * 15 + [Split(0, 0, 10, 1) if splits else None]


def test_of_equal_splits_the_first_is_taken() -> None:
    """Where a column says the same as another, backwards too, the smaller one is split, at the smallest threshold."""
    tree = RegressionTree(4, rule="variance", min_samples=6)
    for i in range(6):
        high = i % 2
        split = tree.add(
            np.array([7, 40 if high else 5, 0 if high else 63, 40 if high else 5], np.uint8), 0.1 * high + 0.7
        )
    assert split == Split(0, 1, 5, 1)


@pytest.mark.parametrize("first", [0, 1])
def test_splits_are_equal_though_rounded_apart(first: int) -> None:
    """Ten rewards of 3q, twenty of 2q and seventy of -q: to set the ten or the twenty apart gains the same, whatever q."""
    for q in np.random.default_rng(0).integers(1 << 17, 1 << 20, 20).tolist():
        tree = RegressionTree(2, rule="variance", min_samples=100)
        for i in range(100):
            code = np.array([63 * (i < 10), 63 * (10 <= i < 30)], np.uint8)
            split = tree.add(code if first == 0 else code[::-1], (3.0 if i < 10 else 2.0 if i < 30 else -1.0) * q)
        assert split == Split(0, 0, 0, 1)


def test_equal_rewards_are_never_split() -> None:
    """A leaf with one reward, here 0.1 again and again, stays whole under the rule that takes any gain."""
    tree = RegressionTree(2, rule="variance", min_samples=2)
    rng = np.random.default_rng(0)
    for _ in range(500):
        assert tree.add(rng.integers(0, 64, 2).astype(np.uint8), 0.1) is None
    assert tree.n_leaves == 1
    assert tree.means == pytest.approx([0.1], rel=1e-6)


def test_equal_means_are_no_gain() -> None:
    """Where both sides of every split have the same mean there is none, also if rounded sums would tell them apart."""
    tree = RegressionTree(1, rule="variance", min_samples=1000)
    for i in range(1000):
        split = tree.add(np.array([63 * (i // 2 % 2)], np.uint8), (0.1, 0.7)[i % 2])
    assert split is None


def stream(n: int, *, seed: int = 0, width: int = 5, size: float = 1.0) -> list[tuple[np.ndarray, float]]:
    """Return experiences whose rewards depend on two of three columns, differently after the first half."""
    rng = np.random.default_rng(seed)
    told = []
    for i in range(n):
        code = rng.integers(0, 64, width).astype(np.uint8)
        code[0] = 63 * (code[0] > 40)
        good = code[0] and code[1] > 20 if i < n // 2 else code[2] > 30 and code[1] < 50
        told.append((code, size * (float(rng.normal()) + 2 * bool(good)) * (1 if i < n // 2 else 3)))
    return told


def routed(splits: list[Split], code: np.ndarray) -> int:
    """Return the leaf of a vector by following the splits."""
    leaf = 0
    for split in splits:
        if split.leaf == leaf and code[split.column] > split.above:
            leaf = split.new_leaf
    return leaf


@pytest.mark.parametrize("rule", RULES)
def test_statistics_are_those_of_the_window(rule: Any) -> None:
    """After thousands of experiences, counts, means and the counts of all codes are those of the last 700, anew from these."""
    tree = RegressionTree(3, rule=rule, window=700, max_leaves=60)
    told = stream(5000)
    for code, reward in told:
        tree.add(code, reward)
    assert tree.n_leaves > 10
    last = told[-700:]
    leaves = np.array([routed(tree.splits, code) for code, _ in last])
    assert tree.counts.tolist() == np.bincount(leaves, minlength=tree.n_leaves).tolist()
    for leaf in range(tree.n_leaves):
        there = [e for e, where in zip(last, leaves, strict=True) if where == leaf]
        assert tree.means[leaf] == pytest.approx(np.mean([reward for _, reward in there] or [0]), abs=1e-5)
        sums, counts = np.zeros((3, 64)), np.zeros((3, 64))
        for code, reward in there:
            sums[range(3), code[:3]] += reward
            counts[range(3), code[:3]] += 1
        assert (tree._levels[leaf].reshape(3, 64) == counts).all()
        assert np.ldexp(tree._level_sums[leaf].reshape(3, 64), tree._exponent - 22) == pytest.approx(sums, abs=1e-4)
        if rule == "sample-variance":
            squares = tree._level_squares[leaf].reshape(3, 64)
            assert squares.sum(axis=1).tolist() == [tree._square[leaf]] * 3
            assert squares[:, 63].tolist() == [
                sum(round(math.ldexp(r, 22 - tree._exponent)) ** 2 for code, r in there if code[column] == 63)
                for column in range(3)
            ]
        assert tree._square[leaf] == pytest.approx(
            sum(math.ldexp(r, 22 - tree._exponent) ** 2 for _, r in there), rel=1e-4
        )


def test_a_window_may_be_one_experience() -> None:
    """Then the mean is that of the last, and nothing is ever split."""
    tree = RegressionTree(3, rule="variance", window=1)
    for code, reward in stream(50):
        assert tree.add(code, reward) is None
        assert tree.counts.tolist() == [1]
        assert tree.means == pytest.approx([reward], abs=1e-5)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e300])
def test_rewards_may_be_of_any_size(size: float) -> None:
    """The same splits are found for rewards in any unit."""
    trees = RegressionTree(3, window=500), RegressionTree(3, window=500)
    for (code, reward), (_, other) in zip(stream(3000), stream(3000, size=2.0 ** round(math.log2(size))), strict=True):
        assert trees[0].add(code, reward) == trees[1].add(code, other)
    assert trees[0].n_leaves > 5


def test_a_reward_that_dwarfs_the_others_is_forgotten() -> None:
    """A trillion rounds rewards of 1 to 0; two windows later nothing is left of it."""
    tree = RegressionTree(1, window=50)
    code = np.zeros(1, np.uint8)
    for reward in (1e12, *[1.0] * 10):
        tree.add(code, reward)
    assert tree.means == pytest.approx([1e12 / 11])
    for _ in range(100):
        tree.add(code, 1.0)
    assert tree.means.tolist() == [1.0]


@pytest.mark.parametrize("rule", RULES[:2])
def test_vectors_go_where_the_splits_say(rule: Any) -> None:
    """Many at once and one after the other, also those with more columns than the tree looks at, and none."""
    tree = RegressionTree(3, rule=rule, window=2000)
    for code, reward in stream(4000):
        before = tree.counts
        leaf = routed(tree.splits, code)
        split = tree.add(code, reward)
        if split is None and tree._added <= 2000:
            assert np.flatnonzero(tree.counts - before).tolist() == [leaf]
    rows = np.random.default_rng(5).integers(0, 64, (500, 5)).astype(np.uint8)
    rows[:, 3:] += 150
    leaves = tree.route(rows)
    assert leaves.dtype == np.int32
    assert leaves.tolist() == [routed(tree.splits, row) for row in rows]
    assert len(set(leaves.tolist())) > 10
    assert tree.route(rows[:0]).shape == (0,)
    assert tree.route(np.asfortranarray(rows)[::2]).tolist() == leaves[::2].tolist()
    assert [split.new_leaf for split in tree.splits] == list(range(1, tree.n_leaves))


def depths(tree: RegressionTree) -> list[int]:
    """Return how many splits lead to each leaf."""
    depth = [0]
    for split in tree.splits:
        depth[split.leaf] += 1
        depth.append(depth[split.leaf])
    return depth


@pytest.mark.parametrize("rule", RULES[:2])
def test_the_tree_stays_within_its_limits(rule: Any) -> None:
    """Without limits it grows beyond three splits in a row and beyond seven leaves; with them it does not."""
    free, flat, small = (
        RegressionTree(3, rule=rule, **limit) for limit in ({}, {"max_depth": 3}, {"max_leaves": 7})
    )  # fmt: skip
    for code, reward in stream(3000):
        for tree in (free, flat, small):
            tree.add(code, reward)
    assert max(depths(free)) > 3
    assert free.n_leaves > 8
    assert max(depths(flat)) == 3
    assert small.n_leaves == 7
    assert small.splits == free.splits[:6]


@pytest.mark.parametrize(
    ("limit", "share", "child"),
    [
        ({"rule": "variance"}, 0.0, 1),
        ({"rule": "variance", "min_share": 0.2, "min_samples": 20}, 0.2, 4),
        ({"rule": "chi2", "min_child": 12}, 0.0, 12),
    ],
)
def test_both_sides_of_a_split_have_enough(limit: dict[str, Any], share: float, child: int) -> None:
    """The share of the smaller side, and how many it has, reach the limit and do not fall below."""
    tree = RegressionTree(3, **limit)
    shares, children = [], []
    for code, reward in stream(3000):
        split = tree.add(code, reward)
        if split is not None:
            counts = tree.counts[[split.leaf, split.new_leaf]]
            shares.append(counts.min() / counts.sum())
            children.append(counts.min())
    assert len(shares) > 10
    assert min(shares) >= share
    assert min(children) == child


@pytest.mark.few(2)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("stop", [0, 3, 900, 2600])
def test_a_stored_tree_goes_on_as_if_nothing_had_happened(rule: Any, stop: int) -> None:
    """It splits as one that was never stored, and its statistics are the same to the last bit."""
    tree = RegressionTree(3, rule=rule, window=800, tau=6.0, min_share=0.01, max_depth=15, max_leaves=300)
    told = stream(3000, size=0.3)
    for code, reward in told[:stop]:
        tree.add(code, reward)
    other = pickle.loads(pickle.dumps(tree, protocol=5))
    for code, reward in told[stop:]:
        assert tree.add(code, reward) == other.add(code, reward)
    assert tree.n_leaves > 5
    assert tree.splits == other.splits
    assert all(isinstance(split, Split) for split in other.splits)
    assert tree.means.tolist() == other.means.tolist()
    for mine, theirs in zip(tree._levels + tree._level_sums, other._levels + other._level_sums, strict=True):
        assert (mine == theirs).all()
    assert tree.counts.tolist() == other.counts.tolist()


def test_only_the_window_and_the_splits_are_stored() -> None:
    """15 bytes for each of 500 experiences with three columns, 16 for each split, although 3,000 came."""
    tree = RegressionTree(3, window=500)
    for code, reward in stream(3000):
        tree.add(code, reward)
    assert len(pickle.dumps(tree, protocol=5)) < 15 * 500 + 16 * len(tree.splits) + 1500


@pytest.mark.parametrize(
    ("code", "reward"),
    [([3, 64], 1.0), ([3], 1.0), ([3, 4], math.nan), ([3, 4], -math.inf)],
)
def test_what_is_no_experience_is_refused(code: list[int], reward: float) -> None:
    """An invalid code, a missing column and a reward that is not a number change nothing."""
    tree = RegressionTree(2)
    tree.add(np.array([1, 2, 200], np.uint8), 0.5)
    before = pickle.dumps(tree)
    with pytest.raises(ValueError, match="expected 2 codes up to 63 and a finite number"):
        tree.add(np.array(code, np.uint8), reward)
    assert pickle.dumps(tree) == before


@pytest.mark.parametrize(
    ("columns", "parameters", "message"),
    [
        (3, {"rule": "gini"}, "'chi2', 'variance', 'sample-variance'"),
        (0, {}, "a column and a leaf"),
        (3, {"max_leaves": 0}, "a column and a leaf"),
        (3, {"window": 0}, "1 to 262144"),
        (3, {"window": 262_145}, "1 to 262144"),
    ],
)
def test_parameters_that_cannot_be_used_are_named(columns: int, parameters: dict[str, Any], message: str) -> None:
    """The message says what was expected."""
    with pytest.raises(ConfigError, match=message):
        RegressionTree(columns, **parameters)


def test_a_large_leaf_is_weighed_less_often() -> None:
    """Of 640 experiences or so, a leaf splits at one in 11 of all experiences by rule chi2, by the others at once."""
    splits = {}
    for rule in RULES:
        tree = RegressionTree(1, rule=rule, tau=4.0, min_samples=1, min_child=1)
        for _ in range(640):
            assert tree.add(np.zeros(1, np.uint8), 0.0) is None
        splits[rule] = next(n for n in range(641, 660) if tree.add(np.full(1, 9, np.uint8), 1.0) is not None)
    assert splits == {"chi2": 649, "variance": 641, "sample-variance": 641}
