"""How good a crawl was, in numbers: each metric has the definition of the paper that reports it.

The papers measure different things. SB-CLASSIFIER asks how much of an exhaustive crawl it takes to find 90 % of the
targets, TRES how many of the pages fetched are relevant and on how many hosts. No single number is enough: on a site
where most URLs are targets every crawl needs most of the requests, so the overhead is reported beside the percentage.
A share that a crawl never reached is ``math.inf``, and is never averaged away.

Examples
--------
A crawl that requests four of the eight URLs of a site finds two of its three targets:

>>> from scrapy_focus.lab.replay.harvest import Exhaustive, Harvest
>>> harvest = Harvest(
...     found=np.array([0.0, 0, 1, 1, 2]), rewards=np.array([0.0, 0, 1, 0, 1]), heads=np.zeros(5, bool),
...     target_bytes=np.array([0, 0, 70, 70, 90]), other_bytes=np.array([0, 10, 10, 30, 30]), seconds=np.arange(5.0),
...     pages=np.array([-1, 0, 3, 2, 5]), hosts=np.array([0, 0, 1, 1, 1]),
...     exhaustive=Exhaustive(requests=8, worth=3.0, target_bytes=100, other_bytes=60, hosts=1),
... )
>>> requests_until(harvest, 0.5), requests_until(harvest, 0.9), overhead(harvest, 0.5), waste_until(harvest, 0.9)
(50.0, inf, 2.5, 50.0)
>>> harvest_rate(harvest), round(area(harvest), 3), round(regret(harvest), 3)
(0.5, 0.444, 3.0)
"""

from __future__ import annotations

import math
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.stop import Plateau

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from scrapy_focus.lab.replay.harvest import Harvest

Of = TypeVar("Of")

_ROUNDING = 1e-9  # relative: 0.55 * 100 is 55.00000000000001, and 55 targets reach it


class Metric(NamedTuple, Generic[Of]):
    """A number for the quality of a crawl, and its presentation for readers who do not know the papers.

    It is computed from a harvest, or from other data of a crawl.
    """

    label: str
    unit: str
    better: Literal["less", "more"]
    description: str  # one sentence
    of: Callable[[Of], float]


class EarlyStop(NamedTuple):
    """What stopping at a plateau would have saved, and what it would have cost."""

    requests: int  # until the crawl stopped; all of them if the plateau was never reached
    saved: float  # % of the requests of the crawl that were not made
    lost: float  # % of the finds of the whole crawl that were not found
    share: float  # of all there is that was found, 0 to 1


def requests_until(harvest: Harvest, share: float) -> float:
    """Return the requests until a share of all worth is found, in % of those of an exhaustive crawl.

    It is ``100 * k / exhaustive.requests`` with the first ``k`` such that ``found[k] >= share * exhaustive.worth``,
    HEADs counted as requests; ``math.inf`` if that never happened, 0 if there is nothing to find. More than 100 is
    possible: an exhaustive crawl needs no HEADs.

    Parameters
    ----------
    harvest
        The crawl.
    share
        0 to 1; the papers use 0.9.

    References
    ----------
    Gauquier, Manolescu, Senellart: Efficient Crawling for Scalable Web Data Acquisition. EDBT 2026, arXiv:2602.11874,
    experiments: requests to 90 % of the targets. As released: no script computes it.
    """
    k = _first(harvest.found, harvest.exhaustive.worth, share)
    return math.inf if k is None else 100 * k / max(1, harvest.exhaustive.requests)


def found_after(harvest: Harvest, requests: int) -> float:
    """Return the worth found with the first requests, HEADs included.

    A crawl that ended earlier counts with everything that it found.
    """
    if requests < 0:
        raise ConfigError(f"the number of requests is {requests}; give one from 0")
    return float(harvest.found[min(requests, harvest.requests)])


