"""What foragers find on changing news sites, at what cost, and whether that agrees with the paper.

Three experiments. ``paper`` has the nine measures of Palotai, Farkas and Lőrincz (``replay/foraging.py``), beside the
figures that they published. Its sites are small worlds of news, and the same with the links of articles exchanged at
random; near, or with new articles on lists far from the front page. Crawls begin with the front page and nine sections,
a download takes 2.6 seconds, and the reinforcing agent pays for each version of a document that is no older than a day.
``news`` has the four sites of ``news.py`` on a budget; crawls begin with the front page alone, and each article pays
once. ``web`` is the same on twelve hosts that link to each other, each of another manner; crawls begin with all front
pages.

The discovery of births is measured in the same way for all: articles count that are born from hour 24 on until 6
hours before the end, from their birth to their first visit. WL, RL and WLRL are ``Foragers`` with their defaults, and
as published if 2005 is given. Fixed foragers learn nothing, and choose links at random. Learned ones go beyond the
paper. The others are the policies of ``news.py``, and breadth-first from nothing every six hours.

Recordings are made once, in ``--folder``. Runs that are in ``--lines`` already are not made again, so that a benchmark
can be stopped and resumed. ::

    python benchmarks/foragers.py paper --jobs 2 --lines paper.jsonl
    python benchmarks/foragers.py news --rates 500 2000 --seeds 2 --policies "WL 2005" Revisits
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import numpy as np

import news
from scrapy_focus import Budget, Mission, NewsGoal, ReinforcingAgent
from scrapy_focus.lab.recordings.format import RecordedPage, RecordedSite
from scrapy_focus.lab.replay.foraging import WINDOW, SentNotes, births_of, foraging
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.lab.sites.news.html import section_name
from scrapy_focus.lab.sites.news.plan import DAY, HOUR, Manner
from scrapy_focus.lab.sites.news.site import NewsSite
from scrapy_focus.lab.sites.news.web import NewsWeb
from scrapy_focus.policies.foragers import Foragers, policy, states
from scrapy_focus.policies.rounds import Restarts
from scrapy_focus.web import documents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from scrapy_focus import Goal, Page, Policy
    from scrapy_focus.goals.news import Content

FIRST, END = 24 * HOUR, 6 * HOUR  # births count from so many seconds after the beginning until so many before the end
HOSTS = 12
ROOTS = ("/", *(f"/s/{section_name(section)}/" for section in range(9)))


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A crawled site, the duration, and the goal."""

    sites: Mapping[str, Manner | None]  # None: a web of many hosts
    policies: Sequence[str]
    rates: Sequence[int]  # requests a day
    days: float
    latency: float  # seconds a request
    roots: Sequence[str]
    goal: Callable[[], Goal]


class Task(NamedTuple):
    """One crawl."""

    experiment: str
    site: str
    rate: int
    policy: str
    seed: int
    days: float
    draw: int = 0  # which first weights


_read_of: dict[int, Content] = {}  # of the site that is crawled: what goals read of each answer


class Quickly:
    """Makes a goal that need not read a page again that was read in another crawl of this process."""

    def content(self, page: Page) -> Content:
        assert isinstance(page, RecordedPage)
        found = _read_of.get(page.answer)
        if found is None:
            found = _read_of[page.answer] = super().content(page)  # type: ignore[misc]
        return found


class QuickNews(Quickly, NewsGoal):
    """The same goal, quickly."""


class QuickAgent(Quickly, ReinforcingAgent):
    """The same goal, quickly."""


@contextmanager
def reading_once() -> Iterator[None]:
    """Let foragers read each page of a site once per process, for all crawls. The results are the same, and half of
    the time is saved.
    """
    shown: dict[int, str] = {}

    def shown_once(page: Page) -> str:
        assert isinstance(page, RecordedPage)
        if page.answer not in shown:
            shown[page.answer] = documents.shown_on(page)
        return shown[page.answer]

    with (
        patch.object(policy, "shown_on", shown_once),
        patch.object(states, "_counted", lru_cache(maxsize=None)(states._counted)),
        patch.object(documents, "_READ", 1 << 20),
        patch.dict(_read_of),
        patch.dict(documents._by_text),
    ):
        yield


