"""The files of a web archive: a new one for each run, which has whole records only, whatever ends the run."""

from __future__ import annotations

import re
import zlib
from collections import OrderedDict, deque
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, BinaryIO

from filelock import FileLock, Timeout

from scrapy_focus.core.printable import printable_logger
from scrapy_focus.web.warc_records import Before, date_of, may_be_revisited, name_of, pack_exchange, pack_info

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scrapy_focus.web.warc_records import Exchange

logger = printable_logger(__name__)

_SUFFIX = ".warc.gz"
_NAME = "crawl"
_CHUNK = 1 << 16  # bytes
_HEAD = 1 << 14  # bytes of a record that contain its headers
_LAST = 10_000  # records of an unfinished file whose answers may be recalled
_PAGES = 10_000  # pages whose last answer is known to their revisits: 4 MB
_FIELDS = re.compile(r"^(WARC-(?:Target-URI|Payload-Digest)): *(.*?)\r$", re.MULTILINE)
_GZIP = 31  # wbits of zlib


class WarcFiles:
    """Writes answers to ``<name>-00001.warc.gz``, or to the next number that is free; threads may share it.

    The file is created with the first answer. While it is written, ``<name>-00001.warc.gz.lock`` is next to it. If the
    process is killed, the lock stays, and the next process that opens a file there removes the incomplete record at the
    end of the older one.

    Parameters
    ----------
    path
        A folder, or a file name that ends in ``.warc.gz``, to which the number is added.
    info
        What the first record says about the crawl.
    """

    def __init__(self, path: str | Path, info: Mapping[str, str]) -> None:
        self._folder, self._name = _parts(path)
        self._info = info
        self._lock = Lock()
        self._file: BinaryIO | None = None
        self._in_use: FileLock | None = None
        self._last: set[tuple[str, str]] = set()  # URL and digest of the last answers before a kill
        self._pages: OrderedDict[str, Before] = OrderedDict()  # of this run, by URL

    def write(self, exchange: Exchange, *, unless_stored: bool = False) -> int:
        """Append an answer and its request, and return the bytes that they take.

        Parameters
        ----------
        exchange
            The answer.
        unless_stored
            Whether to write nothing if a run before, which was killed, has stored it.

        Raises
        ------
        OSError
            If it cannot be written; the file is as before.
        """
        url, digest = name_of(exchange)
        with self._lock:
            before = self._pages.get(url) if exchange.status == HTTPStatus.NOT_MODIFIED else None
        packed = pack_exchange(exchange, before)
        with self._lock:
            if self._file is None:
                self._file = self._open()
            if unless_stored and (url, digest) in self._last:
                return 0
            _append(self._file, packed)
            if may_be_revisited(exchange):
                self._pages[url] = Before(date_of(exchange), digest)
            if len(self._pages) > _PAGES:
                self._pages.popitem(last=False)
        return len(packed)

    def close(self) -> None:
        """Close the file. Idempotent."""
        with self._lock:
            if self._file is not None:
                self._file.close()
            if self._in_use is not None:
                _unlock(self._in_use)
            self._file = self._in_use = None

    def _open(self) -> BinaryIO:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._mend()
        pattern = re.compile(rf"{re.escape(self._name)}-(\d+){re.escape(_SUFFIX)}")
        taken = (pattern.fullmatch(each.name) for each in self._folder.iterdir())
        number = max((int(found[1]) for found in taken if found), default=0)
        while True:
            number += 1
            path = _numbered(self._folder, self._name, number)
            lock = _locked(path)
            if lock is None:
                continue
            try:
                file = path.open("xb", buffering=0)
            except FileExistsError:  # of another process, which was faster
                _unlock(lock)
                continue
            self._in_use = lock
            _append(file, pack_info(path.name, self._info))
            return file

    def _mend(self) -> None:
        """Remove incomplete records from the files of processes that were killed."""
        for left in self._folder.glob(f"{self._name}-*{_SUFFIX}.lock"):
            path = left.with_suffix("")
            lock = _locked(path)
            if lock is None:
                continue  # it is being written
            if path.is_file() and not path.is_symlink():
                self._last |= _mend(path)
            _unlock(lock)


def first_file(path: str | Path) -> Path:
    """Return the first of the files of a path, whether it exists or not."""
    return _numbered(*_parts(path), 1)


def _parts(path: str | Path) -> tuple[Path, str]:
    """Return the folder of an archive, and the name of its files without their number."""
    named = Path(path)
    if named.name.endswith(_SUFFIX):
        return named.parent, named.name.removesuffix(_SUFFIX)
    return named, _NAME


def _numbered(folder: Path, name: str, number: int) -> Path:
    return folder / f"{name}-{number:05d}{_SUFFIX}"


def _mend(path: Path) -> set[tuple[str, str]]:
    """Cut a file behind its last whole record, and return URL and digest of its last answers."""
    whole, last = 0, deque[tuple[str, str]](maxlen=_LAST)
    with path.open("r+b") as file:
        for end, head in _members(file):
            whole = end
            fields = dict(_FIELDS.findall(head.partition(b"\r\n\r\n")[0].decode(errors="replace") + "\r\n"))
            last.append((fields.get("WARC-Target-URI", ""), fields.get("WARC-Payload-Digest", "")))
        cut = file.seek(0, 2) - whole
        if cut:
            file.truncate(whole)
            logger.warning("%s ended with an incomplete record of %d bytes, which is removed", path, cut)
    return {*last}


def _members(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield where each whole member of a gzip file ends, and how its content begins."""
    rest = b""
    while True:
        member, head = zlib.decompressobj(wbits=_GZIP), b""
        while not member.eof:
            rest = rest or file.read(_CHUNK)
            if not rest:
                return
            try:
                head += member.decompress(rest)[: _HEAD - len(head)]
            except zlib.error:
                return
            rest = member.unused_data
        yield file.tell() - len(rest), head


def _append(file: BinaryIO, data: bytes) -> None:
    """Write all of some bytes, or nothing."""
    end, left = file.tell(), memoryview(data)
    try:
        while left:
            left = left[file.write(left) :]
    except OSError:
        file.seek(end)
        file.truncate()
        raise


def _locked(path: Path) -> FileLock | None:
    """Return the lock of a file, which this process now has; ``None`` if another one has it."""
    lock = FileLock(f"{path}.lock", timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        return None
    return lock


def _unlock(lock: FileLock) -> None:
    """Remove a lock; on Windows it cannot be removed before."""
    lock.release()
    Path(lock.lock_file).unlink(missing_ok=True)
