"""The benefit of word vectors for links whose words are in no example.

    python benchmarks/word_vectors.py WIKISPEEDIA --subjects subject.Religion --examples 10+10 50+50 --seeds 3

A model is trained on some articles of a subject and some others, and extended by vectors (``LinearRelevance.widen``):
*crawl* are trained on the pages that an earlier crawl for the subject fetched, *outside* on 2,500 articles that are
not filed under it. Both are far smaller than available files of vectors, whose benefit is not measured. Measured are
the area under the curve of titles, as in links, and of the beginnings of articles; and the share of relevant pages
among those fetched by best-first and TreeQ, by the labels. Articles of examples and of the earlier crawl are on no
side of the areas; a crawl has all but the examples.
"""

from __future__ import annotations

import argparse
import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from gensim.models import Word2Vec
from sklearn.metrics import roc_auc_score

from scrapy_focus.policies.bestfirst import BestFirst
from scrapy_focus.policies.treeq.policy import TreeQ
from scrapy_focus.topic.relevance import LinearRelevance
from scrapy_focus.web.words import words_of
from wikispeedia import Labels, Topic, Web, read_web, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.core.policy import Policy

WAYS = ("as it is", "crawl", "outside")
POINTS = (100, 200, 500)
FETCHED = 300  # by the earlier crawl
OUTSIDE = 2_500


def train(texts: Sequence[str], seed: int, epochs: int) -> Any:
    """Return vectors of texts, in a few seconds."""
    sentences = [words_of(text) for text in texts]
    made = Word2Vec(
        sentences, vector_size=64, min_count=3, window=8, sample=1e-4, sg=1, workers=1, seed=seed, epochs=epochs
    )
    return made.wv


class Case:
    """A subject, a seed and its examples: models of all ways, and crawls with each."""

    def __init__(self, web: Web, subject: str, seed: int, n_on: int, n_off: int) -> None:
        self.web = web
        self.seed = seed
        self.labels = web.labels(subject)
        self.texts = [f"{title}\n{text}" for title, text in zip(web.titles, web.texts, strict=True)]
        rng = np.random.default_rng([7, seed])
        on, off = np.flatnonzero(self.labels), np.flatnonzero(~self.labels)
        sample = np.concatenate([rng.choice(on, n_on, replace=False), rng.choice(off, n_off, replace=False)])
        self.topic = Topic(web, subject, seed)
        self.topic.sample = sample
        self.topic.there[:] = True
        self.topic.there[sample] = False
        self.topic.starts = rng.choice(np.setdiff1d(on, sample), 2, replace=False).tolist()
        examples = [self.texts[i] for i in sample]
        plain = LinearRelevance().fit(examples, self.labels[sample].tolist())
        first, earlier = self.topic.starts
        self.topic.starts = [earlier]
        self.earlier = self.crawl(BestFirst(relevance=plain), min(FETCHED, len(on)))
        self.topic.starts = [first]
        self.models = {"as it is": plain}
        outside = rng.choice(np.setdiff1d(off, sample), OUTSIDE, replace=False).tolist()
        for way, numbers, epochs in (("crawl", self.earlier, 8), ("outside", outside, 2)):
            self.models[way] = copy.deepcopy(plain)
            self.models[way].widen(train([self.texts[i] for i in numbers], seed, epochs), examples)

    def crawl(self, policy: Policy, budget: int) -> list[int]:
        """Return the articles that a crawl fetches."""
        return run(self.topic, policy, Labels(self.labels), seed=self.seed, budget=budget, in_flight=8)

    def areas(self, way: str) -> tuple[float, float, float]:
        """Return the area of titles and of articles, and how many titles have no word that is known."""
        rest = np.setdiff1d(np.flatnonzero(self.topic.there), self.earlier)
        model, true = self.models[way], self.labels[rest]
        titles = model.score([self.web.titles[i] for i in rest])
        some = np.random.default_rng(self.seed).choice(len(rest), 800, replace=False)
        pages = model.score([self.texts[rest[i]] for i in some])
        unknown = float((titles == model.prior).mean())
        return float(roc_auc_score(true, titles)), float(roc_auc_score(true[some], pages)), unknown

    def rates(self, way: str, name: str) -> list[float]:
        """Return the share of relevant pages among the first ones, as many as ``POINTS`` say."""
        model = self.models[way]
        came = self.crawl(BestFirst(relevance=model) if name == "best-first" else TreeQ(relevance=model), max(POINTS))
        hits = np.append(0, np.cumsum(self.labels[came]))
        return [float(hits[min(n, len(came))]) / n for n in POINTS]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    subjects = ["subject.Science.Biology", "subject.History", "subject.Religion"]
    parser.add_argument("--subjects", nargs="+", default=subjects)
    parser.add_argument("--examples", nargs="+", default=["10+10", "50+50", "50+200"])
    parser.add_argument("--policies", nargs="*", default=["best-first", "TreeQ"])
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args(arguments)
    web = read_web(args.folder)
    for subject in args.subjects:
        for examples in args.examples:
            n_on, n_off = map(int, examples.split("+"))
            cases = [Case(web, subject, seed, n_on, n_off) for seed in range(args.seeds)]
            for way in WAYS:
                titles, pages, unknown = np.mean([case.areas(way) for case in cases], axis=0)
                line = f"{subject} {examples} {way}: titles {titles:.3f} (unknown {unknown:.2f}) pages {pages:.3f}"
                for name in args.policies:
                    values = np.array([case.rates(way, name) for case in cases])
                    means = zip(values.mean(axis=0), values.std(axis=0), strict=True)
                    line += f"  {name} " + " ".join(f"{mean:.3f}±{spread:.3f}" for mean, spread in means)
                print(line, flush=True)


if __name__ == "__main__":
    main()
