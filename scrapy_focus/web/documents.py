"""What a page says of itself as a document: whether it is one, when it was published, when it changed last.

A goal and a policy may both ask it of the same page, and each page is parsed once for both. Nothing that lasts longer
than its page is kept for that but a few bytes of what was read.
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

_PARAGRAPH = 20  # words outside of links, from which on a paragraph is one of a document, and no teaser
_DOCUMENT = 60  # words in such paragraphs that make a document
_ELEMENTS = 20_000  # of the paragraphs of a page that are looked at: they may stand in each other
_AT_ONCE = 60.0  # seconds: a Last-Modified that is younger says when the page was made, and not when it was written
_SHOWN = 20_000  # characters
_PRINT = 16  # bytes that stand for a text
_READ = 2048  # pages without a tree of which it is remembered what was read: about 1 MB


class Document(NamedTuple):
    """What a page says of itself. Times are in seconds since the epoch, ``None`` where it says nothing.

    ``published_at`` and ``changed_at`` are what to believe of them at a visit.
    """

    url: str
    is_document: bool = False  # and no list of others, or something to click at
    published: float | None = None
    modified: float | None = None
    by: str = ""  # where it says when it was published: "json-ld", "meta", "time", "header"
    digest: bytes = b""  # the same for the same text
    modified_by: str = ""  # where it says when it was modified, likewise

    def published_at(self, visit: float) -> float | None:
        """Return when it was published, as it said in a visit at a time; ``None`` where it said nothing of use.

        What is less than a day ahead is the time of the visit, and all beyond is no date. A header of less than a
        minute before the visit says when the page was made, and not when it was written.
        """
        return _believed(self.published, self.by, visit)

    def changed_at(self, visit: float) -> float | None:
        """Return when it was published or modified last, likewise.

        The header counts only where the page itself says nothing: many servers send it for whatever else is on a page.
        """
        published = None if self.by == "header" and self.modified_by != "header" else self.published_at(visit)
        times = (published, _believed(self.modified, self.modified_by, visit))
        return max((time for time in times if time is not None), default=None)


def document_of(page: Page, root: _Element | None = None) -> Document:
    """Return what a page says of itself as a document; it is read once, however often it is asked about.

    A page is a document if it says so (JSON-LD, Open Graph), or if it has enough text that stands in paragraphs: front
    pages and lists of articles are none. When it was published is what it says itself: by JSON-LD, by elements in its
    head, or by its element of time; or else what the header ``Last-Modified`` says. When it was modified is said in the
    same ways; the header counts where the page says neither. Time is linear in the page.

    Of a page that a policy is shown, no more is noted than the document, so that a crawl that is resumed reads the
    same.

    Parameters
    ----------
    page
        Any page: its tree is used where it has one as ``root``, and else made of its text.
    root
        Its tree, where whoever asks has it.
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
    """Return what there is to read on a page, 20,000 characters of it; of one that is noted, nothing else is noted."""
    if isinstance(page, NotedPage):
        return str(page.made("shown", shown_on))
    own = getattr(page, "root", None)
    root = parsed(page.text) if own is None else own
    return "" if root is None else page_text(root)[:_SHOWN]


_by_root: WeakKeyDictionary[Any, Document] = WeakKeyDictionary()
_by_text: OrderedDict[bytes, Document] = OrderedDict()  # by all that it is read from; asked for longest ago first


def _plain(page: Page) -> tuple[Any, ...]:
    return tuple(document_of(page))


def _of_text(page: Page, root: _Element | None) -> Document:
    """Return the document of a page without a tree of its own. It cannot be told by identity: it may be made anew each
    time when it is asked for.
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
    """Return 16 bytes that stand for a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_PRINT).digest()
