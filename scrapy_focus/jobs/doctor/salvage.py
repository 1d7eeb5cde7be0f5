"""What can still be read of a malformed SQLite file of a crawl, row by row, into a new one.

SQLite stops at the first page that makes no sense. The rows before and behind it are there all the same: they are asked
for from the next number on that gives an answer. The first page, without which SQLite reads nothing at all, says the same
in every file of this format, so that it is taken from a new one.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from scrapy_focus.frontiers.sqlite.database import open_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ROWS = {  # table -> its columns, the number of the row first
    "hosts": "host, name",
    "links": "row, key, url, host, depth, origin, payload, arm, rank, method, memo",
    "flying": "id, row, chance",
    "seen": "number, state, keys",
}
_NAMED = {"notes": ("made", "journal", "crawl", "policy", "sums"), "counters": ("id", "row", "arms", "width")}
_FURTHEST = 1 << 40  # numbers that are tried behind damage
_UNREADABLE = "\ufffd"
_PAGE_SIZE, _PAGES = slice(16, 18), slice(28, 32)  # in the first page
_BEFORE = -(1 << 62)


def tables_can_be_read(database: sqlite3.Connection) -> bool:
    """Return whether the first page of a file makes sense: it says which tables there are, and where."""
    columns = {**_ROWS, **dict.fromkeys(_NAMED, "name, value")}
    try:
        for table, names in columns.items():
            database.execute(f"SELECT {names} FROM {table} LIMIT 0")  # noqa: S608
    except sqlite3.Error:
        return False
    return True


def salvage(source: Path, into: Path) -> list[str]:
    """Make a new file of what can be read of another, and return sentences that say how much; the other is as it was."""
    for path in (into, _beside(into, ".source")):
        for end in ("", "-wal", "-shm"):
            _beside(path, end).unlink(missing_ok=True)
    reader, writer = open_database(into)
    reader.close()
    try:
        with closing(_open(source, into)) as database:
            writer.execute("BEGIN IMMEDIATE")
            said = [_copy_rows(database, writer, table) for table in _ROWS]
            said += [_copy_named(database, writer, table) for table in _NAMED]
            writer.execute("COMMIT")
    finally:
        writer.close()
        for end in ("", "-wal", "-shm"):
            _beside(into, f".source{end}").unlink(missing_ok=True)
    return [sentence for sentence in said if sentence]


def _open(source: Path, into: Path) -> sqlite3.Connection:
    """Open a file to read from: itself, or a copy with another first page."""
    wal = _beside(source, "-wal")
    copy = _beside(into, ".source")
    shutil.copyfile(source, copy)
    if wal.exists():
        shutil.copyfile(wal, _beside(copy, "-wal"))
    database = sqlite3.connect(copy, isolation_level=None)
    if not tables_can_be_read(database):
        database.close()
        _beside(copy, "-shm").unlink(missing_ok=True)
        first = bytearray(into.read_bytes()[: 1 << 16])
        size = int.from_bytes(first[_PAGE_SIZE], "big")
        with copy.open("r+b") as file:
            first[_PAGES] = (source.stat().st_size // size).to_bytes(4, "big")
            file.write(first[:size])
        database = sqlite3.connect(copy, isolation_level=None)
    database.text_factory = lambda text: text.decode(errors="replace")
    return database


def _copy_rows(source: sqlite3.Connection, into: sqlite3.Connection, table: str) -> str:
    columns = _ROWS[table].split(", ")
    marks = ", ".join("?" * len(columns))
    copied = unreadable = lost = 0
    last = _BEFORE
    for row in _rows(source, table):
        if row is None:
            lost += 1
            continue
        if lost and last > _BEFORE:
            unreadable += row[0] - last - 1
            lost = 0
        last = row[0]
        if any(isinstance(value, str) and _UNREADABLE in value for value in row):
            unreadable += 1
            continue
        done = into.execute(f"INSERT OR IGNORE INTO {table} ({_ROWS[table]}) VALUES ({marks})", row)  # noqa: S608
        copied += done.rowcount
        unreadable += 1 - done.rowcount
    what = {"links": "links", "hosts": "hosts", "flying": "picks in flight", "seen": "blocks of known URLs"}[table]
    end = ", and what came after them is lost" if lost else ""
    gaps = f"; {unreadable:,} more at most were there" if unreadable else ""
    return f"read {copied:,} {what}{gaps}{end}"


def _rows(source: sqlite3.Connection, table: str) -> Iterator[tuple[Any, ...] | None]:
    """Yield the rows that can be read, in order, and ``None`` for each place where some cannot."""
    key = _ROWS[table].partition(",")[0]
    question = f"SELECT {_ROWS[table]} FROM {table} WHERE {key} > ? ORDER BY {key}"  # noqa: S608
    at: int | None = _BEFORE
    while at is not None:
        try:
            for row in source.execute(question, (at,)):
                if row[0] > at:  # or pages lead in a circle
                    at = row[0]
                    yield row
            return
        except sqlite3.Error:
            yield None
            at = _behind(source, f"{question} LIMIT 1", at)


def _behind(source: sqlite3.Connection, question: str, at: int) -> int | None:
    """Return the smallest number found from which on rows can be read again, ``None`` where there is none."""
    if at == _BEFORE and _answers(source, question, -1):
        return -1
    at = max(at, -1)
    step = 1
    while not _answers(source, question, at + step):
        step *= 2
        if step > _FURTHEST:
            return None
    bad, good = at + step // 2, at + step
    while good - bad > 1:
        middle = (bad + good) // 2
        bad, good = (bad, middle) if _answers(source, question, middle) else (middle, good)
    return good


def _answers(source: sqlite3.Connection, question: str, at: int) -> bool:
    try:
        source.execute(question, (at,)).fetchone()
    except sqlite3.Error:
        return False
    return True


def _copy_named(source: sqlite3.Connection, into: sqlite3.Connection, table: str) -> str:
    lost = []
    for name in _NAMED[table]:
        try:
            row = source.execute(f"SELECT name, value FROM {table} WHERE name = ?", (name,)).fetchone()  # noqa: S608
        except sqlite3.Error:
            row = None
            lost.append(name)
        if row is not None:
            into.execute(f"INSERT OR IGNORE INTO {table} VALUES (?, ?)", row)  # noqa: S608
    return f"could not read {', '.join(lost)} of the {table}" if lost else ""


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)
