"""The memory of a frontier as one file beside its database, so that a stopped crawl opens at once.

Two requirements conflict: opening ten million links in a second, and believing nothing but the database. So the file
is written when a frontier is closed with nothing newer than its last checkpoint, and records which state of which
database it belongs to. All rows are read, as without an index, if the database differs: by a stamp that each
checkpoint changes, or by its file's size, time or first bytes. The same happens if a checksum is wrong. Damage to
this file costs time and nothing else.

It begins with a line that names the format. Columns follow, as they are in memory; then a table of these, as JSON; at
the end the length and the checksum of the table.
"""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from struct import Struct
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.printable import printable_logger
from scrapy_focus.frontiers.saved import SIZES, Column, Saved

if TYPE_CHECKING:
    from io import BufferedReader, BufferedWriter
    from pathlib import Path

    from scrapy_focus.frontiers.saved import Part

logger = printable_logger(__name__)

_MAGIC = b"scrapy_focus index 1 " + sys.byteorder.encode() + b"\n"
_END = Struct("<QI")  # bytes of the table, and their checksum
_AT_ONCE = 1 << 20  # bytes
_HEADER = 100  # bytes of a SQLite file
_UNUSABLE = (OSError, ValueError, LookupError, TypeError, RecursionError, MemoryError)


class Index:
    """The file of the index of a database; it may be missing.

    Parameters
    ----------
    database
        The SQLite file. The index is ``<name>-index``, and ``<name>-index.new`` while it is being written.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self.path = database.with_name(f"{database.name}-index")
        self._new = database.with_name(f"{database.name}-index.new")

    def write(self, saved: Saved, stamp: int) -> None:
        """Write the file for the state of the closed database with a stamp.

        If that fails, there is no file, and the reason is logged.
        """
        try:
            self.remove()
            with self._new.open("xb") as file:
                _write(file, saved, self._belongs_to(stamp))
            self._new.replace(self.path)
        except (OSError, ValueError) as error:
            self.remove()
            logger.warning("%s was not written (%s): the next run reads all links one by one", self.path, error)

    def read(self, stamp: int) -> Saved | None:
        """Return the contents if they are intact, and belong to the state of the database with a stamp; else
        ``None``, and the reason is logged if there is a file.
        """
        try:
            return self._read(stamp)
        except FileNotFoundError:
            return None
        except _UNUSABLE as error:
            self.refuse(error)
            return None

    def wrong(self, stamp: int) -> str:
        """Return why the file is not used for a database with a stamp, ``""`` if it is, or if there is none."""
        try:
            self._read(stamp)
        except FileNotFoundError:
            return ""
        except _UNUSABLE as error:
            return str(error) or type(error).__name__
        return ""

    def refuse(self, why: object) -> None:
        """Log that the index is not used."""
        logger.warning("%s is not used (%s): all links are read one by one", self.path, why)

    def remove(self) -> None:
        """Remove the file. One that cannot be removed does no harm."""
        for path in (self.path, self._new):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                logger.warning("%s cannot be removed: %s", path, error)

    def _read(self, stamp: int) -> Saved:
        with self.path.open("rb") as file:
            return _read(file, self._belongs_to(stamp))

    def _belongs_to(self, stamp: int) -> list[Any]:
        """Return values that differ for each state of the database.

        Raises
        ------
        ValueError
            If they cannot be determined, because part of the database is not in its file.
        """
        log = self._database.with_name(self._database.name + "-wal")
        if log.exists() and log.stat().st_size:
            raise ValueError("not all of the database is in its file")
        with self._database.open("rb") as file:
            header = file.read(_HEADER)
        found = self._database.stat()
        return [stamp, found.st_size, found.st_mtime_ns, header.hex()]


def _write(file: BufferedWriter, saved: Saved, belongs_to: list[Any]) -> None:
    table = []
    file.write(_MAGIC)
    for name, (code, parts) in saved.columns.items():
        checksum = 0
        for part in parts:
            checksum = zlib.crc32(part, checksum)
            file.write(part)
        table.append([name, code, sum(map(len, parts)), checksum])
    text = json.dumps({"belongs to": belongs_to, "columns": table}).encode()
    file.write(text)
    file.write(_END.pack(len(text), zlib.crc32(text)))


def _read(file: BufferedReader, belongs_to: list[Any]) -> Saved:
    """Return all columns of a file.

    Raises
    ------
    ValueError, LookupError, TypeError
        If it is of another kind, or damaged.
    """
    size = file.seek(0, 2)
    file.seek(0)
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it is of another format")
    if size < len(_MAGIC) + _END.size:
        raise ValueError("it is cut off")
    file.seek(size - _END.size)
    length, checksum = _END.unpack(file.read(_END.size))
    begins = size - _END.size - length
    if begins < len(_MAGIC):
        raise ValueError("it is damaged, or cut off")
    file.seek(begins)
    text = file.read(length)
    if zlib.crc32(text) != checksum:
        raise ValueError("it is damaged, or cut off")
    table = json.loads(text)
    if table["belongs to"] != belongs_to:
        raise ValueError("the database has changed since")
    sizes = [n * SIZES[code] for _, code, n, _ in table["columns"]]
    if len(_MAGIC) + sum(sizes) != begins or min(sizes) < 0:
        raise ValueError("its columns have other lengths than it says")
    file.seek(len(_MAGIC))
    return Saved({name: Column(code, [_column(file, code, n, crc)]) for name, code, n, crc in table["columns"]})


def _column(file: BufferedReader, code: str, n: int, checksum: int) -> Part:
    column: Part = bytearray(n) if code == "B" else array(code, bytes(SIZES[code])) * n
    found = 0
    with memoryview(column) as view, view.cast("B") as raw:
        for start in range(0, len(raw), _AT_ONCE):
            part = raw[start : start + _AT_ONCE]
            file.readinto(part)
            found = zlib.crc32(part, found)
    if found != checksum:
        raise ValueError("it is damaged")
    return column
