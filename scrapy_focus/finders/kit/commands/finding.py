"""Base class of the commands that crawl from URLs and store their finds in a folder.

A subclass names its spider, its arguments and what it looks for. This module has the rest: polite settings where a
project sets none, the folder with a job that can be resumed, the first message, and the exit status.
"""

from __future__ import annotations

import os
import re
import sys
from abc import abstractmethod
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TextIO
from urllib.parse import urlsplit

from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES

from scrapy_focus.core.printable import brief, printable_json
from scrapy_focus.engine.ending import STATUS
from scrapy_focus.finders.kit.commands.base import FocusCommand, called, one_line
from scrapy_focus.finders.kit.commands.plan import BUDGETS, Plan
from scrapy_focus.finders.kit.spiders import polite

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from scrapy import Spider
    from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
    from scrapy.settings import Settings

    from scrapy_focus.finders.kit.arguments.finder_arguments import FinderArguments

#: The value of ``--out`` for standard output.
PIPE = "-"

_LISTS = {  # the list that each command writes, and no command before it
    "focus-important": ".focus/graph.jsonl",
    "focus-structured": "entities.jsonl",
    "focus-watch": "news.jsonl",
    "focus-files": "manifest.jsonl",
    "focus-topic": "pages.jsonl",
}
_SAID = {  # phrases of a crawl, in terms of the options
    "another JOBDIR": "another folder with --out",
    "as JOBDIR was not set": "as nothing is stored",
    **{f"a larger budget of {what}": f"a larger {option}" for what, option in BUDGETS.items()},
    **{
        f"of {what} {said} give a larger one": f"of {what} {said} give a larger {option}"
        for what, option in BUDGETS.items()
        for said in ("is used up;", "was used up before any page was received:")
    },
    "FOCUS_EXCLUDE rules": "--exclude rules",
    "FOCUS_INCLUDE matches": "--include matches",
    "set USER_AGENT to who you are": "say who you are with --user-agent",
    "a larger DOWNLOAD_DELAY": "a larger --delay",
    "with DEFAULT_REQUEST_HEADERS": "with --header",
    '-s DEFAULT_REQUEST_HEADERS=\'{"Cookie": "..."}\'': "--cookies FILE",
    "DOWNLOAD_VERIFY_CERTIFICATES=False": "--insecure",
}
_BASIC = re.compile(r"set HTTPAUTH_USER, HTTPAUTH_PASS and HTTPAUTH_DOMAIN=\S+?(?=[.;:)]?(?:\s|$))")  # likewise
_WITHOUT_LIST = ("darwin", "win32")
_QUIET = {"LOG_VERSIONS": [], "REMOTE_CONTROL_ENABLED": False, "STATS_DUMP": False, "TELNETCONSOLE_ENABLED": False}


