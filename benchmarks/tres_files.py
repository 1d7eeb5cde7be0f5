"""TRES, adapted to files, next to the other crawlers of the SB-CLASSIFIER paper, on recorded sites.

The policy asks the truth which pages link to targets. In the paper, a classifier of texts says so. ``train`` trains one
as there: with 1,000 such pages of the sites themselves, or as many as there are if each site gives equally many. It
prints what share of the pages of each site the classifier misjudges. ``crawl`` prints the tables of ``paper.py`` for
TRES-FILES by the truth and by the classifier, with pages at random, and for the other crawlers. Not measured: time.
The recordings need the texts of pages::

    python benchmarks/sites.py record --bodies sklearn2 lily
    python benchmarks/tres_files.py train sites/sklearn2.sqlite sites/lily.sqlite --classifier tres.npz
    python benchmarks/tres_files.py crawl sites/sklearn2.sqlite sites/lily.sqlite --classifier tres.npz --seeds 5
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paper import crawlers
from scrapy_focus import FilesGoal
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.topic.relevance import LinearRelevance
from scrapy_focus.web.html import html_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_EXAMPLES = 1000  # of pages that link to a target, and of others


def train(paths: Sequence[Path], out: Path) -> None:
    """Train a classifier of pages that link to targets with up to 1,000 of them and of others, evenly from sites."""
    rng = np.random.default_rng(0)
    examples: list[str] = []
    kinds: list[bool] = []
    sites = {path.stem: _judged_pages(path) for path in paths}
    for texts, labels in sites.values():
        for kind in (True, False):
            drawn = rng.permutation(np.flatnonzero(labels == kind))[: -(-_EXAMPLES // len(paths))]
            examples += [texts[i] for i in drawn]
            kinds += [kind] * len(drawn)
    model = LinearRelevance().fit(examples, kinds)
    model.save(out)
    print(f"Trained with {sum(kinds)} pages that link to a target, and {len(kinds) - sum(kinds)} others.\n")
    print("| site | pages that link to a target | of these misjudged, % | other pages | of these misjudged, % |")
    print("|---|--:|--:|--:|--:|")
    for name, (texts, labels) in sites.items():
        wrong = (model.score(texts) >= 0.5) != labels
        cells = [f"{of.sum():,} | {100 * wrong[of].sum() / max(of.sum(), 1):.1f}" for of in (labels, ~labels)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _judged_pages(path: Path) -> tuple[list[str], NDArray[np.bool_]]:
    """Return the texts of the pages of a site, and which of them link to a target, shape (n_pages,)."""
    site = RecordedSite(path)
    truth = SiteTruth(site, FilesGoal(), ignored=())
    targets = {link.key for link in truth.targets()}
    pages = [page for page in truth.order.tolist() if truth.kind(site.urls[page]) == "page"]
    labels = np.array([not targets.isdisjoint(truth.leads_to(page).tolist()) for page in pages], np.bool_)
    return [html_text(site.text(page)) for page in pages], labels


def main() -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("command", choices=["train", "crawl"])
    parser.add_argument("paths", metavar="SITE.sqlite", type=Path, nargs="+")
    parser.add_argument("--classifier", metavar="FILE", type=Path, default=Path("tres.npz"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.command == "train":
        train(options.paths, options.classifier)
    else:
        by_text = f"TRES-FILES, by text=TRES-FILES:relevance={str(options.classifier)!r}"
        also = (by_text, "pages at random=TRES-FILES:mode=random")
        crawlers(options.paths, options.seeds, options.jobs, also=also)


if __name__ == "__main__":
    main()
