"""``scrapy crawl topic -a examples=DIR -a seeds=FILE``: pages on a topic, on many hosts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy import signals
from scrapy.exceptions import UsageError
from scrapy.http import HtmlResponse

from scrapy_focus.config import Config
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import printable
from scrapy_focus.engine.failure import in_one_line
from scrapy_focus.engine.marks import FOUND_ON, why_of
from scrapy_focus.engine.pages import can_be_read
from scrapy_focus.finders.kit.arguments.argument import passed_on
from scrapy_focus.finders.kit.arguments.output import try_out
from scrapy_focus.finders.kit.records.crawls import Run
from scrapy_focus.finders.kit.spiders.crawl_notes import CrawlNotes
from scrapy_focus.finders.kit.spiders.following_spider import MANY_HOSTS, FollowingSpider, be_quiet, new_links
from scrapy_focus.finders.kit.spiders.items import RELEVANT, TopicPage
from scrapy_focus.finders.kit.spiders.middlewares import RedirectsAreLinks, redirect_of, refresh_of
from scrapy_focus.finders.kit.spiders.page_texts import declared_language, feed_of, source_of, title_of
from scrapy_focus.finders.kit.spiders.print_urls import PrintUrls
from scrapy_focus.finders.kit.spiders.private_headers import add_headers
from scrapy_focus.finders.topic.arguments import TopicArguments
from scrapy_focus.finders.topic.output import TopicOutput
from scrapy_focus.goals.topic import TopicGoal
from scrapy_focus.topic.examples import Given
from scrapy_focus.topic.keywords import KeywordRelevance
from scrapy_focus.topic.models import load_relevance, made_of
from scrapy_focus.web.html import link_text, page_blocks
from scrapy_focus.web.mime import FILE_TYPES, blocked_extensions, extension
from scrapy_focus.web.url_parts import domain_at, parts_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_focus.core.mission import Topic
    from scrapy_focus.web.access import Access

_STEPS = 20  # of a path that are listed; the seed is always among them
_PAGES = 200_000  # whose paths are remembered: about 60 MB
_READ = 500_000  # characters of a page that are judged
_FEW = 5  # examples
EXAMPLES = "examples.json.gz"  # in the JOBDIR


class TopicSpider(FollowingSpider):
    """Finds pages on a topic on any host: the crawl leaves the hosts of its seeds, unless ``scope`` keeps it there.

    A sentence, examples, keywords or several of these define the topic: a model is built from them, and learns from the
    pages of the crawl, see :func:`~scrapy_focus.topic.models.made_of`. Alternatively, a model trained earlier defines
    it, and does not learn any more. The scheduler is :class:`scrapy_focus.TreeFrontierScheduler`.

    Arguments
    ---------
    seeds
        Pages to start from: URLs separated by commas, or a file with one per line.
    about
        A sentence that says what the pages are about: "municipal budgets and annual accounts". It needs
        ``pip install "scrapy-focus[about]"``.
    examples
        Folder with example pages (``.txt``, ``.html``): pages on the topic in ``positive`` and, optionally, others in
        ``negative``. They are stored in the ``JOBDIR``, so a crawl can resume without the folder.
    model
        A file that ``focus train`` wrote, instead of examples.
    keywords
        Words and phrases of the topic, separated by commas, or a file with one per line, such as the output of
        ``focus keywords``. They are looked up in pages and links; with a ``model``, only in links.
    embedding
        The embedding that compares the sentence with texts, see :func:`~scrapy_focus.learn.embedding.load_embedding`.
    frequency
        The share of all pages that are on topic, if you know it: ``0.03``. By default, it is estimated.
    per_domain
        The limit of pages per registered domain: ``10``, or ``5-2`` for 5 at first and 2 at the end (it is halved after
        each third of the budget). No limit by default.
    per_host
        The limit of pages per host, instead of ``per_domain``: for sites below one name that is on no list of suffixes.
    out
        File for the results: a line of JSON for each page that was fetched, see
        :class:`~scrapy_focus.finders.kit.spiders.items.TopicPage`. With ``-``, the crawl stores nothing, and prints the
        URLs of pages on the topic, one per line.
    folder
        Folder for notes of the crawl, and for ``index.html`` and ``pages.csv``, which are written at the end from the
        notes and ``pages.jsonl``. ``out`` is then ``pages.jsonl`` in this folder. None by default.
    """

    name = "topic"
    custom_settings = {
        "SCHEDULER": "scrapy_focus.TreeFrontierScheduler",
        "DOWNLOADER_MIDDLEWARES": {"scrapy_focus.finders.kit.spiders.middlewares.LongPagesAreCut": 585},
        **MANY_HOSTS,
    }

    def __init__(self, seeds: str | Sequence[str] = "", **given: Any) -> None:
        self.asked = asked = TopicArguments.read({"seeds": seeds, **given})
        super().__init__(**passed_on(given))
        self.seeds = self.start_urls = asked.seeds.urls
        self.keywords = asked.keywords
        self.caps = asked.caps
        self.budget = asked.budget
        self.folder = asked.found_in
        self.out = asked.list_file
        self.ignored = blocked_extensions() | FILE_TYPES.keys()
        # By the URL of a page: the page with its link, and the text of that link.
        self.reached: dict[str, tuple[str, str]] = {}
        self.n_found = 0  # pages on the topic that are listed, by this run or an earlier one
        self.relevance: Topic

    @property
    def access(self) -> Access:
        """What the crawl sends to some hosts alone."""
        return self.asked.access

    @cached_property
    def goal(self) -> TopicGoal:
        """The goal that judges pages, in the crawl and in the results."""
        return TopicGoal(self.relevance)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        with in_one_line():
            spider = super().from_crawler(crawler, *args, **kwargs)
            settings = crawler.settings
            job = settings["JOBDIR"]
            spider.prepare(Path(job) if job else None, alone=not settings.get("FOCUS_CLUSTER"))
        add_headers(settings)
        if spider.asked.reach == "any":
            settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", RedirectsAreLinks, 610)
        settings.set("FOCUS_GOAL", spider.goal, "spider")
        settings.set("FOCUS_KEYWORDS", spider.keywords, "spider")
        spider.asked.set_up(crawler)
        crawler.signals.connect(spider.listed, signals.item_scraped)
        if spider.budget and "per_domain_least" in spider.caps:
            spider.caps["falls_every"] = -(-spider.budget // 3)
        params = {**spider.caps, **Config.params.of(settings)}
        settings.set("FOCUS_POLICY_PARAMS", params, "cmdline")
        if spider.out is None:
            settings.setdefault_in_component_priority_dict("ITEM_PIPELINES", PrintUrls, 300)
        else:
            feed = feed_of(TopicPage, spider.asked)
            feeds = {**settings.getdict("FEEDS"), str(spider.out): feed}
            settings.set("FEEDS", feeds, "cmdline")
        if spider.folder is not None:
            run = Run(1, bool(job) and Path(job, "focus").exists(), 0)
            spider.notes = CrawlNotes(
                crawler, out=spider.folder, output=TopicOutput, run=run, facts=spider.facts(), left_out=set()
            )
        be_quiet()
        return spider

    def prepare(self, job: Path | None, *, alone: bool = True) -> None:
        """Build the topic model; for a resumed job, read its list.

        ``alone``: no other machine judges pages. Otherwise keywords make a model that does not learn.

        Raises
        ------
        UsageError
            If the examples or the model cannot be used, or the results would be mixed with those of another crawl.
        """
        resumed = job is not None and (job / "focus").exists()
        stored = None if job is None or not self.asked.examples else job / EXAMPLES
        if self.out is not None:
            self._check_out(self.out, resumed=resumed)
        try:
            self.relevance = self._model(stored, resumed=resumed, alone=alone)
        except ConfigError as error:
            raise UsageError(str(error)) from error
        if resumed and self.out is not None:
            self._remember_all(self.out)

    @staticmethod
    def _check_out(out: Path, *, resumed: bool) -> None:
        """Raise ``UsageError`` if results cannot be appended to this file."""
        if not resumed and out.exists() and out.stat().st_size:
            raise UsageError(
                f"{out} contains the results of another crawl: name another file with -a out=FILE, or give the JOBDIR "
                "of that crawl to resume it"
            )
        try_out(out)

    def _model(self, stored: Path | None, *, resumed: bool, alone: bool) -> Topic:
        """Return the topic model: trained earlier, or built from examples, for a resumed job from the stored ones."""
        if self.asked.model:
            return load_relevance(self.asked.model)
        if not (alone or self.asked.examples or self.asked.about):
            return KeywordRelevance(self.keywords)
        if resumed and stored is not None and stored.exists():
            return self.made_of(Given.stored(stored))
        return self._first_model(stored)

    def _first_model(self, stored: Path | None) -> Topic:
        """Return the model that a new crawl starts with; store its examples in `stored`."""
        given = self.asked.read_examples()
        relevance = self.made_of(given)
        if stored is not None:
            keep(given, stored)
        if given.positives:
            self.logger.info(
                "The model starts with %d examples on the topic, %d others and %d keywords, and learns from "
                "the pages of the crawl", len(given.positives), len(given.negatives), len(self.keywords),
            )  # fmt: skip
        if 0 < len(given.positives) < _FEW and not self.keywords and not self.asked.about:
            self.logger.warning("A model of so few examples is mostly luck; give it ten or more, or add keywords")
        return relevance

    def _remember_all(self, out: Path) -> None:
        """Remember the paths of the pages that earlier runs of the job listed."""
        for page in read_results(out):
            self.n_found += page.get("relevance", 0.0) >= RELEVANT
            end = {"url": page["url"], "anchor": ""}
            for before, step in pairwise([{"url": "", "anchor": ""}, *page["path"], end]):
                self.remember(step["url"], before["url"], before["anchor"])

    def made_of(self, given: Given) -> Topic:
        """Return a model of examples and keywords."""
        asked = self.asked
        return made_of(given, self.keywords, asked.frequency, about=asked.about, embedding=asked.embedding)

    def listed(self, item: Any) -> None:
        """Count a page on the topic; the handler of Scrapy's ``item_scraped``."""
        self.n_found += isinstance(item, TopicPage) and item.relevance >= RELEVANT

    def facts(self) -> dict[str, Any]:
        """Return the arguments of the crawl, as values of JSON."""
        return {
            "spider": self.name, "roots": self.seeds, "budget": self.budget, "types": self.asked.looks_for,
            self.asked.counted: " falling to ".join(self.asked.limits), "fixed": self.asked.fixed,
            "scope": self.asked.stays_on,
        }  # fmt: skip

    async def start(self) -> AsyncIterator[Any]:
        for url in self.seeds:
            yield scrapy.Request(url)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        meta = response.meta
        if "moved_from" in meta:  # a link of a redirect, which is not in the results
            self.remember(meta[FOUND_ON], meta["moved_from"], meta["link_text"])
        if target := redirect_of(response):
            self.remember(response.url, meta.get(FOUND_ON, ""), meta.get("link_text", ""))
            yield from self.link(response, target, meta.get("link_text", ""), moved_from=meta.get(FOUND_ON, ""))
        if not isinstance(response, HtmlResponse) or response.status >= 300 or not can_be_read(response):
            return
        if response.url not in self.reached:  # a page that was in flight when its job was killed is fetched twice
            yield self.page(response)
        if refresh := refresh_of(response):
            yield from self.link(response, refresh, meta.get("link_text", ""))
        for url, element in new_links(response, self.notes):
            if extension(url) not in self.ignored:
                yield from self.link(response, url, link_text(element))

    def page(self, response: HtmlResponse) -> TopicPage:
        """Return the item for a page."""
        meta, root = response.meta, response.selector.root
        self.remember(response.url, meta.get(FOUND_ON, ""), meta.get("link_text", ""))
        host = parts_of(response.url)[0]
        relevance = round(float(self.relevance.score([self.goal.text(host, page_blocks(root))[:_READ]])[0]), 6)
        return TopicPage(
            url=response.url,
            title=title_of(response),
            relevance=relevance,
            host=host,
            domain=domain_at(host),
            depth=meta.get("depth", 0),
            path=self.path(response.url),
            why=why_of(meta),
            language=declared_language(response),
            fetched_at=datetime.now(UTC).isoformat(timespec="seconds"),
            page_source=source_of(response, self.asked) if relevance >= RELEVANT else None,
        )

    def remember(self, url: str, found_on: str, anchor: str) -> None:
        """Note how a page was first reached; if there are too many, forget the oldest."""
        if len(self.reached) >= _PAGES:
            del self.reached[next(iter(self.reached))]
        self.reached.setdefault(url, (found_on, printable(anchor)))

    def path(self, url: str) -> list[dict[str, str]]:
        """Return the pages from the seed to the one before this page; of a long path, the first and the last ones."""
        steps: list[dict[str, str]] = []
        seen = {url}
        found_on, anchor = self.reached[url]
        while found_on and found_on not in seen:
            steps.append({"url": found_on, "anchor": anchor})
            seen.add(found_on)
            found_on, anchor = self.reached.get(found_on, ("", ""))
        steps.reverse()
        return steps if len(steps) <= _STEPS else [steps[0], *steps[1 - _STEPS :]]


def keep(given: Given, path: Path) -> None:
    """Store examples for later runs of a job; ``UsageError`` if that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        given.write(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}; name another JOBDIR") from error


def read_results(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the results of an earlier run, except a last line that was cut."""
    if path.exists():
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    yield json.loads(line)
                except ValueError:
                    return
