"""What happened to a crawl since its last checkpoint: an append-only file that a kill at any instant leaves readable.

A record goes to the operating system in one call before its event has any effect outside this process, so that what is
lost with a process is at most the record that it was writing.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
import zlib
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Record = tuple[Any, ...]  # the kind of an event, and plain values, see jobs.records

HEAD = struct.Struct("<II")  # bytes of the record, and its checksum
_PICKLE = b"\x80\x05"  # how the body of a record begins


class Journal:
    """Appends events to a file; whatever fails once fails from then on, so that there are no gaps.

    Parameters
    ----------
    path
        The file; it is made if it is not there.
    keep
        Bytes of it that are whole (see :func:`read_journal`); what follows is cut off. 0 for a new one.

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
        """Write one event, a tuple of plain values. It survives this process when the call is back.

        Raises
        ------
        StorageError
            If it cannot be written. What was written before stays readable.
        """
        if self.error is not None:
            raise self.error
        body = pickle.dumps(event, protocol=5)
        record = HEAD.pack(len(body), zlib.crc32(body)) + body
        try:
            written = os.write(self._file, record)
            while written < len(record):  # a disk that fills up takes a part, and the next call says why
                written += os.write(self._file, record[written:])
        except OSError as error:
            self.error = _unwritable(self.path, error)
            with contextlib.suppress(OSError):  # a part is told from a record by its checksum
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
    """Yield each whole event of a journal, and the number of bytes up to its end; stop where a record is cut or
    damaged.

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
                body = file.read(size)
                if not size or len(body) < size or zlib.crc32(body) != checksum:  # zeros are what a crash leaves
                    return
                end += HEAD.size + size
                yield pickle.loads(body), end  # noqa: S301 (the user's own job directory)
    except (OSError, pickle.UnpicklingError, ImportError, AttributeError) as error:
        raise StorageError(f"{path} cannot be read: {error}") from error


def whole_behind(path: Path, start: int) -> Iterator[bytes]:
    """Yield the pickles of all whole records in a journal from a byte on, also those with damage between them.

    Raises
    ------
    StorageError
        If the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            file.seek(start)
            rest = file.read()
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error}") from error
    at = rest.find(_PICKLE)
    while at >= 0:
        size, checksum = HEAD.unpack(rest[at - HEAD.size : at]) if at >= HEAD.size else (0, 0)
        body = rest[at : at + size]
        is_whole = size > 0 and len(body) == size and zlib.crc32(body) == checksum
        if is_whole:
            yield body
        at = rest.find(_PICKLE, at + (size if is_whole else 1))


def _unwritable(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"{path} cannot be written: {error}. What was written before is safe: make room or allow writing there, and "
        "start the crawl again with the same JOBDIR"
    )
