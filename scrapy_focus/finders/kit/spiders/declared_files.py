"""Follows what sites declare for programs: files and pages in sitemaps and catalogues, in JSON-LD and in headers.

Files that are declared are asked for like others, as links of separate kinds. Pages are another matter. A page that is
queued as an entry of a sitemap is no longer found by a link, whose place and text would say what to expect of it. So
the pages of sitemaps wait until the crawl knows the site by its links; on a small site it is at its end by then.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import signals
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware

from scrapy_focus.core.printable import NAME, counted, inflected, printable
from scrapy_focus.engine.host import host_of
from scrapy_focus.engine.marks import LINK
from scrapy_focus.finders.kit.spiders.listings import (
    catalogue_request,
    declared_request,
    is_rest,
    links_of_catalogue,
    links_of_listing,
    page_of_catalogue,
)
from scrapy_focus.web.catalogues import Catalogue
from scrapy_focus.web.declared import (
    catalogues_named_in,
    catalogues_of,
    files_in_json_ld,
    linked_files,
    mentions_datasets,
)
from scrapy_focus.web.mime import FILE_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import HtmlResponse, Response

    from scrapy_focus.engine.inflight import Entry
    from scrapy_focus.goals.files import FilesGoal
    from scrapy_focus.web.catalogues import Declared

_PAGES = 100  # of a site, after which the pages of its sitemaps are queued
_LOOKED = 10  # pages of a folder that are searched for catalogues ...
_FOLDERS = 10_000  # ... and folders that are told apart
_TRIED = 2  # addresses of catalogues that no page names, for each host
_MOST_NAMED = 100_000  # files that are told apart
_HOSTS = 1000  # other hosts that are counted, ...
_SHOWN = 3  # ... and of which the last line names so many


class DeclaredFiles:
    """Makes requests for the files and catalogues that pages declare, and counts files on other hosts.

    A crawl stays on its hosts, but the files of a catalogue are often on others: the user has to know.

    Parameters
    ----------
    crawler
        The crawler, whose offsite middleware decides which hosts are crawled.
    goal
        Decides which files are wanted.
    """

    def __init__(self, crawler: Crawler, goal: FilesGoal) -> None:
        self.crawler = crawler
        self.wants = goal.wants
        # A policy knows promising links by names of types in their text, and asks for such a catalogue early.
        self._lists = " ".join(name for name in FILE_TYPES if goal.wants(FILE_TYPES[name][0], ""))
        self.elsewhere: Counter[str] = Counter()  # wanted files by host, if it is not crawled
        self._looked: Counter[str] = Counter()  # pages of each folder that were searched for catalogues
        self._tried: Counter[str] = Counter()  # addresses of each host that no page names, ...
        self._asked: set[str] = set()  # ... and these
        self._named: set[int] = set()
        self._n_pages = 0  # of the site that were read
        self._rests: list[Request] = []  # for sitemaps whose pages are not queued yet
        self._read_whole: set[str] = set()  # sitemaps whose pages are
        crawler.signals.connect(self.on_opened, signals.spider_opened)

    def on_opened(self) -> None:
        """Skip requests that are no longer needed; the handler of Scrapy's ``spider_opened``."""
        host = host_of(self.crawler)
        if host is not None:
            host.features.on("hand_out", self._is_done)

    def _is_done(self, _: Entry, request: Request) -> bool:
        """Whether a request is for the pages of a sitemap that was read for them before."""
        return is_rest(request) and request.url in self._read_whole

    def of_sitemap(self, response: Response) -> Iterator[Request]:
        """Yield a request for each file in a sitemap, and for its pages if enough pages of the site are known."""
        later = self._n_pages < _PAGES
        if is_rest(response) or not later:
            self._read_whole.add(response.meta.get("redirect_urls", [response.url])[0])
        for request in links_of_listing(response, "sitemap", wants=self.wants, later=later):
            if is_rest(request):
                self._rests.append(_without_anchor(request))
            yield request

    def of_page(self, response: HtmlResponse) -> Iterator[Request]:
        """Yield a request for each file and catalogue that a page declares, and for the pages of earlier sitemaps."""
        self._n_pages += 1
        if self._n_pages >= _PAGES and self._rests:
            rests, self._rests = self._rests, []
            yield from rests
        headers = [value.decode("latin-1") for value in response.headers.getlist("Link")]
        yield from self._requests(response, "(header)", linked_files(headers) if headers else [])
        if mentions_datasets(response.text):
            yield from self._requests(response, "(json-ld)", files_in_json_ld(response.selector.root))
        folder = "/".join(response.url.split("/", 4)[2:4])  # software shows its name on each of its pages
        if self._looked[folder] < _LOOKED:
            if len(self._looked) < _FOLDERS:
                self._looked[folder] += 1
            yield from self._catalogues(response)

    def instead_of(self, request: Request) -> Request | None:
        """Return the request for ``data.json`` if robots.txt forbids that of CKAN's API, as CKAN's own does."""
        if request.url not in self._asked or not urlsplit(request.url).path.endswith("/package_search"):
            return None
        self._asked.discard(request.url)
        return catalogue_request(request.url, "/data.json", "(catalogue)", self._lists)

    def of_catalogue(self, response: Response) -> Iterator[Request]:
        """Yield a request for each file and page of a catalogue, and for its next page."""
        catalogue = Catalogue(response.body)
        for request in links_of_catalogue(response, catalogue, self.wants, self._lists):
            self._note(request)
            yield request
        if catalogue.count is None:
            self.counts["declared/datasets"] += catalogue.n_read
        elif not page_of_catalogue(response):
            self.counts["declared/datasets"] += catalogue.count

    def _note(self, request: Request) -> None:
        """Count a file, if the request is for one that was declared."""
        key = hash(request.url)
        if not request.meta[LINK]["tag_path"].endswith("/file") or key in self._named:
            return
        if len(self._named) < _MOST_NAMED:
            self._named.add(key)
        self.counts["declared/files"] += 1
        if not self._is_crawled(request):
            self.counts["declared/elsewhere"] += 1
            host = urlsplit(request.url).netloc
            if host in self.elsewhere or len(self.elsewhere) < _HOSTS:
                self.elsewhere[host] += 1

    @property
    def counts(self) -> Counter[str]:
        """The counts of the crawl; with another scheduler, nothing is counted."""
        host = host_of(self.crawler)
        return Counter() if host is None else host.counts

    @property
    def hint(self) -> str:
        """Say how many of the files are on other hosts, in a sentence; ``""`` if none are."""
        n = self.elsewhere.total()
        if not n:
            return ""
        named = [printable(host, NAME) for host, _ in self.elsewhere.most_common(_SHOWN)]
        more = len(self.elsewhere) - len(named)
        hosts = ", ".join(named) + (f", and {counted(more, 'other')}" if more else "")
        are, them = inflected(n, "is", "are"), inflected(n, "it", "them")
        listed = f"{counted(n, 'file')} that the site lists {are} on other hosts ({hosts})"
        return f"{listed}: add URLs of these hosts, or widen the scope, to get {them}."

    def _requests(self, response: Response, source: str, files: list[Declared]) -> Iterator[Request]:
        for file in files:
            made = declared_request(response.url, source, file, self.wants)
            if made is not None:
                self._note(made)
                yield made

    def _catalogues(self, response: HtmlResponse) -> Iterator[Request]:
        """Yield requests for catalogues that a page names, and at the usual addresses of the software that made it."""
        text, host = response.text, urlsplit(response.url).netloc
        named = catalogues_named_in(response.selector.root) if "alternate" in text and "json" in text else []
        names = {name.decode("latin-1").lower(): "" for name in response.headers}
        for url in catalogues_of(text, response.url, names):
            if urlsplit(url).netloc == host and self._tried[host] < _TRIED and url not in self._asked:
                self._asked.add(url)
                self._tried[host] += 1
                named.append(url)
        for url in named:
            made = catalogue_request(response.url, url, "(ckan)" if "/api/3/" in url else "(catalogue)", self._lists)
            if made is not None:
                yield made

    def _is_crawled(self, request: Request) -> bool:
        offsite = self.crawler.get_downloader_middleware(OffsiteMiddleware)
        spider = self.crawler.spider
        return offsite is None or spider is None or offsite.should_follow(request, spider)


def _without_anchor(request: Request) -> Request:
    """Return a request for the rest of a sitemap that does not wait until nothing else is left."""
    return request.replace(meta={**request.meta, LINK: {"tag_path": request.meta[LINK]["tag_path"]}})
