"""Crawls by topic over a synthetic web of many hosts: harvest rate against the number of hosts found, at each cap.

Measured: of policies, topics and seeds, at several caps of pages per domain, after 200 to 20,000 fetches: the harvest
rate (pages about the topic among all requests: failures and redirects count as fetches), and the hosts and domains
with such pages. The topic of a page is known from the generator. The policies are rewarded by a classifier, which was
trained on pages of other hosts, and errs. Also the CPU time of a step, in the policy and the frontier, without making
the page and without the classifier. Not measured: the real web, of which this is only a model, and any network. ::

    python benchmarks/hosts.py --policies breadth-first best-first tree --caps none 10 --runs 5 --jobs 2
    python benchmarks/hosts.py --policies tree asynchronous --caps none 100 10 5 5-2 --web-seeds 1 7
    python benchmarks/hosts.py --tables-only                       # of what was measured so far

Writes each run to ``hosts.json`` (``--output``) as soon as it is over, and does not repeat those that are in it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
import traceback
from collections import Counter
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from hosts_tables import CAPS, Marks, Run, read, rivals, tables
from manyhosts.flying import steps
from manyhosts.web import MadeUpWeb
from runfiles import write
from scrapy_focus.core.budget import Budget
from scrapy_focus.core.crawl import Crawl
from scrapy_focus.frontiers.memory import memory_frontier
from scrapy_focus.policies.domains import Domains
from scrapy_focus.policies.orderings import BreadthFirst, Random
from scrapy_focus.topic.relevance import LinearRelevance
from scrapy_focus.web.domains import domain_of
from wikispeedia import Cosine

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from scrapy_focus.core.mission import Topic
    from scrapy_focus.core.policy import Policy
    from scrapy_focus.core.types import Outcome, Pick

MARKS = (200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)  # fetches after which is counted
Task = tuple[str, str, str, int, int, int]  # policy, topic, cap, seed, in flight, seed of the web
N_SEEDS, N_EXAMPLES = 10, 600  # pages to start from, examples of each class


class Capped:
    """Limits an ordering to a cap of pages per domain."""

    def __init__(self, **cap: Any) -> None:
        super().__init__()
        self.domains = Domains(
            cap.get("per_domain"), least=cap.get("per_domain_least"), falls_every=cap.get("falls_every", 6_666)
        )

    def select(self: Any, busy: Collection[str]) -> Pick | None:
        pick: Pick | None = self.domains.pop(self.frontier, 0, busy)
        if pick is not None:
            self.domains.ask(self.domains.row(pick.host))
        return pick

    def release(self, pick: Pick) -> None:
        self.domains.release(self.domains.row(pick.host))

    def learn(self, outcome: Outcome) -> None:
        self.domains.settle(self.domains.row(outcome.pick.host), outcome)


class CappedBreadthFirst(Capped, BreadthFirst):
    """Breadth-first, at most so many pages of a domain."""


class CappedRandom(Capped, Random):
    """At random, at most so many pages of a domain."""


def _tree(**parameters: Any) -> Policy:
    from scrapy_focus.policies.treeq.policy import TreeQ

    return TreeQ(**parameters)


def _best_first(**parameters: Any) -> Policy:
    from scrapy_focus.policies.bestfirst import BestFirst

    return BestFirst(**parameters)


def _online(**parameters: Any) -> Policy:
    from scrapy_focus.policies.linkclassifier.policy import OnlineLinkClassifier

    return OnlineLinkClassifier(**parameters)


def _blind(policy: Callable[..., Policy], *, keywords: Any, relevance: Any, **cap: Any) -> Policy:
    return policy(**cap)


#: What makes each policy; called with keywords, relevance, per_domain, per_domain_least, falls_every.
POLICIES: dict[str, Callable[..., Policy]] = {
    "breadth-first": partial(_blind, CappedBreadthFirst),
    "random": partial(_blind, CappedRandom),
    "best-first": _best_first,
    "ACHE-like": _online,
    "ACHE-like, bipartite": partial(_online, mode="bipartite"),
    "ACHE-like, from the topic": partial(_online, begin="topic"),
    "tree": _tree,
    "tree, no link model": partial(_tree, rules={"link_model": False}),
    "fixed formula": partial(_tree, rules={"train_every": 0, "words": False}),
    "tree, no words": partial(_tree, rules={"words": False}),
    "tres-2023": partial(_tree, preset="tres-2023"),
    "tree-random": partial(_tree, mode="tree-random", preset="tres-2023"),
    "asynchronous": partial(_tree, mode="asynchronous", preset="tres-2023"),
    "asynchronous, own features": partial(_tree, mode="asynchronous", preset="tres-2023", rules={"hosts": False}),
    "tres-2023, anchors alone": partial(_tree, preset="tres-2023", rules={"url_words": False}),
    "tree, anchors alone": partial(_tree, rules={"url_words": False}),
    "tres-2023, gamma 0.3": partial(_tree, preset="tres-2023", rules={"gamma": 0.3}),
    "tres-2023, synchronous": partial(_tree, mode="synchronous", preset="tres-2023"),
    "tres-2023, no seeds": partial(_tree, preset="tres-2023", rules={"seeds_are_experience": False}),
    "tres-2023, no hosts": partial(_tree, preset="tres-2023", rules={"hosts": False}),
    "tres-2023, SVM": partial(_tree, preset="tres-2023"),
    "tree, SVM": _tree,
    "synchronous": partial(_tree, mode="synchronous"),
    "tree, at random": partial(_tree, mode="random"),
    "tree, no hosts": partial(_tree, rules={"hosts": False}),
    "tree, no in-links": partial(_tree, rules={"in_links": False}),
    "tree, variance splits": partial(_tree, rules={"split": "variance", "min_samples": 5, "min_child": 1}),
    "tree, gamma 0.99": partial(_tree, rules={"gamma": 0.99}),
    "tree, gamma 0": partial(_tree, rules={"gamma": 0.0}),
    "tree, one each": partial(_tree, rules={"representatives": 1}),
    "tree, random warm-up": partial(_tree, rules={"warmup": 100, "prior": False}),
}

#: What judges the links of a policy, if that is not the linear model: a support vector machine, which then rewards
#: pages, too; or the cosine of their texts, without keywords.
CLASSIFIERS = {"tres-2023, SVM": "svm", "tree, SVM": "svm", "asynchronous, own features": "cosine"}

#: The policies that the first one should beat, in harvest rate and in relevant domains.
RIVALS = (
    "tree, no link model",
    "fixed formula",
    "best-first",
    "ACHE-like",
    "ACHE-like, from the topic",
    "asynchronous",
)


class Judge:
    """A goal: a page is worth 1 if a classifier finds it relevant. Measures the time that this takes."""

    def __init__(self, relevance: Topic, threshold: float = 0.5) -> None:
        self.relevance = relevance
        self.threshold = threshold
        self.seconds = 0.0  # of CPU

    def __call__(self, outcome: Outcome) -> float:
        """Return 1 for a page that is relevant, else 0."""
        if not outcome.is_html or outcome.page is None:
            return 0.0
        start = time.thread_time()
        score = self.relevance.score([outcome.page.text])[0]
        self.seconds += time.thread_time() - start
        return float(score >= self.threshold)


def crawl(
    policy: Policy,
    goal: Judge,
    web: MadeUpWeb,
    topic: str,
    seeds: Sequence[str],
    budget: int,
    seed: int,
    in_flight: int = 1,
) -> Run:
    """Crawl a web for a topic, at most one request at a time on a host, and return what was found when."""
    run = Run(policy="", topic=topic, cap="", seed=seed, in_flight=in_flight, web=web.seed)
    loop = Crawl(policy, frontier=memory_frontier, goal=goal, budget=Budget(requests=budget), seed=seed, strict=True)
    loop.add([web.link(url) for url in seeds])
    hosts: set[str] = set()
    domains: set[str] = set()
    seen: set[str] = set()
    failures: Counter[str] = Counter()
    spent, worst, fetches, before = 0.0, 0.0, 0, (0, 0.0)
    marks = [mark for mark in MARKS if mark < budget] + [budget]
    started = time.perf_counter()
    for step in steps(loop, web, in_flight, lambda: goal.seconds):
        outcome, page = step.outcome, step.page
        spent, worst = spent + step.seconds, max(worst, step.longest)
        fetches += step.requests
        if outcome.status is not None:
            seen.add(page.host)
        if outcome.error:
            failures[outcome.error] += 1
        if outcome.is_html:
            run.rewarded += step.reward > 0
            if topic in page.topics:
                run.relevant += 1
                run.right += step.reward > 0
                hosts.add(page.host)
                domains.add(domain_of(page.host))
        while marks and fetches >= marks[0]:
            tree = getattr(policy, "tree", None)
            run.marks.append(
                Marks(
                    fetches=marks.pop(0), harvest=run.relevant / fetches, hosts=len(hosts), domains=len(domains),
                    seen_hosts=len(seen), waiting=len(loop.frontier), leaves=getattr(tree, "n_leaves", 0),
                    step_ms=1e3 * (spent - before[1]) / max(fetches - before[0], 1), worst_ms=1e3 * worst,
                )
            )  # fmt: skip
            before, worst = (fetches, spent), 0.0
    run.ended = loop.finished() or "nothing waits"
    run.failures, run.kinds = dict(sorted(failures.items())), dict(sorted(loop.counts.items()))
    run.seconds = time.perf_counter() - started
    return run


@lru_cache(maxsize=2)
def open_web(seed: int, hosts: int) -> MadeUpWeb:
    """Return a web; once for each process."""
    return MadeUpWeb(seed=seed, hosts=hosts)


@lru_cache(maxsize=16)
def train(web: MadeUpWeb, topic: str, kind: str = "linear") -> Topic:
    """Return a classifier for a topic, trained on pages of hosts that no crawl finds."""
    positive, negative = web.examples(topic, N_EXAMPLES, np.random.default_rng(web.seed))
    labels = [True] * len(positive) + [False] * len(negative)
    if kind == "cosine":
        return Cosine(positive + negative, labels)
    return LinearRelevance(svm=kind == "svm").fit(positive + negative, labels)


def cap_parameters(cap: str, budget: int) -> dict[str, Any]:
    """Return the parameters of a policy that keep it to a cap."""
    if cap == "none":
        return {}
    most, _, least = cap.partition("-")
    falling = {"per_domain_least": int(least), "falls_every": max(1, budget // 3)} if least else {}
    return {"per_domain": int(most), **falling}


def do(task: Task, *, budget: int, n_hosts: int) -> Run:
    """Do one run, from scratch."""
    name, topic, cap, seed, in_flight, web_seed = task
    web = open_web(web_seed, n_hosts)
    kind = CLASSIFIERS.get(name, "linear")
    keywords = [] if kind == "cosine" else web.keywords(topic)
    policy = POLICIES[name](keywords=keywords, relevance=train(web, topic, kind), **cap_parameters(cap, budget))
    relevance = train(web, topic, "linear" if kind == "cosine" else kind)
    seeds = web.seeds(topic, N_SEEDS, np.random.default_rng(1_000 + seed))
    run = crawl(policy, Judge(relevance), web, topic, seeds, budget, seed, in_flight)
    run.policy, run.cap = name, cap
    return run


def _try(task: Task, **parameters: int) -> tuple[Task, Run | None, str]:
    try:
        return task, do(task, **parameters), ""
    except Exception:  # of a policy: the other runs continue
        return task, None, traceback.format_exc()


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description="Crawls by topic over a made-up web of many hosts.")
    parser.add_argument(
        "--policies", nargs="+", choices=[*POLICIES], default=["breadth-first", "random", "best-first", "tree"]
    )
    parser.add_argument("--topics", nargs="+", default=["beekeeping", "astronomy"])
    parser.add_argument("--caps", nargs="+", choices=CAPS, default=["none"])
    parser.add_argument("--runs", type=int, default=5, help="seeds of each (5)")
    parser.add_argument("--budget", type=int, default=20_000, help="fetches, failures too (20000)")
    parser.add_argument("--in-flight", type=int, nargs="+", default=[1])
    parser.add_argument("--web-seeds", type=int, nargs="+", default=[1], help="of the webs (1)")
    parser.add_argument("--hosts", type=int, default=150_000, help="of the web (150000)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--output", type=Path, default=Path("hosts.json"))
    parser.add_argument("--first", choices=[*POLICIES], default="tree", help="what is compared with its rivals (tree)")
    parser.add_argument("--tables-only", action="store_true", help="print the tables of the runs in the output")
    options = parser.parse_args(arguments)
    parameters = {"budget": options.budget, "n_hosts": options.hosts}
    runs = read(options.output)
    if not options.tables_only:
        if runs and json.loads(options.output.read_text(encoding="utf-8"))["parameters"] != parameters:
            parser.error(f"{options.output} has runs with another budget or number of hosts; give another --output")
        done = {run.key for run in runs}
        wanted = product(
            range(options.runs), options.web_seeds, options.caps, options.topics, options.policies, options.in_flight
        )
        tasks = [(name, topic, cap, seed, k, web) for seed, web, cap, topic, name, k in wanted]
        tasks = [task for task in tasks if task not in done]
        failed = 0
        with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
            for task, run, error in pool.imap_unordered(partial(_try, **parameters), tasks):
                if run is None:
                    failed += 1
                    print(*task, "failed:", error, file=sys.stderr, flush=True)
                    continue
                runs.append(run)
                write(options.output, runs, parameters)
                last = run.marks[-1] if run.marks else None
                print(*run.key, last, f"{run.seconds:.0f} s", run.ended, file=sys.stderr, flush=True)
        if failed:
            print(f"{failed} of {len(tasks)} runs failed; the same command tries them again", file=sys.stderr)
    order = [*POLICIES]
    runs.sort(key=lambda run: (order.index(run.policy) if run.policy in order else len(order), run.topic, run.seed))
    print(tables(runs))
    print(
        rivals(
            runs,
            options.first,
            [name for name in RIVALS if name != options.first and any(run.policy == name for run in runs)],
        )
    )


if __name__ == "__main__":
    main()
