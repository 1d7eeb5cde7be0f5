"""Probabilities from log-odds without SciPy, whose import alone takes longer than that of this whole package."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def chances(odds: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the probabilities of log-odds, of the same shape and type; none is 0, however small.

    Examples
    --------
    >>> chances(np.array([-1000.0, -2.0, 0.0, 2.0])).round(3).tolist()
    [0.0, 0.119, 0.5, 0.881]
    """
    found: NDArray[np.floating] = 1 / (1 + np.exp(-np.maximum(odds, -80)))
    return found
