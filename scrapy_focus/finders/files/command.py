"""``scrapy focus-files https://...``: as many files of a site as possible, with few requests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES

from scrapy_focus.core.abilities import ExpectsCost, FetchesAgain
from scrapy_focus.core.stop import CostLimit
from scrapy_focus.finders.kit.commands.finding import PIPE, FindCommand, Plan
from scrapy_focus.finders.kit.records.folder_names import MANIFEST

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from scrapy import Spider
    from scrapy.settings import BaseSettings

    from scrapy_focus.core.setting import Setting
    from scrapy_focus.finders.kit.arguments.finder_arguments import FinderArguments
    from scrapy_focus.finders.kit.records.crawls import Last

#: Requests that the next file may be expected to cost where nobody says when the crawl ends: of the limits that were
#: measured on recorded sites, the lowest that lost next to nothing on each of them.
COST_LIMIT = 200

_LIMITS = (  # settings that end a crawl, or let it come back
    "FOCUS_BUDGET_REQUESTS", "FOCUS_BUDGET_BYTES", "FOCUS_BUDGET_SECONDS", "FOCUS_BUDGET_RATE", "FOCUS_STOP",
    "CLOSESPIDER_ITEMCOUNT", "CLOSESPIDER_PAGECOUNT", "CLOSESPIDER_TIMEOUT",
)  # fmt: skip


class FilesCommand(FindCommand):
    """Finds and stores files of one or more sites."""

    command = "focus-files"
    arguments = "URL|FILE... [options]"
    summary = "Find the files of a site, with few requests"
    details = (
        "Find and store the data files of a site, or all files of the types that --types names. The crawl begins at "
        "URL, and learns which links lead to files. It stays on the hosts of its URLs, obeys robots.txt, and sends a "
        "request a second. Stop it with Ctrl-C; the same command resumes there, and with a larger --budget after its "
        "end, too."
    )
    folder = "found"
    list_name = MANIFEST
    _has_learned = False  # whether an earlier crawl of the folder says what files cost

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--cost-limit", metavar="N",
            help="stop when the next file is expected to cost more than N requests, and none came for three times as "
            f"many, or fifteen times before the first; 0: follow every link. Default: {COST_LIMIT}, or none with "
            "--budget, --rate or a limit in settings",
        )  # fmt: skip
        parser.add_argument(
            "--again", action="store_true",
            help="begin the next crawl with the folder, where the last one could resume",
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
        limit = self._limit_cost(opts)
        out = None if opts.out == PIPE else Path(opts.out)
        if opts.again and out is None:
            raise UsageError(f"--again begins the next crawl with a folder, and --out is {PIPE}; name a folder")
        limits: dict[str, float | None] = {} if limit is None else {COST: limit}
        limits |= {name: self._budget_of(name, asked.budget) for name in ("requests", "bytes", "seconds")}
        urls = asked.starts.urls
        goes_on = out is not None and not opts.again and _goes_on(out, urls, asked.fixed, limits)
        self._has_learned = out is not None and Path(out, LEARNED).exists()
        state, resumes = ("", False) if out is None else _state(out, urls, goes_on=goes_on, again=opts.again)
        return Plan(given=given, asked=asked, out=out, state=state, resumes=resumes, goes_on=goes_on, again=opts.again)

    def _limit_cost(self, opts: argparse.Namespace) -> float | None:
        """Set what the next file may cost, and return what the user said of it."""
        if opts.cost_limit is not None:
            limit = _not_negative("--cost-limit", opts.cost_limit)
            self._force("FOCUS_COST_LIMIT", limit)
            return limit
        if not (opts.budget or opts.rate) and _has_no_limit(self.settings):
            self.settings.set("FOCUS_COST_LIMIT", COST_LIMIT, "command")  # which gives way to whoever sets it
        return None

    def _budget_of(self, name: str, requests: int | None) -> float | None:
        """Return how much may be used of what there are budgets of, ``None`` for any number."""
        from scrapy_focus.config import Config
        from scrapy_focus.core.errors import ConfigError

        budgets: dict[str, Setting[float | None]] = {
            "requests": Config.budget_requests, "bytes": Config.budget_bytes, "seconds": Config.budget_seconds,
        }  # fmt: skip
        is_forced = (self.settings.getpriority(budgets[name].name) or 0) > SETTINGS_PRIORITIES["spider"]
        if name == "requests" and requests and not is_forced:
            return requests
        try:
            return budgets[name].of(self.settings)
        except ConfigError:
            return None  # the crawl says so

    def begin(self, plan: Plan) -> None:
        if plan.out is not None:
            from scrapy_focus.finders.kit.records.crawls import prepare

            prepare(plan.out, goes_on=plan.goes_on, again=plan.again)

    @property
    def _when_dear(self) -> str:
        from scrapy_focus.config import Config
        from scrapy_focus.core.errors import ConfigError

        try:
            limit = Config.cost_limit.of(self.settings)
        except ConfigError:
            return ""  # the crawl says so
        if limit is None:
            return ""
        rule, requests = CostLimit(limit), "request" if limit == 1 else "requests"
        first = "" if self._has_learned else f", or {rule.first:,} before the first file"
        return (
            f"when the next file is expected to cost more than {limit:,.10g} {requests} and {rule.patience:,} in a row "
            f"brought none{first} (--cost-limit 0: when no link is left)"
        )

    def in_my_words(self, message: str) -> str:
        return super().in_my_words(message).replace("higher FOCUS_COST_LIMIT", "higher --cost-limit")


def _has_no_limit(settings: BaseSettings) -> bool:
    """Whether no other setting says when the crawl ends, and its policy can tell what the next file costs."""
    from scrapy_focus.finders.files.next_crawl import policy_of

    if any(settings[name] for name in _LIMITS):
        return False
    try:
        policy = policy_of(settings)
        return issubclass(policy, ExpectsCost) and not issubclass(policy, FetchesAgain)
    except Exception:  # whatever a module does when it is imported; the crawl says so
        return False


def _goes_on(out: Path, urls: list[str], fixed: Mapping[str, str], limits: Mapping[str, float | None]) -> bool:
    """Whether this is the last crawl of a folder again, with a higher limit than that for which it ended, or none."""
    from scrapy_focus.finders.kit.records.crawls import can_go_on

    try:
        return can_go_on(out, urls, fixed, limits)
    except OSError:
        return False  # the crawl says so


def _state(out: Path, urls: list[str], *, goes_on: bool, again: bool) -> tuple[str, bool]:
    """Say which crawl of a folder this is, and whether it resumes; ``UsageError`` if another was interrupted there."""
    from scrapy_focus.finders.kit.records.crawls import JOB, last_crawl, roots_of

    last = last_crawl(out)
    has_job = Path(out, JOB, "focus").exists()
    if not goes_on and (again or last.has_ended or not has_job):
        return _next_state(last, could_go_on=has_job and not again), False
    began = roots_of(out) or urls
    if set(began) != set(urls):
        raise UsageError(
            f"the crawl of {', '.join(began)} in {out} was interrupted; give the same URLs to resume it, --again to "
            "begin another crawl, or another folder with --out"
        )
    return f"crawl {last.number} with this folder resumes", True


def _next_state(last: Last, *, could_go_on: bool) -> str:
    if not last.number:
        return ""
    state = f"crawl {last.number + 1} with this folder"
    if could_go_on and last.has_ended and last.limit == "requests":
        state += f"; crawl {last.number} resumes with a larger --budget"
    return state


def _not_negative(option: str, given: str) -> float:
    try:
        number = float(given)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise UsageError(f"{option} is {given!r}; it takes a number of requests, or 0 for no limit")
    return number