class Site(RecordedSite):
    """A recording whose texts and headers are read once per process, for all crawls."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._texts: dict[int, str] = {}
        self._headers: dict[int, dict[str, str]] = {}

    def text(self, page: int) -> str:
        if page not in self._texts:
            self._texts[page] = super().text(page)
        return self._texts[page]

    def headers(self, page: int) -> dict[str, str]:
        if page not in self._headers:
            self._headers[page] = super().headers(page)
        return self._headers[page]


_WORLD = Manner(small_world=True, topical=True)
WORLDS = {
    "small world": _WORLD,
    "rewired": replace(_WORLD, rewired=True),
    "far small world": replace(_WORLD, far=True),
    "far rewired": replace(_WORLD, far=True, rewired=True),
}
FORAGERS: dict[str, Callable[[], Policy]] = {
    **{mode: partial(Foragers, mode=mode) for mode in ("learned", "WL", "RL", "WLRL")},
    "fixed": partial(Foragers, mode="fixed", order="random"),
    **{f"{mode} 2005": partial(Foragers, mode=mode, preset="palotai-2005") for mode in ("WL", "RL", "WLRL")},
    "fixed 2005": partial(Foragers, mode="fixed", order="random", preset="palotai-2005"),
}
SINGLE = tuple(FORAGERS)
_PRINTED: dict[str, Any] = {"preset": "palotai-2005", "rules": {"normalised": False, "centred": False}}
FORAGERS |= {
    **{f"{mode} as printed": partial(Foragers, mode=mode, **_PRINTED) for mode in ("WL", "RL", "WLRL")},
    "learned, by host": partial(Foragers, mode="learned", territory="host"),
    "WL 2005, by host": partial(Foragers, mode="WL", preset="palotai-2005", territory="host"),
}
OTHERS: dict[str, Callable[[], Policy]] = {**news.POLICIES, "restarts 6 h": partial(Restarts, every=0.25)}
POLICIES: dict[str, Callable[[], Policy]] = {**FORAGERS, **OTHERS}
EXPERIMENTS = {
    "paper": Experiment(
        sites=WORLDS, days=6.0, rates=(33_240,), latency=2.6, roots=ROOTS,
        policies=("WL 2005", "RL 2005", "WLRL 2005", "fixed 2005", "restarts 6 h"), goal=QuickAgent,
    ),
    "news": Experiment(
        sites=news.SITES, days=news.DAYS, rates=(500, 2_000, 33_000), latency=news.LATENCY, roots=("/",),
        policies=(*SINGLE, *OTHERS), goal=QuickNews,
    ),
    "web": Experiment(
        sites={"12 hosts": None}, days=news.DAYS, rates=(2_000,), latency=news.LATENCY, roots=(),
        policies=("learned", "learned, by host", "WL 2005", "WL 2005, by host", "RL 2005", "Revisits", "lists"),
        goal=QuickNews,
    ),
}  # fmt: skip


def record(folder: Path, task: Task) -> Path:
    """Return the recording of a site, which is made if it is not there."""
    experiment = EXPERIMENTS[task.experiment]
    name = f"{task.experiment} {task.site}".replace(" ", "-")
    path = folder / f"{name}-{task.days:g}-{task.seed}.sqlite"
    if path.exists():
        return path
    manner = experiment.sites[task.site]
    if manner is None:
        web = NewsWeb(HOSTS, seed=task.seed, days=task.days)
        news.write(path, web, task.site, web.roots)
    else:
        news.write(path, NewsSite(manner, seed=task.seed, days=task.days), task.site, experiment.roots)
    return path


def crawl(task: Task, site: RecordedSite, truth: SiteTruth) -> dict[str, Any]:
    """Crawl a site; return the results."""
    experiment = EXPERIMENTS[task.experiment]
    crawler, goal = POLICIES[task.policy](), experiment.goal()
    notes = SentNotes(goal, crawler) if isinstance(crawler, Foragers) else None
    mission = Mission(types=Mission.of(goal).types, rate=task.rate / DAY)
    started = time.process_time()
    harvest = simulate(
        crawler, notes or goal, site, budget=Budget(seconds=task.days * DAY, rate=f"{task.rate}/day"),
        latency=experiment.latency, seed=task.seed + 100 * task.draw, mission=mission, ignored=(), truth=truth,
    )  # fmt: skip
    cpu = time.process_time() - started
    births = births_of(site, FIRST, task.days * DAY - END)
    found = foraging(harvest, site, sent=None if notes is None else notes.times(site.begin), births=births)
    news_of = found.discovery
    return {
        **task._asdict(), "downloaded": found.downloaded, "sent": found.sent, "relevant": found.relevant,
        "found": found.found, "download efficiency": found.download_efficiency.whole,
        "sent efficiency": found.sent_efficiency.whole, "download efficiency, 3 h": found.download_efficiency.mean,
        "sent efficiency, 3 h": found.sent_efficiency.mean, "relative found": found.relative_found,
        "freshness": found.freshness, "age": found.age / HOUR, "born": news_of.born, "recall": news_of.recall,
        "mean": news_of.mean / HOUR, "median": news_of.median / HOUR, "90 %": news_of.late / HOUR, "cost": found.cost,
        **unevenness(found.download_efficiency.windows),
        "foragers": len(crawler.fleet) if isinstance(crawler, Foragers) else 1,
        "ms": 1000 * cpu / max(1, harvest.requests),
    }  # fmt: skip


def unevenness(windows: NDArray[np.float64]) -> dict[str, float]:
    """Return how much the download efficiency of windows of 3 hours differs, without the first day."""
    later = windows[round(DAY / WINDOW) :]
    if np.isnan(later).all():
        return {"peak": math.nan, "deviation": math.nan}
    mean = np.nanmean(later)
    return {"peak": float(np.nanmax(later) / mean), "deviation": float(np.nanstd(later) / mean)}


def crawl_all(folder: Path, tasks: Sequence[Task], lines: Path | None) -> list[dict[str, Any]]:
    """Crawl one site by several policies, write each run when it is done, and return them."""
    site = Site(record(folder, tasks[0]))
    runs = []
    with reading_once():
        truth = SiteTruth(site, EXPERIMENTS[tasks[0].experiment].goal())
        for task in tasks:
            runs.append(crawl(task, site, truth))
            line = json.dumps(runs[-1])
            print(line, file=sys.stderr, flush=True)
            if lines is not None:
                with lines.open("a", encoding="utf-8") as file:
                    file.write(f"{line}\n")
    site.close()
    return runs


MEASURES: dict[str, tuple[str, float, float]] = {  # format, and the published values for WL and RL; NaN: none
    "downloaded": (",.0f", 669_673, 540_636),
    "sent": (",.0f", 6_345, 9_747),
    "relevant": (",.0f", 3_107, 2_419),
    "found": (",.0f", 33_116, 31_092),
    "download efficiency": (".4f", 0.0046, 0.0045),
    "sent efficiency": (".3f", 0.49, 0.248),
    "relative found": (".3f", 0.05, 0.058),
    "freshness": (".3f", 0.74, 0.70),
    "age": (".2f", 1.56, 1.79),
    "peak": (".2f", math.nan, math.nan),
    "deviation": (".2f", math.nan, math.nan),
    "recall": (".3f", math.nan, math.nan),
    "mean": (".2f", math.nan, math.nan),
    "median": (".2f", math.nan, math.nan),
    "90 %": (".2f", math.nan, math.nan),
    "cost": (",.1f", math.nan, math.nan),
    "foragers": (".1f", math.nan, math.nan),
    "ms": (".2f", math.nan, math.nan),
}
UNITS = {
    "age": "age, h", "mean": "delay: mean, h", "median": "delay: median, h", "90 %": "delay: 90 %, h",
    "cost": "requests for each relevant", "peak": "highest 3 h by their mean", "deviation": "deviation of 3 h by it",
}  # fmt: skip


def paper_table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return a table for each site: a row for each measure with means and deviations over the seeds, the published
    values, and how many seeds have WL and RL in the published order.
    """
    tables = []
    for site, of_site in grouped(runs, "site"):
        of = dict(grouped(of_site, "policy"))
        lines = [
            f"| {site} | " + " | ".join(of) + " | published: WL | RL | seeds in their order |",
            "|---|" + "--:|" * (len(of) + 3),
        ]
        for name, (form, *published) in MEASURES.items():
            cells = [spread([run[name] for run in each], form) for each in of.values()]
            cells += [format(each, form) if math.isfinite(each) else "" for each in published]
            lines.append(f"| {UNITS.get(name, name)} | " + " | ".join(cells) + f" | {order(of, name, published)} |")
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def order(of: Mapping[str, Sequence[Mapping[str, Any]]], name: str, published: Sequence[float]) -> str:
    """Return how many seeds have a measure for WL and RL in the published order: "4 of 5"."""
    kind = "2005" if "RL 2005" in of else "as printed"
    runs = [of.get(f"{mode} {kind}", ()) for mode in ("WL", "RL")]
    pairs = [{(run["seed"], run.get("draw")): run[name] for run in each} for each in runs]
    both = pairs[0].keys() & pairs[1].keys()
    if not both or not all(map(math.isfinite, published)):
        return ""
    if all(pairs[0][seed] == pairs[1][seed] for seed in both):
        return ""
    same = sum((pairs[0][seed] - pairs[1][seed]) * (published[0] - published[1]) > 0 for seed in both)
    return f"{same} of {len(both)}"


