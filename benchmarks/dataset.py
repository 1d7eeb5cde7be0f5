"""Makes a data set of recordings of synthetic sites: the same on every machine, without a network.

A comparison can be repeated only on the same sites. These are made from a name and a seed, so that a paper can name
them and anyone can make them again. ``dataset.json`` lists each with its numbers and the SHA-256 of its content, and
``dataset.rst`` says what they are, for those who use or cite them::

    python benchmarks/dataset.py --out data                       # all: 15 recordings, 100 MB, two minutes
    python benchmarks/dataset.py --out data portal-small-0        # one
    python benchmarks/dataset.py --out data --verify              # compare the files with the sums
    python benchmarks/dataset.py --out data --update              # and write dataset.json, after a change of a generator

The sum is over the content, row by row, with texts in place of numbers, and not over the file: SQLite may store equal
rows in other places, and zlib may compress them otherwise.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
import zlib
from contextlib import closing
from dataclasses import asdict, dataclass
from email.utils import formatdate
from html import escape
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import numpy as np

from manyhosts.web import MadeUpWeb
from profiles.profiles import PROFILES, ProfileSite
from scrapy_focus.core.files import write_atomically
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.lab.recordings.format import RecordedSite, open_recording
from scrapy_focus.lab.recordings.importers.folder import record_site
from scrapy_focus.lab.recordings.writer import Answer, SiteWriter
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.lab.sites.news.plan import Manner
from scrapy_focus.lab.sites.news.site import NewsSite
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.web.mime import blocked_extensions

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Sequence

    from manyhosts.web import WebPage

MANIFEST = Path(__file__).parent / "dataset.json"
TOPIC = "beekeeping"
ENTITY = "Recipe"

_ROOT = "http://site.example/"
_ENTRIES = ("http://example/", "http://test/")  # entry pages of a web: the roots say which hosts belong to it
_WEB_SEEDS = 20  # pages to which these link
_PAGES = 2_000  # of a web
_DAYS = 3.0  # of a news site


class Entry(NamedTuple):
    """One recording of the data set."""

    name: str
    seed: int
    what: str  # one sentence
    write: Callable[[Path], dict[str, str]]  # makes the file; returns labels by URL, where a recording has no truth


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What the manifest says of one recording."""

    name: str
    seed: int
    what: str
    pages: int  # URLs with an answer
    targets: int  # data files, or labelled pages
    bytes: int  # of all bodies, as a crawl receives them
    sha256: str  # of the content


def entries() -> list[Entry]:
    """Return all recordings, the smallest first."""
    portals = [_portal("small", 200, seed) for seed in range(3)] + [_portal("large", 2_000, seed) for seed in range(3)]
    profiles = [_profile(name, scale) for name, scale in (("cnis", 0.2), ("justice", 0.05), ("nces", 0.01))]
    return [*portals, *profiles, *map(_news, range(2)), *map(_topic_web, range(2)), *map(_structured_web, range(2))]


def _portal(size: str, pages: int, seed: int) -> Entry:
    def write(path: Path) -> dict[str, str]:
        record_site(StatisticsPortal(pages=pages, seed=seed, endless=False), path, root=_ROOT)
        return {}

    return Entry(
        f"portal-{size}-{seed}", seed, f"A statistics portal of about {pages:,} pages in three languages", write
    )


def _profile(name: str, scale: float) -> Entry:
    def write(path: Path) -> dict[str, str]:
        record_site(ProfileSite(PROFILES[name], scale=scale, seed=0), path, root=_ROOT)
        return {}

    what = f"A site with the proportions of {name} in the SB-CLASSIFIER paper, at scale {scale:g}"
    return Entry(f"profile-{name}-0", 0, what, write)


