"""``focus record``: a web site in one file, from the live site or from an archive."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy import signals
from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.utils.conf import arglist_to_dict

from scrapy_focus.core.errors import ConfigError, RecordingError
from scrapy_focus.core.printable import counted
from scrapy_focus.finders.kit.arguments.credentials import take_credentials
from scrapy_focus.finders.kit.arguments.seeds import starts_in
from scrapy_focus.finders.kit.commands.base import FocusCommand, make, read_numbers, say

if TYPE_CHECKING:
    import argparse

    from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
    from scrapy.settings import Settings

    from scrapy_focus.lab.recordings.format import Completeness
    from scrapy_focus.lab.recordings.importers.base import Importer
    from scrapy_focus.lab.recordings.writer import SiteWriter

# Importers that have an option.
_IMPORTERS = {
    "folder": "scrapy_focus.lab.recordings.importers.folder.FolderImporter",
    "warc": "scrapy_focus.lab.recordings.importers.warc.WarcImporter",
    "httpcache": "scrapy_focus.lab.recordings.importers.httpcache.HttpCacheImporter",
    "portal": "scrapy_focus.lab.recordings.importers.portal.PortalImporter",
}
_SILENT = "no response"
_CHATTY = ("scrapy.addons", "scrapy.crawler", "scrapy.middleware")  # loggers

# Settings of a project for its own spiders must not change the recording.
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


class _Source(NamedTuple):
    """The source of a recording that is not of a live site."""

    option: str  # as the user wrote it
    path: str  # import path of the importer
    sources: list[str]  # arguments of the importer


class RecordCommand(FocusCommand):
    """Records a web site into a file, for comparing policies on it."""

    command = "focus-record"
    arguments = "SITE.sqlite -a root=URL [options]"
    summary = "Record a web site into one file, to compare policies on it"
    details = (
        "Record a web site into SITE.sqlite: what each of its URLs answers, and where its links are. It is crawled "
        "breadth-first, politely, unless another source is named. It may be stopped at any time (Ctrl-C, or even kill "
        "-9); the same command resumes there."
    )
    settings: Settings  # set before process_options()
    crawler_process: AsyncCrawlerProcess | CrawlerProcess  # set before run()
    default_settings = {
        "CONCURRENT_ITEMS": 4,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "COOKIES_ENABLED": False,  # or an answer would depend on earlier ones
        "DOWNLOAD_DELAY": 1,
        "FOCUS_MAX_INFLATION": 100,
        "FOCUS_PUBLIC_ONLY": True,
        "LOG_LEVEL": "INFO",
        "LOG_VERSIONS": [],
        "REMOTE_CONTROL_ENABLED": False,
        "ROBOTSTXT_OBEY": True,
        "STATS_DUMP": False,
        "TELNETCONSOLE_ENABLED": False,
    }

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "-a", dest="spargs", action="append", default=[], metavar="root=URL",
            help="where the site starts: URLs separated by commas, or a file with one URL per line (-: standard input)",
        )  # fmt: skip
        parser.add_argument("--limit", metavar="N", help="stop after N more URLs; the same command resumes there")
        parser.add_argument("--bodies", action="store_true", help="keep the text of pages, for goals that read it")
        parser.add_argument(
            "--no-files", action="store_true",
            help="download pages only, and take the size of anything else from its headers; copies of a file "
            "then count as different files",
        )  # fmt: skip
        parser.add_argument(
            "--render", action="store_true",
            help="record pages with scripts as they are and as a browser shows them; needs scrapy-playwright",
        )  # fmt: skip
        parser.add_argument("--render-pages", metavar="N", help="render N pages at most; implies --render")
        parser.add_argument("--info", action="store_true", help="show what SITE.sqlite holds, and do nothing else")
        parser.add_argument(
            "--verify", action="store_true",
            help="compare SITE.sqlite with the checksums in it, and do nothing else; status 1 if it changed",
        )  # fmt: skip
        sources = parser.add_argument_group("Sources other than the site itself, one of")
        sources.add_argument(
            "--folder", metavar="DIR", help="files of a site, as wget --mirror --adjust-extension writes them"
        )
        sources.add_argument("--warc", metavar="FILE", nargs="+", action="extend", help="web archive files")
        sources.add_argument("--httpcache", metavar="DIR", help="Scrapy's HTTP cache, the folder of one spider")
        sources.add_argument(
            "--portal", metavar="PAGES", help="the synthetic portal that comes with scrapy_focus, to try things out"
        )
        sources.add_argument(
            "--importer", metavar=("PATH", "SOURCE"), nargs="+",
            help="anything else: import path of an importer (myproject.importers.HarImporter), and what it reads",
        )  # fmt: skip

    def check(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError(
                "name one file to record into, first of all: focus record SITE.sqlite ...; got "
                f"{' '.join(args) or 'none'}"
            )
        self._check_sources(args[0], opts)
        self.requires_crawler_process = not (opts.info or opts.verify) and opts.source is None
        for name, value in _FORCED.items():
            if (self.settings.getpriority(name) or 0) < SETTINGS_PRIORITIES["cmdline"]:
                self.settings.set(name, value, "cmdline")
        if self.requires_crawler_process:
            self._set_up_crawl(render=opts.render)

    def _set_up_crawl(self, *, render: bool) -> None:
        """Let requests pass the add-on's components, and a browser if pages are to be rendered."""
        from scrapy_focus.addon import Addon
        from scrapy_focus.downloadermiddlewares import PublicOnlyMiddleware, replace_stock
        from scrapy_focus.finders.kit.spiders.private_headers import PrivateHeaders

        for cls, order in ((PublicOnlyMiddleware, 940), (PrivateHeaders, 955)):
            self.settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", cls, order)
        Addon.update_pre_crawler_settings(self.settings)
        replace_stock(self.settings)
        if render:
            self._set_browser()

    def _set_browser(self) -> None:
        """Let a browser answer the requests to be rendered."""
        from scrapy_focus.engine.browser.found import browser_of, set_browser
        from scrapy_focus.lab.spiders.rendering import RecordedBrowser

        self.settings.set("TWISTED_REACTOR_ENABLED", True, "cmdline")  # which scrapy-playwright needs
        set_browser(self.settings)
        if not (browser := browser_of(self.settings)):
            raise UsageError(f"--render needs a browser: {browser.reason}", print_help=False)
        self.settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", RecordedBrowser, 950)

    def work(self, args: list[str], opts: argparse.Namespace) -> int:
        path = Path(args[0])
        if opts.info:
            from scrapy_focus.lab.recordings.summary import describe

            say(*describe(path).split("\n"))
        if opts.verify:
            from scrapy_focus.lab.recordings.checksums import verify

            say(f"{path}: {verify(path)}")
        if opts.info or opts.verify:
            return 0
        if opts.source is not None:
            _import(opts.source, path, opts)
            return 0
        return self._record_live(path, opts)

    def _check_sources(self, path: str, opts: argparse.Namespace) -> None:
        """Check the combination of arguments, and set ``opts.roots`` and ``opts.source``."""
        roots = _roots_in(opts.spargs)
        read_numbers(opts, "limit", "portal", "render_pages")
        opts.render = opts.render or opts.render_pages is not None
        named = [name for name in (*_IMPORTERS, "importer") if getattr(opts, name) is not None]
        if len(named) > 1:
            raise UsageError(f"--{' and --'.join(named)} are different sources; name one")
        opts.roots, opts.credentials = take_credentials(roots)
        opts.source = None
        if named:
            opts.source = _source_of(named[0], getattr(opts, named[0]))
        if opts.info or opts.verify:
            _check_alone(opts)
        elif named:
            _check_import(named[0], opts)
        elif not roots and not Path(path).exists():
            raise UsageError(f"say where the site starts: focus record {path} -a root=https://example.org/")

    def _record_live(self, path: Path, opts: argparse.Namespace) -> int:
        from scrapy_focus.lab.recordings.format import roots_of
        from scrapy_focus.lab.recordings.writer import SiteWriter

        known = path.exists()
        roots = opts.roots or roots_of(path)
        source = _source("the live site")
        with SiteWriter(path, roots=roots, bodies=opts.bodies, renderings=opts.render, source=source) as writer:
            done = writer.completeness()
            if not known:
                say(f"Recording {', '.join(roots)} into {path}")
            elif not _is_done(done, opts):
                say(f"Resuming {path}: {done}")
            reason = "finished" if _is_done(done, opts) else self._crawl(writer, opts)
            done = writer.completeness()
            if _is_done(done, opts):
                done = writer.finish()
        say(f"{path}: {done}")
        if _is_done(done, opts):
            say(*(_advice(path) if done.recorded > len(roots) else [_only_roots(path)]))
            return 0
        return _say_stopped(reason, opts.limit)

    def _crawl(self, writer: SiteWriter, opts: argparse.Namespace) -> str:
        """Request what is missing, and return the reason why Scrapy stopped."""
        from scrapy_focus.lab.spiders.recorder import RecordSpider

        if not opts.loglevel:
            _say_little()
        crawler = self.crawler_process.create_crawler(RecordSpider)
        crawler.signals.connect(_say_all, signals.spider_opened)
        left = _left_to_render(writer.completeness(), opts)
        self.crawler_process.crawl(
            crawler, writer=writer, limit=opts.limit, files=not opts.no_files, renderings=left,
            credentials=opts.credentials,
        )  # fmt: skip
        try:
            self.crawler_process.start()
        finally:
            spider = crawler.spider
            if isinstance(spider, RecordSpider) and spider.progress is not None:
                spider.progress.spider_closed()  # a second Ctrl-C skips that
        if not isinstance(spider, RecordSpider) or self.crawler_process.bootstrap_failed:
            raise RecordingError("the crawl did not start; the log says why")
        if spider.error is not None:
            raise spider.error
        if spider.silence:
            return f"{_SILENT}: {spider.silence}"
        return str(crawler.stats.get_value("finish_reason", "killed"))


