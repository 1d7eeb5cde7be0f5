"""Writes a comparison into a folder: for people, for programs, and so that it can be repeated."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import platform
import re
import shlex
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any

import scrapy_focus
from scrapy_focus.compare.page import Repeat, page
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.files import write_atomically
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.replay.metrics import METRICS
from scrapy_focus.web.mime import describe_types

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.compare.comparison import Comparison

FORMAT = "scrapy_focus comparison"
_SUMMARY = "summary.json"
_PAGE = "index.html"
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "scrapy")


def write(comparison: Comparison, folder: Path, *, metric: str, plots: bool) -> Path:
    """Write everything, each file as one step; see :meth:`~scrapy_focus.compare.comparison.Comparison.write`."""
    earlier = check_folder(folder)
    repeat = Repeat(made=datetime.now(UTC), command=command_of(comparison, metric), versions=versions())
    files = {"runs.csv": _runs(comparison), "curves.json": _curves(comparison)}
    if plots:
        files |= _plots(comparison)
    files[_PAGE] = page(comparison, metric=metric, repeat=repeat, plots=plots).encode()
    names = [_SUMMARY, *files]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / _SUMMARY, _json(_summary(comparison, metric, repeat) | {"files": names}))
        for name, data in files.items():
            write_atomically(folder / name, data)
        for name in earlier - set(names):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error}") from error
    return folder / _PAGE


def check_folder(folder: Path) -> set[str]:
    """Return the names of the files of an earlier comparison in a folder, before anything is written.

    Raises
    ------
    ConfigError
        If the folder holds something else, or cannot be written.
    """
    parent = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise ConfigError(f"{folder} cannot be written: {parent} is {'read-only' if parent.is_dir() else 'no folder'}")
    there = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if not there:
        return set()
    try:
        known = json.loads((folder / _SUMMARY).read_bytes())
        if known["format"] != FORMAT:
            raise ValueError(known["format"])
        return {name for name in known["files"] if name in there}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{folder} holds something that is no comparison, and would be mixed with one; name a new folder"
        ) from error


def command_of(comparison: Comparison, metric: str) -> str:
    """Return the command that makes the same comparison, from the same folder."""
    conditions, seeds = comparison.conditions, comparison.seeds
    sites = [str(facts.path) if facts else name for name, facts in comparison.sites.items()]
    words = ["scrapy", "focus-compare", *sites]
    for policy in comparison.policies:
        words += ["--policy", str(policy)]
    counted = seeds == list(range(len(seeds)))
    words += ["--seeds", str(len(seeds)) if counted else ",".join(map(str, seeds)) + ("," if len(seeds) == 1 else "")]
    if isinstance(conditions.goal, FilesGoal):
        words += ["--targets", describe_types(conditions.goal.types).replace(", ", ",")]
    else:
        words += ["--goal", goal_path(conditions.goal)]
    if conditions.budget is not None:
        words += ["--budget", str(conditions.budget)]
    if conditions.concurrency != 1:
        words += ["--concurrency", str(conditions.concurrency)]
    if conditions.latency:
        words += ["--latency", str(conditions.latency)]
    if conditions.ignored is not None and not conditions.ignored:
        words.append("--ignore-nothing")
    return shlex.join([*words, "--baseline", comparison.baseline, "--metric", metric])


def goal_path(goal: object) -> str:
    """Return the import path of a goal, or of its class."""
    named = goal if hasattr(goal, "__qualname__") else type(goal)
    return f"{named.__module__}.{getattr(named, '__qualname__', '')}"


def versions() -> dict[str, str]:
    """Return the versions of what the numbers depend on."""
    found = {"scrapy_focus": scrapy_focus.__version__, "Python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found | {"platform": platform.platform(terse=True)}


def _runs(comparison: Comparison) -> bytes:
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(["site", "policy", "seed", "stopped", "elapsed", "error", *METRICS])
    for run in comparison.runs:
        error = run.error.strip().rpartition("\n")[2]
        values = [run.metrics.get(metric, "") for metric in METRICS]
        writer.writerow([run.site, run.policy, run.seed, run.stopped, round(run.elapsed, 3), error, *values])
    return file.getvalue().encode()


def _curves(comparison: Comparison) -> bytes:
    columns = ("requests", "found", "waste", "volume")
    return _json([
        {"site": run.site, "policy": run.policy, "seed": run.seed}
        | {name: getattr(run.curve, name).tolist() for name in columns}
        for run in comparison.runs
        if run.curve is not None
    ])  # fmt: skip


def _summary(comparison: Comparison, metric: str, repeat: Repeat) -> dict[str, Any]:
    conditions = comparison.conditions
    return {
        "format": FORMAT,
        "version": 1,
        "made": repeat.made.isoformat(timespec="seconds"),
        "command": repeat.command,
        "versions": repeat.versions,
        "goal": repr(conditions.goal),
        "budget": conditions.budget,
        "concurrency": conditions.concurrency,
        "latency": conditions.latency,
        "ignored": None if conditions.ignored is None else sorted(conditions.ignored),
        "seeds": comparison.seeds,
        "baseline": comparison.baseline,
        "metric": metric,
        "runs": {
            "planned": comparison.planned, "made": len(comparison.runs), "failed": len(comparison.failures),
            "interrupted": comparison.interrupted,
        },
        "policies": [
            {"label": spec.label, "path": spec.path, "params": dict(spec.params), "told": spec.label in comparison.told}
            for spec in comparison.policies
        ],
        "sites": [_site(name, comparison) for name in comparison.sites],
        "metrics": {
            key: {"label": metric.label, "unit": metric.unit, "better": metric.better, "description": metric.description}
            for key, metric in METRICS.items()
        },
        "table": [
            {"site": site, "policy": policy, "metric": key, "mean": cell.mean, "sd": cell.sd, "n": cell.n,
             "never": cell.never, "mean_if_reached": cell.reached, "failed": cell.failed}
            for key in METRICS
            for (site, policy), cell in comparison.table(key).items()
        ],
        "paired": [
            {"metric": key, "policy": policy, "ratio": contrast.ratio, "ratios": contrast.ratios,
             "verdicts": contrast.verdicts, **contrast.pairs._asdict()}
            for key in METRICS
            for policy, contrast in comparison.paired(key).items()
        ],
        "failures": [
            {"site": run.site, "policy": run.policy, "seed": run.seed, "error": run.error} for run in comparison.failures
        ],
    }  # fmt: skip


def _site(name: str, comparison: Comparison) -> dict[str, Any]:
    facts = comparison.sites[name]
    if facts is None:
        return {"name": name}
    whole = facts.exhaustive
    return {
        "name": name, "path": str(facts.path), "roots": facts.roots, **facts.completeness._asdict(),
        "exhaustive": {
            "requests": whole.requests, "worth": whole.worth, "target_bytes": whole.target_bytes,
            "other_bytes": whole.other_bytes, "hosts": whole.hosts,
        },
    }  # fmt: skip


def _plots(comparison: Comparison) -> dict[str, bytes]:
    from scrapy_focus.compare import plots

    files: dict[str, bytes] = {}
    figures = [(name, plots.draw_site(comparison, name)) for name in comparison.sites]
    if len(figures) > 1:
        figures.insert(0, ("overview", plots.draw_overview(comparison)))
    for name, figure in figures:
        safe = re.sub(r"[^\w.-]+", "_", name).strip("._") or "site"
        while f"{safe}.svg".lower() in {known.lower() for known in files}:  # some file systems take these for the same
            safe += "_"
        files |= {f"{safe}.png": plots.png(figure), f"{safe}.svg": plots.svg(figure)}
    return files


def _json(data: Any) -> bytes:
    indent = 1 if isinstance(data, dict) else None
    return json.dumps(_finite(data), indent=indent, ensure_ascii=False, default=str).encode()


def _finite(data: Any) -> Any:
    """Return the same with what JSON has no number for: ``null`` for nan, ``"never"`` for inf."""
    if isinstance(data, dict):
        return {name: _finite(value) for name, value in data.items()}
    if isinstance(data, list):
        return [_finite(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None if math.isnan(data) else "never"
    return data
