"""Places for links that are on no page, as code built their URLs: URL pattern and callback."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

#: The first element of such a place, instead of ``html`` in a tag path.
MADE = "(made)"

_WORD = re.compile(r"[^\W\d_]{1,20}")
_EXTENSION = re.compile(r"[a-z0-9]{1,8}")
_FOLDERS = 8  # that are counted
_NAMES = 8  # of a query that are read ...
_LONGEST = 100  # ... and characters of all of them


def made_place(url: str, callback: str) -> str:
    """Return a tag path as the place of a link that code built: equal for URLs with one pattern and callback.

    A pattern is the first folder, if it is a word, the number of further ones, the extension, and the names in the
    query.

    Parameters
    ----------
    url
        The URL of the link.
    callback
        The name of the callback that will read the page, ``""`` for the usual one.

    Examples
    --------
    >>> made_place("http://example.org/catalogue/page-3.html", "")
    '(made)/catalogue:*.html/parse()'
    >>> made_place("http://example.org/catalogue/page-4.html", "") == made_place("http://a.org/catalogue/5.html", "")
    True
    >>> made_place("http://example.org/search?q=tea&page=2", "parse_results")
    '(made)/*?q&page/parse_results()'
    """
    reader = f"{callback or 'parse'}()"
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"{MADE}/{reader}"
    return f"{MADE}/{_path_shape(parts.path)}{_query_shape(parts.query)}/{reader}"


def _path_shape(path: str) -> str:
    """Return the pattern of a path: its folders, then its extension."""
    *folders, name = path.lstrip("/").split("/")
    shape = []
    if folders:
        shape.append(folders[0].lower() if _WORD.fullmatch(folders[0]) else "*")
        shape += ["*"] * (min(len(folders), _FOLDERS) - 1)
    last = "*" if name else ""
    _, dot, extension = name.rpartition(".")
    if dot and _EXTENSION.fullmatch(extension.lower()):
        last += f".{extension.lower()}"
    return ":".join([*shape, last])


def _query_shape(query: str) -> str:
    """Return the names in a query, after a question mark; ``""`` if there are none."""
    if not query:
        return ""
    names = "&".join(piece.partition("=")[0] for piece in query.split("&", _NAMES)[:_NAMES])
    if not names:
        return ""
    return "?" + names[:_LONGEST].replace("/", "_").replace("#", "_")
