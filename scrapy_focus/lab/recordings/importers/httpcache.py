"""Imports Scrapy's HTTP cache: the responses of earlier crawls, without requests to the site.

A cache may come from somebody else, and Scrapy writes it with pickle, which can run code when it is read. Here
nothing that it names is ever imported or called: files are read as literals if possible, and otherwise every class is
replaced by one that does nothing.
"""

from __future__ import annotations

import ast
import dbm
import io
import pickle
import zlib
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.core.errors import RecordingError
from scrapy_focus.core.printable import printable_logger
from scrapy_focus.lab.recordings.html import LARGEST, decompress, get_header, gunzip
from scrapy_focus.lab.recordings.importers.base import Archive, merge_headers
from scrapy_focus.lab.recordings.writer import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

logger = printable_logger(__name__)

_BROKEN: tuple[type[Exception], ...] = (
    OSError, EOFError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, SyntaxError, RecursionError,
    MemoryError, zlib.error, pickle.UnpicklingError, *dbm.error,
)  # fmt: skip
_LONGEST = 1 << 20  # bytes of an entry's description, and of its headers
_ENTRY = "??/*/meta"  # where the file system storage describes an entry


class _Entry(NamedTuple):
    """A response in the cache."""

    time: float  # seconds since 1970, when it was stored
    name: str  # folder or key
    read: Callable[[], Answer | None]  # None: it is not the answer to a GET


class HttpCacheImporter(Archive):
    """Imports the answers to GET requests in Scrapy's HTTP cache.

    Both storages of Scrapy are supported: files (also with ``HTTPCACHE_GZIP``) and DBM, which does not store the
    method: a POST counts as a GET, if it was stored first. Entries that were half written when a crawl was killed are
    skipped, with a warning in the log.

    Parameters
    ----------
    folder
        The cache of one spider, ``.scrapy/httpcache/<spider>`` or ``.scrapy/httpcache/<spider>.db``; or the folder
        above, if it holds one spider only.

    Raises
    ------
    RecordingError
        If the folder is not such a cache, or holds those of several spiders.
    """

    def __init__(self, folder: str | Path) -> None:
        self._cache = _find(Path(folder))
        self.source = f"the HTTP cache {self._cache}"

    def read(self) -> Iterator[Answer]:
        """Yield the answers in the order in which they were stored."""
        if self._cache.is_dir():
            yield from _answers(self._files)
        else:
            with _open(self._cache) as entries:
                yield from _answers(entries)

    @cached_property
    def _files(self) -> list[_Entry]:
        """Yield the entries of the file system storage, in the order in which they were stored."""
        entries = [entry for meta in self._cache.glob(_ENTRY) if (entry := _describe(meta)) is not None]
        return sorted(entries, key=lambda entry: (entry.time, entry.name))


def _find(folder: Path) -> Path:
    """Return the cache of one spider: its folder, or the name of its DBM file without suffixes of the module."""
    if _is_cache(folder):
        return folder
    within = sorted({_dbm_name(each) for each in folder.iterdir()}) if folder.is_dir() else []
    found = [each for each in within if _is_cache(each)]
    if not found:
        raise RecordingError(f"{folder} holds no HTTP cache of Scrapy: name the folder .scrapy/httpcache/<spider>")
    if len(found) > 1:
        names = ", ".join(str(each) for each in found)
        raise RecordingError(f"{folder} holds the caches of several spiders: name one of {names}")
    return found[0]


def _is_cache(path: Path) -> bool:
    return next(path.glob(_ENTRY), None) is not None if path.is_dir() else bool(dbm.whichdb(str(path)))


def _dbm_name(path: Path) -> Path:
    """Return a path without the suffixes of DBM modules: ``spider.db.dir`` belongs to ``spider.db``."""
    name = path.name
    for suffix in (".dat", ".dir", ".bak", ".pag", ".db"):
        if name.endswith(f".db{suffix}"):
            return path.with_name(name.removesuffix(suffix))
    return path


@contextmanager
def _open(cache: Path) -> Iterator[list[_Entry]]:
    """Yield the entries of the DBM storage, in the order in which they were stored."""
    try:
        database: Any = dbm.open(str(cache), "r")  # noqa: SIM115 (it is closed below)
        keys = list(database.keys())  # not all DBM modules can iterate
        times = {key.removesuffix(b"_time"): float(database[key]) for key in keys if key.endswith(b"_time")}
    except _BROKEN as error:
        raise RecordingError(f"{cache} cannot be read: {error}") from error
    with closing(database):
        order = sorted(times.items(), key=lambda item: (item[1], item[0]))
        yield [_Entry(time, key.decode(), _reader(database, key + b"_data")) for key, time in order]


def _answers(entries: Sequence[_Entry]) -> Iterator[Answer]:
    for entry in entries:
        try:
            answer = entry.read()
        except _BROKEN as error:
            logger.warning("The cache entry %s cannot be read and is skipped: %s", entry.name, error)
            continue
        if answer is not None:
            yield answer


def _describe(meta: Path) -> _Entry | None:
    def read() -> Answer | None:
        fields = ast.literal_eval(_content(meta).decode())
        if fields.get("method", "GET") != "GET":
            return None
        lines = _content(meta.with_name("response_headers")).split(b"\r\n")
        pairs = [(name, value.strip()) for name, colon, value in (line.partition(b":") for line in lines) if colon]
        return _answer(fields["url"], fields["status"], pairs, _content(meta.with_name("response_body"), LARGEST))

    def _content(file: Path, most: int = _LONGEST) -> bytes:
        with file.open("rb") as opened:
            content = opened.read(most + 1)
        if len(content) > most:
            raise ValueError(f"{file.name} has more than {most:,} bytes")
        return gunzip(content, most) if compressed else content

    try:
        with meta.open("rb") as opened:
            compressed = opened.read(2) == b"\x1f\x8b"
        return _Entry(float(ast.literal_eval(_content(meta).decode())["timestamp"]), str(meta.parent), read)
    except _BROKEN as error:
        logger.warning("The cache entry %s cannot be read and is skipped: %s", meta.parent, error)
        return None


def _reader(database: Any, key: bytes) -> Callable[[], Answer | None]:
    def read() -> Answer | None:
        fields = _Harmless(io.BytesIO(database[key])).load()
        pairs = [(name, value) for name, values in fields["headers"].items() for value in values]
        answer = _answer(fields["url"], fields["status"], pairs, fields["body"])
        announced = get_header(answer.headers, "Content-Length")
        is_head = answer.status == 200 and not answer.body and announced.isdigit() and int(announced) > 0
        return None if is_head else answer  # this storage does not store the method

    return read


def _answer(url: str, status: int, pairs: Sequence[tuple[bytes, bytes]], body: bytes) -> Answer:
    headers = merge_headers((_decode(name), _decode(value)) for name, value in pairs)
    return Answer(url=str(url), status=int(status), headers=headers, body=decompress(body, headers), size=len(body))


def _decode(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


class _Nothing:
    """Replaces every class that a pickle names."""

    def __new__(cls, *args: object, **kwargs: object) -> _Nothing:
        return super().__new__(cls)

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        pass


class _Harmless(pickle.Unpickler):
    """Reads plain data, and runs nothing."""

    def find_class(self, module: str, name: str) -> Any:
        return _Nothing
