"""Looking for news: documents that were not there a day ago, or not as they are now."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import brief
from scrapy_focus.web.documents import Document, document_of, print_of
from scrapy_focus.web.html import page_links, parsed

if TYPE_CHECKING:
    from lxml.etree import _Element

    from scrapy_focus.core.types import Outcome, Page

_LINKS = 2_000  # of a page that are remembered
_SEEN = 100_000  # documents that are remembered
_PAGES = 20_000  # pages of which it is remembered when they were visited
_APPEARED = 20_000  # links that are remembered as new
_PRINT = 16  # bytes that stand for a link
_BITS = 24  # of a place in the memory of links: 2 MB, for a million links


class Content(NamedTuple):
    """What is read of a page."""

    reading: Document
    links: bytes  # 16 bytes for each


class _Documents(ABC):
    """What goals share that pay for documents of the last hours: you supply :meth:`pays`."""

    heads_tell = False

    def __init__(self, *, hours: float = 24.0) -> None:
        if isinstance(hours, bool) or not isinstance(hours, (int, float)) or not 0 < hours <= 24 * 366:
            raise ConfigError(f"hours is {brief(hours)}; it takes a number of hours above 0, up to a year")
        self.hours = float(hours)
        self._seen: OrderedDict[bytes, float] = OrderedDict()  # when each document was rewarded, by what it is known by
        self._visited: OrderedDict[int, float] = OrderedDict()  # when each page was visited last, by its key
        self._appeared: OrderedDict[bytes, float] = OrderedDict()  # not before when each new link was there
        self._links = _Links()
        self._contents: WeakKeyDictionary[Any, Content] = WeakKeyDictionary()  # by the root of the page

    def __call__(self, outcome: Outcome) -> float:
        fetched = outcome.status is not None and 200 <= outcome.status < 300 and outcome.is_html
        page, at = outcome.page, outcome.at
        if page is None or not fetched:
            return 0.0
        reading, links = self.content(page)
        known_by = self.known_by(reading)
        is_new = self.pays(reading, outcome) and not any(each in self._seen for each in known_by)
        self._look_at_links(outcome.pick.key, links, at)
        if not is_new:
            return 0.0
        for each in known_by:
            _remember(self._seen, each, at, _SEEN)
        return 1.0

    @abstractmethod
    def pays(self, reading: Document, outcome: Outcome) -> bool:
        """Whether a page is a document that is worth 1, unless one that is known by the same was rewarded before."""

    @abstractmethod
    def known_by(self, reading: Document) -> tuple[bytes, ...]:
        """Return what a document is known by when it comes again, any of it."""

    def unchanged(self, outcome: Outcome) -> None:
        """Take note that a page came back as it was, and so without new links."""
        if outcome.pick.key in self._visited:
            _remember(self._visited, outcome.pick.key, outcome.at, _PAGES)

    def reading(self, page: Page) -> Document:
        """Return what a page says of itself, from its tree where that is there as ``root``."""
        return self.content(page).reading

    def content(self, page: Page) -> Content:
        """Return what is read of a page; it is read once, however often it is asked about."""
        root = getattr(page, "root", None)
        root = parsed(page.text) if root is None else root
        if root is None:
            return Content(Document(page.url), b"")
        found = self._contents.get(root)
        if found is None:
            found = self._contents[root] = Content(document_of(page, root), _links_of(root, page.url))
        return found

    def is_young(self, time: float | None, at: float) -> bool:
        """Whether what happened at a time is no older than the hours at another one; ``None``: nobody knows when."""
        return time is not None and at - time <= self.hours * 3600

    def appeared(self, reading: Document) -> float | None:
        """Return a time before which there was no link to a page; ``None`` where it may have been there always."""
        return self._appeared.get(print_of(reading.url))

    def _look_at_links(self, key: int, links: bytes, at: float) -> None:
        """Remember the links of a page, and which of them are new on one that had been visited without them."""
        before = self._visited.get(key)
        for start in range(0, len(links), _PRINT):
            made = links[start : start + _PRINT]
            if self._links.add(made) and before is not None:
                _remember(self._appeared, made, before, _APPEARED)
        _remember(self._visited, key, at, _PAGES)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_contents": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _contents=WeakKeyDictionary())


class NewsGoal(_Documents):
    """An outcome is worth 1 if it is a document that was not seen before, and is no older than so many hours.

    A page is a document if it says so (JSON-LD, Open Graph), or if it has enough text that stands in paragraphs: front
    pages and lists of articles are none. Its age is what it says itself: by JSON-LD, by elements in its head, or by its
    element of time; or else what the header ``Last-Modified`` says, unless that is the time of the visit.

    A document without any of these dates is as old as the link to it: it is new if that appeared on a page that had
    been visited without it, within these hours. So what a crawl finds when it begins is not news merely because it is
    seen for the first time.

    Parameters
    ----------
    hours
        How old a document may be when it is visited.

    Raises
    ------
    ConfigError
        If ``hours`` is no positive number.

    Notes
    -----
    A document that was visited before is not news again when it changes, and neither is one under another URL: what
    was rewarded in these hours is remembered by its text. So are the links of pages that were visited, in 2 MB for a
    million of them; of more, some seem to be known that are new. All this is remembered while a process runs. After a
    restart, a copy may count once more, and documents without dates count where they appear on pages that were visited
    since. Rewards that were given stay as they are.

    Dates without a time zone are read as UTC, and those of less than a day ahead as the time of the visit.
    """

    #: What is counted.
    noun = "articles"

    def pays(self, reading: Document, outcome: Outcome) -> bool:
        return not outcome.changed and self.is_news(reading, outcome.at)

    def known_by(self, reading: Document) -> tuple[bytes, ...]:
        return reading.digest, print_of(reading.url)

    def published(self, reading: Document, at: float) -> float | None:
        """Return when a page that was visited at a time was published; ``None`` where nothing tells.

        All times are in seconds since the epoch.
        """
        said = reading.published_at(at)
        return self.appeared(reading) if said is None else said

    def is_news(self, reading: Document, at: float) -> bool:
        """Whether a page that was visited at a time is a document that is young enough; it may have been had before."""
        return reading.is_document and self.is_young(self.published(reading, at), at)

    def __repr__(self) -> str:
        return f"articles of the last {_hours(self.hours)}"


class ReinforcingAgent(_Documents):
    """An outcome is worth 1 if it is a document that changed in these hours, and was not paid for as it is now.

    It is what pays the foragers of Palotai et al. In contrast to :class:`NewsGoal`, a document that was seen before
    counts again when it has changed, and so does a copy of it under another URL. Which pages are documents is the same.

    A document changed last when it says so itself: the later of when it was published and modified; or else what the
    header ``Last-Modified`` says, unless that is the time of the visit. One that says nothing, and whose text is
    another one than in the visit before, changed no earlier than that visit. One that came for the first time is as old
    as the link to it, as for :class:`NewsGoal`.

    Parameters
    ----------
    hours
        How long ago a document may have changed when it is visited.

    Raises
    ------
    ConfigError
        If ``hours`` is no positive number.

    Notes
    -----
    The paper pays 100 for such a document and takes 1 for another one that is sent. That is for a policy to count: the
    reward is that of the crawl, as of any goal.

    It remembers 100,000 documents that it paid for, by URL and text, and the texts of 20,000 pages, while a process
    runs. After a restart, documents may count once more.

    References
    ----------
    Palotai, Farkas, Lőrincz: Selection in scale-free small world (2005), algorithm 7.
    """

    #: What is counted.
    noun = "documents"

    def __init__(self, *, hours: float = 24.0) -> None:
        super().__init__(hours=hours)
        self._texts: OrderedDict[int, bytes] = OrderedDict()  # of each document at its last visit, by its key

    def pays(self, reading: Document, outcome: Outcome) -> bool:
        return reading.is_document and self.is_young(self._changed(reading, outcome), outcome.at)

    def known_by(self, reading: Document) -> tuple[bytes, ...]:
        return (print_of(f"{reading.digest.hex()} {reading.url}"),)

    def _changed(self, reading: Document, outcome: Outcome) -> float | None:
        """Return when a document changed last, as far as that can be told; and remember its text."""
        key = outcome.pick.key
        before = self._texts.get(key, reading.digest)
        _remember(self._texts, key, reading.digest, _PAGES)
        said = reading.changed_at(outcome.at)
        if said is not None:
            return said
        return self.appeared(reading) if before == reading.digest else self._visited.get(key)

    def __repr__(self) -> str:
        return f"documents that changed in the last {_hours(self.hours)}"


class _Links:
    """A set that may take for known what is not, once there is too much in it, and never has more than 2 MB."""

    def __init__(self) -> None:
        self._bits = bytearray((1 << _BITS) // 8)

    def add(self, made: bytes) -> bool:
        """Add a print of 16 bytes; return whether it was not in it."""
        is_new = False
        for start in (0, 4, 8, 12):
            place = int.from_bytes(made[start : start + 4]) & ((1 << _BITS) - 1)
            mask = 1 << (place & 7)
            if not self._bits[place >> 3] & mask:
                self._bits[place >> 3] |= mask
                is_new = True
        return is_new


def _hours(hours: float) -> str:
    return "hour" if hours == 1 else f"{hours:g} hours"


def _links_of(root: _Element, url: str) -> bytes:
    return b"".join(print_of(link) for link, _ in islice(page_links(root, url), _LINKS))


def _remember(memory: OrderedDict[Any, Any], each: Any, what: Any, most: int) -> None:
    """Remember what there is to say of something, and forget what was remembered longest ago if that is too much."""
    memory[each] = what
    memory.move_to_end(each)
    if len(memory) > most:
        memory.popitem(last=False)
