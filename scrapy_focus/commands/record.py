"""``scrapy focus-record``: a web site in one file, from the site itself or from what somebody has of it."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy import signals
from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.utils.conf import arglist_to_dict

from scrapy_focus.core.errors import FocusError, RecordingError

if TYPE_CHECKING:
    import argparse

    from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
    from scrapy.settings import Settings

    from scrapy_focus.recordings.format import Completeness
    from scrapy_focus.recordings.writer import SiteWriter

_SOURCES = ("folder", "warc", "httpcache", "portal")
_TYPES = 10  # MIME types that --info lists
_SILENT = "no response"
_CHATTY = ("scrapy.addons", "scrapy.crawler", "scrapy.middleware")  # loggers

# What a project has set up for its own spiders must not change what is recorded.
_FORCED: dict[str, Any] = {
    "ADDONS": {},
    "DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter",
    "EXTENSIONS": {"scrapy.extensions.logstats.LogStats": None},
    "FEEDS": {},
    "ITEM_PIPELINES": {},
    "JOBDIR": None,
    "SCHEDULER": "scrapy.core.scheduler.Scheduler",
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
    "SPIDER_MIDDLEWARES": {
        "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
        "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
    },
    "SPIDER_MODULES": [],
}


class RecordCommand(ScrapyCommand):
    """Records a web site into a file in which policies are compared."""

    settings: Settings  # set before process_options()
    crawler_process: AsyncCrawlerProcess | CrawlerProcess  # set before run()
    default_settings = {
        "CONCURRENT_ITEMS": 4,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "COOKIES_ENABLED": False,  # or an answer would depend on those before it
        "DOWNLOAD_DELAY": 1,
        "LOG_LEVEL": "INFO",
        "LOG_VERSIONS": [],
        "REMOTE_CONTROL_ENABLED": False,
        "ROBOTSTXT_OBEY": True,
        "STATS_DUMP": False,
        "TELNETCONSOLE_ENABLED": False,
    }

    def syntax(self) -> str:
        return "SITE.sqlite -a root=URL [options]"

    def short_desc(self) -> str:
        return "Record a web site into one file, to compare policies on it"

    def long_desc(self) -> str:
        return (
            "Record a web site into SITE.sqlite: what each of its URLs answers, and which links stand where. It is crawled "
            "breadth-first, politely, unless another source is named. It may be stopped at any time (Ctrl-C, or even kill "
            "-9); the same command goes on from there."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "-a", dest="spargs", action="append", default=[], metavar="root=URL",
            help="where the site starts; several URLs are separated by commas",
        )  # fmt: skip
        parser.add_argument("--limit", metavar="N", help="stop after N more URLs; the same command goes on from there")
        parser.add_argument("--bodies", action="store_true", help="keep the text of pages, for goals that read it")
        parser.add_argument(
            "--no-files", action="store_true",
            help="download pages only, and take the size of anything else from its headers; copies of a file then count "
            "as different files",
        )  # fmt: skip
        parser.add_argument("--info", action="store_true", help="say what SITE.sqlite holds, and do nothing else")
        sources = parser.add_argument_group("Sources other than the site itself, one of")
        sources.add_argument(
            "--folder", metavar="DIR", help="files of a site, as wget --mirror --adjust-extension writes them"
        )
        sources.add_argument("--warc", metavar="FILE", nargs="+", action="extend", help="web archive files")
        sources.add_argument("--httpcache", metavar="DIR", help="Scrapy's HTTP cache, the folder of one spider")
        sources.add_argument(
            "--portal", metavar="PAGES", help="the made-up portal that comes with scrapy_focus, to try things out"
        )

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        if unknown := [word for word in args if word.startswith("-")]:
            raise UsageError(f"there is no option {unknown[0]}; scrapy focus-record -h lists those that there are")
        if len(args) != 1:
            raise UsageError(
                f"name one file to record into, first of all: scrapy focus-record SITE.sqlite ...; got {' '.join(args) or 'none'}"
            )
        self._check_sources(args[0], opts)
        self.requires_crawler_process = not opts.info and opts.source is None
        for name, value in _FORCED.items():
            if (self.settings.getpriority(name) or 0) < SETTINGS_PRIORITIES["cmdline"]:
                self.settings.set(name, value, "cmdline")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        try:
            if opts.info:
                print(describe(Path(args[0])))
            elif opts.source is None:
                self._record_live(Path(args[0]), opts)
            else:
                self._record_other(Path(args[0]), opts)
        except FocusError as error:
            print(f"Error: {error}", file=sys.stderr)
            self.exitcode = 1

    def _check_sources(self, path: str, opts: argparse.Namespace) -> None:
        """Check what belongs together, and set ``opts.roots`` and ``opts.source``."""
        try:
            given = arglist_to_dict(opts.spargs)
        except ValueError:
            raise UsageError("-a takes NAME=VALUE: -a root=https://example.org/") from None
        roots = [url.strip() for url in given.pop("root", "").split(",") if url.strip()]
        if given:
            raise UsageError(f"there is no argument {', '.join(given)}; there is root: -a root=https://example.org/")
        if wrong := [url for url in roots if not _is_root(url)]:
            raise UsageError(f"root is {wrong[0]!r}; give the URL of the first page: -a root=https://example.org/")
        named = [name for name in _SOURCES if getattr(opts, name) is not None]
        if len(named) > 1:
            raise UsageError(f"--{' and --'.join(named)} are different sources; name one")
        for name in ("limit", "portal"):
            value = getattr(opts, name)
            if value is not None and not (value.isdecimal() and int(value) > 0):
                raise UsageError(f"--{name} is {value!r}; it takes a number from 1")
        opts.roots, opts.source = roots, named[0] if named else None
        if opts.info:
            if roots or named:
                raise UsageError("--info says what a recording holds, and takes nothing but its name")
        elif opts.source in ("folder", "portal") and len(roots) > 1:
            raise UsageError(f"--{opts.source} takes one root; got {len(roots)}")
        elif opts.source is None and not roots and not Path(path).exists():
            raise UsageError(f"say where the site starts: scrapy focus-record {path} -a root=https://example.org/")
        elif opts.source is not None and (opts.limit or opts.no_files):
            raise UsageError(f"--limit and --no-files are for recording a live site, and --{opts.source} is none")

    def _record_live(self, path: Path, opts: argparse.Namespace) -> None:
        from scrapy_focus.recordings.writer import SiteWriter

        known = path.exists()
        roots = opts.roots or roots_of(path)
        with SiteWriter(path, roots=roots, bodies=opts.bodies, source=_source("the live site")) as writer:
            done = writer.completeness()
            if not known:
                print(f"Recording {', '.join(roots)} into {path}", flush=True)
            elif done.missing:
                print(f"Going on with {path}: {done}", flush=True)
            reason = self._crawl(writer, opts) if done.missing else "finished"
            done = writer.completeness()
            if not done.missing:
                done = writer.finish()
        print(f"{path}: {done}")
        if not done.missing:
            print(_next_step(path) if done.recorded > len(roots) else _only_roots(path))
            return
        why = f"after {opts.limit} URLs" if opts.limit and reason == "finished" else f"({reason})"
        print(f"Stopped {why}; the same command goes on from there.")
        self.exitcode = 130 if reason in ("shutdown", "killed") else int(reason.startswith(_SILENT))

    def _crawl(self, writer: SiteWriter, opts: argparse.Namespace) -> str:
        """Ask for what is missing, and return the reason for which Scrapy stopped."""
        from scrapy_focus.spiders.recorder import RecordSpider

        if not opts.loglevel:
            _say_little()
        crawler = self.crawler_process.create_crawler(RecordSpider)
        crawler.signals.connect(_say_all, signals.spider_opened)
        limit = int(opts.limit) if opts.limit else None
        self.crawler_process.crawl(crawler, writer=writer, limit=limit, files=not opts.no_files)
        try:
            self.crawler_process.start()
        finally:
            spider = crawler.spider
            if isinstance(spider, RecordSpider) and spider.progress is not None:
                spider.progress.spider_closed()  # a second Ctrl-C leaves that out
        if not isinstance(spider, RecordSpider) or self.crawler_process.bootstrap_failed:
            raise RecordingError("the crawl did not start; the log says why")
        if spider.error is not None:
            raise spider.error
        if spider.silence:
            return f"{_SILENT}: {spider.silence}"
        return str(crawler.stats.get_value("finish_reason", "killed"))

    def _record_other(self, path: Path, opts: argparse.Namespace) -> None:
        from rich.console import Console

        record = getattr(self, f"_record_{opts.source}")
        root = opts.roots[0] if opts.roots else None
        with Console(stderr=True).status(f"Recording {path}") as status:
            done = record(
                getattr(opts, opts.source), path, root=root, bodies=opts.bodies,
                progress=lambda added: status.update(f"Recording {path}: {added:,} URLs"),
            )  # fmt: skip
        print(f"{path}: {done}")
        print(_next_step(path))

    def _record_folder(self, folder: str, path: Path, **how: Any) -> Completeness:
        from scrapy_focus.recordings.importers.folder import record_folder

        return record_folder(folder, path, **how)

    def _record_warc(self, files: list[str], path: Path, **how: Any) -> Completeness:
        from scrapy_focus.recordings.importers.warc import record_warc

        return record_warc(files, path, **how)

    def _record_httpcache(self, folder: str, path: Path, **how: Any) -> Completeness:
        from scrapy_focus.recordings.importers.httpcache import record_http_cache

        return record_http_cache(folder, path, **how)

    def _record_portal(self, pages: str, path: Path, *, root: str | None, **how: Any) -> Completeness:
        from scrapy_focus.recordings.importers.folder import record_site
        from scrapy_focus.sites.portal.portal import StatisticsPortal

        try:
            portal = StatisticsPortal(pages=int(pages), endless=False)
        except ValueError as error:
            raise UsageError(str(error), print_help=False) from error
        return record_site(portal, path, root=root or "http://portal.example/", **how)


def roots_of(path: Path) -> list[str]:
    """Return where the site of a recording starts."""
    import json

    from scrapy_focus.recordings.format import open_recording

    database = open_recording(path, writable=False)
    try:
        roots: list[str] = json.loads(database.execute("SELECT value FROM meta WHERE name = 'roots'").fetchone()[0])
    finally:
        database.close()
    return roots


def describe(path: Path) -> str:
    """Say what a recording holds.

    Raises
    ------
    RecordingError
        If it cannot be read.
    """
    from collections import Counter

    import numpy as np

    from scrapy_focus.recordings.format import REDIRECTING, RecordedSite

    site = RecordedSite(path)
    status, pages = site.status, np.array(["html" in mime for mime in site.mimes], np.bool_)
    well = (status >= 200) & (status < 300)
    redirects = np.isin(status, REDIRECTING)
    forbidden = sum(error == "ignored" for error in site.errors.values())
    kinds = {
        "pages": int((well & pages).sum()),
        "files": int((well & ~pages).sum()),
        "redirects": int(redirects.sum()),
        "other statuses": int(((status > 0) & ~well & ~redirects).sum()),
        "not to be asked for": forbidden,
        "without response": len(site.errors) - forbidden,
    }
    types: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for page in np.flatnonzero(well).tolist():
        mime = site.mimes[page] or "(no type)"
        types[mime] += 1
        sizes[mime] += int(site.size[page])
    rows = [
        ("made from", site.meta.get("source") or "unknown"),
        ("starts at", ", ".join(site.meta["roots"])),
        ("complete", str(site.completeness())),
        ("URLs", ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if count) or "none"),
        ("links", f"{len(site.targets):,}"),
        ("deepest", f"{int(site.depth.max())} clicks" if site.meta.get("finished") else "known when it is finished"),
        ("file", f"{path.stat().st_size / 1e6:,.1f} MB"),
    ]
    site.close()
    lines = [f"{path}", *(f"  {name:<10} {text}" for name, text in rows)]
    if types:
        lines.append("  types           URLs           MB")
    lines += [f"  {count:>18,} {sizes[mime] / 1e6:>12,.1f}  {mime}" for mime, count in types.most_common(_TYPES)]
    if len(types) > _TYPES:
        lines.append(f"    and {len(types) - _TYPES} more")
    return "\n".join(lines)


def _say_little() -> None:
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


def _say_all() -> None:
    """From now on: Scrapy says at a Ctrl-C what it waits for, and that another one ends it at once."""
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.NOTSET)


def _is_root(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def _next_step(path: Path) -> str:
    return f"Next: scrapy focus-compare {path}"


def _only_roots(path: Path) -> str:
    """Say why a recording is so small."""
    from scrapy_focus.recordings.format import RecordedSite

    site = RecordedSite(path)
    said = []
    for page in site.roots:
        location = site.headers(page).get("Location")
        answer = f"answered {site.status[page]}" + (f" and leads to {location}" if location else "")
        error = site.errors.get(page)
        if error is not None:
            answer = "is forbidden by robots.txt" if error == "ignored" else f"gave no response ({error})"
        said.append(f"{site.urls[page]} {answer}")
    site.close()
    return f"There is no link to go on with: {'; '.join(said)}. Start at another URL, into another file."


def _source(what: str) -> str:
    from scrapy_focus import __version__

    return f"{what}, {datetime.now(UTC):%Y-%m-%d}, scrapy_focus {__version__}"
