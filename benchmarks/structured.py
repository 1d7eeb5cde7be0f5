"""Crawls for structured data over a synthetic web: how many of the pages fetched describe something, by policy.

Measured, of policies, settings and seeds, after 1,000, 5,000 and 20,000 fetches: precision (pages with a reward among
all requests: failures and redirects count as fetches), how many of the existing entities, hosts and domains were
found, and the CPU time of policy and frontier a fetch. The contents of a page are known from the generator, and no
HTML is made: the cost of reading markup is not measured here, nor is the real web, of which this is only a model.
Each seed is another web, of 120,000 pages on 6,000 hosts, and starts from 50 pages that a user might know. ::

    python benchmarks/structured.py --policies baselines scores --jobs 2
    python benchmarks/structured.py --policies "posterior x best, 0.05" "thompson, 0.1 hyperbolic" --settings "one type"
    python benchmarks/structured.py --policies breadth-first --caps none 100 10 --in-flight 1 16
    python benchmarks/structured.py --tables-only                     # of what was measured so far
    python benchmarks/structured.py --describe                        # what there is to be found

A policy is a name of ``--list-policies``, or ``SCORE, LAMBDA`` or ``SCORE, LAMBDA DECAY`` for the bandit of hosts, with
``published`` before it for its preset, and ``bayes`` for naive Bayes as its classifier. ``oracle`` knows every page: about
what could be found at most. Writes each run to ``structured.json`` (``--output``) as soon as it is over, and does not repeat
those that are in it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from hosts import Capped
from manyhosts.flying import steps
from manyhosts.web import MadeUpWeb
from runfiles import write
from scrapy_focus.core.budget import Budget
from scrapy_focus.core.crawl import Crawl
from scrapy_focus.frontiers.memory import memory_frontier
from scrapy_focus.policies.bases import Ordering
from scrapy_focus.policies.hostbandit.parentfirst import ParentFirst
from scrapy_focus.policies.orderings import BreadthFirst, Random
from scrapy_focus.web.domains import domain_of
from structured_tables import Mark, Run, describe, read, tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scrapy_focus.core.policy import Policy
    from scrapy_focus.core.types import Link, Outcome, Placement

MARKS: Final = (1_000, 5_000, 20_000)  # fetches after which is counted
CAPS: Final = ("none", "100", "10")  # pages per domain
DECAYS: Final = ("", "hyperbolic", "exponential")
N_SEEDS, LINKS = 50, 10  # pages to start from; links a page, about
_EXAMPLES = 1_500  # at most, of each kind, of a static classifier
_OTHER_WEB = 10_000  # added to the seed of a web: the one that a static classifier is trained on
Task = tuple[str, str, str, int, int]  # policy, setting, cap, seed, in flight


class Setting(NamedTuple):
    """The goal and the web of a setting."""

    markup: str
    types: frozenset[str] = frozenset()
    least: int = 1  # facts of a page


SETTINGS: Final = {
    "2012 any": Setting("2012", least=6),  # the rule of the released plugin
    "2022 any": Setting("2022", least=6),
    "one type": Setting("2022", frozenset({"Recipe"})),
    "one type 2012": Setting("2012", frozenset({"Recipe"})),
    "2022 one fact": Setting("2022"),
}

SCORES: Final = (
    "negative bad", "best", "success rate", "thompson", "good x best", "thompson x best", "success rate x best", "good",
    "holistic", "posterior", "posterior x best", "joint", "pooled thompson", "pooled thompson x best",
)  # fmt: skip


def _host_bandit(**parameters: Any) -> Policy:
    from scrapy_focus.policies.hostbandit.policy import HostBandit

    return HostBandit(**parameters)


class _Swept(Capped):
    """Limits an ordering to a cap of pages per domain, and gives up links that can never be requested."""

    def place(self: Any, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        places: Sequence[Placement | None] = super().place(links, source)  # type: ignore[misc]  # of the ordering
        if self.domains.cap is None:
            return places
        done = self.domains.is_done(np.array([self.domains.row(link.host) for link in links], np.intp))
        return [None if over else place for place, over in zip(places, done.tolist(), strict=True)]

    def learn(self: Any, outcome: Outcome) -> None:
        super().learn(outcome)
        self.domains.sweep(self.frontier, 0)


class CappedBreadthFirst(_Swept, BreadthFirst):
    """Breadth-first, at most so many pages of a domain."""


class CappedRandom(_Swept, Random):
    """At random, at most so many pages of a domain."""


class CappedParentFirst(_Swept, ParentFirst):
    """Links of rewarded pages first, at most so many pages of a domain."""


class Oracle(_Swept, Ordering):
    """Knows each page: links to wanted ones first, then those to pages with most links to wanted ones, among queued
    links.

    What can be reached with the links that are known at a time, about: it looks two links ahead, not further.
    """

    def __init__(self, web: MadeUpWeb, goal: Wanted, **cap: Any) -> None:
        super().__init__(**cap)
        self._web, self._goal = web, goal
        self._known: dict[str, bool] = {}
        self._found = 0

    def rank(self, link: Link, source: Outcome | None) -> float:
        """Return 1 for a wanted page, 0.9 at most for one with links to such."""
        self._found += 1
        early = -1e-9 * self._found
        if self._is_wanted(link.url):
            return 1 + early
        links = self._web.page(link.url).links
        return early + 0.9 * sum(self._is_wanted(each.url) for each in links) / max(len(links), 1)

    def _is_wanted(self, url: str) -> bool:
        if url not in self._known:
            page = self._web.page(url)
            if page.location:
                page = self._web.page(page.location)
            self._known[url] = page.status == 200 and self._goal.entities(page) > 0
        return self._known[url]


def _tree(**parameters: Any) -> Policy:
    from scrapy_focus.policies.treeq.policy import TreeQ

    return TreeQ(**parameters)


def _branching(per_domain: int | None = None) -> Policy:
    from scrapy_focus.policies.branching.policy import BranchingBandit

    if per_domain is not None:
        raise ValueError("BranchingBandit has no cap of pages per domain")
    return BranchingBandit()


#: What makes each policy that is not a score of the bandit of hosts; called with per_domain.
BASELINES: Final[dict[str, Callable[..., Policy]]] = {
    "breadth-first": CappedBreadthFirst,
    "random": CappedRandom,
    "parent first": CappedParentFirst,
    "random host": partial(_host_bandit, score="posterior", explore=1.0, decay="none"),
    "branching": _branching,
    "tree": _tree,
}
STATIC: Final = "static classifier"  # trained on another web
ORACLE: Final = "oracle"
_PREFIXES: Final = {"published": {"preset": "cikm-2014"}, "bayes": {"classifier": "bayes"}}
_EVERY: Final = [f"{score}, 0" for score in SCORES] + [
    f"{score}, 0.1{' ' * bool(decay)}{decay}" for score, decay in product(SCORES, DECAYS)
]
#: Names of groups of policies.
GROUPS: Final = {
    "baselines": [*BASELINES, STATIC, ORACLE],
    "scores": _EVERY,
    "published": [f"published {score}, 0" for score in SCORES[:7]],
    "plain": ["breadth-first", "random", "parent first", "branching", "tree"],
}


def make_policy(name: str, setting: str, cap: str, web: MadeUpWeb) -> Policy:
    """Return a policy by its name; ValueError for an unknown name."""
    capped = {} if cap == "none" else {"per_domain": int(cap)}
    if name in BASELINES:
        return BASELINES[name](**capped)
    if name == STATIC:
        model = static_model(setting, web.seed + _OTHER_WEB, web.hosts, web.pages or 0)
        return _host_bandit(score="best", explore=0.0, classifier="static", model=str(model), **capped)
    if name == ORACLE:
        return Oracle(web, Wanted(SETTINGS[setting]), **capped)
    score, explore, decay, others = _parsed(name)
    return _host_bandit(score=score, explore=explore, decay=decay or "none", **others, **capped)


def _parsed(name: str) -> tuple[str, float, str, dict[str, str]]:
    """Return score, share at random, decay and what else is said of ``published bayes SCORE, LAMBDA DECAY``."""
    score, _, rest = name.partition(", ")
    others: dict[str, str] = {}
    for prefix, parameters in _PREFIXES.items():
        if score.startswith(f"{prefix} "):
            score, others = score.removeprefix(f"{prefix} "), others | parameters
    share, _, decay = rest.partition(" ")
    try:
        explore = float(share)
    except ValueError:
        explore = -1.0
    if score not in SCORES or not 0 <= explore <= 1 or decay not in DECAYS:
        raise ValueError(
            f"{name!r} is not a policy: give a name of --list-policies, a group ({', '.join(GROUPS)}), or a score, a share and a "
            "decay, as in 'posterior x best, 0.1 hyperbolic'"
        )
    return score, explore, decay, others


class Wanted:
    """A goal: a page is worth 1 where it describes what a setting looks for, by the truth of the web."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    def entities(self, page: Any) -> int:
        """Return how many entities of the page are wanted; 0 for a page that is worth nothing."""
        types = self.setting.types
        if page.facts < self.setting.least:
            return 0
        return sum(name in types for name in page.entities) if types else len(page.entities)

    def __call__(self, outcome: Outcome) -> float:
        """Return 1 for a page that is wanted, else 0."""
        return float(outcome.is_html and outcome.page is not None and self.entities(outcome.page) > 0)


