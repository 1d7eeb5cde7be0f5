"""URLs of links as texts, where a link's address need only be written behind that of its page.

On a page with a hundred links nearly all were seen before. To join each of them to the base, to make it safe and to
make an object of it costs thirty times what it takes to find that its text is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SCHEMES = ("http://", "https://")
_NO_HOST = frozenset(["", "/", "?"])  # what follows the slashes where there is none
_FIRST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-~%")  # of a name in a folder


def plain_joiner(base: str) -> Callable[[str], str]:
    """Return a function that makes URLs of the addresses of links as texts, without their fragments.

    It gives ``""`` for an address that takes more than that, such as ``../a``. What it gives is what ``urljoin`` gives,
    but for an empty query or empty parameters at the end, and as long as the address has none but the characters of a
    URL.

    Parameters
    ----------
    base
        What relative addresses are joined to, an absolute URL.

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
