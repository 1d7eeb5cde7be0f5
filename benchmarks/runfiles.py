"""The runs that a benchmark made, as JSON in a file, and their means in words."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def mean(values: Sequence[float], digits: int = 0) -> str:
    """Return a mean, and the standard deviation of several values; ``""`` of none.

    Examples
    --------
    >>> mean([1, 2, 3], 1), mean([1234.5]), mean([])
    ('2.0 ± 1.0', '1,234', '')
    """
    if not values:
        return ""
    spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):,.{digits}f}{spread}"


def stored(path: Path) -> list[dict[str, Any]]:
    """Return the fields of each run in a file; none if there is no file."""
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []
    return found


def write(path: Path, runs: Sequence[Any], parameters: dict[str, Any]) -> None:
    """Write runs, which are dataclasses, to a file, at once."""
    new = path.with_suffix(".new")
    new.write_text(
        json.dumps({"parameters": parameters, "runs": [asdict(run) for run in runs]}, indent=1), encoding="utf-8"
    )
    new.replace(path)
