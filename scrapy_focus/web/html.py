"""Locates links on their page (tag path, anchor, context), and extracts the readable text of a page.

A spider requests URLs, and the page has elements. They are matched in the way in which Scrapy makes one from the other:
``href`` joined to the base, made safe, and for link extractors that do so, canonical. Only requested links are examined
closely: on a dense page, nineteen of twenty are already known.
"""

from __future__ import annotations

import re
from html import unescape
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from lxml import etree
from lxml.html import HTMLParser
from w3lib.html import strip_html5_whitespace
from w3lib.url import canonicalize_url

from scrapy_focus.web.joining import plain_joiner
from scrapy_focus.web.linkurls import joined, link_url, spellings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from lxml.etree import _Element

_LINKS = {"a": "href", "area": "href", "iframe": "src", "frame": "src", "link": "href", "form": "action"}
_SHOWN = ("a", "area", "iframe", "frame")  # elements with visible URLs; the others say less about them
_TEXT = 200  # characters of anchor and context that are kept
_PIECES = 50  # text nodes that are read for them at most ...
_RAW = 20_000  # ... characters of these, including blanks ...
_EVENTS = 400  # ... and starts and ends of elements
_ELEMENTS = 64  # of a tag path, counted from the link
_PATH = 2048  # characters of a tag path, counted from the link
_NAME = 512  # characters of an element in a tag path
_ROOM = 1 << 21  # characters of the tag paths that are remembered while a page is read
UNSEEN = frozenset(
    "audio canvas embed head noscript object script select style svg template textarea title video".split()
)
INLINE = frozenset(
    "a abbr b bdi bdo cite code del dfn em font i ins kbd mark noscript q s samp script small span strong style sub "
    "sup template tt u var wbr".split()
)
_HEAD = 200_000  # characters of a page in which its title is looked for
_TITLE = re.compile(r"<[tT][iI][tT][lL][eE](?:\s[^<>]{0,500})?>([^<]{1,2000})")  # linear: no part of it spans a "<"
_PLAIN = re.compile(r"[!#-;=?-\[\]_a-z~]+\Z")  # what safe_url_string does not change, except %


class Place(NamedTuple):
    """The place of a link: its tag path, its own text, and the text around it."""

    tag_path: str = ""
    anchor: str = ""
    context: str = ""


def locate(root: _Element, base: str, wanted: Collection[str], *, encoding: str = "utf-8") -> dict[str, Place]:
    """Return the places of the wanted URLs on a page, without those that are not on it.

    Parameters
    ----------
    root
        The parsed page.
    base
        The base of relative links (the page's URL, or that of its ``<base>``, absolute).
    wanted
        Absolute URLs, with or without fragment.
    encoding
        The encoding of the page, in which non-ASCII characters of URLs are quoted.

    Notes
    -----
    If a URL occurs more than once, the first place in document order counts, and a visible place before a ``<link>``
    or form; if it is spelled in several ways, the first spelling that Scrapy does not have to repair.
    """
    found: dict[str, Place] = {}
    for _ in locating(root, base, wanted, found, encoding=encoding):
        pass
    return found


def locating(
    root: _Element, base: str, wanted: Collection[str], found: dict[str, Place], *, encoding: str = "utf-8"
) -> Iterator[None]:
    """Do the same as :func:`locate`, but write to ``found``, and yield after each link that is examined.

    The caller can do other work in between. The page must not change meanwhile.
    """
    missing = {_bare(url): url for url in wanted}
    reader = PlaceReader()
    later: list[_Unlocated] = []
    for href, element in _links(root):
        url = ""
        if _PLAIN.match(href):
            url = _bare(_joined(base, href))
        if url in missing:
            found[missing.pop(url)] = reader.place(element)
            if not missing:
                return
        else:
            later.append(_Unlocated(href, _kept_head(href, url), element))
        yield

    # Other spellings are slower. Those of Scrapy's link extractor come last: they take as long as all others.
    def other_spellings(href: str) -> Collection[str]:
        return spellings(base, href, encoding)

    def canonical(href: str) -> Collection[str]:
        return (_canonical(base, href, encoding),)

    yield from _locating_spelled(later, missing, found, reader, other_spellings)
    missing = {_bare(canonicalize_url(url)): url for url in missing.values()}
    yield from _locating_spelled(later, missing, found, reader, canonical)