class FindCommand(FocusCommand):
    """A command that crawls from start URLs.

    It uses the settings of a project, and :mod:`scrapy_focus.spiders.polite` for whatever the project does not set.
    The exit status depends on how the crawl ended (:mod:`~scrapy_focus.engine.ending`).
    """

    crawls: ClassVar[bool] = True
    _json: TextIO | None = None  # where to print JSON; None: nowhere
    settings: Settings  # set before process_options()
    crawler_process: AsyncCrawlerProcess | CrawlerProcess  # set before run()
    default_settings = {name: value for name, value in vars(polite).items() if name.isupper()} | _QUIET

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        declared, (own, *groups) = self.takes().declared(), self.takes().groups().items()
        parser.add_argument(
            "--out", metavar="FOLDER", default=self.folder,
            help=f"save the results to FOLDER (default: {self.folder}); the same command with the same folder resumes "
            f"an interrupted crawl. With -, store nothing, and print {self.prints}, one per line",
        )  # fmt: skip
        parser.add_argument("--dry-run", action="store_true", help="show what the crawl would do, and send nothing")
        parser.add_argument(
            "--json", action="store_true",
            help="at the end, print one JSON object to standard output: what was found, what it cost, why the crawl "
            "ended. Everything else goes to standard error (with --out -, the other way round)",
        )  # fmt: skip
        self._listen_for_json(parser)
        for name in own[1]:
            if declared[name].help:
                declared[name].add_option(name, parser)
        for heading, names in groups:
            shared = parser.add_argument_group(heading)
            for name in names:
                declared[name].add_option(name, shared)

    #: The name of the argument for the start URLs.
    starts: ClassVar[str] = "root"
    #: The list that the crawl writes in its folder.
    list_name: ClassVar[str]
    #: What to call the list of another crawl.
    results: ClassVar[str] = "results of another crawl"
    #: What resumes.
    noun: ClassVar[str] = "last crawl"
    #: The message if no URL is given; the name of the command follows.
    asks_for_urls: ClassVar[str] = "where to start? Give a URL"
    #: Example arguments for that message.
    example: ClassVar[str] = "https://example.org/"
    #: The default folder.
    folder: ClassVar[str]
    #: What the command prints with ``--out -``.
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
        """Return the arguments of the spider; each with a help text has an option. Imported on demand."""

    @abstractmethod
    def spider(self) -> type[Spider]:
        """Return the spider; imported on demand."""

    def plan(self, args: list[str], opts: argparse.Namespace) -> Plan:
        """Return the plan of the crawl; ``UsageError`` if the arguments are invalid."""
        given, asked = self.read(args, opts)
        out = _folder_of(opts)
        resumes = out is not None and has_job(out)
        if out is not None and has_lines(out / self.list_name) and not resumes:
            raise UsageError(f"{opts.out} contains the {self.results}; name another folder with --out")
        if not resumes:
            asked.check_files()
        return Plan(
            given=given, asked=asked, out=out, state=f"the {self.noun} resumes" if resumes else "", resumes=resumes
        )

    def read(self, args: list[str], opts: argparse.Namespace) -> tuple[dict[str, Any], FinderArguments]:
        """Return the arguments of the spider as texts, and their values; ``UsageError`` if they are invalid."""
        from scrapy_focus.finders.kit.arguments.seeds import words_of

        if not args:
            raise UsageError(f"{self.asks_for_urls}: {called(self.command)} {self.example}")
        takes = self.takes()
        declared, names = takes.declared(), takes.option_names()
        given = {name: getattr(opts, name) or "" for name, each in declared.items() if each.help}
        given[self.starts] = words_of(args)
        out = _folder_of(opts)
        given["out"] = opts.out
        if "folder" in declared:
            given |= {"out": PIPE, "folder": ""} if out is None else {"out": "", "folder": str(out)}
        return given, takes.read(given, names)

    def work(self, args: list[str], opts: argparse.Namespace) -> int:
        plan: Plan = opts.plan
        if opts.dry_run:
            self._dry_run(plan)
            return 0
        self._say(plan, self._announcement(plan))
        try:
            self._ask_for_password(plan)
        except KeyboardInterrupt:
            return STATUS["interrupted"]
        self.begin(plan)
        return self._crawl(plan)

    def _ask_for_password(self, plan: Plan) -> None:
        """Ask before the crawl starts, as Ctrl-C then ends the command."""
        if plan.asked.auth is not None:
            plan.asked.auth.ask()
            plan.given["auth"] = plan.asked.auth

    def _dry_run(self, plan: Plan) -> None:
        from scrapy_focus.finders.kit.commands.summary import planned

        rows = self._rows_of(plan)
        if self._json is not None:
            self._print_json(planned(self.command, plan, rows))
            return
        for name, said in rows:
            print(one_line(f"{name:<16}{said}"))
        print("This was a dry run: nothing was sent.")

    def say_error(self, message: str, status: int) -> None:
        super().say_error(message, status)
        if self._json is not None:
            from scrapy_focus.finders.kit.commands.summary import failed

            self._print_json(failed(self.command, status, message))

    def _listen_for_json(self, parser: argparse.ArgumentParser) -> None:
        """Note whether ``--json`` is given as soon as the words are known, so that it also covers errors in them."""
        parse = parser.parse_known_args

        def listen(args: Sequence[str] | None = None, namespace: Any = None) -> Any:
            words = [*(args or ())]
            if "--json" in words:
                is_piped = "--out=-" in words or ("--out", PIPE) in pairwise(words)
                self._json = sys.stderr if is_piped else sys.stdout
            return parse(args, namespace)

        parser.parse_known_args = listen  # type: ignore[method-assign, assignment]

    def _print_json(self, values: Mapping[str, Any]) -> None:
        """Print an object if ``--json`` is given."""
        if self._json is not None:
            print(printable_json(values), file=self._json, flush=True)

    def _say(self, plan: Plan, sentence: str) -> None:
        """Print a sentence: to standard error if standard output is for other programs."""
        is_for_programs = plan.out is None or self._json is not None
        print(one_line(sentence), file=sys.stderr if is_for_programs else sys.stdout, flush=True)

    def begin(self, plan: Plan) -> None:
        """Prepare the folder when the crawl begins."""

    def _crawl(self, plan: Plan) -> int:
        from scrapy_focus.engine.ending import ending_of
        from scrapy_focus.finders.kit.commands.summary import Summary, error_of, failed

        crawler = self.crawler_process.create_crawler(self.spider())
        summary = None if self._json is None else Summary(crawler)
        crawling = self.crawler_process.crawl(crawler, **plan.given)
        self.crawler_process.start()
        ending = ending_of(crawler)
        if not (ending.status or self.exitcode):  # other endings are logged as warnings
            self._say(plan, ending.sentence)
        status = self.exitcode or ending.status
        if summary is not None:
            error = error_of(crawling)
            values = summary.values(self.command, plan, self.list_name, status)
            self._print_json(failed(self.command, status, self.in_my_words(str(error))) if error else values)
        return status

    def _check_same(self, out: Path, now: Mapping[str, str]) -> None:
        """Raise ``UsageError`` if a resumed crawl began with other arguments."""
        from scrapy_focus.finders.kit.records.notes import began_with

        try:
            then = began_with(out)
        except OSError:
            return  # the crawl reports it
        changed = [name for name in then if name in now and then[name] != now[name]]
        if changed:
            before, after = (", ".join(self._option(name, each[name]) for name in changed) for each in (then, now))
            raise UsageError(
                f"the crawl in {out} began with {before}, and cannot resume with {after}; give the same, or another "
                "folder with --out"
            )

    def _check_mine(self, out: Path) -> None:
        """Raise ``UsageError`` if the folder belongs to another command, whose job this one would resume by mistake."""
        owner = next((command for command, name in _LISTS.items() if (out / name).exists()), self.command)
        if owner != self.command:
            raise UsageError(f"--out is {brief(str(out))}, the folder of {called(owner)}; name another folder")

    def _option(self, argument: str, value: str) -> str:
        """Return an argument of the spider as an option of the command."""
        if argument == self.starts:
            from scrapy_focus.finders.kit.arguments.seeds import named

            return named(value.split(","))
        option = self.takes().option_names().of(argument)
        return f"{option} {value}".removesuffix(" yes") if value else f"no {option}"

    def _check_out(self, out: Path, *, dry: bool) -> None:
        """Raise ``UsageError`` if this is not a folder, or not writable; make it, except in a dry run."""
        if out.exists() and not out.is_dir():
            raise UsageError(f"--out is {brief(str(out))}, which is a file; name a folder")
        if not dry:
            from scrapy_focus.finders.kit.arguments.argument import Called
            from scrapy_focus.finders.kit.arguments.output import try_out

            try_out(out / "manifest.jsonl", out, Called("out", self.takes().option_names()))

    def in_my_words(self, message: str) -> str:
        """Return a message of a crawl in terms of the command's options; its JOBDIR is in the folder."""
        for said, option in _SAID.items():
            message = message.replace(said, option)
        return _BASIC.sub("sign in with --auth USER", message)

    def _set_up(self, opts: argparse.Namespace) -> None:
        from scrapy_focus.addon import Addon

        plan: Plan = opts.plan
        _trust_authorities()
        self.settings.setdefault_in_component_priority_dict("ADDONS", Addon, 500)
        plan.asked.change(self.settings)
        self._force("JOBDIR", None if plan.job is None else str(plan.job))
        if not opts.loglevel:
            self._force("LOG_LEVEL", "WARNING")

    def _force(self, name: str, value: object) -> None:
        """Set a value that the command line may override, but neither a project nor a spider."""
        if (self.settings.getpriority(name) or 0) < SETTINGS_PRIORITIES["cmdline"]:
            self.settings.set(name, value, "cmdline")

    def _announcement(self, plan: Plan) -> str:
        """Say what the crawl is about to do, and how politely."""
        from scrapy_focus.finders.kit.arguments.seeds import named

        where = f"; printing {self.prints}" if plan.out is None else f"; saving to {plan.where}"
        ends = f" The crawl ends {self._cost_ending}." if self._cost_ending else ""
        return (
            f"Looking for {plan.asked.looks_for} from {named(plan.asked.starts.urls)}, on {plan.asked.stays_on}; "
            f"{plan.asked.sends or 'no limit of requests, size or time'}{where}.{ends} "
            f"{self._robots}; {self._pace}; user agent: {self._agent}.{_sentences(self._access(plan))}"
        )

    def _rows_of(self, plan: Plan) -> list[tuple[str, str]]:
        """Describe a crawl before it begins, line by line."""
        from scrapy_focus.finders.kit.arguments.seeds import named

        obeys = self.settings.getbool("ROBOTSTXT_OBEY")
        urls = plan.asked.starts.urls
        robots = dict.fromkeys("{0.scheme}://{0.netloc}/robots.txt".format(urlsplit(url)) for url in urls)
        lines = [
            ("Starts at", named(urls)),
            ("Fetches first", named([*robots]) if obeys else "no robots.txt (ROBOTSTXT_OBEY is off)"),
            ("Stays on", plan.asked.stays_on),
            ("Looks for", plan.asked.looks_for),
            ("Sends", plan.asked.sends or f"any number of requests (no {', '.join(BUDGETS.values())})"),
        ]
        if self._cost_ending:
            lines.append(("Ends", self._cost_ending))
        return [
            *lines,
            ("Politeness", f"{self._robots}; {self._pace}"),
            ("User agent", self._agent),
            *self._access(plan),
            ("Saves to", "standard output" if plan.out is None else f"{plan.where}"),
        ]

    def _access(self, plan: Plan) -> list[tuple[str, str]]:
        """Say what is sent to some hosts alone, and how all are reached, without any secret."""
        asked = plan.asked
        said = [("Sends along", each) for each in asked.sends_from(asked.starts)]
        if asked.proxy is not None:
            said.append(("Goes through", f"the proxy {asked.proxy.url}"))
        if not self.settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES"):
            said.append(("Accepts", "any certificate"))
        return said

    @property
    def _cost_ending(self) -> str:
        """Say at which cost of a find the crawl ends, ``""`` if at none."""
        return ""

    @property
    def _robots(self) -> str:
        if self.settings.getbool("ROBOTSTXT_OBEY"):
            return "Obeys robots.txt"
        return "Ignores robots.txt (ROBOTSTXT_OBEY is off)"

    @property
    def _pace(self) -> str:
        at_once = self.settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        if delay := self.settings.getfloat("DOWNLOAD_DELAY"):
            return f"one request every {delay:g} s per host{f', up to {at_once} at a time' if at_once > 1 else ''}"
        return f"{f'up to {at_once} requests' if at_once > 1 else 'one request'} at a time per host"

    @property
    def _agent(self) -> str:
        agent = self.settings["USER_AGENT"]
        hint = ' (identify yourself with --user-agent "mybot (+https://example.org/contact)")'
        return f"{agent}{hint if agent == polite.USER_AGENT else ''}"


def _trust_authorities() -> None:
    """Let OpenSSL trust the authorities that browsers trust, where systems do not list them in a file."""
    if sys.platform in _WITHOUT_LIST:
        import certifi

        os.environ.setdefault("SSL_CERT_FILE", certifi.where())


def _sentences(rows: Sequence[tuple[str, str]]) -> str:
    """Return lines of a dry run as sentences that follow another one."""
    return "".join(f" {name} {said}." for name, said in rows)


def _folder_of(opts: argparse.Namespace) -> Path | None:
    """Return the folder for the results, ``None`` for standard output."""
    if opts.out == PIPE:
        return None
    return Path(opts.out)


def has_job(out: Path) -> bool:
    """Whether a folder has a crawl that can resume."""
    return (out / ".focus" / "job" / "focus").exists()


def has_lines(path: Path) -> bool:
    """Whether a list exists and is not empty."""
    return path.exists() and path.stat().st_size > 0
