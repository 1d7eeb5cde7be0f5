"""Examines the folder of a crawl: whether one exists, and who uses it; opens its SQLite file without changing it.

The folder may come from somebody else. So links to other files are refused, as writing would follow them, and so are
programs in the SQLite file.
"""

from __future__ import annotations

import sqlite3
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from scrapy_focus.core.errors import ResumeError, StorageError
from scrapy_focus.frontiers.sqlite.database import storage_error
from scrapy_focus.jobs.job import FRONTIER, LOCK, lock, owner
from scrapy_focus.jobs.journal import journals_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_IN_FILE = {"table", "index"}  # the only objects in a file of ours
_OF_SCRAPY = ("requests.queue", "requests.seen", "spider.state")


def folder_of(jobdir: Path) -> Path:
    """Return the folder of a crawl in a JOBDIR.

    Raises
    ------
    ResumeError
        If there is none that this version can read.
    StorageError
        If the essential file is missing.
    """
    if not jobdir.is_dir():
        what = "is not a folder" if jobdir.exists() else "does not exist"
        raise ResumeError(f"{jobdir} {what}; name the JOBDIR of a crawl")
    folder = jobdir if (jobdir / FRONTIER).exists() else jobdir / "focus"
    if not folder.is_dir():
        if any((jobdir / name).exists() for name in _OF_SCRAPY):
            raise ResumeError(
                f"{jobdir} is a JOBDIR of Scrapy's own scheduler: it has no folder focus, and no crawl of scrapy_focus"
            )
        raise ResumeError(f"{jobdir} is not a JOBDIR of scrapy_focus: it has no folder focus")
    if (folder / "crawl.json").exists():
        raise ResumeError(
            f"{folder} was written by scrapy_focus 0.1.0 before it had a frontier on disk, which this version does not "
            "read; use another JOBDIR"
        )
    _check_frontier(folder)
    _check_kinds(folder)
    return folder


def _check_frontier(folder: Path) -> None:
    """Raise an error if the frontier is missing or empty."""
    path = folder / FRONTIER
    if not path.exists():
        what = "missing"
    elif not path.stat().st_size:
        what = "empty"
    else:
        return
    # A crawl writes journals from its first checkpoint on, so where journals exist, there was a frontier.
    if journals_in(folder) or what == "empty":
        raise StorageError(
            f"{path} is {what}, and cannot be rebuilt: restore it from a copy, or start again with another JOBDIR"
        )
    raise ResumeError(f"nothing is stored in {folder} yet: the crawl ended before its first checkpoint")


def _check_kinds(folder: Path) -> None:
    """Raise an error if there is anything but files and folders: writing would follow a link."""
    for each in folder.iterdir():
        with suppress(FileNotFoundError):  # a running crawl removes journals
            mode = each.lstat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise ResumeError(f"{each} is not a regular file: replace it by the original file, or remove it")


@contextmanager
def locked(jobdir: Path) -> Iterator[Path]:
    """Lock the folder of a crawl for this process during a block.

    Raises
    ------
    ResumeError
        If it has no crawl that this version can read, or a process uses it.
    StorageError
        If it cannot be read or written.
    """
    folder = folder_of(jobdir)
    taken = lock(folder)
    try:
        yield folder
    except (sqlite3.Error, OSError) as error:
        raise storage_error(folder / FRONTIER, error) from error
    finally:
        taken.release()


def user_of(folder: Path) -> str:
    """Return the id of the process that uses a folder now, ``""`` if none does."""
    if not (folder / LOCK).exists():
        return ""
    try:
        with FileLock(folder / LOCK, timeout=0):
            return ""
    except Timeout:
        return owner(folder)
    except OSError:  # another user's, and not writable
        return ""


def open_readonly(path: Path) -> sqlite3.Connection:
    """Open the file of a frontier without changing anything.

    If there is no log next to it, nobody has it open. SQLite would create two files to find that out, so we tell it.
    """
    how = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "mode=ro&immutable=1"
    database = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, isolation_level=None)
    with suppress(sqlite3.Error):  # malformed, as later queries will show
        database.execute("PRAGMA trusted_schema = OFF")
        parts = set(database.execute("SELECT type FROM sqlite_master UNION SELECT 'virtual' FROM sqlite_master WHERE "
                                     "type = 'table' AND rootpage = 0"))  # fmt: skip
        if others := {kind for (kind,) in parts} - _IN_FILE:
            database.close()
            raise StorageError(f"{path} is not the frontier of a crawl: it contains a {min(others)}")
    return database
