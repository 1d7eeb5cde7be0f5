"""``focus files https://...``: as many files of a site as possible, with few requests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES

from scrapy_focus.core.abilities import ExpectsCost, FetchesAgain
from scrapy_focus.core.stop import CostLimit
from scrapy_focus.finders.kit.commands.finding import PIPE, FindCommand
from scrapy_focus.finders.kit.commands.plan import BUDGETS, Plan
from scrapy_focus.finders.kit.records.folder_names import MANIFEST

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from scrapy import Spider
    from scrapy.settings import BaseSettings

    from scrapy_focus.core.setting import Setting
    from scrapy_focus.finders.kit.arguments.finder_arguments import FinderArguments
    from scrapy_focus.finders.kit.records.crawls import Last

#: The default limit of the expected cost of the next file, in requests: among the limits measured on recorded sites,
#: the lowest that lost almost no file on any of them.
COST_LIMIT = 200

_LIMITS = (  # settings that end a crawl, or make it revisit pages
    "FOCUS_BUDGET_REQUESTS", "FOCUS_BUDGET_BYTES", "FOCUS_BUDGET_SECONDS", "FOCUS_BUDGET_RATE", "FOCUS_STOP",
    "CLOSESPIDER_ITEMCOUNT", "CLOSESPIDER_PAGECOUNT", "CLOSESPIDER_TIMEOUT",
)  # fmt: skip


class FilesCommand(FindCommand):
    """Finds and stores files of one or more sites."""

    command = "focus-files"
    arguments = "URL|FILE|-... [options]"
    summary = "Find the files of a site, with few requests"
    details = (
        "Find and store the data files of a site, or the files of the types given by --types. The crawl starts at "
        "URL, and learns which links lead to files. It stays on the hosts of its URLs, obeys robots.txt, and sends one "
        "request per second. Stop it with Ctrl-C; the same command resumes it. After it has ended, the same command "
        "with a larger --budget, --time or --size continues it."
    )
    folder = "found"
    list_name = MANIFEST
    _has_learned = False  # whether an earlier crawl of the folder learned what files cost

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--cost-limit", metavar="N",
            help="stop when the next file is expected to cost more than N requests, and none was found in the last "
            f"3*N requests (15*N before the first file); 0: follow every link. Default: {COST_LIMIT}, or none with "
            "--budget, --time, --size, --rate or a limit in the settings",
        )  # fmt: skip
        parser.add_argument(
            "--again", action="store_true",
            help="begin a new crawl with the folder, even if the last one could resume",
        )  # fmt: skip

    def takes(self) -> type[FinderArguments]:
        from scrapy_focus.finders.files.arguments import FilesArguments

        return FilesArguments

    def spider(self) -> type[Spider]:
        from scrapy_focus.finders.files.spider import DatasetsSpider

        return DatasetsSpider

    def plan(self, args: list[str], opts: argparse.Namespace) -> Plan:
        from scrapy_focus.finders.kit.records.crawls import COST, LEARNED

        given, asked = self.read(args, opts)
        asked.check_files()
        limit = self._limit_cost(opts, asked)
        out = None if opts.out == PIPE else Path(opts.out)
        if opts.again and out is None:
            raise UsageError(f"--again needs a folder, and --out is {PIPE}; name a folder")
        limits: dict[str, float | None] = {} if limit is None else {COST: limit}
        limits |= {name: self._budget_of(name, asked.budgets) for name in BUDGETS}
        urls = asked.starts.urls
        goes_on = out is not None and not opts.again and _has_higher_limit(out, urls, asked.fixed, limits)
        self._has_learned = out is not None and Path(out, LEARNED).exists()
        state, resumes = ("", False) if out is None else _state(out, urls, goes_on=goes_on, again=opts.again)
        return Plan(given=given, asked=asked, out=out, state=state, resumes=resumes, goes_on=goes_on, again=opts.again)

    def _limit_cost(self, opts: argparse.Namespace, asked: FinderArguments) -> float | None:
        """Set the cost limit, and return the one that the user chose."""
        if opts.cost_limit is not None:
            limit = _not_negative("--cost-limit", opts.cost_limit)
            self._force("FOCUS_COST_LIMIT", limit)
            return limit
        if not (asked.budgets or opts.rate) and _has_no_limit(self.settings):
            self.settings.set("FOCUS_COST_LIMIT", COST_LIMIT, "command")  # a default that any other source overrides
        return None

    def _budget_of(self, name: str, given: Mapping[str, float]) -> float | None:
        """Return a budget, as given by an option or a setting; ``None`` for no limit."""
        from scrapy_focus.config import Config
        from scrapy_focus.core.errors import ConfigError

        row: Setting[float | None] = getattr(Config, f"budget_{name}")
        is_forced = (self.settings.getpriority(row.name) or 0) > SETTINGS_PRIORITIES["spider"]
        if name in given and not is_forced:
            return given[name]
        try:
            return row.of(self.settings)
        except ConfigError:
            return None  # the crawl reports it

    def begin(self, plan: Plan) -> None:
        if plan.out is not None:
            from scrapy_focus.finders.kit.records.crawls import prepare

            prepare(plan.out, goes_on=plan.goes_on, again=plan.again)

    @property
    def _cost_ending(self) -> str:
        from scrapy_focus.config import Config
        from scrapy_focus.core.errors import ConfigError

        try:
            limit = Config.cost_limit.of(self.settings)
        except ConfigError:
            return ""  # the crawl reports it
        if limit is None:
            return ""
        rule, requests = CostLimit(limit), "request" if limit == 1 else "requests"
        first = "" if self._has_learned else f", or {rule.first:,} before the first file"
        return (
            f"when the next file is expected to cost more than {limit:,.10g} {requests} and {rule.patience:,} in a row "
            f"found none{first} (to follow every link: --cost-limit 0)"
        )

    def in_my_words(self, message: str) -> str:
        return super().in_my_words(message).replace("higher FOCUS_COST_LIMIT", "higher --cost-limit")


def _has_no_limit(settings: BaseSettings) -> bool:
    """Whether no other setting ends the crawl, and its policy can predict the cost of the next file."""
    from scrapy_focus.finders.files.next_crawl import policy_of

    if any(settings[name] for name in _LIMITS):
        return False
    try:
        policy = policy_of(settings)
        return issubclass(policy, ExpectsCost) and not issubclass(policy, FetchesAgain)
    except Exception:  # importing a module may raise anything; the crawl reports it
        return False


def _has_higher_limit(out: Path, urls: list[str], fixed: Mapping[str, str], limits: Mapping[str, float | None]) -> bool:
    """Whether this repeats the last crawl of a folder with a higher limit than the one that ended it, or none."""
    from scrapy_focus.finders.kit.records.crawls import can_go_on

    try:
        return can_go_on(out, urls, fixed, limits)
    except OSError:
        return False  # the crawl reports it


def _state(out: Path, urls: list[str], *, goes_on: bool, again: bool) -> tuple[str, bool]:
    """Return the number of the crawl in words, and whether it resumes; ``UsageError`` if another was interrupted."""
    from scrapy_focus.finders.kit.records.crawls import JOB, last_crawl, roots_of

    last = last_crawl(out)
    has_job = Path(out, JOB, "focus").exists()
    if not goes_on and (again or last.has_ended or not has_job):
        return _next_state(last, could_go_on=has_job and not again), False
    began = roots_of(out) or urls
    if set(began) != set(urls):
        from scrapy_focus.finders.kit.arguments.seeds import named

        raise UsageError(
            f"the crawl of {named(began)} in {out} was interrupted; give the same URLs to resume it, --again to "
            "begin a new crawl, or another folder with --out"
        )
    return f"crawl {last.number} with this folder resumes", True


def _next_state(last: Last, *, could_go_on: bool) -> str:
    if not last.number:
        return ""
    state = f"crawl {last.number + 1} with this folder"
    if could_go_on and last.has_ended and last.limit in BUDGETS:
        state += f"; crawl {last.number} resumes with a larger {BUDGETS[last.limit]}"
    return state


def _not_negative(option: str, given: str) -> float:
    try:
        number = float(given)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise UsageError(f"{option} is {given!r}; it takes a number of requests, or 0 for no limit")
    return number