def news_table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return a row for each site, rate and policy: means over the seeds, and the deviation of the mean delay."""
    columns = (
        "recall",
        "mean",
        "median",
        "90 %",
        "downloaded",
        "relevant",
        "sent efficiency",
        "cost",
        "foragers",
        "ms",
    )
    lines = [
        "| site | requests a day | policy | recall | mean h | median h | 90 % h | requests | relevant | sent efficiency | "
        "requests for each | foragers | ms |",
        "|---|--:|---|" + "--:|" * len(columns),
    ]
    for (site, rate, who), group in grouped(runs, "site", "rate", "policy"):
        cells = []
        for name in columns:
            values = [run[name] for run in group]
            form = MEASURES[name][0]
            cells.append(spread(values, form) if name == "mean" else format(np.mean(values), form))
        lines.append(f"| {site} | {rate:,} | {who} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def grouped(runs: Iterable[Mapping[str, Any]], *names: str) -> Iterator[tuple[Any, list[Mapping[str, Any]]]]:
    """Yield the values of these names, and the runs that have them, in the order of first occurrence."""
    groups: dict[Any, list[Mapping[str, Any]]] = {}
    for run in runs:
        key = tuple(run[name] for name in names)
        groups.setdefault(key if len(names) > 1 else key[0], []).append(run)
    yield from groups.items()


def spread(values: Sequence[float], form: str) -> str:
    """Return mean and deviation."""
    deviation = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{format(np.mean(values), form)} ± {format(deviation, form)}"


def done_before(lines: Path | None) -> dict[Task, dict[str, Any]]:
    """Return the runs in a file; a line cut by a kill is skipped."""
    done = {}
    for line in lines.read_text(encoding="utf-8").splitlines() if lines is not None and lines.exists() else ():
        try:
            run = json.loads(line)
        except ValueError:
            continue
        done[task_of(run)] = run
    return done


def task_of(run: Mapping[str, Any]) -> Task:
    """Return what was run."""
    return Task(**{name: run[name] for name in Task._fields if name in run})


def main(arguments: Sequence[str] | None = None) -> None:
    """Crawl, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=EXPERIMENTS, help="paper, news or web")
    parser.add_argument("--sites", nargs="+", help="which sites (all)")
    parser.add_argument("--rates", nargs="+", type=int, help="requests a day (all)")
    parser.add_argument("--policies", nargs="+", choices=POLICIES, help="which policies (those of the experiment)")
    parser.add_argument("--days", type=float, help="how long (paper: 6, news: 4)")
    parser.add_argument("--seeds", type=int, default=5, help="how many sites of each kind (5)")
    parser.add_argument("--draws", type=int, default=1, help="crawls of each site, with other first weights (1)")
    parser.add_argument("--folder", type=Path, default=Path("news-sites"), help="where recordings are (news-sites)")
    parser.add_argument("--jobs", type=int, default=1, help="sites at a time (1); 0: in this process")
    parser.add_argument("--lines", type=Path, help="file to append each run to, as JSON")
    options = parser.parse_args(arguments)
    experiment = EXPERIMENTS[options.experiment]
    days = options.days or experiment.days
    tasks = [
        Task(options.experiment, site, rate, policy, seed, days, draw)
        for seed in range(options.seeds)
        for site in options.sites or experiment.sites
        for rate in options.rates or experiment.rates
        for policy in options.policies or experiment.policies
        for draw in range(options.draws)
    ]
    runs = done_before(options.lines)
    missing = [task for task in tasks if task not in runs]
    sites = [list(each) for _, each in groupby(missing, lambda task: (task.site, task.seed))]
    with ProcessPoolExecutor(options.jobs or 1) as pool:
        crawl_site = partial(crawl_all, options.folder, lines=options.lines)
        for done in (pool.map if options.jobs else map)(crawl_site, sites):
            runs |= {task_of(run): run for run in done}
    tasks.sort(key=lambda task: (task.rate, task.seed))
    shown = [runs[task] for task in tasks]
    print(paper_table(shown) if options.experiment == "paper" else news_table(shown))


if __name__ == "__main__":
    main()
