"""The runs of a comparison as tidy pandas tables: one row for each observation, one column for each variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_focus.core.extras import require_extra
from scrapy_focus.core.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from scrapy_focus.lab.compare.comparison import Comparison


def runs_frame(comparison: Comparison) -> pd.DataFrame:
    """Return a row for each run: site, policy, seed, all metrics, the size of the site, and how the run ended."""
    rows = [
        {
            "site": run.site, "policy": run.policy, "seed": run.seed,
            **{key: run.metrics.get(key) for key in comparison.metrics},
            **_site(comparison, run.site),
            "stopped": run.stopped, "error": printable(run.error.strip().rpartition("\n")[2]),
        }
        for run in comparison.runs
    ]  # fmt: skip
    keys = [*comparison.metrics, "site_requests", "site_targets"]
    frame = _pandas().DataFrame(rows, columns=["site", "policy", "seed", *keys, "stopped", "error"])
    return frame.astype(dict.fromkeys(keys, float))


def curves_frame(comparison: Comparison) -> pd.DataFrame:
    """Return a row for each point of each run's curve: what was found after how many requests."""
    pandas = _pandas()
    columns = ["site", "policy", "seed", "requests", "found"]
    percent = ["requests_percent", "found_percent", "waste_percent", "volume_percent"]
    frames = [pandas.DataFrame(points) for points in _points(comparison)]
    return pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame(columns=[*columns, *percent])


def _points(comparison: Comparison) -> Iterator[dict[str, Any]]:
    for run in comparison.runs:
        facts, curve = comparison.sites[run.site], run.curve
        if facts is None or curve is None:
            continue
        yield {
            "site": run.site,
            "policy": run.policy,
            "seed": run.seed,
            "requests": (curve.requests * facts.exhaustive.requests / 100).round().astype(int),
            "found": (curve.found * facts.exhaustive.worth / 100).round(2),
            "requests_percent": curve.requests,
            "found_percent": curve.found,
            "waste_percent": curve.waste,
            "volume_percent": curve.volume,
        }


def _site(comparison: Comparison, name: str) -> dict[str, float]:
    facts = comparison.sites[name]
    if facts is None:
        return {}
    return {"site_requests": facts.exhaustive.requests, "site_targets": facts.exhaustive.worth}


def _pandas() -> Any:
    require_extra("to_frame()", "lab", "pandas")
    import pandas

    return pandas
