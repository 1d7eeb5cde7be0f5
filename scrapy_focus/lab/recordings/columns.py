"""The columns of a recording in a file beside it, so that it opens at once, and is read once for all processes.

Reading a recording of a million pages from SQLite takes half a minute and a gigabyte, in each of the processes that
compare policies on it. The result is the same for all of them, until the recording is changed. So the first reader
leaves the columns beside it, and later readers map them: nothing is copied, and processes share the pages.

The file is a copy that may be deleted at any time. If it is missing, of another state of the recording, of another
format, cut off or damaged, the recording is read instead. It is written under another name and then renamed, so that
readers never see half of it, and those who have mapped an earlier one keep that.

It has the columns one after the other, then their description (JSON), then the place where that begins. The JSON has
a sum of each mebibyte of the columns. All of them are compared at each opening, by reading: that takes about a tenth
of a second for a gigabyte in the page cache, and adds nothing to the memory of the process.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import shutil
import stat
import struct
import sys
import tempfile
import time
import zlib
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import BinaryIO

    from numpy.typing import ArrayLike, DTypeLike, NDArray

#: Columns of a recording, by name.
Arrays: TypeAlias = "dict[str, NDArray[Any]]"

FORMAT = 1  # raise it with each change of the contents of the columns, or of their sources
_FIRST = b"Columns of the recording beside this file, made from it by scrapy_focus. This file may be deleted.\n"
_LAST = struct.Struct("<QI8s")  # bytes of the JSON, its CRC, and the following
_MAGIC = b"\nFOCUSCL"
_ALIGNED = 64  # bytes
_BLOCK = 1 << 20  # bytes per sum
_COARSE = 2.0  # seconds, of the coarsest clock of a file system


def path_of(recording: Path) -> Path:
    """Return where the columns of a recording are."""
    return recording.with_name(f"{recording.name}.columns")


def key_of(recording: Path, meta: Mapping[str, Any]) -> str | None:
    """Return an identifier of the state of a recording; ``None`` if there is none.

    Size and time of the file are not enough, because copies may keep the time. So the recording's table ``meta``
    counts, too, with its checksums. While changes are in a write-ahead log beside the file, none of these is
    reliable. The file itself is not opened: closing it again would drop the locks that SQLite has on it in this
    process.
    """
    try:
        log = recording.with_name(f"{recording.name}-wal")
        if log.exists() and log.stat().st_size:
            return None
        found = recording.stat()
    except OSError:
        return None
    said = json.dumps([FORMAT, sys.version_info[:2], dict(meta)], sort_keys=True).encode()
    return f"{found.st_size} {found.st_mtime_ns} {blake2b(said, digest_size=16).hexdigest()}"


def is_settled(recording: Path) -> bool:
    """Whether the next change of a recording will give it another time; clocks of file systems are coarse."""
    try:
        return time.time() - recording.stat().st_mtime > _COARSE
    except OSError:
        return False


def open_columns(recording: Path, key: str) -> Arrays | None:
    """Map the columns of a recording; ``None`` if there are none for this state, or they are damaged."""
    path = path_of(recording)
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            kept = _contents(file)
            if kept is None or kept["key"] != key or not _is_whole(file, kept):
                return None
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError, LookupError, TypeError):  # any exception from a damaged file
        return None
    return {
        name: _native(np.frombuffer(mapped, np.dtype(kind), count, start))
        for name, (kind, count, start) in kept["columns"].items()
    }


def save_columns(recording: Path, key: str, arrays: Arrays) -> None:
    """Write the columns of a recording beside it.

    Raises
    ------
    OSError
        If they cannot be written, or would leave less free disk space than they take. Then there is no file, or the
        old one.
    """
    path, size = path_of(recording), sum(array.nbytes for array in arrays.values())
    if shutil.disk_usage(path.parent).free < 2 * size:
        raise OSError(errno.ENOSPC, f"{size / 1e6:,.0f} MB would leave too little room on the disk")
    handle, name = tempfile.mkstemp(".tmp", f".{path.name}.", path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            _write(file, key, arrays)
        Path(name).chmod(stat.S_IMODE(recording.stat().st_mode) | stat.S_IWUSR)  # permissions as for the recording
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def joined(parts: Sequence[ArrayLike], kind: DTypeLike) -> NDArray[Any]:
    """Return a column that was read in several lots."""
    return np.concatenate([np.zeros(0, kind), *(np.array(part, kind) for part in parts)])


def _write(file: BinaryIO, key: str, arrays: Arrays) -> None:
    summed = _Summed(file)
    summed.write(_FIRST)
    columns = {}
    for name, array in arrays.items():
        summed.write(bytes(-summed.size % _ALIGNED))
        little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
        columns[name] = little.dtype.str, len(little), summed.size
        summed.write(little.view(np.uint8).data)
    said = json.dumps({"key": key, "columns": columns, "end": summed.size, "sums": summed.sums()}).encode()
    file.write(said)
    file.write(_LAST.pack(len(said), zlib.crc32(said), _MAGIC))


def _contents(file: BinaryIO) -> dict[str, Any] | None:
    """Return the description in a file, if it is of this kind and complete."""
    size = os.fstat(file.fileno()).st_size
    file.seek(max(0, size - _LAST.size))
    length, crc, magic = _LAST.unpack(file.read().rjust(_LAST.size))
    if magic != _MAGIC or length > size:
        return None
    file.seek(size - _LAST.size - length)
    said = file.read(length)
    if zlib.crc32(said) != crc:
        return None
    kept: dict[str, Any] = json.loads(said)
    return kept


def _is_whole(file: BinaryIO, kept: Mapping[str, Any]) -> bool:
    """Whether the columns are undamaged."""
    block = np.zeros(_BLOCK // 8, np.uint64)
    view, left = block.view(np.uint8).data, kept["end"]
    file.seek(0)
    for expected in kept["sums"]:
        size = min(left, _BLOCK)
        view[size:] = bytes(_BLOCK - size)
        if file.readinto(view[:size]) != size or int(block.sum()) != expected:  # type: ignore[attr-defined]
            return False
        left -= size
    return not left


class _Summed:
    """Writes to a file, and sums up each mebibyte."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = 0
        self._sums: list[int] = []
        self._block = np.zeros(_BLOCK // 8, np.uint64)

    def write(self, content: bytes | memoryview) -> None:
        view = self._block.view(np.uint8).data
        done = 0
        while done < len(content):
            begin = self.size % _BLOCK
            some = content[done : done + _BLOCK - begin]
            view[begin : begin + len(some)] = some
            self._file.write(some)
            self.size += len(some)
            done += len(some)
            if not self.size % _BLOCK:
                self._end_block()

    def sums(self) -> list[int]:
        """Return all sums; nothing is written after."""
        if self.size % _BLOCK:
            self._end_block()
        return self._sums

    def _end_block(self) -> None:
        self._sums.append(int(self._block.sum()))
        self._block[:] = 0


def _native(array: NDArray[Any]) -> NDArray[Any]:
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
