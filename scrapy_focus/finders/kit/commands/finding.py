"""What the commands have in common that are given a URL and leave a folder with what they found.

A command of a further system names its spider, what it is given, and what it looks for; the rest is here: polite
settings where a project says nothing, the folder with the job that resumes, what is said first, and the exit status.
"""

from __future__ import annotations

import mimetypes
import re
import sys
from abc import abstractmethod
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from urllib.parse import urlsplit

from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES

from scrapy_focus.core.printable import brief
from scrapy_focus.finders.kit.commands.base import FocusCommand, called, one_line
from scrapy_focus.finders.kit.spiders import polite
from scrapy_focus.web.linkurls import hide_credentials

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

    from scrapy import Spider
    from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
    from scrapy.settings import Settings

    from scrapy_focus.finders.kit.arguments.argument import Called
    from scrapy_focus.finders.kit.arguments.finder_arguments import FinderArguments

#: What ``--out`` is for standard output.
PIPE = "-"

_LISTS = {  # what each command leaves in the folder of its crawl, and no command before it
    "focus-important": ".focus/graph.jsonl",
    "focus-structured": "entities.jsonl",
    "focus-watch": "news.jsonl",
    "focus-files": "manifest.jsonl",
    "focus-topic": "pages.jsonl",
}
_BARE = re.compile(r"([\w.-]+|\[[\da-fA-F:.]+\])(?::\d+)?(?:[/?#].*)?")  # a URL without a scheme
_HERE = re.compile(r"localhost|127\.[\d.]+|\[.*\]")
_SAID = {  # what a crawl says, by options
    "another JOBDIR": "another folder with --out",
    "a larger budget of requests": "a larger --budget",
    "as JOBDIR was not set": "as nothing is stored",
}
_QUIET = {"LOG_VERSIONS": [], "REMOTE_CONTROL_ENABLED": False, "STATS_DUMP": False, "TELNETCONSOLE_ENABLED": False}


class Plan(NamedTuple):
    """What a command is about to do."""

    given: dict[str, Any]  # the arguments of the spider, as texts
    asked: FinderArguments  # their values
    out: Path | None  # None: standard output
    state: str  # which crawl of the folder it is, "" for the first
    resumes: bool = False  # such a crawl
    goes_on: bool = False  # one that ended for a limit, and resumes
    again: bool = False  # the next crawl, whatever became of the last one

    @property
    def where(self) -> str:
        """The folder, and which crawl of it this is."""
        return f"{self.out} ({self.state})" if self.state else str(self.out)

    @property
    def job(self) -> Path | None:
        """The JOBDIR, in which a crawl that was interrupted resumes; none without a folder."""
        if self.out is None:
            return None
        return self.out / ".focus" / "job"


