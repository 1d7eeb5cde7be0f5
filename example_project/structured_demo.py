"""Find pages with structured data about recipes in a synthetic web, and compare with breadth-first.

Run it in a clone, as the web is in ``benchmarks``: ``python example_project/structured_demo.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from scrapy_focus.core.printable import printable
from scrapy_focus.engine.ending import STATUS

PROJECT = Path(__file__).parent
sys.path.insert(0, str(PROJECT.parent / "benchmarks"))
from manyhosts.entities import CONTENTS  # noqa: E402
from manyhosts.server import WebServer, write_seeds  # noqa: E402
from manyhosts.web import MadeUpWeb  # noqa: E402

BREADTH_FIRST = "scrapy_focus.policies.orderings.BreadthFirst"
PAGES = 20  # of each host on average


class Crawled(NamedTuple):
    """The results of a crawl."""

    requests: int
    lines: list[dict[str, Any]]  # the spider's list

    @property
    def pages(self) -> int:
        """The number of pages with entities."""
        return len({line["url"] for line in self.lines})

    @property
    def hosts(self) -> int:
        """The number of their hosts."""
        return len({line["host"] for line in self.lines})


def crawl(web: MadeUpWeb, folder: Path, arguments: list[str], settings: dict[str, str]) -> Crawled:
    """Serve a web and crawl it, as a user would; on a terminal, the crawl shows its panel."""
    options = settings | {
        "DOWNLOAD_DELAY": "0", "TELNETCONSOLE_ENABLED": "0", "REMOTE_CONTROL_ENABLED": "0", "STATS_DUMP": "0",
        "LOG_FORMAT": "%(message)s", "FOCUS_SEED": "0", "FOCUS_LONGEST_WAIT": "1", "RETRY_TIMES": "0",
    }  # fmt: skip
    command = [sys.executable, "-m", "scrapy", "crawl", "structured", *arguments, "-a", f"folder={folder}"]
    command += [word for name, value in options.items() for word in ("-s", f"{name}={value}")]
    with WebServer(web) as server:
        env = os.environ | {"PYTHONWARNINGS": "ignore", "http_proxy": server.url, "no_proxy": ""}
        status = subprocess.run(command, cwd=PROJECT, env=env, check=False).returncode
        if status not in (0, STATUS["budget"]):
            sys.exit(status)
        lines = (folder / "entities.jsonl").read_text(encoding="utf-8").splitlines()
        return Crawled(server.requests, [json.loads(line) for line in lines])


def main() -> None:
    """Crawl for one type of entity, then breadth-first with as many requests, and compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--type", choices=CONTENTS, default="Recipe", help="type to look for (default: Recipe)")
    parser.add_argument("--hosts", type=int, default=6_000, help="number of hosts (default: 6000)")
    parser.add_argument("--budget", type=int, default=1500, help="limit of requests for each crawl (default: 1500)")
    parser.add_argument("--per-domain", default="", help="limit of pages per domain, as for the spider")
    parser.add_argument(
        "--out", type=Path, default=Path("demo-output/structured"), help="folder for the results, emptied first"
    )
    options = parser.parse_args()
    out = options.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    console = Console(highlight=False)
    web = MadeUpWeb(seed=0, hosts=options.hosts, markup="2022", pages=PAGES * options.hosts)
    there = web.described([options.type])
    console.rule(f"a synthetic web: {there.of:,} pages on {web.hosts:,} hosts")
    console.print(
        f"This machine serves the web to itself; nothing leaves it. {there.pages:,} of its pages, on {there.hosts:,} "
        f"hosts, describe {there.entities:,} entities of the type {options.type} as JSON-LD or microdata. "
        f"It is crawled twice, with {options.budget:,} requests each."
    )
    write_seeds(web, out)
    given = ["-a", f"seeds={out / 'seeds.txt'}", "-a", f"types={options.type}", "-a", f"budget={options.budget}"]
    cap = f" -a per_domain={options.per_domain}" if options.per_domain else ""
    console.rule("1 of 2: the most promising hosts and links first")
    console.print(
        f"[bold]scrapy crawl structured -a seeds=seeds.txt -a types={options.type} -a budget={options.budget}{cap}"
    )
    runs = {"Anthelion": crawl(web, out / "found", [*given, *cap.split()], {"LOGSTATS_INTERVAL": "15"})}
    console.rule("2 of 2: breadth-first")
    quiet = {"FOCUS_POLICY": BREADTH_FIRST, "LOG_LEVEL": "CRITICAL"}
    runs["breadth-first"] = crawl(web, out / "breadth-first", given, quiet)

    console.rule("the last entities, and why their pages were fetched")
    for line in runs["Anthelion"].lines[-5:]:
        console.print(f"[bold]{escape(printable(str(line['values'].get('name'))))}[/] {escape(printable(line['url']))}")
        console.print(Padding(escape(printable(line["why"], 1000)), (0, 0, 0, 5)))

    table = Table("", "requests", "pages", "hosts", "entities", "share of all", title=f"found: {options.type}")
    for name, run in runs.items():
        numbers = (run.requests, run.pages, run.hosts, len(run.lines))
        table.add_row(name, *(f"{number:,}" for number in numbers), f"{len(run.lines) / max(1, there.entities):.1%}")
    console.print(table)
    console.print(
        f"Open this page in a browser: [bold]{printable(os.path.relpath(out / 'found' / 'index.html'))}", soft_wrap=True
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
