"""``scrapy focus-topic URL... --examples DIR``: as many pages on a topic as possible, on many hosts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from scrapy_focus.finders.kit.commands.finding import PIPE, FindCommand, Plan, has_job, has_lines, seeds_in

if TYPE_CHECKING:
    import argparse


class TopicCommand(FindCommand):
    """Finds pages on a topic, wherever they are."""

    command = "focus-topic"
    arguments = "URL|FILE... --examples DIR|--model FILE|--keywords WORDS [options]"
    summary = "Find pages on a topic, on many hosts"
    details = (
        "Find pages on a topic, from some pages to start from: URLs, or files with a URL on each line. What is on the "
        "topic, examples say, keywords, or both, or a model that was trained before. The crawl learns which links "
        "lead there, and follows them to other hosts. It obeys robots.txt, and sends each host a request a second. "
        "Stop it with Ctrl-C; the same command resumes there."
    )
    folder = "pages"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--examples", metavar="DIR", default="",
            help="folder with pages on the topic in DIR/positive, and others in DIR/negative if there are some, as "
            "text or HTML",
        )  # fmt: skip
        parser.add_argument(
            "--model", metavar="FILE", default="", help="a model that scrapy focus-train wrote, instead of examples"
        )
        parser.add_argument(
            "--keywords", metavar="WORDS", default="",
            help="words and phrases of the topic, separated by commas, or a file with one on each line",
        )  # fmt: skip
        parser.add_argument(
            "--frequency", metavar="SHARE", default="",
            help="share of all pages that are on the topic, where it is known, such as 0.03 (default: estimated)",
        )  # fmt: skip
        parser.add_argument(
            "--per-domain", metavar="N", default="",
            help="pages of one domain at most: 10, or 5-2 for a limit that falls from 5 to 2",
        )  # fmt: skip
        parser.add_argument("--per-host", metavar="N", default="", help="pages of one host at most, in its place")

    def plan(self, args: list[str], opts: argparse.Namespace) -> Plan:
        from scrapy_focus.finders.topic.spider import TopicSpider

        if not args:
            raise UsageError(f"where to start? Give pages on the topic: scrapy {self.command} https://example.org/ ...")
        out = None if opts.out == PIPE else Path(opts.out)
        arguments = {
            "seeds": seeds_in(args), "examples": opts.examples, "model": opts.model,
            "keywords": opts.keywords, "frequency": opts.frequency,
            "per_domain": opts.per_domain, "per_host": opts.per_host, "budget": str(opts.budget or ""),
            "out": PIPE if out is None else "", "folder": "" if out is None else str(out),
        }  # fmt: skip
        spider = TopicSpider(**arguments)
        resumes = out is not None and has_job(out)
        if spider.out is not None and has_lines(spider.out) and not resumes:
            raise UsageError(f"{opts.out} has the results of another crawl; name another folder with --out")
        if not resumes:
            spider.read_examples()  # which says what is wrong with them
        known = [f"{name} {arguments[name]}" for name in ("examples", "model") if arguments[name]]
        known += [f"the words {', '.join(spider.keywords)}"] if spider.keywords and known else []
        return Plan(
            spider=TopicSpider,
            arguments=arguments,
            urls=spider.seeds,
            looks_for=f"pages on the topic of {' and '.join(known)}"
            if known
            else f"pages with the words {', '.join(spider.keywords)}",
            stays_on="any host",
            out=out,
            state="the last crawl resumes" if resumes else "",
            fixed=spider.fixed,
            resumes=resumes,
        )
