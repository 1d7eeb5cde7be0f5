"""``scrapy crawl datasets -a root=https://...``: as many data files of a site as possible, with few requests."""

from __future__ import annotations

import mimetypes
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

import scrapy
from scrapy import signals
from scrapy.exceptions import DownloadCancelledError, IgnoreRequest
from scrapy.http import HtmlResponse
from scrapy.spidermiddlewares.httperror import HttpError

from scrapy_focus.core.printable import EXPLANATION, brief, printable
from scrapy_focus.core.reason import reads_like
from scrapy_focus.engine.host import host_of
from scrapy_focus.engine.inflight import ResponsePage, TooLarge
from scrapy_focus.engine.marks import CUT, LINK, MADE, page_of, why_of
from scrapy_focus.engine.pages import can_be_read
from scrapy_focus.features import existing
from scrapy_focus.features.revisits.feature import NOT_MODIFIED
from scrapy_focus.finders.files.arguments import FilesArguments
from scrapy_focus.finders.files.next_crawl import Again
from scrapy_focus.finders.files.output import FilesOutput
from scrapy_focus.finders.kit.arguments.argument import passed_on
from scrapy_focus.finders.kit.arguments.output import try_out
from scrapy_focus.finders.kit.spiders.crawl_notes import CrawlNotes
from scrapy_focus.finders.kit.spiders.declared_files import DeclaredFiles
from scrapy_focus.finders.kit.spiders.following_spider import new_links
from scrapy_focus.finders.kit.spiders.items import DataFile, GoneFile, SkippedFile
from scrapy_focus.finders.kit.spiders.listings import (
    NamedSitemaps,
    comes_back,
    feeds_named_in,
    links_of_listing,
    listing_in,
)
from scrapy_focus.finders.kit.spiders.middlewares import CutBodies, LongPagesAreCut
from scrapy_focus.finders.kit.spiders.print_urls import PrintUrls
from scrapy_focus.finders.kit.spiders.site_spider import SiteSpider
from scrapy_focus.goals.files import FilesGoal, file_mime
from scrapy_focus.web.directories import is_directory, leads_on
from scrapy_focus.web.html import link_text
from scrapy_focus.web.mime import blocked_extensions, effective_mime, extension, parse_mime
from scrapy_focus.web.names import announced_name, header_text
from scrapy_focus.web.safe_names import inert_name, safe_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from scrapy_focus.finders.files.asked_urls import What
    from scrapy_focus.web.listings import Listing

_LONGEST_HEADER = 500  # characters
_WORDS = 5  # that spoke for a file, at most


