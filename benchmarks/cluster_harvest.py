"""How much later the targets are found with many picks in flight, and what a limit on them saves.

Measured: requests until 90 % of the targets in simulated crawls, HEADs, redirects and dead links included, and the
simulated seconds that these take if a request takes one second in the median. A crawl ends there. Workers download
some picks and hold others that were chosen earlier; hosts stay with a worker; and a rule may limit the picks in
flight. Not measured: communication between workers and crawl, delays of hosts, and the real web. ::

    python benchmarks/cluster_harvest.py hosts sites/hosts100.sqlite   # record a hundred synthetic hosts
    python benchmarks/cluster_harvest.py topic sites/bees.sqlite       # part of manyhosts, and what knows the topic
    python benchmarks/cluster_harvest.py run sites/sklearn2.sqlite sites/lily.sqlite --layouts 1x32+32 1x128+128
    python benchmarks/cluster_harvest.py run sites/hosts100.sqlite --layouts 8x4+4 32x4+4 --per-host 8
    python benchmarks/cluster_harvest.py tables leases.jsonl            # with --until half, of half of them

A layout is the number of workers, the picks that each downloads, and the ready picks that each holds besides.
``1x1+0`` is the crawl that all others are compared with, and is always made. A recorded site is one host, so one
worker has all of it. Runs are kept in a file as they end, and none is made twice.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import sys
from collections import deque
from functools import partial
from itertools import product
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

import lxml.html
import numpy as np

from branching import SHARE, Until
from manyhosts.web import MadeUpWeb
from profiles.profiles import LEAST_PAGES, PROFILES, ProfileSite
from scrapy_focus.core.outstanding import most_out
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.goals.topic import TopicGoal
from scrapy_focus.lab.compare.specs import PolicySpec
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.writer import Answer, SiteWriter
from scrapy_focus.lab.replay.latency import LogNormal
from scrapy_focus.lab.replay.leases import Leases
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.topic.relevance import LinearRelevance

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from manyhosts.web import WebPage
    from scrapy_focus.core.goal import Goal
    from scrapy_focus.lab.recordings.format import Completeness

ONE = "1x1+0"
TOPIC = "beekeeping"
SUFFIXES = ("http://example/", "http://test/")  # of the hosts of manyhosts
POLICIES = {"default": "BranchingBandit", "TagPath": "TagPath:blocked=()", "BFS": "BFS", "RANDOM": "RANDOM"}
EARLY = {"tenth": 0.1, "half": 0.5}  # of the targets
SPARSE = 0.25  # profiles with a larger share of pages with targets leave nothing to choose
Run = dict[str, Any]
How = tuple[str, str, int | None]  # layout, rule, picks of a host
Column = tuple[str, str]  # layout, rule
ALONE: Column = (ONE, "none")


def bounded(outcomes: int, hosts: int, *, least: int, root: float, share: float, each: float) -> int:
    """The largest of a number, a multiple of the root of the outcomes, a share of them, and so many a host."""
    return int(max(least, root * math.sqrt(outcomes), share * outcomes, each * hosts))


def rule_of(text: str) -> Callable[[int, int], int] | None:
    """Read a rule: ``none``, ``built`` (that of the package), or the numbers of another: ``16:0:0.1:0``."""
    if text in ("none", "built"):
        return most_out if text == "built" else None
    least, root, share, each = text.split(":")
    return partial(bounded, least=int(least), root=float(root), share=float(share), each=float(each))


def leases_of(layout: str, rule: str, per_host: int | None) -> Leases:
    """Read a layout such as ``8x4+4``."""
    found = re.fullmatch(r"(\d+)x(\d+)\+(\d+)", layout)
    if found is None:
        raise ValueError(f"the layout {layout!r} is not like 8x4+4: workers, picks that download, picks that lie ready")
    workers, slots, ahead = map(int, found.groups())
    return Leases(workers=workers, slots=slots, ahead=ahead, per_host=per_host, most_out=rule_of(rule))


def record_hosts(path: Path, seed: int, hosts: int = 100) -> Completeness:
    """Record synthetic hosts: the sparse profiles in turn, each as small as it is made; a crawl starts on each host."""
    sparse = [profile for profile in PROFILES.values() if profile.density < SPARSE]
    sites = {}
    for number in range(hosts):
        profile = sparse[number % len(sparse)]
        scale = LEAST_PAGES / profile.pages
        sites[f"host{number}.example"] = ProfileSite(profile, scale=scale, seed=seed * hosts + number)
    with SiteWriter(path, roots=[f"http://{host}/" for host in sites], source=f"{hosts} synthetic hosts") as writer:
        for url in writer.missing():
            parts = urlsplit(url)
            page = sites[parts.hostname or ""].fetch(f"{parts.path}?{parts.query}" if parts.query else parts.path)
            headers = {"Content-Type": page.mime} | ({} if page.location is None else {"Location": page.location})
            writer.add(Answer(url=url, status=page.status, headers=headers, body=page.body))
        return writer.finish()


def record_topic(path: Path, seed: int, pages: int = 3_000) -> Completeness:
    """Record the pages of ``manyhosts`` that are nearest to six on a topic, and train the model of the topic beside
    it.

    Links that lead out of them are dropped.
    """
    web = MadeUpWeb(seed=seed, hosts=20_000)
    seeds = web.seeds(TOPIC, 6, np.random.default_rng(seed))
    near: dict[str, WebPage] = {}
    queue = deque(seeds)
    while queue and len(near) < pages:
        url = queue.popleft()
        if url not in near:
            near[url] = page = web.page(url)
            queue.extend([page.location] if page.location else [link.url for link in page.links])
    with SiteWriter(path, roots=[*seeds, *SUFFIXES], bodies=True, source=repr(web)) as writer:
        for url in SUFFIXES:  # so that all hosts are part of the site
            writer.add(Answer(url=url, status=404, headers={"Content-Type": "text/html"}))
        for page in near.values():
            if page.status:
                writer.add(Answer(url=page.url, status=page.status, headers=page.headers, body=_within(page, near)))
            else:
                writer.add(Answer(url=page.url, error=page.error))
        known = writer.finish()
    on, off = web.examples(TOPIC, 100, np.random.default_rng(seed))
    LinearRelevance().fit(on + off, [True] * len(on) + [False] * len(off)).save(path.with_suffix(".npz"))
    return known


def _within(page: WebPage, near: Collection[str]) -> bytes:
    """Return a page without links to others than these."""
    if page.location:
        return b""
    tree = lxml.html.fromstring(page.html)
    for anchor in tree.iter("a"):
        if urljoin(page.url, anchor.get("href", "")).partition("#")[0] not in near:
            anchor.attrib.pop("href", None)
    return bytes(lxml.html.tostring(tree, encoding="utf-8", doctype="<!DOCTYPE html>"))


def goal_of(path: Path) -> Goal:
    """Return the goal: pages on the topic whose model is beside the recording, or files."""
    model = path.with_suffix(".npz")
    return TopicGoal(model) if model.exists() else FilesGoal()


_known: dict[Path, tuple[RecordedSite, SiteTruth]] = {}  # the last site


def crawl(path: Path, policy: str, how: How, seed: int) -> Run:
    """Crawl until enough is found, and return the requests and seconds."""
    layout, rule, per_host = how
    if path not in _known:
        _known.clear()
        site = RecordedSite(path)
        _known[path] = site, SiteTruth(site, goal_of(path), ignored=())
    site, truth = _known[path]
    enough = SHARE * truth.exhaustive.worth
    started = process_time()
    harvest = simulate(
        PolicySpec.parse(POLICIES[policy]).make(), goal_of(path), site, seed=seed, ignored=(), truth=truth,
        stop=Until(math.ceil(enough)), concurrency=leases_of(*how), latency=LogNormal(1.0),
    )  # fmt: skip
    reached = harvest.found >= enough
    at = int(np.argmax(reached)) if reached.any() else None
    early = {name: int(np.argmax(harvest.found >= share * truth.exhaustive.worth)) for name, share in EARLY.items()}
    return {
        "site": path.stem, "policy": policy, "layout": layout, "rule": rule, "per_host": per_host, "seed": seed,
        "requests": at, **early, "seconds": None if at is None else float(harvest.seconds[at]),
        "targets": truth.exhaustive.worth, "all": truth.exhaustive.requests, "cpu": process_time() - started,
    }  # fmt: skip


def read(path: Path) -> list[Run]:
    """Return the runs of a file, none if there is no file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def run(options: argparse.Namespace) -> None:
    """Make all runs that the file lacks, and add each to it as it ends."""
    keys = ("site", "policy", "layout", "rule", "per_host", "seed")
    done = {tuple(each[key] for key in keys) for each in read(options.output)}
    wanted: list[How] = [(*ALONE, None), *product(options.layouts, options.rules, [options.per_host])]
    with options.output.open("a", encoding="utf-8") as file:
        for path, policy, how, seed in product(options.sites, options.policies, wanted, range(options.seeds)):
            if (path.stem, policy, *how, seed) in done or (policy == "BFS" and seed):
                continue
            made = crawl(path, policy, how, seed)
            print(json.dumps(made), file=file, flush=True)
            print(*made.values(), file=sys.stderr)


