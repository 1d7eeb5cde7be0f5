"""Topic crawls of Wikispeedia by one sentence: harvest rates, what the wording is worth, and how right the judgement is.

Measured: crawls of ``wikispeedia.py``, on the same web with the same start pages and samples, by what is known
beforehand: a sentence in three wordings (``about_sentences.py``), ten keywords, examples, or 460 labelled articles. Each
crawl is rewarded by its own judgement, never by labels, except where its name says so; the labels of people judge it:
the share of the first 100, 200, 500 and 1,000 pages that they had filed under the subject. Examples are drawn from the
sample, which is not on the web; a subject with fewer than ten articles in it has fewer.

After each crawl its topic judges all articles of the web, as the crawl left it: precision and recall at one half, and
the area under the curve for pages and for titles.

Not measured: see ``wikispeedia.py``; the text of a link is the title of the article and almost its URL, so that scorers
of URLs are better off than elsewhere. ::

    python benchmarks/about_topic.py crawl wikispeedia.tar.xz --seeds 5 --first-seed 300 --output about.jsonl
    python benchmarks/about_topic.py crawl wikispeedia.tar.xz --subjects nine --rows sentence "10 + 10" --budget 500
    python benchmarks/about_topic.py tables --output about.jsonl

Each run is a line of ``--output``, added as soon as it is over; those that are in it are not repeated. ``--variant NAME
--topic package.Class`` crawls with another class for sentences under another name, to be compared.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

import wikispeedia
from about_sentences import WORDINGS
from published_scorers import CoverageOrder, QueryShare, query_words
from scrapy_focus.goals.topic import TopicGoal
from scrapy_focus.learn.embedding import load_embedding
from scrapy_focus.policies.bestfirst import BestFirst
from scrapy_focus.policies.orderings import BreadthFirst
from scrapy_focus.policies.treeq import TreeQ
from scrapy_focus.topic.examples import Given
from scrapy_focus.topic.models import made_of
from scrapy_focus.web.html import html_blocks
from scrapy_focus.web.words import url_words, words_of
from wikispeedia_tables import name_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core import mission
    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.policy import Policy
    from scrapy_focus.learn.embedding import Embedding

POINTS = (100, 200, 500, 1000)  # fetches
SHOWN = POINTS[:3]  # in tables
WORDING_NAMES = ("word", "plain", "rich")
ABOUT = "scrapy_focus.topic.about.AboutTopic"
#: The subjects of the first sketch of crawls by a sentence, recognised by what a trained model found in it: all but
#: Science, People, Design_and_Technology and Language_and_literature.
NINE = (
    "subject.Geography", "subject.Science.Biology", "subject.History", "subject.Everyday_life", "subject.Religion",
    *(subject for subject in wikispeedia.NEW if "=" in subject),
)  # fmt: skip
#: What a sentence alone was to reach at 100, 200 and 500 pages, on the mean of the nine.
GOALS = (0.60, 0.49, 0.34)
_RARE = (0.025, 0.035)  # frequencies of a topic that count as 3 %


class Row(NamedTuple):
    """What a crawl is given, and how it chooses."""

    sentence: bool = False
    keywords: bool = False
    examples: int = 0  # of each kind, on the topic and off it
    trained: bool = False  # on the labels of the sample, with 60 keywords from it
    labels: bool = False  # rewarded by the labels of people
    policy: str = "TreeQ"
    wordings: tuple[str, ...] = ("plain",)  # that are crawled, unless others are asked for


ROWS = {
    "sentence": Row(sentence=True, wordings=WORDING_NAMES),
    "sentence + 10 keywords": Row(sentence=True, keywords=True),
    "sentence + 3 + 3": Row(sentence=True, examples=3),
    "sentence + 10 + 10": Row(sentence=True, examples=10),
    "3 + 3": Row(examples=3),
    "10 + 10": Row(examples=10),
    "trained on 460": Row(trained=True),
    "trained on 460, rewards by labels": Row(trained=True, labels=True),
    "best-first by sentence": Row(sentence=True, policy="best-first", wordings=WORDING_NAMES),
    "share of the sentence's words": Row(sentence=True, policy="share", wordings=WORDING_NAMES),
    "share of 10 keywords": Row(keywords=True, policy="share"),
    "relevance x novelty": Row(sentence=True, policy="documented", wordings=WORDING_NAMES),
    "relevance + novelty": Row(sentence=True, policy="released", wordings=WORDING_NAMES),
    "breadth-first": Row(policy="breadth-first"),
}
_WITHOUT_TOPIC = frozenset({"share", "documented", "released", "breadth-first"})  # policies that read no topic


class Task(NamedTuple):
    """A crawl to do."""

    subject: str
    seed: int
    row: str
    wording: str  # "" where no sentence is given
    variant: str  # of the class for sentences
    budget: int  # pages


@dataclass(kw_only=True)
class Run:
    """A crawl that was done."""

    subject: str
    seed: int
    row: str
    wording: str
    variant: str
    budget: int
    fetched: int
    rates: dict[str, float]  # by the number of fetches
    seconds: float
    share: float  # of the web's articles that are on the topic
    #: ``precision``, ``recall`` at one half, ``pages`` and ``titles`` (areas under the curve), and ``frequency`` as
    #: estimated; empty if the crawl has no topic.
    judgement: dict[str, float]
    alarm: str = ""

    @property
    def task(self) -> Task:
        """The task that this run did."""
        return Task(self.subject, self.seed, self.row, self.wording, self.variant, self.budget)


class KnownEmbedding:
    """An embedding that computes the vector of each text once, and can keep them in a file.

    Parameters
    ----------
    embedding
        The embedding to ask.
    """

    def __init__(self, embedding: Embedding) -> None:
        self.embedding = embedding
        self.digest = embedding.digest
        self._known: dict[bytes, NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vector of each text, shape (n, d)."""
        keys = [sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        if new:
            self._known.update(zip(new, self.embedding.embed([*new.values()]), strict=True))
        return np.array([self._known[key] for key in keys]) if keys else self.embedding.embed([])

    def store(self, path: Path) -> None:
        """Write all vectors to a file."""
        keys = np.frombuffer(b"".join(self._known), np.uint8).reshape(-1, 32)
        np.savez(path, digest=self.digest, keys=keys, vectors=np.array([*self._known.values()]))

    def load(self, path: Path) -> None:
        """Read the vectors in a file, if there is one and they are of this embedding."""
        if not path.exists():
            return
        with np.load(path) as found:
            if str(found["digest"]) == self.digest:
                keys = found["keys"].astype(np.uint8)
                self._known.update(zip((key.tobytes() for key in keys), found["vectors"], strict=True))

    def __len__(self) -> int:
        return len(self._known)


@lru_cache(maxsize=1)
def embedding_of(source: str) -> KnownEmbedding:
    """Return the embedding of a source, shared by all crawls of a process."""
    return KnownEmbedding(load_embedding(source))


@lru_cache(maxsize=1)
def page_texts(path: Path) -> list[str]:
    """Return what a goal reads of each article."""
    topic = wikispeedia.Topic(wikispeedia.read_web(path), NINE[0], 0)
    return [" ".join(html_blocks(topic.page(i).text)) for i in range(len(topic.web.names))]


@lru_cache(maxsize=1)
def link_texts(path: Path) -> list[str]:
    """Return what a policy reads of a link to each article."""
    topic = wikispeedia.Topic(wikispeedia.read_web(path), NINE[0], 0)
    links = [topic.link(i, 1) for i in range(len(topic.web.names))]
    return [" ".join(words_of(link.anchor) + url_words(link.url)) for link in links]


def prepare(path: Path, source: str, file: Path) -> None:
    """Have the vectors of all articles and links at hand; they come from a file, or are written to it."""
    embedding = embedding_of(source)
    embedding.load(file)
    known = len(embedding)
    embedding.embed([*page_texts(path), *link_texts(path), *wikispeedia.read_web(path).titles])
    if len(embedding) > known:
        embedding.store(file)


def examples_of(topic: wikispeedia.Topic, n: int, seed: int) -> Given:
    """Draw so many articles of the subject from the sample, and so many others; all if there are fewer."""
    rng = np.random.default_rng([6, seed])
    drawn = []
    for kind in (True, False):
        those = rng.permutation(topic.sample[topic.labels[topic.sample] == kind])[:n]
        drawn.append([f"{topic.web.titles[i]}\n{topic.web.texts[i]}" for i in those])
    return Given(*drawn)


def loaded(path: str) -> Any:
    """Return what an import path names."""
    module, _, name = path.rpartition(".")
    return getattr(__import__(module, fromlist=[name]), name)


def relevance_of(row: Row, sentence: str, topic: wikispeedia.Topic, task: Task, options: argparse.Namespace) -> Any:
    """Return a new model of the topic from what a row is given; ``None`` if its policy reads none."""
    if row.policy in _WITHOUT_TOPIC:
        return None
    if row.trained:
        return topic.classifier("linear")
    given = examples_of(topic, row.examples, task.seed)
    keywords = WORDINGS[task.subject].keywords if row.keywords else ()
    examples = len(given.positives) + len(given.negatives)
    others = made_of(given, keywords, None) if examples or keywords else None
    if not row.sentence:
        return others
    return loaded(options.topic)(sentence, others=others, examples=examples, embedding=embedding_of(options.embedding))


def policy_of(row: Row, sentence: str, topic: wikispeedia.Topic, task: Task, relevance: Any) -> Policy:
    """Return the policy of a row."""
    keywords = WORDINGS[task.subject].keywords
    match row.policy:
        case "share":
            return QueryShare(keywords if row.keywords else query_words(sentence))
        case "documented" | "released":
            return CoverageOrder(sentence, formula=row.policy)
        case "breadth-first":
            return BreadthFirst()
    words = topic.keywords if row.trained else [*keywords] if row.keywords else []
    return (BestFirst if row.policy == "best-first" else TreeQ)(keywords=words, relevance=relevance)


def judged(topic: wikispeedia.Topic, relevance: mission.Topic, path: Path) -> dict[str, float]:
    """Return how right a model is about all articles of the web, see ``Run.judgement``."""
    there = np.flatnonzero(topic.there)
    labels = topic.labels[there]
    pages = relevance.score([page_texts(path)[i] for i in there])
    titles = relevance.score([link_texts(path)[i] for i in there])
    said = pages >= 0.5
    right = float((said & labels).sum())
    frequency = getattr(relevance, "frequency", None)
    return {
        "precision": right / max(float(said.sum()), 1),
        "recall": right / max(float(labels.sum()), 1),
        "pages": float(roc_auc_score(labels, pages)),
        "titles": float(roc_auc_score(labels, titles)),
    } | ({} if frequency is None else {"frequency": float(frequency)})


@lru_cache(maxsize=2)
def _topic(path: Path, subject: str, seed: int) -> wikispeedia.Topic:
    return wikispeedia.Topic(wikispeedia.read_web(path), subject, seed)


def do(task: Task, options: argparse.Namespace) -> Run:
    """Do one crawl, from scratch."""
    row, topic = ROWS[task.row], _topic(options.path, task.subject, task.seed)
    sentence = getattr(WORDINGS[task.subject], task.wording) if task.wording else ""
    relevance = relevance_of(row, sentence, topic, task, options)
    goal: Goal = wikispeedia.Labels(topic.labels) if row.labels or relevance is None else TopicGoal(relevance)
    policy = policy_of(row, sentence, topic, task, relevance)
    began = time.perf_counter()
    came = wikispeedia.run(topic, policy, goal, seed=task.seed, budget=task.budget, in_flight=1)
    seconds = time.perf_counter() - began
    hits = np.append(0, np.cumsum(topic.labels[came]))
    return Run(
        **task._asdict(), fetched=len(came), seconds=round(seconds, 2), share=float(topic.labels[topic.there].mean()),
        rates={str(n): float(hits[min(n, len(came))]) / n for n in POINTS if n <= task.budget},
        judgement={} if relevance is None else judged(topic, relevance, options.path),
        alarm=getattr(relevance, "alarm", ""),
    )  # fmt: skip


def read(path: Path) -> list[Run]:
    """Return the runs in a file; none if there is no file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [Run(**json.loads(line)) for line in lines]


def tasks_of(options: argparse.Namespace, subjects: Sequence[str]) -> Iterator[Task]:
    """Yield the crawls that were asked for, seed by seed, so that an early end has whole seeds."""
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for seed, name, subject in product(seeds, options.rows, subjects):
        row = ROWS[name]
        for wording in (options.wordings or row.wordings) if row.sentence else ("",):
            with_topic = row.sentence and row.policy not in _WITHOUT_TOPIC
            yield Task(subject, seed, name, wording, options.variant if with_topic else "", options.budget)


def crawl(options: argparse.Namespace) -> None:
    """Do all crawls that were asked for and are not in the output."""
    web = wikispeedia.read_web(options.path)
    sets = {"large": [*web.large()], "new": [*wikispeedia.NEW], "nine": [*NINE], "all": [*WORDINGS]}
    names = {name_of(subject): [subject] for subject in WORDINGS}
    known = sets | names
    if unknown := [name for name in options.subjects if name not in known]:
        raise SystemExit(f"there are no wordings for {unknown[0]}; there are {', '.join(known)}")
    subjects = list(dict.fromkeys(subject for name in options.subjects for subject in known[name]))
    done = {run.task for run in read(options.output)}
    tasks = [task for task in tasks_of(options, subjects) if task not in done]
    print(f"{len(tasks)} crawls to do", file=sys.stderr, flush=True)
    if any(ROWS[task.row].sentence and ROWS[task.row].policy not in _WITHOUT_TOPIC for task in tasks):
        loaded(options.topic)  # so that a mistake shows at once
        prepare(options.path, options.embedding, options.output.with_suffix(".vectors.npz"))
    failed = 0
    with ProcessPoolExecutor(options.jobs) as pool, options.output.open("a", encoding="utf-8") as output:
        futures = {pool.submit(do, task, options): task for task in tasks}
        for future in as_completed(futures):
            if error := future.exception():
                failed += 1
                print(*futures[future], "failed:", *traceback.format_exception(error), file=sys.stderr, flush=True)
                continue
            run = future.result()
            print(json.dumps(asdict(run)), file=output, flush=True)
            print(*run.task, run.rates, f"{run.seconds} s", file=sys.stderr, flush=True)
    if failed:
        print(f"{failed} of {len(tasks)} crawls failed; the same command tries them again", file=sys.stderr)


class Tables:
    """The tables of runs, in Markdown.

    A mean over subjects is over the seeds for which a row has all of them. A row of a sentence has three wordings, or
    as many as were crawled: first their mean, then each.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        rows = [*ROWS]
        self.labels = list(
            dict.fromkeys(
                (run.row, run.variant) for run in sorted(runs, key=lambda run: (rows.index(run.row), run.variant))
            )
        )
        self.subjects = [subject for subject in WORDINGS if any(run.subject == subject for run in runs)]
        self._rates: dict[tuple[str, str, str, str, int], dict[int, float]] = {}
        for run in runs:
            for n, rate in run.rates.items():
                key = (run.subject, run.row, run.variant, run.wording, int(n))
                self._rates.setdefault(key, {})[run.seed] = rate

    def report(self) -> str:
        """Return all tables."""
        if not self.runs:
            return "No runs yet."
        seeds = sorted({run.seed for run in self.runs})
        lines = [f"Seeds: {', '.join(map(str, seeds))}.", ""]
        for name, subjects in (("the nine", NINE), ("all thirteen", tuple(WORDINGS))):
            if set(subjects) <= {*self.subjects}:
                lines += [f"### Mean over {name}", "", *self.means(subjects)]
        lines += ["### Wordings, at 500", "", *self.wordings(500)]
        lines += ["### Subjects, at 200", "", *self.by_subject(200)]
        lines += ["### Judgement at one half, without examples", "", *self.judgements()]
        return "\n".join(lines)

    def over(self, subjects: Sequence[str], row: str, variant: str, wordings: Sequence[str], n: int) -> list[float]:
        """Return the mean over subjects and wordings for each seed that has all of them."""
        cells = [self._rates.get((s, row, variant, wording, n), {}) for s in subjects for wording in wordings]
        seeds = sorted(set.intersection(*(set(cell) for cell in cells))) if cells else []
        return [float(np.mean([cell[seed] for cell in cells])) for seed in seeds]

    def wordings_of(self, row: str, variant: str) -> list[str]:
        """Return the wordings with which a row was crawled, ``""`` for one without a sentence."""
        there = {run.wording for run in self.runs if (run.row, run.variant) == (row, variant)}
        return [wording for wording in ("", *WORDING_NAMES) if wording in there]

    def means(self, subjects: Sequence[str]) -> list[str]:
        """Return the table of the means over some subjects."""
        lines = ["| known beforehand | " + " | ".join(map(str, SHOWN)) + " | seeds |", "|---" + "|--:" * 4 + "|"]
        if subjects == NINE:
            lines.append(f"| *goal of a sentence* | {' | '.join(f'*{goal:.3f}*' for goal in GOALS)} | |")
        for row, variant in self.labels:
            wordings = self.wordings_of(row, variant)
            label = f"{row} {variant}".strip()
            groups = [(label if len(wordings) > 1 or not wordings[0] else f"{label} ({wordings[0]})", wordings)]
            groups += [(f"{label}, {wording}", [wording]) for wording in wordings] if len(wordings) > 1 else []
            for name, group in groups:
                found = [self.over(subjects, row, variant, group, n) for n in SHOWN]
                if any(found):
                    cells = [f"{np.mean(values):.3f}" if values else "" for values in found]
                    lines.append(f"| {name} | {' | '.join(cells)} | {len(found[0])} |")
        return [*lines, ""]

    def wordings(self, n: int) -> list[str]:
        """Return the table of the wordings of each subject, for rows with all of them."""
        lines: list[str] = []
        for row, variant in self.labels:
            if row != "sentence":
                continue
            lines += [
                f"| {f'{row} {variant}'.strip()} | word | plain | rich | poorest / richest |",
                "|---|--:|--:|--:|--:|",
            ]
            for subject in self.subjects:
                rates = [self.over([subject], row, variant, [wording], n) for wording in WORDING_NAMES]
                if all(rates):
                    values = [float(np.mean(each)) for each in rates]
                    cells = " | ".join(f"{value:.3f}" for value in values)
                    lines.append(f"| {name_of(subject)} | {cells} | {min(values) / max(*values, 1e-9):.2f} |")
            lines.append("")
        return lines

    def by_subject(self, n: int) -> list[str]:
        """Return the table of each row by subject."""
        lines = [f"| | {' | '.join(map(name_of, self.subjects))} |", "|---" + "|--:" * len(self.subjects) + "|"]
        for row, variant in self.labels:
            wordings = self.wordings_of(row, variant)
            found = [self.over([subject], row, variant, wordings, n) for subject in self.subjects]
            cells = " | ".join(f"{np.mean(values):.3f}" if values else "" for values in found)
            lines.append(f"| {f'{row} {variant}'.strip()} | {cells} |")
        return [*lines, ""]

    def judgements(self) -> list[str]:
        """Return the table of the judgement of a sentence alone, after its crawl, and its mean for rare topics."""
        names = ("precision", "recall", "pages", "titles", "frequency")
        head = (
            "| | share | "
            + " | ".join(("precision", "recall", "AUC pages", "AUC titles", "estimated in the crawl"))
            + " |"
        )
        lines: list[str] = []
        for row, variant in self.labels:
            runs = [run for run in self.runs if (run.row, run.variant) == (row, variant)]
            if row != "sentence":
                continue
            lines += [head.replace("| |", f"| {f'{row} {variant}'.strip()} |", 1), "|---" + "|--:" * 6 + "|"]
            groups = [
                (f"{name_of(subject)}, {wording}", [r for r in runs if r.subject == subject and r.wording == wording])
                for subject, wording in product(self.subjects, WORDING_NAMES)
            ]
            rare = [run for run in runs if _RARE[0] <= run.share <= _RARE[1]]
            groups += [("mean of topics of about 3 %", rare), ("mean of all", runs)]
            for name, group in groups:
                if group:
                    values = [np.mean([run.judgement.get(each, np.nan) for run in group]) for each in names]
                    cells = " | ".join("" if np.isnan(value) else f"{value:.3f}" for value in values)
                    lines.append(f"| {name} | {np.mean([run.share for run in group]):.3f} | {cells} |")
            lines.append("")
        return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    crawls = commands.add_parser("crawl", help="do the crawls that are not in the output")
    crawls.add_argument("path", type=Path, help="folder with the unpacked data of Wikispeedia, or the archive")
    crawls.add_argument("--subjects", nargs="+", default=["all"], help="all, nine, large, new, or names like Religion")
    crawls.add_argument("--rows", nargs="+", choices=ROWS, default=[*ROWS], metavar="ROW", help=", ".join(ROWS))
    crawls.add_argument("--wordings", nargs="+", choices=WORDING_NAMES, help="of sentences (those of the row)")
    crawls.add_argument("--seeds", type=int, default=2)
    crawls.add_argument("--first-seed", type=int, default=300)
    crawls.add_argument("--budget", type=int, default=500, help="pages of each crawl (500)")
    crawls.add_argument("--jobs", type=int, default=1)
    crawls.add_argument("--embedding", default="", help="the table of token vectors (the default one)")
    crawls.add_argument("--topic", default=ABOUT, help=f"class for sentences ({ABOUT})")
    crawls.add_argument("--variant", default="", help="name of this class in tables")
    tables = commands.add_parser("tables", help="print the tables of the output")
    for command in (crawls, tables):
        command.add_argument("--output", type=Path, default=Path("about.jsonl"))
    options = parser.parse_args(arguments)
    if options.command == "crawl":
        crawl(options)
    print(Tables(read(options.output)).report())


if __name__ == "__main__":
    main()
