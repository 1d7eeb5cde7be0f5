"""``scrapy crawl important -a root=https://...``: the most important pages of a site, with few requests."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy.exceptions import UsageError
from scrapy.http import HtmlResponse
from scrapy.utils.response import get_base_url

from scrapy_focus.config import Config
from scrapy_focus.core.printable import brief, printable
from scrapy_focus.engine.marks import FOUND_ON
from scrapy_focus.engine.pages import can_be_read
from scrapy_focus.features import existing
from scrapy_focus.finders.important.arguments import ImportantArguments
from scrapy_focus.finders.important.link_notes import LinkNotes
from scrapy_focus.finders.important.output import ImportantOutput
from scrapy_focus.finders.kit.arguments.argument import passed_on
from scrapy_focus.finders.kit.arguments.output import try_out
from scrapy_focus.finders.kit.records.crawls import Run
from scrapy_focus.finders.kit.records.folder_names import PAGES
from scrapy_focus.finders.kit.spiders.crawl_notes import CrawlNotes
from scrapy_focus.finders.kit.spiders.following_spider import NO_PAGES
from scrapy_focus.finders.kit.spiders.items import ImportantPage
from scrapy_focus.finders.kit.spiders.middlewares import VeryLongPagesAreCut
from scrapy_focus.finders.kit.spiders.page_texts import declared_language, feed_of, source_of, title_of
from scrapy_focus.finders.kit.spiders.print_urls import PrintUrls
from scrapy_focus.finders.kit.spiders.site_spider import SiteSpider
from scrapy_focus.goals.pages import PagesGoal
from scrapy_focus.policies.hotqueue import HotQueue
from scrapy_focus.policies.importance import Importance
from scrapy_focus.web.html import link_text, page_links
from scrapy_focus.web.mime import FILE_TYPES, blocked_extensions, extension

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scrapy.crawler import Crawler
    from scrapy.http import Response

_LINKS = 200_000  # links of a page that are read


class ImportantSpider(SiteSpider):
    """Fetches the most important pages of one or more sites: those that many important pages link to.

    Every link from one page to another counts, including links to other sites, which are not crawled. Files are not
    pages: links with the extension of a file are not followed and do not count, and other files are stopped at their
    headers. Links with ``nofollow`` are not followed and do not count if ``FOCUS_OBEY`` names it. The scheduler is
    :class:`scrapy_focus.ImportanceScheduler`.

    Arguments
    ---------
    root
        URLs to start from, separated by commas, or a file with one per line. The crawl stays on their hosts and
        sub-domains, ignoring ``www.``, and on the hosts that they redirect to.
    by
        The order of pages: ``pagerank``, the default, ``backlinks``, ``opic``, ``location``, ``breadth`` or
        ``similarity`` to ``words``; see :class:`~scrapy_focus.policies.importance.Importance`.
    words
        Words of a topic, separated by commas: links with these words come first
        (:class:`~scrapy_focus.policies.hotqueue.HotQueue`), the most important ones before others.
    out
        Folder for the results: ``pages.jsonl``, a line for each page that was fetched, and at the end ``index.html``
        and ``importance.csv``, both by PageRank. With ``-``, the crawl stores nothing, and prints the URLs of pages as
        they are fetched, one per line.

    Notes
    -----
    In the folder, ``.focus/graph.jsonl`` records which page links to which, and ``.focus/hosts.json`` the hosts that a
    root redirected to.
    """

    name = "important"
    custom_settings = {
        "SCHEDULER": "scrapy_focus.ImportanceScheduler",
        "FOCUS_BLOCKED_MIMES": [*NO_PAGES],
        **existing({"FOCUS_IGNORE_PARAMETERS": True, "FOCUS_MAX_LINKS": 0}),
        "DOWNLOAD_MAXSIZE": 10_000_000,
        "LOG_LEVEL": "INFO",
    }

    def __init__(self, root: str | Sequence[str] = "", **given: Any) -> None:
        self.asked = asked = ImportantArguments.read({"root": root, **given})
        super().__init__(asked.starts, stays=asked.reach == "host", **passed_on(given))
        self.budget = asked.budget
        self.by = asked.by
        self.words = asked.words
        self.out = asked.out
        self.goal = PagesGoal()
        self.notes: CrawlNotes | None = None
        self.linked: LinkNotes | None = None
        self.left_out: set[str] = set()  # extensions of links that were not followed
        self._ignored = blocked_extensions() | FILE_TYPES.keys()

    def set_up(self, crawler: Crawler) -> None:
        """Apply the arguments, and prepare the folder.

        Raises
        ------
        UsageError
            If the folder cannot be written, or contains the results of another crawl.
        """
        settings = crawler.settings
        settings.set("FOCUS_GOAL", self.goal, "spider")
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", VeryLongPagesAreCut, 585)
        self.asked.set_up(crawler)
        policy: type[Importance] = HotQueue if self.words else Importance
        settings.set("FOCUS_POLICY", policy, "spider")
        if settings["FOCUS_POLICY"] is policy:  # not one from the command line
            params: dict[str, Any] = {"base": self.by, "words": self.words} if self.words else {"by": self.by}
            settings.set("FOCUS_POLICY_PARAMS", {**params, **Config.params.of(settings)}, "cmdline")
        if self.out == "-":
            settings.setdefault_in_component_priority_dict("ITEM_PIPELINES", PrintUrls, 300)
            return
        out, job = Path(self.out).absolute(), settings["JOBDIR"]
        resumes = bool(job) and Path(job, "focus").exists()
        _check_folder(out, resumes=resumes)
        self.follow_roots(out)
        feed = feed_of(ImportantPage, self.asked)
        settings.set("FEEDS", {**settings.getdict("FEEDS"), str(out / PAGES): feed}, "cmdline")
        facts = {
            "spider": "important", "roots": self.roots, "types": self.asked.looks_for, "budget": self.budget,
            "fixed": self.asked.fixed, "scope": self.asked.stays_on,
        }  # fmt: skip
        self.notes = CrawlNotes(
            crawler, out=out, output=ImportantOutput, run=Run(1, resumes, 0), facts=facts, left_out=self.left_out
        )
        self.linked = LinkNotes(crawler, out=out, resumes=resumes)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        if not isinstance(response, HtmlResponse) or response.status >= 300 or not can_be_read(response):
            return
        meta, contents = response.meta, self.asked.contents
        yield ImportantPage(
            url=response.url,
            title=title_of(response),
            depth=meta.get("depth", 0), status=response.status, page=meta.get(FOUND_ON, ""),
            anchor=printable(meta.get("link_text", "")), fetched_at=datetime.now(UTC).isoformat(timespec="seconds"),
            language=declared_language(response) if contents else "", page_source=source_of(response, self.asked),
        )  # fmt: skip
        yield from self.links(response)

    def links(self, response: HtmlResponse) -> Iterator[scrapy.Request]:
        """Yield a request for each link to another page, including other sites: Scrapy drops those."""
        root, base = response.selector.root, get_base_url(response)
        for url, element in islice(page_links(root, base, encoding=response.encoding), _LINKS):
            if (name := extension(url)) in self._ignored:
                self.left_out.add(name)
                continue
            anchor = link_text(element)
            try:
                request = scrapy.Request(url, meta={FOUND_ON: response.url, "link_text": anchor})
            except ValueError:
                self.logger.debug("Not a URL: %s on %s", brief(url), brief(response.url))
                continue
            if self.notes is not None:
                self.notes.link(response.url, request.url)
            if self.linked is not None:
                self.linked.link(response.url, request, anchor)
            yield request


def _check_folder(out: Path, *, resumes: bool) -> None:
    try_out(out / PAGES, out)
    pages = out / PAGES
    if not resumes and pages.exists() and pages.stat().st_size:
        raise UsageError(
            f"{out} contains the results of another crawl; name another folder with -a out=, or give its JOBDIR"
        )