def crawl(policy: Policy, web: MadeUpWeb, goal: Wanted, run: Run, budget: int) -> Run:
    """Crawl a web, and note in a run what was found when."""
    loop = Crawl(
        policy, frontier=memory_frontier, goal=goal, budget=Budget(requests=budget), seed=run.seed, strict=True
    )
    loop.add([web.link(url) for url in web.some_pages(N_SEEDS, np.random.default_rng(run.seed))])
    hosts: set[str] = set()
    seen: set[str] = set()
    spent, worst, fetches, before = 0.0, 0.0, 0, (0, 0.0)
    pages = entities = 0
    marks = [mark for mark in MARKS if mark < budget] + [budget]
    started = time.perf_counter()
    for step in steps(loop, web, run.in_flight):
        spent, worst, fetches = spent + step.seconds, max(worst, step.longest), fetches + step.requests
        if step.outcome.status is not None:
            seen.add(step.page.host)
        if step.outcome.is_html and (n := goal.entities(step.page)):
            pages, entities = pages + 1, entities + n
            hosts.add(step.page.host)
        while marks and fetches >= marks[0]:
            run.marks.append(
                Mark(
                    fetches=marks.pop(0), pages=pages, entities=entities, hosts=len(hosts), domains=len({*map(domain_of, hosts)}),
                    seen_hosts=len(seen), waiting=len(loop.frontier),
                    step_us=1e6 * (spent - before[1]) / max(fetches - before[0], 1), worst_ms=1e3 * worst,
                )
            )  # fmt: skip
            before, worst = (fetches, spent), 0.0
    run.fetches, run.pages = fetches, pages
    run.ended = loop.finished() or "nothing waits"
    run.seconds = time.perf_counter() - started
    return run


