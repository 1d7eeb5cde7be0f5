"""Topic models at the frequency that topics have: examples, keywords or both, and the pages that a crawl has seen.

Measured on the articles of Wikispeedia: precision and recall at one half, expected calibration error (ten bins) and area
under the ROC curve, on pages (their first 3,000 characters) and on links (titles), for subjects that 15, 11 and 3 % of
the articles are filed under. Each draw parts the articles at random: a third is judged, at the true share; of the others
come the examples, then the keywords, and then 400 pages that were seen, at the true share or, as in a focused crawl,
40 % of them on the topic (fewer pages where there are too few of the subject). The ten keywords are words of four
letters or more of articles that are no examples, those with the largest ``p * log(p / q)``, where ``p`` and ``q`` are
the shares of articles with the word, of the subject and of others.

And crawls (``--crawls``) of a synthetic web of 20,000 hosts: 600 fetches, best link first, rewarded for what the
model calls relevant, which sees each page first. The counts are of the generator's truth. ``told`` is the share of
pages called relevant in the second half, ``alarm`` the number of pages seen at the first alarm.

Not measured: other webs, other ways to choose keywords. ::

    python benchmarks/calibration.py wikispeedia/ --draws 3
    python benchmarks/calibration.py --crawls --seeds 3

Prints Markdown. Runs are written to ``calibration.json`` (``--output``) as they end, and not repeated.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import Counter
from functools import lru_cache
from itertools import groupby, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.metrics import roc_auc_score

from hosts import Judge, open_web
from manyhosts.flying import steps
from scrapy_focus.core.budget import Budget
from scrapy_focus.core.crawl import Crawl
from scrapy_focus.frontiers.memory import memory_frontier
from scrapy_focus.policies.bestfirst import BestFirst
from scrapy_focus.topic.adaptive import AdaptiveRelevance
from scrapy_focus.topic.keywords import KeywordRelevance
from scrapy_focus.topic.relevance import LinearRelevance
from scrapy_focus.topic.shifted import ShiftedRelevance
from wikispeedia import read_web

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.mission import LearningTopic, Topic
    from scrapy_focus.core.types import Outcome
    from wikispeedia import Web

SUBJECTS = ("subject.Science.Biology", "subject.History", "subject.Religion")
STREAMS = {"true share": None, "40 % on topic": 0.4}
SEEN = 400
N_KEYWORDS = 10
TOPIC, HOSTS, FETCHES, STARTS = "herbs", 20_000, 600, 5


class Draw(NamedTuple):
    """What is known beforehand, what is seen, and what is scored."""

    positives: list[str]
    negatives: list[str]
    keywords: list[str]
    seen: list[str]
    pages: list[str]
    titles: list[str]
    labels: NDArray[np.bool_]  # of pages and titles


@lru_cache(maxsize=8)
def draw(path: Path, subject: str, n: int, stream: str, seed: int) -> Draw:
    """Split the articles at random."""
    web = read_web(path)
    labels = web.labels(subject)
    rng = np.random.default_rng([seed, 77])
    on, off = (rng.permutation(np.flatnonzero(which)) for which in (labels, ~labels))
    judged = np.concatenate([on[: len(on) // 3], off[: len(off) // 3]])
    on, off = on[len(on) // 3 :], off[len(off) // 3 :]
    text = [f"{title}\n{body}" for title, body in zip(web.titles, web.texts, strict=True)]
    share = STREAMS[stream] or float(labels.mean())
    n_on = min(round(SEEN * share), len(on) - n)
    n_off = round(n_on * (1 - share) / share)
    seen = rng.permutation(np.concatenate([on[n : n + n_on], off[n : n + n_off]]))
    return Draw(
        [text[i] for i in on[:n]], [text[i] for i in off[:n]], keywords(web, on[n:], off[n:]), [text[i] for i in seen],
        [text[i] for i in judged], [web.titles[i] for i in judged], labels[judged],
    )  # fmt: skip


def keywords(web: Web, on: Collection[int], off: Collection[int]) -> list[str]:
    """Return keywords as a user who knows the subject might choose them."""
    of_topic, of_others = (
        Counter(word for i in articles for word in set(re.findall("[a-z]{4,}", web.texts[i].lower())))
        for articles in (on, off)
    )

    def telling(word: str) -> float:
        share = of_topic[word] / len(on)
        return float(share * np.log(share / ((of_others[word] + 1) / (len(off) + 1))))

    frequent = [word for word, n in of_topic.items() if n >= 4]
    return sorted(frequent, key=lambda word: (-telling(word), word))[:N_KEYWORDS]


def model_of(name: str, found: Draw) -> Topic:
    """Return a model for the given data: the static one, or the adaptive one after it saw the pages."""
    if name == "KeywordRelevance":
        return KeywordRelevance(found.keywords)
    if name == "LinearRelevance":
        texts = found.positives + found.negatives
        return LinearRelevance().fit(texts, [True] * len(found.positives) + [False] * len(found.negatives))
    model: LearningTopic = shifted(found) if name == "ShiftedRelevance" else adaptive(found, name)
    for text in found.seen:
        model.see(text)
    return model


def adaptive(found: Draw, name: str) -> AdaptiveRelevance:
    """Return a model that learns from pages, for the named data, before it saw one."""
    return AdaptiveRelevance(
        positives=found.positives if "positives" in name else (),
        negatives=found.negatives if "negatives" in name else (),
        keywords=found.keywords if "keywords" in name else (),
    )


def shifted(found: Draw) -> ShiftedRelevance:
    """Return a linear model that follows the frequency, before it saw a page."""
    texts = found.positives + found.negatives
    labels = [True] * len(found.positives) + [False] * len(found.negatives)
    return ShiftedRelevance(LinearRelevance(frequency=0.5).fit(texts, labels))


MODELS = (
    "LinearRelevance", "ShiftedRelevance", "positives, negatives", "positives", "KeywordRelevance", "keywords", "positives, keywords",
    "positives, negatives, keywords",
)  # fmt: skip


def measured(labels: NDArray[np.bool_], scores: NDArray[np.float64]) -> dict[str, float]:
    """Return measures of how right probabilities are."""
    called = scores >= 0.5
    right = float((called & labels).sum())
    bins = np.minimum((scores * 10).astype(int), 9)
    off = [abs(float(labels[bins == k].sum() - scores[bins == k].sum())) for k in range(10)]
    return {
        "precision": right / max(float(called.sum()), 1), "recall": right / float(labels.sum()),
        "ece": sum(off) / len(labels), "auc": float(roc_auc_score(labels, scores)),
    }  # fmt: skip


def judge(path: Path, subject: str, n: int, stream: str, seed: int, name: str) -> dict[str, Any]:
    """Measure one model of one draw, on pages and on links."""
    found = draw(path, subject, n, stream, seed)
    model = model_of(name, found)
    return {
        "pages": measured(found.labels, model.score(found.pages)),
        "links": measured(found.labels, model.score(found.titles)),
        "frequency": getattr(model, "frequency", None), "share": float(found.labels.mean()), "seen": len(found.seen),
    }  # fmt: skip


def table(runs: dict[str, dict[str, Any]]) -> str:
    """Return the means over the draws."""
    rows = [
        "| subject (share), pages seen | examples | model | precision | recall | ECE | AUC | links: ECE | AUC | share |",
        "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    keys = [(*key.split("|")[:3], key.split("|")[4]) for key in runs]
    for subject, n, stream, name in dict.fromkeys(keys):
        found = [run for key, run in zip(keys, runs.values(), strict=True) if key == (subject, n, stream, name)]

        def of(where: str, what: str, found: list[dict[str, Any]] = found) -> str:
            return f"{np.mean([run[where][what] for run in found]):.2f}".removeprefix("0")

        share = [run["frequency"] for run in found if run["frequency"] is not None]
        rows.append(
            f"| {subject.rpartition('.')[2]} ({found[0]['share']:.1%}), {stream} | {n} | {name} | "
            + " | ".join(of("pages", what) for what in ("precision", "recall", "ece", "auc"))
            + f" | {of('links', 'ece')} | {of('links', 'auc')} | {f'{np.mean(share):.2f}' if share else ''} |"
        )
    return "\n".join(rows)


class Seeing(Judge):
    """A goal that shows the model each page before scoring it, and remembers when it first raised the alarm."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.model = model
        self.seen = 0
        self.first = 0

    def __call__(self, outcome: Outcome) -> float:
        """Return 1 for a page that is relevant, else 0."""
        if outcome.is_html and outcome.page is not None and hasattr(self.relevance, "see"):
            self.seen += 1
            self.model.see(outcome.page.text, outcome.pick.host)
            if not self.first and self.model.alarm:
                self.first = self.seen
        return super().__call__(outcome)


