"""A small network that learns the value of links, and the experiences that it learns from."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from scrapy_focus import ConfigError
from scrapy_focus.policies.treeq.qnet import DoubleDQN, QNetwork, Replay


def rng(seed: int = 0) -> np.random.Generator:
    """Return a generator that starts anew."""
    return np.random.default_rng(seed)


def codes(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Return codes of n vectors."""
    return rng(seed).integers(0, 64, (n, d)).astype(np.uint8)


def forward(weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return what a network of d-30-15-1 gives, in double precision and from nothing but its weights."""
    start, out = 0, x.astype(np.float64)
    for outputs in (30, 15, 1):
        inputs = out.shape[1]
        matrix = weights[start : start + inputs * outputs].reshape(inputs, outputs)
        start += inputs * outputs
        out = out @ matrix + weights[start : start + outputs]
        start += outputs
        out = out if outputs == 1 else np.where(out > 0, out, 0.1 * out)
    assert start == len(weights)
    return out[:, 0]


def test_values_are_those_of_two_leaky_layers() -> None:
    """In single precision they are what the weights say in double precision."""
    network = QNetwork(7, rng=rng())
    network.weights += rng(1).normal(0, 0.3, network.weights.shape).astype(np.float32)
    x = rng(2).normal(size=(50, 7)).astype(np.float32)
    values = network.values(x)
    assert values.dtype == network.weights.dtype == np.float32
    assert values == pytest.approx(forward(network.weights, x), abs=1e-5)
    assert network.values(x[:0]).shape == (0,)


def test_the_first_weights_are_uniform_and_biases_0() -> None:
    """Within sqrt(6 / (inputs + outputs)), with the standard deviation of a uniform number, a third of that squared."""
    weights = QNetwork(100, rng=rng()).weights
    limits = np.sqrt([6 / 130, 6 / 45, 6 / 16])
    start = 0
    for inputs, outputs, limit in zip((100, 30, 15), (30, 15, 1), limits, strict=True):
        matrix = weights[start : start + inputs * outputs]
        start += inputs * outputs
        assert np.abs(matrix).max() <= limit
        assert matrix.std() == pytest.approx(limit / np.sqrt(3), rel=0.35 if outputs == 1 else 0.05)
        assert not weights[start : start + outputs].any()
        start += outputs
    assert start == len(weights)


def test_the_gradient_is_that_of_the_mean_squared_error() -> None:
    """Each of its elements is the central difference in double precision."""
    network = QNetwork(4, rng=rng())
    network.weights += rng(1).normal(0, 0.3, network.weights.shape).astype(np.float32)
    x, y = rng(2).normal(size=(9, 4)).astype(np.float32), rng(3).normal(size=9).astype(np.float32)
    weights, loss, gradient = network.weights.astype(np.float64), *network.gradient(x, y)
    assert loss == pytest.approx(np.mean((forward(weights, x) - y) ** 2), rel=1e-5)
    for i in range(len(weights)):
        step = np.zeros_like(weights)
        step[i] = 1e-6
        up, down = (np.mean((forward(weights + side * step, x) - y) ** 2) for side in (1, -1))
        assert gradient[i] == pytest.approx((up - down) / 2e-6, abs=2e-5)
    assert np.count_nonzero(gradient) > 0.9 * len(gradient)


def test_a_step_is_that_of_adam() -> None:
    """With all weights 0 only the last bias moves, by hand: gradients -200, clipped to -1, then 0.5, and epsilon 1e-7.

    First: 0.001 * sqrt(0.001) / 0.1 * 0.1 / (sqrt(0.001) + 1e-7) = 0.0009999968. Then the running means are
    0.9 * -0.1 + 0.1 * 0.5 = -0.04 and 0.999 * 0.001 + 0.001 * 0.25 = 0.001249, and the step is
    0.001 * sqrt(1 - 0.998001) / 0.19 * 0.04 / (sqrt(0.001249) + 1e-7) = 0.0002663363.
    """
    network = QNetwork(3, rng=rng())
    network.weights[:] = 0
    x = np.ones((2, 3), np.float32)
    assert network.fit(x, np.array([100, 100], np.float32)) == pytest.approx(100**2)
    assert network.weights[-1] == pytest.approx(0.0009999968, rel=3e-7)
    network.fit(x, network.weights[-1] - np.array([0.25, 0.25], np.float32))
    assert network.weights[-1] == pytest.approx(0.0009999968 + 0.0002663363, rel=3e-7)
    assert not network.weights[:-1].any()


def test_a_step_makes_up_for_its_epsilon() -> None:
    """A gradient of 2e-6 moves a weight by 0.001 * 6.3e-8 / (6.3e-8 + 1e-7) = 0.000387426, not by nearly 0.001."""
    network = QNetwork(3, rng=rng())
    network.weights[:] = 0
    network.fit(np.ones((1, 3), np.float32), np.array([1e-6], np.float32))
    assert network.weights[-1] == pytest.approx(0.000387426, rel=1e-4)


def test_a_network_learns_a_function() -> None:
    """It tells apart what no linear function does, on vectors that it never saw."""
    network = QNetwork(2, rng=rng(), learning_rate=3e-3)
    x = rng(1).random((4000, 2)).astype(np.float32)
    y = ((x[:, 0] > 0.5) != (x[:, 1] > 0.5)).astype(np.float32)
    draws = rng(2)
    for _ in range(2000):
        batch = draws.integers(0, 3000, 60)
        network.fit(x[batch], y[batch])
    assert np.mean((network.values(x[3000:]) > 0.5) == (y[3000:] > 0.5)) > 0.93


def test_the_oldest_experience_makes_room() -> None:
    """Of 8 added where 5 are kept, the last 5 remain, each with its data."""
    replay = Replay(2, capacity=5, fan=3)
    for i in range(8):
        assert len(replay) == min(i, 5)
        assert replay.add(np.array([i, 9], np.uint8), i / 2, np.full((i % 4, 2), i, np.uint8)) == i
    vectors, rewards, nexts, counts = replay.rows(np.arange(3, 8))
    assert vectors.tolist() == [[i, 9] for i in range(3, 8)]
    assert rewards.tolist() == [1.5, 2.0, 2.5, 3.0, 3.5]
    assert counts.tolist() == [3, 0, 1, 2, 3]
    assert [row[:k].tolist() for row, k in zip(nexts, counts, strict=True)] == [[[i, i]] * (i % 4) for i in range(3, 8)]


def test_what_was_chosen_next_is_one_more() -> None:
    """Also where all places are taken; set again it takes the place of the first; a new experience has none."""
    replay = Replay(1, capacity=2, fan=2)
    nexts = np.array([[1], [2]], np.uint8)
    first, second = replay.add(nexts[0], 0.0, nexts), replay.add(nexts[0], 0.0, nexts[:0])
    for chosen in (7, 8):
        replay.set_chosen(first, np.array([chosen], np.uint8))
    replay.set_chosen(second, np.array([9], np.uint8))
    _, _, kept, counts = replay.rows(np.array([first, second]))
    assert counts.tolist() == [3, 1]
    assert kept[0].tolist() == [[1], [2], [8]]
    assert kept[1, 0].tolist() == [9]
    third = replay.add(nexts[0], 0.0, nexts[1:])
    replay.set_chosen(first, np.array([5], np.uint8))
    replay.set_chosen(third + 1, np.array([5], np.uint8))
    _, _, kept, counts = replay.rows(np.array([third, second]))
    assert counts.tolist() == [1, 1], "the first is no longer there, and the one after the third not yet"
    assert kept[:, 0].tolist() == [[2], [9]]
    replay.set_chosen(third, np.array([6], np.uint8))
    assert replay.rows(np.array([third]))[2][0, :2].tolist() == [[2], [6]]


def test_too_many_to_go_on_with_are_refused() -> None:
    """The caller draws as many as fit, and which: the message says how many."""
    network = DoubleDQN(2, rng=rng(), fan=3)
    with pytest.raises(ValueError, match=r"got 4 .* at most fan=3"):
        network.add(codes(1, 2)[0], 1.0, codes(network.fan + 1, 2))
    assert len(network.replay) == 0


def test_samples_are_uniform_and_without_repetition() -> None:
    """Each of 40 experiences, some of them in the places of older ones, is in a quarter of 4,000 samples of 10."""
    replay, draws = Replay(1, capacity=40, fan=1), rng()
    for i in range(65):
        replay.add(np.array([i], np.uint8), 0.0, np.zeros((0, 1), np.uint8))
    seen = np.zeros(65, int)
    for _ in range(4000):
        vectors = replay.rows(replay.sample(10, draws))[0][:, 0]
        assert len(set(vectors.tolist())) == 10
        seen[vectors] += 1
    assert not seen[:25].any()
    assert np.abs(seen[25:] - 1000).max() < 4.5 * np.sqrt(4000 * 0.25 * 0.75)
    assert sorted(replay.sample(100, draws).tolist()) == list(range(40))


def linear(network: QNetwork, column: int, factor: float = 1.0) -> None:
    """Let the value of a vector be one of its numbers, if that is above 0, times a factor."""
    network.weights[:] = 0
    d = network.d
    network.weights[30 * column] = 1
    network.weights[30 * d + 30] = 1
    network.weights[30 * d + 30 + 450 + 15] = factor


def judge() -> DoubleDQN:
    """Return a learner that takes the link with the largest first number and gives the worth of its second number."""
    network = DoubleDQN(2, rng=rng(), gamma=0.3, capacity=10, batch=2, fan=3)
    linear(network.online, 0)
    linear(network.target, 1)
    return network


def test_values_are_those_of_codes_over_63() -> None:
    """Code 63 is the value 1, and larger ones are above."""
    assert judge().values(np.array([[63, 5], [21, 5], [126, 5]], np.uint8)) == pytest.approx([1, 1 / 3, 2])


def test_a_target_is_that_of_double_q_learning() -> None:
    """Of (21, 63) and (42, 21), the second is the best to the one that learns, and worth 21/63 to the other: r + 0.3 / 3."""
    network = judge()
    x = codes(1, 2)[0]
    nexts = np.array([[21, 63], [42, 21]], np.uint8)
    own = network.add(x, 1.0, nexts)
    union = network.add(x, 1.0, nexts)
    network.set_chosen(union, np.array([63, 42], np.uint8))
    worse = network.add(x, 0.5, nexts)
    network.set_chosen(worse, np.array([41, 63], np.uint8))
    dead = network.add(x, 0.25, nexts[:0])
    only = network.add(x, 0.0, nexts[:0])
    network.set_chosen(only, np.array([0, 63], np.uint8))
    expected = {own: 1 + 0.3 / 3, union: 1 + 0.3 * 2 / 3, worse: 0.5 + 0.3 / 3, dead: 0.25, only: 0.3}
    targets = network.targets(np.array(list(expected)))
    assert targets == pytest.approx(list(expected.values()), abs=1e-6)
    assert targets.dtype == np.float32


def test_without_what_comes_later_the_reward_is_all() -> None:
    """With gamma 0 no next vectors are kept, neither in memory nor in a pickle; as many as before are accepted."""
    network = DoubleDQN(4, rng=rng(), gamma=0.0, fan=3)
    rows = [network.add(x, i / 4, codes(3, 4)) for i, x in enumerate(codes(100, 4))]
    network.set_chosen(rows[0], codes(1, 4)[0])
    assert network.targets(np.array(rows)).tolist() == [i / 4 for i in range(100)]
    assert not network.replay.rows(np.array(rows))[3].any()
    assert network.fan == pickle.loads(pickle.dumps(network)).fan == 3
    assert len(pickle.dumps(network.replay, protocol=5)) < 100 * (4 * 2 + 7) + 1_000
    with pytest.raises(ValueError, match="at most fan=3"):
        network.add(codes(1, 4)[0], 1.0, codes(4, 4))


def test_weights_may_be_written_at_any_time() -> None:
    """What is made of them is made anew: values of vectors and of codes are those of the weights as they are."""
    network, x = QNetwork(3, rng=rng(), prior=np.array([0.5, 0.0, -2.0], np.float32)), codes(5, 3)
    for seed in range(3):
        network.weights[:] = rng(seed).normal(0, 0.3, network.weights.shape)
        expected = forward(network.weights, x / 63) + x / 63 @ network.prior
        assert network.values(x / np.float32(63)) == pytest.approx(expected, abs=1e-5)
        assert network.values_of_codes(x) == pytest.approx(expected, abs=1e-5)
        network.weights[-1] += 1
        assert network.values_of_codes(x) == pytest.approx(expected + 1, abs=1e-5)


def test_places_without_a_vector_are_worth_nothing() -> None:
    """Where all values are below that of an empty place, the best is one of them; where all are empty, the reward is all."""
    network = judge()
    for net in (network.online, network.target):
        linear(net, 0, factor=-1.0)
        net.weights[-1] = 0.25
    row = network.add(codes(1, 2)[0], 1.0, np.array([[42, 0], [21, 0]], np.uint8))
    dead = network.add(codes(1, 2)[0], 0.5, np.zeros((0, 2), np.uint8))
    assert network.targets(np.array([row, dead])) == pytest.approx([1 + 0.3 * (0.25 - 1 / 3), 0.5])


def test_the_target_network_follows_every_so_many_experiences() -> None:
    """It is the network that learns as it was at the fourth and eighth experience, and the same at first."""
    network, draws = DoubleDQN(3, rng=rng(), target_every=4, batch=1, capacity=5), rng(1)
    expected = network.online.weights.copy()
    for i, x in enumerate(codes(11, 3), start=1):
        network.add(x, float(x[0]), codes(2, 3, seed=i))
        if i % 4 == 0:
            expected = network.online.weights.copy()
        assert (network.target.weights == expected).all()
        assert network.train(draws) is not None
        assert (network.target.weights == expected).all()
        assert (network.online.weights != expected).any()


def test_training_begins_with_a_full_batch() -> None:
    """With 59 experiences and a batch of 60 there is none, and nothing is drawn; with 60 there is."""
    network, draws = DoubleDQN(3, rng=rng()), rng(1)
    for i, x in enumerate(codes(60, 3)):
        assert network.train(draws) is None
        assert draws.bit_generator.state == rng(1).bit_generator.state
        network.add(x, 1.0, codes(i % 3, 3))
    loss = network.train(draws)
    assert loss is not None
    assert loss > 0


def trained(n: int, *, stop: int = -1, seed: int = 0, gamma: float = 0.5) -> tuple[DoubleDQN, list[Any]]:
    """Return a learner of a chain and its losses; stored and loaded once on the way if asked.

    Vectors whose first code is high bring 1 and lead nowhere; those whose second is high bring 0, and lead to these.
    """
    network, draws, losses = DoubleDQN(4, rng=rng(seed), gamma=gamma, target_every=100, capacity=700, fan=4), rng(1), []
    for i, x in enumerate(codes(n, 4, seed=7)):
        if i == stop:
            network, draws = pickle.loads(pickle.dumps((network, draws), protocol=5))
        kind = i % 3
        x[:2] = [(63, 0), (0, 63), (0, 0)][kind]
        nexts = np.concatenate([codes(1 + i % 3, 4, seed=i), np.array([[63, 0, 9, 9]], np.uint8)])
        nexts[:-1, :2] = 0
        row = network.add(x, float(kind == 0), nexts if kind == 1 else nexts[:0])
        if kind == 2:
            network.set_chosen(row, np.array([0, 0, i % 64, 5], np.uint8))
        losses.append(network.train(draws))
    return network, losses


@pytest.mark.slow
def test_what_leads_to_a_reward_is_worth_a_part_of_it() -> None:
    """A reward of 1 is worth 1, what leads to it gamma, and what leads nowhere 0."""
    network, _ = trained(2500)
    for start, worth in (((63, 0), 1.0), ((0, 63), 0.5), ((0, 0), 0.0)):
        x = codes(200, 4, seed=99)
        x[:, :2] = start
        assert network.values(x) == pytest.approx(np.full(200, worth), abs=0.12)


@pytest.mark.few(1)
@pytest.mark.parametrize("stop", [30, 400, 1200])
def test_a_stored_learner_goes_on_as_if_nothing_had_happened(stop: int) -> None:
    """Losses, weights and experiences are the same to the last bit, whether it was stored or not."""
    (network, losses), (other, others) = trained(1500), trained(1500, stop=stop)
    assert losses == others
    for one, two in ((network.online, other.online), (network.target, other.target)):
        assert one.weights.tobytes() == two.weights.tobytes()
    everything = np.arange(len(network.replay))
    for mine, theirs in zip(network.replay.rows(everything)[:2], other.replay.rows(everything)[:2], strict=True):
        assert (mine == theirs).all()
    x = codes(300, 4)
    assert network.values(x).tobytes() == other.values(x).tobytes()


def test_only_the_generators_decide() -> None:
    """Learners from equal generators are equal, others are not."""
    assert trained(200)[1] == trained(200)[1]
    assert trained(200)[1] != trained(200, seed=1)[1]


def test_only_what_was_added_is_stored() -> None:
    """100 experiences of 4 codes take 4 * (32 + 2) + 7 bytes each, not the 20,000 that there is room for."""
    network = DoubleDQN(4, rng=rng())
    empty = len(pickle.dumps(network, protocol=5))
    for x in codes(100, 4):
        network.add(x, 1.0, codes(2, 4))
    assert empty < 20_000
    assert len(pickle.dumps(network, protocol=5)) - empty < 100 * (4 * 34 + 7) + 100


@pytest.mark.parametrize(
    "parameters",
    [{"d": 0}, {"gamma": 1.5}, {"batch": 0}, {"batch": 11, "capacity": 10}, {"target_every": 0}, {"fan": -1}],
)
def test_parameters_that_cannot_be_used_are_named(parameters: dict[str, Any]) -> None:
    """The message has the name and the value."""
    (name, value), *_ = parameters.items()
    with pytest.raises(ConfigError, match=rf"\({value}|{name}={value}"):
        DoubleDQN(**{"d": 3, "rng": rng(), **parameters})


def test_a_network_needs_an_input() -> None:
    """A length of 0 is refused."""
    with pytest.raises(ConfigError, match=r"QNetwork\(0\)"):
        QNetwork(0, rng=rng())
