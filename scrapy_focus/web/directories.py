"""Recognizes directory listings of web servers, and the links in them that only sort, or lead back up."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_READ = 2048  # characters of a page that identify it
_TITLE = re.compile(r"<title>\s{0,9}(?:Index of|Directory listing for|Directory:?) ?/", re.IGNORECASE)
_SORTED = re.compile(r"C=[NMSD][;&]O=[AD]|(?:sort|order)=\w{1,20}(?:&(?:sort|order)=\w{1,20})?")


def is_directory(text: str) -> bool:
    """Whether a page is a directory listing, as those of Apache, nginx and other servers.

    Examples
    --------
    >>> is_directory("<html><head><title>Index of /pub/</title></head>"), is_directory("<title>Index of Prices</title>")
    (True, False)
    """
    return _TITLE.search(text[:_READ]) is not None


def leads_on(url: str, page: str) -> bool:
    """Whether a link of a directory listing leads further: not to the same directory, sorted, or to one above.

    Examples
    --------
    >>> page = "http://a.test/pub/2024/"
    >>> [leads_on(url, page) for url in (page + "?C=N;O=D", "http://a.test/pub/", page + "rain.csv?v=2")]
    [False, False, True]
    """
    link, here = urlsplit(url), urlsplit(page)
    if link.netloc != here.netloc:
        return True
    if link.path == here.path:
        return not (not link.query or _SORTED.fullmatch(link.query))
    folder = here.path.rpartition("/")[0] + "/"
    return not (link.path.endswith("/") and folder.startswith(link.path))