#: Examples of each kind, whether negatives and keywords are given, and the model that gets them.
CRAWLS = {
    "3+3, LinearRelevance": (3, True, False, "linear"), "3+3": (3, True, False, ""),
    "3 positives": (3, False, False, ""), "3+3, keywords": (3, True, True, ""), "KeywordRelevance": (0, False, True, "k"),
    "keywords": (0, False, True, ""), "10+10": (10, True, False, ""), "50+50": (50, True, False, ""),
    "50+50, keywords": (50, True, True, ""),
}  # fmt: skip


def crawl(name: str, seed: int) -> dict[str, Any]:
    """Crawl with a model, and count the truth."""
    n, both, words, sort = CRAWLS[name]
    web = open_web(5, HOSTS)
    rng = np.random.default_rng([3, seed])
    on, off = web.examples(TOPIC, max(n, 6), rng)
    on, off = on[:n], [off[i] for i in rng.permutation(len(off))[:n]]
    given = web.keywords(TOPIC) if words else []
    model: Any
    if sort == "k":
        model = KeywordRelevance(given)
    elif sort == "linear":
        model = LinearRelevance().fit(on + off, [True] * n + [False] * n)
    else:
        model = AdaptiveRelevance(positives=on, negatives=off if both else (), keywords=given, seed=seed)
    goal = Seeing(model)
    policy = BestFirst(keywords=given, relevance=model)
    loop = Crawl(policy, frontier=memory_frontier, goal=goal, budget=Budget(requests=FETCHES), seed=seed, strict=True)
    loop.add([web.link(url) for url in web.seeds(TOPIC, STARTS, np.random.default_rng([4, seed]))])
    true, told = [], []
    for step in steps(loop, web):
        true.append(TOPIC in step.page.topics if step.outcome.is_html else False)
        told.append(step.reward > 0)
    half = len(true) // 2
    return {
        "found": sum(true), "true": float(np.mean(true[half:])), "told": float(np.mean(told[half:])),
        "alarm": goal.first, "seen": goal.seen,
    }  # fmt: skip


