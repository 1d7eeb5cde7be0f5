"""``scrapy focus-structured URL... --types Recipe``: pages that describe such things to machines, and what they say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from scrapy_focus.finders.kit.commands.finding import PIPE, FindCommand, Plan, has_job, has_lines, seeds_in

if TYPE_CHECKING:
    import argparse


class StructuredCommand(FindCommand):
    """Finds pages with structured data, and what it says."""

    command = "focus-structured"
    arguments = "URL|FILE... [--types TYPES] [options]"
    summary = "Find pages with structured data, such as recipes or events"
    details = (
        "Find pages that describe things in a form that machines read (JSON-LD or microdata), such as recipes, events, "
        "jobs or data sets, from some pages to start from: URLs, or files with a URL on each line; and store what they "
        "say, a line of JSON for each thing. The crawl learns which hosts and links lead there, and follows them to "
        "other hosts, unless it is told to stay. It obeys robots.txt, and sends each host a request a second. Stop it "
        "with Ctrl-C; the same command resumes there, and with a larger --budget after its end, too."
    )
    folder = "entities"
    prints = "the entities that are found, as JSON"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--types", metavar="TYPES", default="",
            help="what to look for, separated by commas: types of schema.org (Recipe,Event), or full names of others. "
            "Default: any page with enough facts",
        )  # fmt: skip
        parser.add_argument(
            "--least", metavar="N", default="", help="without --types, facts from which on a page is found (default 6)"
        )
        parser.add_argument("--syntaxes", metavar="NAMES", default="", help="json-ld, microdata, or both (default)")
        parser.add_argument("--per-domain", metavar="N", default="", help="pages of one domain at most")
        parser.add_argument("--per-host", metavar="N", default="", help="pages of one host at most, in its place")
        parser.add_argument("--stay", action="store_true", help="stay on the hosts of the URLs")

    def plan(self, args: list[str], opts: argparse.Namespace) -> Plan:
        from scrapy_focus.finders.structured.spider import StructuredSpider

        if not args:
            raise UsageError(f"where to start? Give some pages: scrapy {self.command} https://example.org/ ...")
        out = None if opts.out == PIPE else Path(opts.out)
        arguments = {
            "seeds": seeds_in(args), "types": opts.types, "least": opts.least, "syntaxes": opts.syntaxes,
            "per_domain": opts.per_domain, "per_host": opts.per_host, "stay": "yes" if opts.stay else "no",
            "budget": str(opts.budget or ""),
            "out": PIPE if out is None else "", "folder": "" if out is None else str(out),
        }  # fmt: skip
        spider = StructuredSpider(**arguments)
        resumes = out is not None and has_job(out)
        if spider.out is not None and has_lines(spider.out) and not resumes:
            raise UsageError(f"{opts.out} has the results of another crawl; name another folder with --out")
        return Plan(
            spider=StructuredSpider,
            arguments=arguments,
            urls=spider.seeds,
            looks_for=spider.looks_for,
            stays_on=", ".join(dict.fromkeys(spider.allowed_domains)) or "any host",
            out=out,
            state="the last crawl resumes" if resumes else "",
            fixed=spider.fixed,
            resumes=resumes,
        )
