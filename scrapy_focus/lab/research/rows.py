"""The rows of a comparison's table, which a notebook and a LaTeX document show alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scrapy_focus.lab.compare.comparison import check_metric
from scrapy_focus.lab.compare.words import count_text, value_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.lab.compare.comparison import Comparison

_METRICS = ("requests_50", "requests_90", "area")
_IMPORTANCE_METRICS = ("pst_5", "pcs_5", "requests_90")
_WHOLE = "% of an exhaustive crawl"


class Value(NamedTuple):
    """A mean with its standard deviation."""

    text: str
    is_best: bool


class Row(NamedTuple):
    """What one policy did on one site."""

    site: str
    policy: str
    values: list[Value]


class Head(NamedTuple):
    """What stands above a column."""

    label: str
    unit: str


def metrics_of(comparison: Comparison, metrics: Sequence[str] | None) -> list[str]:
    """Return the metrics to show: requests to 50 % and 90 % of the targets, and the area, where none are named.

    Raises
    ------
    ConfigError
        If there is no such metric.
    """
    if metrics is None:
        return list(_METRICS if comparison.conditions.importance is None else _IMPORTANCE_METRICS)
    for metric in metrics:
        check_metric(metric, comparison.metrics)
    return list(metrics)


def heads_of(comparison: Comparison, metrics: Sequence[str]) -> list[Head]:
    """Return label and unit of each metric, in few words."""
    known = [comparison.metrics[metric] for metric in metrics]
    return [Head(about.label, about.unit.replace(_WHOLE, "% of all")) for about in known]


def rows_of(comparison: Comparison, metrics: Sequence[str]) -> list[Row]:
    """Return a row for each site and policy."""
    best = {(site, metric): comparison.best(site, metric) for site in comparison.sites for metric in metrics}
    return [
        Row(
            site,
            f"{policy} *" if policy in comparison.informed else policy,
            [Value(value_text(comparison, site, policy, key), policy in best[site, key]) for key in metrics],
        )
        for site in comparison.sites
        for policy in comparison.labels
    ]


def caption_of(comparison: Comparison, metrics: Sequence[str]) -> str:
    """Say how to read the table."""
    seeds = count_text(len(comparison.seeds), "seed")
    parts = [f"Mean ± standard deviation over {seeds}" if len(comparison.seeds) > 1 else "One seed"]
    if any(comparison.metrics[metric].unit == _WHOLE for metric in metrics):
        parts.append("% of all: of a crawl of the whole site")
    parts.append("the best in bold")
    if comparison.informed:
        parts.append("* is given the answers")
    return f"{'; '.join(parts)}."
