"""Which pages of a crawl link to which: written while it runs, so ranks can be computed at any time.

A line is added for each link that was followed, before the crawl counts it. The line has the new URLs, which get the
next numbers, and the numbers of all links of the page. So a link takes two to five bytes, and a URL about 20 bytes more
than its length. A page that was fetched again after a kill has two lines; the last one counts.
"""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import printable_logger
from scrapy_focus.finders.kit.records.folder_names import GRAPH
from scrapy_focus.finders.kit.records.lines import add_line, cut_line, read_lines
from scrapy_focus.frontiers.keys import KeyMap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

logger = printable_logger(__name__)


#: The outcome of a link: a page, a redirect to another URL, or nothing that is a page.
Came = Literal["page", "moved", "nothing"]

_PAGES = 2_000_000  # known pages
_LINKS = 50_000_000
_THROUGH = 3  # links to a page that are recorded with their texts
_LONGEST = 200  # characters of such a text
_KINDS = {
    "page": int, "came": str, "at": str, "to": str, "outside": int, "also": list, "new": dict, "named": dict,
    "texts": dict,
}  # fmt: skip


class Noted(NamedTuple):
    """The record of one link that was followed; pages by their numbers."""

    page: int
    came: Came
    at: str  # URL of the page, if it is not that of the link
    to: list[int]  # different pages that it links to, except itself
    outside: int  # number of its different links to other sites
    also: list[int]  # numbers of the URLs that it was redirected through
    new: list[str]  # new URLs, "" for one that is not yet known
    named: dict[int, str]  # URLs of pages that had none
    texts: dict[int, str]  # of the first links to some pages


class LinkBook:
    """Records the links of pages in ``<out>/.focus/graph.jsonl``.

    URLs are identified by keys of 63 bits. At most two million URLs and 50 million links are recorded; further ones
    count as links to other sites, which is logged once.

    Parameters
    ----------
    out
        The output folder.
    resumes
        Whether the run resumes the recorded crawl; otherwise its records are removed.
    pages, links
        The largest number of each that is recorded.

    Notes
    -----
    *Memory*: 13 bytes per known URL.

    Raises
    ------
    ConfigError
        If the notes of an earlier run are damaged.
    OSError
        If they cannot be written; by :meth:`note`, too.
    """

    def __init__(self, out: Path, *, resumes: bool, pages: int = _PAGES, links: int = _LINKS) -> None:
        self.path = out / GRAPH
        self._most_pages, self._most_links = pages, links
        self._numbers = KeyMap()
        self._through = array("B")  # by page: the number of links to it recorded with their texts, and flags
        self._n_links = 0
        self._is_full = False
        if resumes:
            cut_line(self.path)
            for line in read_lines(self.path, **_KINDS):
                self._read(line)
        else:
            self.path.unlink(missing_ok=True)

    def note(
        self, key: int, url: str, *, came: Came, at: str = "", links: Mapping[int, tuple[str, str]],
        outside: int = 0, also: Iterable[int] = (),
    ) -> None:  # fmt: skip
        """Record the outcome of a link; afterwards, a kill of the process does not lose it.

        Parameters
        ----------
        key, url
            Of the link.
        came, at, outside, also
            As in :class:`Noted`; the last by keys.
        links
            URL and text of each link of the page, by key; ``""`` for a URL that is already recorded.
        """
        new: dict[str, str] = {}
        named: dict[str, str] = {}
        page = self._number(key, url, new, named)
        to, texts, more = self._number_links(page, links, new, named)
        if more:
            self._warn_once()
        redirects = [self._number(other, "", new, named) for other in also]
        if page >= 0:
            self._through[page] |= _READ
            fields = {
                "page": page, "came": "" if came == "page" else came, "at": at, "to": _packed(to),
                "outside": outside + more, "also": [number for number in redirects if number >= 0], "new": new,
                "named": named, "texts": texts,
            }  # fmt: skip
            add_line(self.path, {name: value for name, value in fields.items() if value or name == "page"})

    def _number_links(
        self, page: int, links: Mapping[int, tuple[str, str]], new: dict[str, str], named: dict[str, str]
    ) -> tuple[list[int], dict[str, str], int]:
        """Return the numbers of linked pages, the texts of some links, and the number of links not recorded."""
        to: list[int] = []
        texts: dict[str, str] = {}
        more = 0
        is_first_time = page >= 0 and not self._through[page] & _READ  # the texts of a page are recorded once
        for other, (link, text) in links.items():
            number = self._number(other, link, new, named)
            if number < 0:
                more += 1
            elif number != page:
                to.append(number)
                if is_first_time and self._through[number] & ~_FLAGS < _THROUGH:
                    self._through[number] += 1
                    texts[str(number)] = text[:_LONGEST]
        if self._n_links + len(to) > self._most_links:
            more, to = more + len(to), []
        self._n_links += len(to)
        return to, texts, more

    def _warn_once(self) -> None:
        if not self._is_full:
            self._is_full = True
            logger.warning(
                "Only %d URLs and %d links of a crawl are recorded: ranks will ignore the others",
                self._most_pages, self._most_links,
            )  # fmt: skip

    def _number(self, key: int, url: str, new: dict[str, str], named: dict[str, str]) -> int:
        """Return the number of a key, a new one if it has none; -1 if there are too many. Its URL is recorded once."""
        number = self._numbers.get(key, -1)
        if number < 0 and len(self._through) < self._most_pages:
            number = len(self._through)
            self._numbers.set(key, number)
            self._through.append(0 if url else _NAMELESS)
            new[f"{key:x}"] = url
        elif number >= 0 and url and self._through[number] & _NAMELESS:
            self._through[number] &= ~_NAMELESS
            named[str(number)] = url
        return number

    def _read(self, line: dict[str, Any]) -> None:
        for key, url in (line.get("new") or {}).items():
            try:
                self._numbers.set(int(key, 16), len(self._through))
            except (ValueError, OverflowError) as error:
                raise _damaged(self.path) from error
            self._through.append(0 if url else _NAMELESS)
        noted = _noted(line, len(self._through), self.path)
        self._n_links += len(noted.to)
        self._through[noted.page] |= _READ
        for number in noted.named:
            self._through[number] &= ~_NAMELESS
        for number in noted.texts:
            self._through[number] += 1