def _say_stopped(reason: str, limit: int | None) -> int:
    """Explain why a recording is incomplete, and return the exit status."""
    why = f"({reason})"
    if limit and reason == "finished":
        why = f"after {counted(limit, 'URL')}"
    say(f"Stopped {why}; the same command resumes there.")
    if reason in ("shutdown", "killed"):
        return 130
    return int(reason.startswith(_SILENT))


def _roots_in(arguments: list[str]) -> list[str]:
    """Return the URLs of ``-a root=...``."""
    try:
        given = arglist_to_dict(arguments)
    except ValueError:
        raise UsageError("-a takes NAME=VALUE: -a root=https://example.org/") from None
    root = given.pop("root", "")
    if given:
        raise UsageError(f"there is no argument {', '.join(given)}; the only one is root: -a root=https://example.org/")
    return starts_in(root, "root", "give the URL of the first page: -a root=https://example.org/") if root else []


def _check_alone(opts: argparse.Namespace) -> None:
    """Check that an option that only reads a recording has no arguments for recording."""
    if opts.roots or opts.source is not None:
        option = "--info" if opts.info else "--verify"
        raise UsageError(f"{option} says what a recording holds, and takes nothing but its name")


def _check_import(option: str, opts: argparse.Namespace) -> None:
    """Check that an importer gets no more arguments than it uses."""
    if len(opts.roots) > 1:
        raise UsageError(f"--{option} takes one root; got {len(opts.roots)}")
    if opts.limit or opts.no_files or opts.render:
        raise UsageError(f"--limit, --no-files and --render are for recording a live site, which --{option} is not")