class _Unlocated(NamedTuple):
    """A link that was not found as it is written."""

    href: str
    head: str | None  # its URL up to the question mark, if no spelling changes that
    element: _Element


def _kept_head(href: str, url: str) -> str | None:
    """Return the URL of a link up to the question mark, ``None`` if that may be spelled differently."""
    head = url.partition("?")[0]
    # Scrapy adds a path to a URL without one.
    if url and "%" not in href and "//" not in href and head.count("/") > 2:
        return head
    return None


def _locating_spelled(
    links: list[_Unlocated],
    missing: dict[str, str],
    found: dict[str, Place],
    reader: PlaceReader,
    spelled: Callable[[str], Collection[str]],
) -> Iterator[None]:
    """Locate missing URLs by other spellings of links, and yield before each link."""
    heads = {url.partition("?")[0] for url in missing}
    for link in links:
        if not missing:
            return
        yield
        if link.head is not None and link.head not in heads:
            continue
        for url in spelled(link.href):
            if url in missing:
                found[missing.pop(url)] = reader.place(link.element)


def page_links(
    root: _Element, base: str, passes: Callable[[str], bool] | None = None, *, encoding: str = "utf-8"
) -> Iterator[tuple[str, _Element]]:
    """Yield each distinct URL that a page links to or frames, as a browser requests it, with its first element.

    They come in document order, without fragments; only ``http`` and ``https`` count, and invalid URLs are skipped.
    URLs for which ``passes`` is true are skipped; most of these are not even joined to the base. ``encoding`` is that
    of the page, see :func:`~scrapy_focus.web.linkurls.link_url`.
    """
    seen = set()
    plainly = None if passes is None else plain_joiner(base)
    for element in root.iter(*_SHOWN):
        href = strip_html5_whitespace(element.get("href") or element.get("src") or "")
        if plainly is not None and passes is not None and (plain := plainly(href)):
            if plain in seen:
                continue
            if passes(plain):
                seen.add(plain)
                continue
        url = link_url(base, href, encoding) if href else ""
        if url not in seen and url.startswith(("http://", "https://")):
            seen.add(url)
            if passes is None or not passes(url):
                yield url, element


def page_text(root: _Element) -> str:
    """Return the readable text of a parsed page: its title, then its visible text, with single blanks.

    It is the text of all :func:`page_blocks`.
    """
    return " ".join(page_blocks(root))


def page_blocks(root: _Element) -> list[str]:
    """Return the readable text of a parsed page in non-empty blocks: its title, then its visible text.

    A block is the text between the borders of elements such as paragraphs, list items and table cells; inline elements
    (``<b>``, ``<a>``, ..) separate neither blocks nor words. Scripts, styles, templates, form fields and ``hidden``
    elements are skipped. Blanks are single. Time is linear in the page.
    """
    blocks: list[str] = []
    pieces = [_title(root)]
    walk = etree.iterwalk(root, events=("start", "end"))  # with comments, its time would be quadratic in their number
    for event, element in walk:
        if event == "start":
            if element.tag in UNSEEN or "hidden" in element.attrib:
                walk.skip_subtree()
                continue
            text = element.text
            following = element[0] if len(element) else None
        elif element is root:
            continue
        else:
            text = element.tail
            following = element.getnext()
        if element.tag not in INLINE:
            blocks.append(" ".join("".join(pieces).split()))
            pieces.clear()
        pieces.append(text or "")
        if following is not None and not isinstance(following.tag, str):
            pieces += behind_comments(following)
    blocks.append(" ".join("".join(pieces).split()))
    return list(filter(None, blocks))