def crawl_table(runs: dict[str, dict[str, Any]]) -> str:
    """Return one row for each model."""
    rows = ["| given | found of 600 | true in 2nd half | told | alarm after pages |", "|---|--:|--:|--:|---|"]
    for name, group in groupby(runs.items(), key=lambda item: item[0].split("|")[0]):
        found = [run for _, run in group]
        means = [float(np.mean([run[what] for run in found])) for what in ("found", "true", "told")]
        alarms = ", ".join(str(run["alarm"] or "-") for run in found)
        rows.append(f"| {name} | {means[0]:.0f} | {means[1]:.2f} | {means[2]:.2f} | {alarms} |")
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("path", type=Path, nargs="?", help="folder with the unpacked data, or the archive")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument(
        "--first-draw", type=int, default=40, help="0 to 33 were looked at before the last changes (40)"
    )
    parser.add_argument("--crawls", action="store_true")
    parser.add_argument("--seeds", type=int, default=3, help="crawls of each (3)")
    parser.add_argument("--first-seed", type=int, default=0, help="0 to 11 were used to choose parameters (0)")
    parser.add_argument("--examples", type=int, nargs="+", default=[3, 10, 50])
    parser.add_argument("--subjects", nargs="+", default=SUBJECTS)
    parser.add_argument("--streams", nargs="+", choices=[*STREAMS], default=[*STREAMS], help="pages seen (all)")
    parser.add_argument("--only", nargs="+", help="only these crawls or models")
    parser.add_argument("--output", type=Path, default=Path("calibration.json"))
    options = parser.parse_args(arguments)
    runs: dict[str, dict[str, Any]] = json.loads(options.output.read_text()) if options.output.exists() else {}
    tasks: dict[str, tuple[Any, ...]] = {}
    if options.crawls:
        names = options.only or list(CRAWLS)
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        tasks = {f"{name}|{seed}": (crawl, name, seed) for name, seed in product(names, seeds)}
    elif options.path is None:
        parser.error("give the folder of Wikispeedia, or --crawls")
    else:
        draws = range(options.first_draw, options.first_draw + options.draws)
        for subject, n, stream, seed, name in product(
            options.subjects, options.examples, options.streams, draws, options.only or MODELS
        ):
            key = f"{subject}|{n}|{stream}|{seed}|{name}"
            tasks[key] = (judge, options.path, subject, n, stream, seed, name)
    for key, (function, *rest) in tasks.items():
        if key not in runs:
            runs[key] = function(*rest)
            options.output.write_text(json.dumps(runs, indent=1))
            print(key, runs[key], file=sys.stderr, flush=True)
    shown = {key: runs[key] for key in tasks}
    print(crawl_table(shown) if options.crawls else table(shown))


if __name__ == "__main__":
    main()
