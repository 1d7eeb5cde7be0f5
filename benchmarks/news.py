"""How soon crawls on a budget find what is new on a site.

Measured, on recordings of synthetic news sites that change while they are crawled: how many of the articles that are
born were fetched, how long after their birth (mean, median, 90 %), and by how many requests. Four sites: the good
lists near the first page; four and five clicks away; news in waves, each on one topic; and no dates. Articles are born
for four days, and those count that are born from hour 24 on until 6 hours before the end. All begin with the first page
and nothing else, and know the site by their own requests alone.

``Revisits`` is ``FreshScheduler``. The others are those of ``policies/rounds.py``. They fetch what appears on a page
that they had visited before at once. Else they fetch by turns a page that is new to them and one that is known: all of
these in turn, at equal intervals; only lists in turn (pages with 20 links or more); one that is drawn at random.
Breadth-first starts anew each day, from nothing, which is what one does without any of this. Recordings are made once,
in ``--folder``; each takes 10 seconds and 35 MB. ::

    python benchmarks/news.py                                   # all, about half an hour of CPU
    python benchmarks/news.py --sites near far --rates 2000 --seeds 2 --policies Revisits equal
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from email.utils import formatdate
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urljoin

import numpy as np

from scrapy_focus import Budget, Mission, NewsGoal
from scrapy_focus.lab.recordings.format import RecordedPage, RecordedSite
from scrapy_focus.lab.recordings.writer import Answer, SiteWriter
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.sites.news.plan import BEGIN, DAY, HOUR, Manner
from scrapy_focus.lab.sites.news.site import NewsSite
from scrapy_focus.policies.revisits import Revisits
from scrapy_focus.policies.rounds import AtRandom, HubsInTurn, InTurn, Restarts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scrapy_focus.core.types import Page
    from scrapy_focus.goals.news import Content
    from scrapy_focus.lab.sites.news.web import NewsWeb

HOST = "http://news.example"
DAYS = 4.0
FIRST, LAST = 24 * HOUR, DAYS * DAY - 6 * HOUR  # of the births that count, in seconds from the beginning
LATENCY = 1.0  # seconds
SITES = {
    "near": Manner(),
    "far": Manner(far=True, archive=1000),
    "waves": Manner(waves=True),
    "undated": Manner(undated=1.0),
}


POLICIES = {
    "Revisits": lambda: Revisits(goal="news"), "equal": InTurn, "lists": HubsInTurn, "random": AtRandom,
    "restarts": Restarts,
}  # fmt: skip


class Quickly(NewsGoal):
    """The same goal, which need not read a page again that it has read in another crawl of this process."""

    read: ClassVar[dict[tuple[Path, int], Content]] = {}

    def content(self, page: Page) -> Content:
        assert isinstance(page, RecordedPage)
        known = (page.site.path, page.answer)
        found = self.read.get(known)
        if found is None:
            found = self.read[known] = super().content(page)
        return found


def record(folder: Path, name: str, seed: int) -> Path:
    """Return the recording of a site, which is made if it is not there."""
    path = folder / f"{name}-{seed}.sqlite"
    write(path, NewsSite(SITES[name], seed=seed, days=DAYS), name)
    return path


def write(path: Path, site: NewsSite | NewsWeb, name: str, roots: Sequence[str] = ("/",)) -> None:
    """Record a site or a web, if that is not done; crawls begin at these paths or URLs."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    source = f"the synthetic news site, {name}"
    with SiteWriter(unfinished, roots=[urljoin(HOST, root) for root in roots], bodies=True, source=source) as writer:
        for version in site.versions():
            page = version.page
            headers = {"Content-Type": f"{page.mime}; charset=utf-8"}
            if page.etag:
                headers["ETag"] = f'"{page.etag}"'
            if page.modified:
                headers["Last-Modified"] = formatdate(page.modified, usegmt=True)
            url = urljoin(HOST, version.path)
            answer = Answer(url=url, status=page.status, headers=headers, body=page.body, since=version.since)
            writer.add(answer)
        writer.finish()
    unfinished.rename(path)


