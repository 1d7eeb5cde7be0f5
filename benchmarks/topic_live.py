"""What a live crawl for a topic finds with given data: few examples or many, of one kind or of both, with or without
keywords.

The spider ``topic`` crawls a synthetic web of many hosts, which a proxy serves. The generator knows the topic of each
page, so the truth is in the table: relevant pages that were fetched, how right ``relevance >= 0.5`` was about the
fetched pages, how many of the pages of the second half of the crawl were relevant in truth and by the crawl's own
account, the domains of relevant pages, and whether the crawl reported that its model drifts. One request is in flight
at a time, so that a crawl can be repeated; crawls with many in flight are not measured, nor are robots.txt files
excluded from the budget. ::

    PYTHONPATH=. python benchmarks/topic_live.py --out runs.json

``--project`` names the example project of another clone, to compare with its code; rows that it cannot crawl are
skipped.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from manyhosts.server import WebServer, write_examples
from manyhosts.web import TOPICS, MadeUpWeb
from runfiles import mean, stored, write
from scrapy_focus.web.domains import domain_of

PROJECT = Path(__file__).parents[1] / "example_project"
SETTINGS = {
    "DOWNLOAD_DELAY": 0, "FOCUS_MAX_INFLIGHT": 1, "FOCUS_PROGRESS": "off", "LOGSTATS_INTERVAL": 0, "LOG_LEVEL": "INFO",
    "STATS_DUMP": 1, "TELNETCONSOLE_ENABLED": 0,
}  # fmt: skip


class Given(NamedTuple):
    """What a crawl knows of its topic."""

    name: str
    positive: int = 0  # examples on the topic
    negative: int = 0  # others
    keywords: bool = False


ROWS = (
    Given("3+3", 3, 3),
    Given("3+3 and keywords", 3, 3, True),
    Given("10+10", 10, 10),
    Given("10+10 and keywords", 10, 10, True),
    Given("50+50", 50, 50),
    Given("10 positive", 10),
    Given("10 positive and keywords", 10, 0, True),
    Given("keywords", keywords=True),
    Given("50+50 and keywords", 50, 50, True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The results of one crawl."""

    given: str
    seed: int  # of the examples and of the crawl
    pages: int  # HTML pages that were fetched
    relevant: int  # of these in truth
    precision: float  # of relevance >= 0.5
    recall: float
    second_half: float  # share of relevant pages among the pages of the second half
    claimed: float  # the same, as the crawl said
    domains: int  # of relevant pages
    drift: float  # judged pages at which the crawl said that its model drifts


def crawl(web: MadeUpWeb, topic: str, given: Given, *, seed: int, budget: int, project: Path) -> Run | None:
    """Crawl once; ``None`` if the spider refuses its arguments."""
    with tempfile.TemporaryDirectory() as name, WebServer(web) as server:
        folder = Path(name)
        write_examples(web, topic, folder, examples=max(given.positive, given.negative, 1), seed=seed)
        for kind, number in (("positive", given.positive), ("negative", given.negative)):
            if not number:
                shutil.rmtree(folder / kind)
            for file in sorted(folder.glob(f"{kind}/*.txt"))[number:]:
                file.unlink()
        arguments = {"seeds": folder / "seeds.txt", "budget": budget, "out": folder / "out.jsonl"}
        arguments |= {"examples": folder} if given.positive else {}
        arguments |= {"keywords": folder / "keywords.txt"} if given.keywords else {}
        command = [sys.executable, "-m", "scrapy", "crawl", "topic"]
        command += [word for name, value in arguments.items() for word in ("-a", f"{name}={value}")]
        command += [word for name, value in SETTINGS.items() for word in ("-s", f"{name}={value}")]
        command += ["-s", f"FOCUS_SEED={seed}"]
        env = os.environ | {"http_proxy": server.url, "no_proxy": "", "PYTHONPATH": str(project.parent)}
        done = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, check=False)
        if not (folder / "out.jsonl").exists():
            print(f"{given.name}: not crawled ({done.stderr.strip().splitlines()[-1]})", file=sys.stderr)
            return None
        pages = [json.loads(line) for line in (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    truth = [web.is_relevant(page["url"], topic) for page in pages]
    said = [page["relevance"] >= 0.5 for page in pages]
    both = sum(t and s for t, s in zip(truth, said, strict=True))
    later = slice(len(pages) // 2, None)
    share = [sum(values[later]) / max(len(values[later]), 1) for values in (truth, said)]
    counted = [
        line.rpartition(":")[2].strip(" ,}") for line in done.stderr.splitlines() if "'focus/topic/drift'" in line
    ]
    return Run(
        given=given.name, seed=seed, pages=len(pages), relevant=sum(truth), precision=both / max(sum(said), 1),
        recall=both / max(sum(truth), 1), second_half=share[0], claimed=share[1],
        domains=len({domain_of(page["host"]) for page, t in zip(pages, truth, strict=True) if t}),
        drift=float(counted[-1]) if counted else 0.0,
    )  # fmt: skip


def table(runs: list[dict[str, Any]]) -> str:
    """Return the runs as a table in Markdown, a row for each that was given something else."""
    lines = [
        "| given | relevant pages | precision | recall | truth in the 2nd half | as it said | domains | said to drift |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for given in dict.fromkeys(run["given"] for run in runs):
        of = [run for run in runs if run["given"] == given]
        cells = [mean([run["relevant"] for run in of], 0)]
        cells += [mean([run[name] for run in of], 2) for name in ("precision", "recall", "second_half", "claimed")]
        cells += [mean([run["domains"] for run in of]), f"{sum(run['drift'] > 0 for run in of)} of {len(of)}"]
        lines.append(f"| {given} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--topic", choices=TOPICS, default="herbs")
    parser.add_argument("--web", type=int, default=5, help="seed of the web")
    parser.add_argument("--hosts", type=int, default=20_000)
    parser.add_argument("--budget", type=int, default=300, help="requests of each crawl, those for robots.txt too")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=3, help="crawls of each kind, with other examples")
    parser.add_argument("--given", action="append", choices=[row.name for row in ROWS], help="only these rows")
    parser.add_argument("--project", type=Path, default=PROJECT, help="example project of the code to crawl with")
    parser.add_argument("--out", type=Path, required=True, help="file of the runs; those in it are not made again")
    options = parser.parse_args()
    web, runs = MadeUpWeb(seed=options.web, hosts=options.hosts), stored(options.out)
    parameters = {name: str(getattr(options, name)) for name in ("topic", "web", "hosts", "budget")}
    there = {(run["given"], run["seed"]) for run in runs}
    made = [Run(**run) for run in runs]
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for given in ROWS:
            if (given.name, seed) in there or (options.given and given.name not in options.given):
                continue
            run = crawl(web, options.topic, given, seed=seed, budget=options.budget, project=options.project.resolve())
            if run is not None:
                made.append(run)
                write(options.out, made, parameters)
    print(table(stored(options.out)))


if __name__ == "__main__":
    main()