def stages(harvest: Harvest) -> tuple[float, float, float]:
    """Return the requests before the tenth find, from there to half of all worth, and from half to 90 %.

    Where half of all worth is less than ten, the first stage ends there, and the second one is empty. The three add up
    to the requests until 90 %. A stage that the crawl did not complete is ``math.inf``.
    """
    worth = harvest.exhaustive.worth
    half, most = _first(harvest.found, worth, 0.5), _first(harvest.found, worth, 0.9)
    ends = [_first(harvest.found, min(10.0, worth / 2), 1.0), half, most]
    starts = [0, *ends[:2]]
    early, middle, late = (
        math.inf if start is None or end is None else float(end - start)
        for start, end in zip(starts, ends, strict=True)
    )
    return early, middle, late


def overhead(harvest: Harvest, share: float = 0.9) -> float:
    """Return the requests until a share of all worth is found beyond one request for each unit of worth.

    It is ``k - share * exhaustive.worth`` with ``k`` as in :func:`requests_until`, in requests, not in percent;
    ``math.inf`` if that never happened. No crawl whose targets are worth 1 each can be below 0. It is ours: on sites
    where most URLs are targets, the percentage hides the differences of policies.
    """
    k = _first(harvest.found, harvest.exhaustive.worth, share)
    return math.inf if k is None else k - share * harvest.exhaustive.worth


def waste_until(harvest: Harvest, share: float = 0.9) -> float:
    """Return the volume received in vain until a share of the target volume is received, in % of an exhaustive
    crawl's.

    It is ``100 * other_bytes[k] / exhaustive.other_bytes`` with the first ``k`` such that ``target_bytes[k] >=
    share * exhaustive.target_bytes``; ``math.inf`` if that never happened.

    References
    ----------
    Gauquier, Manolescu, Senellart: Efficient Crawling for Scalable Web Data Acquisition. EDBT 2026, arXiv:2602.11874,
    experiments: non-target volume to 90 % of the target volume. As released: HEADs count with the length of their
    printed headers, errors with nothing; here all count with the bytes received.
    """
    k = _first(harvest.target_bytes, harvest.exhaustive.target_bytes, share)
    return math.inf if k is None else 100 * float(harvest.other_bytes[k]) / max(1, harvest.exhaustive.other_bytes)


def found_share(harvest: Harvest) -> float:
    """Return the share of all worth that the crawl found, 0 to 1; 1 if there is nothing to find."""
    worth = harvest.exhaustive.worth
    return float(harvest.found[-1]) / worth if worth else 1.0


def area(harvest: Harvest) -> float:
    """Return the area under the harvest curve, 0 to 1; 1 if there is nothing to find.

    It is the mean of ``found[k] / exhaustive.worth`` over ``k = 0 .. exhaustive.requests``: a crawl that stopped
    before keeps its finds, and later ones do not count. TRES and SB-CLASSIFIER plot the curve; the area is ours.
    """
    worth = harvest.exhaustive.worth
    return float(_padded(harvest.found, harvest.exhaustive.requests).mean()) / worth if worth else 1.0


def cumulative_regret(harvest: Harvest) -> NDArray[np.float64]:
    """Return what OMNISCIENT would have found more after each request, shape (n_requests + 1,), in worth.

    It is ``min(k, exhaustive.worth) - found[k]``: the regret of a bandit against the best possible crawl, where
    OMNISCIENT finds 1 with each request until nothing is left. Rewards above 1 can make it negative.

    References
    ----------
    Bubeck and Cesa-Bianchi: Regret analysis of stochastic and nonstochastic multi-armed bandit problems. Foundations
    and Trends in Machine Learning 5 (2012), section 1. OMNISCIENT is a baseline of the SB-CLASSIFIER paper.
    """
    return np.minimum(np.arange(harvest.requests + 1), harvest.exhaustive.worth) - harvest.found


