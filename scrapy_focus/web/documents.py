"""Reads a page's own metadata as a document: whether it is one, and when it was published and changed.

A goal and a policy may both ask about the same page, and each page is parsed once for both. After that, only a few
bytes of the result outlive the page.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from scrapy_focus.core.noted import NotedPage
from scrapy_focus.web.dates import at_most, read_markup, seconds_of
from scrapy_focus.web.html import page_text, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml.etree import _Element

    from scrapy_focus.core.types import Page

_PARAGRAPH = 20  # words outside of links; a shorter paragraph is a teaser
_DOCUMENT = 60  # words in such paragraphs that make a document
_ELEMENTS = 20_000  # of a page's paragraphs that are read: they may be nested
_AT_ONCE = 60.0  # seconds; a more recent Last-Modified is the time of the response
_SHOWN = 20_000  # characters
_PRINT = 16  # bytes of a text's digest
_READ = 2048  # pages without a tree whose result is remembered: about 1 MB


class Document(NamedTuple):
    """The metadata of a page. Times are in seconds since the epoch, ``None`` if it has none.

    ``published_at`` and ``changed_at`` return what to believe of them at a visit.
    """

    url: str
    is_document: bool = False  # rather than a list of documents, or navigation
    published: float | None = None
    modified: float | None = None
    by: str = ""  # the source of the publication time: "json-ld", "meta", "time", "header"
    digest: bytes = b""  # equal for equal texts
    modified_by: str = ""  # the source of the modification time, likewise

    def published_at(self, visit: float) -> float | None:
        """Return the publication time as seen in a visit at a given time; ``None`` if it is unknown.

        A time less than a day in the future becomes the time of the visit, and any later one is ignored. A header less
        than a minute old is the time of the response, and not of the document.
        """
        return _believed(self.published, self.by, visit)

    def changed_at(self, visit: float) -> float | None:
        """Return the time of publication or last modification, likewise.

        The header counts only if the page has no time itself: many servers update it for anything else on a page.
        """
        published = None if self.by == "header" and self.modified_by != "header" else self.published_at(visit)
        times = (published, _believed(self.modified, self.modified_by, visit))
        return max((time for time in times if time is not None), default=None)


def document_of(page: Page, root: _Element | None = None) -> Document:
    """Return the metadata of a page as a document; it is read only once.

    A page is a document if its metadata says so (JSON-LD, Open Graph), or if it has enough text in paragraphs: front
    pages and lists of articles do not count. The publication time comes from JSON-LD, from elements in its head, from
    its ``time`` element, or else from the header ``Last-Modified``. The modification time comes from the same sources;
    the header counts if the page has neither time. Time is linear in the page.

    For a page shown to a policy, only the result is recorded, so that a resumed crawl reads the same.

    Parameters
    ----------
    page
        Any page: its tree is used if it has one as ``root``; otherwise its text is parsed.
    root
        Its tree, if the caller has it.
    """
    if isinstance(page, NotedPage):
        return Document(*page.made("document", _plain))
    own = getattr(page, "root", None)
    if own is None:
        return _of_text(page, root)
    found = _by_root.get(own)
    if found is None:
        found = _by_root[own] = _document(page, own)
    return found


def shown_on(page: Page) -> str:
    """Return up to 20,000 characters of a page's text; of a recorded page, only these are recorded."""
    if isinstance(page, NotedPage):
        return str(page.made("shown", shown_on))
    own = getattr(page, "root", None)
    root = parsed(page.text) if own is None else own
    return "" if root is None else page_text(root)[:_SHOWN]


_by_root: WeakKeyDictionary[Any, Document] = WeakKeyDictionary()
_by_text: OrderedDict[bytes, Document] = OrderedDict()  # by all its inputs; least recently used first


def _plain(page: Page) -> tuple[Any, ...]:
    return tuple(document_of(page))


def _of_text(page: Page, root: _Element | None) -> Document:
    """Return the document of a page without a tree of its own.

    It cannot be cached by identity: it may be a new object each time.
    """
    text = page.text
    if not text:
        return Document(page.url)
    key = print_of(f"{page.url}\n{_last_modified(page)}\n{text}")
    found = _by_text.get(key)
    if found is None:
        root = parsed(text) if root is None else root
        found = _by_text[key] = Document(page.url) if root is None else _document(page, root)
        if len(_by_text) > _READ:
            _by_text.popitem(last=False)
    else:
        _by_text.move_to_end(key)
    return found


def _document(page: Page, root: _Element) -> Document:
    markup = read_markup(root)
    text = " ".join(_paragraphs(root))
    if not (markup.is_article or text.count(" ") >= _DOCUMENT):
        return Document(page.url)
    (published, by), (modified, modified_by) = markup.published or (None, ""), markup.modified or (None, "")
    if published is None:
        header = seconds_of(_last_modified(page))
        if header is not None:
            published, by = header, "header"
            modified, modified_by = (header, "header") if modified is None else (modified, modified_by)
    return Document(page.url, True, published, modified, by, print_of(text or page_text(root)), modified_by)


def _last_modified(page: Page) -> str:
    return next((value for name, value in page.headers.items() if name.lower() == "last-modified"), "")


def _believed(said: float | None, by: str, visit: float) -> float | None:
    time = None if said is None else at_most(said, visit)
    return None if time is not None and by == "header" and visit - time < _AT_ONCE else time


def _paragraphs(root: _Element) -> Iterator[str]:
    """Yield the texts of the long paragraphs of a page, without their links."""
    room = _ELEMENTS
    for element in root.iter("p"):
        if room <= 0:
            return
        pieces = [element.text or ""]
        for child in islice(element.iter(), 1, room):
            pieces.append(" " if child.tag == "a" or not isinstance(child.tag, str) else child.text or "")
            pieces.append(child.tail or "")
        room -= 1 + len(pieces) // 2
        words = "".join(pieces).split()
        if len(words) >= _PARAGRAPH:
            yield " ".join(words)


def print_of(text: str) -> bytes:
    """Return a digest of a text, 16 bytes."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_PRINT).digest()
