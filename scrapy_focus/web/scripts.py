"""Whether a page has scripts that a browser would run."""

from __future__ import annotations

import re

_LONGEST = 512 * 1024  # characters of a page that are looked at
_SCRIPT = re.compile(r"<script(?=[\s>/])([^>]{0,2000})>", re.IGNORECASE)
_TYPE = re.compile(r"""(?:^|\s)type\s*=\s*["']?\s*([^\s"'>]{0,100})""", re.IGNORECASE)
_RUN = re.compile(r"(?:module|(?:text|application)/(?:x-)?(?:java|ecma|live)script\S*|)$", re.IGNORECASE)


def has_scripts(text: str) -> bool:
    """Whether the HTML of a page has a script that a browser runs: not data such as JSON, and no template.

    Attributes that run scripts (``onclick``) do not count: without a script on the page they show nothing by
    themselves. The first half million characters are looked at.
    """
    return any(_is_run(tag.group(1)) for tag in _SCRIPT.finditer(text, 0, _LONGEST))


def _is_run(attributes: str) -> bool:
    """Whether a script with these attributes is one that browsers run, by its type."""
    kind = _TYPE.search(attributes)
    return kind is None or _RUN.match(kind.group(1)) is not None
