"""``scrapy focus-keywords``: more keywords of a topic, from pages on it and from word vectors."""

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
_MANY = 5  # words that are added for each keyword, above which the threshold parted nothing from anything
_PAGES = 1_000  # with which training makes vectors that say something


class KeywordsCommand(FocusCommand):
    """Expands a list of keywords."""

    command = "focus-keywords"
    arguments = "--keywords FILE --corpus DIR (--vectors FILE | --train DIR) [options]"
    summary = "Find more keywords of a topic in pages on it"
    details = (
        "Expand the keywords of a topic: words of the pages in a folder are added if their vectors are closer to those "
        "of the keywords than these are to each other, on average. Says what was added and why. Needs gensim."
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add = parser.add_argument
        add("--keywords", metavar="FILE", help="the first keywords, one on each line; # begins a comment")
        add("--corpus", metavar="DIR", help="pages on the topic, .txt, .html or .htm, whose words may be added")
        add(
            "--vectors", metavar="FILE",
            help="word vectors of word2vec, GloVe or gensim; a file of gensim's own is a pickle, which should "
            "come from somebody you trust",
        )  # fmt: skip
        add(
            "--train", metavar="DIR",
            help="train the word vectors on the pages there, instead of --vectors: those on the topic and "
            "others, the more the better",
        )  # fmt: skip
        add("--limit", metavar="N", help="add the N words with the highest scores at most")
        add("--out", metavar="FILE", help="write all keywords there, with the scores of those that were added")

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
    from scrapy_focus.topic.examples import read_texts
    from scrapy_focus.topic.expansion import expand, load_vectors, read_keywords, telling, train_vectors

    if opts.out:
        _check_out(Path(opts.out), Path(opts.keywords))
    keywords = read_keywords(opts.keywords)
    pages = read_texts(opts.corpus)
    training = read_texts(opts.train) if opts.train else {}
    others = _others(training, pages)
    words, common = telling(keywords, [*pages.values()], others)
    vectors = train_vectors(training.values()) if opts.train else load_vectors(opts.vectors)
    expansion = expand(keywords, words, vectors)
    above = len(expansion.added)
    expansion = expansion._replace(added=expansion.added[: opts.limit])
    if opts.train:
        _warn(opts.train, len(training), len(others))
    if common:
        where = "as frequent off the topic, or on few pages" if others else "on most of the pages, or on one"
        shown = ", ".join([*common[:_COMMON], "..."] if len(common) > _COMMON else common)
        say(f"left out {len(common):,} words that are {where}: {shown}")
    say(*_said(expansion, above))
    if opts.out:
        _write(Path(opts.out), expansion)
        say(f"All {len(expansion.all_keywords):,} keywords: {opts.out}")


def _check_out(out: Path, keywords: Path) -> None:
    if out.resolve() == keywords.resolve():
        raise ConfigError(f"--out is {out}, the file of the keywords; give another one")
    try_out(out)


def _others(training: Mapping[Path, str], pages: Mapping[Path, str]) -> list[str]:
    """Return the texts to train with that are not among the pages on the topic."""
    inside = {file.resolve() for file in pages}
    texts = {*pages.values()}
    return [text for file, text in training.items() if file.resolve() not in inside and text not in texts]


def _warn(folder: str, n_pages: int, n_others: int) -> None:
    """Say where the pages to train with are too few, or all on the topic."""
    if n_pages < _PAGES:
        say(
            f"Warning: the vectors come from {n_pages:,} pages, and say which words stand together on a page "
            f"more than what they mean; train them on {_PAGES:,}, or take a file of vectors"
        )
    if not n_others:
        say(
            f"Warning: {folder} has no pages but those on the topic, so that nothing tells words of the topic from "
            "words of any page; put others there, too"
        )


def _said(expansion: Expansion, above: int) -> list[str]:
    lines = [f"threshold {expansion.threshold:.3f}: how close the keywords are to each other on average"]
    if expansion.phrases:
        lines.append(f"kept, but phrases have no part in it: {', '.join(expansion.phrases)}")
    if expansion.without_vector:
        lines.append(f"kept, but the vectors do not know: {', '.join(expansion.without_vector)}")
    if above > _MANY * len(expansion.keywords):
        lines.append(
            f"Warning: {above:,} words are above the threshold, so the vectors know little of the topic, or the "
            "keywords are far from each other; take other vectors, more pages to train them on, or a --limit"
        )
    cut = f", of {above:,} above the threshold" if above > len(expansion.added) else ""
    lines.append(f"added {len(expansion.added):,}{cut}")
    lines += [f"  {each.score:.3f} {each.word} (nearest {_near(each)})" for each in expansion.added]
    lines.append(
        f"rejected {len(expansion.rejected):,}, and {expansion.unknown:,} words that the vectors do not know"
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
