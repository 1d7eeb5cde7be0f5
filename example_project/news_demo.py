"""Watch a synthetic news site for a day in one minute, and compare with visiting all pages in turn.

This machine serves the site to itself, with a fast clock; nothing leaves the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console
from rich.table import Table

from scrapy_focus import Placement
from scrapy_focus.core.clock import FastClock
from scrapy_focus.core.printable import printable
from scrapy_focus.engine.ending import STATUS
from scrapy_focus.finders.kit.page.words import span
from scrapy_focus.lab.sites.news.plan import BEGIN, DAY, HOUR, Manner
from scrapy_focus.lab.sites.news.site import NewsSite
from scrapy_focus.lab.sites.server import SiteServer
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus import Outcome

PROJECT = Path(__file__).parent


class InTurn(BreadthFirst):
    """Fetches new links breadth-first, otherwise the least recently fetched page: all pages at equal intervals."""

    def __init__(self) -> None:
        super().__init__()
        self.visits = 0

    def again(self, outcome: Outcome) -> Placement | None:
        self.visits += 1
        return None if outcome.error else Placement(0, -1e12 - self.visits)


class Found(NamedTuple):
    """The articles published during a watch that it found."""

    of: int
    delays: list[float]  # seconds from publication to first sight, ascending

    def quantile(self, share: float) -> str:
        """Return the time within which this share of the articles was seen, in words."""
        return span(self.delays[min(len(self.delays) - 1, int(share * len(self.delays)))]) if self.delays else ""


def start(
    url: str, clock: FastClock, folder: Path, rate: str, hours: float, more: Sequence[str]
) -> subprocess.Popen[bytes]:
    """Start a watch of a site as a user would, with the clock of the site."""
    settings = {
        "DOWNLOAD_DELAY": "0", "TELNETCONSOLE_ENABLED": "0", "REMOTE_CONTROL_ENABLED": "0", "STATS_DUMP": "0",
        "LOG_FORMAT": "%(message)s", "FOCUS_SEED": "0", "_FOCUS_CLOCK": str(clock),
    }  # fmt: skip
    command = [sys.executable, "-m", "scrapy", "crawl", "news", "-a", f"root={url}", "-a", f"rate={rate}"]
    command += ["-a", f"time={hours:g}h", "-a", f"out={folder}"]
    command += [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
    return subprocess.Popen([*command, *more], cwd=PROJECT, env=os.environ | {"PYTHONWARNINGS": "ignore"})


def found_by(folder: Path, site: NewsSite, first: float, last: float) -> Found:
    """Return the articles published between two times that a watch found."""
    seen: dict[str, float] = {}
    for line in (folder / "news.jsonl").read_text(encoding="utf-8").splitlines():
        article = json.loads(line)
        seen.setdefault(article["url"], datetime.fromisoformat(article["first_seen"]).timestamp())
    born = {f"{site.origin}{each.path}": each.at for each in site.born(first, last)}
    return Found(len(born), sorted(max(0.0, seen[url] - at) for url, at in born.items() if url in seen))


def main() -> None:
    """Watch the site in two ways at once, and compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=24.0, help="hours to watch, on the site's clock (default: 24)")
    parser.add_argument("--speed", type=float, default=1440.0, help="seconds of that clock per second (default: 1440)")
    parser.add_argument("--rate", default="2000/day", help="limit of requests for each watch (default: 2000/day)")
    parser.add_argument("--archive", type=int, default=1000, help="old articles at the start (default: 1000)")
    parser.add_argument(
        "--out", type=Path, default=Path("demo-output/news"), help="folder for the results, emptied first"
    )
    options = parser.parse_args()
    out = options.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    console = Console(highlight=False)
    clock = FastClock(options.speed, BEGIN + DAY)
    site = NewsSite(Manner(archive=options.archive), seed=0, days=2 + options.hours / 24, clock=clock)
    console.rule(f"{options.hours:g} hours in {span(options.hours * HOUR / options.speed)}")
    console.print(
        f"This machine serves a synthetic news site to itself: {options.archive:,} old articles, seven new ones an "
        f"hour, 30 sections, 400 topics. Its clock is {options.speed:,.0f} times as fast as yours. Two watches run at "
        f"the same time, at a rate of {options.rate} each: one visits pages as often as they are expected to have "
        "something new, the other visits all pages in turn."
    )
    console.print(f"[bold]focus watch URL --rate {options.rate} --time {options.hours:g}h --out watched")
    with SiteServer(site, validators=True) as server:
        site.origin = server.url.rstrip("/")
        began = clock()
        in_turn = ["-s", "FOCUS_POLICY=news_demo.InTurn", "-s", "LOG_LEVEL=CRITICAL", "-s", "FOCUS_PROGRESS=off"]
        watches = {
            "as expected": start(server.url, clock, out / "watched", options.rate, options.hours, ()),
            "in turn": start(server.url, clock, out / "in-turn", options.rate, options.hours, in_turn),
        }
        statuses = [watch.wait() for watch in watches.values()]
        ended = clock()
    if bad := [status for status in statuses if status not in (0, STATUS["budget"])]:
        sys.exit(bad[0])
    hour = min(HOUR, options.hours * HOUR / 4)
    table = Table(
        "",
        "published",
        "found",
        "half within",
        "90 % within",
        title="new articles, except in the first and last hour",
    )
    for name, folder in (("as expected", "watched"), ("in turn", "in-turn")):
        found = found_by(out / folder, site, began + hour, ended - hour)
        share = f"{len(found.delays):,} ({len(found.delays) / max(1, found.of):.0%})"
        table.add_row(name, f"{found.of:,}", share, found.quantile(0.5), found.quantile(0.9))
    console.print(table)
    console.print(
        f"Open this page in a browser: [bold]{printable(os.path.relpath(out / 'watched' / 'index.html'))}",
        soft_wrap=True,
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
