"""The file of a frontier: created, opened and verified, with helpful messages for SQLite's errors."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from scrapy_focus.core.errors import ResumeError, StorageError
from scrapy_focus.core.events import FORMAT, OLDEST_FORMAT

if TYPE_CHECKING:
    from pathlib import Path

_APPLICATION = 0x464F4355
_MAGIC = b"SQLite format 3\0"
_MOST_WAL = 32 << 20  # bytes that the write-ahead log keeps between two checkpoints
WITH_SUMS = 13  # the first format with checksums of rows
_CACHE = 8 << 10  # KiB of pages in memory, per connection

_SCHEMA = """
CREATE TABLE links (
    row INTEGER PRIMARY KEY, key INTEGER NOT NULL, url TEXT NOT NULL, host INTEGER NOT NULL, depth INTEGER NOT NULL,
    origin INTEGER NOT NULL, payload BLOB NOT NULL, arm INTEGER NOT NULL, rank REAL NOT NULL, method TEXT NOT NULL,
    memo BLOB, after REAL NOT NULL, sum INTEGER
);
CREATE TABLE hosts (host INTEGER PRIMARY KEY, name TEXT NOT NULL, sum INTEGER);
CREATE TABLE seen (number INTEGER PRIMARY KEY, state INTEGER NOT NULL, keys BLOB NOT NULL, sum INTEGER);
CREATE TABLE flying (id INTEGER PRIMARY KEY, row INTEGER NOT NULL, key INTEGER NOT NULL);
CREATE TABLE notes (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE counters (name TEXT PRIMARY KEY, value NUMERIC NOT NULL) WITHOUT ROWID;
"""


#: The tables whose rows have checksums (:mod:`~scrapy_focus.frontiers.sqlite.sums`).
SUMMED = ("links", "hosts", "seen")


def format_of(database: sqlite3.Connection) -> int:
    """Return the format of an open file."""
    (found,) = database.execute("PRAGMA user_version").fetchone()
    return int(found)


def sum_column(database: sqlite3.Connection) -> str:
    """Return the SQL expression for the checksum of a row; ``NULL`` in formats without one."""
    return "sum" if format_of(database) >= WITH_SUMS else "NULL"


def upgrade(database: sqlite3.Connection) -> None:
    """Upgrade a file of an earlier format to the current one, as part of a transaction; nothing if it is current."""
    if format_of(database) < WITH_SUMS:
        for table in SUMMED:
            database.execute(f"ALTER TABLE {table} ADD COLUMN sum INTEGER")
    database.execute(f"PRAGMA user_version = {FORMAT}")


def open_database(path: Path) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """Return two connections to a file, the first to read and the second to write; it is created if missing.

    Raises
    ------
    ResumeError
        If it has another format.
    StorageError
        If it cannot be opened, or is invalid. It is left unchanged.
    """
    try:
        if not path.exists() or not path.stat().st_size:
            _make(path)
        verify(path)
        reader = _connect(path)
        try:
            writer = _connect(path)
            writer.execute("PRAGMA synchronous = FULL")
            writer.execute("PRAGMA temp_store = MEMORY")
            writer.execute(f"PRAGMA journal_size_limit = {_MOST_WAL}")
            writer.execute("BEGIN IMMEDIATE")
            writer.execute("ROLLBACK")
        except BaseException:
            reader.close()
            raise
    except (sqlite3.Error, OSError) as error:
        raise storage_error(path, error) from error
    return reader, writer


def storage_error(path: Path, error: Exception) -> StorageError:
    """Return the exception for a failed file: which, how, and what to do."""
    name = getattr(error, "sqlite_errorname", "")
    if (
        name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_MISMATCH"))
        or name == "SQLITE_ERROR"
        or "Could not decode" in str(error)
        or not isinstance(error, (sqlite3.Error, OSError))
    ):
        advice = f"it is damaged: run focus check on {path.parent}"
    elif name.startswith("SQLITE_FULL"):
        advice = "free space on the disk and start again: everything up to the last checkpoint is saved"
    elif name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        advice = "another program has it open: stop that first"
    elif name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")) or isinstance(error, PermissionError):
        advice = f"allow reading and writing in {path.parent}, or use another folder"
    else:
        advice = (
            "make sure that the disk works and has space, and start again: "
            "everything up to the last checkpoint is saved"
        )
    return StorageError(f"{path} cannot be used ({error}); {advice}")


def read_notes(path: Path) -> dict[str, bytes]:
    """Return the notes of the last checkpoint in a file, without loading any link; nothing without a file.

    Raises
    ------
    ResumeError
        If it has another format.
    StorageError
        If it cannot be read.
    """
    try:
        if not path.exists() or not path.stat().st_size:
            return {}
        verify(path)
        with closing(_connect(path)) as database:
            return dict(database.execute("SELECT name, value FROM notes"))
    except (sqlite3.Error, OSError) as error:
        raise storage_error(path, error) from error


def _connect(path: Path) -> sqlite3.Connection:
    # used by one thread at a time, but not by the one that opens it
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, check_same_thread=False
    )
    connection.execute(f"PRAGMA cache_size = -{_CACHE}")
    return connection


def _make(path: Path) -> None:
    """Create an empty file under another name first, so that a kill leaves nothing half finished."""
    new = path.with_name(f"{path.name}.new")
    for each in (new, *(new.with_name(new.name + end) for end in ("-wal", "-shm", "-journal"))):
        each.unlink(missing_ok=True)
    connection = sqlite3.connect(new, isolation_level=None)
    try:
        connection.executescript(
            f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {FORMAT};"
            f"{_SCHEMA} PRAGMA journal_mode = WAL;"
        )
    finally:
        connection.close()
    os.replace(new, path)  # noqa: PTH105 (Path.replace returns what nobody needs)


def verify(path: Path) -> None:
    """Raise an error if the first hundred bytes of a file show another program, another format, or a cut."""
    with path.open("rb") as file:
        header = file.read(100)
    if len(header) < 100 or not header.startswith(_MAGIC) or _number(header, 68, 4) != _APPLICATION:
        raise StorageError(
            f"{path} is not the frontier of a crawl, or damaged: run focus check on {path.parent}, or use "
            "another JOBDIR"
        )
    found = _number(header, 60, 4)
    if not OLDEST_FORMAT <= found <= FORMAT:
        by = "an earlier state of scrapy_focus" if found < FORMAT else "a later version of scrapy_focus"
        raise ResumeError(
            f"{path} has format {found}, of {by}; this one reads {OLDEST_FORMAT} to {FORMAT}: finish the crawl with "
            "what began it, or use another JOBDIR"
        )
    wal = path.with_name(path.name + "-wal")
    if wal.exists() and wal.stat().st_size:
        return  # the file may lag behind its log
    _check_size(path, header)


def _check_size(path: Path, header: bytes) -> None:
    """Raise an error if a file has fewer pages than its header says, if SQLite says that this number is valid."""
    size = _number(header, 16, 2)
    if size == 1:
        size = 1 << 16  # two bytes cannot hold that
    pages = _number(header, 28, 4)
    if header[24:28] == header[92:96] and path.stat().st_size < pages * size:
        raise StorageError(
            f"{path} is cut off: it has {path.stat().st_size:,} of {pages * size:,} bytes; put a copy of all of it "
            f"in its place, or run focus check on {path.parent}"
        )


def _number(header: bytes, at: int, size: int) -> int:
    return int.from_bytes(header[at : at + size], "big")
