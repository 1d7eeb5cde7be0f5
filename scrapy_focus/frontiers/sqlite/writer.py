"""The thread that writes checkpoints, so that the crawl is not delayed."""

from __future__ import annotations

import sqlite3
from array import array
from itertools import chain, islice
from queue import SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from scrapy_focus.frontiers.sqlite.database import storage_error, upgrade
from scrapy_focus.frontiers.sqlite.sums import sum_of_host, sum_of_keys, sum_of_link

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from scrapy_focus.core.errors import StorageError
    from scrapy_focus.core.types import Method

T = TypeVar("T")

_ROWS = 500  # of one statement
_MOVE = """
UPDATE links SET (arm, rank, method, memo, after) =
    (SELECT arm, rank, method, memo, after FROM moved WHERE moved.row = links.row)
WHERE row IN (SELECT row FROM moved)
"""

Row = tuple[Any, ...]  # key, url, host, depth, origin, payload, arm, rank, method, memo, after
Moved: TypeAlias = "tuple[int, float, Method, bytes | None, float]"  # arm, rank, method, memo, after


class FlyingRow(NamedTuple):
    """A pick in flight, as stored in the file."""

    id: int
    row: int  # number of its record
    key: int


class Changes:
    """The changes between two checkpoints; they are not modified once passed on.

    ``rows`` are new records by number, ``moved`` new placements of older ones, ``gone`` the numbers of removed older
    ones: they are disjoint. ``ranges`` has first numbers and ends of other removed ones.
    """

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}
        self.moved: dict[int, Moved] = {}
        self.gone: list[int] = []
        self.ranges: list[tuple[int, int]] = []
        self.seen: dict[int, int] = {}  # key -> state
        self.hosts: list[tuple[int, str]] = []
        self.flying: list[FlyingRow] = []
        self.counters: dict[str, float] = {}
        self.notes: Mapping[str, bytes] = {}
        self.then: Callable[[], None] | None = None
        self.committed = False
        self.finished = Event()  # committed, or given up

    def __len__(self) -> int:
        return len(self.rows) + len(self.moved) + len(self.gone)


class Writer:
    """Writes sets of changes in order, each as one transaction.

    After a failure nothing more is written: the file keeps the last committed checkpoint.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self.error: StorageError | None = None
        self._connection = connection
        self._version = self._others()
        self._queue: SimpleQueue[Changes | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._is_current = False  # whether the file has the current format

    def hand(self, changes: Changes) -> None:
        """Write changes; returns at once."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name=f"writer of {self.path.name}", daemon=True)
            self._thread.start()
        self._queue.put(changes)

    def is_alone(self) -> bool:
        """Whether nobody else wrote to the file since this object was made; do not call it while something is
        written.
        """
        try:
            return self.error is None and self._others() == self._version
        except sqlite3.Error:
            return False

    def close(self) -> None:
        """Write what was passed on, and close the connection."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while (changes := self._queue.get()) is not None:
            try:
                if self.error is None:
                    self._write(changes)
                    changes.committed = True
                    if self._is_in_one_file() and changes.then is not None:
                        changes.then()
            except Exception as error:
                self.error = storage_error(self.path, error)
                self.error.__cause__ = error
            finally:
                changes.finished.set()
                del changes

    def _others(self) -> int:
        """Return a number that changes when another connection writes to the file."""
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    def _is_in_one_file(self) -> bool:
        """Move committed pages from the write-ahead log to the file, and return whether all were moved."""
        _, logged, moved = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return bool(logged == moved)

    def _write(self, changes: Changes) -> None:
        execute = self._connection.execute
        execute("CREATE TEMP TABLE IF NOT EXISTS moved (row INTEGER PRIMARY KEY, arm, rank, method, memo, after)")
        execute("BEGIN IMMEDIATE")
        try:
            if not self._is_current:
                upgrade(self._connection)
            self._insert("hosts", ((host, name, sum_of_host(host, name)) for host, name in changes.hosts))
            self._insert("links", ((number, *row, sum_of_link(*row[:6])) for number, row in changes.rows.items()))
            self._insert("moved", ((number, *row) for number, row in changes.moved.items()))
            execute(_MOVE)
            execute("DELETE FROM moved")
            for some in _parts(iter(sorted(changes.gone)), self._most(1)):
                execute(f"DELETE FROM links WHERE row IN ({', '.join('?' * len(some))})", some)  # noqa: S608
            for first, end in changes.ranges:
                execute("DELETE FROM links WHERE row >= ? AND row < ?", (first, end))
            execute("DELETE FROM flying")
            self._insert("flying", changes.flying)
            for state, keys in _seen_keys(changes):
                execute("INSERT INTO seen (state, keys, sum) VALUES (?, ?, ?)", (state, keys, sum_of_keys(keys)))
            self._insert("counters", changes.counters.items())
            self._insert("notes", changes.notes.items())
            execute("COMMIT")
            self._is_current = True
        except BaseException:
            if self._connection.in_transaction:
                execute("ROLLBACK")
            raise

    def _insert(self, table: str, rows: Iterable[Row]) -> None:
        """Insert rows into a table, many with one statement: after each, the other thread may block this one."""
        rows = iter(rows)
        first = next(rows, None)
        if first is None:
            return
        marks = f"({', '.join('?' * len(first))})"
        for some in _parts(chain([first], rows), self._most(len(first))):
            sql = f"INSERT OR REPLACE INTO {table} VALUES {', '.join([marks] * len(some))}"  # noqa: S608
            self._connection.execute(sql, list(chain.from_iterable(some)))

    def _most(self, width: int) -> int:
        """Return how many rows of so many values each fit into one statement."""
        return max(min(_ROWS, self._connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) // width), 1)


def _parts(values: Iterator[T], size: int) -> Iterator[list[T]]:
    while part := list(islice(values, size)):
        yield part


def _seen_keys(changes: Changes) -> Iterator[tuple[int, bytes]]:
    for state in set(changes.seen.values()):
        yield int(state), array("q", [key for key, found in changes.seen.items() if found == state]).tobytes()
