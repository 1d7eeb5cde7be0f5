"""The main text of a page: what its author wrote, without what the site puts around it.

Whoever asks whether an article has changed means its text. Beside it stand menus, lists of recent posts and links to
share it, which change when anything on the site does. There is no rule for them that holds on all sites, so two are
used together: what elements and roles say (``nav``, ``aside``, ``role="navigation"``), and how much of a text is links.
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
_NAMES = re.compile(  # of classes and ids, unless they say that something has a sidebar
    r"(?<!\bhas )(?<!\bno )(?<!\bwith )\b(?:breadcrumbs?|cookies?|menu|navigation|newsletter|pagination|related|share|"
    r"sharing|sidebar)\b"
)
_WORD = re.compile(r"[_-]|(?<=[a-z])(?=[A-Z])")  # what parts the words of such a name
_LONGEST_NAME = 200  # characters of these that are looked at


def main_blocks(root: _Element) -> list[str]:
    """Return the main text of a parsed page, block by block, as :func:`~scrapy_focus.web.html.page_blocks` has them.

    It is that of the one ``article`` or ``main`` of the page, where it has one; without elements that stand beside a
    text, and without blocks and lists more than half of which is links. Time is linear in the page.
    """
    blocks: list[str] = []
    open_lists = [[0, 0, 0]]  # for each: how many blocks were before it, characters, those in links
    pieces: list[str] = []
    linked, links = 0, 0  # characters in links of the pieces; links that are open

    def add(text: str | None) -> None:
        nonlocal linked
        if text:
            pieces.append(text)
            linked += links and len("".join(text.split()))

    def close_block() -> None:
        nonlocal linked
        words = "".join(pieces).split()
        size = sum(map(len, words))
        if size:
            open_lists[-1][1] += size
            open_lists[-1][2] += linked
            if 2 * linked <= size:
                blocks.append(" ".join(words))
        pieces.clear()
        linked = 0

    scope, skipped = _scope(root), None
    walk = etree.iterwalk(scope, events=("start", "end"))
    for event, element in walk:
        starts, is_skipped = event == "start", element is skipped  # of what is skipped, only the end comes
        if starts and element is not scope and _is_beside(element):
            walk.skip_subtree()
            skipped = element
            continue
        links -= not starts and not is_skipped and element.tag == "a"
        if element.tag not in INLINE:
            close_block()
            if element.tag in _LISTS and element is not scope and not is_skipped:
                if starts:
                    open_lists.append([len(blocks), 0, 0])
                else:
                    before, size, inside = open_lists.pop()
                    if 2 * inside > size:
                        del blocks[before:]
                    open_lists[-1][1] += size
                    open_lists[-1][2] += inside
        if starts:
            links += element.tag == "a"
            add(element.text)
        elif element is not scope:
            add(element.tail)
        following = (element[0] if len(element) else None) if starts else element.getnext()
        if following is not None and not isinstance(following.tag, str) and (starts or element is not scope):
            for text in behind_comments(following):
                add(text)
    close_block()
    return blocks


def _scope(root: _Element) -> _Element:
    """Return the element with the main text: the one ``article`` that is in no other, or ``main``; else the whole."""
    for path in ("descendant::article[not(ancestor::article)]", "descendant::main|descendant::*[@role='main']"):
        found = root.xpath(path)
        if isinstance(found, list) and len(found) == 1 and isinstance(found[0], etree._Element):
            return found[0]
    return root


def _is_beside(element: _Element) -> bool:
    """Whether an element is unseen, or stands beside the main text by what it is or is called."""
    if element.tag in UNSEEN or element.tag in _BESIDE or "hidden" in element.attrib:
        return True
    if element.get("role") in _ROLES:
        return True
    names = f"{element.get('class') or ''} {element.get('id') or ''}"
    if names == " " or element.tag in ("html", "body"):
        return False
    return _NAMES.search(_WORD.sub(" ", names[:_LONGEST_NAME]).lower()) is not None
