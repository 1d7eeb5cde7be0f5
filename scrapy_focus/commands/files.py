"""``scrapy focus-files https://...``: as many files of a site as possible, with few requests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from scrapy.exceptions import UsageError

from scrapy_focus.commands.finding import PIPE, FindCommand, Plan, seeds_in
from scrapy_focus.core.stop import CostLimit

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from scrapy.settings import BaseSettings

#: Requests that the next file may be expected to cost where nobody says when the crawl ends: of the limits that were
#: measured on recorded sites, the lowest that lost next to nothing on each of them.
COST_LIMIT = 200

_LIMITS = (  # settings that end a crawl, or let it come back
    "FOCUS_BUDGET_REQUESTS", "FOCUS_BUDGET_BYTES", "FOCUS_BUDGET_SECONDS", "FOCUS_BUDGET_RATE", "FOCUS_STOP",
    "FOCUS_PLATEAU", "CLOSESPIDER_ITEMCOUNT", "CLOSESPIDER_PAGECOUNT", "CLOSESPIDER_TIMEOUT",
)  # fmt: skip
_RESUMES = "resumes"  # what its state says of a crawl that was interrupted


class FilesCommand(FindCommand):
    """Finds and stores files of one or more sites."""

    command = "focus-files"
    arguments = "URL|FILE... [options]"
    summary = "Find the files of a site, with few requests"
    details = (
        "Find and store the data files of a site, or all files of the types that --types names. The crawl begins at "
        "URL, and learns which links lead to files. It stays on the hosts of its URLs, obeys robots.txt, and sends a "
        "request a second. Stop it with Ctrl-C; the same command resumes there."
    )
    folder = "found"
    renamed: ClassVar[Mapping[str, str]] = {"targets": "types"}

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--types", metavar="TYPES", default="data",
            help="what to look for, separated by commas: extensions (csv,pdf,dat), MIME types (text/csv,image/*), or "
            "regular expressions of URLs, which have letters that no extension has (/download/). Default: data, all "
            "kinds of data files and documents",
        )  # fmt: skip
        parser.add_argument(
            "--cost-limit", metavar="N",
            help="stop when the next file is expected to cost more than N requests, and none came for three times as "
            f"many, or fifteen times before the first; 0: follow every link. Default: {COST_LIMIT}, or none with "
            "--budget, --rate or a limit in settings",
        )  # fmt: skip
        parser.add_argument(
            "--new-only", action="store_true", help="ask for no file that an earlier crawl with the same folder found"
        )
        parser.add_argument(
            "--rate", metavar="N/day", default="",
            help="keep what is found current, with so many requests by day or hour (200/day): pages and files are "
            "fetched again as often as they are expected to change, and the crawl does not end by itself",
        )  # fmt: skip
        parser.add_argument(
            "--no-sitemaps", action="store_true", help="do not ask for the sitemaps that robots.txt names"
        )

    def _limit(self, plan: Plan) -> str:
        from scrapy_focus.spiders.arguments import rate_of

        rate = rate_of(plan.arguments.get("rate", ""))
        limits = [f"at most {rate}" if rate else "", super()._limit(plan)]
        return ", ".join(limit for limit in limits if limit)

    def plan(self, args: list[str], opts: argparse.Namespace) -> Plan:
        from scrapy_focus.spiders.datasets import DatasetsSpider
        from scrapy_focus.web.wanted import slips, split_words

        if not args:
            raise UsageError(f"where to start? Give a URL: scrapy {self.command} https://example.org/")
        urls = seeds_in(args)
        limit = None if opts.cost_limit is None else _not_negative("--cost-limit", opts.cost_limit)
        if limit is not None:
            self._force("FOCUS_COST_LIMIT", limit)
        elif not (opts.budget or opts.rate) and _has_no_limit(self.settings):
            self.settings.set("FOCUS_COST_LIMIT", COST_LIMIT, "command")  # which gives way to whoever sets it
        out = None if opts.out == PIPE else Path(opts.out)
        arguments = {"root": urls, "targets": opts.types, "budget": str(opts.budget or ""), "out": opts.out}
        if opts.new_only:
            arguments["new_only"] = "1"
        if opts.rate:
            arguments["rate"] = opts.rate
        if opts.no_sitemaps:
            arguments["sitemaps"] = "no"
        try:
            spider = DatasetsSpider(**arguments)
        except UsageError as error:
            raise UsageError(str(error).replace("targets:", "--types:")) from error
        goes_on = out is not None and limit is not None and _goes_on(out, urls, spider.fixed, limit)
        state = "" if out is None else _state(out, urls, goes_on=goes_on)
        doubts = [f" (for {word}, did you mean {meant}?)" for word, meant in slips(split_words(opts.types))]
        return Plan(
            spider=DatasetsSpider,
            arguments=arguments,
            urls=urls,
            looks_for=f"files of the types {spider.goal.wanted}{''.join(doubts)}",
            stays_on=", ".join(dict.fromkeys(spider.allowed_domains)),
            out=out,
            state=state,
            fixed=spider.fixed,
            resumes=state.endswith(_RESUMES),
            goes_on=goes_on,
        )

    def begin(self, plan: Plan) -> None:
        if plan.out is not None:
            from scrapy_focus.found.crawls import prepare

            prepare(plan.out, goes_on=plan.goes_on)

    @property
    def _when_dear(self) -> str:
        try:
            limit = float(self.settings["FOCUS_COST_LIMIT"] or 0)
        except (TypeError, ValueError):
            limit = 0.0  # the crawl says so
        if not 0 < limit < float("inf"):
            return ""
        rule = CostLimit(limit)
        return (
            f"when the next file is expected to cost more than {limit:,.10g} requests and {rule.patience:,} in a row "
            f"brought none, or {rule.first:,} before the first file (--cost-limit 0: when no link is left)"
        )

    def in_my_words(self, message: str) -> str:
        return super().in_my_words(message).replace("higher FOCUS_COST_LIMIT", "higher --cost-limit")


def _has_no_limit(settings: BaseSettings) -> bool:
    """Whether no other setting says when the crawl ends, and its policy can tell what the next file costs."""
    from scrapy_focus.spiders.again import policy_can

    if any(settings[name] for name in _LIMITS):
        return False
    try:
        return policy_can(settings, "expected_cost") and not policy_can(settings, "again")
    except Exception:  # whatever a module does when it is imported; the crawl says so
        return False


def _began(out: Path, urls: list[str]) -> list[str]:
    """Return the URLs of the last crawl of a folder; those that are given where it has none."""
    from scrapy_focus.found.crawls import CRAWLS
    from scrapy_focus.found.lines import read_lines

    lines = list(read_lines(out / CRAWLS, roots=list))
    return next((list(map(str, line["roots"])) for line in reversed(lines) if line.get("roots")), urls)


def _goes_on(out: Path, urls: list[str], fixed: Mapping[str, str], limit: float) -> bool:
    """Whether this is the last crawl of a folder again, with a higher limit to what the next file may cost, or none."""
    from scrapy_focus.found.crawls import can_go_on
    from scrapy_focus.found.notes import began_with

    try:
        then = began_with(out)
    except OSError:
        return False  # the crawl says so
    is_same = all(fixed.get(name) == value for name, value in then.items())
    return is_same and set(_began(out, urls)) == set(urls) and can_go_on(out, limit)


def _state(out: Path, urls: list[str], *, goes_on: bool) -> str:
    """Say which crawl of a folder this is; ``UsageError`` if another one was interrupted there."""
    from scrapy_focus.found.crawls import JOB, last_crawl

    last = last_crawl(out)
    if not goes_on and (last.has_ended or not Path(out, JOB, "focus").exists()):
        return f"crawl {last.number + 1} with this folder" if last.number else ""
    began = _began(out, urls)
    if set(began) != set(urls):
        raise UsageError(
            f"the crawl of {', '.join(began)} in {out} was interrupted; give the same URLs to resume it, or another "
            "folder with --out"
        )
    return f"crawl {last.number} with this folder {_RESUMES}"


def _not_negative(option: str, given: str) -> float:
    try:
        number = float(given)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise UsageError(f"{option} is {given!r}; it takes a number of requests, or 0 for no limit")
    return number
