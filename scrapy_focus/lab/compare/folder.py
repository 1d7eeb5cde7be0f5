"""Writes a comparison into a folder: for people, for programs, and so that it can be repeated."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.files import write_atomically
from scrapy_focus.lab.compare import plots as drawing
from scrapy_focus.lab.compare.comparison import check_metric
from scrapy_focus.lab.compare.page import page
from scrapy_focus.lab.compare.repeat import repeat_of
from scrapy_focus.lab.compare.tables import FORMAT, curves_json, runs_csv, summary_json

if TYPE_CHECKING:
    from scrapy_focus.lab.compare.comparison import Comparison

_SUMMARY = "summary.json"
_PAGE = "index.html"


def write(comparison: Comparison, folder: str | Path, *, metric: str = "requests_90", plots: bool = True) -> Path:
    """Write everything into a folder, each file in one step, and return the page to read first.

    Parameters
    ----------
    comparison
        What is written.
    folder
        A new or empty one, or one with an earlier comparison, which is replaced.
    metric
        What matters most, for the page.
    plots
        Draw the curves, which needs matplotlib.

    Raises
    ------
    ConfigError
        If the folder holds something else or cannot be written, or matplotlib is missing.
    """
    check_metric(metric, comparison.metrics)
    folder = Path(folder)
    earlier = check_folder(folder)
    repeat = repeat_of(comparison, metric)
    files = {"runs.csv": runs_csv(comparison), "curves.json": curves_json(comparison)}
    if plots:
        files |= _pictures(comparison)
    files[_PAGE] = page(comparison, metric=metric, repeat=repeat, plots=plots).encode()
    names = [_SUMMARY, *files]
    summary = summary_json(comparison, metric, repeat, names)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in {_SUMMARY: summary, **files}.items():  # the summary first: it identifies the folder
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
    return _files_of_earlier(folder) & there


def _files_of_earlier(folder: Path) -> set[str]:
    """Return the names of the files that an earlier comparison wrote, by its summary."""
    try:
        known = json.loads((folder / _SUMMARY).read_bytes())
        if known["format"] != FORMAT:
            raise ValueError(known["format"])
        return set(known["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{folder} holds something other than a comparison, and would be mixed with one; name a new folder"
        ) from error


def _pictures(comparison: Comparison) -> dict[str, bytes]:
    """Draw all pictures, and return their files by name."""
    files: dict[str, bytes] = {}
    figures = [(name, drawing.draw_site(comparison, name)) for name in comparison.sites]
    if len(figures) > 1:
        figures.insert(0, ("overview", drawing.draw_overview(comparison)))
        if comparison.conditions.importance is not None:
            figures.insert(1, ("overview-importance", drawing.draw_overview(comparison, "pst")))
    for name, figure in figures:
        safe = re.sub(r"[^\w.-]+", "_", name).strip("._") or "site"
        while f"{safe}.svg".lower() in {known.lower() for known in files}:  # some file systems do not distinguish these
            safe += "_"
        files |= {f"{safe}.png": drawing.png(figure), f"{safe}.svg": drawing.svg(figure)}
    return files