class FindCommand(FocusCommand):
    """A command that crawls from URLs on.

    The settings of a project count, and where there is none, or it says nothing,
    :mod:`scrapy_focus.spiders.polite`. The exit status is that of the ending of the crawl
    (:mod:`~scrapy_focus.engine.ending`).
    """

    crawls: ClassVar[bool] = True
    settings: Settings  # set before process_options()
    crawler_process: AsyncCrawlerProcess | CrawlerProcess  # set before run()
    default_settings = {name: value for name, value in vars(polite).items() if name.isupper()} | _QUIET

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        declared = self.takes().declared()
        declared.pop("budget").add_option("budget", parser)
        parser.add_argument(
            "--out", metavar="FOLDER", default=self.folder,
            help=f"folder for what is found (default {self.folder}); the same command with the same folder resumes a "
            f"crawl that was interrupted. -: store nothing, and print {self.prints}, one a line",
        )  # fmt: skip
        parser.add_argument("--dry-run", action="store_true", help="say what would be asked for, and send nothing")
        for name, each in declared.items():
            if each.help:
                each.add_option(name, parser)

    #: The name of the argument for the URLs to begin with.
    starts: ClassVar[str] = "root"
    #: The list that the crawl writes, in its folder.
    list_name: ClassVar[str]
    #: What a list of another crawl is called.
    results: ClassVar[str] = "results of another crawl"
    #: What resumes.
    noun: ClassVar[str] = "last crawl"
    #: What to say where no URL is given; the name of the command follows.
    asks_for_urls: ClassVar[str] = "where to start? Give a URL"
    #: Examples of arguments for that.
    example: ClassVar[str] = "https://example.org/"
    #: The folder where none is given.
    folder: ClassVar[str]
    #: What goes to standard output, where that is asked for.
    prints: ClassVar[str] = "the URLs that are found"

    def check(self, args: list[str], opts: argparse.Namespace) -> None:
        if not opts.out:
            raise UsageError("--out is ''; name a folder, or - for standard output")
        opts.plan = plan = self.plan(args, opts)
        if plan.out is not None:
            self._check_mine(plan.out)
            self._check_out(plan.out, dry=opts.dry_run)
            if plan.resumes:
                self._check_same(plan.out, plan.asked.fixed)
        self.requires_crawler_process = not opts.dry_run
        self._set_up(opts)

    @abstractmethod
    def takes(self) -> type[FinderArguments]:
        """Return the arguments of the spider; each with a help has an option. They are imported where they are used."""

    @abstractmethod
    def spider(self) -> type[Spider]:
        """Return the spider; it is imported where it is needed."""

    def plan(self, args: list[str], opts: argparse.Namespace) -> Plan:
        """Return what is to be done; ``UsageError`` if that cannot be meant."""
        given, asked = self.read(args, opts)
        out = _folder_of(opts)
        resumes = out is not None and has_job(out)
        if out is not None and has_lines(out / self.list_name) and not resumes:
            raise UsageError(f"{opts.out} has the {self.results}; name another folder with --out")
        if not resumes:
            asked.check_files()
        return Plan(
            given=given, asked=asked, out=out, state=f"the {self.noun} resumes" if resumes else "", resumes=resumes
        )

    def read(self, args: list[str], opts: argparse.Namespace) -> tuple[dict[str, Any], FinderArguments]:
        """Return the arguments of the spider as texts, and their values; ``UsageError`` if they cannot be meant."""
        from scrapy_focus.finders.kit.arguments.argument import Called

        if not args:
            raise UsageError(f"{self.asks_for_urls}: {called(self.command)} {self.example}")
        takes = self.takes()
        declared, names = takes.declared(), takes.option_names()
        given = {name: getattr(opts, name) or "" for name, each in declared.items() if each.help}
        given[self.starts] = seeds_in(args, Called(self.starts, names))
        out = _folder_of(opts)
        given["out"] = opts.out
        if "folder" in declared:
            given |= {"out": PIPE, "folder": ""} if out is None else {"out": "", "folder": str(out)}
        return given, takes.read(given, names)

    def work(self, args: list[str], opts: argparse.Namespace) -> int:
        plan: Plan = opts.plan
        if opts.dry_run:
            for name, said in self._in_detail(plan):
                print(one_line(f"{name:<16}{said}"))
            print("Nothing was sent: this was a dry run.")
            return 0
        said = self._first_words(plan)
        print(one_line(said), file=sys.stderr if plan.out is None else sys.stdout, flush=True)
        self.begin(plan)
        return self._crawl(plan)

    def begin(self, plan: Plan) -> None:
        """Make the folder ready, now that the crawl begins."""

    def _crawl(self, plan: Plan) -> int:
        from scrapy_focus.engine.ending import ending_of

        crawler = self.crawler_process.create_crawler(self.spider())
        self.crawler_process.crawl(crawler, **plan.given)
        self.crawler_process.start()
        ending = ending_of(crawler)
        if not (ending.status or self.exitcode):  # the others are warnings, which a quiet log has
            print(one_line(ending.sentence), file=sys.stderr if plan.out is None else sys.stdout, flush=True)
        return self.exitcode or ending.status

    def _check_same(self, out: Path, now: Mapping[str, str]) -> None:
        """Raise ``UsageError`` for a crawl that resumes if what it began with is not what is asked for now."""
        from scrapy_focus.finders.kit.records.notes import began_with

        try:
            then = began_with(out)
        except OSError:
            return  # the crawl says so
        changed = [name for name in then if name in now and then[name] != now[name]]
        if changed:
            before, after = (", ".join(self._option(name, each[name]) for name in changed) for each in (then, now))
            raise UsageError(
                f"the crawl in {out} began with {before}, and cannot resume with {after}; give the same, or another "
                "folder with --out"
            )

    def _check_mine(self, out: Path) -> None:
        """Raise ``UsageError`` for the folder of a crawl by another command: its job would be taken for one of this."""
        owner = next((command for command, name in _LISTS.items() if (out / name).exists()), self.command)
        if owner != self.command:
            raise UsageError(f"--out is {brief(str(out))}, the folder of {called(owner)}; name another folder")

    def _option(self, argument: str, value: str) -> str:
        """Return an argument of the spider as it is given to the command."""
        if argument == self.starts:
            return value.replace(",", " ")
        option = self.takes().option_names().of(argument)
        return f"{option} {value}".removesuffix(" yes") if value else f"no {option}"

    def _check_out(self, out: Path, *, dry: bool) -> None:
        """Raise ``UsageError`` for a folder that is none or cannot be written; it is made, unless this is a dry run."""
        if out.exists() and not out.is_dir():
            raise UsageError(f"--out is {brief(str(out))}, which is a file; name a folder")
        if not dry:
            from scrapy_focus.finders.kit.arguments.argument import Called
            from scrapy_focus.finders.kit.arguments.output import try_out

            try_out(out / "manifest.jsonl", out, Called("out", self.takes().option_names()))

    def in_my_words(self, message: str) -> str:
        """Return what a crawl says of its job in the words of the command: its JOBDIR is in the folder."""
        for said, option in _SAID.items():
            message = message.replace(said, option)
        return message

    def _set_up(self, opts: argparse.Namespace) -> None:
        from scrapy_focus.addon import Addon

        plan: Plan = opts.plan
        self.settings.setdefault_in_component_priority_dict("ADDONS", Addon, 500)
        self._force("JOBDIR", None if plan.job is None else str(plan.job))
        if not opts.loglevel:
            self._force("LOG_LEVEL", "WARNING")

    def _force(self, name: str, value: object) -> None:
        """Set what neither a project nor a spider may set otherwise, but the command line may."""
        if (self.settings.getpriority(name) or 0) < SETTINGS_PRIORITIES["cmdline"]:
            self.settings.set(name, value, "cmdline")

    def sends(self, plan: Plan) -> str:
        """Say how many requests may be sent, ``""`` for any number."""
        return plan.asked.sends

    def _first_words(self, plan: Plan) -> str:
        """Say what is about to be done, and what is obeyed."""
        where = f"; it prints {self.prints}" if plan.out is None else f"; they go to {plan.where}"
        ends = f" It ends {self._when_dear}." if self._when_dear else ""
        return (
            f"Looking for {plan.asked.looks_for} from {', '.join(plan.asked.starts.urls)}, on {plan.asked.stays_on}; "
            f"{self.sends(plan) or 'no limit of requests'}{where}.{ends} "
            f"It obeys {self._robots}, {self._pace}, and calls itself {self._agent}."
        )

    def _in_detail(self, plan: Plan) -> list[tuple[str, str]]:
        """Say all that is known of a crawl before it begins."""
        obeys = self.settings.getbool("ROBOTSTXT_OBEY")
        urls = plan.asked.starts.urls
        hosts = dict.fromkeys("{0.scheme}://{0.netloc}/robots.txt".format(urlsplit(url)) for url in urls)
        lines = [
            ("Begins with", ", ".join(urls)),
            ("Asks first for", ", ".join(hosts) if obeys else "no robots.txt (ROBOTSTXT_OBEY is off)"),
            ("Stays on", plan.asked.stays_on),
            ("Looks for", plan.asked.looks_for),
            ("Sends", self.sends(plan) or "as many requests as it takes (no --budget)"),
        ]
        if self._when_dear:
            lines.append(("Ends", self._when_dear))
        return [
            *lines,
            ("Obeys", f"{self._robots}; {self._pace}"),
            ("Calls itself", self._agent),
            ("Writes to", "standard output" if plan.out is None else f"{plan.where}"),
        ]

    @property
    def _when_dear(self) -> str:
        """Say when the crawl ends because finds cost too much, ``""`` where it does not."""
        return ""

    @property
    def _robots(self) -> str:
        if self.settings.getbool("ROBOTSTXT_OBEY"):
            return "robots.txt"
        return "no robots.txt (ROBOTSTXT_OBEY is off)"

    @property
    def _pace(self) -> str:
        if delay := self.settings.getfloat("DOWNLOAD_DELAY"):
            return f"sends a request every {delay:g} s to a host"
        at_once = self.settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        return f"sends {f'up to {at_once} requests' if at_once > 1 else 'a request'} at a time to a host"

    @property
    def _agent(self) -> str:
        agent = self.settings["USER_AGENT"]
        hint = ' (say who you are: -s USER_AGENT="mybot (+https://example.org/contact)")'
        return f"{agent}{hint if agent == polite.USER_AGENT else ''}"