def behind_comments(element: _Element | None) -> Iterator[str]:
    """Yield the texts behind consecutive comments and processing instructions, starting with this one."""
    while element is not None and not isinstance(element.tag, str):
        yield element.tail or ""
        element = element.getnext()


def html_text(source: str) -> str:
    """Return the readable text of a page from its HTML; ``""`` without an element."""
    root = _root(source)
    return "" if root is None else page_text(root)


def html_blocks(source: str) -> list[str]:
    """Return the readable text of a page in blocks, from its HTML; ``[]`` without an element."""
    root = _root(source)
    return [] if root is None else page_blocks(root)


def title_and_text(source: str) -> tuple[str, str]:
    """Return the title of a page, and its readable text including the title, from its HTML."""
    root = _root(source)
    return ("", "") if root is None else (_title(root), page_text(root))


def title_of(source: str) -> str:
    """Return the title of a page from its HTML with single blanks, ``""`` for none, without parsing the page.

    Examples
    --------
    >>> title_of("<html><head><title lang=en>Prices &amp;\\n wages</title></head>")
    'Prices & wages'
    """
    found = _TITLE.search(source, 0, _HEAD)
    return "" if found is None else " ".join(unescape(found[1]).split())


def parsed(source: str) -> _Element | None:
    """Return the root of a page as Scrapy parses it, ``None`` for one without an element."""
    return _root(source, HTMLParser)


def _root(source: str, parser: type = etree.HTMLParser) -> _Element | None:
    """Parse a page; the plain elements of this parser are walked a quarter faster than Scrapy's."""
    from parsel.selector import create_root_node

    try:
        return create_root_node(source, parser)
    except UnicodeEncodeError:  # lone surrogates, which some charsets allow
        return create_root_node(source.encode("utf-8", "replace").decode(), parser)


def _title(root: _Element) -> str:
    title = root.find("head/title")
    return "" if title is None else "".join(map(str, title.itertext()))


class PlaceReader:
    """Computes the places of links on one page, and shares the common work.

    Notes
    -----
    The amount read of an element is bounded, so that time and memory are linear in the page, however its elements are
    nested, and whatever their names: 64 elements and 4,096 characters of a tag path, 512 of each element; and of a
    text, 50 nodes, 20,000 characters and 200 elements.
    """

    def __init__(self) -> None:
        self._names: dict[_Element, str] = {}  # of elements whose path cannot be remembered
        self._paths: dict[_Element, str] = {}
        self._room = _ROOM
        self._contexts: dict[_Element, str] = {}
        self._long: dict[tuple[_Element, str], str] = {}  # the beginning of each long text

    def place(self, element: _Element) -> Place:
        """Return the place of an element's link."""
        parent = element.getparent()
        anchor = self.text(element) or element.get("title") or element.get("aria-label") or _alternative(element)
        return Place(self.path(element), anchor[:_TEXT], "" if parent is None else self._context(parent))

    def path(self, element: _Element) -> str:
        """Return the path of an element, like :func:`tag_path`."""
        missing: list[_Element] = []  # no recursion: unclosed elements nest by the thousand
        ancestor: _Element | None = element
        while ancestor is not None and ancestor not in self._paths and len(missing) < 2 * _ELEMENTS:
            missing.append(ancestor)
            ancestor = ancestor.getparent()
        path = "" if ancestor is None else self._paths.get(ancestor, "")
        is_whole = ancestor is None or bool(path)
        for above, each in enumerate(reversed(missing), 1):
            name = self._names.get(each) or _name(each)
            path = f"{path}/{name}" if path else name
            if len(path) >= 2 * _ELEMENTS:  # or it is too short for too many
                path = end_of_path(path)
            if is_whole or above >= _ELEMENTS:
                self._remember(each, path)
            else:
                self._names[each] = name
        return path

    def _remember(self, element: _Element, path: str) -> None:
        self._room -= len(path)
        if self._room < 0:
            self._paths.clear()
            self._room = _ROOM
        self._paths[element] = path

    def text(self, element: _Element) -> str:
        """Return the beginning of an element's text, with single blanks: 200 characters at most."""
        if not len(element):
            return " ".join((element.text or "")[:_RAW].split())[:_TEXT]
        pieces: list[str] = []
        room = _RAW
        for event, each in islice(_walk(element), _EVENTS):
            if event != "start" and each is element:
                break
            piece = self._long.get((each, event)) if self._long else None
            if piece is None:
                piece = each.text if event == "start" else each.tail
            if piece:
                if len(piece) > _RAW:
                    self._long[each, event] = piece[:_RAW]
                pieces.append(piece[:room])
                room -= len(piece)
                if room <= 0 or len(pieces) == _PIECES:
                    break
        return " ".join("".join(pieces).split())[:_TEXT]

    def _context(self, parent: _Element) -> str:
        context = self._contexts.get(parent)
        if context is None:
            context = self._contexts[parent] = self.text(parent)
        return context


