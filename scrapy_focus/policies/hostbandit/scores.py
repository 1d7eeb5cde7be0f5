"""What makes a host the best one: the scores of the paper, on probabilities, and those with a prior from all hosts.

``good`` and ``bad`` are what the pages of a host were worth so far, ``best`` is the probability with which the best of
its waiting links is worth something.

References
----------
Meusel, Mika, Blanco: Focused Crawling for Structured Data. CIKM 2014, section 4.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_MOST_OF_FLIGHT = 0.5  # of all picks in flight that one host may have, with the holistic score


class Records(Protocol):
    """What is known of some hosts, shape (n,) each."""

    @property
    def good(self) -> NDArray[np.float64]:
        """What its pages were worth."""

    @property
    def bad(self) -> NDArray[np.float64]:
        """How many of them were worth nothing."""

    @property
    def right(self) -> NDArray[np.float64]:
        """Pages of which it was predicted whether they are worth something."""

    @property
    def best(self) -> NDArray[np.float64]:
        """What the best of its waiting links promises: a probability, or how many times that of the average link."""

    @property
    def drawn(self) -> NDArray[np.float64]:
        """What was drawn by Thompson sampling when something happened to the host last."""

    @property
    def share(self) -> NDArray[np.float64]:
        """The part of all picks in flight that it would have with one more; 0 where none is in flight."""

    @property
    def odds(self) -> NDArray[np.float64]:
        """Log-odds of what a page is worth where the rate of all hosts is the prior, less those of this rate."""

    @property
    def success(self) -> NDArray[np.float64]:
        """Pages that were worth something for each that was not, with the prior."""

    @property
    def posterior(self) -> NDArray[np.float64]:
        """The mean of what a page is worth, where the rate of all hosts is the prior, in units of this rate."""


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
    "joint": lambda records: records.odds + records.best,
    "pooled thompson": lambda records: records.drawn,
    "pooled thompson x best": lambda records: records.drawn * records.best,
}
#: The one for which the record of a host is a part of what a link promises: the classifier learns what is beyond it.
JOINT: Final = "joint"
#: Those that are drawn at random.
DRAWN: Final = frozenset(name for name in SCORES if "thompson" in name)
#: Those with a prior from all hosts.
POOLED: Final = frozenset(name for name in SCORES if "pooled" in name or "posterior" in name)
