"""Reads catalogues of data sets: DCAT (``data.json``), answers of CKAN, and ``Dataset`` of schema.org.

All three list data sets with their files, under different names. One data set is parsed at a time, so that a catalogue
of ten megabytes takes no longer pause than its largest data set. Nothing in it is trusted to have the right type.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from scrapy_focus.web.listings import listed_in, whole
from scrapy_focus.web.mime import FILE_TYPES, guess_mime, parse_mime

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_LARGEST = 1 << 19  # characters of a data set: some ten milliseconds
_FRUITLESS = 1 << 20  # characters without a URL, after which reading stops, ...
_EACH = 200  # ... with so many more for each data set
_BROKEN = 5_000_000  # characters that are searched for URLs if the JSON is malformed
_MOST = 1000  # files of a data set
_LONGEST = 4096  # characters of a text that is read
_BEGINS = 200_000  # characters within which the data sets begin
_TITLE = 200  # characters of a title that are kept
_AROUND = 4096  # characters before and after the data sets that are read
_PER_PAGE = 100  # data sets of a page of ckanext-dcat, which names no next one
_MOST_ROWS = 1_000_000  # data sets of a catalogue that are asked for
_ARRAY = re.compile(r'(?<!\\)"(?:dcat:dataset|dataset|results|@graph)"\s{0,9}:\s{0,9}\[')
_RESULT = re.compile(r'(?<!\\)"result"\s{0,9}:\s{0,9}\[?(?=\{)')  # of CKAN: one data set, or a list
_NEXT = re.compile(r"[\s,]*(?=\{)")
_COUNT = re.compile(r'(?<!\\)"(?:count|hydra:totalItems|totalItems)"\s{0,9}:\s{0,9}(\d{1,9})\b')
_NEXT_PAGE = re.compile(r'(?<!\\)"(?:hydra:)?next(?:Page)?"\s{0,9}:\s{0,9}("(?:[^"\\]|\\.){1,2000}")')
_MIME = re.compile(r"[a-z]+/[a-z0-9][a-z0-9.+-]*")
_FILES = ("distribution", "resources")  # keys of the files of a data set, ...
_URLS = ("downloadURL", "contentUrl", "url")  # of the URL of a file, ...
_TYPES = ("mediaType", "mimetype", "encodingFormat", "fileFormat", "format")  # ... of its type, ...
_NAMES = ("title", "name")  # ... and of its title
_NAME_OF = {mime: name for name, mimes in reversed(FILE_TYPES.items()) for mime in mimes}

#: Query of the first page of CKAN's ``package_search``.
SEARCH = "rows=200&start=0"


class Declared(NamedTuple):
    """A file, or a page, that a catalogue names. ``url`` may be relative, and is not checked."""

    url: str
    text: str = ""  # its title, and the name of its type
    mime: str = ""  # the declared type, "" if it is none or unknown
    is_page: bool = False  # whether it is the page of a data set


class Catalogue:
    """The data sets of a catalogue; iterate over it for the files and pages of one at a time.

    If the JSON is malformed, or a data set too large, the URLs of the rest follow without their types.

    Parameters
    ----------
    body
        The body as received; it may be gzip. Ten megabytes are read.

    Attributes
    ----------
    count
        How many data sets the whole catalogue has, as it declares; ``None`` if it does not.
    n_read
        How many were read so far.

    Examples
    --------
    >>> body = b'{"conformsTo": "x", "dataset": [{"title": "Rain", "distribution": [{"downloadURL": "/r?id=1", '
    >>> body += b'"mediaType": "text/csv"}]}]}'
    >>> [list(each) for each in Catalogue(body)]
    [[Declared(url='/r?id=1', text='Rain (csv)', mime='text/csv', is_page=False)]]
    """

    def __init__(self, body: bytes) -> None:
        content = whole(body)
        self._text = content.decode(json.detect_encoding(content), "replace")
        found = _ARRAY.search(self._text, 0, _BEGINS) or _RESULT.search(self._text, 0, _BEGINS)
        self._start = 0 if found is None else found.end()
        self._rest = self._start  # where the text after the data sets begins
        self.n_read = 0
        declared = _COUNT.search(self._text[: self._start][:_AROUND])
        self.count = int(declared[1]) if declared else None

    def __iter__(self) -> Iterator[list[Declared]]:
        fruitless = 0
        for dataset, size in self._datasets():
            self.n_read += 1
            files = files_of(dataset)
            fruitless = 0 if files else fruitless + size + _EACH
            if files:
                yield files
            if fruitless > _FRUITLESS:
                return
        if not self._text.startswith("]", self._rest):
            rest = self._text[self._rest : self._rest + _BROKEN]
            yield from ([Declared(url)] for url in listed_in(rest.encode("utf-8", "replace")))

    def next_page(self, url: str) -> str:
        """Return the URL of the next page of a catalogue that was read completely, ``""`` if there is none.

        It may be relative to ``url``, the address of this one. It follows from the number of data sets that CKAN
        declares, from a name such as ``next``, or from a full page of 100.

        Examples
        --------
        >>> page = Catalogue(b'{"result": {"count": 3, "results": [{"resources": []}, {}]}}')
        >>> list(page), page.next_page("http://a.test/api/3/action/package_search?rows=2")
        ([], 'http://a.test/api/3/action/package_search?rows=2&start=2')
        """
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        if not self.n_read:
            return ""
        if parts.path.endswith("/package_search"):
            start = _number(query.get("start", "")) + self.n_read
            more = self.count is not None and start < min(self.count, _MOST_ROWS)
            return parts._replace(query=urlencode({**query, "start": start})).geturl() if more else ""
        head, tail = self._text[: self._start][:_AROUND], self._text[self._rest :][:_AROUND]
        if named := _NEXT_PAGE.search(tail) or _NEXT_PAGE.search(head):
            return _unquoted(named[1])
        if self.n_read == _PER_PAGE:
            page = _number(query.get("page", "1")) + 1
            return parts._replace(query=urlencode({**query, "page": page})).geturl()
        return ""

    def _datasets(self) -> Iterator[tuple[Mapping[str, Any], int]]:
        """Yield each data set, and its size in characters."""
        decode = json.JSONDecoder(strict=False).raw_decode
        at = self._start
        while at:
            window, used = self._text[at : at + _LARGEST], 0
            while start := _NEXT.match(window, used):
                try:
                    dataset, end = decode(window, start.end())
                except (ValueError, RecursionError):  # it is malformed, or ends behind the window
                    break
                yield dataset, end - used
                used = end
            at += used
            self._rest = at + len(window[used:]) - len(window[used:].lstrip(" \t\r\n,"))
            if not used:
                return


def files_of(dataset: Mapping[str, Any]) -> list[Declared]:
    """Return the files of a data set, or its page if it has none.

    Examples
    --------
    >>> files_of({"title": "Rain", "resources": [{"url": "http://a.test/rain.XLS", "format": "Excel", "name": "2024"}]})
    [Declared(url='http://a.test/rain.XLS', text='2024 (xls)', mime='application/vnd.ms-excel', is_page=False)]
    """
    plain = _plain(dataset)
    title = _first(plain, _NAMES)
    found = []
    own = [plain] if "downloadURL" in plain else []  # a file that is listed beside its data set
    for part in (*own, *(each for key in _FILES for each in _objects(plain.get(key)))):
        file = _plain(part)
        mime = declared_mime(_text(file.get(key)) for key in _TYPES)
        text = described(_first(file, _NAMES) or title, mime)
        if url := _first(file, _URLS):
            found.append(Declared(url, text, mime))
        elif url := _text(file.get("accessURL")):
            found.append(Declared(url, text))  # a page in most cases, whatever the type
    if not found and (page := _text(plain.get("landingPage"))):
        found.append(Declared(page, title, is_page=True))
    return found[:_MOST]


def declared_mime(names: Iterable[str]) -> str:
    """Return the MIME type that the first of these names means: a type, an extension, or the URL of one.

    Examples
    --------
    >>> declared_mime(["", "https://www.iana.org/assignments/media-types/text/csv"]), declared_mime(["Web page"])
    ('text/csv', '')
    >>> declared_mime(["http://publications.europa.eu/resource/authority/file-type/XLSX"])[-5:]
    'sheet'
    """
    for name in names:
        mime = parse_mime(name.rpartition("media-types/")[2])
        if _MIME.fullmatch(mime):
            return mime
        if mime := guess_mime(mime.rpartition("/")[2].strip().lstrip(".")[:20]):
            return mime
    return ""


def described(title: str, mime: str) -> str:
    """Return the text of a link to a file: its title, and the name of its type.

    Examples
    --------
    >>> described("Rain", "text/csv"), described("Rain (CSV)", "text/csv"), described("", "text/csv")
    ('Rain (csv)', 'Rain (CSV)', 'csv')
    """
    title, name = title[:_TITLE], _NAME_OF.get(mime, "")
    if not title or not name or name in re.split(r"\W+", title.lower()):
        return title or name
    return f"{title} ({name})"


def _objects(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects of a list, or the only one; 1,000 at most."""
    values = value[:_MOST] if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, dict)]


def _plain(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object with the keys ``title`` for ``dcat:title``, ``dct:title`` and ``title``."""
    return {key.rpartition(":")[2]: each for key, each in value.items()}


def _first(value: Mapping[str, Any], keys: Iterable[str]) -> str:
    return next((text for key in keys if (text := _text(value.get(key)))), "")


def _text(value: Any) -> str:
    """Return a text, or the one that a JSON-LD value stands for; ``""`` for anything else."""
    if isinstance(value, list):
        value = value[0] if value else ""
    if isinstance(value, dict):
        value = value.get("@id") or value.get("@value") or next(iter(value.values()), "")
    if not isinstance(value, str):
        return ""
    return " ".join(value[:_LONGEST].encode("utf-8", "replace").decode().split())  # without lone surrogates


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        return ""


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
