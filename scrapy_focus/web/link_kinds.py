"""Describes similar links in words that a person can check on the site.

What a policy calls an arm is a number for a place in the layout of pages. Readers of a report know neither. So links
are described by their text, with placeholders for numbers, or else by the type of their targets, and by the first part
of the URLs of the linking pages.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote

from scrapy_focus.core.printable import printable
from scrapy_focus.web.url_parts import parts_of

_LANGUAGE = 2  # letters of a first part of a path that says little
_READ = 4  # characters of a text that are read, as a multiple of those kept
_NUMBER = re.compile(r"\d+")


def text_like(text: str, longest: int) -> str:
    """Return the text of a link with placeholders for numbers, in so many characters at most.

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
    """Return the beginning of a page's path, in so many characters at most; ``""`` without a URL.

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
    """Describe links by their text, or else by the type of their targets, and by their pages.

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
