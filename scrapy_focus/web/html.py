"""Where links stand on their page: tag path, anchor, context; and what there is to read on a page.

A spider asks for URLs, and the page has elements. They are matched the way Scrapy makes the one from the other: the
``href`` joined to the base, made safe, and for link extractors that do so, canonical. Only the links that are asked for
are looked at closely: on a dense page, nineteen of twenty are known already.
"""

from __future__ import annotations

import re
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
_SHOWN = ("a", "area", "iframe", "frame")  # where a URL stands for readers; the others say less of it
_TEXT = 200  # characters of anchor and context that are kept
_PIECES = 50  # text nodes that are read for them at most ...
_RAW = 20_000  # ... characters of these, blanks among them ...
_EVENTS = 400  # ... and begins and ends of elements
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
_PLAIN = re.compile(r"[!#-;=?-\[\]_a-z~]+\Z")  # what safe_url_string leaves alone, but %


class Place(NamedTuple):
    """Where a link stands: its tag path, its own text, and the text around it."""

    tag_path: str = ""
    anchor: str = ""
    context: str = ""


def locate(root: _Element, base: str, wanted: Collection[str], *, encoding: str = "utf-8") -> dict[str, Place]:
    """Say where each of the wanted URLs stands on a page; those that are not found on it are left out.

    Parameters
    ----------
    root
        The parsed page.
    base
        URL that relative links are joined to (the page's, or that of its ``<base>``, absolute).
    wanted
        Absolute URLs, with or without fragment.
    encoding
        Of the page, in which non-ASCII characters of URLs are quoted.

    Notes
    -----
    Where a URL stands on a page more than once, the first place in document order counts, and a place that readers see
    before a ``<link>`` or form; where it is spelled in several ways, the first of those that Scrapy need not repair.
    """
    found: dict[str, Place] = {}
    for _ in locating(root, base, wanted, found, encoding=encoding):
        pass
    return found


def locating(
    root: _Element, base: str, wanted: Collection[str], found: dict[str, Place], *, encoding: str = "utf-8"
) -> Iterator[None]:
    """Do what :func:`locate` does, and write to ``found`` in its place; pause after each link that is looked at.

    So whoever has other things to do can do them in between. The page is not to be changed meanwhile.
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

    # Other spellings take longer. Those of Scrapy's link extractor come last: they take as long as all others.
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
    head: str | None  # its URL up to the question mark, if no spelling of it changes that
    element: _Element


def _kept_head(href: str, url: str) -> str | None:
    """Return the URL of a link up to the question mark, ``None`` if that may be spelled in other ways."""
    head = url.partition("?")[0]
    # Scrapy gives a URL without a path one.
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
    """Take what is missing where one of the spellings of a link is wanted, and pause before each link."""
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
    """Yield each distinct URL that a page links to or frames, as a browser asks for it, with its first element.

    They come in document order, without fragments; only ``http`` and ``https`` count, and what is no URL is skipped.
    Those that ``passes`` says of that nobody needs them are left out; most of these are not even joined to the base.
    ``encoding`` is that of the page, see :func:`~scrapy_focus.web.linkurls.link_url`.
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
    """Return what there is to read on a parsed page: its title, then its visible text, with single blanks.

    It is the text of all :func:`page_blocks`.
    """
    return " ".join(page_blocks(root))


def page_blocks(root: _Element) -> list[str]:
    """Return what there is to read on a parsed page, block by block: its title, then its visible text; none is empty.

    A block is what stands between the borders of elements such as paragraphs, items of lists and cells of tables; those
    within a line (``<b>``, ``<a>``, ..) part neither blocks nor words. Scripts, styles, templates, form fields and what
    is ``hidden`` are left out. Blanks are single. Time is linear in the page.
    """
    blocks: list[str] = []
    pieces = [_title(root)]
    walk = etree.iterwalk(root, events=("start", "end"))  # with comments, its time grows with the square of them
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
    """Yield the texts behind comments and processing instructions in a row, the first of which is this."""
    while element is not None and not isinstance(element.tag, str):
        yield element.tail or ""
        element = element.getnext()


def html_text(source: str) -> str:
    """Return what there is to read on a page, from its HTML; ``""`` for one without an element."""
    root = _root(source)
    return "" if root is None else page_text(root)


def html_blocks(source: str) -> list[str]:
    """Return what there is to read on a page, block by block, from its HTML; ``[]`` for one without an element."""
    root = _root(source)
    return [] if root is None else page_blocks(root)


def title_and_text(source: str) -> tuple[str, str]:
    """Return the title of a page, and what there is to read on it, its title first; from its HTML."""
    root = _root(source)
    return ("", "") if root is None else (_title(root), page_text(root))


def parsed(source: str) -> _Element | None:
    """Return the root of a page as Scrapy parses it, ``None`` for one without an element."""
    return _root(source, HTMLParser)


def _root(source: str, parser: type = etree.HTMLParser) -> _Element | None:
    """Parse a page; the elements of this parser lack what those of Scrapy's can do, and are walked a quarter faster."""
    from parsel.selector import create_root_node

    try:
        return create_root_node(source, parser)
    except UnicodeEncodeError:  # lone surrogates, which some charsets allow
        return create_root_node(source.encode("utf-8", "replace").decode(), parser)


def _title(root: _Element) -> str:
    title = root.find("head/title")
    return "" if title is None else "".join(map(str, title.itertext()))


class PlaceReader:
    """Says where the links of one page stand. What they share is read once.

    Notes
    -----
    What is read of an element is bounded, so that time and memory are linear in the page, however its elements are
    nested, and whatever they are called: 64 elements and 4,096 characters of a tag path, 512 of each element; and of a
    text, 50 nodes, 20,000 characters and 200 elements.
    """

    def __init__(self) -> None:
        self._names: dict[_Element, str] = {}  # of elements whose path cannot be remembered
        self._paths: dict[_Element, str] = {}
        self._room = _ROOM
        self._contexts: dict[_Element, str] = {}
        self._long: dict[tuple[_Element, str], str] = {}  # how each long text begins

    def place(self, element: _Element) -> Place:
        """Return where the link of an element stands."""
        parent = element.getparent()
        anchor = self.text(element) or element.get("title") or element.get("aria-label") or _alternative(element)
        return Place(self.path(element), anchor[:_TEXT], "" if parent is None else self._context(parent))

    def path(self, element: _Element) -> str:
        """Return the path of an element, as :func:`tag_path` does."""
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
        """Return how the text of an element begins, with single blanks: 200 characters at most."""
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
    """Return the path from the root to an element: ``html/body.front/div.a b#main/a``, all classes behind one dot.

    A ``/`` within a class or id becomes ``|``, so that it does not end the element's name. Of a path that is very long,
    the end is kept: 64 elements and 4,096 characters at most. Of an element's name, the first 512 characters are.
    """
    return PlaceReader().path(element)


def link_text(element: _Element) -> str:
    """Return the text of a link with single blanks: 200 characters at most."""
    return PlaceReader().text(element)


def end_of_path(path: str) -> str:
    """Return as many elements from the end of a tag path as are kept: 64, and 4,096 characters."""
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

    ``etree.iterwalk`` does, too, but looks at all comments in a row before it yields one: for each link anew.
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
    """Return what stands for the first image of a link."""
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