def _news(seed: int) -> Entry:
    def write(path: Path) -> dict[str, str]:
        site = NewsSite(
            Manner(per_hour=2.0, sections=8, topics=32, archive=600), seed=seed, days=_DAYS, clock=lambda: 0.0
        )
        with SiteWriter(path, roots=[_ROOT], bodies=True, source=f"NewsSite, seed {seed}") as writer:
            for version in site.versions():
                page = version.page
                headers = {"Content-Type": f"{page.mime}; charset=utf-8"}
                headers |= {"ETag": f'"{page.etag}"'} if page.etag else {}
                headers |= {"Last-Modified": formatdate(page.modified, usegmt=True)} if page.modified else {}
                writer.add(
                    Answer(
                        url=urljoin(_ROOT, version.path), status=page.status, headers=headers, body=page.body,
                        since=version.since,
                    )
                )  # fmt: skip
            writer.finish()
        return {urljoin(_ROOT, born.path): "article" for born in site.born(-np.inf, np.inf)}

    return Entry(
        f"news-{seed}", seed, f"A news site that changes for {_DAYS:g} days, with all versions of its pages", write
    )


def _topic_web(seed: int) -> Entry:
    def write(path: Path) -> dict[str, str]:
        web = MadeUpWeb(seed=seed, hosts=3_000)
        return _write_web(path, web, lambda page: TOPIC if TOPIC in page.topics else "")

    return Entry(f"topic-web-{seed}", seed, f"Pages of 3,000 hosts around the topic {TOPIC}, breadth-first", write)


def _structured_web(seed: int) -> Entry:
    def write(path: Path) -> dict[str, str]:
        web = MadeUpWeb(seed=seed, hosts=3_000, markup="2022", pages=60_000)
        return _write_web(path, web, lambda page: ENTITY if ENTITY in page.entities else "")

    what = "Pages of 3,000 hosts with JSON-LD and microdata in the shares of 2022, breadth-first"
    return Entry(f"structured-web-{seed}", seed, what, write)


def _write_web(path: Path, web: MadeUpWeb, label: Callable[[WebPage], str]) -> dict[str, str]:
    """Record the first pages of a web, and return the labels of those that have one."""
    labels = {}
    with SiteWriter(path, roots=_ENTRIES, bodies=True, source=repr(web)) as writer:
        seeds = web.seeds(TOPIC, _WEB_SEEDS, np.random.default_rng(web.seed))
        for entry in _ENTRIES:
            suffix = f".{urlsplit(entry).hostname}"
            here = [url for url in seeds if (urlsplit(url).hostname or "").endswith(suffix)]
            links = "".join(f'<li><a href="{escape(url)}">{escape(url)}</a>' for url in here)
            html = f"<!DOCTYPE html><title>Entry</title><ul>{links}</ul>".encode()
            writer.add(Answer(url=entry, status=200, headers={"Content-Type": "text/html; charset=utf-8"}, body=html))
        for url in islice(writer.missing(), _PAGES):
            page = web.page(url)
            if page.error and not page.status:
                writer.add(Answer(url=url, error=page.error))
                continue
            body = page.html.encode()
            writer.add(Answer(url=url, status=page.status, headers=dict(page.headers), body=body, seconds=page.seconds))
            if page.status == 200 and (said := label(page)):
                labels[url] = said
    return labels


