"""Extracts the main text of a page, without the surroundings that the site adds.

An article has changed if its text has. Next to it are menus, lists of recent posts and links to share it, which change
with anything on the site. No single rule finds them on all sites, so two are combined: elements and roles (``nav``,
``aside``, ``role="navigation"``), and the share of a text that is in links.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lxml import etree

from scrapy_focus.web.html import INLINE, UNSEEN, behind_comments

if TYPE_CHECKING:
    from lxml.etree import _Element

_BESIDE = frozenset("address aside dialog footer form menu nav".split())
_ROLES = frozenset("banner complementary contentinfo dialog menu navigation search".split())
_LISTS = frozenset("dl ol table ul".split())
_NAMES = re.compile(  # of classes and ids, except in phrases such as "has sidebar"
    r"(?<!\bhas )(?<!\bno )(?<!\bwith )\b(?:breadcrumbs?|cookies?|menu|navigation|newsletter|pagination|related|share|"
    r"sharing|sidebar)\b"
)
_WORD = re.compile(r"[_-]|(?<=[a-z])(?=[A-Z])")  # separates the words of such a name
_LONGEST_NAME = 200  # characters of these that are read


def main_blocks(root: _Element) -> list[str]:
    """Return the main text of a parsed page, in blocks like those of :func:`~scrapy_focus.web.html.page_blocks`.

    It is the text of the only ``article`` or ``main`` of the page, if there is one; without surrounding elements, and
    without blocks and lists of which more than half is links. Time is linear in the page.
    """
    reader = _Reader(_scope(root))
    reader.read()
    return reader.blocks


class _List:
    """An open list: the number of blocks before it, its characters, and those in links."""

    __slots__ = ("before", "linked", "size")

    def __init__(self, before: int) -> None:
        self.before = before
        self.size = 0
        self.linked = 0


class _Reader:
    """Reads an element from start to end; its text is in ``blocks``."""

    def __init__(self, scope: _Element) -> None:
        self.blocks: list[str] = []
        self._scope = scope
        self._lists = [_List(0)]  # the first one is the whole element
        self._pieces: list[str] = []  # of the open block
        self._linked = 0  # characters of the pieces that are in links
        self._links = 0  # open ones

    def read(self) -> None:
        skipped = None
        walk = etree.iterwalk(self._scope, events=("start", "end"))
        for event, element in walk:
            if event == "end":
                self._end(element, was_skipped=element is skipped)
            elif element is not self._scope and _is_beside(element):
                walk.skip_subtree()  # its end event follows nevertheless
                skipped = element
            else:
                self._start(element)
        self._close_block()

    def _start(self, element: _Element) -> None:
        if element.tag not in INLINE:
            self._close_block()
            if element.tag in _LISTS and element is not self._scope:
                self._lists.append(_List(len(self.blocks)))
        self._links += element.tag == "a"
        self._add(element.text)
        if len(element):
            self._add_behind_comments(element[0])

    def _end(self, element: _Element, *, was_skipped: bool) -> None:
        if element.tag == "a" and not was_skipped:
            self._links -= 1
        if element.tag not in INLINE:
            self._close_block()
            if element.tag in _LISTS and element is not self._scope and not was_skipped:
                self._close_list()
        if element is not self._scope:
            self._add(element.tail)
            self._add_behind_comments(element.getnext())

    def _add(self, text: str | None) -> None:
        if text:
            self._pieces.append(text)
            if self._links:
                self._linked += len("".join(text.split()))

    def _add_behind_comments(self, following: _Element | None) -> None:
        if following is not None and not isinstance(following.tag, str):
            for text in behind_comments(following):
                self._add(text)

    def _close_block(self) -> None:
        words = "".join(self._pieces).split()
        size = sum(map(len, words))
        if size:
            inner = self._lists[-1]
            inner.size += size
            inner.linked += self._linked
            if 2 * self._linked <= size:
                self.blocks.append(" ".join(words))
        self._pieces.clear()
        self._linked = 0

    def _close_list(self) -> None:
        closed = self._lists.pop()
        if 2 * closed.linked > closed.size:
            del self.blocks[closed.before :]
        # A nested list counts for its outer one, too, whether it was kept or not.
        self._lists[-1].size += closed.size
        self._lists[-1].linked += closed.linked


def _scope(root: _Element) -> _Element:
    """Return the element with the main text: the only top-level ``article``, or ``main``; else the whole."""
    for path in ("descendant::article[not(ancestor::article)]", "descendant::main|descendant::*[@role='main']"):
        found = root.xpath(path)
        if isinstance(found, list) and len(found) == 1 and isinstance(found[0], etree._Element):
            return found[0]
    return root


def _is_beside(element: _Element) -> bool:
    """Whether an element is invisible, or surrounds the main text, by its tag, role or name."""
    if element.tag in UNSEEN or element.tag in _BESIDE or "hidden" in element.attrib:
        return True
    if element.get("role") in _ROLES:
        return True
    names = f"{element.get('class') or ''} {element.get('id') or ''}"
    if names == " " or element.tag in ("html", "body"):
        return False
    return _NAMES.search(_WORD.sub(" ", names[:_LONGEST_NAME]).lower()) is not None
