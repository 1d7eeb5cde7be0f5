"""How early crawls of a real site find the pages that describe things of a type, and the things on them.

Measured: requests until 50, 90 and 100 % of the pages that describe anything wanted were fetched, and of the things
that they describe, in crawls of a recorded site without a network, by several orders, one request in flight;
``FocusScheduler`` and ``AnthelionScheduler`` are their policies, ``OMNISCIENT`` knows where the pages are. Or, with
``--live``, over HTTP, by the log of the server: a stock Scrapy spider, breadth-first by the settings that Scrapy's
documentation gives, and with two lines in their place; eight requests in flight. Not measured: time, many hosts, and
sites that a browser puts together.

Without a type it says which types there are, and on how many pages. A recording has the pages if it is made with
``--bodies``; ``focus record SITE.sqlite --folder FOLDER --bodies`` makes one of a folder of yours. ::

    python benchmarks/sites.py fetch lohelp ghc
    python benchmarks/sites.py record --bodies lohelp ghc
    python benchmarks/structured_site.py sites/lohelp.sqlite
    python benchmarks/structured_site.py sites/lohelp.sqlite --type HowToStep --type SoftwareSourceCode
    python benchmarks/structured_site.py sites/lohelp.sqlite --type HowToStep --type SoftwareSourceCode --live
    python benchmarks/structured_site.py sites/ghc.sqlite --type Article
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from scrapy_focus.core.mission import Mission
from scrapy_focus.goals.structured import StructuredDataGoal
from scrapy_focus.lab.compare.specs import PolicySpec
from scrapy_focus.lab.recordings.format import RecordedPage, RecordedSite
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.lab.sites.server import SiteServer
from scrapy_focus.web.mime import blocked_extensions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from scrapy_focus.core.types import Outcome
    from scrapy_focus.web.entities import Reading

#: Label -> policy.
ORDERS = {
    "breadth-first": "BFS",
    "random": "RANDOM",
    "links of such pages first": "ParentFirst",
    "FocusScheduler": "BranchingBandit",
    "AnthelionScheduler": "HostBandit",
    "OMNISCIENT": "OMNISCIENT",
}
FIXED = ("breadth-first", "links of such pages first", "OMNISCIENT")  # one crawl is as good as five
SHARES = (0.5, 0.9, 1.0)
SPIDER = """
import scrapy

class EveryPage(scrapy.Spider):
    name = "every_page"
    allowed_domains = ["127.0.0.1"]

    def parse(self, response):
        if isinstance(response, scrapy.http.HtmlResponse):
            yield from response.follow_all(css="a[href]")
