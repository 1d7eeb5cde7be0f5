"""What earlier crawls asked for besides files: pages to look at again, for what is new on them.

What a page brought last time says little of what is new on it, and where it stands says much: listings get new entries
at their head, old articles nothing. Pages that brought files, those that led to such (listings, topics), and all others
are told apart, as new pages with files are linked where old ones are. So a page that is asked for again is a link of
its own kind, in the place of all pages of its section that are asked for again, and the policy learns what they are
worth by pulling some.
"""

from __future__ import annotations

import re
from collections import Counter
from sys import intern
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import urlsplit

from scrapy_focus.found.files import MANIFEST
from scrapy_focus.found.lines import add_line, cut_line, read_lines, web_url
from scrapy_focus.policies.branching.layout import AGAIN

if TYPE_CHECKING:
    from pathlib import Path

ASKED = ".focus/asked.jsonl"

What = Literal["page", "other"]
Brought = Literal["files", "leads", "none"]  # what links on a page led to: files, pages that brought files, or neither

_MOST = 20_000  # that are asked for again
_KEPT = 500_000  # of which it is remembered that they were asked for
_DIGITS = re.compile(r"\d+")
_LANGUAGE = re.compile(r"[a-z]{2}(?:[-_][A-Za-z]{2})?")  # as a folder
_FOLDERS = 2  # of a path that tell of what kind a page is
_LONGEST = 60  # characters of them


class Again(NamedTuple):
    """What is asked for again, and where it stands: a tag path that no page has."""

    url: str
    place: str


class Asked:
    """The URLs that the crawls of a folder asked for, but for files.

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
        self._seen_on: dict[str, str] = {}  # by URL: the page on which an earlier crawl saw it first
        cut_line(self.path)
        for line in read_lines(self.path, url=str, crawl=int, page=str):
            url = web_url(line.get("url") or "", self.path)
            if (line.get("crawl") or 1) >= crawl:
                self._noted.add(url)
            elif len(self.before) < _KEPT:
                self.before[url] = "page" if line.get("what") == "page" else "other"
                self._seen_on.setdefault(url, intern(line.get("page") or ""))
        self._files = Counter(line.get("page") or "" for line in read_lines(out / MANIFEST, page=str) if self.before)

    def note(self, url: str, what: What, page: str = "") -> None:
        """Note that this crawl asked for a URL that it saw on a page, and what it was; once each."""
        if url not in self._noted and self.before.get(url) != what and len(self._noted) < _KEPT:
            self._noted.add(url)
            add_line(self.path, {"url": url, "what": what, "page": page, "crawl": self.crawl})

    def again(self) -> list[Again]:
        """Return what is asked for again, 20,000 at most: pages that brought files, those that led there, others."""
        leads = Counter(self._seen_on.get(url, "") for url in self._files)
        ranked = sorted(self.before, key=lambda url: (self.before[url] != "page", -self._files[url], -leads[url]))
        return [
            Again(
                url, place_of(url, self.before[url], "files" if self._files[url] else "leads" if leads[url] else "none")
            )
            for url in ranked[:_MOST]
        ]


def place_of(url: str, what: What, brought: Brought) -> str:
    """Return where a URL that is asked for again stands: with all of its section that were alike, in any language.

    Examples
    --------
    >>> place_of("https://example.org/de/news/2024/a-b?page=3", "page", "files")
    'again/page.files.news_0?page'
    >>> place_of("https://example.org/data", "page", "none")
    'again/page.none.?'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return "again/other"
    if what == "other":
        return "again/other"
    folders = [part for part in parts.path.split("/")[1:-1] if part and not _LANGUAGE.fullmatch(part)][:_FOLDERS]
    names = "_".join(sorted({each.partition("=")[0] for each in parts.query.split("&") if each}))
    pattern = _DIGITS.sub("0", f"{'_'.join(folders)[:_LONGEST]}?{names[:_LONGEST]}").replace("#", "_")
    return f"{AGAIN[brought]}.{pattern}" if brought in AGAIN else f"again/page.none.{pattern}"
