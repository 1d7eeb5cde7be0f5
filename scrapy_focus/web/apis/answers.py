"""What is in the JSON of a site: values with their paths, URLs, and the data that a page carries itself.

Whatever a server sends is read within bounds: of bytes, of levels, of values. Nothing here is recursive but the parser,
whose ``RecursionError`` is caught.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias
from urllib.parse import urljoin, urlsplit

from scrapy_focus.web.html import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml.etree import _Element

LARGEST = 8 << 20  # bytes of an answer
MOST = 20_000  # values of an answer
DEEPEST = 64  # objects and lists within one another

_LEVELS = 32  # whose values are read
_LOOKED_AT = 200_000  # values of any kind, with empty ones
_TEXT = 2_048  # characters of a value
_KEY = 64  # characters of the name of a property
_INTEGER = 1 << 63
_PAGE = 10_000_000  # characters of a page that is read
_SCRIPTS = 50  # of a page that are read
_GUARD = re.compile(r"\)\]\}',?[ \t]{0,9}\n?|(?:while|for)\s?\((?:1|;;)\);")  # against being read as a script
_ROOTED = re.compile(r"/[\w.~%-][^\s<>\"\\^`{|}]{0,2000}\Z")
_WHOLE = re.compile(r"https?://[^/?#\s<>\"{}][^\s<>\"{}]*\Z", re.IGNORECASE)
_JSON_TYPE = re.compile(r"application/(?:[\w.-]{1,60}\+)?json\Z")


#: Why a body is not read as JSON.
Reason: TypeAlias = Literal["too large", "too deep", "no JSON"]


class Unreadable(ValueError):
    """A body is not read as JSON."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason

    def __reduce__(self) -> tuple[type[Unreadable], tuple[Reason]]:
        return type(self), (self.reason,)


class Call(NamedTuple):
    """An answer in JSON that the scripts of a page asked for, by GET, on the same site."""

    url: str
    data: Any  # as the json module parses it


class Leaf(NamedTuple):
    """A value, its path, and its number in each list on the way to it."""

    path: str
    indexes: tuple[int, ...]
    value: str | int


def read_json(body: bytes, *, largest: int = LARGEST) -> Any:
    """Return the data of an answer. What is not a number by the standard (``NaN``) is ``None``.

    Bytes that are wrong in the encoding, which is UTF-8 or what the first bytes say, are replaced. A guard before the
    data (``)]}'``) is passed over.

    Raises
    ------
    Unreadable
        If the body has more than ``largest`` bytes, or more than 64 levels, or is no JSON.

    Examples
    --------
    >>> read_json(b'{"size": NaN, "results": [{"id": 7}]}')
    {'size': None, 'results': [{'id': 7}]}
    """
    if len(body) > largest:
        raise Unreadable("too large")
    text = body.decode(json.detect_encoding(body), "replace").removeprefix("\ufeff").lstrip()
    if guard := _GUARD.match(text):
        text = text[guard.end() :]
    try:
        data = json.loads(text, parse_constant=_nothing)
    except RecursionError:
        raise Unreadable("too deep") from None
    except ValueError:
        raise Unreadable("no JSON") from None
    level = [data] if isinstance(data, (dict, list)) else []
    for _ in range(DEEPEST):
        level = _below(level)
        if not level:
            return data
    raise Unreadable("too deep")


def _below(level: list[Any]) -> list[Any]:
    """Return the objects and lists that are directly within those of a level."""
    below = []
    for each in level:
        children = each.values() if isinstance(each, dict) else each
        below += [child for child in children if isinstance(child, (dict, list))]
    return below


def _nothing(_: str) -> None:
    """Stand for NaN and infinities."""


def located(data: Any, *, most: int = MOST) -> Iterator[Leaf]:
    """Yield the texts and whole numbers of an answer in its order, as :func:`leaves` does, with their indexes."""
    stack: list[tuple[str, tuple[int, ...], Any]] = [("", (), data)]
    left = most
    for _ in range(_LOOKED_AT):
        if not stack or not left:
            return
        path, indexes, value = stack.pop()
        if isinstance(value, (dict, list)):
            if path.count(".") + path.count("[]") >= _LEVELS:
                continue
            # The last goes on the stack first, so that the first comes off it next.
            if isinstance(value, list):
                inner = f"{path}[]"
                for at in range(min(len(value), _LOOKED_AT) - 1, -1, -1):
                    stack.append((inner, (*indexes, at), value[at]))
            else:
                for name in reversed(value):
                    key = str(name)[:_KEY].replace("/", "|")
                    stack.append((f"{path}.{key}" if path else key, indexes, value[name]))
        elif _is_leaf(value):
            left -= 1
            yield Leaf(path, indexes, value)


