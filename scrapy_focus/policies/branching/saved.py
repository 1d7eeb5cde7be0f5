"""What a crawl learned, in a file: to begin the next crawl of the same site, or of one like it, with it.

The file is data and not a pickle: whoever made it, reading it runs no code. What it says counts as much as a few pulls of each
arm. So a crawl of a site that has changed, or of another kind of site, soon knows better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.learn.modelfile import Sort, read_model, write_model
from scrapy_focus.policies.branching.arms import Known

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from numpy.typing import NDArray

    from scrapy_focus.policies.branching.policy import BranchingBandit

LEARNED = Sort("file of what was learned", "let a crawl write one with FOCUS_LEARNED_TO")

_PATHS = 8  # tag paths of each cluster that are written
_ARM = 5.0  # pulls that the record of an arm counts for, at most
_LARGEST = 1e6  # a number in a file
_EXTENSIONS = 1024
_KIND = 20.0  # what was seen of an extension, and of all arms of a kind, counts for as many
_ARRAYS = {"clusters": 1, "kinds": 1, "records": 2, "rows": 1, "columns": 1, "counts": 1, **dict.fromkeys(
    ("target_features", "target_weights", "lead_features", "lead_weights"), 1)}  # fmt: skip


def write_learned(policy: BranchingBandit, path: str | PathLike[str]) -> None:
    """Write what a policy learned: tag paths of its arms, their records, and the weights of both classifiers.

    Raises
    ------
    ConfigError
        If the file cannot be written.
    """
    paths: list[list[str]] = [[] for _ in range(policy.n_clusters)]
    for tag_path, cluster in policy.paths.items():
        if len(paths[cluster]) < _PATHS:
            paths[cluster].append(tag_path)
    for number, each in enumerate(paths):
        if not each:  # it was too long to be remembered
            each.append(f"unknown-{number}")
    known = policy.arms.known()
    target, lead = (np.flatnonzero(model.weights) for model in (policy.is_target, policy.leads))
    header = {"theta": policy.theta, "unit": policy.unit, "paths": paths, "extensions": policy.kinds.seen}
    arrays = {
        "clusters": policy.cluster_of_arm, "target_features": target, "target_weights": policy.is_target.weights[target],
        "lead_features": lead, "lead_weights": policy.leads.weights[lead], **known._asdict(),
    }  # fmt: skip
    write_model(path, header, arrays, LEARNED)


def read_learned(policy: BranchingBandit, path: str | PathLike[str]) -> None:
    """Let a policy that has seen nothing begin with what another one wrote.

    Raises
    ------
    ConfigError
        If the file cannot be read, is another one, or was written with another theta or unit.
    """
    header, arrays = read_model(path, LEARNED)
    try:
        paths, extensions = _check(header, arrays)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise ConfigError(f"{path} is damaged ({error}); {LEARNED.make}") from error
    for name in ("theta", "unit"):
        if header.get(name) != getattr(policy, name):
            raise ConfigError(
                f"{path} was written with {name} = {header.get(name)!r}, and this crawl has {getattr(policy, name)!r}; give both "
                "crawls the same, or begin without the file"
            )
    clusters = [policy.join(each) for each in paths]
    arms = [
        policy.arm_of(clusters[cluster], int(kind), paths[cluster][0])
        for cluster, kind in zip(arrays["clusters"].tolist(), arrays["kinds"].tolist(), strict=True)
    ]
    known = Known(**{name: arrays[name] for name in Known._fields})
    policy.arms.recall(known, np.array(arms, np.intp), pulls=_ARM, of_kind=_KIND)
    policy.is_target.weights[arrays["target_features"]] = arrays["target_weights"]
    policy.leads.weights[arrays["lead_features"]] = arrays["lead_weights"]
    for extension, (hits, others) in extensions.items():
        share = min(1.0, _KIND / (hits + others))
        policy.kinds.seen[extension] = (hits * share, others * share)


def _check(
    header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> tuple[list[list[str]], dict[str, tuple[float, float]]]:
    """Return tag paths by cluster, and extensions.

    Raises
    ------
    KeyError, TypeError, ValueError
        If something is missing, or is not as it was written.
    """
    for name, dimensions in _ARRAYS.items():
        array = arrays[name]
        if array.ndim != dimensions or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise ValueError(f"{name} has the shape {array.shape}, or what is no number")
        if array.size and np.abs(array).max() > _LARGEST:
            raise ValueError(f"{name} has numbers above {_LARGEST:g}")
    paths, extensions = header["paths"], header["extensions"]
    if not isinstance(paths, list) or not all(
        isinstance(each, list) and each and all(isinstance(path, str) for path in each) for each in paths
    ):
        raise ValueError("a cluster has no tag path")
    if not isinstance(extensions, dict) or len(extensions) > _EXTENSIONS:
        raise ValueError("the extensions are not as they were written")
    n_arms, lengths = len(arrays["clusters"]), {len(arrays[name]) for name in ("rows", "columns", "counts")}
    ranges = {"clusters": len(paths), "kinds": 2, "rows": n_arms, "columns": n_arms, "target_features": 1 << 16}
    for name, end in (ranges | {"lead_features": 1 << 16}).items():
        if not np.issubdtype(arrays[name].dtype, np.integer) or ((arrays[name] < 0) | (arrays[name] >= end)).any():
            raise ValueError(f"{name} are not numbers from 0 below {end}")
    if arrays["records"].shape != (n_arms, 4) or len(arrays["kinds"]) != n_arms or len(lengths) != 1:
        raise ValueError("there are not as many records as arms")
    if any(len(arrays[f"{of}_features"]) != len(arrays[f"{of}_weights"]) for of in ("target", "lead")):
        raise ValueError("there are not as many weights as features")
    if (arrays["records"][:, [0, 1, 3]] < 0).any() or (arrays["counts"] < 0).any():
        raise ValueError("counts are below 0")
    seen = {str(name): (float(hits), float(others)) for name, (hits, others) in extensions.items()}
    if not all(min(counts) > 0 and max(counts) < _LARGEST for counts in seen.values()):
        raise ValueError("counts of extensions are not above 0")
    return paths, seen