def _folder_of(opts: argparse.Namespace) -> Path | None:
    """Return the folder for what is found, ``None`` for standard output."""
    if opts.out == PIPE:
        return None
    return Path(opts.out)


def has_job(out: Path) -> bool:
    """Whether a crawl began in a folder that resumes there."""
    return (out / ".focus" / "job" / "focus").exists()


def has_lines(path: Path) -> bool:
    """Whether a list has anything in it."""
    return path.exists() and path.stat().st_size > 0


def seeds_in(words: Iterable[str], called: Called) -> list[str]:
    """Return the URLs that are given, each once; the name of a file stands for the URLs in it, one on each line.

    Raises
    ------
    UsageError
        If one is none, or a file has none.
    """
    from scrapy_focus.finders.kit.arguments.readers import seeds_of

    urls = (url for word in words for url in (seeds_of(word, called) if Path(word).is_file() else [url_of(word)]))
    return list(dict.fromkeys(urls))


def url_of(word: str) -> str:
    """Return a URL as somebody writes it: ``example.org`` stands for ``https://example.org``.

    Raises
    ------
    UsageError
        If it is none.
    """
    url = word.strip()
    if "://" not in url and (found := _BARE.fullmatch(url)):
        url = _with_scheme(url, found[1])
    if _is_url(url):
        return url
    port = re.match(r"(?i)https?://[^/?#]*:(\d{1,20})(?:[/?#]|$)", url)
    if port and not 0 < int(port[1]) < 65536:
        raise UsageError(hide_credentials(f"{brief(word)} has the port {port[1]}; ports go from 1 to 65535"))
    meant = _meant(url)
    hint = f"did you mean {meant}?" if meant else "write it as https://example.org/"
    raise UsageError(hide_credentials(f"{brief(word)} is no URL with http:// or https://; {hint}"))


def _with_scheme(url: str, host: str) -> str:
    """Return a URL that begins with its host as one with a scheme; ``UsageError`` if it looks like a file's name."""
    if _HERE.fullmatch(host):
        return f"http://{url}"
    if "." not in host.strip("."):
        return url
    if url == host and _is_file_name(host):
        raise UsageError(f"there is no file {brief(host)}; give a file of URLs, or a URL: https://example.org/")
    return f"https://{url}"


def _meant(text: str) -> str:
    """Return the URL of which a text is a slip, such as ``htps:/example.org``; ``""`` if it looks like none."""
    scheme, rest = re.fullmatch(r"(?:([^/.:]*)(?::|(?=//)))?/*(?:[^/?#]*@)?(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    if scheme and not get_close_matches(scheme.lower(), ["http", "https"]):
        return ""
    url = f"https://{rest}"
    has_domain = _is_url(url) and re.match(r"\S+\.\S", urlsplit(url).hostname or "")
    return url if has_domain else ""


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _is_file_name(word: str) -> bool:
    """Whether a word without a scheme looks like the name of a file, and cannot be a host on the public web."""
    from scrapy_focus.web.domains import has_public_suffix

    return bool(mimetypes.guess_type(word)[0]) and not has_public_suffix(word)