@lru_cache(maxsize=2)
def open_web(seed: int, markup: str, hosts: int, pages: int) -> MadeUpWeb:
    """Return a web; once for each process, mostly."""
    return MadeUpWeb(seed=seed, hosts=hosts, markup=markup, pages=pages, links=LINKS)


@lru_cache(maxsize=16)
def static_model(setting: str, seed: int, hosts: int, pages: int) -> Path:
    """Train a classifier on links of another web of a setting, and return its file: what it would know at the start."""
    from scrapy_focus.policies.hostbandit.features import tokens_of
    from scrapy_focus.topic.relevance import LinearRelevance

    web, goal = open_web(seed, SETTINGS[setting].markup, hosts, pages), Wanted(SETTINGS[setting])
    rng = np.random.default_rng(seed)
    texts: tuple[list[str], list[str]] = ([], [])
    known: set[str] = set()
    waiting = web.some_pages(N_SEEDS, rng)
    while waiting and min(map(len, texts)) < _EXAMPLES and len(known) < pages:
        at = int(rng.integers(len(waiting)))  # crawled at random
        url, waiting[at] = waiting[at], waiting[-1]
        waiting.pop()
        for link in web.page(url).links:
            if link.url not in known:
                known.add(link.url)
                waiting.append(link.url)
                texts[goal.entities(web.page(link.url)) > 0].append(f"{' '.join(tokens_of(link.url))} {link.anchor}")
    others, wanted = (some[:_EXAMPLES] for some in texts)
    model = LinearRelevance().fit(others + wanted, [False] * len(others) + [True] * len(wanted))
    path = Path(tempfile.mkdtemp(prefix="structured-"), "static.npz")
    model.save(path)
    return path


