"""What the URLs of one kind of page have in common, and what sets each of them apart."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, urlsplit

_PARTS = 32  # of a path or query that are looked at
_LONGEST = 2_048  # characters of a URL
_DIGITS = re.compile(r"[0-9]{1,19}")
_VERSION = re.compile(r"v[0-9]{1,2}(?:\.[0-9])?\Z", re.IGNORECASE)
_EXTENSION = re.compile(r"\.([A-Za-z][A-Za-z0-9]{0,7})\Z")
_ENCODED = re.compile(r"%([0-9A-Fa-f]{2})")
_HEX = re.compile(r"[0-9a-fA-F]{16,}\Z")
_KEPT = "!'()*-._~"  # by encodeURIComponent, besides letters and digits
_RAW = "/?&=%:@!$'()*+,;~-._"


def template_of(url: str) -> str:
    """Return the template of a URL: its host and path, with ``#`` for what tells pages of one kind apart, and the names
    in its query, sorted. ``""`` for what is no URL.

    Numbers, identifiers and names of several words are such: a part of the path with a digit (but ``v2``) or three
    hyphens, and the last of several with a hyphen.

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


def slots_of(url: str) -> dict[str, str]:
    """Return the parts of a URL that tell it from others of its template, decoded, by their names.

    ``/2`` is the third part of the path, ``/2.`` the same without its extension, ``/2:0`` the first number in it, and
    ``?page`` what the query says of the page.

    Examples
    --------
    >>> slots_of("http://a.test/dataset/d-17?page=3")
    {'/1': 'd-17', '/1:0': '17', '?page': '3'}
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return {}
    if len(url) > _LONGEST:
        return {}
    found: dict[str, str] = {}
    segments = parts.path.split("/")[1 : _PARTS + 1]
    for at, segment in enumerate(segments):
        if _varies(segment, 0 < at == len(segments) - 1):
            _add_slots(unquote(segment), f"/{at}", found)
    for piece in parts.query.split("&", _PARTS)[:_PARTS]:
        name, _, value = piece.partition("=")
        if value:
            found.setdefault(f"?{name}", unquote(value.replace("+", " ")))
    return found


def _add_slots(value: str, name: str, found: dict[str, str]) -> None:
    """Add a part of a path, the same without its extension, and the numbers in it."""
    found[name] = value
    stem = _EXTENSION.sub("", value)
    if stem != value:
        found[f"{name}."] = stem
    if value.isdigit():
        return
    for number, digits in enumerate(_DIGITS.findall(value)[:4]):
        if digits != stem:
            found[f"{name}:{number}"] = digits


def spelled(url: str) -> str:
    """Return a URL in the spelling that is compared: percent-encoding only where it is needed, no fragment.

    Examples
    --------
    >>> spelled("HTTP://A.test/%7Eme/é%2f?q=(1)#top")
    'http://a.test/~me/%C3%A9%2F?q=(1)'
    """
    url = url.partition("#")[0]
    if "%" in url:
        url = _ENCODED.sub(_plain, url)
    if not url.isascii() or any(letter in url for letter in ' "<>\\^`{|}[]'):
        url = quote(url, _RAW, errors="replace")
    scheme, mark, rest = url.partition("://")
    if mark:
        host, slash, path = rest.partition("/")
        if not slash and "?" in host:
            host, _, path = host.partition("?")
            path = f"?{path}"
        url = f"{scheme.lower()}://{host.lower()}/{path}"
    return url


def in_url(value: str, *, whole: bool = True) -> str:
    """Return how a value stands in a URL, as a whole (``encodeURIComponent``) or with its own slashes and such."""
    if value.isascii() and value.isalnum():
        return value
    if whole:
        return quote(value, _KEPT, errors="replace")
    return quote(_ENCODED.sub(_plain, value), _RAW, errors="replace")


def origin_of(url: str) -> str:
    """Return the scheme and host of a URL as they are spelled."""
    at = url.find("://")
    end = url.find("/", at + 3)
    return url if end < 0 else url[:end]


def _plain(found: re.Match[str]) -> str:
    letter = chr(int(found[1], 16))
    return letter if letter.isascii() and (letter.isalnum() or letter in _KEPT) else found[0].upper()


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
