"""Whether one policy is better than another, from runs with the same seeds or on the same sites.

A policy that never reached 90 % of the targets has no number of requests for it. Dropping such runs silently would
favour the policy that fails most, and any number in their place would be invented. So they are excluded from the
mean, and counted.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.extras import require_extra

if TYPE_CHECKING:
    from collections.abc import Sequence


class Paired(NamedTuple):
    """The differences between two series of numbers, pair by pair."""

    difference: float  # mean of a - b over the pairs where both are finite; nan: there are none
    sd: float  # standard deviation of these differences, with n - 1; nan for n < 2
    n: int  # pairs where both are finite
    p: float  # two-sided; nan for n < 2
    only_a: int  # excluded pairs where only a is not finite
    only_b: int
    neither: int  # excluded pairs where neither is finite


def paired(values_a: Sequence[float], values_b: Sequence[float]) -> Paired:
    """Compare two policies that were run with the same seeds, or on the same sites.

    The p-value is that of Student's t-test of the differences, which remove the effect of a seed on both. It is 1 or
    0 if all differences are equal, to 0 or to another number. Pairs with a number that is not finite, for a share
    that was never reached, say, are excluded and counted: the mean of the rest says little if there are many.

    Raises
    ------
    ConfigError
        If the two have different lengths.

    Examples
    --------
    >>> found = paired([3.0, 5.0, 4.0, math.inf], [1.0, 2.0, 3.0, 2.0])
    >>> found.difference, found.sd, found.n, round(found.p, 4), found.only_a
    (2.0, 1.0, 3, 0.0742, 1)
    """
    require_extra("comparing policies", "lab", "sklearn")
    from scipy.stats import t

    if len(values_a) != len(values_b):
        raise ConfigError(
            f"paired() got {len(values_a)} and {len(values_b)} values; give one of each policy for the same seeds"
        )
    a, b = np.asarray(values_a, np.float64), np.asarray(values_b, np.float64)
    known_a, known_b = np.isfinite(a), np.isfinite(b)
    differences = a[known_a & known_b] - b[known_a & known_b]
    n = len(differences)
    mean = float(differences.mean()) if n else math.nan
    sd = float(differences.std(ddof=1)) if n > 1 else math.nan
    if n > 1 and (differences == differences[0]).all():
        mean, sd = float(differences[0]), 0.0  # rounding would leave a small deviation
    if n < 2:
        p = math.nan
    elif sd == 0:
        p = float(mean == 0)
    else:
        p = 2 * float(t.sf(abs(mean) / (sd / math.sqrt(n)), n - 1))
    left_out = [int(np.count_nonzero(pairs)) for pairs in (~known_a & known_b, known_a & ~known_b, ~known_a & ~known_b)]
    return Paired(mean, sd, n, p, *left_out)