def do(task: Task, *, budget: int, web_seed: int, n_hosts: int, n_pages: int) -> Run:
    """Do one run, from scratch."""
    name, setting, cap, seed, in_flight = task
    wanted = SETTINGS[setting]
    web = open_web(web_seed + seed, wanted.markup, n_hosts, n_pages)
    there = web.described(wanted.types, wanted.least)
    run = Run(policy=name, setting=setting, cap=cap, seed=seed, in_flight=in_flight, there=there)
    return crawl(make_policy(name, setting, cap, web), web, Wanted(wanted), run, budget)


def _try(task: Task, **parameters: int) -> tuple[Task, Run | None, str]:
    try:
        return task, do(task, **parameters), ""
    except Exception:  # of a policy: the other runs continue
        return task, None, traceback.format_exc()


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description="Crawls for structured data over a made-up web of many hosts.")
    parser.add_argument("--policies", nargs="+", default=["plain"], help="names, groups of names, or scores (plain)")
    parser.add_argument("--settings", nargs="+", choices=[*SETTINGS], default=["2012 any", "2022 any", "one type"])
    parser.add_argument("--caps", nargs="+", choices=CAPS, default=["none"], help="pages per domain")
    parser.add_argument("--runs", type=int, default=5, help="seeds of each, and webs (5)")
    parser.add_argument("--budget", type=int, default=20_000, help="fetches, failures too (20000)")
    parser.add_argument("--in-flight", type=int, nargs="+", default=[1])
    parser.add_argument("--web-seed", type=int, default=1, help="of the first web (1)")
    parser.add_argument("--hosts", type=int, default=6_000, help="of a web (6000)")
    parser.add_argument("--pages", type=int, default=120_000, help="of a web (120000)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--output", type=Path, default=Path("structured.json"))
    parser.add_argument("--tables-only", action="store_true", help="print the tables of the runs in the output")
    parser.add_argument("--list-policies", action="store_true", help="print the names of policies")
    parser.add_argument("--describe", action="store_true", help="print what there is in the webs of the settings")
    options = parser.parse_args(arguments)
    if options.list_policies:
        print(*(f"{group}: {'; '.join(names)}" for group, names in GROUPS.items()), sep="\n")
        return
    parameters = {
        "budget": options.budget, "web_seed": options.web_seed, "n_hosts": options.hosts, "n_pages": options.pages
    }  # fmt: skip
    if options.describe:
        seeds = range(options.web_seed, options.web_seed + options.runs)
        webs = {(s, k): (open_web(k, SETTINGS[s].markup, options.hosts, options.pages), SETTINGS[s])
                for s, k in product(options.settings, seeds)}  # fmt: skip
        print(describe({at: web.described(of.types, of.least) for at, (web, of) in webs.items()}))
        return
    policies = [name for given in options.policies for name in GROUPS.get(given, [given])]
    for name in policies:
        if name not in (*BASELINES, STATIC, ORACLE):
            try:
                _parsed(name)
            except ValueError as wrong:
                parser.error(str(wrong))
    runs = read(options.output)
    if not options.tables_only:
        if runs and json.loads(options.output.read_text(encoding="utf-8"))["parameters"] != parameters:
            parser.error(f"{options.output} has runs with another budget or other webs; give another --output")
        done = {run.key for run in runs}
        wanted = product(range(options.runs), options.settings, options.caps, options.in_flight, policies)
        tasks = [(p, s, cap, seed, k) for seed, s, cap, k, p in wanted if (p, s, cap, seed, k) not in done]
        tasks = [task for task in tasks if task[0] != "branching" or task[2] == "none"]  # it knows no cap
        failed = 0
        with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
            for task, run, error in pool.imap_unordered(partial(_try, **parameters), tasks):
                if run is None:
                    failed += 1
                    print(*task, "failed:", error, file=sys.stderr, flush=True)
                    continue
                runs.append(run)
                write(options.output, runs, parameters)
                print(*run.key, f"{run.precision:.3f} {run.seconds:.0f} s", run.ended, file=sys.stderr, flush=True)
        if failed:
            print(f"{failed} of {len(tasks)} runs failed; the same command tries them again", file=sys.stderr)
    order = list(dict.fromkeys([*BASELINES, STATIC, ORACLE, *_EVERY, *(run.policy for run in runs)]))
    runs.sort(key=lambda run: (order.index(run.policy), run.seed))
    print(tables(runs, [*SETTINGS]))


if __name__ == "__main__":
    main()
