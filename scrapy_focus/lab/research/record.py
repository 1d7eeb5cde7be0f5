"""A recording of a site, in one call: of the live site, or of a copy of it.

A live site is recorded by the command ``focus record`` in a process of its own. A notebook has an event loop that runs
already, and Twisted's reactor starts once in a process, so neither could record a second site here.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import deque
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.errors import ConfigError, RecordingError
from scrapy_focus.core.printable import brief, printable_logger
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.importers import base
from scrapy_focus.lab.recordings.importers.base import other_source
from scrapy_focus.lab.recordings.importers.folder import FolderImporter, SiteImporter
from scrapy_focus.lab.recordings.importers.warc import WarcImporter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TypeAlias

    from scrapy_focus.lab.recordings.importers.base import Importer
    from scrapy_focus.lab.sites.server import Site

    #: What a site is recorded from.
    Source: TypeAlias = "str | Path | Sequence[str | Path] | Site | Importer"

logger = printable_logger(__name__)

_URL = re.compile(r"https?://", re.I)
_LAST = 2  # lines of the command that an error shows
_PATIENCE = 10.0  # seconds that the command has to end after Ctrl-C


def record(
    source: Source,
    path: str | Path,
    *,
    budget: int | None = None,
    root: str | None = None,
    bodies: bool = False,
    files: bool = True,
    render: bool = False,
    settings: Mapping[str, object] | None = None,
) -> RecordedSite:
    """Record a site into one file, and return it opened. A recording that exists is resumed, up to the budget.

    It works in a notebook, too. A live site is recorded in another process, at one request a second, and robots.txt is
    obeyed. Ctrl-C stops it, and the same call resumes.

    Parameters
    ----------
    source
        A URL, a folder with a copy of a site, one or several WARC files, a synthetic site, or an importer
        (:class:`~scrapy_focus.lab.recordings.importers.base.Importer`).
    path
        SQLite file to write.
    budget
        How many URLs the recording holds at most; ``None``: all that links lead to, which takes a site that ends.
    root
        URL of the first page, where ``source`` is not one.
    bodies
        Keep the text of pages, for goals that read it.
    files
        Download files other than pages, too, to know which are equal; of a live site only.
    render
        Also record pages as a browser shows them; of a live site only.
    settings
        Scrapy's settings for a live site, as ``{"DOWNLOAD_DELAY": 0.2, "USER_AGENT": "me (+https://me.example)"}``.

    Raises
    ------
    RecordingError
        If the source cannot be read, the site gives no response, or the file cannot be written.
    ConfigError
        If there is no such source, or an argument cannot be used.
    """
    path = Path(path)
    if budget is not None and budget < 1:
        raise ConfigError(f"record(budget={budget}): give at least 1 URL, or None for all")
    left = _left(path, budget)
    if isinstance(source, str) and _URL.match(source):
        if root is not None:
            raise ConfigError(f"record(root={root!r}): a live site starts at its source, {source}")
        flags = {"--bodies": bodies, "--no-files": not files, "--render": render}
        if left != 0:
            _record_live(source, path, left, [flag for flag, is_on in flags.items() if is_on], settings or {})
    elif render or not files or settings:
        raise ConfigError("record(): files, render and settings are for a live site, and the source is a copy of one")
    elif budget is None and getattr(source, "endless", False):
        raise ConfigError(
            f"record({brief(source)}): this site is endless; give a budget, or make it with endless=False"
        )
    else:
        _record_copy(_importer_of(source), path, left, root=root, bodies=bodies)
    return RecordedSite(path)


def _left(path: Path, budget: int | None) -> int | None:
    """Return how many more URLs may be recorded; ``None``: any number."""
    if budget is None or not path.exists():
        return budget
    with closing(RecordedSite(path)) as site:
        return max(0, budget - site.completeness().recorded)


def _importer_of(source: Any) -> Importer:
    """Return what reads a copy of a site.

    Raises
    ------
    ConfigError
        If there is no such copy.
    """
    if hasattr(source, "answers"):
        importer: Importer = source
        return importer
    if hasattr(source, "fetch"):
        return SiteImporter(source)
    if isinstance(source, str | Path):
        return _importer_of_file(Path(source))
    if isinstance(source, Iterable) and (paths := list(source)):
        return WarcImporter(*map(str, paths))
    raise ConfigError(f"record({brief(source)}): give a URL, a folder, WARC files, a synthetic site, or an importer")


def _importer_of_file(path: Path) -> Importer:
    if path.is_dir():
        return FolderImporter(path)
    if path.exists():
        return WarcImporter(path)
    is_host = "." in path.parts[0] and not path.suffix.startswith((".warc", ".gz"))
    hint = f"; write a URL with its scheme, https://{path}" if is_host else ""
    raise ConfigError(f"record({str(path)!r}): there is no such folder or file{hint}")


def _record_copy(importer: Importer, path: Path, limit: int | None, *, root: str | None, bodies: bool) -> None:
    """Record what an importer knows.

    Raises
    ------
    RecordingError
        If the file holds a recording of another source.
    """
    if path.exists() and (held := other_source(path, importer.source)):
        raise RecordingError(f"{path} holds {held}, not {importer.source}; name another file")
    if limit != 0:
        base.record(importer, path, root=root, bodies=bodies, limit=limit)


def _record_live(url: str, path: Path, limit: int | None, flags: list[str], settings: Mapping[str, object]) -> None:
    """Record a live site by the command, in a process of its own.

    Raises
    ------
    RecordingError
        If it fails; with the last lines that it printed.
    """
    command = [
        sys.executable,
        "-m",
        "scrapy_focus",
        "record",
        str(path),
        "-a",
        f"root={url.replace(',', '%2C')}",
        *flags,
    ]
    command += [] if limit is None else ["--limit", str(limit)]
    command += [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
    process = subprocess.Popen(  # noqa: S603 (no shell)
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
        errors="replace",
    )  # fmt: skip
    last: deque[str] = deque(maxlen=_LAST)
    try:
        for line in _lines_of(process):
            logger.info("%s", line)
            last.append(line)
        status = process.wait()
    except BaseException:
        process.terminate()  # it stores what it has; the same call resumes
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise
    if status:
        raise RecordingError("; ".join(last) or f"focus record ended with status {status}")


def _lines_of(process: subprocess.Popen[str]) -> Iterator[str]:
    if process.stdout is not None:
        with process.stdout:
            yield from (line.rstrip() for line in process.stdout if line.strip())
