"""Pages that earlier crawls requested, to be revisited for new links.

New pages with files are linked where old ones are, so pages that led to several pages with files (topics, listings)
come first, ordered by their number. New files on old pages are rare; they appear on pages with several files rather
than on pages with one. So pages with files come next, those of sections with the most files per page first, and all
others come last. Each revisit is a link of a separate kind, one for each section, and the policy learns their value by
following some. A new link is also judged by its section: what earlier crawls found on similar pages is known before
the first request.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from sys import intern
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from scrapy_focus.finders.kit.records.folder_names import MANIFEST
from scrapy_focus.finders.kit.records.lines import add_line, cut_line, read_lines, web_url
from scrapy_focus.policies.branching.layout import AGAIN

if TYPE_CHECKING:
    from pathlib import Path

ASKED = ".focus/asked.jsonl"

What = Literal["page", "other"]
Brought = Literal["files", "leads", "none"]  # what links on a page led to: files, pages with files, or neither
Turn = Literal["lead", "file", "other"]  # led to several pages with files; to one, or to files; to neither

_MOST = 20_000  # pages that are revisited
_KEPT = 500_000  # requested URLs that are remembered
_DIGITS = re.compile(r"\d+")
_LANGUAGE = re.compile(r"[a-z]{2}(?:[-_][A-Za-z]{2})?")  # as a folder
_FOLDERS = 2  # folders of a path that define a section
_LONGEST = 60  # characters of these folders
_STEPS = 20  # clicks from a page to a page with files that are followed back
_LEAST = 3  # pages of a section that had files ...
_SHARE = 0.5  # ... and their share of its pages, at which new pages are expected to have files
_MANY = 20  # pages of a section ...
_POOR = 0.05  # ... and the share with files or links to them below which new pages are not expected to have any
_DULL = "again/dull"  # the place of such pages
_LAST = 3  # turn of the last pages
_SEVERAL = 2.0  # pages with files that a page must lead to, to come first


class Look(NamedTuple):
    """A URL to revisit, and its place: a tag path that no page has."""

    url: str
    place: str
    turn: Turn


@dataclass(slots=True)
class Section:
    """Pages whose URLs share a pattern."""

    pages: int = 0
    paid: int = 0  # pages with files among these
    files: int = 0
    led: int = 0  # pages that led to pages with files
    leads: int = 0  # pages with files that they led to


class Asked:
    """The URLs that the crawls of a folder requested, except files.

    Parameters
    ----------
    out
        The folder.
    crawl
        The number of this crawl.
    """

    def __init__(self, out: Path, crawl: int) -> None:
        self.path = out / ASKED
        self.crawl = crawl
        self.before: dict[str, What] = {}
        self._noted: set[str] = set()
        self._seen_on: dict[str, str] = {}  # by URL: the page where an earlier crawl first saw it
        cut_line(self.path)
        for line in read_lines(self.path, url=str, crawl=int, page=str):
            self._read(line)
        self._files = Counter(line.get("page") or "" for line in read_lines(out / MANIFEST, page=str) if self.before)
        self._leads = self._count_leads()
        self._sections = self._read_sections()

    def _read(self, line: dict[str, Any]) -> None:
        url = web_url(line.get("url") or "", self.path)
        if (line.get("crawl") or 1) >= self.crawl:
            self._noted.add(url)
        elif len(self.before) < _KEPT:
            self.before[url] = "page" if line.get("what") == "page" else "other"
            self._seen_on.setdefault(url, intern(line.get("page") or ""))

    def note(self, url: str, what: What, page: str = "") -> None:
        """Note that this crawl requested a URL from a page, and what it was; once each."""
        if url not in self._noted and self.before.get(url) != what and len(self._noted) < _KEPT:
            self._noted.add(url)
            add_line(self.path, {"url": url, "what": what, "page": page, "crawl": self.crawl})

    def depth_of(self, url: str) -> int:
        """Return the number of links by which an earlier crawl reached a URL; that to a sitemap counts."""
        depth, seen, page = 0, {url}, self._seen_on.get(url, "")
        while page and page not in seen:
            depth += 1
            seen.add(url := page)
            page = self._seen_on.get(url, "")
        return depth + (self.before.get(url) == "other")

    def place_of_new(self, url: str) -> str:
        """Return the place of a link that no crawl saw before: ``""`` for its place on the page.

        Links to pages similar to those with files have a separate place, as have links to pages similar to many
        without files or links to them.
        """
        section = self._sections.get(pattern := pattern_of(url)) if self._sections else None
        if section is None:
            return ""
        if section.paid >= max(_LEAST, _SHARE * section.pages):
            return f"{AGAIN['new']}.{pattern}"
        poor = section.pages >= _MANY and section.paid + section.led <= _POOR * section.pages
        return _DULL if poor else ""

    def again(self) -> list[Look]:
        """Return the pages to revisit, 20,000 at most, the most valuable first.

        First come pages that led to several pages with files, and others of a section where most did; then pages with
        files, those of sections with many files per page first; then pages that led to one; then all others.
        """
        looks = sorted((self._look(url, what) for url, what in self.before.items()), key=lambda each: each[:2])
        return [look for *_, look in looks[:_MOST]]

    def _look(self, url: str, what: What) -> tuple[int, float, Look]:
        """Return a revisit of a page, and its sort key: the smaller, the earlier."""
        section, led = self._sections.get(pattern_of(url)), self._leads[url]
        if what != "page" or section is None:
            return _LAST, 0.0, Look(url, place_of(url, what, "none"), "other")
        if self._files[url]:
            files = section.files / section.paid  # per page with files
            return 1 if files > 1 else 2, -files, Look(url, place_of(url, what, "files"), "file")
        leads = section.leads / section.pages
        if led + leads >= _SEVERAL or leads >= 1:
            return 0, -led - leads, Look(url, place_of(url, what, "leads"), "lead")
        if led:
            return 2, -led - leads, Look(url, place_of(url, what, "leads"), "file")
        return _LAST, 0.0, Look(url, place_of(url, what, "none"), "other")

    def _read_sections(self) -> dict[str, Section]:
        """Return the counts of each section, by the pattern of its URLs."""
        sections: dict[str, Section] = {}
        for url, what in self.before.items():
            if what == "page" and (pattern := pattern_of(url)):
                section = sections.setdefault(pattern, Section())
                section.pages += 1
                section.paid += self._files[url] > 0
                section.files += self._files[url]
                section.led += self._leads[url] > 0
                section.leads += self._leads[url]
        return sections

    def _count_leads(self) -> Counter[str]:
        """Return the number of pages with files that each page led to, in any number of steps."""
        leads: Counter[str] = Counter()
        for url in self._files:
            page, path = self._seen_on.get(url, ""), {url}
            while page and page not in path and len(path) < _STEPS:
                leads[page] += 1
                path.add(page)
                page = self._seen_on.get(page, "")
        return leads


def place_of(url: str, what: What, brought: Brought) -> str:
    """Return the place of a URL to revisit, shared by all similar pages of its section, in any language.

    Examples
    --------
    >>> place_of("https://example.org/de/news/2024/a-b?page=3", "page", "files")
    'again/page.files.news_0?page'
    >>> place_of("https://example.org/data", "page", "none")
    'again/page.none.?'
    """
    if what == "other" or not (pattern := pattern_of(url)):
        return "again/other"
    if brought in AGAIN:
        return f"{AGAIN[brought]}.{pattern}"
    return f"again/page.none.{pattern}"


def pattern_of(url: str) -> str:
    """Return the common pattern of the URLs of a section, in any language; ``""`` for an invalid URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    folders = [part for part in parts.path.split("/")[1:-1] if part and not _LANGUAGE.fullmatch(part)][:_FOLDERS]
    names = "_".join(sorted({each.partition("=")[0] for each in parts.query.split("&") if each}))
    return _DIGITS.sub("0", f"{'_'.join(folders)[:_LONGEST]}?{names[:_LONGEST]}").replace("#", "_")
