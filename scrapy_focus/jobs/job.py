"""The folder of a crawl: the frontier at the last checkpoint, and every event since.

A checkpoint is one transaction: links, picks in flight, learned state and used budget belong to one instant. From then
on, every event of the crawl is appended to a journal before it has any effect outside the process. After a kill, the
folder holds a state and all events since; the same events lead to the same state again
(:mod:`scrapy_focus.jobs.recovery`).

Another thread writes a checkpoint while the crawl continues with the next journal. The older journals are removed only
after the commit.
"""

from __future__ import annotations

import logging
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from scrapy_focus.core.errors import FolderInUseError, ResumeError, StorageError
from scrapy_focus.core.printable import printable_logger
from scrapy_focus.frontiers.sqlite.database import read_notes
from scrapy_focus.frontiers.sqlite.frontier import sqlite_frontier
from scrapy_focus.jobs.checksums import damaged, summed
from scrapy_focus.jobs.description import default_parameters, describe, differences
from scrapy_focus.jobs.journal import Journal, journals_in, read_journal, whole_behind
from scrapy_focus.jobs.pickles import Classes
from scrapy_focus.jobs.records import OUTCOME, record_of
from scrapy_focus.jobs.recovery import recover
from scrapy_focus.jobs.snapshots import POLICY, notes_of, state_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from scrapy_focus.core.crawl_state import CrawlState
    from scrapy_focus.core.events import Event
    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.keeper import Described
    from scrapy_focus.core.mission import Topic
    from scrapy_focus.core.policy import Policy
    from scrapy_focus.core.snapshot import Snapshot
    from scrapy_focus.frontiers.sqlite.frontier import Stored
    from scrapy_focus.jobs.journal import Record

logger = printable_logger(__name__)
logging.getLogger("filelock").setLevel(logging.INFO)  # else each lock logs two lines

FRONTIER = "frontier.sqlite"
LOCK = "lock"
_OWNER = "pid"  # a separate file, as a lock may empty its own
_LONGEST = 60.0  # seconds between two checkpoints, if there were events
_SPARED = 5_000  # bytes of a checkpoint for which it waits one outcome longer: large ones are rare
_SPARED_A_SECOND = 100_000  # likewise, for a second longer
_MOST_CHANGED = 50_000  # changed links in memory that make a checkpoint due


