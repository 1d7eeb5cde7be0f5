"""What ``FOCUS_IGNORE_PARAMETERS`` saves on sites that give one page many URLs, what it loses, and what it costs.

A synthetic shop has links with session ids (in the query, in the path), sort orders, tracking, filters, parameters
that name the page, an endless calendar, or all of these. Each crawl runs in a separate process, with the setting off
and on, with the default policy and breadth-first. Measured: requests until each page was fetched once, pages that
were never fetched, the peak of memory; with ``--cpu``, user and system CPU of the crawl from its opening to its
closing for each page, off and on in turns, the median of the differences. Not measured: real networks. ::

    python benchmarks/near_copies.py --seeds 5
    python benchmarks/near_copies.py --cpu --rounds 5
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import re
import resource
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import scrapy
from scrapy import signals
from scrapy.crawler import AsyncCrawlerRunner

from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.lab.sites.server import SiteServer

if TYPE_CHECKING:
    from collections.abc import Iterator

BUDGET = 1500  # requests
POLICIES = {"default": {}, "breadth-first": {"FOCUS_POLICY": "scrapy_focus.policies.orderings.BreadthFirst"}}
KINDS: dict[str, dict[str, Any]] = {
    "no parameters": {},
    "parameters that name the page": {"named": True},
    "sort orders": {"sorts": True},
    "tracking": {"tracking": "from"},
    "tracking, well known": {"tracking": "utm_source"},
    "filters, orders, tracking": {"filters": True, "sorts": True, "tracking": "ref"},
    "session": {"session": "sid"},
    "session in the path": {"session": ";jsessionid"},
    "calendar": {"calendar": True},
    "all at once": {"session": "sid", "sorts": True, "tracking": "from", "filters": True, "calendar": True},
}
_WORDS = "amber basin cedar delta ember fjord grove heath islet jetty knoll ledge marsh notch oasis ridge".split()


class Shop:
    """A home page, shelves with items, a page and a file for each item, under as many URLs as a kind has."""

    def __init__(
        self, *, shelves: int = 12, items: int = 6, session: str = "", tracking: str = "", sorts: bool = False,
        filters: bool = False, named: bool = False, calendar: bool = False,
    ) -> None:  # fmt: skip
        self.shelves, self.items = shelves, items
        self.session, self.tracking = session, tracking
        self.sorts, self.filters, self.named, self.calendar = sorts, filters, named, calendar
        self._fresh = itertools.count(1000)

    def pages(self) -> set[str]:
        """Return what there is to fetch, filters apart, and no calendar."""
        n = self.shelves * self.items
        shelves = [f"shelf/{k}" for k in range(self.shelves)]
        shown = [f"{shelf}/show{i}" for shelf in shelves for i in range(3) if self.filters]
        return {"", *shelves, *shown, *(f"item/{i}" for i in range(n)), *(f"file/{i}" for i in range(n))}

    def page_of(self, path: str) -> str:
        """Return which page a path leads to."""
        parts = urlsplit(path)
        query = dict(parse_qsl(parts.query))
        page = parts.path.partition(";")[0].strip("/").removesuffix(".csv")
        page += f"/{query['number']}" if "number" in query else ""
        return page + (f"/show{query['show']}" if "show" in query else "")

    def fetch(self, path: str) -> Page:
        page = self.page_of(path)
        kind, _, number = page.partition("/")
        if kind == "file":
            rng = random.Random(page)
            return Page.of("".join(f"{number},{i},{rng.random()}\n" for i in range(40)).encode(), mime="text/csv")
        month = dict(parse_qsl(urlsplit(path).query)).get("month", "0")
        if kind not in ("", "shelf", "item", "calendar") or not month.isdecimal():
            return Page.of(b"not here", status=404)
        where = f"{kind}{number.replace('/', '')}"
        match kind:
            case "":
                main = "<h1>The shop</h1>"
            case "shelf":
                main = self._shelf(number, path, where)
            case "item":
                main = f"<h1>Item {number}</h1>{self._link('file', number, where, 'Figures (CSV)')}"
            case _:
                main = self._month(int(month), where)
        menu = "".join(self._link("shelf", k, where, f"Shelf {_WORDS[k % 16]} {k}") for k in range(self.shelves))
        more = self._href("/calendar?month=0", where, "Events") if self.calendar else ""
        text = _prose(f"{page} {month if kind == 'calendar' else ''}")
        home = self._href("/", where, "Home")
        return Page.of(f"<html><body><nav>{home}{menu}{more}</nav>{main}<p>{text}</p></body></html>".encode())

    def _shelf(self, number: str, path: str, where: str) -> str:
        shelf, _, show = number.partition("/show")
        items = list(range(int(shelf) * self.items, (int(shelf) + 1) * self.items))
        random.Random(dict(parse_qsl(urlsplit(path).query)).get("sort", "")).shuffle(items)
        items = [item for item in items if not show or item % 3 == int(show)]
        rows = "".join(f"<li>{self._link('item', i, where, f'Item {i}')} costs {i * 7}</li>" for i in items)
        more = [f"?sort={sort}" for sort in ("name", "price", "date") if self.sorts]
        more += [f"?show={i}" for i in range(3) if self.filters]
        links = " ".join(self._href(f"/shelf/{shelf}{each}", where, each[1:]) for each in more)
        return f"<h1>Shelf {shelf}</h1>{links}<ul>{rows}</ul>"

    def _month(self, month: int, where: str) -> str:
        return self._href(f"/calendar?month={month + 1}", where, "next") + self._href(
            f"/calendar?month={max(month - 1, 0)}", where, "previous"
        )

    def _link(self, kind: str, number: object, where: str, text: str) -> str:
        if self.named:
            return self._href(f"/{kind}?number={number}&lang=en", where, text)
        return self._href(f"/{kind}/{number}{'.csv' if kind == 'file' else ''}", where, text)

    def _href(self, path: str, where: str, text: str) -> str:
        added = [f"{self.tracking}={where}"] if self.tracking else []
        head, _, query = path.partition("?")
        if self.session.startswith(";"):
            head += f"{self.session}={next(self._fresh):x}f"
        elif self.session:
            added.append(f"{self.session}={next(self._fresh):x}f")
        query = "&".join([query, *added] if query else added)
        return f'<a href="{head}{"?" if query else ""}{query}">{text}</a>'


def _prose(seed: str) -> str:
    rng = random.Random(seed)
    return " ".join(f"{rng.choice(_WORDS)}{rng.randrange(1000)}" for _ in range(40))


class Follow(scrapy.Spider):
    """Follows every link."""

    name = "follow"

    def parse(self, response: Any) -> Iterator[Any]:
        if isinstance(response, scrapy.http.HtmlResponse):
            yield from response.follow_all(css="a")


def crawl_here(root: str, settings: dict[str, Any]) -> dict[str, float]:
    """Crawl in this process, and return its seconds of CPU from opening to closing, and peak of memory in MB."""
    runner = AsyncCrawlerRunner(settings)
    crawler = runner.create_crawler(Follow)
    times: dict[str, float] = {}
    crawler.signals.connect(lambda: times.update(began=time.process_time()), signals.spider_opened, weak=False)
    crawler.signals.connect(lambda: times.update(ended=time.process_time()), signals.spider_closed, weak=False)
    asyncio.run(_run(runner, crawler, root))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cpu": times["ended"] - times["began"], "peak": peak}


async def _run(runner: AsyncCrawlerRunner, crawler: Any, root: str) -> None:
    await runner.crawl(crawler, start_urls=[root])


def crawl(kind: dict[str, Any], policy: str, *, on: bool, seed: int, **size: int) -> dict[str, float]:
    """Crawl a shop in a separate process; also return the requests until all pages, and the number of lost pages."""
    settings = {
        "ADDONS": {"scrapy_focus.Addon": 500}, "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False,
        "TWISTED_REACTOR_ENABLED": False, "LOG_ENABLED": False, "FOCUS_PROGRESS": "off", "FOCUS_SEED": seed,
        "FOCUS_TARGETS": ["text/csv"], "FOCUS_BUDGET_REQUESTS": BUDGET * (1 + 9 * bool(size)),
        "FOCUS_IGNORE_PARAMETERS": on, **POLICIES[policy],
    }  # fmt: skip
    shop = Shop(**{**kind, **size})
    with SiteServer(shop) as server:
        command = [sys.executable, __file__, "--one", json.dumps([server.url, settings])]
        said = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        missing, complete = shop.pages(), 0
        for number, request in enumerate(server.log, 1):
            if (page := shop.page_of(request.path)) in missing:
                missing.remove(page)
                complete = number
    return {**said, "complete": complete, "lost": len(missing), "requests": len(server.log)}


def savings(seeds: int, only: str) -> Iterator[str]:
    """Yield a row for each kind of site and policy."""
    yield "| site | pages | policy | requests until all, off | on | all requests, off | on | lost, off | on | MB, off | on |"
    yield "|---|--:|---|" + "--:|" * 8
    for name, kind in KINDS.items():
        for policy in POLICIES if re.search(only, name) else ():
            runs = {on: [crawl(kind, policy, on=on, seed=seed) for seed in range(seeds)] for on in (False, True)}
            cells = []
            for what in ("complete", "requests", "lost", "peak"):
                for on in (False, True):
                    cells.append(f"{statistics.mean(run[what] for run in runs[on]):.0f}")
                    if what == "complete" and any(run["lost"] for run in runs[on]):
                        cells[-1] = "-"
            yield f"| {name} | {len(Shop(**kind).pages())} | {policy} | {' | '.join(cells)} |"


def costs(rounds: int) -> Iterator[str]:
    """Yield a row for each kind of site that has no copies: CPU of a page, off and on in turns."""
    yield "| site | responses | CPU ms a response, off | on | difference, median (min to max) |"
    yield "|---|--:|--:|--:|--:|"
    for name in ("no parameters", "parameters that name the page"):
        each: dict[bool, list[float]] = {False: [], True: []}
        for round_ in range(rounds):
            for on in (False, True) if round_ % 2 else (True, False):
                run = crawl(KINDS[name], "breadth-first", on=on, seed=0, shelves=40, items=20)
                each[on].append(1000 * run["cpu"] / run["requests"])
        shares = [100 * (on / off - 1) for off, on in zip(each[False], each[True], strict=True)]
        spread = f"{statistics.median(shares):+.1f} % ({min(shares):+.1f} to {max(shares):+.1f})"
        without, with_it = statistics.median(each[False]), statistics.median(each[True])
        yield f"| {name} | {run['requests']} | {without:.2f} | {with_it:.2f} | {spread} |"


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="a regular expression of the names of sites")
    parser.add_argument("--cpu", action="store_true", help="what it costs where there is nothing to save")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(crawl_here(*json.loads(args.one))))
        return 0
    for row in costs(args.rounds) if args.cpu else savings(args.seeds, args.only):
        print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
