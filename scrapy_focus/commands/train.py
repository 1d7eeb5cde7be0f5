"""``focus train``: train and evaluate a relevance model on example pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.extras import require_extra
from scrapy_focus.core.printable import counted
from scrapy_focus.finders.kit.commands.base import (
    FocusCommand,
    called,
    make_console,
    read_numbers,
    refuse_arguments,
    say,
    try_out,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from scrapy_focus.learn.vectors import Vectors
    from scrapy_focus.topic.examples import Examples
    from scrapy_focus.topic.relevance import LinearRelevance
    from scrapy_focus.topic.validation import Fit, Validation

_FOLDS = 5
_WORDS = 15  # of each class
_MISJUDGED = 5
_FEW = 5  # examples of a class below which the numbers mean little
_FREQUENCIES = (0.01, 0.03, 0.1)
_UNSURE = 10  # misjudged pages off topic below which the expected precision is uncertain


class TrainCommand(FocusCommand):
    """Trains a relevance model."""

    command = "focus-train"
    arguments = "--positive DIR --negative DIR [options]"
    summary = "Train a model of a topic on example pages"
    details = (
        "Train a model that predicts whether a page is on a topic, and write it to a file. The examples are .txt, "
        ".html or .htm files in two folders and their subfolders. The model is evaluated by cross-validation: each "
        "page is judged by a model that was not trained on it."
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add = parser.add_argument
        add("--positive", metavar="DIR", help="read example pages on the topic from DIR")
        add("--negative", metavar="DIR", help="read example pages off the topic from DIR, such as a crawl would meet")
        add("--out", metavar="FILE", default="model.npz", help="write the model to FILE (default: model.npz)")
        add(
            "--frequency", metavar="SHARE",
            help="assume that this share of all pages is on topic, such as 0.03, so that the model predicts the right "
            "probabilities for the crawl (default: the share among the examples)",
        )  # fmt: skip
        add("--folds", metavar="K", help=f"cross-validate with K folds (default: {_FOLDS}, or fewer for few examples)")
        add("--svm", action="store_true", help="train a linear support vector machine, not logistic regression")
        add("--neural", action="store_true", help="train a bidirectional LSTM, not a linear model; needs PyTorch")
        add("--epochs", metavar="N", help="with --neural: pass N times over the examples (default: 25)")
        add(
            "--vectors", metavar="FILE",
            help="judge words of links that are in no example by the nearest words in these word vectors; with "
            "--neural, use them instead of learning vectors; needs gensim",
        )  # fmt: skip

    def check(self, args: list[str], opts: argparse.Namespace) -> None:
        refuse_arguments(self.command, args)
        if not (opts.positive and opts.negative):
            missing = " and ".join(f"--{name} DIR" for name in ("positive", "negative") if not getattr(opts, name))
            raise UsageError(
                f"{missing} is missing: a model learns how pages on the topic differ from others, so it needs pages of "
                "both kinds"
            )
        if not opts.neural and opts.epochs:
            raise UsageError("--epochs needs --neural; the linear model has no epochs")
        if opts.neural and opts.svm:
            raise UsageError("give either --svm or --neural: they are different models")
        if opts.neural and opts.frequency:
            raise UsageError("--frequency is for the linear model, and cannot adjust a neural one")
        read_numbers(opts, "folds", least=2)
        opts.frequency = _share(opts.frequency)
        read_numbers(opts, "epochs")

    def work(self, args: list[str], opts: argparse.Namespace) -> int:
        require_extra(called(self.command), "topic", "sklearn", *(["gensim"] if opts.vectors else []))
        if opts.neural:
            require_extra("--neural", "neural", "torch")
        _train(opts)
        return 0


def _train(opts: argparse.Namespace) -> None:
    from scrapy_focus.learn.vectors import load_vectors
    from scrapy_focus.topic.examples import read_examples
    from scrapy_focus.topic.relevance import LinearRelevance
    from scrapy_focus.topic.validation import cross_validate

    out = Path(opts.out)
    try_out(out)
    vectors: Vectors | None = load_vectors(opts.vectors) if opts.vectors else None
    fit = _neural(opts, vectors) if opts.neural else LinearRelevance(frequency=opts.frequency, svm=opts.svm).fit
    examples = read_examples(opts.positive, opts.negative)
    counts = [sum(examples.labels), len(examples.labels) - sum(examples.labels)]
    say(f"{counted(counts[0], 'page')} on topic, {counts[1]:,} off topic")
    for file in examples.empty[:_MISJUDGED]:
        say(f"Skipped, no text in it: {file}")
    if len(examples.empty) > _MISJUDGED:
        say(f"Skipped, no text in them: {len(examples.empty) - _MISJUDGED:,} more")
    folds = _folds(opts.folds, counts)
    if folds:
        validation = cross_validate(fit, examples.texts, examples.labels, folds=folds)
        _show(validation, counts)
        _show_expected(validation, examples.labels, opts.frequency, shifts=not opts.neural)
        _show_misjudged(validation, examples)
    else:
        say("One example of a class is not enough to evaluate the model; give more.")
    if min(counts) < _FEW:
        say(
            f"With fewer than {_FEW} examples of a class, these numbers are mostly luck; more pages also make a better "
            "model."
        )
    model = fit(examples.texts, examples.labels)
    if isinstance(model, LinearRelevance):
        _show_telling(model)
        if vectors is not None:
            say(f"Words known from the vectors only: {model.widen(vectors, examples.texts):,}")
    model.save(out)  # type: ignore[attr-defined]
    say(f"The model, trained on all pages: {out} ({out.stat().st_size / 1e6:,.1f} MB, {model.digest[:12]})")


def _folds(asked: int | None, counts: Sequence[int]) -> int:
    fewest = min(counts)
    if asked is not None and asked > fewest:
        raise ConfigError(
            f"--folds is {asked}, and one class has only {fewest} pages; every fold needs a page of each: give more "
            "pages, or omit the option"
        )
    return asked or (min(_FOLDS, fewest) if fewest > 1 else 0)


def _share(given: str | None) -> float | None:
    try:
        share = None if given is None else float(given)
    except ValueError:
        share = -1.0
    if share is not None and not 0 < share < 1:
        raise UsageError(f"--frequency is {given!r}; it takes a share of all pages, between 0 and 1, such as 0.03")
    return share


def _neural(opts: argparse.Namespace, vectors: Vectors | None) -> Fit:
    from scrapy_focus.topic.neural import NeuralRelevance

    model = NeuralRelevance(epochs=opts.epochs or 25)
    return lambda texts, labels: model.fit(texts, labels, vectors=vectors)


def _show(validation: Validation, counts: Sequence[int]) -> None:
    from rich.table import Table

    from scrapy_focus.topic.validation import CLASSES, MEASURES

    folds = len(validation.measures)
    table = Table(title=f"cross-validation, mean ± standard deviation over {folds} folds", title_justify="left")
    table.add_column("")
    for name in ("pages", *MEASURES):
        table.add_column(name, justify="right")
    for i, name in enumerate(CLASSES):
        table.add_row(name, f"{counts[i]:,}", *(_spread(validation.measures[:, i, j]) for j in range(len(MEASURES))))
    table.add_row("F-macro", "", "", "", _spread(validation.f_macro))
    make_console().print(table)


def _show_expected(validation: Validation, labels: Sequence[bool], frequency: float | None, *, shifts: bool) -> None:
    """Print the expected precision where the topic is rare, and how ``--frequency`` would change it."""
    import numpy as np
    from rich.table import Table

    from scrapy_focus.topic.relevance import log_odds
    from scrapy_focus.topic.validation import expected

    true = np.asarray(labels, bool)
    odds = np.array([log_odds(min(max(score, 1e-12), 1 - 1e-12)) for score in validation.scores.tolist()])
    table = Table(title="expected where a share of the pages is on topic", title_justify="left")
    for name in ("on topic", "recall", "precision", "between"):
        table.add_column(name, justify="right")
    compares = shifts and frequency is None
    if compares:
        table.add_column("with --frequency", justify="right")
    for each in sorted({*_FREQUENCIES, *([frequency] if frequency else [])}):
        _, precision, low, high, recall = expected(odds >= 0, true, each)
        row = [f"{each:.3g}", f"{recall:.2f}", f"{precision:.2f}", f"{low:.2f} to {high:.2f}"]
        if compares:
            shifted = expected(odds + log_odds(each) - log_odds(float(true.mean())) >= 0, true, each)
            row.append(f"recall {shifted.recall:.2f}, precision {shifted.precision:.2f}")
        table.add_row(*row)
    make_console().print(table)
    wrong, off = int(((odds >= 0) & ~true).sum()), int((~true).sum())
    if wrong < _UNSURE:
        say(
            f"Precision depends on how many pages off topic the model misjudges: {wrong:,} of {off:,}, "
            "too few for a good estimate. Give more pages off topic."
        )


def _spread(values: NDArray) -> str:  # type: ignore[type-arg]
    return f"{values.mean():.3f} ± {values.std(ddof=1):.3f}"


def _show_misjudged(validation: Validation, examples: Examples) -> None:
    wrong = [i for i, score in enumerate(validation.scores) if (score >= 0.5) != examples.labels[i]]
    if not wrong:
        return
    wrong.sort(key=lambda i: -abs(validation.scores[i] - 0.5))
    say(f"Misjudged {len(wrong):,} of {len(examples.labels):,}, the most confident first:")
    for i in wrong[:_MISJUDGED]:
        say(f"  {validation.scores[i]:.2f} {'on' if examples.labels[i] else 'off'} topic: {examples.files[i]}")


def _show_telling(model: LinearRelevance) -> None:
    for name, words in model.telling.items():
        say(f"Typical words {name}: {', '.join(words[:_WORDS]) or '(none)'}")
