"""Harvest rates of topic crawls of Wikispeedia: TRES, its baselines, and what each departure from the paper is worth.

Measured: crawls without a network of the 4,598 articles and 119,880 links of Wikispeedia; of the first 100, 200, 500 and
1,000 pages fetched after the start page, the share that people had filed under the subject, as mean and standard deviation
over the seeds. Each seed has its own start page (an article of the subject), its own 10 % of the articles to train the
classifier and to choose the keywords from, and its own random numbers; all policies share them. Articles of that sample
are not on the web that is crawled, so that no title is scored that was trained on. Rewards are the labels of people, or
what the classifier makes of the page's text (as a user has it); the judge is the label in both.

Subjects are the five of 500 articles or more ("large"), and eight of 100 to 400 that were never used for tuning
("new"); some of these are unions.

Not measured: anything about hosts (there is one), real anchors (the title replaces each) and the order of links on a
page (that of the file, alphabetical), speed. The line of an article that names its subject is removed. ::

    python benchmarks/wikispeedia.py wikispeedia.tar.xz --subjects large new --jobs 2 --output wikispeedia.json
    python benchmarks/wikispeedia.py wikispeedia.tar.xz --subjects large new --tables-only   # of what was measured so far
    python benchmarks/wikispeedia.py wikispeedia/ --ablations --rewards labels
    python benchmarks/wikispeedia.py wikispeedia/ --only TRES --policy "low tau=TreeQ:tau=4" --subjects subject.History
    python benchmarks/wikispeedia.py wikispeedia/ --subjects "Flying=subject.Science.Biology.Birds+subject.People.Astronomers_and_physicists"

Writes each run to ``wikispeedia.json`` (``--output``) as soon as it is over, and does not repeat those that are in it.
"""

from __future__ import annotations

import argparse
import html
import inspect
import json
import os
import re
import sys
import tarfile
import traceback
from collections import Counter, defaultdict, deque
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.naive_bayes import MultinomialNB

from runfiles import write
from scrapy_focus import Crawl, Link, Outcome, memory_frontier
from scrapy_focus.goals.topic import TopicGoal
from scrapy_focus.lab.compare.specs import PolicySpec
from scrapy_focus.topic.relevance import LinearRelevance
from scrapy_focus.web.words import words_of
from wikispeedia_tables import Run, Tables, name_of, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core import mission
    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.policy import Policy