def tables(runs: Sequence[Run], what: str = "requests") -> None:
    """Print requests for each site and policy, how many more than one at a time they are, and the seconds.

    ``what`` is ``tenth`` or ``half`` for requests until that share of the targets.
    """
    by: dict[tuple[str, str, Column], list[Run]] = {}
    for each in runs:
        by.setdefault((each["site"], each["policy"], (each["layout"], each["rule"])), []).append(each)
    columns = list(dict.fromkeys(column for _, _, column in by))
    print("| site (URLs, targets) | policy |" + "".join(f" {layout}, {rule} |" for layout, rule in columns))
    print("|---|---|" + "--:|" * len(columns))
    for site, policy in dict.fromkeys((site, policy) for site, policy, _ in by):
        one = by[site, policy, ALONE]
        cells = [cell(by.get((site, policy, column), []), one, what) for column in columns]
        print(f"| {site} ({one[0]['all']:,}, {one[0]['targets']:,.0f}) | {policy} | {' | '.join(cells)} |")
    for policy in dict.fromkeys(policy for _, policy, _ in by):
        pairs = [
            [(made, by[site, policy, ALONE]) for (site, *how), made in by.items() if how == [policy, column]]
            for column in columns
        ]
        print(f"| geometric mean | {policy} | {' | '.join(geometric(each, what) for each in pairs)} |")


