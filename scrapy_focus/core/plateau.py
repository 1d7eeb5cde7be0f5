"""When to stop: the early-stopping rule of the SB-CLASSIFIER paper."""

from __future__ import annotations

from typing import Any

from scrapy_focus.core.errors import ConfigError


class Plateau:
    """Says when a crawl has stopped finding targets.

    Every ``window`` requests the slope of the harvest curve is taken, in targets per request, and averaged with the
    earlier ones with exponential weights. When the average has stayed below ``slope`` for ``patience`` windows in a row,
    the crawl has reached a plateau.

    Parameters
    ----------
    window
        Requests between two looks (nu in the paper).
    slope
        Targets per request below which it is not worth going on (epsilon).
    decay
        Weight of the newest slope in the average (gamma), in (0, 1].
    patience
        Windows in a row (kappa).

    Notes
    -----
    As published: section 4.8. As released: not in the code. The four values of the paper can be read in neither its code
    nor the text that we had; these defaults are ours: a crawl stops at the earliest after ``window * patience`` = 15,000
    requests.

    Examples
    --------
    >>> plateau = Plateau(window=10, slope=0.2, decay=1.0, patience=2)
    >>> [plateau.reached(requests, targets) for requests, targets in [(10, 5), (20, 6), (30, 6)]]
    [False, False, True]
    """

    def __init__(self, *, window: int = 1000, slope: float = 0.2, decay: float = 0.05, patience: int = 15) -> None:
        if window < 1 or patience < 1 or not 0 < decay <= 1 or slope < 0:
            raise ConfigError(
                f"Plateau(window={window}, slope={slope}, decay={decay}, patience={patience}): window and patience must "
                "be at least 1, decay in (0, 1], slope at least 0"
            )
        self.window = window
        self.slope = slope
        self.decay = decay
        self.patience = patience
        self.average: float | None = None
        self.below = 0
        self._requests = 0
        self._targets = 0.0

    def state(self) -> dict[str, float | None]:
        """What was seen so far, to be given to :meth:`restore` in the next run."""
        return {"average": self.average, "below": self.below, "requests": self._requests, "targets": self._targets}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what an earlier run saw."""
        self.average, self.below = state["average"], state["below"]
        self._requests, self._targets = state["requests"], state["targets"]

    def reached(self, requests: int, targets: float) -> bool:
        """Whether the plateau is reached, given the requests and targets so far. May be asked after every request."""
        elapsed = requests - self._requests
        if elapsed >= self.window:
            slope = (targets - self._targets) / elapsed
            self.average = slope if self.average is None else self.average + self.decay * (slope - self.average)
            self.below = self.below + 1 if self.average < self.slope else 0
            self._requests, self._targets = requests, targets
        return self.below >= self.patience