"""
BREADTH = {
    "DEPTH_PRIORITY": "1",
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
}
#: Label -> settings that are added to those of a stock project; {type} is what is looked for.
LIVE = {
    "stock, breadth-first": BREADTH,
    "FocusScheduler": {"SCHEDULER": "scrapy_focus.FocusScheduler", "FOCUS_STRUCTURED": "{type}"},
    "AnthelionScheduler": {"SCHEDULER": "scrapy_focus.AnthelionScheduler", "FOCUS_STRUCTURED": "{type}"},
}


class Site:
    """A recording, and what its pages describe; each page is read once."""

    def __init__(self, path: Path) -> None:
        self.recorded = RecordedSite(path)
        everything = StructuredDataGoal()
        self.readings: dict[int, Reading] = {
            page: everything.reading(RecordedPage(self.recorded, page))
            for page in np.flatnonzero(self.recorded.status // 100 == 2).tolist()
            if "html" in self.recorded.mimes[page]
        }

    def things(self, goal: StructuredDataGoal) -> dict[int, int]:
        """Return how many wanted things each page describes that describes any."""
        found = {page: len(goal.wanted(reading)) for page, reading in self.readings.items()}
        return {page: n for page, n in found.items() if n}

    def census(self) -> str:
        """Return Markdown: of each type, on how many pages it is, and how often."""
        pages: Counter[str] = Counter()
        things: Counter[str] = Counter()
        for reading in self.readings.values():
            types = Counter(name for entity in reading.entities for name in set(entity.types))
            pages.update(types.keys())
            things.update(types)
        lines = [f"{self.recorded.name}, {len(self.readings):,} pages:", "", "| type | pages | % | things |"]
        lines.append("|---|--:|--:|--:|")
        for name, n in pages.most_common():
            lines.append(f"| {name} | {n:,} | {100 * n / len(self.readings):.1f} | {things[name]:,} |")
        return "\n".join(lines)

    def fetch(self, path: str) -> Page:
        """Answer as the site did, for a server."""
        return self._answers.get(path) or Page.of(b"404 Not Found", status=404, mime="text/plain")

    def load(self) -> None:
        """Read all answers, as a server asks for them from several threads."""
        self._answers = {_path(url): self._answer(page) for page, url in enumerate(self.recorded.urls)}

    def _answer(self, page: int) -> Page:
        site = self.recorded
        leads = site.urls[site.redirect[page]] if site.redirect[page] >= 0 else None
        status = int(site.status[page]) or 404
        return Page.of(
            site.body(page) or b"",
            status=status,
            mime=site.mimes[page],
            location=None if leads is None else _path(leads),
        )


class Known:
    """A goal that need not read pages again that it has read: it returns the same for the same page in every crawl."""

    heads_tell = False

    def __init__(self, worth: Iterable[str]) -> None:
        self._worth = frozenset(worth)  # URLs

    def __call__(self, outcome: Outcome) -> float:
        return float(outcome.page is not None and outcome.page.url in self._worth)


def simulated(site: Site, goal: StructuredDataGoal, seeds: int) -> Iterator[tuple[str, int, list[int]]]:
    """Crawl a recording by each order; yield order, seed and the pages that the requests asked for."""
    known, mission = Known(site.recorded.urls[page] for page in site.things(goal)), Mission.of(goal)
    truth = SiteTruth(site.recorded, known, ignored=blocked_extensions(()))
    for order, policy in ORDERS.items():
        for seed in range(1 if order in FIXED else seeds):
            made = PolicySpec.parse(policy).make()
            harvest = simulate(made, known, site.recorded, seed=seed, mission=mission, truth=truth)
            yield order, seed, np.where(harvest.heads, -1, harvest.pages)[1:].tolist()


def live(site: Site, goal: StructuredDataGoal, seeds: int) -> Iterator[tuple[str, int, list[int]]]:
    """Crawl what a recording answers over HTTP; yield what was set, the seed and the pages that were asked for."""
    site.load()
    numbers = {_path(url): page for page, url in enumerate(site.recorded.urls)}
    for label, settings in LIVE.items():
        for seed in range(seeds):
            with SiteServer(site) as server:
                root = server.url.rstrip("/") + _path(site.recorded.urls[site.recorded.roots[0]])
                _crawl(root, {key: value.format(type=",".join(goal.names)) for key, value in settings.items()}, seed)
            asked = [numbers.get(request.path, -1) if request.method == "GET" else -1 for request in server.log]
            yield label, seed, asked


def _crawl(root: str, settings: Mapping[str, str], seed: int) -> None:
    given = {
        "LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": "0", "REMOTE_CONTROL_ENABLED": "0",
        "CONCURRENT_REQUESTS_PER_DOMAIN": "8", "DOWNLOAD_DELAY": "0", "FOCUS_SEED": str(seed), "FOCUS_PROGRESS": "off",
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "every_page.py").write_text(f"{SPIDER}\n    start_urls = [{root!r}]\n", encoding="utf-8")
        command = [sys.executable, "-m", "scrapy", "runspider", "every_page.py"]
        command += [word for item in {**given, **settings}.items() for word in ("-s", "=".join(item))]
        subprocess.run(command, cwd=folder, check=True)


def until(asked: Sequence[int], worth: Mapping[int, int]) -> list[float]:
    """Return the requests until each of ``SHARES`` of all worth was found; ``inf`` where it never was."""
    missing, found, curve = dict(worth), 0, []
    for page in asked:
        found += missing.pop(page, 0)
        curve.append(found)
    whole = sum(worth.values())
    return [next((k for k, n in enumerate(curve, 1) if n >= share * whole), np.inf) for share in SHARES]


def measure(site: Site, name: str, crawls: Iterable[tuple[str, int, list[int]]]) -> Iterator[dict[str, Any]]:
    """Yield the results of each crawl that looked for things of a type."""
    things = site.things(StructuredDataGoal([name]))
    for order, seed, asked in crawls:
        yield {
            "site": site.recorded.name, "type": name, "order": order, "seed": seed, "requests": len(asked),
            "pages": until(asked, dict.fromkeys(things, 1)), "things": until(asked, things),
        }  # fmt: skip


def table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return Markdown: requests, as means and standard deviations over the seeds.

    The last column says in how many crawls 90 % of the things took more requests than in those of the first order.
    """
    heads = [f"{what} {100 * share:.0f} %" for what in ("pages", "things") for share in SHARES]
    lines = [f"| order | {' | '.join(heads)} | behind |", "|---" + "|--:" * (len(heads) + 1) + "|"]
    baseline = runs[0]["order"]
    beaten = np.mean([_at_90(run) for run in runs if run["order"] == baseline])
    for order in dict.fromkeys(run["order"] for run in runs):
        chosen = [run for run in runs if run["order"] == order]
        columns = zip(*([*run["pages"], *run["things"]] for run in chosen), strict=True)
        behind = "" if order == baseline else f"{sum(_at_90(run) > beaten for run in chosen)} of {len(chosen)}"
        lines.append(f"| {order} | {' | '.join(map(_cell, columns))} | {behind} |")
    return "\n".join(lines)


def _at_90(run: Mapping[str, Any]) -> float:
    return float(run["things"][SHARES.index(0.9)])


def _cell(values: Sequence[float]) -> str:
    mean, spread = np.mean(values), np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{mean:,.0f} ± {spread:.0f}" if spread else f"{mean:,.0f}"


def _path(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def main() -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("path", metavar="SITE.sqlite", type=Path, help="a recording with bodies")
    parser.add_argument("--type", metavar="TYPE", dest="types", action="append", default=[], help="repeat it for more")
    parser.add_argument("--seeds", type=int, default=5, help="crawls by each order that depends on chance")
    parser.add_argument("--live", action="store_true", help="crawl over HTTP")
    parser.add_argument("--json", type=Path, help="append a line for each crawl there")
    options = parser.parse_args()
    site = Site(options.path)
    if not options.types:
        print(site.census())
        return
    for name in options.types:
        goal = StructuredDataGoal([name])
        things, pages = site.things(goal), len(site.readings)
        print(
            f"{site.recorded.name}: {sum(things.values()):,} {name} on {len(things):,} of {pages:,} pages "
            f"({100 * len(things) / pages:.1f} %), {site.recorded.n_urls:,} URLs\n"
        )
        runs = []
        for run in measure(site, name, (live if options.live else simulated)(site, goal, options.seeds)):
            runs.append(run)
            if options.json is not None:
                with options.json.open("a", encoding="utf-8") as file:
                    print(json.dumps({"live": options.live, **run}), file=file)
        print(f"{table(runs)}\n", flush=True)


if __name__ == "__main__":
    main()
