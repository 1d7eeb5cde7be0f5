"""The folder in which a crawl lives on: the frontier as it was at the last checkpoint, and all that it was told since.

A checkpoint is one transaction: links, what is in flight, what was learned and what was used belong to one instant. From
then on every input of the crawl is appended to a journal before it has any effect. Whoever opens the folder after a kill
has a state and all inputs since; the same inputs lead to the same state again (:mod:`scrapy_focus.jobs.recovery`).

A checkpoint is written by another thread while the crawl goes on, into the next journal by then. Only when it is
committed are the older journals removed.
"""

from __future__ import annotations

import logging
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from scrapy_focus.core.errors import ResumeError, StorageError
from scrapy_focus.frontiers.sqlite.frontier import SqliteFrontier
from scrapy_focus.jobs.checksums import summed
from scrapy_focus.jobs.doctor.tail import whole_events
from scrapy_focus.jobs.journal import Journal, journals_in, read_journal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from scrapy_focus.jobs.journal import Event

logger = logging.getLogger(__name__)
logging.getLogger("filelock").setLevel(logging.INFO)  # else each lock is two lines in the log of a crawl

FRONTIER = "frontier.sqlite"
LOCK = "lock"
_OWNER = "pid"  # lockers of a file may empty it, so this is another one
_LONGEST = 60.0  # seconds between two checkpoints, if anything came
_MOST_CHANGED = 50_000  # links in memory after which a checkpoint is due


