"""URLs for display, and for links on pages."""

from __future__ import annotations

from urllib.parse import quote

from scrapy_focus.core.printable import printable

_LONGEST_LINK = 4000  # characters of a URL that is a link
_SAFE = "%/:=&?~#+!$,;'@()*[]"  # in a URL, besides letters and digits


def bare(url: str) -> str:
    """Return a URL for display: without its scheme if a browser opens it."""
    return printable(url.removeprefix("https://").removeprefix("http://"))


def web_link(url: str) -> str:
    """Return a URL that a page may link to, ``""`` for any other."""
    is_web = url.startswith(("http://", "https://")) and len(url) <= _LONGEST_LINK
    return quote(url.encode(errors="replace"), safe=_SAFE) if is_web else ""
