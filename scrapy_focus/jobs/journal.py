"""Events of a crawl since its last checkpoint: an append-only file that stays readable after a kill at any instant.

A record is passed to the operating system in one call before its event has any effect outside this process. So a killed
process loses at most the record that it was writing.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.errors import StorageError
from scrapy_focus.jobs.plain import dumps_plain, loads_plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Record = tuple[Any, ...]  # the kind of an event, and plain values, see jobs.records

HEAD = struct.Struct("<II")  # bytes of the record, and its checksum
_BEGINS = b"\x80\x05"  # start of a record's body, see jobs.plain
_LARGEST = 1 << 30  # bytes of a record, and of the part searched for whole ones
_PATIENCE = 8  # limit for checksums without success, as a multiple of the bytes to search


class Journal:
    """Appends events to a file; after a failure, every call fails, so that there are no gaps.

    Parameters
    ----------
    path
        The file; it is created if missing.
    keep
        Its whole bytes (see :func:`read_journal`); the rest is cut off. 0 for a new file.

    Raises
    ------
    StorageError
        If it cannot be written.
    """

    def __init__(self, path: Path, *, keep: int = 0) -> None:
        self.path = path
        self.error: StorageError | None = None
        self._size = keep
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)
            os.ftruncate(self._file, keep)
        except OSError as error:
            raise _unwritable(path, error) from error

    def append(self, event: Record) -> None:
        """Write one event, a tuple of plain values. When this call returns, it survives the process.

        Raises
        ------
        StorageError
            If it cannot be written, or is not a tuple of plain values. Earlier events stay readable.
        """
        if self.error is not None:
            raise self.error
        try:
            body = dumps_plain(event)
            if len(body) > _LARGEST:
                raise TypeError(f"it has {len(body):,} bytes; the limit is {_LARGEST:,}")
        except TypeError as error:
            self.error = StorageError(f"an event of the crawl cannot be stored in {self.path}: {error}")
            raise self.error from error
        record = HEAD.pack(len(body), zlib.crc32(body)) + body
        try:
            written = os.write(self._file, record)
            while written < len(record):  # a disk that fills up takes a part, and the next call raises the error
                written += os.write(self._file, record[written:])
        except OSError as error:
            self.error = _unwritable(self.path, error)
            with contextlib.suppress(OSError):  # the checksum exposes a partial record
                os.ftruncate(self._file, self._size)
            raise self.error from error
        self._size += len(record)

    @property
    def size(self) -> int:
        """Bytes of whole records."""
        return self._size

    def clear(self) -> None:
        """Forget all events."""
        os.ftruncate(self._file, 0)
        self._size = 0

    def close(self) -> None:
        """Idempotent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def journals_in(folder: Path) -> list[int]:
    """Return the numbers of the journals in a folder, in order."""
    names = [path.name.removeprefix("journal.") for path in folder.glob("journal.*")]
    return sorted(int(name) for name in names if name.isascii() and name.isdecimal())


def read_journal(path: Path) -> Iterator[tuple[Record, int]]:
    """Yield each whole event of a journal, with the number of bytes up to its end.

    Stops at a cut or damaged record.

    Raises
    ------
    StorageError
        If the file cannot be read.
    """
    end = 0
    try:
        with path.open("rb") as file:
            while len(head := file.read(HEAD.size)) == HEAD.size:
                size, checksum = HEAD.unpack(head)
                body = file.read(size) if size <= _LARGEST else b""
                if not size or len(body) < size or zlib.crc32(body) != checksum:  # zeros are what a crash leaves
                    return
                end += HEAD.size + size
                yield tuple(loads_plain(body)), end
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error}") from error
    except (ValueError, TypeError) as error:
        raise StorageError(
            f"{path} cannot be read from byte {end - HEAD.size - size:,} on: {error}; run focus check on the JOBDIR"
        ) from error


def whole_behind(path: Path, start: int) -> Iterator[bytes]:
    """Yield the bodies of whole records in a journal from a byte on, even with damage between them.

    Yields all of them, unless the file was made so that the search would take forever.

    Raises
    ------
    StorageError
        If the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            file.seek(start)
            rest = file.read(_LARGEST)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error}") from error
    patience = _PATIENCE * len(rest)
    at = rest.find(_BEGINS)
    while at >= 0 and patience >= 0:
        size, checksum = HEAD.unpack(rest[at - HEAD.size : at]) if at >= HEAD.size else (0, 0)
        body = rest[at : at + size] if size <= len(rest) - at else b""
        is_whole = len(body) > 0 and zlib.crc32(body) == checksum
        if is_whole:
            yield body
        else:
            patience -= len(body)
        at = rest.find(_BEGINS, at + (size if is_whole else 1))


def _unwritable(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"{path} cannot be written: {error}. Everything written before is safe: make room or check the permissions, "
        "and start the crawl again with the same JOBDIR"
    )
