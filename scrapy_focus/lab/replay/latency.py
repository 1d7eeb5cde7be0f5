"""How long the simulated network takes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from scrapy_focus.core.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np

    from scrapy_focus.lab.recordings.format import RecordedSite


class Latency(Protocol):
    """Determines how many seconds a request takes."""

    def __call__(self, page: int, rng: np.random.Generator) -> float:
        """Return the seconds from sending a request for a URL, by its number, until its answer arrives."""


class Constant:
    """Every request takes equally long.

    Parameters
    ----------
    seconds
        How long.
    """

    def __init__(self, seconds: float) -> None:
        if not 0 <= seconds < math.inf:
            raise ConfigError(f"a latency of {seconds} seconds cannot be simulated; give a number from 0")
        self.seconds = seconds

    def __call__(self, page: int, rng: np.random.Generator) -> float:
        return self.seconds


class LogNormal:
    """Most requests take about as long, and a few take much longer, as on the web.

    Parameters
    ----------
    median
        Seconds that half of the requests stay below.
    sigma
        Standard deviation of the logarithm.

    Examples
    --------
    >>> import numpy as np
    >>> latency, rng = LogNormal(0.2), np.random.default_rng(0)
    >>> round(float(np.median([latency(0, rng) for _ in range(10_000)])), 2)
    0.2
    """

    def __init__(self, median: float, sigma: float = 0.5) -> None:
        if not (0 < median < math.inf and 0 <= sigma < math.inf):
            raise ConfigError(
                f"LogNormal(median={median}, sigma={sigma}): median is above 0, sigma from 0, both finite"
            )
        self.median = median
        self.sigma = sigma

    def __call__(self, page: int, rng: np.random.Generator) -> float:
        return self.median * math.exp(self.sigma * rng.standard_normal())


class Recorded:
    """Every request takes as long as it did when the site was recorded.

    Parameters
    ----------
    site
        The recording.
    otherwise
        Seconds for URLs whose time is unknown.
    """

    def __init__(self, site: RecordedSite, *, otherwise: float = 0.2) -> None:
        if not 0 <= otherwise < math.inf:
            raise ConfigError(f"a latency of {otherwise} seconds cannot be simulated; give a number from 0")
        self.site = site
        self.otherwise = otherwise

    def __call__(self, page: int, rng: np.random.Generator) -> float:
        return float(self.site.seconds[page]) or self.otherwise
