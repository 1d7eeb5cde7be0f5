"""Repairs a stored crawl: each repair first copies what it changes, and is done completely or not at all.

Invalid values are not corrected one by one, as the right ones are unknown.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.errors import StorageError
from scrapy_focus.core.printable import brief, counted
from scrapy_focus.frontiers.sqlite.database import open_database, sum_column
from scrapy_focus.jobs.checksums import SUMS, summed
from scrapy_focus.jobs.doctor.check import (
    ANEW,
    Cure,
    changed_blocks,
    changed_links,
    examine,
    journal_names,
    lost_of,
    wrong_links,
)
from scrapy_focus.jobs.doctor.folder import locked, open_readonly
from scrapy_focus.jobs.job import FRONTIER
from scrapy_focus.jobs.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from scrapy_focus.jobs.doctor.check import Checkup

_SQLITE = (FRONTIER, f"{FRONTIER}-wal")
_FURTHEST = 1 << 40  # row numbers tried after damage


def repair_job(jobdir: Path, *, anew: bool = False, say: Callable[[str], object] = print) -> Checkup:
    """Verify a JOBDIR, and repair what is possible; ``say`` receives each problem and each repair as a line.

    With ``anew``, drop the policy even if it is what was stored: for example, if it cannot be read any more where the
    crawl is to resume.

    Raises
    ------
    ResumeError
        If it has no crawl that this version can read, or a process uses it. Nothing is changed then.
    StorageError
        If it cannot be read at all, or not be repaired. Anything not repaired by then is unchanged.
    """
    done = []
    with locked(jobdir) as folder:
        copies = _unused(folder)
        checkup = examine(folder, say)
        for cure, apply in _CURES.items():
            if any(finding.cure is cure for finding in checkup.findings) or (
                anew and cure is Cure.PLACE_ANEW and checkup.has_policy
            ):
                done.append(apply(folder, checkup, copies))
                say(f"repaired: {done[-1]}")
                checkup = examine(folder, str)
    checkup.done, checkup.copies = done, copies if done else None
    return checkup


def _unused(folder: Path) -> Path:
    """Return an unused name for a folder with copies."""
    now = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    copies, n = folder / f"damaged-{now}", 1
    while copies.exists():
        copies, n = folder / f"damaged-{now}-{n}", n + 1
    return copies


def _copy(folder: Path, names: Iterable[str], copies: Path) -> None:
    """Copy files before the first repair.

    Raises
    ------
    StorageError
        If that fails; then nothing must be changed.
    """
    try:
        copies.mkdir(exist_ok=True)
        for name in names:
            if (folder / name).exists() and not (copies / name).exists():
                shutil.copy2(folder / name, copies / name)
    except OSError as error:
        raise StorageError(f"{folder} cannot be repaired, as a copy of it cannot be written: {error}") from error


def _rebuild(folder: Path, _: Checkup, copies: Path) -> str:
    """Replace a malformed SQLite file by a new one, with all readable rows."""
    path, new = folder / FRONTIER, folder / f"{FRONTIER}.rebuilt"
    try:
        _remove_log(new)
        new.unlink(missing_ok=True)
        said = _read_all(path, new)
        _copy(folder, _SQLITE, copies)
        _remove_log(path)  # or SQLite would apply it to the new file
        new.replace(path)
    finally:
        _remove_log(new)
        new.unlink(missing_ok=True)
    return f"rebuilt {FRONTIER} from what can be read: {'; '.join(said)}"


def _remove_log(path: Path) -> None:
    """Remove the files that SQLite keeps next to a database."""
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def _drop_rows(folder: Path, _: Checkup, copies: Path) -> str:
    """Drop the links with a wrong checksum, as their targets are unknown."""
    _copy(folder, _SQLITE, copies)
    with closing(sqlite3.connect(folder / FRONTIER, isolation_level=None)) as database:
        database.execute("PRAGMA synchronous = FULL")
        database.execute("BEGIN IMMEDIATE")
        said = _drop_changed(database)
        database.execute("COMMIT")
    return "; ".join(said)


def _drop_changed(database: sqlite3.Connection) -> list[str]:
    """Drop changed links, and accept known keys as they are; return a description of the loss."""
    links, blocks = changed_links(database), changed_blocks(database)
    database.executemany("DELETE FROM links WHERE row = ?", [(row,) for row, _ in links])
    database.execute("DELETE FROM flying WHERE row NOT IN (SELECT row FROM links)")
    database.executemany("UPDATE seen SET sum = NULL WHERE number = ?", [(number,) for number in blocks])
    said = []
    if links:
        urls = ", ".join(brief(url) for _, url in links)
        said.append(f"dropped {counted(len(links), 'link')} with a wrong checksum: {urls}")
    if blocks:
        said.append(
            f"kept {counted(len(blocks), 'block')} of known keys with wrong checksums: some pages may be fetched again"
        )
    return said


def _place_anew(folder: Path, _: Checkup, copies: Path) -> str:
    """Drop the policy, and what the goal learned: the next run places all links with a new policy."""
    _copy(folder, _SQLITE, copies)
    with closing(sqlite3.connect(folder / FRONTIER, isolation_level=None)) as database:
        database.execute("PRAGMA synchronous = FULL")
        database.execute("BEGIN IMMEDIATE")
        (n,) = database.execute("SELECT count(*) FROM links").fetchone()
        database.execute("DELETE FROM notes WHERE name IN ('policy', 'goal')")
        notes = dict(database.execute("SELECT name, value FROM notes"))
        database.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (SUMS, summed(notes)[SUMS]))
        database.execute("COMMIT")
    learned = json.loads(notes["crawl"]).get("counts", {}).get("outcomes", 0)
    return (
        f"dropped the policy: what it learned from {learned:,} outcomes is lost, and the places of {n:,} "
        "links on their pages; all of them are queued, and the next run places them like start requests"
    )


def _cut_journal(folder: Path, checkup: Checkup, copies: Path) -> str:
    """Remove from the journals what a resume cannot use or does not need."""
    tail = checkup.tail
    if tail is None:
        raise StorageError(f"the journals in {folder} cannot be read, as their checkpoint cannot be")
    needless = tail.later + tail.older
    _copy(folder, [f"journal.{number}" for number in [tail.last, *needless]], copies)
    for number in reversed(needless):
        (folder / f"journal.{number}").unlink()
    if not tail.why:
        return f"removed {journal_names(tail.older)}, no longer needed"
    if tail.last:
        Journal(folder / f"journal.{tail.last}", keep=tail.end).close()
        kept = counted(tail.events.total(), "event")
        return f"cut journal.{tail.last} after {tail.end:,} bytes with {kept}{lost_of(tail)}"
    Journal(folder / f"journal.{tail.first}").close()
    return (
        f"created journal.{tail.first}, which was missing: what the crawl did since its last checkpoint is lost, and "
        f"its pages since then will be fetched again{lost_of(tail)}"
    )


_CURES: dict[Cure, Callable[[Path, Checkup, Path], str]] = {  # in this order: each may find more work for the next
    Cure.REBUILD: _rebuild,
    Cure.DROP_ROWS: _drop_rows,
    Cure.PLACE_ANEW: _place_anew,
    Cure.CUT_JOURNAL: _cut_journal,
}


def _read_all(source: Path, into: Path) -> list[str]:
    """Create a new file with the readable content of another, and describe it; the other is not changed.

    Raises
    ------
    StorageError
        If that is too little for a crawl.
    """
    reader, writer = open_database(into)
    reader.close()
    with closing(writer), closing(open_readonly(source)) as old:
        writer.execute("BEGIN IMMEDIATE")
        tables = [name for (name,) in writer.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        said = [_copy_table(old, writer, table) for table in tables]
        said += _drop_changed(writer)
        links = writer.execute("SELECT count(*) FROM links").fetchone()[0]
        notes = {name for (name,) in writer.execute("SELECT name FROM notes")}
        writer.execute("COMMIT")
    if not links:
        wrong = "no link can be read from it"
    elif missing := {"crawl", "journal"} - notes:
        wrong = f"the {' and '.join(sorted(missing))} of the last checkpoint cannot be read from it"
    else:
        wrong = wrong_links(into)
    if wrong:
        raise StorageError(f"{source} cannot be repaired: {wrong}; {ANEW}")
    return said


def _copy_table(old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> str:
    kinds = {name: kind for _, name, kind, *_ in new.execute(f"PRAGMA table_info({table})")}
    columns = [name for name in kinds if name != "sum" or _has_sums(old)]
    rows = _numbered_rows(old, table, columns) if kinds[columns[0]] == "INTEGER" else _named_rows(old, table, columns)
    marks = ", ".join("?" * len(columns))
    insertion = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608
    copied = lost = 0
    for row in rows:
        if row is None:
            lost += 1
        else:
            copied += new.execute(insertion, row).rowcount
    return f"{counted(copied, 'row')} of {table}" + (f", rows in {counted(lost, 'place')} are lost" if lost else "")


def _has_sums(database: sqlite3.Connection) -> bool:
    """Whether the rows of a file have checksums; true if no row is readable."""
    try:
        return sum_column(database) == "sum"
    except sqlite3.Error:
        return True


def _numbered_rows(old: sqlite3.Connection, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...] | None]:
    """Yield the readable rows in order, and ``None`` for each gap.

    SQLite stops at the first malformed page, but the rows after it still exist. So it is queried for rows further and
    further on until one is found.
    """
    key = columns[0]
    question = f"SELECT {', '.join(columns)} FROM {table} WHERE {key} > ? ORDER BY {key}"  # noqa: S608
    at, step = -1, 1
    while step < _FURTHEST:
        try:
            for row in old.execute(question, (at,)):
                if row[0] > at:  # or pages form a cycle
                    at, step = row[0], 1
                    yield row
            return
        except sqlite3.Error:
            if step == 1:
                yield None
            at, step = at + step, 2 * step


def _named_rows(old: sqlite3.Connection, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...] | None]:
    """Yield the readable rows of a table without numbers, from both ends, and ``None`` for a gap."""
    for order in ("ASC", "DESC"):
        try:
            names = ", ".join(columns)
            yield from old.execute(f"SELECT {names} FROM {table} ORDER BY {columns[0]} {order}")  # noqa: S608
            return
        except sqlite3.Error:
            if order == "DESC":
                yield None
