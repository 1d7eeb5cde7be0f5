"""What menus and footers cost a model of few sites, and what removing repeated text gains.

    python benchmarks/boilerplate.py WIKISPEEDIA --seeds 5

Texts are articles of Wikispeedia, put on synthetic sites: a menu and a footer of words that each site chooses, and a
box with the titles of ten of its articles. Examples are of five sites on the topic and five others. Tests are of 30
other sites with a fifth of the pages on the topic. Measured are the area under the curve, average precision, and
precision and recall at 0.5, with pages scored in the order of a crawl. Links are not part of it, and real menus
repeat less exactly than these.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from scrapy_focus.topic.relevance import LinearRelevance
from scrapy_focus.topic.repeated import Repeated
from scrapy_focus.web.words import words_of
from wikispeedia import read_web

if TYPE_CHECKING:
    from collections.abc import Sequence

SITES, EACH, TESTS, OF_A_TEST, ON = 5, 6, 30, 12, 0.2


class Sites:
    """Puts articles on sites."""

    def __init__(self, folder: Path, subject: str, rng: np.random.Generator) -> None:
        self.rng = rng
        self.web = read_web(folder)
        labels = self.web.labels(subject)
        self.lines = [[" ".join(each.split()) for each in text.split("\n\n")[1:]] for text in self.web.texts]
        self.on = rng.permutation(np.flatnonzero(labels)).tolist()
        self.others = rng.permutation(np.flatnonzero(~labels)).tolist()
        drawn = rng.choice(len(labels), 200, replace=False).tolist()
        self.vocabulary: list[str] = sorted({word for i in drawn for word in words_of(self.web.texts[i])})

    def site(self, n_on: int, n: int) -> tuple[list[list[str]], list[bool]]:
        """Return the blocks of the pages of a new site, and which of them are on the topic."""
        articles = [self.on.pop() for _ in range(n_on)] + [self.others.pop() for _ in range(n - n_on)]
        labels = [True] * n_on + [False] * (n - n_on)
        order = self.rng.permutation(n).tolist()
        words = self.rng.choice(self.vocabulary, 120).tolist()
        menu = [" ".join(words[2 * i : 2 * i + 2]) for i in range(30)]
        foot = [" ".join(words[60:90]), " ".join(words[90:])]
        box = [self.web.titles[i] for i in articles[:10]]
        pages = []
        for i in order:
            lines = self.lines[articles[i]]
            start = int(self.rng.integers(max(len(lines) - 6, 1)))
            pages.append([self.web.titles[articles[i]], *menu, *filter(None, lines[start : start + 6]), *box, *foot])
        return pages, [labels[i] for i in order]


def judge(folder: Path, subject: str, seed: int) -> dict[str, tuple[float, ...]]:
    """Return area, average precision, precision, recall and F1 at 0.5, and pages without text, by method of removal."""
    sites = Sites(folder, subject, np.random.default_rng(seed))
    examples = [sites.site(EACH * (i < SITES), EACH) for i in range(2 * SITES)]
    tests = [sites.site(round(ON * OF_A_TEST), OF_A_TEST) for _ in range(TESTS)]
    pages = [page for site, _ in examples for page in site]
    labels = [label for _, of_site in examples for label in of_site]
    true = np.array([label for _, of_site in tests for label in of_site])
    found: dict[str, tuple[float, ...]] = {}
    for name, k_train, k_test in (
        ("all text", 0, 0),
        ("examples stripped, 3", 3, 0),
        ("pages stripped, 3", 0, 3),
        ("both, 2", 2, 2),
        ("both, 3", 3, 3),
        ("both, 5", 5, 5),
    ):
        train = Repeated(pages=k_train or 10**9, blocks_of_host=10**6)
        for page in pages:
            train.add("", page)
        model = LinearRelevance().fit([train.left("", page) for page in pages], labels)
        live = Repeated(pages=k_test or 10**9)
        texts = [live.strip(str(host), page) for host, (site, _) in enumerate(tests) for page in site]
        scores = model.score(texts)
        said = scores >= 0.5
        hits = float((said & true).sum())
        found[name] = (
            float(roc_auc_score(true, scores)),
            float(average_precision_score(true, scores)),
            hits / max(said.sum(), 1),
            hits / true.sum(),
            2 * hits / (said.sum() + true.sum()),
            sum(not text for text in texts),
        )
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--subjects", default="subject.Science.Biology,subject.History,subject.Religion")
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args(arguments)
    for subject in args.subjects.split(","):
        runs = [judge(args.folder, subject, seed) for seed in range(args.seeds)]
        for name in runs[0]:
            values = np.array([run[name] for run in runs])
            mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
            print(
                f"{subject:<24} {name:<22} area {mean[0]:.3f}±{spread[0]:.3f}  average precision {mean[1]:.3f}  at 0.5: "
                f"precision {mean[2]:.2f} recall {mean[3]:.2f} F1 {mean[4]:.2f}  empty {int(values[:, 5].sum())}",
                flush=True,
            )


if __name__ == "__main__":
    main()
