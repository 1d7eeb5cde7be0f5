"""When to stop: the early-stopping rule of the SB-CLASSIFIER paper, and a limit on the cost of the next target."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Protocol

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.parameters import NUMBER, WHOLE, Bounds, configurable, parameter
from scrapy_focus.core.printable import brief

_LIMIT = Bounds(above=0).of(NUMBER)
_PATIENCE = Bounds(at_least=1).of(WHOLE).or_none()


class StopRule(Protocol):
    """Decides when a crawl is over, though there is budget left."""

    @property
    def reason(self) -> str:
        """The reason, in a word."""

    def reached(self, requests: int, targets: float, cost: float | None = None) -> bool:
        """Whether the crawl should stop, given the requests and targets so far, and the expected cost of the next
        target.
        """

    def state(self) -> dict[str, float | None]:
        """The state so far, for :meth:`restore` in the next run."""

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the state of an earlier run."""


@configurable
class Plateau:
    """Stops a crawl that no longer finds enough targets.

    Every ``window`` requests the slope of the harvest curve, in targets per request, is averaged with the earlier
    ones with exponential weights. When the average was below ``slope`` for ``patience`` windows in a row, the crawl
    has reached a plateau.

    Notes
    -----
    As published: section 4.8. As released: not in the code. Neither the code nor the text available to us gives the
    paper's four values; these defaults are ours: a crawl stops at the earliest after ``window * patience`` = 15,000
    requests. The formula of the average is lost in that text, too: that gamma weighs the newest slope is our reading.
    If it weighs the earlier ones, ``decay`` is 1 - gamma. We read the paper's iterations as requests, and start the
    average with the first slope.

    References
    ----------
    Gauquier, Manolescu, Senellart: Efficient Crawling for Scalable Web Data Acquisition. EDBT 2026, arXiv:2602.11874.

    Examples
    --------
    >>> plateau = Plateau(window=10, slope=0.2, decay=1.0, patience=2)
    >>> [plateau.reached(requests, targets) for requests, targets in [(10, 5), (20, 6), (30, 6)]]
    [False, False, True]
    """

    reason: ClassVar[str] = "plateau"

    window: int = parameter("Requests between two looks (nu in the paper).", default=1000, at_least=1)
    slope: float = parameter(
        "Targets per request below which it is not worth going on (epsilon).", default=0.2, at_least=0
    )
    decay: float = parameter(
        "Weight of the newest slope in the average (gamma, as we read it).", default=0.05, above=0, at_most=1
    )
    patience: int = parameter("Windows in a row (kappa).", default=15, at_least=1)

    def __attrs_post_init__(self) -> None:
        self.average: float | None = None
        self.below = 0
        self._requests = 0
        self._targets = 0.0

    def state(self) -> dict[str, float | None]:
        """The state so far, for :meth:`restore` in the next run."""
        return {"average": self.average, "below": self.below, "requests": self._requests, "targets": self._targets}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the state of an earlier run."""
        self.average, self.below = state["average"], state["below"]
        self._requests, self._targets = state["requests"], state["targets"]

    def reached(self, requests: int, targets: float, cost: float | None = None) -> bool:
        """Whether the plateau is reached, given the requests and targets so far. May be called after every request."""
        elapsed = requests - self._requests
        if elapsed >= self.window:
            slope = (targets - self._targets) / elapsed
            self.average = slope if self.average is None else self.average + self.decay * (slope - self.average)
            self.below = self.below + 1 if self.average < self.slope else 0
            self._requests, self._targets = requests, targets
        return self.below >= self.patience


class CostLimit:
    """Stops a crawl when the next target is expected to cost too much, and experience confirms it.

    Parameters
    ----------
    limit
        Requests that the next target may cost.
    patience
        The crawl ends after so many requests without a find, if the next target was expected to cost more than the
        limit all the time. Three times the limit by default: a target that costs just the limit would be found in
        that time with a probability of 95 %. At least 200, because early forecasts may be far from the truth.
    first
        The same before the first find: five times the patience by default. The cost of a find cannot be known then,
        and a crawl that ends has nothing to show for its requests.
    least
        The rewards that make a find. By default, any reward is one; where rewards are graded, as for files on a topic,
        a few poor ones must not pass for it.

    Examples
    --------
    >>> rule = CostLimit(50, patience=2)
    >>> [rule.reached(requests, 1, cost) for requests, cost in enumerate([10, 70, 60, 20, 80, 90, 90])]
    [False, False, True, False, False, True, True]
    >>> rule = CostLimit(50, patience=2, first=4)
    >>> [rule.reached(requests, 0, 70) for requests in range(5)]
    [False, False, False, False, True]
    """

    reason: ClassVar[str] = "cost_limit"

    def __init__(
        self, limit: float, *, patience: int | None = None, first: int | None = None, least: float = 0.0
    ) -> None:
        if not (_LIMIT.fits(limit) and _PATIENCE.fits(patience) and _PATIENCE.fits(first)):
            raise ConfigError(
                f"CostLimit({brief(limit)}, patience={brief(patience)}, first={brief(first)}): limit is {_LIMIT.said}, "
                f"patience and first are {_PATIENCE.said}"
            )
        self.limit = limit
        self.patience = max(200, math.ceil(3 * limit)) if patience is None else patience
        self.first = 5 * self.patience if first is None else first
        self.least = least
        self._since: int | None = None  # requests at the last find, or when the next target was last cheap enough
        self._targets = 0.0

    def state(self) -> dict[str, float | None]:
        """The state so far, for :meth:`restore` in the next run."""
        return {"since": self._since, "targets": self._targets}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the state of an earlier run."""
        self._since, self._targets = state["since"], state["targets"]

    def left(self, requests: int) -> int:
        """After how many more requests the limit may be reached at the earliest."""
        patience = self.patience if self._targets else self.first
        return patience if self._since is None else max(0, patience - (requests - self._since))

    def gives_up_at(self, requests: int) -> int | None:
        """After how many requests in all the crawl ends if nothing more is found; ``None`` while it has found
        something, or is not beyond its usual patience.
        """
        left = self.left(requests)
        return requests + left if not self._targets and self.first - left >= self.patience else None

    def reached(self, requests: int, targets: float, cost: float | None = None) -> bool:
        """Whether the next target was expected to cost too much for long enough."""
        is_find = targets > self._targets and targets >= self._targets + self.least
        if self._since is None or cost is None or cost <= self.limit or is_find:
            self._since = requests
        if is_find:
            self._targets = targets
        return self.left(requests) == 0
