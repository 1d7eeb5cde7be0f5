"""Whether the files of a crawl are well, and making them well: copies first, and each step as a whole or not at all."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING

from scrapy_focus.core.errors import ResumeError, StorageError
from scrapy_focus.frontiers.sqlite.database import FORMAT, storage_error, verify
from scrapy_focus.jobs.doctor.inspection import folder_of, open_readonly
from scrapy_focus.jobs.doctor.notes import check_notes, sum_anew
from scrapy_focus.jobs.doctor.salvage import salvage, tables_can_be_read
from scrapy_focus.jobs.doctor.tables import Finding, check_tables
from scrapy_focus.jobs.doctor.tail import Tail, read_tail
from scrapy_focus.jobs.job import FRONTIER, lock
from scrapy_focus.jobs.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_SHOWN = 3  # of what SQLite says of a malformed file
_FORMATS = range(1, 100)
_ROUNDS = 4  # one cure may show what another has to do


@dataclass(slots=True, kw_only=True)
class Checkup:
    """What was found, and what was done about it."""

    found: list[str] = field(default_factory=list)  # what is wrong
    harmless: list[str] = field(default_factory=list)  # what is not as usual, and does no harm
    done: list[str] = field(default_factory=list)  # repairs, in order
    left: list[str] = field(default_factory=list)  # what is wrong still
    events: int = 0  # that a resume goes through
    copies: Path | None = None  # where the files are as they were

    @property
    def is_well(self) -> bool:
        """Whether the crawl can go on, and all of it is there that was there before the repair."""
        return not self.left


def check_job(jobdir: Path, *, fix: bool = False, say: Callable[[str], object] = print) -> Checkup:
    """Verify all that is in a JOBDIR, and repair it if asked to; ``say`` is told what is going on.

    Reads everything: about a minute at ten million links.

    Raises
    ------
    ResumeError
        If there is no crawl in it that this version can read, or a process uses it. Nothing is changed then.
    StorageError
        If it cannot be read at all, or not be repaired. The original files stay.
    """
    folder = folder_of(jobdir)
    taken = lock(folder)
    try:
        checkup = Checkup()
        for finding in _examine(folder, checkup):
            (checkup.harmless if finding.harmless else checkup.found).append(finding.what)
            say(("note: " if finding.harmless else "wrong: ") + finding.what)
        checkup.left = list(checkup.found)
        if fix and (checkup.found or checkup.harmless):
            _Repair(folder, checkup, say).run()
            checkup.left = [finding.what for finding in _examine(folder, checkup) if not finding.harmless]
        return checkup
    except (sqlite3.Error, OSError) as error:
        raise storage_error(folder / FRONTIER, error) from error
    finally:
        taken.release()


def _examine(folder: Path, checkup: Checkup) -> Iterator[Finding]:
    path = folder / FRONTIER
    malformed = _malformed(path)
    if malformed:
        yield Finding(what=malformed)
        return
    with closing(open_readonly(path)) as database:
        yield from _in_database(database, folder)
        tail = _tail(database, folder)
    if tail is None:
        return
    checkup.events = tail.events.total()
    if tail.why:
        yield Finding(what=tail.why + _lost(tail))
    if tail.older:
        yield Finding(
            what=f"{_journals(tail.older)} {'is' if len(tail.older) == 1 else 'are'} needed no more", harmless=True
        )


def _in_database(database: sqlite3.Connection, folder: Path) -> Iterator[Finding]:
    return chain(check_tables(database), check_notes(database, folder))


def _tail(database: sqlite3.Connection, folder: Path) -> Tail | None:
    row = database.execute("SELECT value FROM notes WHERE name = 'journal'").fetchone()
    flying = [pick_id for (pick_id,) in database.execute("SELECT id FROM flying")]
    try:
        return None if row is None else read_tail(folder, int(row[0]), flying)
    except (ValueError, TypeError):
        return None


def _malformed(path: Path) -> str:
    """Say why SQLite cannot read a file well, ``""`` if it can.

    Raises
    ------
    ResumeError
        If the file says that another version wrote it.
    """
    try:
        with closing(open_readonly(path)) as database:
            database.execute("PRAGMA cell_size_check = ON")
            said = [str(row[0]) for row in database.execute(f"PRAGMA integrity_check({_SHOWN + 1})")]
            found = database.execute("PRAGMA user_version").fetchone()[0]
            readable = tables_can_be_read(database)
    except sqlite3.Error as error:
        return f"{path.name} is malformed: {error}"
    if found != FORMAT and found in _FORMATS and readable:
        raise ResumeError(f"{path} has format {found}, this version of scrapy_focus reads {FORMAT}")
    if said != ["ok"]:
        lines = [line for text in said for line in text.splitlines() if not line.startswith("***")]
        return f"{path.name} is malformed: {'; '.join(lines[:_SHOWN])}{' and more' if len(lines) > _SHOWN else ''}"
    try:
        verify(path)
    except StorageError as error:
        return f"{path.name} is malformed: {error}"
    return "" if readable else f"{path.name} is malformed: it has other tables than it should have"


class _Repair:
    """Copies what it is about to change, then changes it."""

    def __init__(self, folder: Path, checkup: Checkup, say: Callable[[str], object]) -> None:
        self.folder = folder
        self.path = folder / FRONTIER
        self.checkup = checkup
        self.say = say

    def run(self) -> None:
        """Repair the SQLite file, then the journals that belong to it."""
        if _malformed(self.path):
            self._salvage()
        else:
            self._cure()
        self._mend_journals()

    def _copy(self, *paths: Path) -> None:
        """Keep copies of files, in one folder for all of this repair.

        Raises
        ------
        StorageError
            If that fails; nothing may be changed then.
        """
        if self.checkup.copies is None:
            now = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
            copies, n = self.folder / f"damaged-{now}", 1
            while copies.exists():
                copies, n = self.folder / f"damaged-{now}-{n}", n + 1
            self.checkup.copies = copies
        try:
            self.checkup.copies.mkdir(exist_ok=True)
            for path in paths:
                if path.exists() and not (self.checkup.copies / path.name).exists():
                    shutil.copy2(path, self.checkup.copies / path.name)
        except OSError as error:
            raise StorageError(f"{self.folder} cannot be repaired, as there is no room for a copy: {error}") from error

    def _done(self, sentence: str) -> None:
        self.checkup.done.append(sentence)
        self.say(f"repaired: {sentence}")

    def _beside(self, end: str) -> Path:
        return self.path.with_name(FRONTIER + end)

    def _salvage(self) -> None:
        new = self._beside(".salvaged")
        try:
            said = salvage(self.path, new)
            with closing(sqlite3.connect(new, isolation_level=None)) as database:
                said += self._cured(database)
                some = database.execute("SELECT 1 FROM links LIMIT 1").fetchone()
            if some is None:
                raise StorageError(
                    f"{self.path} cannot be repaired: no link can be read from it; put a copy in its place"
                )
            self._copy(self.path, self._beside("-wal"))
            for end in ("-wal", "-shm"):  # of the malformed file, or SQLite would take them for those of the new one
                self._beside(end).unlink(missing_ok=True)
            new.replace(self.path)
        finally:
            for end in ("", "-wal", "-shm"):
                new.with_name(new.name + end).unlink(missing_ok=True)
        self._done(f"made {FRONTIER} anew")
        for sentence in said:
            self._done(sentence)

    def _cure(self) -> None:
        with closing(open_readonly(self.path)) as database:
            if not any(finding.cure for finding in _in_database(database, self.folder)):
                return
        self._copy(self.path, self._beside("-wal"))
        with closing(sqlite3.connect(self.path, isolation_level=None)) as database:
            said = self._cured(database)
        for sentence in said:
            self._done(sentence)

    def _cured(self, database: sqlite3.Connection) -> list[str]:
        """Cure what can be cured in one transaction, and return what was done."""
        said: list[str] = []
        database.execute("PRAGMA synchronous = FULL")
        database.execute("BEGIN IMMEDIATE")
        for _ in range(_ROUNDS):
            before = len(said)
            for finding in _in_database(database, self.folder):
                if finding.cure is not None:
                    said.append(finding.cure(database))
            if len(said) == before:
                break
            sum_anew(database)
        database.execute("COMMIT")  # without it, closing the connection takes everything back
        return said

    def _mend_journals(self) -> None:
        with closing(open_readonly(self.path)) as database:
            tail = _tail(database, self.folder)
        if tail is None:
            return
        needless = tail.later + tail.older
        cut = self.folder / f"journal.{tail.last}"
        if tail.why or needless:
            self._copy(cut, *(self.folder / f"journal.{number}" for number in needless))
        for number in reversed(needless):
            (self.folder / f"journal.{number}").unlink()
        if tail.why and tail.last:
            Journal(cut, keep=tail.end).close()
            self._done(f"cut {cut.name} behind {tail.end:,} bytes with {_n(tail.events.total(), 'event')}{_lost(tail)}")
        elif tail.why:
            Journal(self.folder / f"journal.{tail.first}").close()
            self._done(
                f"began journal.{tail.first} anew, as it is missing: what the crawl did since its last checkpoint is lost, and "
                f"what it fetched since then will be fetched again{_lost(tail)}"
            )
        if tail.older:
            self._done(f"removed {_journals(tail.older)}, needed no more")


def _lost(tail: Tail) -> str:
    """Say what of the journals cannot be used."""
    if not tail.lost_bytes:
        return ""
    events = ", ".join(f"{n:,} {kind}" for kind, n in sorted(tail.lost.items()))
    later = f", {_journals(tail.later)} with them" if tail.later else ""
    what = f"{_n(tail.lost.total(), 'whole event')} in them" + (f" ({events})" if events else "")
    return f"; {tail.lost_bytes:,} bytes cannot be used{later}, {what}"


def _journals(numbers: list[int]) -> str:
    return ", ".join(f"journal.{number}" for number in numbers)


def _n(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
