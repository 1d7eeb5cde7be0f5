"""``scrapy crawl structured -a seeds=FILE -a types=Recipe``: pages that describe the wanted things."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError
from scrapy.http import HtmlResponse

from scrapy_focus.config import Config
from scrapy_focus.core.printable import printable
from scrapy_focus.engine.inflight import ResponsePage
from scrapy_focus.engine.marks import FOUND_ON, why_of
from scrapy_focus.engine.pages import can_be_read
from scrapy_focus.finders.kit.arguments.argument import passed_on
from scrapy_focus.finders.kit.arguments.output import try_out
from scrapy_focus.finders.kit.records.crawls import Run
from scrapy_focus.finders.kit.records.lines import read_lines
from scrapy_focus.finders.kit.spiders.crawl_notes import CrawlNotes
from scrapy_focus.finders.kit.spiders.following_spider import MANY_HOSTS, FollowingSpider, new_links
from scrapy_focus.finders.kit.spiders.items import StructuredEntity
from scrapy_focus.finders.kit.spiders.middlewares import LongDataPagesAreCut, RedirectsAreLinks, redirect_of, refresh_of
from scrapy_focus.finders.kit.spiders.page_texts import declared_language, feed_of, source_of, title_of
from scrapy_focus.finders.kit.spiders.print_urls import PrintUrls
from scrapy_focus.finders.kit.spiders.site_spider import SiteSpider
from scrapy_focus.finders.structured.arguments import StructuredArguments
from scrapy_focus.finders.structured.output import StructuredOutput
from scrapy_focus.goals.structured_about import StructuredDataAbout
from scrapy_focus.web.html import link_text, page_blocks
from scrapy_focus.web.mime import FILE_TYPES, blocked_extensions, extension
from scrapy_focus.web.url_parts import domain_at, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_focus.web.entities import Entity

_ROOM = 5_000_000  # characters of the values of a page that are listed
_EACH = 10  # characters that a value other than a text counts as
_BLOCKS = 2_000  # blocks of text of a page that are compared with the topic
_PAGES = 200_000  # pages with entities whose URLs are remembered


class StructuredSpider(FollowingSpider, SiteSpider):
    """Finds pages that describe things in machine-readable form (JSON-LD, microdata), and lists these descriptions.

    The crawl leaves the hosts of its seeds, with the scheduler :class:`scrapy_focus.AnthelionScheduler`. If ``scope``
    keeps it on one host, the scheduler is :class:`scrapy_focus.FocusScheduler`, as there are no hosts to choose from.
    With ``about``, it is :class:`scrapy_focus.TreeFrontierScheduler`, whose policy reads links.

    Arguments
    ---------
    seeds
        Pages to start from: URLs separated by commas, or a file with one per line.
    types
        Types to look for: those of schema.org such as ``Recipe,Event``, or full names of others. By default, the crawl
        finds any page with enough facts.
    about
        A sentence: only pages about it count as found. All entities are listed, each with the relevance of its page. It
        needs ``pip install "scrapy-focus[about]"``.
    embedding
        The embedding that compares the sentence with texts, see :func:`~scrapy_focus.learn.embedding.load_embedding`.
    least
        Without types, the least number of facts on a page that counts as found; 6 by default.
    syntaxes
        Syntaxes to read: ``json-ld``, ``microdata`` or both, the default.
    per_domain
        The limit of pages per registered domain; none by default.
    per_host
        The limit of pages per host, instead of ``per_domain``: for sites below one name that is on no list of suffixes,
        such as the ministries of a country.
    out
        File for the results: a line of JSON for each entity, see
        :class:`~scrapy_focus.finders.kit.spiders.items.StructuredEntity`. With ``-``, the crawl stores nothing, and
        prints the lines.
    folder
        Folder for notes of the crawl, and for ``index.html`` and ``hosts.csv``, which are written at the end from the
        notes and ``entities.jsonl``. ``out`` is then ``entities.jsonl`` in this folder. None by default.
    """

    name = "structured"
    custom_settings = {
        "SCHEDULER": "scrapy_focus.AnthelionScheduler",
        **MANY_HOSTS,
    }

    asked: StructuredArguments

    def __init__(self, seeds: str | Sequence[str] = "", **given: Any) -> None:
        self.asked = asked = StructuredArguments.read({"seeds": seeds, **given})
        super().__init__(asked.starts, stays=False, **passed_on(given))
        self.seeds = self.roots
        self.goal = asked.goal
        self.budget = asked.budget
        self.folder = asked.found_in
        self.out = asked.list_file
        self._ignored = blocked_extensions() | FILE_TYPES.keys()
        self._listed: dict[str, set[int]] = {}  # by URL: numbers of the entities that an earlier run listed
        self._read: dict[str, None] = {}  # URLs of pages whose entities this run listed

    @property
    def n_listed(self) -> int:
        """Pages whose entities are listed, by this run or an earlier one."""
        return len(self._listed.keys() | self._read.keys())

    def set_up(self, crawler: Crawler) -> None:
        """Apply the arguments, and prepare the file or folder.

        Raises
        ------
        UsageError
            If it cannot be written, or contains the results of another crawl.
        """
        settings = crawler.settings
        settings.set("FOCUS_GOAL", self.goal, "spider")
        if self.asked.is_one_host:
            settings.set("SCHEDULER", "scrapy_focus.FocusScheduler", "spider")
        if self.asked.about:  # its policy reads which links are about it
            settings.set("SCHEDULER", "scrapy_focus.TreeFrontierScheduler", "spider")
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", LongDataPagesAreCut, 585)
        if self.asked.reach == "any":
            settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", RedirectsAreLinks, 610)
        self.asked.set_up(crawler)
        if caps := self.asked.caps:
            params = {**caps, **Config.params.of(settings)}
            settings.set("FOCUS_POLICY_PARAMS", params, "cmdline")
        if self.out is None:
            settings.setdefault_in_component_priority_dict("ITEM_PIPELINES", PrintUrls, 300)
            return
        self._set_up_list(crawler, self.out)

    def _set_up_list(self, crawler: Crawler, out: Path) -> None:
        """Prepare the file of entities, and the other files of its folder."""
        settings = crawler.settings
        job = settings["JOBDIR"]
        resumes = bool(job) and Path(job, "focus").exists()
        self.prepare(out, resumes=resumes)
        feed = feed_of(StructuredEntity, self.asked)
        settings.set("FEEDS", {**settings.getdict("FEEDS"), str(out): feed}, "cmdline")
        if self.folder is not None:
            run = Run(1, resumes, 0)
            self.notes = CrawlNotes(
                crawler, out=self.folder, output=StructuredOutput, run=run, facts=self.facts(), left_out=set()
            )

    def prepare(self, out: Path, *, resumes: bool) -> None:
        """Ensure that lines can be appended to a file; for a resumed job, read its list.

        Raises
        ------
        UsageError
            If it cannot be written, or contains the results of another crawl.
        """
        if not resumes and out.exists() and out.stat().st_size:
            raise UsageError(
                f"{out} contains the results of another crawl: name another file with -a out=FILE, or give the JOBDIR "
                "of that crawl to resume it"
            )
        try_out(out)
        for line in read_lines(out, url=str, number=int) if resumes else ():
            self._listed.setdefault(line.get("url") or "", set()).add(line.get("number") or 0)
            if len(self._listed) > _PAGES:
                del self._listed[next(iter(self._listed))]

    def facts(self) -> dict[str, Any]:
        """Return the arguments of the crawl, as values of JSON."""
        return {
            "spider": self.name, "roots": self.seeds, "budget": self.budget, "types": self.asked.looks_for,
            "per_domain": self.asked.per_domain, "per_host": self.asked.per_host, "fixed": self.asked.fixed,
            "scope": self.asked.stays_on,
        }  # fmt: skip

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        meta = response.meta
        if target := redirect_of(response):
            yield from self.link(response, target, meta.get("link_text", ""))
        if not isinstance(response, HtmlResponse) or response.status >= 300 or not can_be_read(response):
            return
        yield from self.entities(response)
        if refresh := refresh_of(response):
            yield from self.link(response, refresh, meta.get("link_text", ""))
        for url, element in new_links(response, self.notes):
            if extension(url) not in self._ignored:
                yield from self.link(response, url, link_text(element))

    def entities(self, response: HtmlResponse) -> Iterator[StructuredEntity]:
        """Yield an item for each wanted entity of a page that is not yet listed."""
        url, meta = response.url, response.meta
        if url in self._read:
            return
        reading = self.goal.reading(ResponsePage(response))
        if not self.goal.finds(reading):
            return
        if len(self._read) >= _PAGES:
            del self._read[next(iter(self._read))]
        self._read[url] = None
        listed, host = self._listed.pop(url, set()), parts_of(url)[0]
        wanted = self.goal.wanted(reading)
        relevance, source = self._relevance(host, response), source_of(response, self.asked)
        about_page = {} if source is None else {"title": title_of(response), "language": declared_language(response)}
        for number, entity in enumerate(within(wanted if self.goal.names else outermost(wanted)), 1):
            if number not in listed:
                yield StructuredEntity(
                    url=url, number=number, types=[*entity.types], syntax=entity.syntax, values=entity.values,
                    host=host, domain=domain_at(host), depth=meta.get("depth", 0), page=meta.get(FOUND_ON, ""),
                    anchor=printable(meta.get("link_text", "")),
                    why=why_of(meta),
                    fetched_at=datetime.now(UTC).isoformat(timespec="seconds"),
                    relevance=relevance, page_source=source, **about_page,
                )  # fmt: skip

    def _relevance(self, host: str, response: HtmlResponse) -> float | None:
        """Return the probability that a page is on the topic, ``None`` without a topic."""
        if not isinstance(self.goal, StructuredDataAbout):
            return None
        return round(self.goal.probability(host, page_blocks(response.selector.root)[:_BLOCKS]), 6)


def outermost(entities: Iterable[Entity]) -> Iterator[Entity]:
    """Yield the entities that are not nested in an earlier one."""
    inside: set[int] = set()
    for entity in entities:
        if id(entity.values) not in inside:
            inside.update(id(value) for value in _parts(entity.values) if isinstance(value, dict))
            yield entity


def within(entities: Iterable[Entity], room: int = _ROOM) -> Iterator[Entity]:
    """Yield entities until their values have a total of `room` characters; always yield the first one.

    A nested entity counts for each entity that contains it, as it is written with each.
    """
    for n, entity in enumerate(entities):
        room -= sum(len(value) if isinstance(value, str) else _EACH for value in _parts(entity.values))
        if n and room < 0:
            return
        yield entity


def _parts(values: Any) -> Iterator[Any]:
    """Yield values and everything in them, including names of properties."""
    rest = [values]
    while rest:
        value = rest.pop()
        yield value
        if isinstance(value, dict):
            rest += value.keys()
            rest += value.values()
        elif isinstance(value, list):
            rest += value
