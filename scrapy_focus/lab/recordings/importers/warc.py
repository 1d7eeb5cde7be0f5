"""Imports web archives: WARC files, as wget, Heritrix or Browsertrix write them, and the older ARC.

Archives are large and often cut off. So they are read as streams, twice: once to find where the crawl started and
which records are referred to later, once to record. An incomplete archive is recorded as far as it goes, with an
error.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import tempfile
import zlib
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.core.errors import RecordingError
from scrapy_focus.core.extras import require_extra
from scrapy_focus.core.printable import printable_logger
from scrapy_focus.lab.recordings.html import LARGEST, decompress, get_header
from scrapy_focus.lab.recordings.importers.base import FirstPage, identity, merge_headers
from scrapy_focus.lab.recordings.writer import Answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Self

    from scrapy_focus.lab.recordings.writer import SiteWriter

logger = printable_logger(__name__)

_STATUS = re.compile(r"[1-9][0-9]{2}")
_CHUNK = 1 << 20  # bytes
_SAID = 200  # characters of warcio's message
_STARTS = (b"WARC/", b"filedesc://")  # of the two formats


class _Payload(NamedTuple):
    """The content of a response."""

    status: int
    headers: dict[str, str]
    body: bytes  # decompressed
    size: int  # bytes as received
    unchunked: bytes = b""  # as received, if it came in chunks


class _Record(NamedTuple):
    """A record that may be an answer."""

    kind: str
    url: str
    id: str
    asked_by: str  # the record of its request, or the other way round
    method: str  # of a request
    digest: str
    refers_to: str  # URL
    payload: _Payload | None


class WarcImporter:
    """Imports the answers to GET requests in web archives; the first one of each URL.

    Needs `warcio <https://pypi.org/project/warcio/>`_: ``pip install "scrapy-focus[lab]"``. What can be read before the
    end of a file that is damaged or was cut off is recorded; the error comes then, and the recording is unfinished.

    Parameters
    ----------
    files
        WARC 1.0, 1.1 or ARC files, compressed or not, in the order in which they were written.

    Raises
    ------
    ConfigError
        If warcio is not installed.
    RecordingError
        If a file is not a web archive.

    Notes
    -----
    A ``revisit`` record gets the body of the record that it refers to, if that is in the archives. ``resource``
    records count as answers with status 200.

    Digests of records are checked. Records with a wrong digest are skipped, with a warning that counts them. A digest
    of the payload alone, without one of the record, may be for the body as received or without its chunks: archives
    differ. At most 64 MiB of a body are read.
    """

    def __init__(self, *files: str | Path) -> None:
        self._paths = [Path(file) for file in files]
        for path in self._paths:
            _check(path)
        self.source = _named(self._paths)
        self._survey: _Survey | None = None  # made while the first page is searched, or else by answers()

    def find_root(self, named: str | None) -> str:
        """Return the URL of the first page, or the named one if the archives have it."""
        self._survey = _Survey(self._paths, named)
        return self._survey.first.root(self.source, self._survey.damage or "give root=...")

    def answers(self, recording: SiteWriter) -> Iterator[Answer]:
        """Yield the answers in the order of arrival, and then those of revisits."""
        return _answers(self._paths, self._survey or _Survey(self._paths), recording.path)


class _Survey:
    """What has to be known of archives before they are recorded."""

    def __init__(self, paths: Sequence[Path], named: str | None = None) -> None:
        self.first = FirstPage(named)
        self.referred: set[str] = set()  # digests and URLs whose bodies revisits need
        self.not_got: set[str] = set()  # requests and responses of other methods than GET
        self.damage: RecordingError | None = None
        try:
            for path in paths:
                for record in _read(path, with_bodies=False):
                    self._see(record)
        except RecordingError as error:
            self.damage = error  # it is raised after the part before it is recorded

    def is_got(self, record: _Record) -> bool:
        """Whether a record answers a GET, as far as is known."""
        return record.id not in self.not_got and record.asked_by not in self.not_got

    def _see(self, record: _Record) -> None:
        if record.kind == "request":
            if record.method != "GET":
                self.not_got.update({record.id, record.asked_by} - {""})
        elif record.kind == "revisit":
            if identity(record.refers_to) != identity(record.url):  # of the same URL, whose first answer counts anyway
                self.referred.update({record.digest, identity(record.refers_to)} - {""})
        elif record.payload is not None and self.is_got(record):
            self.first.see(record.url, record.payload.status, record.payload.headers)


class _Bodies:
    """The payloads that revisits need, in a temporary file."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it is closed with this)
        self._places: dict[str, tuple[int, int, _Payload]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def keep(self, payload: _Payload, names: Iterable[str]) -> None:
        """Keep a payload under several names; the first one under a name stays."""
        fresh = [name for name in names if name not in self._places]
        if fresh:
            place = self._file.seek(0, 2), len(payload.body), payload._replace(body=b"", unchunked=b"")
            self._file.write(payload.body)
            self._places.update(dict.fromkeys(fresh, place))

    def find(self, *names: str) -> _Payload | None:
        """Return the payload kept under one of some names."""
        for name in names:
            if name in self._places:
                start, length, payload = self._places[name]
                self._file.seek(start)
                return payload._replace(body=self._file.read(length))
        return None


def _answers(paths: Sequence[Path], survey: _Survey, target: Path) -> Iterator[Answer]:
    revisits = []
    with _Bodies() as kept:
        for path in paths:
            try:
                for record in _read(path, with_bodies=True):
                    if record.kind == "request" or not survey.is_got(record):
                        continue
                    if record.kind == "revisit":
                        revisits.append(record)
                    elif record.payload is not None:
                        names = {record.digest, identity(record.url)} & survey.referred
                        kept.keep(record.payload, names)
                        yield _answer(record.url, record.payload)
            except RecordingError as error:
                raise RecordingError(f"{error}; what comes before it is in {target}, marked as unfinished") from error
        for record in revisits:
            payload = _revisited(record, kept.find(record.digest, identity(record.refers_to)))
            if payload is not None:
                yield _answer(record.url, payload)


def _revisited(record: _Record, original: _Payload | None) -> _Payload | None:
    """Return the response of a revisit: its own status and headers, if it has any, with the body of the original."""
    own = record.payload
    if own is None or own.status == 304:  # "not modified" is an answer to a conditional request
        return original
    if original is None:
        length = get_header(own.headers, "Content-Length")
        return own._replace(size=int(length) if length.isdigit() else own.size)
    return original._replace(status=own.status, headers=own.headers)


def _answer(url: str, payload: _Payload) -> Answer:
    return Answer(url=url, status=payload.status, headers=payload.headers, body=payload.body, size=payload.size)


def _read(path: Path, *, with_bodies: bool) -> Iterator[_Record]:
    """Yield the records of one file.

    Raises
    ------
    RecordingError
        If it is damaged or was cut off; all records before that were yielded.
    """
    from warcio.archiveiterator import ArchiveIterator

    with _Stream(path) as stream:
        archive = ArchiveIterator(stream, arc2warc=True, check_digests=with_bodies)
        records, count, changed = iter(archive), 0, 0
        while True:
            start = archive.offset
            try:
                record = next(records, None)
                if record is None:
                    break
                answer = _parse(record, with_bodies)
                archive.read_to_end()
                if record.length is None or getattr(record.raw_stream, "limit", 0) > 0:
                    raise EOFError("it was cut off")
            except Exception as error:  # any exception of warcio's parsers
                raise stream.damage(start, count, error) from error
            count += 1
            if answer is not None and (not with_bodies or _has_its_digests(record, answer)):
                yield answer
            else:
                changed += answer is not None
        if changed:
            what = "1 record does" if changed == 1 else f"{changed:,} records do"
            logger.warning("%s not match their digests, and are skipped: %s", what, path)
        if stream.tell() != archive.offset:
            raise stream.damage(archive.offset, count, EOFError("it was cut off"))


def _has_its_digests(record: Any, answer: _Record) -> bool:
    """Whether all digests of a record are right; missing and unknown ones count as right."""
    problems = record.digest_checker.problems
    if any(problem.startswith("block digest failed") for problem in problems):
        return False
    if not any(problem.startswith("payload digest failed") for problem in problems):
        return True
    if record.rec_headers.get_header("WARC-Block-Digest"):  # which reports for all bytes whether they are unchanged
        return True
    algorithm, _, said = answer.digest.partition(":")
    bodies = () if answer.payload is None else (answer.payload.body, answer.payload.unchunked)
    made = [hashlib.new(algorithm, body, usedforsecurity=False).digest() for body in bodies]
    return any(said.lower() in (each.hex(), base64.b32encode(each).decode().lower()) for each in made)


def _parse(record: Any, with_bodies: bool) -> _Record | None:
    headers = record.rec_headers
    url = (headers.get_header("WARC-Target-URI") or "").strip("<>")
    if record.rec_type not in ("response", "resource", "revisit", "request") or not url.startswith("http"):
        return None
    return _Record(
        kind=record.rec_type,
        url=url,
        id=headers.get_header("WARC-Record-ID") or "",
        asked_by=headers.get_header("WARC-Concurrent-To") or "",
        method=record.http_headers.protocol if record.rec_type == "request" and record.http_headers else "",
        digest=headers.get_header("WARC-Payload-Digest") or "",
        refers_to=(headers.get_header("WARC-Refers-To-Target-URI") or "").strip("<>"),
        payload=None if record.rec_type == "request" else _payload(record, with_bodies),
    )


def _payload(record: Any, with_body: bool) -> _Payload | None:
    if record.rec_type == "resource":
        status, headers = 200, {"Content-Type": record.content_type or "", "Content-Length": str(record.length)}
    elif record.http_headers is None or not _STATUS.fullmatch(record.http_headers.get_statuscode()):
        return None
    else:
        status, headers = int(record.http_headers.get_statuscode()), merge_headers(record.http_headers.headers)
    if not with_body or record.rec_type == "revisit":
        return _Payload(status, headers, b"", 0)
    came = _read_some(record.raw_stream)
    size, unchunked = len(came) + max(0, getattr(record.raw_stream, "limit", 0)), b""
    if "chunked" in get_header(headers, "Transfer-Encoding").lower():
        from warcio.bufferedreaders import ChunkedDataReader

        came = unchunked = ChunkedDataReader(BytesIO(came)).read()
        size = len(came)
    return _Payload(status, headers, decompress(came, headers), size, unchunked)


def _read_some(stream: Any) -> bytes:
    """Return the content of a stream, up to the limit for one body."""
    read = bytearray()
    while part := stream.read(min(_CHUNK, LARGEST - len(read))):
        read += part
    return bytes(read)


class _Stream:
    """The decompressed content of a file, which reports if that ends too early."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._compressed = file.read(2) == b"\x1f\x8b"
        self._path = path
        self._file = gzip.GzipFile(path) if self._compressed else path.open("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def tell(self) -> int:
        """Return how many bytes were read."""
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        """Read some bytes."""
        try:
            return self._file.read(size)
        except EOFError as error:  # warcio treats that as the end of the archive
            raise OSError("it was cut off") from error

    def damage(self, offset: int, count: int, error: Exception) -> RecordingError:
        """Return the error that describes where and how the file is damaged."""
        where = f"byte {offset:,}{' of its decompressed content' if self._compressed else ''}"
        return RecordingError(f"{self._path} is damaged at {where}, after {count:,} records: {str(error)[:_SAID]}")


def _check(path: Path) -> None:
    require_extra("reading web archives", "lab", "warcio")
    try:
        with _Stream(path) as stream:
            start = stream.read(max(map(len, _STARTS)))
    except (OSError, EOFError, zlib.error) as error:
        raise RecordingError(f"{path} cannot be read as a web archive: {error}") from error
    if not start.startswith(_STARTS):
        raise RecordingError(f"{path} is neither a WARC nor an ARC file: it begins with {start!r}")


def _named(paths: Sequence[Path]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(str(path) for path in paths[:3]) + more
