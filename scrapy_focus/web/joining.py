"""Joins links to their page as plain texts, as far as the link can simply be appended to the page's URL.

On a page with a hundred links nearly all were already seen. Joining each with the base properly, making it safe and
creating an object costs thirty times as much as finding that its text is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SCHEMES = ("http://", "https://")
_NO_HOST = frozenset(["", "/", "?"])  # what follows the slashes if there is none
_FIRST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-~%")  # of a name in a folder


def plain_joiner(base: str) -> Callable[[str], str]:
    """Return a function that joins links to a base as texts, without their fragments.

    It returns ``""`` for a link that needs more, such as ``../a``. Otherwise the result equals that of ``urljoin``,
    except for an empty query or empty parameters at the end, and as long as the link has only the characters of a URL.

    Parameters
    ----------
    base
        The base of relative links, an absolute URL.

    Examples
    --------
    >>> joined = plain_joiner("https://a.example/list/?page=2")
    >>> joined("/about#us"), joined("item-1"), joined("http://b.example/"), joined("../up"), joined("#top")
    ('https://a.example/about', 'https://a.example/list/item-1', 'http://b.example/', '', '')
    """
    bare = base.partition("#")[0].partition("?")[0]
    start = bare.find("/", bare.find("://") + 3)
    origin = bare if start < 0 else bare[:start]
    path = "/" if start < 0 else bare[start : bare.rindex("/") + 1]
    if not bare.startswith(_SCHEMES):
        return lambda _: ""
    folder = origin + path if "//" not in path and "/." not in path else ""

    def joined(href: str) -> str:
        href = href.partition("#")[0]
        first = href[:1]
        if first == "/":
            return "" if href[1:2] == "/" or "/." in href else origin + href
        if href.startswith(_SCHEMES):
            return "" if href[href.find("//") + 2 :][:1] in _NO_HOST else href
        if not folder or first not in _FIRST or ":" in href or "//" in href or "/." in href:
            return ""
        return folder + href

    return joined
