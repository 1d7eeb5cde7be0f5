"""Who tells pages on a topic from others: the models of the TRES paper (its table 1), cross-validated on Wikispeedia.

    python benchmarks/classifiers.py wikispeedia.tar.xz

Measured: precision and recall of pages on the subject and the mean F1 of both classes, in stratified folds, of a support
vector machine and logistic regression over words (``LinearRelevance``), and of the bidirectional LSTM
(``NeuralRelevance``, with PyTorch). The LSTM has word vectors of all articles, as those of the paper are of all of
Wikipedia. Not measured: the size of the paper (64 units here, 300 there; 300 pages, some thousands there), its live web.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.learn.vectors import train_vectors
from scrapy_focus.topic.neural import NeuralRelevance
from scrapy_focus.topic.relevance import LinearRelevance
from scrapy_focus.topic.validation import cross_validate
from wikispeedia import read_web
from wikispeedia_tables import name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.topic.validation import Fit, Validation


def main() -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("path", type=Path, help="folder with the unpacked data, or the archive")
    parser.add_argument("--subjects", nargs="+", default=["subject.Science.Biology", "subject.History"])
    parser.add_argument(
        "--examples", type=int, nargs=2, default=[100, 200], help="on the subject, and off it (100 200)"
    )
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=2, help="draws of examples (2)")
    parser.add_argument("--words", type=int, default=150, help="of a page that the LSTM reads (150)")
    parser.add_argument("--epochs", type=int, default=15)
    options = parser.parse_args()
    web = read_web(options.path)
    vectors = train_vectors(web.texts)

    def neural(texts: Sequence[str], labels: Sequence[bool]) -> NeuralRelevance:
        model = NeuralRelevance(length=options.words, hidden=64, epochs=options.epochs)
        return model.fit(texts, labels, vectors=vectors)

    models: dict[str, Fit] = {
        "support vector machine": lambda texts, labels: LinearRelevance(svm=True).fit(texts, labels),
        "logistic regression": lambda texts, labels: LinearRelevance().fit(texts, labels),
        "bidirectional LSTM": neural,
    }
    print("| subject | model | precision | recall | F-macro |")
    print("|---|---|--:|--:|--:|")
    for subject in options.subjects:
        found: dict[str, list[Validation]] = {name: [] for name in models}
        for seed in range(options.seeds):
            rng = np.random.default_rng([11, seed])
            labels = web.labels(subject)
            chosen = [
                rng.choice(np.flatnonzero(labels == on), n, replace=False)
                for on, n in zip((True, False), options.examples, strict=True)
            ]
            texts = [web.texts[i] for part in chosen for i in part]
            truth = [on for on, part in zip((True, False), chosen, strict=True) for _ in part]
            for name, fit in models.items():
                found[name].append(cross_validate(fit, texts, truth, folds=options.folds))
        for name, made in found.items():
            measures = np.concatenate([each.measures[:, 0, :2] for each in made])
            f_macro = np.concatenate([each.f_macro for each in made])
            cells = [measures[:, 0], measures[:, 1], f_macro]
            said = " | ".join(f"{values.mean():.3f} ± {values.std(ddof=1):.3f}" for values in cells)
            print(f"| {name_of(subject)} | {name} | {said} |", flush=True)


if __name__ == "__main__":
    main()
