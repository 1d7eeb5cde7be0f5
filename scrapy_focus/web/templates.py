"""Reduces URLs to the template that pages of one kind share."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_PARTS = 32  # of a path or query that are read
_LONGEST = 2_048  # characters of a URL
_VERSION = re.compile(r"v[0-9]{1,2}(?:\.[0-9])?\Z", re.IGNORECASE)
_EXTENSION = re.compile(r"\.([A-Za-z][A-Za-z0-9]{0,7})\Z")
_HEX = re.compile(r"[0-9a-fA-F]{16,}\Z")


def template_of(url: str) -> str:
    """Return the template of a URL: host, path with ``#`` for variable parts, and sorted names in its query.

    ``""`` for an invalid URL. Variable parts are numbers, identifiers and names of several words: a part of the path
    with a digit (but not ``v2``) or three hyphens, and the last of several with a hyphen.

    Examples
    --------
    >>> template_of("http://a.test/api/v2/datasets/d-17.json?page=3&lang=en")
    'a.test/api/v2/datasets/#.json?lang&page'
    >>> template_of("http://a.test/dataset/air-quality") == template_of("http://a.test/dataset/a1")
    True
    """
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2].lower()
    except ValueError:
        return ""
    if not host or len(url) > _LONGEST:
        return ""
    segments = parts.path.split("/")[1 : _PARTS + 1]
    shape = [_shape(part, 0 < at == len(segments) - 1) for at, part in enumerate(segments)]
    names = sorted({piece.partition("=")[0] for piece in parts.query.split("&", _PARTS)[:_PARTS] if piece})
    return f"{host}/{'/'.join(shape)}{'?' if names else ''}{'&'.join(names)}"


def _varies(segment: str, is_last: bool) -> bool:
    if not segment or _VERSION.match(segment):
        return False
    if any(letter.isdigit() for letter in segment) or _HEX.match(segment):
        return True
    return "%" in segment or segment.count("-") + segment.count("_") >= (1 if is_last else 3)


def _shape(segment: str, is_last: bool) -> str:
    if not _varies(segment, is_last):
        return segment
    extension = _EXTENSION.search(segment)
    return f"#.{extension[1]}" if extension else "#"
