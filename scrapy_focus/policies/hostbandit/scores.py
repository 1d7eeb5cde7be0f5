"""How hosts are scored: the scores of the paper, on probabilities, and those with a prior from all hosts.

``good`` and ``bad`` count the rewards of a host's pages so far; ``best`` is the probability that the best of its
queued links has a reward.

References
----------
Meusel, Mika, Blanco: Focused Crawling for Structured Data. CIKM 2014; section 1.2 of the authors' page about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_MOST_OF_FLIGHT = 0.5  # maximum share of all picks in flight for one host, with the holistic score


class Records(Protocol):
    """Statistics of some hosts, shape (n,) each."""

    @property
    def good(self) -> NDArray[np.float64]:
        """The rewards of its pages."""

    @property
    def bad(self) -> NDArray[np.float64]:
        """How many of them had no reward."""

    @property
    def right(self) -> NDArray[np.float64]:
        """Pages with a prediction of whether they have a reward."""

    @property
    def best(self) -> NDArray[np.float64]:
        """The prediction for the best of its queued links: a probability, or a factor relative to the average link."""

    @property
    def drawn(self) -> NDArray[np.float64]:
        """The Thompson sample from when something last happened to the host."""

    @property
    def share(self) -> NDArray[np.float64]:
        """Its share of all picks in flight if it had one more; 0 if none is in flight."""

    @property
    def odds(self) -> NDArray[np.float64]:
        """Log-odds of a page's reward with the rate of all hosts as prior, minus those of this rate."""

    @property
    def success(self) -> NDArray[np.float64]:
        """Pages with a reward per page without, with the prior."""

    @property
    def posterior(self) -> NDArray[np.float64]:
        """The mean reward of a page, with the rate of all hosts as prior, in units of this rate."""


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
#: The score where the record of a host is part of a link's prediction: the classifier learns the rest.
JOINT: Final = "joint"
#: Those that are drawn at random.
DRAWN: Final = frozenset(name for name in SCORES if "thompson" in name)
#: Those with a prior from all hosts.
POOLED: Final = frozenset(name for name in SCORES if "pooled" in name or "posterior" in name)
