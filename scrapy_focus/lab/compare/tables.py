"""Shows a comparison in tables: for the terminal, and as CSV and JSON for programs."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from scrapy_focus.core.printable import printable, printable_json
from scrapy_focus.lab.compare.losses import STAGES, TITLE, losses
from scrapy_focus.lab.compare.words import count_text, number, value_text
from scrapy_focus.lab.replay.importance import IMPORTANCE_METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.lab.compare.comparison import Cell, Comparison, Contrast
    from scrapy_focus.lab.compare.repeat import Repeat
    from scrapy_focus.lab.compare.runs import SiteFacts
    from scrapy_focus.lab.compare.specs import PolicySpec
    from scrapy_focus.lab.replay.metrics import Metric

#: Identifies a ``summary.json``, so that its folder may be overwritten.
FORMAT = "scrapy_focus comparison"


def terminal_table(comparison: Comparison, metrics: Sequence[str]) -> Table:
    """Return a table with a row for each site and policy."""
    table = _empty_table(comparison, metrics)
    contrasts = {metric: comparison.paired(metric) for metric in metrics}
    for site in comparison.sites:
        table.add_section()
        table.add_row(Text(printable(site), style="bold"))
        for policy in comparison.labels:
            mark = " *" if policy in comparison.informed else ""
            row = [Text(f"  {printable(policy)}{mark}")]
            for metric in metrics:
                text = value_text(comparison, site, policy, metric)
                row.append(Text(text, style="bold" if policy in comparison.best(site, metric) else ""))
                row.append(_ratio(contrasts[metric].get(policy), site))
            table.add_row(*row)
        if any(metric in IMPORTANCE_METRICS for metric in metrics):
            _add_references(table, comparison, site, metrics)
    return table


def found_table(comparison: Comparison, metrics: Sequence[str]) -> Table:
    """Return a table with a row for each site and policy, and one column for each metric, without ratios."""
    table = Table(title="what the first requests found", title_style="dim")
    table.add_column("Policy")
    for metric in metrics:
        table.add_column(comparison.metrics[metric].label.replace(" after ", " after\n"), justify="right")
    for site in comparison.sites:
        table.add_section()
        table.add_row(Text(printable(site), style="bold"))
        for policy in comparison.labels:
            mark = " *" if policy in comparison.informed else ""
            cells = [
                Text(
                    value_text(comparison, site, policy, metric),
                    style="bold" if policy in comparison.best(site, metric) else "",
                )
                for metric in metrics
            ]
            table.add_row(Text(f"  {printable(policy)}{mark}"), *cells)
    return table


def loss_table(comparison: Comparison) -> Table | None:
    """Return a table of the requests beyond the link floor; ``None`` if that is not compared."""
    table = Table(title=TITLE.lower(), title_style="dim")
    table.add_column("Policy")
    for head in STAGES.values():
        table.add_column(head, justify="right")
    found, site = losses(comparison), None
    for loss in found:
        if loss.site != site:
            table.add_section()
            table.add_row(Text(printable(loss.site), style="bold"))
        site = loss.site
        cells = [Text(number(value, "requests")) for value in loss.requests]
        table.add_row(Text(f"  {printable(loss.policy)}"), *cells)
    return table if found else None


def _empty_table(comparison: Comparison, metrics: Sequence[str]) -> Table:
    """Return a table with two columns for each metric: its value, and the ratio to the baseline."""
    caption = "* is given the answers beforehand" if comparison.informed else None
    title = f"mean ± standard deviation over {count_text(len(comparison.seeds), 'seed')}"
    table = Table(title=title, title_style="dim", caption=caption)
    table.add_column("Policy")
    for metric in metrics:
        about = comparison.metrics[metric]
        table.add_column(f"{about.label}\n{about.unit}", justify="right")
        table.add_column(Text(f"against\n{printable(comparison.baseline)}"), justify="right")
    return table


def _ratio(contrast: Contrast | None, site: str) -> Text:
    ratio = None if contrast is None else contrast.ratios.get(site)
    return Text("" if ratio is None else f"x {ratio:.2f}")


def _add_references(table: Table, comparison: Comparison, site: str, metrics: Sequence[str]) -> None:
    """Add the best order and a random one, if known."""
    facts = comparison.sites[site]
    if facts is None or facts.importance is None or not facts.importance.n_hot:
        return
    for label, of in (("ideal order", facts.importance.ideal), ("by chance", facts.importance.at_random)):
        row = [Text(f"  {label}", style="dim")]
        for metric in metrics:
            unit = comparison.metrics[metric].unit
            row.append(Text(number(of(metric), unit) if metric in IMPORTANCE_METRICS else "", style="dim"))
            row.append(Text(""))
        table.add_row(*row)


def runs_csv(comparison: Comparison) -> bytes:
    """Return a table with a row for each crawl."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(["site", "policy", "seed", "stopped", "elapsed", "error", *comparison.metrics])
    for run in comparison.runs:
        error = printable(run.error.strip().rpartition("\n")[2])
        values = [run.metrics.get(metric, "") for metric in comparison.metrics]
        writer.writerow([run.site, run.policy, run.seed, run.stopped, round(run.elapsed, 3), error, *values])
    return file.getvalue().encode()


