"""Feeds that survive a kill: what is written is on disk before its page counts as done, and no line is glued to a cut
one.

Scrapy's feed exporter writes through a buffer of 8 KB. A kill loses what is in it, and may cut the last line in two, as
a full disk does; the next run would add its first line to that, and both would be lost to a reader. So the scheduler
calls :func:`flush_feeds` before it notes that a page is done, and :func:`mend_feeds` when it opens. The items of a cut
line come again, as its page was not done. Files are mended when they are opened, since batches and times in their names
are known only then: that is why Scrapy's storage of local files is replaced.

That works for local feeds that are added to, in lines (``.jsonl``, ``.csv``). Other feeds lose items when a crawl is
killed, whatever we do: JSON and XML have an end, compressed files cannot be continued, uploads come when the crawl
ends. A warning says so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy.extensions import feedexport
from scrapy.extensions.feedexport import FeedExporter, StdoutFeedStorage
from scrapy.utils.job import job_dir

from scrapy_focus.core.printable import printable_logger

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler

logger = printable_logger(__name__)

_LINES = ("jsonlines", "jsonl", "jl")
_DIALECT = {"dialect", "doublequote", "escapechar", "lineterminator", "quotechar", "quoting"}
_BLOCK = 1 << 20  # bytes read at once
_LONGEST = 1 << 20  # bytes of a row of CSV; what is longer is taken for a file that somebody else broke


def flush_feeds(crawler: Crawler) -> bool:
    """Write to disk what the feeds of a crawl hold in their buffers; ``False`` if that failed, for a full disk, say.

    Survives the end of the process, not that of the machine: nothing is synced. Costs about two microseconds where
    nothing is buffered, and one write for each feed where something is. Never raises. Compressed feeds are left
    alone: what their compressor holds cannot be had before its end.
    """
    done = True
    for slot in getattr(_exporter(crawler), "slots", ()):
        file = getattr(slot, "file", None)  # None before the first item
        try:
            if file is not None and not getattr(file, "closed", False):
                file.flush()
        except Exception as error:
            if not isinstance(getattr(slot, "storage", None), StdoutFeedStorage):  # who read along may go
                logger.error("the feed %s cannot be written: %s", getattr(slot, "uri", ""), error)
                done = False
    return done


def mend_feeds(crawler: Crawler) -> None:
    """Let each local feed that is added to be mended when it is opened, if there is a ``JOBDIR``.

    To be called before the signal ``spider_opened``. Idempotent, and without effect on storages that are not Scrapy's
    own.
    """
    exporter = _exporter(crawler)
    if exporter is None or not job_dir(crawler.settings) or FileFeedStorage in exporter.storages.values():
        return
    for uri, options in exporter.feeds.items():
        storage = exporter.storages.get(urlsplit(uri).scheme, exporter.storages["file"])
        if reason := _loses(uri, options, storage):
            logger.warning("the feed %s loses items when the crawl is stopped or killed and resumes: %s", uri, reason)
    exporter.storages = {
        scheme: FileFeedStorage if storage is feedexport.FileFeedStorage else storage
        for scheme, storage in exporter.storages.items()
    }


class FileFeedStorage(feedexport.FileFeedStorage):
    """A local feed whose last line, if it was cut by a kill, is taken off before the file is added to.

    It has the name of the original, because Scrapy makes names of stats of it.
    """

    def __init__(self, uri: str, *, feed_options: dict[str, Any] | None = None) -> None:
        super().__init__(uri, feed_options=feed_options)
        self.options = feed_options or {}

    def open(self, spider: Spider) -> IO[bytes]:
        path = Path(self.path)
        try:
            if self.write_mode == "ab" and path.is_file():
                mend(path, self.options)
        except Exception as error:
            logger.warning("the end of the feed %s could not be looked at: %s", path, error)
        return super().open(spider)


def mend(path: Path, options: dict[str, Any]) -> None:
    """Let a file end with the end of a line: what a kill cut is taken off, what only lacks its end gets that.

    Costs a look at the last line; for CSV, whose fields may have line ends in them, one pass over the file.

    Parameters
    ----------
    path
        A file that exists.
    options
        Of the feed. Files that are not in lines, compressed, or in a dialect of CSV that is not Scrapy's default, are
        left as they are.
    """
    kind = options.get("format")
    if options.get("postprocessing") or "\n".encode(options.get("encoding") or "utf-8") != b"\n":
        return
    with path.open("r+b") as file:
        size = file.seek(0, 2)
        if kind in _LINES:
            _mend_lines(file, size, path)
        elif kind == "csv" and not _DIALECT & (options.get("item_export_kwargs") or {}).keys():
            _mend_rows(file, size, path)


def _mend_lines(file: IO[bytes], size: int, path: Path) -> None:
    start = _last_line(file, size)
    if start == size:
        return
    if _is_json(_read(file, start, size)):
        _end(file, b"\n")
    else:
        _cut(file, start, size, path)


def _mend_rows(file: IO[bytes], size: int, path: Path) -> None:
    start, inside = _last_row(file)
    if start == size:
        return
    # Our rows end in \r\n. One without an end after others that do not is not ours, and not cut.
    if not inside and _read(file, start - 2, start) != b"\r\n":
        _end(file, b"\r\n")
    elif size - start > _LONGEST:
        logger.warning("%s has a quote that is never closed: it is added to as it is", path)
    else:
        _cut(file, start, size, path)


def _end(file: IO[bytes], end: bytes) -> None:
    file.seek(0, 2)
    file.write(end)


def _cut(file: IO[bytes], start: int, size: int, path: Path) -> None:
    file.truncate(start)
    logger.info("%s ended in a line that was cut, %d bytes: taken off, its page is fetched again", path, size - start)


def _exporter(crawler: Crawler) -> FeedExporter | None:
    try:
        return crawler.get_extension(FeedExporter)
    except RuntimeError:  # asked before there are extensions
        return None


def _loses(uri: str, options: dict[str, Any], storage: Any) -> str:
    """Say why a feed cannot survive a kill; ``""`` if it can."""
    if storage is StdoutFeedStorage:
        return ""
    if storage not in (feedexport.FileFeedStorage, FileFeedStorage):
        return "it is stored when it is complete"
    if options.get("postprocessing"):
        return "what goes through postprocessing has no end then"
    if options.get("format") not in (*_LINES, "csv"):
        return f"a file of {options.get('format')} has no end then; jsonlines and csv need none"
    if options.get("overwrite") and "%(time)s" not in uri and "%(batch_time)s" not in uri:
        return "the next run writes it anew (overwrite)"
    return ""


def _read(file: IO[bytes], start: int, end: int) -> bytes:
    file.seek(max(0, start))
    return file.read(end - max(0, start))


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _last_line(file: IO[bytes], size: int) -> int:
    """Return where the part of a file begins that has no line end."""
    end = size
    while end > 0:
        start = max(0, end - _BLOCK)
        if (found := _read(file, start, end).rfind(b"\n")) >= 0:
            return start + found + 1
        end = start
    return 0


def _last_row(file: IO[bytes]) -> tuple[int, bool]:
    """Return where the last row of a CSV file begins that has no end, and whether the file ends inside quotes."""
    file.seek(0)
    start, position, inside = 0, 0, False
    for line in file:
        position += len(line)
        inside ^= bool(line.count(b'"') % 2)  # a quote within quotes is written twice
        if not inside and line.endswith(b"\n"):
            start = position
    return start, inside
