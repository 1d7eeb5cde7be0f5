"""What makes a host the best one: the scores of the paper, on probabilities, and those with a prior from all hosts.

``good`` and ``bad`` are what the pages of a host were worth so far, ``best`` is the probability with which the best of
its waiting links is worth something.

References
----------
Meusel, Mika, Blanco: Focused Crawling for Structured Data. CIKM 2014, section 4.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_MOST_OF_FLIGHT = 0.5  # of all picks in flight that one host may have, with the holistic score


class Records(NamedTuple):
    """What is known of some hosts, shape (n,) each."""

    good: NDArray[np.float64]
    bad: NDArray[np.float64]
    right: NDArray[np.float64]  # pages of which it was predicted whether they are worth something
    best: NDArray[np.float64]  # from 0 to 1
    drawn: NDArray[np.float64]  # by Thompson sampling, when something happened to the host last
    share: NDArray[np.float64]  # of all picks in flight that it would have with one more
    rate: float  # of pages that were worth something, on all hosts
    prior: float  # pages of either kind that the published scores begin with
    strength: float  # pages that the rate counts for

    @property
    def success(self) -> NDArray[np.float64]:
        """Pages that were worth something for each that was not, with the prior."""
        return (self.good + self.prior) / (self.bad + self.prior)

    @property
    def posterior(self) -> NDArray[np.float64]:
        """The mean of what a page is worth, where the rate of all hosts is the prior."""
        return (self.good + self.strength * self.rate) / (self.good + self.bad + self.strength)


def _holistic(records: Records) -> NDArray[np.float64]:
    pages = records.good + records.bad
    share = (records.good + 1) / (pages + 1) * (records.right + 1) / (pages + 1)
    return np.where((pages == 0) | (records.share > _MOST_OF_FLIGHT), 0.0, share)


SCORES: Final[dict[str, Callable[[Records], NDArray[np.float64]]]] = {
    # of the paper
    "negative bad": lambda records: -records.bad,
    "best": lambda records: records.best,
    "success rate": lambda records: records.success,
    "thompson": lambda records: records.drawn,
    "good x best": lambda records: records.good * records.best,
    "thompson x best": lambda records: records.drawn * records.best,
    "success rate x best": lambda records: records.success * records.best,
    # of its code only
    "good": lambda records: records.good,
    "holistic": _holistic,
    # with a prior from all hosts
    "posterior": lambda records: records.posterior,
    "posterior x best": lambda records: records.posterior * records.best,
    "pooled thompson": lambda records: records.drawn,
    "pooled thompson x best": lambda records: records.drawn * records.best,
}
#: Those that are drawn at random.
DRAWN: Final = frozenset(name for name in SCORES if "thompson" in name)
#: Those with a prior from all hosts.
POOLED: Final = frozenset(name for name in SCORES if "pooled" in name or "posterior" in name)
