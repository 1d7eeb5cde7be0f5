"""``scrapy focus-files https://...``: as many files of a site as possible, with few requests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from scrapy.exceptions import UsageError

from scrapy_focus.commands.finding import PIPE, FindCommand, Plan, url_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

_RESUMES = "resumes"  # what its state says of a crawl that was interrupted


class FilesCommand(FindCommand):
    """Finds and stores files of one or more sites."""

    command = "focus-files"
    arguments = "URL... [options]"
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
            "--cost-limit", metavar="N", help="stop when the next file is expected to cost more than N requests"
        )
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
        urls = list(dict.fromkeys(map(url_of, args)))
        limit = opts.cost_limit
        if limit is not None:
            self._force("FOCUS_COST_LIMIT", _positive("--cost-limit", limit))
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
        state = "" if out is None else _state(out, urls)
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
        )

    def begin(self, plan: Plan) -> None:
        if plan.out is not None:
            from scrapy_focus.found.crawls import prepare

            prepare(plan.out)


def _state(out: Path, urls: list[str]) -> str:
    """Say which crawl of a folder this is; ``UsageError`` if another one was interrupted there."""
    from scrapy_focus.found.crawls import CRAWLS, JOB, last_crawl
    from scrapy_focus.found.lines import read_lines

    last = last_crawl(out)
    if last.has_ended or not Path(out, JOB, "focus").exists():
        return f"crawl {last.number + 1} with this folder" if last.number else ""
    lines = list(read_lines(out / CRAWLS, roots=list))
    began = next((list(map(str, line["roots"])) for line in reversed(lines) if line.get("roots")), urls)
    if set(began) != set(urls):
        raise UsageError(
            f"the crawl of {', '.join(began)} in {out} was interrupted; give the same URLs to resume it, or another "
            "folder with --out"
        )
    return f"crawl {last.number} with this folder {_RESUMES}"


def _positive(option: str, given: str) -> float:
    try:
        number = float(given)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise UsageError(f"{option} is {given!r}; it takes a number of requests above 0")
    return number