def regret(harvest: Harvest) -> float:
    """Return how many requests later than with OMNISCIENT a unit of worth is found, on average.

    It is the sum of ``(min(k, worth) - found[k]) / worth`` over ``k = 1 .. max(requests, exhaustive.requests)``: the
    sum of :func:`cumulative_regret`, which penalises late finds even if a crawl found everything. A crawl that
    stopped before is assumed to find nothing more: what it missed counts as found at the end of an exhaustive crawl.
    0 if there is nothing to find.
    """
    worth = harvest.exhaustive.worth
    last = max(harvest.requests, harvest.exhaustive.requests)
    behind = np.minimum(np.arange(last + 1), worth) - _padded(harvest.found, last)
    return float(behind.sum()) / worth if worth else 0.0


def harvest_rate(harvest: Harvest) -> float:
    """Return the share of the answered GETs that brought something, 0 to 1; 0 if there were none.

    References
    ----------
    Kontogiannis, Kelesis, Pollatos, Giannakopoulos, Paliouras: Tree-based Focused Web Crawling with Reinforcement
    Learning. arXiv:2112.07620, experiments: relevant pages among the pages fetched. As released: pages that could not
    be fetched are not counted; here they are, as are redirects and retries.
    """
    gets = ~harvest.heads[1:]
    return float(np.mean(harvest.rewards[1:][gets] > 0)) if gets.any() else 0.0


def relevant_hosts(harvest: Harvest) -> int:
    """Return on how many hosts something was found.

    References
    ----------
    Kontogiannis, Kelesis, Pollatos, Giannakopoulos, Paliouras: Tree-based Focused Web Crawling with Reinforcement
    Learning. arXiv:2112.07620, experiments: relevant domains. As released: a domain is a host name without ``www.``;
    here ``www.`` makes a difference.
    """
    return int(harvest.hosts[-1])


def early_stop(harvest: Harvest, plateau: Plateau) -> EarlyStop:
    """Return what stopping at a plateau would have saved and lost, from a crawl that continued.

    A new :class:`~scrapy_focus.core.stop.Plateau` with the parameters of the given one is checked after each request;
    a live crawl checks it after each outcome, and waits for what is in flight.

    References
    ----------
    Gauquier, Manolescu, Senellart: Efficient Crawling for Scalable Web Data Acquisition. EDBT 2026, arXiv:2602.11874,
    section 4.8.
    """
    fresh = Plateau(window=plateau.window, slope=plateau.slope, decay=plateau.decay, patience=plateau.patience)
    found = harvest.found.tolist()
    k = next((k for k in range(1, len(found)) if fresh.reached(k, found[k])), harvest.requests)
    return EarlyStop(
        requests=k,
        saved=100 * (harvest.requests - k) / max(1, harvest.requests),
        lost=100 * (found[-1] - found[k]) / found[-1] if found[-1] else 0.0,
        share=found[k] / harvest.exhaustive.worth if harvest.exhaustive.worth else 1.0,
    )


def _until(share: float) -> Metric[Harvest]:
    return Metric(
        f"Requests until {share:.0%}".replace("%", " %"), "% of an exhaustive crawl", "less",
        f"How much of a crawl of the whole site it took to find {share:.0%} of what there is.".replace("%", " %"),
        partial(requests_until, share=share),
    )  # fmt: skip


def _found_after(requests: int) -> Metric[Harvest]:
    return Metric(
        f"Found after {requests:,} requests", "worth", "more",
        f"What the first {requests:,} requests found; a crawl that ended earlier counts with everything it found.",
        partial(found_after, requests=requests),
    )  # fmt: skip


