"""Says of links that are alike what they have in common, in words that a person can check on the site.

What a policy calls an arm is a number, and behind it a place in the layout of pages. Whoever reads about a crawl knows
neither. So links are called by what they say, with the numbers in it left open, or else by the type of what they lead
to, and by how the addresses of the pages begin on which they stand.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote

from scrapy_focus.core.printable import printable
from scrapy_focus.web.url_parts import parts_of

_LANGUAGE = 2  # letters of a first part of an address that says little
_READ = 4  # times as many characters of a text are looked at as are kept
_NUMBER = re.compile(r"\d+")


def text_like(text: str, longest: int) -> str:
    """Return the text of a link with its numbers left open, in so many characters at most.

    Examples
    --------
    >>> text_like("Download  (CSV, 43 kB)", 60)
    'Download (CSV, … kB)'
    """
    return _text_like(text[: _READ * longest], longest)


@lru_cache(maxsize=1 << 12)
def _text_like(text: str, longest: int) -> str:
    return printable(_NUMBER.sub("…", " ".join(text.split())), longest)


@lru_cache(maxsize=1 << 12)
def pages_like(url: str, longest: int) -> str:
    """Return how the address of a page begins, in so many characters at most; ``""`` for no address.

    Examples
    --------
    >>> pages_like("https://example.org/publication/12/tables?page=2", 60), pages_like("https://example.org/", 60)
    ('/publication/…', '/')
    >>> pages_like("https://example.org/de/news/a-b", 60), pages_like("https://example.org/2024/a-b", 60)
    ('/de/news/…', '/…/…')
    """
    parts = [part for part in unquote(parts_of(url)[1]).split("/") if part]
    kept = parts[: 2 if parts and len(parts[0]) <= _LANGUAGE else 1]
    more = "/…" if len(parts) > len(kept) else ""
    return printable(f"/{_NUMBER.sub('…', '/'.join(kept))}{more}", longest) if url else ""


def links_like(text: str, kind: str, pages: str) -> str:
    """Return what links are called that share a text, or else the type of what they lead to, and a kind of pages.

    Examples
    --------
    >>> links_like("Download (… kB)", "csv", "/publication/…")
    'links like “Download (… kB)” on pages like /publication/…'
    >>> links_like("", "csv", ""), links_like("", "", "/")
    ('links to csv', 'links of several kinds on pages like /')
    """
    links = "links of several kinds"
    if text:
        links = f"links like “{text}”"
    elif kind:
        links = f"links to {kind}"
    return f"{links} on pages like {pages}" if pages else links
