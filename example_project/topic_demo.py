"""Find pages on a topic in a synthetic web, and compare with breadth-first.

Run it in a clone, as the web is in ``benchmarks``: ``python example_project/topic_demo.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from scrapy_focus.core.printable import printable
from scrapy_focus.engine.ending import STATUS
from scrapy_focus.finders.kit.records.folder_names import PAGES
from scrapy_focus.web.domains import domain_of

PROJECT = Path(__file__).parent
sys.path.insert(0, str(PROJECT.parent / "benchmarks"))
from manyhosts.server import WebServer, write_examples  # noqa: E402
from manyhosts.web import TOPICS, MadeUpWeb  # noqa: E402

BREADTH_FIRST = "scrapy_focus.policies.orderings.BreadthFirst"
EXAMPLES = 150  # of each kind


def scrapy(*arguments: str, proxy: str = "") -> None:
    """Run a command of Scrapy as a user would; on a terminal, a crawl shows its panel."""
    env = os.environ | {"PYTHONWARNINGS": "ignore", "http_proxy": proxy, "no_proxy": ""}
    command = [sys.executable, "-m", "scrapy", *arguments]
    status = subprocess.run(command, cwd=PROJECT, env=env, check=False).returncode
    if status not in (0, STATUS["budget"]):
        sys.exit(status)


def crawl(web: MadeUpWeb, folder: Path, arguments: list[str], settings: dict[str, str]) -> tuple[list[Any], int]:
    """Serve a web and crawl it into a folder; return the spider's list of pages, and the number of requests."""
    quiet = {
        "TELNETCONSOLE_ENABLED": "0",
        "REMOTE_CONTROL_ENABLED": "0",
        "STATS_DUMP": "0",
        "LOG_FORMAT": "%(message)s",
    }
    options = [word for name, value in (quiet | settings).items() for word in ("-s", f"{name}={value}")]
    with WebServer(web) as server:
        scrapy("crawl", "topic", *arguments, "-a", f"folder={folder}", *options, proxy=server.url)
        lines = (folder / PAGES).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines], server.requests


def main() -> None:
    """Train a model on example pages, crawl with it, then breadth-first with as many requests, and compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topic", choices=TOPICS, default="beekeeping", help="topic to look for (default: beekeeping)")
    parser.add_argument("--hosts", type=int, default=20_000, help="number of hosts (default: 20000)")
    parser.add_argument("--budget", type=int, default=1000, help="limit of requests for each crawl (default: 1000)")
    parser.add_argument("--per-domain", default="", help="limit of pages per domain, as for the spider")
    parser.add_argument(
        "--out", type=Path, default=Path("demo-output/topic"), help="folder for the results, emptied first"
    )
    options = parser.parse_args()
    out = options.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    console, web = Console(), MadeUpWeb(seed=0, hosts=options.hosts)
    there = web.relevant_hosts(options.topic)
    console.rule(f"a synthetic web: {web.hosts:,} hosts, {there.hosts:,} of them with pages on {options.topic}")
    write_examples(web, options.topic, out, examples=EXAMPLES)

    console.print("[bold]focus train --positive positive --negative negative")
    folders = ["--positive", str(out / "positive"), "--negative", str(out / "negative")]
    scrapy("focus-train", *folders, "--out", str(out / "model.npz"))

    cap = f" -a per_domain={options.per_domain}" if options.per_domain else ""
    given = f"-a seeds=seeds.txt -a model=model.npz -a keywords=keywords.txt -a budget={options.budget}"
    console.print(f"\n[bold]scrapy crawl topic {given}{cap}")
    arguments = [re.sub(r"=(?=\w+\.)", f"={out}/", word) for word in given.split()]
    fast = {"DOWNLOAD_DELAY": "0", "LOGSTATS_INTERVAL": "15"}
    runs = {"Tree-Frontier": crawl(web, out / "found", [*arguments, *cap.split()], fast | {"FOCUS_SEED": "0"})}
    console.rule("as many requests, breadth-first")
    plain = fast | {"FOCUS_POLICY": BREADTH_FIRST, "LOG_LEVEL": "CRITICAL"}
    runs["breadth-first"] = crawl(web, out / "breadth-first", arguments, plain)

    console.rule("the last relevant pages, and why they were fetched")
    for page in [page for page in runs["Tree-Frontier"][0] if page["relevance"] >= 0.5][-8:]:
        console.print(f"[bold]{page['relevance']:.2f}[/] {escape(printable(page['url']))}")
        console.print(
            Padding(f"{page['depth']} clicks from a seed; {escape(printable(page['why'], 1000))}", (0, 0, 0, 5))
        )

    title = f"pages on {options.topic}: true numbers, not the model's judgement"
    table = Table("", "requests", "pages", "relevant", "share", "on hosts", "in domains", title=title)
    for name, (pages, requests) in runs.items():
        found = [page["host"] for page in pages if web.is_relevant(page["url"], options.topic)]
        numbers = (requests, len(pages), len(found), len({*found}), len({domain_of(host) for host in found}))
        said = [f"{number:,}" for number in numbers]
        table.add_row(name, *said[:3], f"{len(found) / max(1, len(pages)):.0%}", *said[3:])
    console.print(table)
    console.print(
        f"Open this page in a browser: [bold]{printable(os.path.relpath(out / 'found' / 'index.html'))}", soft_wrap=True
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
