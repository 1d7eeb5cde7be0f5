"""Links that a crawl of a folder saw but did not follow: the next crawl starts with them.

A crawl that ends at its budget leaves most of a site unread. The links that it saw are worth more to the next crawl
than the pages with these links, which would have to be fetched again. So a line is written for each page whose outcome
is known, with its new links and their places: they survive a kill, with or without a job. The links that no line
marks as followed are unfollowed.
"""

from __future__ import annotations

from collections import Counter
from sys import intern
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.files import write_atomically
from scrapy_focus.core.printable import brief, printable_json
from scrapy_focus.finders.kit.records.lines import add_line, cut_line, read_lines, web_url
from scrapy_focus.web.html import end_of_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from scrapy_focus.core.types import Link

LINKS = ".focus/links.jsonl"

_KEPT = 100_000  # links of a folder
_MOST = 20_000  # links that a crawl starts with
_LONGEST = 2083  # characters of a URL
_ANCHOR, _CONTEXT = 200, 400  # characters that are kept
_ELSE = "name another folder"


class Seen(NamedTuple):
    """A link, and the page that contains it."""

    url: str
    page: str
    tag_path: str
    anchor: str
    context: str
    depth: int  # clicks from a root


class Waiting:
    """The links that the crawls of a folder saw, and which of them were not followed.

    Parameters
    ----------
    out
        The folder.
    crawl
        The number of this crawl. Existing lines with this number are from an earlier run of it.

    Notes
    -----
    *Memory*: 400 bytes per unfollowed link. *Disk*: 365 bytes per link, 100,000 links at most, and 80 per request;
    followed links are removed when the next crawl begins.

    Raises
    ------
    ConfigError
        If the list cannot be read.
    """

    def __init__(self, out: Path, crawl: int) -> None:
        self.path = out / LINKS
        self.crawl = crawl
        self.before: dict[str, Seen] = {}  # by URL: unfollowed links when this crawl began
        self._n_noted = 0
        cut_line(self.path)
        followed: set[str] = set()
        for line in read_lines(self.path, crawl=int, url=str, page=str, depth=int, links=dict):
            if (line.get("crawl") or 1) < crawl:
                followed.update([line["url"]] if line.get("url") else ())
                for seen in _links_of(line, self.path):
                    if len(self.before) < _KEPT:
                        self.before.setdefault(seen.url, seen)
            else:
                self._n_noted += sum(1 for _ in _links_of(line, self.path))
        for url in followed:
            self.before.pop(url, None)
        self._room = max(0, _KEPT - len(self.before) - self._n_noted)

    def begin(self) -> None:
        """Remove followed links from the list. To be called when a crawl begins, not when it resumes."""
        if not self.path.exists():
            return
        pages: dict[tuple[str, int], list[Seen]] = {}
        for seen in self.before.values():
            pages.setdefault((seen.page, seen.depth), []).append(seen)
        lines = [_line_of(self.crawl - 1, page, "", depth, links) for (page, depth), links in pages.items()]
        write_atomically(self.path, "".join(f"{printable_json(line)}\n" for line in lines).encode())

    def note(self, page: str, links: Iterable[Link], *, followed: str = "") -> None:
        """Note the new links of a page in this crawl; ``followed``: the link that led to the page, if any.

        Raises
        ------
        OSError
            If the list cannot be written.
        """
        kept = [_seen(link, page) for link in links if len(link.url) <= _LONGEST][: self._room]
        if kept or followed:
            self._room -= len(kept)
            add_line(self.path, _line_of(self.crawl, page, followed, kept[0].depth if kept else 0, kept))

    def offered(self, is_known: Callable[[str], bool]) -> Iterator[Seen]:
        """Yield the links that a crawl starts with, 20,000 at most, alternating between places of links."""
        turns: Counter[str] = Counter()
        ranked = []
        for seen in self.before.values():
            if not is_known(seen.url):
                turns[seen.tag_path] += 1
                ranked.append((turns[seen.tag_path], seen))
        ranked.sort(key=lambda each: each[0])
        for _, seen in ranked[:_MOST]:
            yield seen


def _seen(link: Link, page: str) -> Seen:
    return Seen(link.url, page, end_of_path(link.tag_path), link.anchor[:_ANCHOR], link.context[:_CONTEXT], link.depth)


def _line_of(crawl: int, page: str, followed: str, depth: int, links: Iterable[Seen]) -> dict[str, Any]:
    line: dict[str, Any] = {"crawl": crawl}
    if followed:
        line["url"] = followed
    places: dict[str, list[list[str]]] = {}
    for seen in links:
        places.setdefault(seen.tag_path, []).append([seen.url, seen.anchor, seen.context])
    return {**line, "page": page, "depth": depth, "links": places} if places else line


def _links_of(line: dict[str, Any], path: Path) -> Iterator[Seen]:
    page, depth = intern(line.get("page") or ""), line.get("depth") or 0
    for place, links in (line.get("links") or {}).items():
        tag_path = intern(end_of_path(place))
        for link in links if isinstance(links, list) else [links]:
            if not _is_link(link):
                raise ConfigError(f"{path} has {brief(link)}, where a link was expected; remove it, or {_ELSE}")
            url, anchor, context = link
            yield Seen(web_url(url, path), page, tag_path, anchor[:_ANCHOR], intern(context[:_CONTEXT]), depth)


def _is_link(value: Any) -> bool:
    """Whether a value of a line has a URL, an anchor and the text around it."""
    return isinstance(value, list) and len(value) == 3 and all(isinstance(text, str) for text in value)
