"""What other sites taught about which links lead to files: weights that the model of a new crawl starts from.

They are about words of URLs and anchors, places on a page, and how many files are linked beside them. They are the
initial weights of a model that goes on learning. So a weight that is wrong on a site is corrected there like any
other.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.learn.hashed import N_FEATURES
from scrapy_focus.learn.modelfile import Sort, read_model, write_model

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

#: Names the prior of this package where a file is expected.
BUILT_IN = "built-in"

PRIOR = Sort("prior", f"fit one with benchmarks/prior.py, or give {BUILT_IN!r}")

_FILE = Path(__file__).with_name("prior.npz")
_LARGEST = 1e3  # a weight


@lru_cache(maxsize=8)
def read_prior(path: str) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Return the features and weights of a prior, shapes (n,), read-only: of a file, or of the one that is built in.

    Raises
    ------
    ConfigError
        If the file cannot be read, or is not such a file.
    """
    _, arrays = read_model(_FILE if path == BUILT_IN else path, PRIOR)
    features, weights = arrays.get("features"), arrays.get("weights")
    if (
        features is None or weights is None or features.ndim != 1 or features.shape != weights.shape
        or features.dtype != np.uint16 or weights.dtype.kind != "f" or not (np.abs(weights) <= _LARGEST).all()
    ):  # fmt: skip
        raise ConfigError(f"{path} is damaged: it has no weight for each of its features; {PRIOR.make}")
    found = features.astype(np.intp), weights.astype(np.float32)
    for array in found:
        array.flags.writeable = False
    return found


def write_prior(path: str | PathLike[str], weights: NDArray[np.floating]) -> None:
    """Write the weights of all features, shape (65536,), without those that are zero.

    Raises
    ------
    ConfigError
        If the file cannot be written.
    """
    if weights.shape != (N_FEATURES,):
        raise ConfigError(f"a prior has {N_FEATURES:,} weights, one for each feature, and these have {weights.shape}")
    used = np.flatnonzero(weights).astype(np.uint16)
    write_model(path, {}, {"features": used, "weights": weights[used].astype(np.float16)}, PRIOR)