_READ = 0x80  # the links of the page are recorded
_NAMELESS = 0x40  # its URL is not
_FLAGS = _READ | _NAMELESS


def read_links(out: Path) -> Iterator[Noted]:
    """Yield the records of links that were followed, in their order; nothing if there are none.

    Raises
    ------
    ConfigError
        If a line is damaged, except a last one that is being written.
    """
    known = 0
    for line in read_lines(out / GRAPH, **_KINDS):
        known += len(line.get("new") or ())
        yield _noted(line, known, out / GRAPH)


def _packed(numbers: list[int]) -> str:
    """Return numbers as text: the smallest one, and the difference of each to the one before."""
    ordered = sorted(numbers)
    return " ".join(f"{number - before:x}" for before, number in zip([0, *ordered], ordered, strict=False))


def _unpacked(text: str) -> list[int]:
    """Return the numbers in a text of :func:`_packed`; ``ValueError`` if it is damaged."""
    if not text:
        return []
    return [*accumulate(int(step, 16) for step in text.split(" "))]


def _noted(line: dict[str, Any], known: int, path: Path) -> Noted:
    """Return the record in a line; each of its numbers must be below `known`."""
    page, also = line.get("page"), line.get("also") or []
    came = _came_in(line)
    try:
        to = _unpacked(line.get("to") or "")
        texts = _by_number(line.get("texts") or {})
        named = _by_number(line.get("named") or {})
    except ValueError as error:
        raise _damaged(path) from error
    if came is None or not _are_below(known, [page, *also, *to, *texts, *named]):
        raise _damaged(path)
    return Noted(
        page=int(page or 0), came=came, at=line.get("at") or "", to=to, outside=max(0, line.get("outside") or 0),
        also=also, new=[*map(str, (line.get("new") or {}).values())], named=named, texts=texts,
    )  # fmt: skip


def _came_in(line: dict[str, Any]) -> Came | None:
    said = line.get("came") or "page"
    return next((came for came in get_args(Came) if came == said), None)


def _are_below(limit: int, numbers: Iterable[Any]) -> bool:
    return all(isinstance(number, int) and 0 <= number < limit for number in numbers)


def _by_number(texts: Mapping[str, Any]) -> dict[int, str]:
    return {int(number): str(text) for number, text in texts.items()}


def _damaged(path: Path) -> ConfigError:
    return ConfigError(f"{path} was not written by a crawl; remove it, or name another folder")