#: The metrics of :func:`summary`, by their keys, in the order of a report.
METRICS: Mapping[str, Metric[Harvest]] = MappingProxyType({
    "requests_50": _until(0.5),
    "requests_75": _until(0.75),
    "requests_90": _until(0.9),
    "requests_99": _until(0.99),
    "found_at_100": _found_after(100),
    "found_at_300": _found_after(300),
    "found_at_1000": _found_after(1000),
    "early_requests": Metric(
        "Requests before the tenth find", "requests", "less",
        "Requests until ten things were found, or half of what there is where that is less.",
        lambda harvest: stages(harvest)[0],
    ),
    "middle_requests": Metric(
        "Requests from the tenth find to 50 %", "requests", "less",
        "Further requests until half of what there is was found.", lambda harvest: stages(harvest)[1],
    ),
    "late_requests": Metric(
        "Requests from 50 % to 90 %", "requests", "less",
        "Further requests until 90 % of what there is was found.", lambda harvest: stages(harvest)[2],
    ),
    "waste_90": Metric(
        "Waste until 90 %", "% of an exhaustive crawl", "less",
        "How much of all the volume that is worth nothing was received until 90 % of the volume that is wanted was "
        "there.",
        waste_until,
    ),
    "overhead_90": Metric(
        "Overhead until 90 %", "requests", "less",
        "Requests until 90 % was found, beyond one for each thing found.", overhead,
    ),
    "area": Metric(
        "Area under the curve", "0 to 1", "more",
        "Share found so far, averaged over the requests of a crawl of the whole site.", area,
    ),
    "regret": Metric(
        "Regret", "requests", "less",
        "How many requests later than by a crawl that knows where everything is a thing was found, on average.", regret,
    ),
    "harvest_rate": Metric(
        "Harvest rate", "0 to 1", "more", "Share of the GET requests that brought something.", harvest_rate
    ),
    "relevant_hosts": Metric(
        "Relevant hosts", "hosts", "more", "On how many different hosts something was found.", relevant_hosts
    ),
    "stop_saved": Metric(
        "Saved by stopping early", "% of the requests", "more",
        "Requests that the early-stopping rule of the SB-CLASSIFIER paper, with its values here, would have spared.",
        lambda harvest: early_stop(harvest, Plateau()).saved,
    ),
    "stop_lost": Metric(
        "Lost by stopping early", "% of what was found", "less",
        "Finds of the crawl that the rule would have missed.",
        lambda harvest: early_stop(harvest, Plateau()).lost,
    ),
    "found": Metric("Found", "worth", "more", "What was found in all.", lambda harvest: harvest.found[-1]),
    "found_share": Metric("Share found", "0 to 1", "more", "Share found of all that there is.", found_share),
    "requests": Metric(
        "Requests", "requests", "less",
        "GET and HEAD requests that were answered, redirects, retries and those of a browser too.",
        lambda harvest: harvest.requests,
    ),
    "bytes": Metric(
        "Volume", "bytes", "less", "Headers and bodies received.",
        lambda harvest: harvest.target_bytes[-1] + harvest.other_bytes[-1],
    ),
    "missed": Metric(
        "Missed", "URLs", "less", "Requested URLs without a recorded answer.",
        lambda harvest: harvest.missed,
    ),
    "coverage": Metric(
        "Coverage", "0 to 1", "more", "Share of the requested URLs that have a recorded answer.",
        lambda harvest: harvest.coverage,
    ),
    "seconds": Metric(
        "Duration", "seconds", "less", "Simulated time that the crawl took.", lambda harvest: harvest.seconds[-1]
    ),
})  # fmt: skip


def summary(harvest: Harvest) -> dict[str, float]:
    """Return every metric of a crawl by its key in :data:`METRICS`."""
    return {key: float(metric.of(harvest)) for key, metric in METRICS.items()}


def _first(values: NDArray[np.float64] | NDArray[np.int64], total: float, share: float) -> int | None:
    if not 0 <= share <= 1:
        raise ConfigError(f"the share to be found is {share!r}; give one from 0 to 1, 0.9 for 90 %")
    reached = values >= share * total * (1 - _ROUNDING)
    return int(np.argmax(reached)) if reached.any() else None


def _padded(values: NDArray[np.float64], last: int) -> NDArray[np.float64]:
    """Return the values up to entry ``last``, shape (last + 1,); the final one is repeated if there are fewer."""
    return np.pad(values[: last + 1], (0, max(0, last + 1 - len(values))), mode="edge")