def make(entry: Entry, folder: Path) -> Row:
    """Make one recording, with ``NAME.labels.csv`` beside it where it has labels, and return what it is."""
    folder.mkdir(parents=True, exist_ok=True)
    path = path_of(entry.name, folder)
    unfinished = path.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    labels = entry.write(unfinished)
    unfinished.replace(path)
    if labels:
        with path.with_suffix(".labels.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("url", "label"), *sorted(labels.items())])
    return measure(entry, folder)


def measure(entry: Entry, folder: Path) -> Row:
    """Return what the recording of an entry is, from its file."""
    path = path_of(entry.name, folder)
    with closing(RecordedSite(path)) as site:
        recorded = np.flatnonzero(site.recorded)
        pages, size = len(recorded), int(site.size[recorded].sum())
        labels = path.with_suffix(".labels.csv")
        targets = sum(1 for _ in labels.open(encoding="utf-8")) - 1 if labels.exists() else _files_of(site)
    return Row(
        name=entry.name, seed=entry.seed, what=entry.what, pages=pages, targets=targets, bytes=size, sha256=content_sum(path)
    )  # fmt: skip


def _files_of(site: RecordedSite) -> int:
    goal = FilesGoal()
    return int(SiteTruth(site, goal, ignored=blocked_extensions(goal.types)).exhaustive.worth)


def path_of(name: str, folder: Path) -> Path:
    """Return the file of a recording."""
    return folder / f"{name}.sqlite"


def content_sum(path: Path) -> str:
    """Return the SHA-256 of what a recording contains: answers, bodies and links, of all versions."""
    made = hashlib.sha256()
    database = open_recording(path, writable=False)
    with closing(database):
        for row in _content(database):
            made.update(json.dumps(row, ensure_ascii=True, separators=(",", ":")).encode() + b"\n")
    return made.hexdigest()


def _content(database: sqlite3.Connection) -> Iterator[list[Any]]:
    """Yield the rows of a recording in a fixed order: URLs and texts in place of their numbers."""
    yield ["roots", *json.loads(database.execute("SELECT value FROM meta WHERE name = 'roots'").fetchone()[0])]
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    yield from _answers(database, "pages", "page.url", "links")
    if "versions" in tables:
        starts = "SELECT pages.url, begins.since FROM begins JOIN pages ON pages.id = begins.page ORDER BY pages.url"
        yield from (["begins", *row] for row in database.execute(starts))
        yield from _answers(database, "versions", "owner.url, page.since", "version_links")


def _answers(database: sqlite3.Connection, table: str, key: str, links: str) -> Iterator[list[Any]]:
    owner = "JOIN pages AS owner ON owner.id = page.page" if table == "versions" else ""
    question = f"""
        SELECT {key}, page.status, page.error, page.mime, page.size, round(page.seconds, 6), leads.url, heads.text,
            page.body, page.id
        FROM {table} AS page {owner} LEFT JOIN pages AS leads ON leads.id = page.redirect
            JOIN texts AS heads ON heads.id = page.headers
        ORDER BY {key}"""
    for *values, body, number in database.execute(question):
        content = None if body is None else hashlib.sha256(zlib.decompress(body)).hexdigest()
        yield [table, *values, content]
        linked = database.execute(
            f"""
            SELECT link.position, target.url, path.text, anchor.text, context.text FROM {links} AS link
                JOIN pages AS target ON target.id = link.target JOIN texts AS path ON path.id = link.tag_path
                JOIN texts AS anchor ON anchor.id = link.anchor JOIN texts AS context ON context.id = link.context
            WHERE link.source = ? ORDER BY link.position""",
            (number,),
        )
        yield from (["link", *row] for row in linked)


def read_manifest() -> dict[str, Row]:
    """Return what the manifest says, by name."""
    rows = json.loads(MANIFEST.read_text(encoding="utf-8"))["recordings"] if MANIFEST.exists() else []
    return {row["name"]: Row(**row) for row in rows}


def write_manifest(rows: Sequence[Row]) -> None:
    """Write what the data set is."""
    data = {"format": "scrapy_focus data set", "version": 1, "recordings": [asdict(row) for row in rows]}
    write_atomically(MANIFEST, (json.dumps(data, indent=1) + "\n").encode())


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line, see the module's docstring."""
    known = {entry.name: entry for entry in entries()}
    parser = argparse.ArgumentParser(description="Recordings of synthetic sites, the same on every machine.")
    parser.add_argument("names", metavar="NAME", nargs="*", help="default: all")
    parser.add_argument("--out", type=Path, default=Path("dataset"), help="folder of the recordings (default dataset)")
    parser.add_argument("--list", action="store_true", help="list the recordings, and do nothing else")
    parser.add_argument("--verify", action="store_true", help="make nothing; compare the files with the manifest")
    parser.add_argument("--update", action="store_true", help="write what was made into the manifest")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"there is no recording {unknown[0]}; there are {', '.join(known)}")
    expected, differ = read_manifest(), 0
    for name in options.names or known:
        if options.list:
            print(f"{name}: {known[name].what}")
            continue
        if options.verify and not path_of(name, options.out).exists():
            print(f"{name}: not made", flush=True)
            differ += 1
            continue
        row = measure(known[name], options.out) if options.verify else make(known[name], options.out)
        is_same = expected.get(name) == row
        differ += not (is_same or options.update)
        expected[name] = row
        size = f"{row.pages:,} pages, {row.targets:,} targets, {row.bytes / 1e6:.1f} MB"
        print(f"{name}: {size}, {'as in the manifest' if is_same else 'differs from the manifest'}", flush=True)
    if options.update:
        write_manifest([expected[name] for name in known if name in expected])
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
