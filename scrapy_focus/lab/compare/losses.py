"""Where a policy loses requests: beyond the link floor, before the tenth find, from there to half, and to 90 %."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from scrapy_focus.core.policy import import_path
from scrapy_focus.policies.linkfloor import LinkFloor

if TYPE_CHECKING:
    from scrapy_focus.lab.compare.comparison import Comparison

#: The metrics of the three stages, with the heads of their columns.
STAGES = {
    "early_requests": "Before the tenth find",
    "middle_requests": "From there to 50 %",
    "late_requests": "From 50 % to 90 %",
}
TITLE = "Requests beyond the link floor"


class Loss(NamedTuple):
    """The requests of a policy beyond the link floor on a site."""

    site: str
    policy: str
    requests: list[float]  # of each stage: a difference of means; inf if never completed, nan if unknown


def losses(comparison: Comparison) -> list[Loss]:
    """Return the losses of each policy without the truth on each site; none if the link floor is not compared."""
    floor = next((spec.label for spec in comparison.policies if spec.path == import_path(LinkFloor)), None)
    if floor is None:
        return []
    empty = comparison.empty
    return [
        Loss(site, policy, [_beyond(comparison, site, policy, floor, metric) for metric in STAGES])
        for site in comparison.sites
        if site not in empty
        for policy in comparison.labels
        if policy not in comparison.informed
    ]


def _beyond(comparison: Comparison, site: str, policy: str, floor: str, metric: str) -> float:
    least = comparison.cell(site, floor, metric).mean
    return comparison.cell(site, policy, metric).mean - least if math.isfinite(least) else math.nan
