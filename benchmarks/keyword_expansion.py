"""What the expansion of keywords adds (Algorithm 1 of the TRES paper), as published and as ``focus keywords`` does it.

    python benchmarks/keyword_expansion.py wikispeedia.tar.xz --seeds 3

Measured, for subjects of Wikispeedia: how many of the words of a tenth of its articles on the subject are added to 10
and to 60 first keywords, and how often added keywords occur in other articles, on the subject and off it, per article.
*All words*: each word of the articles is judged, as published. *Distinctive words*: those alone that are clearly more
frequent on the subject, by the rest of that tenth (the command's rule). *Above it*: how often added words occur off the
subject, but on the one above it (Science for Biology). The word vectors are trained on all articles, without their
subjects. Not measured: vectors of all of Wikipedia, which the paper uses, and the benefit for a crawl.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.learn.vectors import train_vectors
from scrapy_focus.topic.expansion import expand, telling
from scrapy_focus.web.words import words_of
from wikispeedia import Topic, read_web
from wikispeedia_tables import name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.learn.vectors import Vectors
    from wikispeedia import Web

SUBJECTS = ("subject.Science.Biology", "subject.Geography", "subject.Religion", "subject.Music")
FIRST = (10, 60)  # keywords
#: Candidates, added ones, and occurrences of these per article: on the subject, off it, and off it on the one above it.
Row = tuple[int, int, float, float, float]


def rows(web: Web, subject: str, seed: int, first: int, vectors: Vectors, counts: Sequence[Counter[str]]) -> list[Row]:
    """Return what is added to so many keywords from all words, and from distinctive ones."""
    topic = Topic(web, subject, seed)
    pages = [web.texts[i] for i in topic.sample if topic.labels[i]]
    others = [web.texts[i] for i in topic.sample if not topic.labels[i]]
    keywords = topic.keywords[:first]
    rest = np.setdiff1d(np.arange(len(web.names)), topic.sample)
    above = np.array([subject.rpartition(".")[0] in web.subjects[i] for i in rest]) & ~topic.labels[rest]
    found = []
    for words in (sorted({*words_of("\n".join(pages))}), telling(keywords, pages, others).words):
        added = [each.word for each in expand(keywords, words, vectors).added]
        often = np.array([sum(counts[i][word] for word in added) for i in rest])
        on = topic.labels[rest]
        near = float(often[above].mean()) if above.any() else np.nan
        found.append((len(words), len(added), float(often[on].mean()), float(often[~on].mean()), near))
    return found


def main() -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("path", type=Path, help="folder with the unpacked data, or the archive")
    parser.add_argument("--subjects", nargs="+", default=[*SUBJECTS])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    web = read_web(options.path)
    counts = [Counter(words_of(text)) for text in web.texts]
    vectors = train_vectors(web.texts)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    print("| subject | first keywords | candidates | judged | added | per article on it | off it | times | above it |")
    print("|---|--:|---|--:|--:|--:|--:|--:|--:|")
    for subject in options.subjects:
        for first in FIRST:
            made = np.array([rows(web, subject, seed, first, vectors, counts) for seed in seeds])
            for i, way in enumerate(("all words", "distinctive words")):
                judged, added, on, off, near = made[:, i].mean(axis=0)
                spread = made[:, i, 1].std(ddof=1) if len(made) > 1 else 0.0
                near_by = "-" if np.isnan(near) else f"{near:.2f}"
                print(
                    f"| {name_of(subject)} | {first} | {way} | {judged:,.0f} | {added:,.0f} ± {spread:,.0f} | {on:.2f} "
                    f"| {off:.2f} | {on / max(off, 1e-9):.1f} | {near_by} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
