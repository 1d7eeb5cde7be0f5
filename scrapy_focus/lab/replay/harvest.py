"""What a crawl brought home, request by request: what metrics and plots are made of."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhaustive:
    """What a crawl of the whole site would bring: the denominators of the metrics.

    Every URL that can be reached is requested, including dead ones and redirects; failures are retried.
    """

    requests: int
    worth: float  # sum of all rewards; with FilesGoal, the number of targets
    target_bytes: int  # headers and bodies of what has a reward
    other_bytes: int  # of everything else
    hosts: int  # with something that has a reward


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Harvest:
    """The course of one crawl. Arrays have shape (n_requests + 1,): entry ``k`` is the state after ``k`` requests.

    A request is each GET or HEAD that is sent, including redirects, retries, and the requests of a browser for a
    page. It counts when it is answered. It does not count if no connection can be made.
    """

    found: NDArray[np.float64]  # sum of the rewards; starts with 0
    target_bytes: NDArray[np.int64]  # received for what has a reward, headers and bodies
    other_bytes: NDArray[np.int64]  # received for everything else, including HEADs
    seconds: NDArray[np.float64]  # simulated
    pages: NDArray[np.int64]  # the URL that each request was for, by its number on the site; starts with -1
    heads: NDArray[np.bool_]  # whether it was a HEAD
    rewards: NDArray[np.float64]  # the reward of that request
    hosts: NDArray[np.int64]  # hosts with something that has a reward, so far
    exhaustive: Exhaustive
    asked: list[str] = field(default_factory=list)  # URL of each pick, in the order of choice, including released ones
    missed: int = 0  # picks whose URL was never recorded
    stopped: str = ""  # why the crawl was over; "": nothing was left to ask for
    counts: Counter[str] = field(default_factory=Counter)  # how picks ended, and what Crawl counts

    def __repr__(self) -> str:
        worth, whole = float(self.found[-1]), self.exhaustive
        return f"<Harvest: {worth:g} of {whole.worth:g} found with {self.requests:,} requests>"

    @property
    def requests(self) -> int:
        """How many requests were answered."""
        return len(self.found) - 1

    @property
    def coverage(self) -> float:
        """Share of the picks whose URL the recording knows, 0 to 1."""
        return 1 - self.missed / max(1, len(self.asked))