def _left_to_render(done: Completeness, opts: argparse.Namespace) -> int | None:
    """Return how many pages may still be rendered; ``None``: no limit."""
    if not opts.render:
        return 0
    most: int | None = opts.render_pages
    if most is None:
        return None
    return max(0, most - done.rendered)


def _is_done(done: Completeness, opts: argparse.Namespace) -> bool:
    """Whether nothing is left to request."""
    return not done.missing and (not done.unrendered or _left_to_render(done, opts) == 0)


def _source_of(option: str, given: str | int | list[str]) -> _Source:
    sources = given if isinstance(given, list) else [str(given)]
    if option == "importer":
        return _Source(f"--importer {sources[0]}", sources[0], sources[1:])
    return _Source(f"--{option} {' '.join(sources)}", _IMPORTERS[option], sources)


def _import(source: _Source, path: Path, opts: argparse.Namespace) -> None:
    """Record the answers of an importer."""
    from rich.console import Console

    from scrapy_focus.lab.recordings.importers.base import record

    try:
        importer: Importer = make(source.option, source.path, *source.sources)
    except ConfigError as error:
        raise UsageError(str(error), print_help=False) from error
    if lacking := [name for name in ("source", "find_root", "answers") if not hasattr(importer, name)]:
        raise UsageError(
            f"{source.option} makes a {type(importer).__name__}, which is not an importer, as it has no "
            f"{' and no '.join(lacking)}; "
            "name a subclass of scrapy_focus.lab.recordings.importers.base.Archive, or a class with the members of "
            "Importer",
            print_help=False,
        )
    _check_source(path, importer.source)
    root = opts.roots[0] if opts.roots else None
    with Console(stderr=True).status(f"Recording {path}") as status:
        done = record(
            importer, path, root=root, bodies=opts.bodies,
            progress=lambda added: status.update(f"Recording {path}: {added:,} URLs"),
        )  # fmt: skip
    say(f"{path}: {done}", *_advice(path))


def _check_source(path: Path, source: str) -> None:
    """Raise ``UsageError`` if a file holds a recording of another source: nothing would be read of this one."""
    if not path.exists():
        return
    from scrapy_focus.lab.recordings.importers.base import other_source

    if held := other_source(path, source):
        raise UsageError(f"{path} holds {held}, not {source}; name another file", print_help=False)


def _say_little() -> None:
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


def _say_all() -> None:
    """Make Scrapy explain at a Ctrl-C what it waits for, and that another one ends it at once."""
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.NOTSET)


def _advice(path: Path) -> list[str]:
    """Suggest what to do next, or warn that the root seems to be wrong."""
    from scrapy_focus.lab.recordings.roots import doubt_of

    doubt = doubt_of(path)
    lines = []
    if doubt is not None:
        lines.append(f"Warning: {doubt}")
    if doubt is None or not doubt.root:
        lines.append(f"Next: focus compare {path}")
    return lines


def _only_roots(path: Path) -> str:
    """Explain why a recording is so small."""
    from scrapy_focus.lab.recordings.summary import explain_roots

    return f"There is no link to follow: {explain_roots(path)}. Start at another URL, into another file."


def _source(what: str) -> str:
    from scrapy_focus import __version__

    return f"{what}, {datetime.now(UTC):%Y-%m-%d}, scrapy_focus {__version__}"
