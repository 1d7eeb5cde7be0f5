"""Tells whether a page has scripts that a browser would run.

It is called for each fetched page, so a single pass over the text has to do, whatever the text contains. Data in the
page (JSON, templates) is in script elements, too, and old pages have scripts for old browsers in comments.
"""

from __future__ import annotations

import re

_MOST = 1 << 19  # characters that are read
_BEGIN = re.compile(  # flags would nearly double the time
    r"<[!sS](?:(?<=!)--|(?<=[sS])[cC][rR][iI][pP][tT](?=[\s/>])([^<>]*))"
)
_END = re.compile(r"</script", re.IGNORECASE)
_TYPE = re.compile(r"""(?<![\w-])(?:type|language)\s*=\s*["']?\s*([^"'\s<>;]*)""", re.IGNORECASE)
_RUN = re.compile(r"(?:(?:text|application)/(?:x-)?)?(?:java|ecma|live|j)script[\d.]*\Z|module\Z", re.IGNORECASE)


def has_scripts(text: str) -> bool:
    """Return whether a page has a script that a browser would run, in its first 524,288 characters.

    Linear in these. Scripts in attributes (``onclick``) do not count.

    Examples
    --------
    >>> has_scripts('<p>text</p><script src="/app.js" defer></script>')
    True
    >>> has_scripts('<script type="application/ld+json">{}</script><!-- <script>old()</script> -->')
    False
    """
    at = 0
    while (begin := _BEGIN.search(text, at, _MOST)) is not None:
        attributes = begin[1]
        if attributes is None:
            end = text.find("-->", begin.end() - 2, _MOST)
            if end < 0:
                return False  # the rest is a comment
            at = end + 3
            continue
        kind = _TYPE.search(attributes)
        if kind is None or not kind[1] or _RUN.match(kind[1]):
            return True
        closed = _END.search(text, begin.end(), _MOST)
        if closed is None:
            return False  # the rest is data
        at = closed.end()
    return False
