"""Makes feeds survive a kill: items are on disk before their page counts as done, and a cut line is removed on resume.

Scrapy's feed exporter writes through a buffer of 8 KB. A kill loses the buffer, and may cut the last line in two, as a
full disk does. The next run would append its first line to that fragment, and a reader would lose both. So the
scheduler calls :func:`flush_feeds` before it notes that a page is done, and :func:`mend_feeds` when it opens. The items
of a cut line are scraped again, as their page was not done. Files are mended when they are opened, since only then
batches and times in their names are known: that is why Scrapy's storage of local files is replaced.

That works for local feeds that are appended to, in lines (``.jsonl``, ``.csv``). Other feeds lose items when a crawl is
killed: JSON and XML need a closing part, compressed files cannot be continued, uploads happen when the crawl ends. A
warning says so.
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
_LONGEST = 1 << 20  # bytes of a row of CSV; a longer row means that the file was broken by another program


def flush_feeds(crawler: Crawler) -> bool:
    """Write the buffers of all feeds of a crawl to disk; ``False`` if that failed, for example on a full disk.

    The data survives the end of the process, not that of the machine: nothing is synced. Costs about two microseconds
    with empty buffers, and one write for each other feed. Never raises. Compressed feeds are skipped: their compressor
    keeps its data until it ends.
    """
    done = True
    for slot in getattr(_exporter(crawler), "slots", ()):
        file = getattr(slot, "file", None)  # None before the first item
        try:
            if file is not None and not getattr(file, "closed", False):
                file.flush()
        except Exception as error:
            if not isinstance(getattr(slot, "storage", None), StdoutFeedStorage):  # its reader may stop early
                logger.error("the feed %s cannot be written: %s", getattr(slot, "uri", ""), error)
                done = False
    return done


def mend_feeds(crawler: Crawler) -> None:
    """Have each local feed that is appended to mended when it is opened, if there is a ``JOBDIR``.

    Call it before the signal ``spider_opened``. Idempotent; storages other than Scrapy's own are not changed.
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
    """A local feed that removes a line cut by a kill before it appends.

    It has the name of the original, because Scrapy uses that in names of stats.
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
            logger.warning("the end of the feed %s could not be read: %s", path, error)
        return super().open(spider)


def mend(path: Path, options: dict[str, Any]) -> None:
    """Make a file end with a complete line: remove a cut line, or add a missing line end.

    Reads only the last line; CSV, whose fields may contain line ends, takes one pass over the file.

    Parameters
    ----------
    path
        A file that exists.
    options
        Options of the feed. Files that are not in lines, compressed, or in a CSV dialect other than Scrapy's default
        are not changed.
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
    # Our rows end in \r\n. An incomplete row after rows with other ends was written by another program: not cut.
    if not inside and _read(file, start - 2, start) != b"\r\n":
        _end(file, b"\r\n")
    elif size - start > _LONGEST:
        logger.warning("%s has a quote that is never closed: new rows are appended without a repair", path)
    else:
        _cut(file, start, size, path)


def _end(file: IO[bytes], end: bytes) -> None:
    file.seek(0, 2)
    file.write(end)


def _cut(file: IO[bytes], start: int, size: int, path: Path) -> None:
    file.truncate(start)
    logger.info("%s ended in a cut line of %d bytes: it was removed, and its page is fetched again", path, size - start)


def _exporter(crawler: Crawler) -> FeedExporter | None:
    try:
        return crawler.get_extension(FeedExporter)
    except RuntimeError:  # called before there are extensions
        return None


def _loses(uri: str, options: dict[str, Any], storage: Any) -> str:
    """Return why a feed cannot survive a kill; ``""`` if it can."""
    if storage is StdoutFeedStorage:
        return ""
    if storage not in (feedexport.FileFeedStorage, FileFeedStorage):
        return "it is stored only when it is complete"
    if options.get("postprocessing"):
        return "postprocessed output is then incomplete"
    if options.get("format") not in (*_LINES, "csv"):
        return f"a file of {options.get('format')} is then incomplete; use jsonlines or csv"
    if options.get("overwrite") and "%(time)s" not in uri and "%(batch_time)s" not in uri:
        return "the next run overwrites it (overwrite)"
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
    """Return where the incomplete last line of a file starts."""
    end = size
    while end > 0:
        start = max(0, end - _BLOCK)
        if (found := _read(file, start, end).rfind(b"\n")) >= 0:
            return start + found + 1
        end = start
    return 0


def _last_row(file: IO[bytes]) -> tuple[int, bool]:
    """Return where the incomplete last row of a CSV file starts, and whether the file ends inside quotes."""
    file.seek(0)
    start, position, inside = 0, 0, False
    for line in file:
        position += len(line)
        inside ^= bool(line.count(b'"') % 2)  # a quote within quotes is doubled
        if not inside and line.endswith(b"\n"):
            start = position
    return start, inside