def curves_json(comparison: Comparison) -> bytes:
    """Return the course of each crawl that did not fail."""
    columns = ("requests", "found", "waste", "volume")
    return _json([
        {"site": run.site, "policy": run.policy, "seed": run.seed}
        | {name: getattr(run.curve, name).tolist() for name in columns}
        | ({} if run.visits is None else {name: getattr(run.visits, name).tolist() for name in ("pages", "pst", "pcs")})
        for run in comparison.runs
        if run.curve is not None
    ])  # fmt: skip


def summary_json(comparison: Comparison, metric: str, repeat: Repeat, files: Sequence[str]) -> bytes:
    """Return all means and differences, their conditions, and the files with the rest."""
    conditions, measure = comparison.conditions, comparison.conditions.importance
    return _json({
        "format": FORMAT,
        "version": 2,
        "made": repeat.made.isoformat(timespec="seconds"),
        "command": repeat.command,
        "versions": repeat.versions,
        "goal": repr(conditions.goal),
        "budget": conditions.budget,
        "concurrency": conditions.concurrency,
        "latency": conditions.latency,
        "ignored": None if conditions.ignored is None else sorted(conditions.ignored),
        "importance": None if measure is None else {"by": measure.by, "hot": measure.hot},
        "seeds": comparison.seeds,
        "baseline": comparison.baseline,
        "metric": metric,
        "runs": {
            "planned": comparison.planned,
            "made": len(comparison.runs),
            "failed": len(comparison.failures),
            "interrupted": comparison.interrupted,
        },
        "policies": [_policy(spec, comparison) for spec in comparison.policies],
        "sites": [_site(name, facts) for name, facts in comparison.sites.items()],
        "metrics": {key: _metric(about) for key, about in comparison.metrics.items()},
        "table": _cells(comparison),
        "paired": _contrasts(comparison),
        "rewards": _rewards(comparison),
        "failures": [
            {"site": run.site, "policy": run.policy, "seed": run.seed, "error": run.error}
            for run in comparison.failures
        ],
        "files": list(files),
    })  # fmt: skip


def _cells(comparison: Comparison) -> list[dict[str, Any]]:
    return [
        {"site": site, "policy": policy, "metric": key, **_cell(cell)}
        for key in comparison.metrics
        for (site, policy), cell in comparison.table(key).items()
    ]


def _contrasts(comparison: Comparison) -> list[dict[str, Any]]:
    return [
        {"metric": key, "policy": policy, **_contrast(contrast)}
        for key in comparison.metrics
        for policy, contrast in comparison.paired(key).items()
    ]


def _rewards(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the rewards of groups of links, for each site and policy that has such groups."""
    return [
        {
            "site": site,
            "policy": policy,
            "groups": numbers[0],
            "mean": numbers[1],
            "sd": numbers[2],
            "best": numbers[3:],
        }
        for site in comparison.sites
        for policy in comparison.labels
        if (numbers := comparison.rewards(site, policy))
    ]


def _policy(spec: PolicySpec, comparison: Comparison) -> dict[str, Any]:
    informed = spec.label in comparison.informed
    return {"label": spec.label, "path": spec.path, "params": dict(spec.params), "informed": informed}


def _site(name: str, facts: SiteFacts | None) -> dict[str, Any]:
    if facts is None:
        return {"name": name}
    whole = facts.exhaustive
    return {
        "name": name,
        "path": str(facts.path),
        "roots": facts.roots,
        **facts.completeness._asdict(),
        "exhaustive": {
            "requests": whole.requests,
            "worth": whole.worth,
            "target_bytes": whole.target_bytes,
            "other_bytes": whole.other_bytes,
            "hosts": whole.hosts,
        },
        "importance": None if facts.importance is None else asdict(facts.importance),
    }


def _metric(about: Metric[Any]) -> dict[str, Any]:
    return {"label": about.label, "unit": about.unit, "better": about.better, "description": about.description}


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "mean": cell.mean,
        "sd": cell.sd,
        "n": cell.n,
        "never": cell.never,
        "mean_if_reached": cell.reached,
        "failed": cell.failed,
    }


def _contrast(contrast: Contrast) -> dict[str, Any]:
    return {
        "ratio": contrast.ratio,
        "ratios": contrast.ratios,
        "verdicts": contrast.verdicts,
        **contrast.pairs._asdict(),
    }


def _json(data: Any) -> bytes:
    indent = 1 if isinstance(data, dict) else None
    return printable_json(_finite(data), indent=indent, default=str).encode()


def _finite(data: Any) -> Any:
    """Return the same with JSON values for special numbers: ``null`` for nan, ``"never"`` for inf."""
    if isinstance(data, dict):
        return {name: _finite(value) for name, value in data.items()}
    if isinstance(data, list):
        return [_finite(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        if math.isnan(data):
            return None
        return "never"
    return data
