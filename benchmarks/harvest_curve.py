"""The picture benchmarks/harvest.png: targets found against requests sent, in live crawls over HTTP.

Measured as in ``real_sites.py``, with the whole curve: the mean over the seeds, and a band from the least to the most. ::

    python benchmarks/harvest_curve.py portal sklearn2 --seeds 5 --output benchmarks/harvest.png
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np

from real_sites import POLICIES, crawl, harvest
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.lab.sites.server import SiteServer
from sites import SITES, open_site, read_truth

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from scrapy_focus.lab.sites.server import Site

mpl.use("Agg")

COLOURS = {"BranchingBandit": "#0b6e4f", "TagPath": "#3d7ea6", "BreadthFirst": "#c1440e", "Random": "#7d7d7d"}
LABELS = {
    "BranchingBandit": "branching bandit (the default)",
    "TagPath": "SB-CLASSIFIER",
    "BreadthFirst": "breadth-first",
    "Random": "random",
}
TITLES = {"portal": "the bundled statistics portal, 2,016 pages", "sklearn2": "scikit-learn documentation, 947 pages"}


def site_of(name: str, folder: Path) -> tuple[Site, str, Iterable[str], int]:
    """A site, its start path, its targets, and the requests that a curve is drawn to."""
    if name == "portal":
        portal = StatisticsPortal(pages=2000, seed=0)
        return portal, "/", list(portal.targets()), 3500
    truth = read_truth(name, folder)
    return open_site(name, folder), SITES[name].start, truth.targets, truth.requests


def curves(name: str, policy: str, seeds: int, folder: Path) -> NDArray[np.float64]:
    """The share of the targets found after each request, shape (seeds, requests + 1)."""
    rows = []
    for seed in range(seeds):
        site, start, targets, budget = site_of(name, folder)
        with SiteServer(site) as server:
            crawl(server.url.removesuffix("/") + start, policy=POLICIES[policy], budget=budget, seed=seed)
            curve = harvest(server.log, targets)
        rows.append(np.interp(np.arange(budget + 1), np.arange(len(curve)), curve) / len(list(targets)))
    return np.array(rows)


def main() -> None:
    """Draw the picture."""
    from matplotlib import pyplot as plt

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", metavar="SITE", nargs="+", choices=["portal", *SITES])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path("sites"))
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    figure, axes = plt.subplots(1, len(options.names), figsize=(5.2 * len(options.names), 3.8), squeeze=False)
    for axis, name in zip(axes[0], options.names, strict=True):
        for policy in POLICIES:
            shares = 100 * curves(name, policy, options.seeds, options.folder)
            requests = np.arange(shares.shape[1])
            axis.plot(requests, shares.mean(axis=0), color=COLOURS[policy], label=LABELS[policy])
            axis.fill_between(requests, shares.min(axis=0), shares.max(axis=0), color=COLOURS[policy], alpha=0.15, lw=0)
            print(name, policy, f"{shares[:, requests[-1] // 3].mean():.1f} % after a third", flush=True)
        axis.set(title=TITLES.get(name, name), xlabel="requests of all kinds", ylim=(0, 101), xlim=(0, None))
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("data files found, %")
    axes[0][0].legend(frameon=False)
    figure.tight_layout()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.output, dpi=110)


if __name__ == "__main__":
    main()
