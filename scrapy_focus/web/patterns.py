"""Places for links that stand on no page, as code made their URLs: what these look like, and who will read the page."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

#: The first element of such a place, where a tag path has ``html``.
MADE = "(made)"

_WORD = re.compile(r"[^\W\d_]{1,20}")
_EXTENSION = re.compile(r"[a-z0-9]{1,8}")
_FOLDERS = 8  # that are counted
_NAMES = 8  # of a query that are read ...
_LONGEST = 100  # ... and characters of them all


def made_place(url: str, callback: str) -> str:
    """Return the place of a link that code made, as a tag path: equal for URLs of one pattern and callback.

    A pattern is the first folder, if it is a word, how many follow, the extension, and the names in the query.

    Parameters
    ----------
    url
        Where the link leads.
    callback
        The name of what will read the page, ``""`` for the usual one.

    Examples
    --------
    >>> made_place("http://example.org/catalogue/page-3.html", "")
    '(made)/catalogue:*.html/parse()'
    >>> made_place("http://example.org/catalogue/page-4.html", "") == made_place("http://a.org/catalogue/5.html", "")
    True
    >>> made_place("http://example.org/search?q=tea&page=2", "parse_results")
    '(made)/*?q&page/parse_results()'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"{MADE}/{callback or 'parse'}()"
    *folders, name = parts.path.lstrip("/").split("/") if parts.path else [""]
    first = folders[0].lower() if folders and _WORD.fullmatch(folders[0]) else "*"
    shape = [first, *["*"] * (min(len(folders), _FOLDERS) - 1)] if folders else []
    extension = name.rpartition(".")[2].lower() if "." in name else ""
    shape.append(("*" if name else "") + (f".{extension}" if _EXTENSION.fullmatch(extension) else ""))
    names = "&".join(each.partition("=")[0] for each in parts.query.split("&", _NAMES)[:_NAMES]) if parts.query else ""
    query = "?" + names[:_LONGEST].replace("/", "_").replace("#", "_") if names else ""
    return f"{MADE}/{':'.join(shape)}{query}/{callback or 'parse'}()"