POINTS = (100, 200, 500, 1000)  # fetches
Task = tuple[str, int, str, str, str, str]  # subject, seed, row, policy, classifier, rewards
REWARDS = ("labels", "classifier")  # who says during a crawl what a page is worth
LARGE = 500  # articles of a large subject, at least
#: Subjects of 100 to 400 articles that were not used for tuning: NAME=SUBJECT+SUBJECT is the union of some.
NEW = (
    "subject.Everyday_life",
    "subject.Design_and_Technology",
    "subject.Language_and_literature",
    "Space=subject.Science.Physics.Space_Astronomy+subject.Science.Physics.Space_transport",
    "Music=subject.Music+subject.People.Performers_and_composers",
    "subject.Religion",
    "Computing=subject.IT+subject.Mathematics",
    "Weather=subject.Geography.Natural_Disasters+subject.Geography.Storms+subject.Geography.Climate_and_the_Weather",
)
#: Label -> policy, and the classifier that it is given.
ROWS = {
    "TRES, recommended": ("TreeQ", "linear"),
    "without the link model": ("TreeQ:rules={'link_model': False}", "linear"),
    "fixed formula": ("TreeQ:rules={'train_every': 0, 'words': False}", "linear"),
    "TRES, published rules": ("TreeQ:preset='tres-2023'", "linear"),
    "Tree-Random": ("TreeQ:mode='tree-random',preset='tres-2023'", "linear"),
    "asynchronous": ("TreeQ:mode='asynchronous',preset='tres-2023'", "linear"),
    "asynchronous, own features": (
        "TreeQ:mode='asynchronous',preset='tres-2023',keywords=[],rules={'hosts': False}",
        "cosine",
    ),
    "best-first by classifier": ("BestFirst", "linear"),
    "ACHE-like": ("OnlineLinkClassifier", "linear"),
    "ACHE-like, bipartite": ("OnlineLinkClassifier:mode='bipartite'", "linear"),
    "ACHE-like, from the topic": ("OnlineLinkClassifier:begin='topic'", "linear"),
    "ACHE-like, bipartite, from the topic": ("OnlineLinkClassifier:begin='topic',mode='bipartite'", "linear"),
    "breadth-first": ("BFS", "linear"),
    "random": ("RANDOM", "linear"),
}
ABLATIONS = {
    "TRES, recommended": ROWS["TRES, recommended"],
    "without the link model": ROWS["without the link model"],
    "no learned words": ("TreeQ:rules={'words': False}", "linear"),
    "words and formula, no network": ("TreeQ:rules={'train_every': 0}", "linear"),
    "fixed formula": ROWS["fixed formula"],
    "exact synchronous": ("TreeQ:mode='synchronous'", "linear"),
    "naive Bayes as classifier": ("TreeQ", "naive"),
    "SVM as classifier": ("TreeQ", "svm"),
    "published rules": ROWS["TRES, published rules"],
    "published rules, SVM as classifier": ("TreeQ:preset='tres-2023'", "svm"),
    "published rules, splits by sample variance": (
        "TreeQ:preset='tres-2023',rules={'split': 'sample-variance'}",
        "linear",
    ),
    "best-first by naive Bayes": ("BestFirst", "naive"),
    "no classifier for links": ("TreeQ", "none"),
    "published splits": ("TreeQ:rules={'split': 'variance', 'min_samples': 5, 'min_child': 1}", "linear"),
    "1 representative a leaf": ("TreeQ:rules={'representatives': 1}", "linear"),
    "no in-link features": ("TreeQ:rules={'in_links': False}", "linear"),
    "gamma 0.99": ("TreeQ:rules={'gamma': 0.99}", "linear"),
    "gamma 0": ("TreeQ:rules={'gamma': 0.0}", "linear"),
    "random warm-up of 100": ("TreeQ:rules={'warmup': 100, 'prior': False}", "linear"),
    "published rules, warm-up of 100": ("TreeQ:preset='tres-2023',rules={'warmup': 100}", "linear"),
    "trained every time": ("TreeQ:rules={'train_every': 1}", "linear"),
}
_EXCERPT = 3000  # characters of an article; more made a worse classifier of titles, and ten times the time
_KEYWORDS = 60
_CATEGORY = re.compile(r"2007 Schools Wikipedia Selection\. Related subjects:.*?\n\s*\n", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """All articles: what they are called, what they say, which they link to, and what people filed them under."""

    names: list[str]  # as in URLs
    titles: list[str]
    texts: list[str]  # or their beginnings, without the line that names the subjects
    targets: list[list[int]]
    subjects: list[frozenset[str]]  # with those above: subject.Science.Biology and subject.Science

    def labels(self, subject: str) -> NDArray[np.bool_]:
        """Whether each article is filed under a subject or below, or under one of a union, shape (n_articles,).

        Raises
        ------
        SystemExit
            If no article is filed under one of them.
        """
        found = np.zeros(len(self.names), np.bool_)
        for part in subject.rpartition("=")[2].split("+"):
            of_part = np.array([part in subjects for subjects in self.subjects])
            if not of_part.any():
                raise SystemExit(f"no article is filed under {part}; write it as subject.Science.Biology")
            found |= of_part
        return found

    def large(self) -> dict[str, int]:
        """Subjects with at least ``LARGE`` articles, the largest first, and how many they have."""
        counts = Counter(subject for subjects in self.subjects for subject in subjects)
        return {name: n for name, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if n >= LARGE}


@lru_cache(maxsize=1)
def read_web(path: Path, excerpt: int | None = _EXCERPT) -> Web:
    """Read the articles from a folder, or from an archive of it; of each so many characters, or all of it.

    Raises
    ------
    SystemExit
        If articles.tsv, links.tsv, categories.tsv or the folder plaintext_articles are not in there.
    """
    tables: dict[str, list[list[str]]] = {}
    texts: dict[str, str] = {}
    for name, text in _files(path):
        if name.endswith(".tsv"):
            lines = (line for line in text.splitlines() if line and not line.startswith("#"))
            tables[name] = [line.split("\t") for line in lines]
        else:
            body = _CATEGORY.sub("", text, count=1).partition('Retrieved from "')[0].replace("#copyright", "", 1)
            texts[name.removesuffix(".txt")] = body.strip()[:excerpt]
    if missing := {"articles.tsv", "links.tsv", "categories.tsv"} - tables.keys():
        raise SystemExit(f"{path}: no {', '.join(sorted(missing))} in there; expected the unpacked Wikispeedia data")
    names = [row[0] for row in tables["articles.tsv"]]
    if absent := [name for name in names if name not in texts]:
        raise SystemExit(f"{path}: plaintext_articles has no text of {len(absent)} articles, the first is {absent[0]}")
    number = {name: i for i, name in enumerate(names)}
    targets: list[dict[int, None]] = [{} for _ in names]
    for source, target in tables["links.tsv"]:
        targets[number[source]][number[target]] = None
    subjects: dict[str, set[str]] = defaultdict(set)
    for name, category in tables["categories.tsv"]:
        parts = category.split(".")
        subjects[name].update(".".join(parts[:i]) for i in range(2, len(parts) + 1))
    return Web(
        names=names,
        titles=[unquote(name).replace("_", " ") for name in names],
        texts=[texts[name] for name in names],
        targets=[list(found) for found in targets],
        subjects=[frozenset(subjects[name]) for name in names],
    )


def _files(path: Path) -> Iterator[tuple[str, str]]:
    if path.is_dir():
        for file in sorted([*path.rglob("*.tsv"), *path.rglob("plaintext_articles/*.txt")]):
            yield file.name, file.read_text(encoding="utf-8", errors="replace")
        return
    with tarfile.open(path) as archive:
        for member in archive:
            wanted = member.name.endswith(".tsv") or "plaintext_articles/" in member.name
            if wanted and (stream := archive.extractfile(member)) is not None:
                yield Path(member.name).name, stream.read().decode("utf-8", "replace")


class NaiveBayes:
    """The other classifier of the ablations: word counts, hashed, and multinomial naive Bayes."""

    def __init__(self, texts: Sequence[str], labels: Sequence[bool]) -> None:
        self._words = HashingVectorizer(n_features=1 << 17, alternate_sign=False, norm=None)
        self._model = MultinomialNB(alpha=0.1).fit(self._words.transform(texts), labels)
        self.digest = f"naive Bayes of {len(texts)} texts"

    def score(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """P(relevant) of each text, shape (n,)."""
        return np.asarray(self._model.predict_proba(self._words.transform(texts))[:, 1], np.float64)


class Cosine:
    """What judges links without a classifier: the cosine of their words and those of the pages on the topic, TF-IDF."""

    def __init__(self, texts: Sequence[str], labels: Sequence[bool]) -> None:
        self._words = TfidfVectorizer(sublinear_tf=True, analyzer=words_of).fit(texts)
        on_topic = [text for text, label in zip(texts, labels, strict=True) if label]
        mean = np.asarray(self._words.transform(on_topic).mean(axis=0)).ravel()
        self._topic = mean / np.linalg.norm(mean)
        self.digest = f"cosine to {len(on_topic)} texts"

    def score(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Cosine of each text, shape (n,)."""
        return np.asarray(self._words.transform(texts) @ self._topic, np.float64)


#: Name -> what is trained on texts and labels.
CLASSIFIERS: dict[str, Callable[[Sequence[str], Sequence[bool]], Any]] = {
    "linear": lambda texts, labels: LinearRelevance().fit(texts, labels),
    "svm": lambda texts, labels: LinearRelevance(svm=True).fit(texts, labels),
    "naive": NaiveBayes,
    "cosine": Cosine,
}


class Page(NamedTuple):
    """An article as the web server sends it."""

    url: str
    text: str
    status: int = 200
    headers: Mapping[str, str] = {"Content-Type": "text/html; charset=utf-8"}
    kind: str = ""  # as the header says it


class Topic:
    """A subject under one seed: the sample that is known beforehand, what is learned from it, and the rest to crawl.

    Parameters
    ----------
    web, subject, seed
        See above.
    starts
        How many articles of the subject a crawl starts with.
    counted
        Leave the articles of the sample on the web, and count them.
    """

    def __init__(self, web: Web, subject: str, seed: int, *, starts: int = 1, counted: bool = False) -> None:
        self.web = web
        self.labels = web.labels(subject)
        rng = np.random.default_rng([5, seed])
        self.sample = rng.permutation(len(web.names))[: len(web.names) // 10]
        self.there = np.ones(len(web.names), np.bool_)
        self.there[self.sample] = counted
        self.starts = rng.choice(np.flatnonzero(self.labels & self.there), starts, replace=False).tolist()
        self._classifiers: dict[str, mission.Topic | None] = {"none": None}

    def classifier(self, name: str) -> mission.Topic | None:
        """What ``ROWS`` names, trained on the titles and texts of the sample; each is trained once."""
        if name not in self._classifiers:
            texts = [f"{self.web.titles[i]}\n{self.web.texts[i]}" for i in self.sample]
            labels = self.labels[self.sample].tolist()
            self._classifiers[name] = Remembered(CLASSIFIERS[name](texts, labels))
        return self._classifiers[name]

    @cached_property
    def keywords(self) -> list[str]:
        """The words that most set the sample's articles of the subject apart from its others."""
        of_all: Counter[str] = Counter()
        of_topic: Counter[str] = Counter()
        for i in self.sample:
            words = set(re.findall("[a-z]{4,}", self.web.texts[i].lower()))
            of_all.update(words)
            if self.labels[i]:
                of_topic.update(words)
        frequent = [word for word, n in of_topic.items() if n >= 4]
        return sorted(frequent, key=lambda word: (-of_topic[word] / (of_all[word] + 5), word))[:_KEYWORDS]

    def goal(self, rewards: str, classifier: str) -> Goal:
        """Who says what a page is worth: the labels, or a classifier. Where links are read by none, the linear one."""
        if rewards == "labels":
            return Labels(self.labels)
        model = self.classifier("linear" if classifier in ("none", "cosine") else classifier)
        assert model is not None
        return TopicGoal(model)

    def policy(self, text: str, classifier: str, goal: Goal) -> Policy:
        """A new policy, with the keywords if it takes them, and with the model of the goal, if any."""
        spec = PolicySpec.parse(text)
        takes = inspect.signature(cls := spec.load()).parameters
        relevance = self.classifier(classifier)
        if relevance is not None and classifier != "cosine":
            relevance = getattr(goal, "relevance", relevance)
        given = {"keywords": self.keywords, "relevance": relevance}
        return cls(**{**{name: value for name, value in given.items() if name in takes}, **spec.params})

    def link(self, number: int, depth: int) -> Link:
        """A link to an article, as it is found on another one."""
        url = f"http://wikispeedia.example/wiki/{self.web.names[number]}"
        path = "html/body/main/p/a" if depth else ""
        return Link(url, number, "wikispeedia.example", depth, self.web.titles[number] if depth else "", path)

    def links(self, number: int, depth: int) -> list[Link]:
        """All links of an article to existing ones; ``Crawl`` drops known ones for policies that do not want them."""
        return [self.link(target, depth) for target in self.web.targets[number] if self.there[target]]

    def page(self, number: int) -> Page:
        """An article as a page."""
        title, text = html.escape(self.web.titles[number]), html.escape(self.web.texts[number])
        body = f"<html><head><title>{title}</title></head><body><h1>{title}</h1><p>{text}</p></body></html>"
        return Page(f"http://wikispeedia.example/wiki/{self.web.names[number]}", body)

    @cached_property
    def quality(self) -> dict[str, float]:
        """Precision and recall of the linear classifier's rewards, by the labels, on at most 500 articles not in the sample."""
        others = np.setdiff1d(np.arange(len(self.labels)), self.sample)
        others = np.random.default_rng(0).choice(others, min(500, len(others)), replace=False)
        linear = self.classifier("linear")
        assert linear is not None
        said = linear.score([f"{self.web.titles[i]}\n{self.web.texts[i]}" for i in others]) >= 0.5
        right = float((said & self.labels[others]).sum())
        return {"precision": right / max(said.sum(), 1), "recall": right / max(self.labels[others].sum(), 1)}


class Labels:
    """A goal: 1 for pages that people filed under the subject."""

    heads_tell = False

    def __init__(self, labels: NDArray[np.bool_]) -> None:
        self.labels = labels

    def __call__(self, outcome: Outcome) -> float:
        return float(self.labels[outcome.pick.key])


class Remembered:
    """A model that is asked once for each text, whichever crawl it comes from."""

    def __init__(self, model: mission.Topic) -> None:
        self.model = model
        self.digest = model.digest
        self._known: dict[str, float] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def score(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """P(relevant) of each text, shape (n,)."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self.model.score(new).tolist(), strict=True))
        return np.array([self._known[text] for text in texts], np.float64)


def run(topic: Topic, policy: Policy, goal: Goal, *, seed: int, budget: int, in_flight: int) -> list[int]:
    """Crawl, and return the articles in the order of arrival, without the given ones."""
    crawl = Crawl(policy, frontier=memory_frontier, goal=goal, seed=seed, strict=True)
    crawl.add([topic.link(number, 0) for number in topic.starts])
    flying: deque[Any] = deque()
    came: list[int] = []
    while len(came) < budget + len(topic.starts):
        while len(flying) < in_flight and (pick := crawl.next()) is not None:
            flying.append(pick)
            crawl.sent(pick.id)
        if not flying:
            break
        pick = flying.popleft()
        page = topic.page(pick.key)
        outcome = Outcome(pick=pick, status=200, mime="text/html", size=len(page.text), page=page)
        crawl.report(outcome, topic.links(pick.key, pick.depth + 1))
        came.append(pick.key)
    crawl.close()
    return [number for number in came if number not in topic.starts]


@lru_cache(maxsize=2)
def _topic(path: Path, subject: str, seed: int, starts: int, counted: bool) -> Topic:
    return Topic(read_web(path), subject, seed, starts=starts, counted=counted)


def do(task: Task, options: argparse.Namespace) -> Run:
    """Do one run, from scratch."""
    subject, seed, label, text, classifier, rewards = task
    topic = _topic(options.path, subject, seed, options.starts, options.counted)
    goal = topic.goal(rewards, classifier)
    policy = topic.policy(text, classifier, goal)
    came = run(topic, policy, goal, seed=seed, budget=max(POINTS), in_flight=options.in_flight)
    hits = np.append(0, np.cumsum(topic.labels[came]))
    return Run(
        subject=subject, seed=seed, policy=label, spec=text, classifier=classifier, rewards=rewards, fetched=len(came),
        rates={str(n): float(hits[min(n, len(came))]) / n for n in POINTS}, **topic.quality,
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("path", type=Path, help="folder with the unpacked data, or the archive")
    parser.add_argument(
        "--subjects", nargs="+", default=["large"], help="large, new, a subject, or NAME=SUBJECT+SUBJECT (large)"
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--rewards", nargs="+", choices=REWARDS, default=[*REWARDS])
    parser.add_argument("--ablations", action="store_true", help="the recommended settings with one thing changed")
    parser.add_argument("--only", action="append", default=[], help="only rows whose label begins so")
    parser.add_argument("--policy", action="append", default=[], help="another row: LABEL=CLASS:PARAMETER=VALUE,...")
    parser.add_argument("--inflight", dest="in_flight", type=int, default=1)
    parser.add_argument("--starts", type=int, default=1, help="start pages")
    parser.add_argument("--counted", action="store_true", help="leave the training sample on the web, and count it")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("wikispeedia.json"))
    parser.add_argument(
        "--tables-only", action="store_true", help="print the tables of those of these runs that are in the output"
    )
    options = parser.parse_args(arguments)
    named = ABLATIONS if options.ablations else ROWS
    rows = {name: row for name, row in named.items() if not options.only or name.startswith(tuple(options.only))} | {
        PolicySpec.parse(text).label: (text, "linear") for text in options.policy
    }
    if not rows:
        parser.error(f"no row begins with {' or '.join(options.only)}; there are {', '.join(named)}")
    for text, _ in rows.values():
        PolicySpec.parse(text).make()  # so that a mistake shows at once
    web = read_web(options.path)
    sets = {"large": [*web.large()], "new": [*NEW]}
    subjects = list(dict.fromkeys(each for name in options.subjects for each in sets.get(name, [name])))
    counts = {name_of(subject): int(web.labels(subject).sum()) for subject in subjects}
    parameters = {"starts": options.starts, "counted": options.counted, "in_flight": options.in_flight}
    runs = read(options.output)
    if runs and json.loads(options.output.read_text(encoding="utf-8"))["parameters"] != parameters:
        parser.error(f"{options.output} has runs of other crawls than {parameters}; give another --output")
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    tasks = [
        (subject, seed, label, *row, rewards)
        for subject, seed, (label, row), rewards in product(subjects, seeds, rows.items(), options.rewards)
    ]
    if not options.tables_only:
        done, failed = {run.key for run in runs}, 0
        with ProcessPoolExecutor(options.jobs) as pool:
            futures = {pool.submit(do, task, options): task for task in tasks if task not in done}
            for future in as_completed(futures):
                if error := future.exception():
                    failed += 1
                    print(*futures[future], "failed:", *traceback.format_exception(error), file=sys.stderr, flush=True)
                    continue
                runs.append(future.result())
                write(options.output, runs, parameters)
                print(*runs[-1].key, runs[-1].rates, file=sys.stderr, flush=True)
        if failed:
            print(f"{failed} of {len(futures)} runs failed; the same command tries them again", file=sys.stderr)
    order = {task: i for i, task in enumerate(tasks)}
    print("Articles:", ", ".join(f"{name} ({n:,})" for name, n in counts.items()), end="\n\n")
    shown = sorted((run for run in runs if run.key in order), key=lambda run: order[run.key])
    print(Tables(shown, [*rows]).report())


if __name__ == "__main__":
    main()
