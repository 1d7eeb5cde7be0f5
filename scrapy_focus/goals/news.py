"""Goals for news: documents that were published or changed within the last hours."""

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

_LINKS = 2_000  # of a page, remembered
_SEEN = 100_000  # documents remembered
_PAGES = 20_000  # pages whose last visit is remembered
_APPEARED = 20_000  # links remembered as new
_PRINT = 16  # bytes of a link's digest
_BITS = 24  # of a position in the memory of links: 2 MB, for a million links


class Content(NamedTuple):
    """What is read of a page."""

    reading: Document
    links: bytes  # 16 bytes for each


class _Documents(ABC):
    """Base of goals that reward documents of the last hours: implement :meth:`pays`."""

    heads_tell = False

    def __init__(self, *, hours: float = 24.0) -> None:
        if isinstance(hours, bool) or not isinstance(hours, (int, float)) or not 0 < hours <= 24 * 366:
            raise ConfigError(f"hours is {brief(hours)}; it takes a number of hours above 0, up to a year")
        self.hours = float(hours)
        self._seen: OrderedDict[bytes, float] = OrderedDict()  # when each document was rewarded, by its identities
        self._visited: OrderedDict[int, float] = OrderedDict()  # when each page was last visited, by its key
        self._appeared: OrderedDict[bytes, float] = OrderedDict()  # when each new link appeared at the earliest
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
        """Whether a page is a document with reward 1, unless one with the same identity was rewarded before."""

    @abstractmethod
    def known_by(self, reading: Document) -> tuple[bytes, ...]:
        """Return the identities by which a document is recognized, each of them sufficient."""

    def unchanged(self, outcome: Outcome) -> None:
        """Note that a page was fetched unchanged, and so without new links."""
        if outcome.pick.key in self._visited:
            _remember(self._visited, outcome.pick.key, outcome.at, _PAGES)

    def reading(self, page: Page) -> Document:
        """Return the metadata of a page, from its tree if it has one as ``root``."""
        return self.content(page).reading

    def content(self, page: Page) -> Content:
        """Return the content of a page; it is read only once."""
        root = getattr(page, "root", None)
        root = parsed(page.text) if root is None else root
        if root is None:
            return Content(Document(page.url), b"")
        found = self._contents.get(root)
        if found is None:
            found = self._contents[root] = Content(document_of(page, root), _links_of(root, page.url))
        return found

    def is_young(self, time: float | None, at: float) -> bool:
        """Whether an event is no older than the hours at a given time; ``None``: its time is unknown."""
        return time is not None and at - time <= self.hours * 3600

    def appeared(self, reading: Document) -> float | None:
        """Return a time before which no link to a page existed; ``None`` if it may always have existed."""
        return self._appeared.get(print_of(reading.url))

    def _look_at_links(self, key: int, links: bytes, at: float) -> None:
        """Remember the links of a page, and which of them are new on a page visited without them before."""
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
    """The reward is 1 for a document that was not seen before, and is no older than so many hours.

    A page is a document if its metadata says so (JSON-LD, Open Graph), or if it has enough text in paragraphs: front
    pages and lists of articles do not count. Its age comes from its own metadata: JSON-LD, elements in its head, or its
    ``time`` element. Otherwise it comes from the header ``Last-Modified``, unless that is the time of the visit.

    A document without any of these dates is as old as the link to it: it is new if the link appeared within these
    hours, on a page that had been visited without it. So what a crawl finds at its start is not news merely because it
    is seen for the first time.

    Parameters
    ----------
    hours
        Largest age of a document when it is visited.

    Raises
    ------
    ConfigError
        If ``hours`` is not a positive number.

    Notes
    -----
    A document that was visited before is not news again when it changes, nor under another URL: documents rewarded in
    these hours are remembered by their text. So are the links of visited pages, in 2 MB for a million of them; with
    more links, some new ones seem known. All this is remembered while a process runs. After a restart, a copy may count
    once more, and documents without dates count if they appear on pages visited since. Rewards already given stay.

    Dates without a time zone are read as UTC, and those less than a day in the future as the time of the visit.
    """

    #: The noun for what is counted.
    noun = "articles"

    def pays(self, reading: Document, outcome: Outcome) -> bool:
        return not outcome.changed and self.is_news(reading, outcome.at)

    def known_by(self, reading: Document) -> tuple[bytes, ...]:
        return reading.digest, print_of(reading.url)

    def published(self, reading: Document, at: float) -> float | None:
        """Return when a page visited at a time was published; ``None`` if unknown.

        All times are in seconds since the epoch.
        """
        said = reading.published_at(at)
        return self.appeared(reading) if said is None else said

    def is_news(self, reading: Document, at: float) -> bool:
        """Whether a page visited at a time is a young enough document; it may have been rewarded before."""
        return reading.is_document and self.is_young(self.published(reading, at), at)

    def __repr__(self) -> str:
        return f"articles of the last {_hours(self.hours)}"


class ReinforcingAgent(_Documents):
    """The reward is 1 for a document that changed in these hours, and whose present version was not rewarded yet.

    It is the reinforcing agent of the foragers of Palotai et al. Unlike with :class:`NewsGoal`, a known document counts
    again when it has changed, and so does a copy of it under another URL. Documents are recognized in the same way.

    The time of the last change comes from the document's own metadata: the later of its publication and modification.
    Otherwise it comes from the header ``Last-Modified``, unless that is the time of the visit. A document without
    these, whose text differs from the previous visit, changed no earlier than that visit. A document visited for the
    first time is as old as the link to it, as for :class:`NewsGoal`.

    Parameters
    ----------
    hours
        Largest age of a change when the document is visited.

    Raises
    ------
    ConfigError
        If ``hours`` is not a positive number.

    Notes
    -----
    The paper pays 100 for such a document and charges 1 for any other document sent. That is left to the policy: the
    reward is that of the crawl, as with any goal.

    It remembers 100,000 rewarded documents, by URL and text, and the texts of 20,000 pages, while a process runs. After
    a restart, documents may count once more.

    References
    ----------
    Palotai, Farkas, Lőrincz: Selection in scale-free small world (2005), algorithm 7.
    """

    #: The noun for what is counted.
    noun = "documents"

    def __init__(self, *, hours: float = 24.0) -> None:
        super().__init__(hours=hours)
        self._texts: OrderedDict[int, bytes] = OrderedDict()  # of each document at its last visit, by its key

    def pays(self, reading: Document, outcome: Outcome) -> bool:
        return reading.is_document and self.is_young(self._changed(reading, outcome), outcome.at)

    def known_by(self, reading: Document) -> tuple[bytes, ...]:
        return (print_of(f"{reading.digest.hex()} {reading.url}"),)

    def _changed(self, reading: Document, outcome: Outcome) -> float | None:
        """Return when a document last changed, as far as known, and remember its text."""
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
    """A set of at most 2 MB, with false positives once it is too full."""

    def __init__(self) -> None:
        self._bits = bytearray((1 << _BITS) // 8)

    def add(self, made: bytes) -> bool:
        """Add a digest of 16 bytes; return whether it was new."""
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
    """Remember a value, and forget the oldest one if there are too many."""
    memory[each] = what
    memory.move_to_end(each)
    if len(memory) > most:
        memory.popitem(last=False)
