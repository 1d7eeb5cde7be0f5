"""The values of the states on a walk, learned during the walk: temporal differences, linear in the state."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST = 1e9  # of any weight
_MOST = 1e20  # of an error that moves weights
_SPREAD = 0.1  # of the first weights
_SMALL = 1e-6  # added to squared lengths of states


class Td:
    """TD(0): the value of a state is a weighted sum of its components.

    A step goes from one state to the next, and brings a reward. Its error is the reward, plus the discounted value of
    the next state, minus the value of the state. The weights move along the state by a fraction of the error.

    As published, the fraction is ``alpha``. The value of the state then moves by ``alpha`` times its squared length
    times the error. If ``alpha`` times the squared length is above 2, each step makes errors larger: in 50 dimensions
    that are all near 1 or -1, weights grow without end. *Normalised* means that the fraction is ``alpha`` divided by
    the squared length, so the value of the state moves by ``alpha`` times the error, however long the state is.

    Parameters
    ----------
    k
        Length of the states.
    alpha
        How far an error moves the weights, above 0; below 1 if normalised.
    gamma
        Discount of a reward one step later, from 0 to below 1.
    normalised
        Whether steps are divided by the squared length of the state.
    rng
        Draws the first weights, normal, around 0 with a deviation of 0.1; without it they are 0.

    Attributes
    ----------
    weights
        Shape (k,), float64, each between -1e9 and 1e9. If the raw step diverges, they stay there.

    References
    ----------
    Sutton: Learning to Predict by the Methods of Temporal Differences. Machine Learning 3 (1988).
    Palotai, Farkas, Lorincz: Selection in scale-free small world (2005), algorithm 4.

    Examples
    --------
    >>> td, here, there = Td(2), np.array([1.0, 0.0]), np.array([0.0, 1.0])
    >>> for _ in range(1000):
    ...     error = td.step(here, 1.0, there)
    ...     error = td.step(there, 0.0, here)
    >>> td.value(np.array([here, there])).round(2).tolist()
    [5.26, 4.74]
    """

    def __init__(
        self,
        k: int,
        *,
        alpha: float = 0.1,
        gamma: float = 0.9,
        normalised: bool = True,
        rng: np.random.Generator | None = None,
    ) -> None:
        if not (alpha > 0 and 0 <= gamma < 1) or (normalised and not alpha < 1):
            raise ValueError(
                f"alpha={alpha!r}, gamma={gamma!r}; alpha is above 0, and below 1 where normalised, gamma is from 0 "
                "to below 1"
            )
        self.k = k
        self.alpha = alpha
        self.gamma = gamma
        self.normalised = normalised
        self.weights: NDArray[np.float64] = np.zeros(k) if rng is None else rng.normal(0, _SPREAD, k)

    def copy(self) -> Td:
        """Return a copy with the same weights."""
        other = Td(self.k, alpha=self.alpha, gamma=self.gamma, normalised=self.normalised)
        other.weights = self.weights.copy()
        return other

    def value(self, states: NDArray[Any]) -> NDArray[np.float64]:
        """Return the values of states, shape (n,), for shape (n, k)."""
        found: NDArray[np.float64] = states @ self.weights
        return found

    def step(self, before: NDArray[Any], reward: float, after: NDArray[Any]) -> float:
        """Learn from a step between two states, shapes (k,), and return its error.

        A reward that is not a finite number teaches nothing; its error is 0.
        """
        state = before.astype(np.float64)
        error = reward + self.gamma * float(after @ self.weights) - float(state @ self.weights)
        if not math.isfinite(error):
            return 0.0
        part = self.alpha / (_SMALL + float(state @ state)) if self.normalised else self.alpha
        move = part * min(max(error, -_MOST), _MOST)
        self.weights = np.clip(self.weights + move * state, -LARGEST, LARGEST)
        return error
