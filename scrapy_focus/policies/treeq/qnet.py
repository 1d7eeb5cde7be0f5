"""The value of a link including all later rewards: a small network, and its experiences.

A page is worth fetching for itself and for its links. The first is its reward; the second is the value of the best
next link, which the network estimates itself (double Q-learning). The network has some thousand weights and computes
a few hundred values at each step, so that the cost is in the calls: libraries for larger networks take a millisecond
for each call, NumPy some 30 microseconds for all.
"""

from __future__ import annotations

import copy
import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.core.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HIDDEN = (30, 15)
_LEAK = np.float32(0.1)
_DECAY = 0.9, 0.999  # of the running means of gradients and of their squares
_EPSILON = np.float32(1e-7)
_PIECE = 512  # rows at once: intermediate results fit into the cache, and their memory is not returned to the system
_ONE = np.float32(1)
_MOST_ODDS = np.float32(30)
_LEVEL = np.float32(63)  # the code of the value 1
_MADE = ("_layers", "_first", "_second", "_last", "_given", "_level")  # of the weights, updated on demand


class QNetwork:
    """Two hidden layers of 30 and 15 with leaky rectifiers, one linear output, trained by Adam on the squared error.

    Parameters
    ----------
    d
        Length of the vectors.
    learning_rate
        Of Adam, with decay rates 0.9 and 0.999.
    clip
        Each element of a gradient is clipped at this.
    rng
        Draws the first weights: uniform within ``sqrt(6 / (inputs + outputs))`` for each layer, biases 0.
    prior
        The initial value of each element of a vector, shape (d,): the network starts from that sum, with its last
        layer at 0, and learns a correction.
    bias
        With it, that sum and the bias are the log-odds of the network's initial value; ``None``: the sum itself is
        the value.

    Attributes
    ----------
    weights : NDArray[float32]
        All weights and biases, shape (n_weights,): of each layer the matrix (inputs, outputs) row by row, then the
        biases. To copy a network into another one, ``other.weights[:] = network.weights``.

    Notes
    -----
    Single precision. Equal inputs give equal outputs, bit by bit, on the same machine and NumPy. The value of one row
    may differ in the last bit with the number of rows in the call, as matrix products do.

    Examples
    --------
    >>> network = QNetwork(2, rng=np.random.default_rng(1), learning_rate=0.01)
    >>> x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
    >>> for _ in range(300):
    ...     loss = network.fit(x, np.array([0, 1, 1, 0], np.float32))
    >>> np.abs(network.values(x).round(1)).tolist()
    [0.0, 1.0, 1.0, 0.0]
    """

    _given: bytes
    _level: np.float32

    def __init__(
        self,
        d: int,
        *,
        rng: np.random.Generator,
        learning_rate: float = 1e-3,
        clip: float = 1.0,
        prior: NDArray[np.float32] | None = None,
        bias: float | None = None,
    ) -> None:
        if d < 1:
            raise ConfigError(f"QNetwork({d}): vectors have a length of at least 1")
        self.d = d
        self.learning_rate = learning_rate
        self.clip = clip
        layers = []
        for shape in pairwise((d, *_HIDDEN, 1)):
            limit = np.sqrt(6 / sum(shape))
            layers += [rng.uniform(-limit, limit, shape).ravel(), np.zeros(shape[1])]
        self.weights: NDArray[np.float32] = np.concatenate(layers).astype(np.float32)
        self._mean = np.zeros_like(self.weights)  # of gradients
        self._square = np.zeros_like(self.weights)  # of their squares
        self._steps = 0
        self.prior = prior
        self.bias = bias
        self._make_room()
        if prior is not None:
            self._layers[2][:] = 0

    def values(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the value of each row of x : (n, d), shape (n,)."""
        return self._forward(_with_ones(x))[-1]

    def values_of_codes(self, codes: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the value of each row of codes : (n, d), shape (n,), where code 63 is the value 1."""
        return self._forward(_with_ones(codes, _LEVEL), _LEVEL)[-1]

    def gradient(self, x: NDArray[np.float32], y: NDArray[np.float32]) -> tuple[float, NDArray[np.float32]]:
        """Return the mean squared error on x : (n, d), y : (n,), and its gradient : (n_weights,), not clipped."""
        wide = _with_ones(x)
        first, second, values = self._forward(wide)
        gradient = np.empty_like(self.weights)
        layer1, layer2, layer3 = self._cut(gradient)
        error = values - y
        back = (error * np.float32(2 / len(y)))[:, None]
        np.matmul(second.T, back, out=layer3)
        outputs = _HIDDEN[1]
        back = back * self._last[:outputs]
        back *= _slopes(second[:, :outputs])
        np.matmul(first[:, : len(layer2)].T, back, out=layer2)
        back = back @ self._layers[1][:-1].T
        back *= _slopes(first[:, : _HIDDEN[0]])
        np.matmul(wide.T, back, out=layer1)
        return float(error @ error) / len(y), gradient

    def fit(self, x: NDArray[np.float32], y: NDArray[np.float32]) -> float:
        """Take one step of Adam towards y : (n,) on x : (n, d), and return the mean squared error before it."""
        loss, gradient = self.gradient(x, y)
        np.minimum(gradient, np.float32(self.clip), out=gradient)
        np.maximum(gradient, np.float32(-self.clip), out=gradient)
        self._steps += 1
        first, second = _DECAY
        some = gradient - self._mean
        some *= np.float32(1 - first)
        self._mean += some
        np.multiply(gradient, gradient, out=some)
        some -= self._square
        some *= np.float32(1 - second)
        self._square += some
        np.sqrt(self._square, out=some)
        some += _EPSILON
        np.divide(self._mean, some, out=some)
        some *= np.float32(self.learning_rate * math.sqrt(1 - second**self._steps) / (1 - first**self._steps))
        self.weights -= some
        return loss

    def _forward(
        self, wide: NDArray[np.float32], level: np.float32 = _ONE
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        """Return the outputs of both hidden layers and the last one for vectors with one more element, ``level``.

        Each layer has a unit that is always 1, so that its biases are a row of its matrix; the first has one more for
        the prior.
        """
        given = self.weights.tobytes()
        if given != self._given or level != self._level:
            self._given, self._level = given, level
            self._fill(level)
        first: NDArray[np.float32] = wide @ self._first
        before = first[:, -1].copy() if self.bias is None else _probability(first[:, -1])
        np.maximum(first, first * _LEAK, out=first)
        second: NDArray[np.float32] = first @ self._second
        np.maximum(second, second * _LEAK, out=second)
        values: NDArray[np.float32] = second @ self._last
        values += before
        return first, second, values

    def _fill(self, level: np.float32) -> None:
        """Write the weights into the matrices of :meth:`_forward`."""
        layer1, layer2, layer3 = self._layers
        hidden, outputs = _HIDDEN
        np.divide(layer1, level, out=self._first[:, :hidden])
        self._first[-1, hidden] = _ONE / level
        if self.prior is not None:
            np.divide(self.prior, level, out=self._first[:-1, -1])
            self._first[-1, -1] = (self.bias or 0.0) / level
        self._second[: hidden + 1, :outputs] = layer2
        self._last[:] = layer3[:, 0]

    def _cut(self, weights: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """Return views of the matrices in one long vector, with the biases of each as its last row."""
        views, start = [], 0
        for inputs, outputs in pairwise((self.d, *_HIDDEN, 1)):
            size = (inputs + 1) * outputs
            views.append(weights[start : start + size].reshape(inputs + 1, outputs))
            start += size
        return views

    def _make_room(self) -> None:
        """Create views of the weights, and the matrices with the units that are always 1, see :meth:`_forward`."""
        hidden, outputs = _HIDDEN
        self._layers = self._cut(self.weights)
        self._first = np.zeros((self.d + 1, hidden + 2), np.float32)
        self._second = np.zeros((hidden + 2, outputs + 1), np.float32)
        self._second[hidden, outputs] = 1
        self._last = np.zeros(outputs + 1, np.float32)
        self._given, self._level = b"", _ONE  # the versions of the weights that they hold

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _MADE}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_room()


class Replay:
    """The last experiences: a vector, its reward, and the vectors of the next links.

    Parameters
    ----------
    d
        Length of the vectors, which are codes 0..255.
    capacity
        Number of experiences to keep. The oldest makes room for the next.
    fan
        Number of next vectors to keep for each, besides the chosen one.

    Notes
    -----
    *Memory*: ``d * (fan + 2) + 7`` bytes for each experience (14 MB for 20,000 with 20 codes and fan 32), the same when
    pickled.
    """

    def __init__(self, d: int, *, capacity: int = 20_000, fan: int = 32) -> None:
        if not (d > 0 and capacity > 0 and 0 <= fan < 32_767):
            raise ConfigError(
                f"Replay({d}, capacity={capacity}, fan={fan}): expected lengths above 0, and a fan of 0 to 32,766"
            )
        self.d = d
        self.capacity = capacity
        self.fan = fan
        self.added = 0
        self._make_room()

    def _make_room(self) -> None:
        # Unwritten memory is never allocated, and allocated memory does not move.
        self._vectors = np.zeros((self.capacity, self.d), np.uint8)
        self._rewards = np.zeros(self.capacity, np.float32)
        self._nexts = np.zeros((self.capacity, self.fan + 1, self.d), np.uint8)
        self._counts = np.zeros(self.capacity, np.int16)  # of _nexts, including the chosen one, which is the last
        self._chosen = np.zeros(self.capacity, np.bool_)

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def add(self, x: NDArray[np.uint8], reward: float, nexts: NDArray[np.uint8]) -> int:
        """Add an experience, x : (d,), nexts : (k, d), and return its number: how many came before it.

        Raises
        ------
        ValueError
            If there are more than ``fan`` of nexts. Pass a sample of them. Nothing is changed.
        """
        if len(nexts) > self.fan:
            raise ValueError(f"got {len(nexts)} next vectors; at most fan={self.fan} are kept, pass a sample")
        row = self.added % self.capacity
        self._vectors[row] = x
        self._rewards[row] = reward
        self._nexts[row, : len(nexts)] = nexts
        self._counts[row] = len(nexts)
        self._chosen[row] = False
        self.added += 1
        return self.added - 1

    def set_chosen(self, row: int, x: NDArray[np.uint8]) -> None:
        """Set the chosen next vector, x : (d,), of experience ``row``, in place of any earlier one.

        Nothing happens if that experience is no longer kept.
        """
        if not self.added - self.capacity <= row < self.added:
            return
        place = row % self.capacity
        if not self._chosen[place]:
            self._chosen[place] = True
            self._counts[place] += 1
        self._nexts[place, self._counts[place] - 1] = x

    def sample(self, batch: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return so many different rows at random, or all if there are no more."""
        return rng.choice(len(self), min(batch, len(self)), replace=False)

    def rows(
        self, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.uint8], NDArray[np.int16]]:
        """Return vectors : (n, d), rewards : (n,), next vectors : (n, fan + 1, d), and how many are used : (n,)."""
        rows = rows % self.capacity
        return self._vectors[rows], self._rewards[rows], self._nexts[rows], self._counts[rows]

    def __getstate__(self) -> dict[str, Any]:
        kept = ("_vectors", "_rewards", "_nexts", "_counts", "_chosen")
        return {name: value[: len(self)] if name in kept else value for name, value in self.__dict__.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_room()
        for name in ("_vectors", "_rewards", "_nexts", "_counts", "_chosen"):
            self.__dict__[name][: len(self)] = state[name]


class DoubleDQN:
    """The value of links, learned from the rewards of fetched pages and from the next links.

    The target of an experience is ``reward + gamma * value`` of the best next vector: the learning network chooses
    it, and a copy that is updated from time to time gives its value. Without next vectors the target is the reward
    alone. Vectors are codes, and code 63 is the value 1 (the codes of the tree end there, others may be larger).

    Parameters
    ----------
    d
        Length of the vectors.
    gamma
        Discount of the next reward. The published system argues for a low one and was released with 0.99.
    batch
        Experiences of a learning step, all different.
    target_every
        Experiences from one copy to the next.
    capacity, fan
        See :class:`Replay`.
    rng, learning_rate, clip, prior, bias
        See :class:`QNetwork`.

    Attributes
    ----------
    fan
        Next vectors that :meth:`add` takes at most.

    Notes
    -----
    Memory and pickle are those of :class:`Replay` and 30 KB. If gamma is 0, no next vectors are kept.

    References
    ----------
    van Hasselt, Guez, Silver: Deep reinforcement learning with double Q-learning. AAAI (2016).
    """

    def __init__(
        self,
        d: int,
        *,
        rng: np.random.Generator,
        gamma: float = 0.3,
        batch: int = 60,
        target_every: int = 500,
        capacity: int = 20_000,
        fan: int = 32,
        learning_rate: float = 1e-3,
        clip: float = 1.0,
        prior: NDArray[np.float32] | None = None,
        bias: float | None = None,
    ) -> None:
        if not (0 <= gamma <= 1 and 0 < batch <= capacity and target_every > 0):
            raise ConfigError(
                f"DoubleDQN(gamma={gamma}, batch={batch}, target_every={target_every}, capacity={capacity}): expected "
                "gamma between 0 and 1, and numbers above 0, the batch not above the capacity"
            )
        self.gamma = gamma
        self.batch = batch
        self.target_every = target_every
        self.fan = fan
        self.replay = Replay(d, capacity=capacity, fan=fan if gamma else 0)
        self.online = QNetwork(d, rng=rng, learning_rate=learning_rate, clip=clip, prior=prior, bias=bias)
        self.target = copy.deepcopy(self.online)

    def values(self, codes: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the value of each row of codes : (n, d), shape (n,)."""
        values = np.empty(len(codes), np.float32)
        for start in range(0, len(codes), _PIECE):
            values[start : start + _PIECE] = self.online.values_of_codes(codes[start : start + _PIECE])
        return values

    def add(self, x: NDArray[np.uint8], reward: float, nexts: NDArray[np.uint8]) -> int:
        """Keep an experience as :meth:`Replay.add` does, and return its number; copy the network when it is time."""
        if len(nexts) > self.fan:
            raise ValueError(f"got {len(nexts)} next vectors; at most fan={self.fan} are kept, pass a sample")
        row = self.replay.add(x, reward, nexts if self.gamma else nexts[:0])
        if self.replay.added % self.target_every == 0:
            self.target.weights[:] = self.online.weights
        return row

    def set_chosen(self, row: int, x: NDArray[np.uint8]) -> None:
        """Set the chosen next vector, x : (d,), of experience ``row``."""
        if self.gamma:
            self.replay.set_chosen(row, x)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({"fan": state["replay"].fan} | state)

    def targets(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the targets of experiences, shape (len(rows),)."""
        _, rewards, nexts, counts = self.replay.rows(rows)
        return self._targets(rewards, nexts, counts)

    def train(self, rng: np.random.Generator) -> float | None:
        """Learn from a batch; return the mean squared error before, ``None`` while there are too few experiences."""
        if len(self.replay) < self.batch:
            return None
        vectors, rewards, nexts, counts = self.replay.rows(self.replay.sample(self.batch, rng))
        return self.online.fit(vectors.astype(np.float32) / _LEVEL, self._targets(rewards, nexts, counts))

    def _targets(
        self, rewards: NDArray[np.float32], nexts: NDArray[np.uint8], counts: NDArray[np.int16]
    ) -> NDArray[np.float32]:
        if not self.gamma:
            return rewards
        values = self.values(nexts.reshape(-1, nexts.shape[2])).reshape(nexts.shape[:2])
        values[np.arange(nexts.shape[1]) >= counts[:, None]] = -np.inf
        best = nexts[np.arange(len(nexts)), values.argmax(axis=1)]
        worth = self.target.values_of_codes(best)
        worth[counts == 0] = 0
        worth *= np.float32(self.gamma)
        worth += rewards
        return worth


def _probability(odds: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the probabilities of log-odds, as a new array."""
    made: NDArray[np.float32] = np.minimum(np.maximum(odds, -_MOST_ODDS), _MOST_ODDS)
    np.negative(made, out=made)
    np.exp(made, out=made)
    made += _ONE
    np.reciprocal(made, out=made)
    return made


def _slopes(activations: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the slope of the leaky rectifier at this output."""
    slopes: NDArray[np.float32] = np.where(activations > 0, _ONE, _LEAK)
    return slopes


def _with_ones(x: NDArray[np.float32] | NDArray[np.uint8], level: np.float32 = _ONE) -> NDArray[np.float32]:
    """Return x : (n, d) with one more column, which is ``level``."""
    wide = np.empty((len(x), x.shape[1] + 1), np.float32)
    wide[:, :-1] = x
    wide[:, -1] = level
    return wide
