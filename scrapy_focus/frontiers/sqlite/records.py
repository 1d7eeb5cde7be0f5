"""Records in one SQLite file, which holds the last checkpoint and nothing newer.

Three requirements conflict: tens of millions of links, a crawl that never waits for a disk, and a file with a
consistent state of one instant. So a record is read when its link is chosen, and changes stay in memory until a
checkpoint passes them to a thread that writes them as one transaction.
"""

from __future__ import annotations

import math
import sqlite3
from collections import deque
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from scrapy_focus.core.errors import StorageError
from scrapy_focus.frontiers.records import Record, Records
from scrapy_focus.frontiers.sqlite.database import open_database, storage_error, sum_column
from scrapy_focus.frontiers.sqlite.index import Index
from scrapy_focus.frontiers.sqlite.sums import sum_of_host, sum_of_keys, sum_of_link
from scrapy_focus.frontiers.sqlite.writer import Changes, FlyingRow, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link, Method, State
    from scrapy_focus.frontiers.sqlite.writer import Moved

_LOADED_AT_ONCE = 1 << 18  # rows
_ASKED_AT_ONCE = 256  # rows of one query
_FIELDS = "key, url, depth, origin, payload, memo, method"


class StoredPick(NamedTuple):
    """A link that was in flight at the last checkpoint."""

    id: int
    number: int
    key: int
    host: int
    arm: int
    rank: float
    record: Record


class StoredLink(NamedTuple):
    """The data of a queued link that is placed again."""

    number: int
    key: int
    url: str
    host: int
    depth: int
    payload: bytes


