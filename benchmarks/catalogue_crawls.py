"""What catalogues and sitemaps are worth to a crawl for files: requests to 90 % of the files, with and without one.

Two parts. Recorded sites get one more page: a sitemap or a catalogue that lists files, pages, dead links or junk. It is
read by the spider's own code, so its links have the kinds and texts of a live crawl; it is a second root, and its
request counts. Crawls are simulated with one request in flight. Made-up catalogues (``catalogues``, as CKAN and its
like show them) are served on 127.0.0.1, and crawled with ``--no-sitemaps`` and without; there the spider has to find
the catalogue. Not measured: time, files on other hosts, pages that nothing but a sitemap leads to. ::

    python benchmarks/sites.py fetch skimage ase pydicom mdanalysis rdkit nipy python sklearn2
    python benchmarks/sites.py record skimage ase pydicom mdanalysis rdkit nipy python sklearn2
    python benchmarks/catalogue_crawls.py recorded sites/*.sqlite --seeds 10 --out recorded.jsonl
    python benchmarks/catalogue_crawls.py served --seeds 10 --out served.jsonl
    python benchmarks/catalogue_crawls.py tables recorded.jsonl
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import math
import random
import shutil
import sqlite3
import statistics
import tempfile
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
from scrapy import Request
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.http import Response
from w3lib.url import canonicalize_url

from catalogues.catalogues import SHAPES, TYPES, Catalogue
from early_files import Until
from scrapy_focus.engine.marks import LINK
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.kit.spiders.listings import is_rest, links_of_listing
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.lab.sites.server import SiteServer
from scrapy_focus.policies.branching.policy import BranchingBandit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from scrapy_focus.core.types import Link, Outcome, Placement

WITHOUT = "without"
SHARE = 0.9
PAGES = 100  # before those of a sitemap are queued
JUNK = 5  # times as many worthless entries
CASES: dict[str, str] = {  # name: kind of the list
    "files": "catalogue",
    "half of the files": "catalogue",
    "half of the files, as many dead": "catalogue",
    "dead files": "catalogue",
    "files and pages": "sitemap",
    "half of the files, pages": "sitemap",
    "pages": "sitemap",
    "half of the pages, as many dead": "sitemap",
    "pages, 5 times as much junk": "sitemap",
    "junk": "sitemap",
}


class Waiting(BranchingBandit):
    """The default policy, for which the pages of a sitemap wait, as the spider lets them: a request takes a second."""

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        return [
            place._replace(after=float(PAGES)) if link.tag_path == "(sitemap)/rest" and place else place
            for link, place in zip(links, super().place(links, source), strict=True)
        ]


class Lists:
    """The entries of each case, for one recorded site; all but the numbers of URLs are drawn with the seed 0."""

    def __init__(self, site: RecordedSite) -> None:
        draw = random.Random(0)
        truth = SiteTruth(site, FilesGoal())
        asked = truth.order.tolist()
        self.n_files = int((truth.worth > 0).sum())
        self.files = [site.urls[page] for page in asked if truth.worth[page] > 0]
        self.pages = [
            site.urls[page]
            for page in asked
            if truth.worth[page] <= 0 and site.answers.status[page] == 200 and site.answers.mimes[page] == "text/html"
        ]
        for urls in (self.files, self.pages):
            draw.shuffle(urls)
        base = site.urls[site.roots[0]].partition("//")[2].partition("/")[0]
        self.dead_files = [f"http://{base}/old/{n}/{Path(urlsplit(url).path).name}" for n, url in enumerate(self.files)]
        self.dead_pages = [f"http://{base}/old/page-{n}.html" for n in range(len(self.pages))]
        self.junk = [f"http://{base}/tags/{n % 97}/words-{n}.html" for n in range(JUNK * len(self.pages))]
        self._draw = draw

    def of(self, case: str) -> list[str]:
        """Return the entries of a case, in random order."""
        half, half_pages = self.files[: len(self.files) // 2], self.pages[: len(self.pages) // 2]
        dead, dead_pages = self.dead_files[: len(half)], self.dead_pages[: len(half_pages)]
        found = {
            "files": self.files,
            "half of the files": half,
            "half of the files, as many dead": half + dead,
            "dead files": self.dead_files,
            "files and pages": self.files + self.pages,
            "half of the files, pages": half + self.pages,
            "pages": self.pages,
            "half of the pages, as many dead": half_pages + dead_pages,
            "pages, 5 times as much junk": self.pages + self.junk,
            "junk": self.junk,
        }[case]
        return self._draw.sample(found, len(found))


def with_list(recording: Path, case: str, folder: Path) -> Path:
    """Return a copy of a recording with a sitemap or a catalogue as a second root."""
    with closing(RecordedSite(recording)) as site:
        lists, root = Lists(site), site.urls[site.roots[0]]
        junk = {*lists.junk}
    body, url = _body(CASES[case], lists.of(case)), root.partition("//")[2].partition("/")[0]
    url = f"http://{url}/{'data.json' if CASES[case] == 'catalogue' else 'sitemap.xml'}"
    copy = folder / f"{recording.stem}.sqlite"
    shutil.copyfile(recording, copy)
    wants = FilesGoal().wants
    with closing(sqlite3.connect(copy)) as database, database:
        parts = [(_page(database, url, 200, "text/html", len(body)), Request(url))]
        for source, request in parts:
            response = Response(url, body=body, request=request)
            made = links_of_listing(response, CASES[case], wants=wants, later=True)  # type: ignore[arg-type]
            for position, link in enumerate(made):
                address = f"{url}?rest" if is_rest(link) else link.url
                status = 200 if is_rest(link) or address in junk else 404
                target = _page(database, address, status, "text/html", len(body) if is_rest(link) else 900)
                if is_rest(link):
                    parts.append((target, link))
                said = link.meta[LINK]["tag_path"], link.meta.get("link_text", "")
                texts = [_text(database, text) for text in said]
                database.execute("INSERT INTO links VALUES (?, ?, ?, ?, ?, 0)", (source, position, target, *texts))
        roots = json.loads(database.execute("SELECT value FROM meta WHERE name = 'roots'").fetchone()[0])
        database.execute("UPDATE meta SET value = ? WHERE name = 'roots'", (json.dumps([*roots, url]),))
        database.execute("DELETE FROM meta WHERE name NOT IN ('roots', 'source', 'bodies', 'finished')")
    return copy


def _body(kind: str, urls: Sequence[str]) -> bytes:
    if kind == "sitemap":
        rows = "".join(f"<url><loc>{url.replace('&', '&amp;')}</loc></url>" for url in urls)
        return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</urlset>'.encode()
    datasets = [{"title": f"Table {n}", "distribution": [{"downloadURL": url}]} for n, url in enumerate(urls)]
    return json.dumps({"@type": "dcat:Catalog", "dataset": datasets}).encode()


def _page(database: sqlite3.Connection, url: str, status: int, mime: str, size: int) -> int:
    """Return the number of a URL, which gets this answer if it is new."""
    canonical = canonicalize_url(url)
    row = database.execute("SELECT id FROM pages WHERE canonical = ?", (canonical,)).fetchone()
    if row:
        return int(row[0])
    number = int(database.execute("SELECT max(id) + 1 FROM pages").fetchone()[0])
    database.execute(
        "INSERT INTO pages (id, url, canonical, status, mime, size) VALUES (?, ?, ?, ?, ?, ?)",
        (number, url, canonical, status, mime, size),
    )
    return number


def _text(database: sqlite3.Connection, text: str) -> int:
    database.execute("INSERT OR IGNORE INTO texts (text) VALUES (?)", (text,))
    return int(database.execute("SELECT id FROM texts WHERE text = ?", (text,)).fetchone()[0])


def recorded(paths: Sequence[Path], cases: Sequence[str], seeds: int) -> Iterator[dict[str, Any]]:
    """Yield the requests of each simulated crawl."""
    for path in paths:
        for case in (WITHOUT, *cases):
            with tempfile.TemporaryDirectory() as folder:
                copy = path if case == WITHOUT else with_list(path, case, Path(folder))
                with closing(RecordedSite(copy)) as site:
                    truth = SiteTruth(site, FilesGoal())
                    most = math.ceil(SHARE * truth.exhaustive.worth)
                    for seed in range(seeds):
                        policy = Waiting()
                        harvest = simulate(
                            policy, FilesGoal(), site, seed=seed, truth=truth, stop=Until(most), latency=1.0
                        )
                        at = int(np.argmax(harvest.found >= most)) if harvest.found[-1] >= most else -1
                        yield {"site": path.stem, "case": case, "seed": seed, "requests": at, "files": most}


class Portal:
    """A made-up catalogue that has the interfaces of CKAN, or the ``data.json`` of DCAT, or JSON-LD on its pages."""

    def __init__(self, shape: str, interface: str) -> None:
        self.catalogue = Catalogue(SHAPES[shape])
        self.interface = interface
        self.root = ""

    def fetch(self, path: str) -> Page:
        """Return the answer to a request."""
        parts = urlsplit(path)
        if self.interface == "CKAN" and parts.path == "/api/3/action/package_search":
            query = {name: int(values[0]) for name, values in parse_qs(parts.query).items()}
            return _json(self._search(query.get("start", 0), min(query.get("rows", 10), 1000)))
        if self.interface == "DCAT" and parts.path == "/data.json":
            return _json({"@type": "dcat:Catalog", "dataset": [*map(self._dcat, range(self.n_datasets))]})
        page = self.catalogue.fetch(path)
        if page.mime != "text/html" or page.status != 200:
            return page
        return Page.of(page.body.replace(b"<body>", f"<head>{self._head(parts.path)}</head><body>".encode()))

    @property
    def n_datasets(self) -> int:
        """Data sets of the catalogue."""
        return self.catalogue.shape.datasets

    def files(self, number: int) -> list[tuple[str, str]]:
        """Return the path and the type of each file of a data set."""
        paths = [self.catalogue._download(number, k) for k in range(1 + number % self.catalogue.shape.resources)]
        return [(path, path.rpartition(".")[2]) for path in paths]

    def _head(self, path: str) -> str:
        if self.interface == "CKAN":
            return '<meta name="generator" content="ckan 2.10.4">'
        if self.interface == "DCAT":
            return '<link rel="alternate" type="application/json" href="/data.json">'
        number = path.removeprefix("/dataset/")
        if self.interface != "JSON-LD" or not path.startswith("/dataset/") or not number.isdigit():
            return ""
        files = [{"contentUrl": url, "encodingFormat": TYPES[kind]} for url, kind in self.files(int(number))]
        described = {"@context": "https://schema.org/", "@type": "Dataset", "name": f"Dataset {number}"}
        return f'<script type="application/ld+json">{json.dumps({**described, "distribution": files})}</script>'

    def _search(self, start: int, rows: int) -> dict[str, Any]:
        results = [
            {
                "title": f"Dataset {n}",
                "resources": [{"url": self.root + url, "format": kind} for url, kind in self.files(n)],
            }
            for n in range(start, min(start + rows, self.n_datasets))
        ]
        helps = "https://a.test/api/3/action/help_show?name=package_search"
        return {"help": helps, "success": True, "result": {"count": self.n_datasets, "results": results}}

    def _dcat(self, number: int) -> dict[str, Any]:
        files = [{"downloadURL": self.root + url, "mediaType": TYPES[kind]} for url, kind in self.files(number)]
        return {"title": f"Dataset {number}", "landingPage": f"{self.root}/dataset/{number}", "distribution": files}


def _json(value: dict[str, Any]) -> Page:
    return Page.of(json.dumps(value).encode(), mime="application/json")


def served(shapes: Sequence[str], seeds: int) -> Iterator[dict[str, Any]]:
    """Yield the requests of each crawl of a served catalogue, as its server counted them."""
    for shape in shapes:
        for seed in range(seeds):
            for case, interface in ((WITHOUT, "CKAN"), *((each, each) for each in ("CKAN", "DCAT", "JSON-LD"))):
                requests, files = _crawl(Portal(shape, interface), "no" if case == WITHOUT else "yes", seed)
                yield {"site": shape, "case": case, "seed": seed, "requests": requests, "files": files}


def _crawl(portal: Portal, sitemaps: str, seed: int) -> tuple[int, int]:
    """Return after how many requests the server had sent 90 % of the files, and how many these are."""
    most = math.ceil(SHARE * portal.catalogue.n_targets)
    with SiteServer(portal) as server, tempfile.TemporaryDirectory() as folder:
        portal.root = server.url.rstrip("/")
        settings = {
            "ADDONS": {"scrapy_focus.Addon": 500}, "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False,
            "TWISTED_REACTOR_ENABLED": False, "LOG_ENABLED": False, "FOCUS_PROGRESS": "off", "FOCUS_SEED": seed,
            "ROBOTSTXT_OBEY": True, "FOCUS_MAX_INFLIGHT": 1, "CLOSESPIDER_ITEMCOUNT": most,
        }  # fmt: skip
        runner = AsyncCrawlerRunner(settings)
        crawler = runner.create_crawler(DatasetsSpider)
        asyncio.run(_run(runner, crawler, {"root": server.url, "out": folder, "sitemaps": sitemaps}))
        log = [request.path for request in server.log]
    seen: set[str] = set()
    for at, path in enumerate(log, start=1):
        if "/download/" in path:
            seen.add(path)
        if len(seen) >= most:
            return at, most
    return -1, most


async def _run(runner: AsyncCrawlerRunner, crawler: object, given: dict[str, str]) -> None:
    await runner.crawl(crawler, **given)  # type: ignore[arg-type]


def tables(paths: Sequence[Path]) -> None:
    """Print requests relative to the crawl without a list: by site, and their geometric mean."""
    rows = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    means: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        means[row["site"]][row["case"]].append(row["requests"])
    sites = list(means)
    cases = list(dict.fromkeys(row["case"] for row in rows if row["case"] != WITHOUT))
    print(f"| list | {' | '.join(sites)} | geometric mean |\n|---|{'--:|' * (len(sites) + 1)}")
    cells = [f"{statistics.mean(means[site][WITHOUT]):,.0f}" for site in sites]
    print(f"| none: requests | {' | '.join(cells)} | |")
    for case in cases:
        found: list[float] = []
        cells = []
        for site in sites:
            with_it = means[site].get(case, [])
            if not with_it or min(with_it) < 0:
                cells.append("-")
                continue
            found.append(statistics.mean(with_it) / statistics.mean(means[site][WITHOUT]))
            cells.append(f"{found[-1]:.2f}")
        mean = f"{statistics.geometric_mean(found):.2f}" if found else "-"
        print(f"| {case} | {' | '.join(cells)} | {mean} |")


def _write(rows: Iterator[dict[str, Any]], path: Path) -> None:
    with path.open("a") as file:
        for row in rows:
            file.write(f"{json.dumps(row)}\n")
            file.flush()


def main() -> None:
    """Run crawls, or print the tables of earlier ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run, live, show = (commands.add_parser(name) for name in ("recorded", "served", "tables"))
    run.add_argument("sites", type=Path, nargs="+")
    run.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    live.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    for subparser in (run, live):
        subparser.add_argument("--seeds", type=int, default=10)
        subparser.add_argument("--out", type=Path, required=True)
    show.add_argument("runs", type=Path, nargs="+")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    does: dict[str, Callable[[], None]] = {
        "recorded": lambda: _write(recorded(options.sites, options.cases, options.seeds), options.out),
        "served": lambda: _write(served(options.shapes, options.seeds), options.out),
        "tables": lambda: tables(options.runs),
    }
    does[options.command]()


if __name__ == "__main__":
    main()
