"""``scrapy focus-watch https://... --rate 2000/day``: what is new on a site, soon after it appears."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from scrapy.exceptions import UsageError

from scrapy_focus.finders.kit.commands.finding import PIPE, FindCommand, Plan, has_job, has_lines, seeds_in

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping


class WatchCommand(FindCommand):
    """Watches one or more sites for what is new."""

    command = "focus-watch"
    arguments = "URL|FILE... --rate 2000/day [options]"
    summary = "Watch a site for what is new, with so many requests a day"
    details = (
        "Find what is new on a site, soon after it appears. The crawl begins at URL, learns on which pages new "
        "articles are linked and how often, and visits these again as often as --rate allows. It writes news.jsonl (a "
        "line for each article when it is seen first, and when it changes), feed.xml (for feed readers), fresh.csv "
        "(how often each page is visited) and index.html. It stays on the hosts of its URLs, and obeys robots.txt. It "
        "never ends by itself: stop it with Ctrl-C or SIGTERM, which ends it with status 130; the same command resumes "
        "there."
    )
    folder = "watched"
    renamed: ClassVar[Mapping[str, str]] = {"duration": "for"}
    prints = "the URLs of new articles"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--rate", metavar="N/day", help="requests of all kinds that may be sent, such as 2000/day, 500/h or 60/min"
        )
        parser.add_argument(
            "--hours",
            metavar="TIME",
            default="",
            help="articles that are older at the visit are no news, in hours, or such as 2d (default 24)",
        )
        parser.add_argument(
            "--for", metavar="TIME", dest="duration", default="",
            help="how long to watch, in all runs, such as 30min, 12h or 7d (default until it is stopped)",
        )  # fmt: skip
        parser.add_argument(
            "--no-sitemaps", action="store_true", help="do not ask for the sitemaps that robots.txt names"
        )

    def _limit(self, plan: Plan) -> str:
        from scrapy_focus.finders.kit.spiders.arguments import rate_of

        lasts = plan.arguments["duration"]
        limits = [f"at most {rate_of(plan.arguments['rate'])}", super()._limit(plan), lasts and f"for {lasts}"]
        return ", ".join(limit for limit in limits if limit)

    def _option(self, argument: str, value: str) -> str:
        return value.replace(",", " ") if argument == "root" else super()._option(argument, value)

    def plan(self, args: list[str], opts: argparse.Namespace) -> Plan:
        from scrapy_focus.finders.news.spider import NewsSpider

        if not args:
            raise UsageError(f"what to watch? Give a URL: scrapy {self.command} https://example.org/ --rate 2000/day")
        if not opts.rate:
            raise UsageError("how many requests may it send? Give a rate, such as --rate 2000/day or --rate 50/hour")
        urls = seeds_in(args)
        out = None if opts.out == PIPE else Path(opts.out)
        arguments = {
            "root": urls, "rate": opts.rate, "hours": opts.hours, "duration": opts.duration,
            "budget": str(opts.budget or ""), "out": opts.out, "sitemaps": "no" if opts.no_sitemaps else "yes",
        }  # fmt: skip
        spider = NewsSpider(**arguments)
        resumes = out is not None and has_job(out)
        if out is not None and has_lines(out / "news.jsonl") and not resumes:
            raise UsageError(f"{opts.out} has the news of another watch; name another folder with --out")
        return Plan(
            spider=NewsSpider,
            arguments=arguments,
            urls=spider.roots,
            looks_for=spider.looks_for,
            stays_on=", ".join(dict.fromkeys(spider.allowed_domains)),
            out=out,
            state="the watch resumes" if resumes else "",
            fixed=spider.fixed,
            resumes=resumes,
        )