class SqliteRecords(Records):
    """Records by the number of their row, which rises.

    A record is in ``_fresh`` if it was added or moved since the last checkpoint, in ``_pending`` if that is being
    written, oldest first, and in the file otherwise; the newest counts.

    Parameters
    ----------
    path
        The file, created if missing; without one, a temporary file that is removed by :meth:`close`.

    Attributes
    ----------
    notes
        The notes of the last checkpoint before it was opened.
    counters
        Numbers, likewise.
    index
        The memory at the last checkpoint, if the file was then closed.

    Raises
    ------
    ResumeError
        If the file has another format.
    StorageError
        If it cannot be opened. Every method that reads or writes may raise it later.
    """

    by_age: ClassVar[bool] = True

    def __init__(self, path: Path | None = None) -> None:
        self._folder = None
        if path is None:
            self._folder = TemporaryDirectory(prefix="scrapy_focus-", ignore_cleanup_errors=True)
            path = Path(self._folder.name) / "frontier.sqlite"
        self.path = path
        self.notes: dict[str, bytes] = {}
        self.counters: dict[str, float] = {}
        self._fresh = Changes()
        self._pending: deque[Changes] = deque()
        self._stored_hosts = 0
        self._closed = False
        self._said = False
        self.index = Index(path)
        self._reader, writer = open_database(path)
        self._sum = sum_column(self._reader)
        self._writer = Writer(writer, path)

    def store(
        self,
        link: Link,
        host: int,
        origin: int,
        arm: int,
        rank: float,
        memo: bytes | None,
        method: Method,
        after: float,
    ) -> int:
        number = self.youngest = self.youngest + 1
        row = (link.key, link.url, host, link.depth, origin, link.payload, arm, rank, method, memo, after)
        self._fresh.rows[number] = row
        return number

    def store_many(
        self,
        links: Sequence[Link],
        hosts: Sequence[int],
        origin: int,
        arms: Sequence[int],
        memos: Sequence[bytes],
        methods: Sequence[Method],
    ) -> list[int]:
        first = self.youngest + 1
        self.youngest += len(links)
        numbers = [*range(first, first + len(links))]
        self._fresh.rows.update(
            (number, (link.key, link.url, host, link.depth, origin, link.payload, arm, 0.0, method, memo, 0.0))
            for number, link, host, arm, memo, method in zip(numbers, links, hosts, arms, memos, methods, strict=True)
        )
        return numbers

    def replace(self, number: int, arm: int, rank: float, memo: bytes | None, method: Method, after: float) -> None:
        row = self._fresh.rows.get(number)
        if row is None:
            self._fresh.moved[number] = arm, rank, method, memo, after
        else:
            self._fresh.rows[number] = (*row[:6], arm, rank, method, memo, after)

    def erase(self, number: int) -> None:
        if self._fresh.rows.pop(number, None) is None:
            self._fresh.moved.pop(number, None)
            self._fresh.gone.append(number)

    def erase_many(self, numbers: Sequence[int]) -> None:
        fresh = self._fresh
        if fresh.rows or fresh.moved:
            super().erase_many(numbers)
        else:
            fresh.gone.extend(numbers)

    def note(self, key: int, state: State) -> None:
        self._fresh.seen[key] = state

    def note_many(self, keys: NDArray[np.int64], state: State) -> None:
        self._fresh.seen.update(dict.fromkeys(keys.tolist(), state))

    def read(self, numbers: Sequence[int]) -> list[Record]:
        found: dict[int, Record] = {}
        moved: dict[int, Moved] = {}
        for number in numbers:
            self._look(number, found, moved)
        missing = list(dict.fromkeys(number for number in numbers if number not in found))
        for start in range(0, len(missing), _ASKED_AT_ONCE):
            self._ask(missing[start : start + _ASKED_AT_ONCE], found)
        for number, (_, _, method, memo, _) in moved.items():
            found[number] = found[number]._replace(memo=memo, method=method)
        return [found[number] for number in numbers]

    @property
    def changed(self) -> int:
        """How many records were added, moved or removed since the last checkpoint; they are in memory."""
        return len(self._fresh)

    @property
    def writing(self) -> bool:
        """Whether a checkpoint is still being written."""
        return self._writer.error is None and any(not changes.finished.is_set() for changes in self._pending)

    def checkpoint(
        self,
        hosts: Sequence[str],
        flying: list[FlyingRow],
        counters: dict[str, float],
        notes: Mapping[str, bytes],
        then: Callable[[], None] | None,
    ) -> None:
        """Write a checkpoint in another thread; returns at once.

        Parameters
        ----------
        hosts
            The names of all hosts, by number; at least those of the last checkpoint.
        flying
            The picks in flight.
        counters
            Numbers to store under their names, in place of those of other checkpoints.
        notes
            To store in the file under their names; other notes are kept.
        then
            Called in the other thread when all of it is on disk.

        Raises
        ------
        StorageError
            If an earlier checkpoint failed; the one before that is in the file.
        """
        self._fail_if_failed()
        if self._closed:
            raise StorageError(f"{self.path} was closed; open it again")
        self._forget_committed()
        changes, self._fresh = self._fresh, Changes()
        changes.hosts = list(enumerate(hosts[self._stored_hosts :], self._stored_hosts))
        self._stored_hosts = len(hosts)
        changes.flying, changes.counters = flying, {**counters, "row": self.youngest + 1}
        changes.notes, changes.then = dict(notes), self._without_index(then)
        self._pending.append(changes)
        self._writer.hand(changes)

    def flush(self) -> None:
        """Block until all checkpoints are on disk.

        Raises
        ------
        StorageError
            If one could not be written.
        """
        for changes in self._pending:
            changes.finished.wait()
        self._fail_if_failed()
        self._forget_committed()

    def close(self) -> None:
        """Finish the checkpoints that are being written, and close the file; later changes are not in it.

        Raises
        ------
        StorageError
            If a checkpoint could not be written, and no error was raised yet.
        """
        if self._closed:
            return
        self._closed = True
        self._writer.close()
        self._reader.close()
        if self._folder is not None:
            self._folder.cleanup()
        if not self._said:
            self._fail_if_failed()

    def load(self) -> list[str]:
        """Read what belongs to the whole file, and return the names of the hosts by number."""
        ask = self._reader.execute
        self.notes = dict(ask("SELECT name, value FROM notes"))
        self.counters = dict(ask("SELECT name, value FROM counters"))
        self.youngest = int(self.counters.get("row", 1)) - 1
        hosts: list[str] = []
        for host, name, stored in ask(f"SELECT host, name, {self._sum} FROM hosts ORDER BY host"):  # noqa: S608
            if len(hosts) != host:
                raise LookupError(f"host {host} is not where it should be")
            if stored not in (None, sum_of_host(host, name)):
                raise LookupError(f"the name of host {host} is not what was stored")
            hosts.append(name)
        self._stored_hosts = len(hosts)
        return hosts

    def is_stored(self) -> bool:
        """Whether a permanent file has exactly the records that are here; blocks until all is written."""
        if self._closed or self._folder is not None:
            return False
        for changes in self._pending:
            changes.finished.wait()
        fresh = self._fresh
        is_fresh = fresh.rows or fresh.moved or fresh.gone or fresh.ranges or fresh.seen
        return not is_fresh and self._writer.is_alone()

    def is_empty(self) -> bool:
        """Whether no link is queued or in flight in the file."""
        return self._reader.execute("SELECT 1 FROM links LIMIT 1").fetchone() is None

    def waiting(
        self, columns: Mapping[str, str], *, after: float = -math.inf, until: float = math.inf
    ) -> Iterator[NDArray[np.void]]:
        """Yield the queued links of the file, oldest first: these columns, of these types, many rows at a time.

        Only links placed for a time later than ``after``, and not later than ``until``.
        """
        rows = self._reader.execute(
            f"SELECT {', '.join(columns)} FROM links "  # noqa: S608
            "WHERE row NOT IN (SELECT row FROM flying) AND after > ? AND after <= ? ORDER BY row",
            (after, until),
        )
        kind = np.dtype(list(columns.items()))
        while len(part := np.fromiter(islice(rows, _LOADED_AT_ONCE), kind)):
            if part["host"].min() < 0 or part["host"].max() >= self._stored_hosts or part["arm"].min() < 0:
                raise LookupError("a link has a host that is not there, or no arm")
            yield part

    def flying(self) -> Iterator[StoredPick]:
        """Yield the links in flight in the file, by id."""
        rows = self._reader.execute(
            f"SELECT flying.id, flying.row, {self._sum}, host, arm, rank, {_FIELDS.replace('key', 'links.key')} "  # noqa: S608
            "FROM flying LEFT JOIN links ON flying.row = links.row ORDER BY flying.id"
        )
        for id_, number, stored, host, arm, rank, key, *rest in rows:
            if key is None:
                raise LookupError(f"row {number} of its links is missing, which was in flight")
            url, depth, origin, payload, *_ = rest
            _compare(number, stored, key, url, host, depth, origin, payload)
            yield StoredPick(id_, number, key, host, arm, rank, Record(key, *rest))

    def flying_rows(self) -> list[FlyingRow]:
        """Return the picks in flight in the file, by id, whether they have records or not."""
        return [FlyingRow(*row) for row in self._reader.execute("SELECT id, row, key FROM flying ORDER BY id")]

    def seen(self, state: State) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield blocks of keys with a state, shape (n,) each, with a number that is larger for later ones."""
        rows = self._reader.execute(
            f"SELECT number, keys, {self._sum} FROM seen WHERE state = ? ORDER BY number",  # noqa: S608
            (int(state),),
        )
        for number, blob, stored in rows:
            if stored not in (None, sum_of_keys(blob)):
                raise LookupError(f"block {number} of its known keys is not what was stored")
            yield number, np.frombuffer(blob, np.int64)

    def before(self, number: int, *, after: int, most: int) -> list[StoredLink]:
        """Return links in the file whose numbers are larger than one and smaller than another, the oldest."""
        try:
            rows = self._reader.execute(
                f"SELECT {self._sum}, origin, row, key, url, host, depth, payload FROM links "  # noqa: S608
                "WHERE row > ? AND row < ? ORDER BY row LIMIT ?",
                (after, number, most),
            ).fetchall()
            links = []
            for stored, origin, *row in rows:
                links.append(link := StoredLink(*row))
                _compare(link.number, stored, link.key, link.url, link.host, link.depth, origin, link.payload)
        except (sqlite3.Error, LookupError) as error:
            raise storage_error(self.path, error) from error
        return links

    def keys_before(self, number: int) -> Iterator[NDArray[np.int64]]:
        """Yield the keys of all records in the file whose numbers are smaller, shape (n,), many at a time."""
        rows = self._reader.execute("SELECT key FROM links WHERE row < ?", (number,))
        while len(part := np.fromiter((key for (key,) in islice(rows, _LOADED_AT_ONCE)), np.int64)):
            yield part

    def erase_range(self, first: int, end: int) -> None:
        """Forget all records in the file from one number to before another."""
        if first < end:
            self._fresh.ranges.append((first, end))

    def _without_index(self, then: Callable[[], None] | None) -> Callable[[], None]:
        """Return the function to call after a checkpoint that makes the index invalid."""

        def is_on_disk() -> None:
            self.index.remove()
            if then is not None:
                then()

        return is_on_disk

    def _fail_if_failed(self) -> None:
        if self._writer.error is not None:
            self._said = True
            raise self._writer.error

    def _forget_committed(self) -> None:
        while self._pending and self._pending[0].committed and self._pending[0].finished.is_set():
            self._pending.popleft()

    def _look(self, number: int, found: dict[int, Record], moved: dict[int, Moved]) -> None:
        """Find the data of a record in memory."""
        for changes in (self._fresh, *reversed(self._pending)):
            if number in changes.rows:
                key, url, _, depth, origin, payload, _, _, method, memo, _ = changes.rows[number]
                found[number] = Record(key, url, depth, origin, payload, memo, method)
                return
            if number in changes.moved:
                moved.setdefault(number, changes.moved[number])

    def _ask(self, numbers: Sequence[int], found: dict[int, Record]) -> None:
        """Find records in the file."""
        marks = ", ".join("?" * len(numbers))
        try:
            # all at once: an unfinished statement would keep the log from being emptied
            rows = self._reader.execute(
                f"SELECT row, {self._sum}, host, {_FIELDS} FROM links WHERE row IN ({marks})",  # noqa: S608
                numbers,
            ).fetchall()
            for number, stored, host, *fields in rows:
                found[number] = record = Record(*fields)
                _compare(number, stored, record.key, record.url, host, record.depth, record.origin, record.payload)
        except (sqlite3.Error, LookupError) as error:
            raise storage_error(self.path, error) from error
        if len(rows) < len(numbers):
            missing = next(number for number in numbers if number not in found)
            raise storage_error(self.path, LookupError(f"row {missing} of its links is missing"))


def _compare(number: int, stored: int | None, *link: Any) -> None:
    """Raise ``LookupError`` if a link (key, URL, host, depth, origin, payload) does not match its checksum."""
    if stored is not None and stored != sum_of_link(*link):
        raise LookupError(f"row {number} of its links is not what was stored")