class Job:
    """Opens a folder, or makes it; one process at a time.

    ``frontier`` is as it was at the last checkpoint, and so is ``notes``, what :meth:`checkpoint` was given; what came
    afterwards is in :meth:`events`.

    Parameters
    ----------
    folder
        Where the files are: ``frontier.sqlite``, ``journal.<number>``, ``lock``.
    every
        Outcomes between two checkpoints; there is one every minute too. After a kill, what came since the last one has to
        be gone through again: a second or two.
    name
        Who crawls: the name of the spider. Under another name the crawl does not go on.

    Raises
    ------
    ResumeError
        If another process has it open, or another version wrote it.
    StorageError
        If it cannot be read or written.
    """

    def __init__(self, folder: Path, *, every: int = 1000, name: str = "") -> None:
        self.folder = folder
        self.every = every
        self.name = name
        self._last = time.monotonic()  # when the last checkpoint was
        self._since = 0  # outcomes since the last checkpoint
        self._closed = False
        if (folder / "crawl.json").exists():
            raise ResumeError(
                f"{folder} was written by scrapy_focus 0.1.0 before it had a frontier on disk, which this version does not "
                "read; use another JOBDIR"
            )
        self._lock = lock(folder)
        try:
            file = folder / FRONTIER
            if self.journals() and not (file.exists() and file.stat().st_size):
                raise StorageError(
                    f"{file} is missing or empty, and it had the links of the crawl: put a copy in its place"
                )
            self.frontier = SqliteFrontier(file)
            self.notes: Mapping[str, bytes] = self.frontier.notes
            self._number = _number(self.notes.get("journal", b"0"), file)
            if self.is_new and any((folder / f"journal.{number}").stat().st_size for number in self.journals()):
                raise StorageError(f"{file} has no checkpoint any more, and a journal is there; run scrapy focus-check")
            self._journal: Journal | None = None
        except BaseException:
            if hasattr(self, "frontier"):
                self.frontier.close()
            self._lock.release()
            raise

    @property
    def is_new(self) -> bool:
        """Whether nothing was stored in it yet."""
        return "journal" not in self.notes

    def events(self) -> Iterator[Event]:
        """Yield what the crawl was told since the last checkpoint, in order; go through all of it before :meth:`tell`.

        What is cut off, because the machine went down with it, is left out, with a warning.
        """
        first = self._number
        journals = self.journals()
        if first not in journals:
            raise StorageError(
                f"{self.folder / f'journal.{first}'} is missing: what the crawl did since its last checkpoint is in it; put "
                "it back, or run scrapy focus-check --fix on the JOBDIR to go on from that checkpoint"
            )
        for number in range(first, max(journals) + 1):
            path, end = self.folder / f"journal.{number}", 0
            for event, at in read_journal(path):
                end = at
                self._since += event[0] == "outcome"
                yield event
            self._number, lost = number, path.stat().st_size - end
            if number < max(journals) and (lost or number + 1 not in journals):
                raise StorageError(
                    f"{path} is damaged, or the one after it is missing, and later ones are there: run scrapy focus-check "
                    "--fix on the JOBDIR, which says what can be kept"
                )
        if lost:
            if whole := whole_events(path, end).total():
                raise StorageError(
                    f"{path} is damaged at byte {end:,}, and {whole:,} events behind that are whole: run scrapy focus-check on "
                    "the JOBDIR, which says what is lost, and --fix to go on without them"
                )
            logger.warning("the last %d bytes of %s are cut off or damaged, and left out", lost, path)
        self._journal = Journal(path, keep=end)

    def journals(self) -> list[int]:
        """Return the numbers of the journals that are there, in order."""
        return journals_in(self.folder)

    def tell(self, *event: Any) -> None:
        """Write down an input of the crawl.

        Raises
        ------
        StorageError
            If that fails, now or earlier.
        """
        if self._journal is None:
            raise StorageError(f"{self.folder} has no checkpoint yet")
        self._journal.append(event)
        self._since += event[0] == "outcome"

    @property
    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        full = self._since >= self.every or self.frontier.changed >= _MOST_CHANGED
        full = full or (self._since > 0 and time.monotonic() - self._last > _LONGEST)
        return full and not self.frontier.writing

    def postpone(self) -> None:
        """Wait for as many outcomes again before the next checkpoint is due: one could not be made. The journal has all."""
        self._since, self._last = 0, time.monotonic()

    def checkpoint(self, notes: Mapping[str, bytes]) -> None:
        """Let everything be written as it is now, with these notes, and begin another journal; does not wait.

        Raises
        ------
        StorageError
            If that fails, or the last one did.
        """
        number = max([self._number, *self.journals()]) + 1
        journal = Journal(self.folder / f"journal.{number}")
        made = {} if self._number else {"made": b"%d" % time.time()}
        notes = summed({**notes, **made, "journal": b"%d" % number})
        self.frontier.checkpoint(notes, then=lambda: self._remove_before(number))
        if self._journal is not None:
            self._journal.close()
        self._journal, self._number, self._since = journal, number, 0
        self._last = time.monotonic()

    def flush(self) -> None:
        """Wait until the last checkpoint is committed.

        Raises
        ------
        StorageError
            If it could not be.
        """
        self.frontier.flush()

    def close(self) -> None:
        """Finish what is being written, and let others have the folder. Idempotent."""
        if self._closed:
            return
        self._closed = True
        try:
            self.frontier.close()
        finally:
            if self._journal is not None:
                self._journal.close()
            self._lock.release()

    def _remove_before(self, number: int) -> None:
        for older in self.journals():
            if older < number:
                with suppress(OSError):  # one too many does no harm
                    (self.folder / f"journal.{older}").unlink()


def lock(folder: Path) -> FileLock:
    """Make a folder if it is not there, and take it for this process until the lock is released or the process ends.

    Raises
    ------
    ResumeError
        If another process has it.
    StorageError
        If it cannot be written.
    """
    taken = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = FileLock(folder / LOCK, timeout=0.2)  # focus-status has it for a moment
        taken.acquire()
        (folder / _OWNER).write_text(str(os.getpid()))
    except Timeout:
        raise ResumeError(
            f"{folder} is in use by process {owner(folder)}: stop it first, or use another JOBDIR"
        ) from None
    except OSError as error:
        if taken is not None:
            taken.release()
        raise StorageError(
            f"{folder} cannot be written: {error}; allow writing there, or use another JOBDIR"
        ) from error
    return taken


def owner(folder: Path) -> str:
    """Return the number of the process that took a folder last."""
    try:
        return (folder / _OWNER).read_text().strip() or "(unknown)"
    except OSError:
        return "(unknown)"


def _number(note: bytes, file: Path) -> int:
    try:
        return int(note)
    except ValueError as error:
        raise StorageError(f"{file} does not say which journal is its own: run scrapy focus-check") from error
