"""The benefit of crawling again with the same folder: requests until the new files are found, and bytes for known
ones.

A portal is crawled, then a month passes on it: about a tenth of its files change where they are, and about a tenth as many are
new. The second crawl, with the folder of the first, is compared with a crawl of the changed portal from nothing, with the same
budget. *New files* are those whose addresses do not exist a month before; of these, those count that either of the two found.
Counted is what the server logged, HEADs, redirects, dead links and robots.txt included, until 90 % of them, and all, had been
sent. *Bytes for known files* are the bytes of the bodies that the second crawl was sent of files that were in the folder and had
not changed, as a share of what these files are together: of all that it asked for, with and without validators of the server.
With ``--early`` crawls end at 90 % of all new files, and only the columns up to these say something. ::

    python benchmarks/crawl_again.py --pages 2000 --budgets 1000 3000
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy import signals
from scrapy.crawler import AsyncCrawlerRunner

from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.lab.sites.server import Request, SiteServer

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response

_SETTINGS = {
    "ADDONS": {"scrapy_focus.Addon": 500}, "TWISTED_REACTOR_ENABLED": False, "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False, "FOCUS_PROGRESS": "off", "LOGSTATS_INTERVAL": 0, "COOKIES_ENABLED": False,
    "CONCURRENT_REQUESTS": 2, "ROBOTSTXT_OBEY": True, "LOG_ENABLED": False,
    "FOCUS_MAX_INFLIGHT": 1,  # so that two runs give the same figures
}  # fmt: skip


class Enough:
    """Ends a crawl when so many of some files were sent."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.paths, self.needed = crawler.settings["ENOUGH"]
        crawler.signals.connect(self.received, signals.response_received)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def received(self, response: Response) -> None:
        """Count a file; the handler of Scrapy's ``response_received``."""
        path = "/" + response.url.split("/", 3)[3]
        if response.status == 200 and path in self.paths:
            self.paths = self.paths - {path}
            self.needed -= 1
            if not self.needed:
                self.ending = asyncio.ensure_future(self.crawler.engine.close_spider_async(reason="enough"))


class Row(NamedTuple):
    """The results of one seed."""

    new: int  # files that are new on the site
    cold: list[float]  # requests until 90 % and all of those that either crawl finds, from nothing
    again: list[float]  # the same of the second crawl
    found: tuple[int, int]  # of the new files, by the crawl from nothing and by the second
    changed: tuple[int, int]  # files in the folder that changed, and of these those that the second crawl noticed
    checked: tuple[int, int]  # unchanged files in the folder, and of these those that the second crawl asked for
    share: float  # of the bytes of those that were asked for, what was sent


def crawl(
    server: SiteServer, out: Path, budget: int, seed: int, enough: frozenset[str] = frozenset(), **arguments: str
) -> list[Request]:
    """Crawl a served site until nine in ten of the files ``enough`` were sent, and return the server's log."""
    start = len(server.log)
    settings = {"ENOUGH": (enough, math.ceil(0.9 * len(enough))), "EXTENSIONS": {Enough: 1}} if enough else {}

    async def run() -> None:
        runner = AsyncCrawlerRunner({**_SETTINGS, **settings, "FOCUS_SEED": seed})
        await runner.crawl(DatasetsSpider, root=server.url, budget=str(budget), out=str(out), **arguments)

    asyncio.run(run())
    return server.log[start:]


def sent(log: list[Request], paths: set[str]) -> dict[str, int]:
    """Return after how many requests each of these files had been sent."""
    found: dict[str, int] = {}
    for number, request in enumerate(log, 1):
        if request.path in paths and request.status == 200 and request.method == "GET":
            found.setdefault(request.path, number)
    return found


def until(found: dict[str, int], share: float, of: int) -> float:
    """Return the requests until a share of so many files had been sent; infinite if they never were."""
    needed = math.ceil(share * of)
    return sorted(found.values())[needed - 1] if len(found) >= needed > 0 else math.inf


def measure(
    pages: int, budget: int, seed: int, *, validators: bool = True, early: bool = False, **arguments: str
) -> Row:
    """Crawl twice with one folder, and once from nothing."""
    before = StatisticsPortal(pages=pages, seed=seed, endless=False)
    after = StatisticsPortal(pages=pages, seed=seed, endless=False, months=1)
    old, now = ({path: site.fetch(path).etag for path in site.targets()} for site in (before, after))
    new = now.keys() - old.keys()
    enough = frozenset(new) if early else frozenset[str]()
    with tempfile.TemporaryDirectory() as folder, SiteServer(before, validators=validators) as server:
        out = Path(folder, "found")
        crawl(server, out, budget, seed)
        listed = {line["url"] for line in map(json.loads, (out / "manifest.jsonl").read_text().splitlines())}
        known = {url.removeprefix(server.url.rstrip("/")) for url in listed}
        server.site = after
        log = crawl(server, out, budget, seed, enough, **arguments)
        cold = crawl(server, Path(folder, "cold"), budget, seed, enough)
    found, cold_found = sent(log, set(new)), sent(cold, set(new))
    either = len(new if early else found.keys() | cold_found.keys())
    changed = {path for path in known if now[path] != old[path]}
    asked: dict[str, int] = {}
    for request in log:
        if request.path in known - changed and request.method == "GET":
            asked[request.path] = asked.get(request.path, 0) + request.bytes_sent
    whole = sum(after.fetch(path).size for path in asked)
    return Row(
        new=len(new),
        cold=[until(cold_found, share, either) for share in (0.9, 1.0)],
        again=[until(found, share, either) for share in (0.9, 1.0)],
        found=(len(cold_found), len(found)),
        changed=(len(changed), len(sent(log, changed))),
        checked=(len(known - changed), len(asked)),
        share=sum(asked.values()) / max(whole, 1),
    )


def main() -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--budgets", type=int, nargs="+", default=[1000, 3000])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--early", action="store_true", help="end the crawls at 90 %% of all new files")
    parser.add_argument("--new-only", action="store_true", help="ask for no known file")
    parser.add_argument("--no-validators", action="store_true", help="a server that knows no ETag")
    options = parser.parse_args()
    arguments: dict[str, Any] = {"new_only": "1"} if options.new_only else {}
    print(
        "| budget | seed | new files | found: from nothing | again | 90 %: from nothing | again | ratio "
        "| all: from nothing | again | changed: noticed | unchanged: asked for | bytes |"
    )
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for budget in options.budgets:
        rows = []
        for seed in range(options.first, options.first + options.seeds):
            row = measure(
                options.pages, budget, seed, validators=not options.no_validators, early=options.early, **arguments
            )
            rows.append(row)
            print(
                f"| {budget:,} | {seed} | {row.new} | {row.found[0]} | {row.found[1]} | {row.cold[0]:,.0f} "
                f"| {row.again[0]:,.0f} | {row.again[0] / row.cold[0]:.2f} | {row.cold[1]:,.0f} | {row.again[1]:,.0f} "
                f"| {row.changed[1]} of {row.changed[0]} | {row.checked[1]} of {row.checked[0]} | {row.share:.1%} |",
                flush=True,
            )
        ratios = [row.again[0] / row.cold[0] for row in rows]
        print(
            f"| {budget:,} | median | | | | | | {statistics.median(ratios):.2f} | | | | "
            f"| {statistics.median(row.share for row in rows):.1%} |\n"
            f"| {budget:,} | worst | | | | | | {max(ratios):.2f} | | | | | {max(row.share for row in rows):.1%} |"
        )


if __name__ == "__main__":
    main()
