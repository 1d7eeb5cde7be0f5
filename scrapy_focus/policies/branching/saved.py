"""A file of what a crawl learned, to start the next crawl of the same or a similar site.

The file is data and not a pickle: reading it runs no code, whatever its source. Its contents count as a few pulls of
each arm. So a crawl of a site that has changed, or of another kind of site, soon corrects them.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.learn.modelfile import Sort, read_model, write_model
from scrapy_focus.policies.branching.arms import RENDERINGS, Known
from scrapy_focus.policies.branching.renderings import Rendered

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from numpy.typing import NDArray

LEARNED = Sort("file of what was learned", "let a crawl write one with FOCUS_LEARNED_TO")

_PATHS = 8  # tag paths of each cluster that are written
_LARGEST = 1e6  # a number in a file
_EXTENSIONS = 1024
_TEMPLATES = 4096
_FEATURES = 1 << 16


class Learned(NamedTuple):
    """What a branching bandit learned."""

    theta: float  # similarity threshold of its clusters
    unit: str  # unit to be saved
    paths: list[list[str]]  # by cluster: some of its tag paths
    extensions: dict[str, tuple[float, float]]  # targets and others that were seen with each
    clusters: NDArray[np.intp]  # of each arm
    known: Known  # of the arms
    targets: tuple[NDArray[np.intp], NDArray[np.float32]]  # features and weights of the classifier of targets
    leads: tuple[NDArray[np.intp], NDArray[np.float32]]  # likewise of the classifier of links that lead to targets
    templates: Mapping[str, Rendered] = MappingProxyType({})  # of pages with scripts: the results of renderings


class _Column(NamedTuple):
    """The required form of an array in a file."""

    dimensions: int = 1
    below: str = ""  # whole numbers from 0, below this quantity; "": any numbers
    length: str = ""  # the quantity that gives its length; "": any
    least: float = -_LARGEST


_COLUMNS = {
    "clusters": _Column(below="paths"),
    "kinds": _Column(below="three", length="arms", least=0),
    "records": _Column(dimensions=2, length="arms"),
    "rows": _Column(below="arms"),
    "columns": _Column(below="arms", length="rows"),
    "counts": _Column(length="rows", least=0),
    "target_features": _Column(below="features"),
    "target_weights": _Column(length="target_features"),
    "lead_features": _Column(below="features"),
    "lead_weights": _Column(length="lead_features"),
}


def write_learned(learned: Learned, path: str | PathLike[str]) -> None:
    """Write what was learned.

    Raises
    ------
    ConfigError
        If the file cannot be written.
    """
    paths = [each[:_PATHS] or [f"unknown-{number}"] for number, each in enumerate(learned.paths)]  # too long to be kept
    header: dict[str, Any] = {
        "theta": learned.theta,
        "unit": learned.unit,
        "paths": paths,
        "extensions": learned.extensions,
    }
    if learned.templates:
        header["templates"] = {template: list(known) for template, known in learned.templates.items()}
    arrays = {
        "clusters": learned.clusters, "target_features": learned.targets[0], "target_weights": learned.targets[1],
        "lead_features": learned.leads[0], "lead_weights": learned.leads[1], **learned.known._asdict(),
    }  # fmt: skip
    write_model(path, header, arrays, LEARNED)


def read_learned(path: str | PathLike[str]) -> Learned:
    """Return what :func:`write_learned` wrote.

    Raises
    ------
    ConfigError
        If the file cannot be read, or is not such a file.
    """
    header, arrays = read_model(path, LEARNED)
    try:
        paths = _read_paths(header["paths"])
        extensions = _read_extensions(header["extensions"])
        templates = _read_templates(header.get("templates", {}))
        _check(arrays, len(paths))
        return Learned(
            theta=header["theta"], unit=header["unit"], paths=paths, extensions=extensions, clusters=arrays["clusters"],
            known=Known(**{name: arrays[name] for name in Known._fields}),
            targets=(arrays["target_features"], arrays["target_weights"]),
            leads=(arrays["lead_features"], arrays["lead_weights"]), templates=templates,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise ConfigError(f"{path} is damaged ({error}); {LEARNED.make}") from error


def _read_paths(paths: object) -> list[list[str]]:
    well = isinstance(paths, list) and all(
        isinstance(each, list) and each and all(isinstance(path, str) for path in each) for each in paths
    )
    if not well:
        raise ValueError("a cluster has no tag path")
    return list(paths)  # type: ignore[call-overload, no-any-return]


def _read_extensions(extensions: object) -> dict[str, tuple[float, float]]:
    if not isinstance(extensions, dict) or len(extensions) > _EXTENSIONS:
        raise ValueError("the extensions are not as they were written")
    seen = {str(name): (float(hits), float(others)) for name, (hits, others) in extensions.items()}
    if not all(min(counts) > 0 and max(counts) < _LARGEST for counts in seen.values()):
        raise ValueError("counts of extensions are not above 0")
    return seen


def _read_templates(templates: object) -> dict[str, Rendered]:
    if not isinstance(templates, dict) or len(templates) > _TEMPLATES:
        raise ValueError("the templates are not as they were written")
    seen = {str(template): Rendered(*counts) for template, counts in templates.items()}
    for known in seen.values():
        if not all(type(count) is int and 0 <= count < _LARGEST for count in known):
            raise ValueError("counts of templates are not whole numbers from 0")
        if known.tried < max(known.paid, known.misses) or known.plain < known.shells:
            raise ValueError("counts of templates contradict each other")
    return seen


def _check(arrays: Mapping[str, NDArray[Any]], n_paths: int) -> None:
    """Raise an error if an array is missing, or is not as it was written."""
    lengths = {name: len(arrays[name]) for name in _COLUMNS}
    quantities = {**lengths, "arms": lengths["clusters"], "paths": n_paths, "three": 3, "features": _FEATURES}
    for name, column in _COLUMNS.items():
        _check_column(name, column, arrays[name], quantities)
    rendered = arrays["kinds"] == RENDERINGS
    if np.intersect1d(arrays["clusters"][rendered], arrays["clusters"][~rendered]).size:
        raise ValueError("a template is a cluster of tag paths, too")
    records = arrays["records"]
    if records.shape[1] != 4 or (records[:, [0, 1, 3]] < 0).any():
        raise ValueError("records are not four numbers for each arm, with counts from 0")


def _check_column(name: str, column: _Column, array: NDArray[Any], quantities: Mapping[str, int]) -> None:
    if array.ndim != column.dimensions or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise ValueError(f"{name} has the shape {array.shape}, or invalid numbers")
    if column.length and len(array) != quantities[column.length]:
        raise ValueError(f"{name} has {len(array)} rows, there are {quantities[column.length]} {column.length}")
    if array.size and np.abs(array).max() > _LARGEST:
        raise ValueError(f"{name} has numbers above {_LARGEST:g}")
    if array.size and array.min() < column.least:
        raise ValueError(f"{name} has numbers below {column.least:g}")
    if column.below:
        end = quantities[column.below]
        if not np.issubdtype(array.dtype, np.integer) or ((array < 0) | (array >= end)).any():
            raise ValueError(f"{name} are not numbers from 0 below {end}")