class DatasetsSpider(SiteSpider):
    """Finds and stores the data files of one or more sites.

    Arguments
    ---------
    root
        URLs to start from, separated by commas, or a file with one per line. The crawl stays on their hosts and
        sub-domains, ignoring ``www.``, and on the hosts that they redirect to.
    types
        What to look for, separated by commas: extensions, MIME types, or regular expressions of URLs
        (:class:`~scrapy_focus.web.wanted.Wanted`). The default ``data`` means all kinds of data files and documents.
    about
        What the files are to be about, in a few words: ``municipal budgets and annual accounts``. The reward of a file
        is then its relevance, from 0 to 1, and the most relevant are listed first. Needs the extra ``about``.
    embedding
        The embedding that compares the sentence with texts, see :func:`~scrapy_focus.learn.embedding.load_embedding`.
    about_least
        The least relevance of files that are stored; others are listed without a path. By default, all are stored.
    out
        Folder for the files and their manifest, ``manifest.jsonl``; ``skipped.jsonl`` lists files that were too large.
        With the folder of an earlier crawl, this is the next one: see
        :class:`~scrapy_focus.finders.files.next_crawl.Again`. With ``-``, the crawl stores nothing, and prints the URLs
        of files, one per line.
    new_only
        ``1``: request no file that an earlier crawl with this folder found.
    rate
        The limit of requests of all kinds per day or hour: ``200/day``. Then the crawl does not end, and keeps the
        files current, with the scheduler :class:`scrapy_focus.FreshScheduler`. Each version of a file is stored, and
        has a line in the manifest.
    sitemaps
        ``yes``, the default: the sitemaps that robots.txt names, the catalogues of data sets of some portals, and the
        files that pages declare for programs are links of separate kinds; ``no``: they are ignored.

    Notes
    -----
    In the folder, ``.focus/hosts.json`` lists the hosts that a root redirected to.

    Sitemaps, feeds, catalogues of data sets and descriptions for browsers are not data files, whatever their MIME type
    (:func:`~scrapy_focus.web.listings.listing_of`), unless ``types`` names the type: with ``xml``, all XML counts.
    The crawl follows the URLs in sitemaps and catalogues, and those of files that pages declare in JSON-LD
    (``Dataset``) or in ``Link`` headers. It reads a sitemap for files first, and for pages when it has read a hundred.
    Of a directory listing, it follows no link that only sorts it or leads back up.
    """

    name = "datasets"
    custom_settings = {
        "ITEM_PIPELINES": {"scrapy_focus.finders.files.pipelines.StoreFiles": 300},
        "FOCUS_EXPLAIN": True,
        **existing({"FOCUS_IGNORE_PARAMETERS": True}),
        "LOG_LEVEL": "INFO",
    }

    asked: FilesArguments

    def __init__(self, root: str | Sequence[str] = "", **given: Any) -> None:
        self.asked = asked = FilesArguments.read({"root": root, **given})
        super().__init__(asked.starts, stays=asked.reach == "host", **passed_on(given))
        self.goal = asked.goal
        named = [word for word in asked.types if word.lower() != "data"]
        self.named = FilesGoal(types=named) if named else None  # for these, listings count, too
        self.sitemaps = asked.sitemaps
        self.named_sitemaps: NamedSitemaps | None = None  # those of robots.txt
        self.declared: DeclaredFiles | None = None  # what catalogues and pages declare
        self.budget = asked.budget
        self.out = asked.out
        self.new_only = asked.new_only
        self.rate = asked.rate
        self.again: Again | None = None
        self.notes: CrawlNotes | None = None
        self.ignored = blocked_extensions(self.goal.types)
        self.comes_back = False
        self.left_out: set[str] = set()  # extensions of links that were not followed

    @property
    def states(self) -> dict[str, int] | None:
        """How many files are new, changed, the same or gone since the previous crawl; ``None`` if there was none."""
        if self.again is not None and self.again.files.before:
            return self.again.files.counts()
        return None

    @property
    def ending_hint(self) -> str:
        """A sentence for the last line of the crawl, ``""`` if there is nothing to add."""
        return "" if self.declared is None else self.declared.hint

    @property
    def n_known(self) -> int:
        """How many of the finds are from earlier crawls of the folder."""
        if self.again is not None and self.again.files.before:
            return self.again.files.n_known
        return 0

    def set_up(self, crawler: Crawler) -> None:
        """Apply the arguments, and prepare the folder.

        Raises
        ------
        UsageError
            If it cannot be written.
        """
        settings = crawler.settings
        if self.rate:
            settings.set("SCHEDULER", "scrapy_focus.FreshScheduler", "spider")
            settings.set("FOCUS_BUDGET_RATE", str(self.rate), "spider")
        if self.out != "-":
            try_out(Path(self.out, "manifest.jsonl"), Path(self.out))
            again = Again(
                crawler, Path(self.out), new_only=self.new_only, comes_back=bool(self.rate), about=self.asked.about,
                least=self.asked.about_least,
            )  # fmt: skip
            self.again = again
            self.follow_roots(Path(self.out))
        crawler.signals.connect(self.opened, signals.spider_opened)
        if self.out == "-":
            settings.set("ITEM_PIPELINES", {PrintUrls: 300}, "spider")
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", LongPagesAreCut, 585)
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", CutBodies, 555)
        if not settings.getpriority("DOWNLOAD_FAIL_ON_DATALOSS"):  # a project may set it
            settings.set("DOWNLOAD_FAIL_ON_DATALOSS", False, "spider")
        settings.set("FOCUS_GOAL", self.goal, "spider")
        if self.sitemaps and self.asked.reach != "page":
            self.named_sitemaps = NamedSitemaps(crawler)
            self.declared = DeclaredFiles(crawler, self.goal)
        self.asked.set_up(crawler)
        if self.again is not None:
            facts: dict[str, Any] = {
                "spider": self.name, "roots": self.roots, "types": str(self.goal.wanted), "budget": self.budget,
                "fixed": self.asked.fixed, "scope": self.asked.stays_on, "rate": str(self.rate or ""),
            }  # fmt: skip
            if self.asked.about:
                facts |= {"about": self.asked.about, "about_least": self.asked.about_least}
            self.notes = CrawlNotes(
                crawler, out=self.again.out, output=FilesOutput, run=self.again.run, facts=facts,
                left_out=self.left_out, comes_back=bool(self.rate),
            )  # fmt: skip

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        if self.again is not None:
            self.again.reached()
        mime = parse_mime((response.headers.get("Content-Type") or b"").decode("latin-1"))
        page = ResponsePage(response)
        listing = listing_in(response)
        if listing:
            yield from self._listed(response, listing)
        found = self._finds(mime, response.url, page, listing)
        if found:
            yield self.file(response, file_mime(mime, response.url, page))
        is_page = not listing and (not found or "html" in mime)
        if isinstance(response, HtmlResponse) and is_page and can_be_read(response):
            yield from self._read(response)
        elif not found:
            self._note(response, "other")

    def _finds(self, mime: str, url: str, page: ResponsePage, listing: Listing) -> bool:
        """Whether a response is a wanted file; a listing is one only if the user names its type."""
        if not self.goal.finds(mime, url, page):
            return False
        if not listing:
            return True
        return self.named is not None and self.named.finds(mime, url, page)

    def _listed(self, response: Response, listing: Listing) -> Iterator[scrapy.Request]:
        """Yield a request for each URL in a listing that the crawl follows."""
        if self.declared is None and listing in ("sitemap", "catalogue"):
            return
        made = links_of_listing(response, listing, feeds=self.comes_back)
        if self.declared is not None and listing == "catalogue":
            made = self.declared.of_catalogue(response)
        elif self.declared is not None and listing == "sitemap" and not self.comes_back:
            made = self.declared.of_sitemap(response)
        for request in made:
            if self._follows(request.url):
                yield request.replace(errback=self.skip)

    def _read(self, response: HtmlResponse) -> Iterator[Any]:
        """Yield the items and requests of a page."""
        self._note(response, "page")
        yield from self.made(response)
        if self.declared is not None:
            for request in self.declared.of_page(response):
                if self._follows(request.url):
                    yield request.replace(errback=self.skip)
        if self.comes_back:
            for feed in feeds_named_in(response):
                yield feed.replace(errback=self.skip)
        yield from self.links(response)

    def opened(self) -> None:
        """Check whether the crawl revisits pages, so that feeds announce new ones; handles ``spider_opened``."""
        self.comes_back = comes_back(self.crawler)

    def _note(self, response: Response, what: What) -> None:
        if self.again is not None:
            self.again.note(response, what)

    def _follows(self, url: str) -> bool:
        """Whether to follow a link: not if it leads to a known file or an unwanted type."""
        if (name := extension(url)) in self.ignored and not self.goal.wanted.asks_for(url):
            self.left_out.add(name)
            return False
        return self.again is None or not self.again.is_listed(url)

    def file(self, response: Response, mime: str) -> DataFile:
        """Return the item for a file."""
        return DataFile(
            url=response.url,
            mime=mime,
            size=len(response.body),
            page="" if response.request is None else page_of(response.request),
            anchor=response.meta.get("link_text", ""),
            name=file_name(response, mime),
            body=response.body,
            link=response.meta.get("redirect_urls", [response.url])[0],
            etag=_header(response, "ETag"),
            last_modified=_header(response, "Last-Modified"),
            cut=CUT in response.flags,
            unchanged=NOT_MODIFIED in response.flags,
            **self._judged(response, ResponsePage(response)),
        )

    def _judged(self, response: Response, page: ResponsePage | None, name: str = "") -> dict[str, Any]:
        """Return why a file was fetched and, if the user said what files are to be about, its relevance.

        ``page`` is the response of the file; ``None`` for a file of this name that scripts of the response made.
        """
        why = why_of(response.meta)
        if not self.asked.about:
            return {"why": why}
        link, anchor = self._link_of(response), response.meta.get("link_text", "")
        relevance = round(self.goal.relevance_at(link, page, name), 4)
        words = ", ".join(self.goal.words_at(link, page, name, anchor)[:_WORDS])
        known = None if self.again is None or page is None else self.again.judged(response.url)
        if known is not None and known.relevance is not None:
            is_kept_out = NOT_MODIFIED in response.flags and not known.path  # it has no body that could be stored
            if known.relevance > relevance or is_kept_out:  # its first link is better known
                relevance, words = known.relevance, known.words
        spoke = f": {words}" if words else ""
        reads = f"the file {reads_like(self.asked.about, relevance)}{spoke}"
        return {
            "why": printable(f"{reads}; {why}", EXPLANATION), "relevance": relevance, "words": words,
            "irrelevant": relevance < self.asked.about_least,
        }  # fmt: skip

    def _link_of(self, response: Response) -> str:
        """Return the URL of the link that led to a response, as the crawl knows it."""
        host = host_of(self.crawler)
        entry = None if host is None else host.inflight.find(response)
        return response.meta.get("redirect_urls", [response.url])[0] if entry is None else entry.pick.url

    def made(self, response: Response) -> Iterator[DataFile]:
        """Return an item for each file that scripts of a page generated in a browser, without a URL."""
        for file in response.meta.get(MADE, ()):
            if self.goal.makes(file.name):
                mime = effective_mime(file.mime, safe_name(file.name))
                yield DataFile(
                    url=f"{response.url.partition('#')[0]}#{quote(file.name)}",
                    mime=mime,
                    size=len(file.body),
                    page=response.url,
                    anchor="",
                    name=inert_name(safe_name(file.name), mime),
                    body=file.body,
                    **(self._judged(response, None, file.name) if self.asked.about else {}),
                )

    def skip(self, failure: Failure) -> Any:
        """Return the item for a file that is too large or gone, and any other failure unchanged."""
        error = failure.value
        if isinstance(error, HttpError):
            if self.again is not None and (known := self.again.gone(error.response)) is not None:
                return GoneFile(url=known.url)
            self._note(error.response, "other")
        if isinstance(error, IgnoreRequest) and self.declared is not None:
            made = self.declared.instead_of(failure.request)  # type: ignore[attr-defined]
            if made is not None:
                return made.replace(errback=self.skip)
        if not isinstance(error, (TooLarge, DownloadCancelledError)):
            return failure
        request: scrapy.Request = failure.request  # type: ignore[attr-defined]
        most = f"larger than DOWNLOAD_MAXSIZE, {self.settings.getint('DOWNLOAD_MAXSIZE'):,} bytes"
        return SkippedFile(
            url=request.url,
            reason=str(error) if isinstance(error, TooLarge) else most,
            page=page_of(request),
            anchor=request.meta.get("link_text", ""),
        )

    def links(self, response: HtmlResponse) -> Iterator[scrapy.Request]:
        """Return a request for each link of a page, in document order."""
        is_list = is_directory(response.text)
        for url, element in new_links(response, self.notes):
            if not self._follows(url) or (is_list and not leads_on(url, response.url)):
                continue
            anchor = link_text(element)
            try:
                request = scrapy.Request(url, errback=self.skip, meta={"link_text": anchor} if anchor else None)
            except ValueError:
                self.logger.debug("Not a URL: %s on %s", brief(url), brief(response.url))
            else:
                if self.notes is not None:
                    self.notes.link(response.url, request.url)
                if self.again is not None:
                    if self.again.comes_later(request.url):
                        continue
                    if place := self.again.place_of_new(request.url):
                        request.meta[LINK] = {"tag_path": place}
                yield request


def file_name(response: Response, mime: str) -> str:
    """Return a name for a file: the server's, or the end of its URL, with an extension."""
    said = header_text(response.headers.get("Content-Disposition") or b"")
    name, end = announced_name({"Content-Disposition": said}), unquote(urlsplit(response.url).path).rpartition("/")[2]
    if not name.rpartition(".")[0].strip(". ") and name.startswith("."):  # only an extension
        name = f"{end.rpartition('.')[0] or end}.{name.strip('. ')}"
    name = safe_name(name or end)
    return inert_name(name, mime) if "." in name else f"{name}{mimetypes.guess_extension(mime) or ''}"


def _header(response: Response, name: str) -> str:
    """Return a header that can be sent back, ``""`` if it is missing or too long."""
    value = (response.headers.get(name) or b"").decode("latin-1")
    if len(value) <= _LONGEST_HEADER and value.isprintable():
        return value
    return ""