def geometric(pairs: Sequence[tuple[Sequence[Run], Sequence[Run]]], what: str) -> str:
    """How many more requests are needed than one at a time, over sites, and the seconds."""
    if not pairs:
        return ""
    more = [_mean(runs, what) / _mean(one, what) for runs, one in pairs]
    seconds = statistics.geometric_mean(_mean(runs, "seconds") for runs, _ in pairs)
    said = f"{statistics.geometric_mean(more) - 1:+.0%}, at most {max(more) - 1:+.0%}"
    return f"{said}; {seconds:,.0f} s" if what == "requests" else said


def cell(runs: Sequence[Run], one: Sequence[Run], what: str) -> str:
    """Mean and standard deviation, how many more these are than one at a time, and seconds."""
    if not runs:
        return ""
    numbers = [each[what] for each in runs]
    if None in numbers:
        return f"never in {numbers.count(None)} of {len(runs)}"
    spread = f" ± {statistics.stdev(numbers):,.0f}" if len(numbers) > 1 else ""
    more = "" if runs is one else f" ({_mean(runs, what) / _mean(one, what) - 1:+.0%})"
    seconds = f"; {_mean(runs, 'seconds'):,.0f} s" if what == "requests" else ""
    return f"{statistics.fmean(numbers):,.0f}{spread}{more}{seconds}"


def _mean(runs: Sequence[Run], what: str) -> float:
    return statistics.fmean(math.inf if each[what] is None else each[what] for each in runs)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, what in (("hosts", "record a web of a hundred hosts"), ("topic", "record a web with a topic")):
        subparser = commands.add_parser(name, help=what)
        subparser.add_argument("path", type=Path)
        subparser.add_argument("--seed", type=int, default=0)
    subparser = commands.add_parser("run", help="crawl recorded sites")
    subparser.add_argument("sites", metavar="SITE.sqlite", type=Path, nargs="+")
    subparser.add_argument("--policies", nargs="+", choices=[*POLICIES], default=["default", "TagPath"])
    subparser.add_argument("--layouts", nargs="+", default=["1x8+8", "1x32+32", "1x128+128"])
    subparser.add_argument("--rules", nargs="+", default=["none", "built"])
    subparser.add_argument("--per-host", type=int)
    subparser.add_argument("--seeds", type=int, default=5)
    subparser.add_argument("--output", type=Path, default=Path("leases.jsonl"))
    subparser = commands.add_parser("tables", help="print what was measured")
    subparser.add_argument("output", type=Path)
    subparser.add_argument("--until", choices=[*EARLY], default="requests", help="this share of the targets, not 90 %%")
    options = parser.parse_args(arguments)
    if options.command in ("hosts", "topic"):
        print((record_hosts if options.command == "hosts" else record_topic)(options.path, options.seed))
    elif options.command == "run":
        run(options)
    else:
        tables(read(options.output), options.until)


if __name__ == "__main__":
    main()
