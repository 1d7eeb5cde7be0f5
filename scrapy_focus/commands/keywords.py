"""``focus keywords``: more keywords of a topic, from pages on it and from word vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.extras import require_extra
from scrapy_focus.finders.kit.commands.base import FocusCommand, called, read_numbers, refuse_arguments, say, try_out

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from scrapy_focus.topic.expansion import Expansion, Judged

_REJECTED = 5
_COMMON = 8
_MANY = 5  # added words per keyword above which the threshold was useless
_PAGES = 1_000  # training pages needed for useful vectors


class KeywordsCommand(FocusCommand):
    """Expands a list of keywords."""

    command = "focus-keywords"
    arguments = "--keywords FILE --corpus DIR (--vectors FILE | --train DIR) [options]"
    summary = "Find more keywords of a topic in pages on it"
    details = (
        "Expand the keywords of a topic: add words from the pages in a folder if their vectors are closer to those "
        "of the keywords than these are to each other, on average. Prints what was added and why. Needs gensim."
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add = parser.add_argument
        add("--keywords", metavar="FILE", help="read the first keywords, one per line; # begins a comment")
        add("--corpus", metavar="DIR", help="add words from these pages on the topic (.txt, .html or .htm)")
        add(
            "--vectors", metavar="FILE",
            help="use these word vectors of word2vec, GloVe or gensim; gensim's own format is a pickle: load it only "
            "from a source that you trust",
        )  # fmt: skip
        add(
            "--train", metavar="DIR",
            help="train word vectors on these pages, instead of --vectors; they should be on and off the topic, the "
            "more the better",
        )  # fmt: skip
        add(
            "--all-words", action="store_true",
            help="judge every word of the pages on the topic, also those that are on any page (as published)",
        )  # fmt: skip
        add("--limit", metavar="N", help="add at most the N words with the highest scores")
        add("--out", metavar="FILE", help="write all keywords to FILE, with the scores of added ones")

    def check(self, args: list[str], opts: argparse.Namespace) -> None:
        refuse_arguments(self.command, args)
        for name, what in (("keywords", "FILE"), ("corpus", "DIR")):
            if not getattr(opts, name):
                raise UsageError(f"--{name} {what} is missing; focus keywords -h says what it takes")
        if bool(opts.vectors) == bool(opts.train):
            raise UsageError("give either --vectors FILE, or --train DIR to make word vectors from pages")
        read_numbers(opts, "limit")

    def work(self, args: list[str], opts: argparse.Namespace) -> int:
        require_extra(called(self.command), "topic", "gensim")
        _expand(opts)
        return 0


def _expand(opts: argparse.Namespace) -> None:
    from scrapy_focus.learn.vectors import load_vectors, train_vectors
    from scrapy_focus.topic.examples import read_texts
    from scrapy_focus.topic.expansion import expand, read_keywords, telling
    from scrapy_focus.web.words import words_of

    if opts.out:
        _check_out(Path(opts.out), Path(opts.keywords))
    keywords = read_keywords(opts.keywords)
    pages = read_texts(opts.corpus)
    training = read_texts(opts.train) if opts.train else {}
    others = _others(training, pages)
    words, common = telling(keywords, [*pages.values()], others)
    if opts.all_words:
        words, common = words_of("\n".join(pages.values())), []
    vectors = train_vectors(training.values()) if opts.train else load_vectors(opts.vectors)
    expansion = expand(keywords, words, vectors)
    above = len(expansion.added)
    expansion = expansion._replace(added=expansion.added[: opts.limit])
    if opts.train:
        _warn(opts.train, len(training), len(others))
    if common:
        where = "as frequent off the topic, or on few pages" if others else "on most of the pages, or on one"
        shown = ", ".join([*common[:_COMMON], "..."] if len(common) > _COMMON else common)
        say(f"skipped {len(common):,} words that are {where}: {shown}")
    say(*_said(expansion, above))
    if opts.out:
        _write(Path(opts.out), expansion)
        say(f"All {len(expansion.all_keywords):,} keywords: {opts.out}")


def _check_out(out: Path, keywords: Path) -> None:
    if out.resolve() == keywords.resolve():
        raise ConfigError(f"--out is {out}, the file of the keywords; give another one")
    try_out(out)


def _others(training: Mapping[Path, str], pages: Mapping[Path, str]) -> list[str]:
    """Return the training texts that are not among the pages on the topic."""
    inside = {file.resolve() for file in pages}
    texts = {*pages.values()}
    return [text for file, text in training.items() if file.resolve() not in inside and text not in texts]


def _warn(folder: str, n_pages: int, n_others: int) -> None:
    """Warn if the training pages are too few, or all on the topic."""
    if n_pages < _PAGES:
        say(
            f"Warning: the vectors are trained on {n_pages:,} pages only, and reflect which words occur together "
            f"rather than what they mean; train them on {_PAGES:,} or more, or use a file of vectors"
        )
    if not n_others:
        say(
            f"Warning: {folder} contains only pages on the topic, so words of the topic cannot be told from common "
            "words; add other pages"
        )


def _said(expansion: Expansion, above: int) -> list[str]:
    lines = [f"threshold {expansion.threshold:.3f}: how close the keywords are to each other on average"]
    if expansion.phrases:
        lines.append(f"kept, but phrases are not used: {', '.join(expansion.phrases)}")
    if expansion.without_vector:
        lines.append(f"kept, but without a vector: {', '.join(expansion.without_vector)}")
    if above > _MANY * len(expansion.keywords):
        lines.append(
            f"Warning: {above:,} words are above the threshold, so the vectors fit the topic badly, or the "
            "keywords are far from each other; use other vectors, more training pages, or a --limit"
        )
    cut = f", of {above:,} above the threshold" if above > len(expansion.added) else ""
    lines.append(f"added {len(expansion.added):,}{cut}")
    lines += [f"  {each.score:.3f} {each.word} (nearest {_near(each)})" for each in expansion.added]
    lines.append(
        f"rejected {len(expansion.rejected):,}, and {expansion.unknown:,} words without a vector"
        + ("; the nearest to the threshold:" if expansion.rejected else "")
    )
    for each in expansion.rejected[:_REJECTED]:
        short = expansion.threshold - each.score
        lines.append(
            f"  {each.score:.3f} {each.word}: {short:.3f} short; nearest {_near(each)}, but {each.farthest} "
            f"{each.farthest_score:.3f}"
        )
    return lines


def _near(judged: Judged) -> str:
    return f"{judged.nearest} {judged.nearest_score:.3f}"


def _write(path: Path, expansion: Expansion) -> None:
    lines = [*expansion.keywords, *(f"{each.word}  # added, {each.score:.3f}" for each in expansion.added)]
    try:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"the keywords cannot be written to {path}: {error.strerror}; name another file") from error
