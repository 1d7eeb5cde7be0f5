"""``scrapy focus-important https://...``: the most important pages of a site, with few requests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from scrapy_focus.finders.kit.commands.finding import PIPE, FindCommand, Plan, has_job, has_lines, seeds_in

if TYPE_CHECKING:
    import argparse


class ImportantCommand(FindCommand):
    """Finds the most important pages of one or more sites."""

    command = "focus-important"
    arguments = "URL|FILE... [options]"
    summary = "Find the most important pages of a site"
    details = (
        "Fetch the pages of a site to which many and important pages link, the most important ones first, as far as "
        "the links that were seen tell; then rank them by PageRank. The crawl begins at URL, stays on the hosts of its "
        "URLs, obeys robots.txt, and sends a request a second. Stop it with Ctrl-C; the same command resumes there, "
        "and with a larger --budget after its end, too."
    )
    folder = "important"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--by", metavar="ORDER", default="pagerank",
            help="what comes first: pagerank (default), backlinks, opic, location or breadth",
        )  # fmt: skip
        parser.add_argument(
            "--words", metavar="WORDS", default="",
            help="words of a topic, separated by commas: links that speak of it come first",
        )  # fmt: skip

    def plan(self, args: list[str], opts: argparse.Namespace) -> Plan:
        from scrapy_focus.finders.important.spider import ImportantSpider
        from scrapy_focus.finders.kit.records.pages import PAGES

        if not args:
            raise UsageError(f"where to start? Give a URL: scrapy {self.command} https://example.org/")
        urls = seeds_in(args)
        out = None if opts.out == PIPE else Path(opts.out)
        arguments = {
            "root": urls, "budget": str(opts.budget or ""), "by": opts.by, "words": opts.words, "out": opts.out,
        }  # fmt: skip
        spider = ImportantSpider(**arguments)
        resumes = out is not None and has_job(out)
        if out is not None and has_lines(out / PAGES) and not resumes:
            raise UsageError(f"{opts.out} has the results of another crawl; name another folder with --out")
        return Plan(
            spider=ImportantSpider,
            arguments=arguments,
            urls=spider.roots,
            looks_for=spider.looks_for,
            stays_on=", ".join(dict.fromkeys(spider.allowed_domains)),
            out=out,
            state="the last crawl resumes" if resumes else "",
            fixed=spider.fixed,
            resumes=resumes,
        )