def _is_leaf(value: Any) -> bool:
    """Whether a value is a text or a whole number that is not too long to stand in a URL."""
    if isinstance(value, str):
        return 0 < len(value) <= _TEXT
    return isinstance(value, int) and not isinstance(value, bool) and -_INTEGER <= value < _INTEGER


def leaves(data: Any, *, most: int = MOST) -> Iterator[tuple[str, str | int]]:
    """Yield the texts and whole numbers of an answer with their paths: 20,000 at most, and within 32 levels.

    Texts of more than 2,048 characters are passed over, and so are numbers of more than 64 bits. In a path, ``[]`` is
    any element of a list, and a ``/`` of a name is ``|``.

    Examples
    --------
    >>> list(leaves({"results": [{"id": 7, "url": "/a.csv"}, {"id": 8, "free": True}]}))
    [('results[].id', 7), ('results[].url', '/a.csv'), ('results[].id', 8)]
    """
    for path, _, value in located(data, most=most):
        yield path, value


def links_in(data: Any, base: str) -> list[tuple[str, str]]:
    """Return the values of an answer that are URLs, absolute, each once with its path; on whatever site they are.

    A path from the root of the site counts if it is plainly one: with two parts, an extension or a query.

    Examples
    --------
    >>> links_in({"next": "/api/list?page=2", "unit": "/day", "files": ["http://b.test/a.csv"]}, "http://a.test/x")
    [('http://a.test/api/list?page=2', 'next'), ('http://b.test/a.csv', 'files[]')]
    """
    found: dict[str, str] = {}
    for path, value in leaves(data):
        if isinstance(value, str) and (url := url_of(value, base)):
            found.setdefault(url, path)
    return list(found.items())


def url_of(value: str, base: str) -> str:
    """Return the absolute URL that a value is, without its fragment; ``""`` if it is none."""
    value = value.strip()
    if value[:8].lower().startswith(("http://", "https://")):
        if not _WHOLE.match(value):
            return ""
    elif value.startswith("//"):
        if "." not in value.split("/", 3)[2] or not _ROOTED.match(value[1:]):
            return ""
    elif not _ROOTED.match(value) or not re.search(r".[/?]|\.[A-Za-z][A-Za-z0-9]{1,7}\Z", value):
        return ""
    try:
        url = urljoin(base, value).partition("#")[0]
        return url if urlsplit(url).hostname else ""
    except ValueError:
        return ""


def data_in_page(source: str) -> list[Any]:
    """Return the data that a page carries for its scripts, in its order: what is JSON by type or ``__NEXT_DATA__``.

    What a page says to search engines (``application/ld+json``) is left out. 50 scripts of 8 MiB together are read.

    Examples
    --------
    >>> data_in_page('<script type="application/json">{"id": 7}</script><script>let a = {"id": 8}</script>')
    [{'id': 7}]
    """
    if len(source) > _PAGE or ("json" not in source.lower() and "__NEXT_DATA__" not in source):
        return []
    root = parsed(source)
    return [] if root is None else data_of_root(root)


def data_of_root(root: _Element) -> list[Any]:
    """Return the data that a parsed page carries, as :func:`data_in_page` does."""
    found = []
    room = LARGEST
    left = _SCRIPTS
    for script in root.iter("script"):
        mime = (script.get("type") or "").partition(";")[0].strip().lower()
        is_data = (_JSON_TYPE.match(mime) and "ld+json" not in mime) or script.get("id") == "__NEXT_DATA__"
        if not is_data or not left:
            continue
        left -= 1
        body = "".join(map(str, script.itertext())).encode("utf-8", "replace")
        try:
            found.append(read_json(body, largest=room))
        except Unreadable:
            continue
        room -= len(body)
    return found