def run(folder: Path, name: str, rate: int, policy: str, seed: int) -> dict[str, Any]:
    """Crawl one site by one policy; return the results."""
    site = RecordedSite(record(folder, name, seed))
    goal = Quickly(hours=24)
    mission = Mission.of(goal)
    started = time.process_time()
    harvest = simulate(
        POLICIES[policy](), goal, site, budget=Budget(seconds=DAYS * DAY, rate=f"{rate}/day"), latency=LATENCY, seed=seed,
        mission=Mission(types=mission.types, rate=rate / DAY), ignored=(),
    )  # fmt: skip
    cpu = time.process_time() - started
    first: dict[int, float] = {}
    for page, at in zip(harvest.pages[1:].tolist(), harvest.seconds[1:].tolist(), strict=True):
        first.setdefault(page, at)
    born = NewsSite(SITES[name], seed=seed, days=DAYS).born(BEGIN + FIRST, BEGIN + LAST)
    found = [first.get(site.ids.get(HOST + article.path, -1)) for article in born]
    delays = [at - (article.at - BEGIN) for at, article in zip(found, born, strict=True) if at is not None] or [np.nan]
    site.close()
    return {
        "site": name, "rate": rate, "policy": policy, "seed": seed, "born": len(born), "recall": float(np.isfinite(delays).sum()) / len(born),
        "mean": float(np.mean(delays)) / HOUR, "median": float(np.median(delays)) / HOUR,
        "90 %": float(np.quantile(delays, 0.9)) / HOUR, "requests": harvest.requests, "rewards": float(harvest.found[-1]),
        "ms": 1000 * cpu / max(1, harvest.requests),
    }  # fmt: skip


def table(runs: Iterable[dict[str, Any]]) -> str:
    """Return the runs as Markdown: means over the seeds, and the spread of the mean delay."""
    groups: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for each in runs:
        groups.setdefault((each["site"], each["rate"], each["policy"]), []).append(each)
    lines = [
        "| site | requests a day | policy | recall | mean h | median h | 90 % h | requests | rewards | ms |",
        "|---|--:|---|" + "--:|" * 7,
    ]
    for (site, rate, policy), group in groups.items():
        mean = {key: float(np.mean([each[key] for each in group])) for key in group[0] if key not in ("site", "policy")}
        spread = np.std([each["mean"] for each in group], ddof=1) if len(group) > 1 else 0.0
        lines.append(
            f"| {site} | {rate:,} | {policy} | {mean['recall']:.3f} | {mean['mean']:.2f} ± {spread:.2f} | {mean['median']:.2f} | "
            f"{mean['90 %']:.2f} | {mean['requests']:,.0f} | {mean['rewards']:,.0f} | {mean['ms']:.2f} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Crawl, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", nargs="+", choices=SITES, default=[*SITES], help="which sites")
    parser.add_argument("--rates", nargs="+", type=int, default=[500, 2000], help="requests a day (500 2000)")
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=[*POLICIES], help="which policies")
    parser.add_argument("--seeds", type=int, default=5, help="how many sites of each kind (5)")
    parser.add_argument("--folder", type=Path, default=Path("news-sites"), help="where recordings are (news-sites)")
    parser.add_argument("--jobs", type=int, default=1, help="crawls at a time (1)")
    parser.add_argument("--lines", type=Path, help="file to append each run to, as JSON")
    options = parser.parse_args(arguments)
    tasks = [
        (options.folder, site, rate, policy, seed)
        for seed, site, rate, policy in product(range(options.seeds), options.sites, options.rates, options.policies)
    ]
    for site, seed in product(options.sites, range(options.seeds)):
        record(options.folder, site, seed)
    runs = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for done in pool.map(run, *zip(*tasks, strict=True)):
            runs.append(done)
            print(json.dumps(done), file=sys.stderr, flush=True)
            if options.lines:
                with options.lines.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(done) + "\n")
    order = {name: i for i, name in enumerate([*SITES, *POLICIES])}
    runs.sort(key=lambda each: (order[each["site"]], each["rate"], order[each["policy"]]))
    print(table(runs))


if __name__ == "__main__":
    main()