def tag_path(element: _Element) -> str:
    """Return the path from the root to an element: ``html/body.front/div.a b#main/a``, all classes after one dot.

    A ``/`` within a class or id becomes ``|``, so that it does not end the element's name. A very long path is cut to
    its end: 64 elements and 4,096 characters at most. An element's name is cut after 512 characters.
    """
    return PlaceReader().path(element)


def link_text(element: _Element) -> str:
    """Return the text of a link with single blanks: 200 characters at most."""
    return PlaceReader().text(element)


def end_of_path(path: str) -> str:
    """Return the last elements of a tag path that are kept: 64, and 4,096 characters."""
    if len(path) > _PATH:
        path = path[-_PATH - 1 :].partition("/")[2]
    if path.count("/") >= _ELEMENTS:
        path = "/".join(path.rsplit("/", _ELEMENTS)[1:])
    return path


def _name(element: _Element) -> str:
    name = element.tag if isinstance(element.tag, str) else "!"
    if classes := element.get("class"):
        name += "." + " ".join(classes.split())
    if identifier := element.get("id"):
        name += "#" + identifier.strip()
    return name[:_NAME].replace("/", "|")


def _walk(root: _Element) -> Iterator[tuple[str, _Element]]:
    """Yield the starts and ends of elements, comments and instructions, in document order.

    ``etree.iterwalk`` does, too, but reads all consecutive comments before it yields one, for each link again.
    """
    each = root
    while True:
        is_element = isinstance(each.tag, str)
        yield ("start" if is_element else "comment"), each
        if is_element and len(each):
            each = each[0]
            continue
        if is_element:
            yield "end", each
        while each is not root and (following := each.getnext()) is None:
            each = each.getparent()
            yield "end", each
        if each is root:
            return
        each = following


def _alternative(element: _Element) -> str:
    """Return the text alternative of a link's first image."""
    for event, each in islice(_walk(element), _EVENTS):
        if event == "start" and each.tag == "img":
            return each.get("alt") or ""
    return ""


def _links(root: _Element) -> Iterator[tuple[str, _Element]]:
    seen = set()
    for element in chain(root.iter(*_SHOWN), root.iter(*(_LINKS.keys() - _SHOWN))):
        href = element.get(_LINKS[element.tag])
        if href is not None and href not in seen:
            seen.add(href)
            yield strip_html5_whitespace(href), element


def _bare(url: str) -> str:
    return url.partition("#")[0]


def _joined(base: str, href: str) -> str:
    try:
        return joined(base, href)
    except ValueError:
        return ""


def _canonical(base: str, href: str, encoding: str) -> str:
    try:
        return canonicalize_url(link_url(base, href, encoding))
    except ValueError:
        return ""


def readable(tag_path: str, elements: int = 3) -> str:
    """Shorten a tag path to its last elements.

    Examples
    --------
    >>> readable("html/body/main/div.view/ul.rows/li.row/a")
    '../ul.rows/li.row/a'
    """
    parts = tag_path.split("/")
    return tag_path or "(no page)" if len(parts) <= elements else "../" + "/".join(parts[-elements:])