class Job:
    """Opens or creates a folder, for one process at a time. A :class:`~scrapy_focus.core.keeper.Keeper`.

    ``notes`` are those of the last checkpoint; later events are in :meth:`records`.

    Parameters
    ----------
    folder
        The folder of the files ``frontier.sqlite`` and, after a clean stop, ``frontier.sqlite-index``;
        ``journal.<number>``, ``lock``.
    every
        Outcomes between two checkpoints, more if the stored policy is large. Also, one is written every minute, or
        less often if the policy is above 6 MB. After a kill, the events since the last one are applied again: that
        takes a second or two.
    name
        The name of the spider. Under another name the crawl does not resume.
    stores
        Import paths of other libraries' classes in the policy, besides its own :attr:`~scrapy_focus.Policy.stores`.
    project
        Packages whose classes the policy may contain, besides its own.

    Raises
    ------
    ResumeError
        If another process has it open, or another version wrote it.
    StorageError
        If it cannot be read or written.
    """

    def __init__(
        self,
        folder: Path,
        *,
        every: int = 1000,
        name: str = "",
        stores: Collection[str] = (),
        project: Collection[str] = (),
    ) -> None:
        self.folder = folder
        self.classes = Classes(project, stores)
        self.every = every
        self.name = name
        self._is_written_anew = False  # whether the recovered state has to be stored at once
        self._last = time.monotonic()  # time of the last checkpoint
        self._since = 0  # outcomes since the last checkpoint
        self._size = 0  # bytes of the last checkpoint, without its links
        self._closed = False
        self._journal: Journal | None = None
        self._description: dict[str, Any] | None = None
        self._topic: Topic | None = None  # of the mission
        self._state: dict[str, Any] | None = None
        self._frontier: Stored | None = None
        if (folder / "crawl.json").exists():
            raise ResumeError(
                f"{folder} was written by scrapy_focus 0.1.0 before it had a frontier on disk, which this version does "
                "not read; use another JOBDIR"
            )
        self._lock = lock(folder)
        try:
            file = folder / FRONTIER
            written = any((folder / f"journal.{number}").stat().st_size for number in self.journals())
            if self.journals() and not (file.exists() and file.stat().st_size):
                raise StorageError(f"{file}, with the links of the crawl, is missing or empty: restore it from a copy")
            self.notes: Mapping[str, bytes] = read_notes(file)
            self._number = _number(self.notes.get("journal", b"0"), file)
            if self.is_new and written:
                raise StorageError(f"{file} lost its checkpoint, but there is a journal; run focus check")
        except BaseException:
            self._lock.release()
            raise

    @property
    def is_new(self) -> bool:
        """Whether nothing was stored yet."""
        return "journal" not in self.notes

    @property
    def stored(self) -> Stored:
        """The frontier, once it is open."""
        if self._frontier is None:
            raise StorageError(f"the crawl in {self.folder} is not open yet")
        return self._frontier

    def open(self, crawl: Described) -> Frontier:
        """Return the frontier of a crawl: that of the last checkpoint, if there is one.

        Raises
        ------
        ResumeError
            If the stored crawl had another goal, mission, policy or parameters.
        StorageError
            If the files cannot be read.
        """
        now = describe(crawl.policy, crawl.goal, crawl.mission, self.name)
        self._description, self._topic = now, crawl.mission.topic
        if not self.is_new:
            if wrong := damaged(self.notes):
                raise StorageError(f"the {' and '.join(wrong)} in {self.folder} is damaged; see focus check")
            self._state = state_of(self.notes, self.folder)
            self._description = self._compatible(self._state["description"], now, crawl.policy)
        anew = not self.is_new and POLICY not in self.notes
        self._frontier = sqlite_frontier(self.folder / FRONTIER, crawl.policy.keeps(crawl.mission), anew=anew)
        return self._frontier

    def restore(self, state: CrawlState) -> bool:
        """Bring the state of a new crawl to that of the stored one; ``False`` if nothing is stored.

        Raises
        ------
        ResumeError
            If what the policy learned cannot be read.
        StorageError
            If the files cannot be read.
        """
        if self._state is None:
            return False
        self._is_written_anew = recover(
            state, self.stored, self.notes, self._state, self.records(), classes=self.classes
        )
        return True

    def records(self) -> Iterator[Record]:
        """Yield the events since the last checkpoint, in order; read all of them before :meth:`tell`.

        Events cut off by a crash of the machine are skipped, with a warning.
        """
        first = self._number
        journals = self.journals()
        if first not in journals:
            raise StorageError(
                f"{self.folder / f'journal.{first}'} is missing: what the crawl did since its last checkpoint is in "
                "it; put it back, or run focus check --fix on the JOBDIR to resume from that checkpoint"
            )
        for number in range(first, max(journals) + 1):
            path, end = self.folder / f"journal.{number}", 0
            for record, at in read_journal(path):
                end = at
                self._since += record[0] == OUTCOME
                yield record
            self._number, lost = number, path.stat().st_size - end
            if number < max(journals) and (lost or number + 1 not in journals):
                raise StorageError(
                    f"{path} is damaged, or the one after it is missing, and later ones exist: run scrapy "
                    "focus check --fix on the JOBDIR, which says what can be kept"
                )
        if lost:
            if whole := sum(1 for _ in whole_behind(path, end)):
                raise StorageError(
                    f"{path} is damaged at byte {end:,}, and {whole:,} later events are intact: run scrapy "
                    "focus check on the JOBDIR, which says what is lost, and --fix to resume without them"
                )
            logger.warning("the last %d bytes of %s are cut off or damaged, and skipped", lost, path)
        self._journal = Journal(path, keep=end)

    def journals(self) -> list[int]:
        """Return the numbers of the existing journals, in order."""
        return journals_in(self.folder)

    def tell(self, event: Event) -> None:
        """Write an event of the crawl.

        Raises
        ------
        StorageError
            If that fails, now or earlier.
        """
        if self._journal is None:
            raise StorageError(f"{self.folder} has no checkpoint yet")
        record = record_of(event)
        self._journal.append(record)
        self._since += record[0] == OUTCOME

    @property
    def due(self) -> bool:
        """Whether a checkpoint is due."""
        frontier = self.stored
        if self._is_written_anew:
            return True
        full = self._since >= max(self.every, self._size // _SPARED) or frontier.changed >= _MOST_CHANGED
        longest = max(_LONGEST, self._size / _SPARED_A_SECOND)
        full = full or (self._since > 0 and time.monotonic() - self._last > longest)
        return full and not frontier.writing

    def postpone(self) -> None:
        """Count the outcomes until the next checkpoint from 0 again, as one failed. The journal has everything."""
        self._since, self._last = 0, time.monotonic()

    def checkpoint(self, state: Snapshot) -> None:
        """Start to store the present state, and a new journal; does not wait.

        Raises
        ------
        PolicyError
            If the policy cannot be pickled.
        StorageError
            If writing fails, or the last checkpoint did.
        """
        notes = notes_of(state, self._description, self.classes, self._topic)
        number = max([self._number, *self.journals()]) + 1
        journal = Journal(self.folder / f"journal.{number}")
        made = {} if self._number else {"made": b"%d" % time.time()}
        notes = summed({**notes, **made, "journal": b"%d" % number})
        self.stored.checkpoint(notes, then=lambda: self._remove_before(number))
        if self._journal is not None:
            self._journal.close()
        self._journal, self._number, self._since = journal, number, 0
        self._size = sum(map(len, notes.values()))
        self._last = time.monotonic()
        self._is_written_anew = False

    def flush(self) -> None:
        """Wait until the last checkpoint is committed.

        Raises
        ------
        StorageError
            If that failed.
        """
        self.stored.flush()

    def close(self) -> None:
        """Finish all writes, and release the folder. Idempotent."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._frontier is not None:
                self._frontier.close()
        finally:
            if self._journal is not None:
                self._journal.close()
            self._lock.release()

    def _compatible(self, then: dict[str, Any] | None, now: dict[str, Any], policy: Policy) -> dict[str, Any] | None:
        """Return the description of the stored crawl: the original one, as far as it may differ."""
        if then is None:  # see focus-check --fix
            logger.warning("the original settings of the crawl in %s are unknown", self.folder)
            return now
        unknown = (policy.may_change | default_parameters(policy)) - then.keys()  # to the version that began it
        now = {name: value for name, value in now.items() if name not in unknown}
        now |= {name: then[name] for name in policy.may_change if name in then}
        if differing := differences(then, now):
            other = then.get("policy") != now.get("policy")
            named = f" (FOCUS_POLICY = {then.get('policy')!r})" if other else ""
            raise ResumeError(
                f"the crawl in {self.folder} cannot resume with other settings: {differing}; use the same "
                f"settings{named}, or another JOBDIR"
            )
        return then

    def _remove_before(self, number: int) -> None:
        for older in self.journals():
            if older < number:
                with suppress(OSError):  # a leftover does no harm
                    (self.folder / f"journal.{older}").unlink()


def lock(folder: Path) -> FileLock:
    """Create a folder if needed, and lock it for this process until the lock is released or the process ends.

    Raises
    ------
    FolderInUseError
        If another process has it.
    StorageError
        If it cannot be written.
    """
    taken = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = FileLock(folder / LOCK, timeout=0.2)  # focus-status holds it for a moment
        taken.acquire()
        (folder / _OWNER).write_text(str(os.getpid()))
    except Timeout:
        raise FolderInUseError(
            f"{folder} is in use by process {owner(folder)}: stop it first, or use another JOBDIR"
        ) from None
    except OSError as error:
        if taken is not None:
            taken.release()
        raise StorageError(
            f"{folder} cannot be written: {error}; check its permissions, or use another JOBDIR"
        ) from error
    return taken


def owner(folder: Path) -> str:
    """Return the id of the process that locked a folder last."""
    try:
        return (folder / _OWNER).read_text().strip() or "(unknown)"
    except OSError:
        return "(unknown)"


def _number(note: bytes, file: Path) -> int:
    try:
        return int(note)
    except ValueError as error:
        raise StorageError(f"{file} does not name its journal: run focus check") from error
