"""Frontiers in a file: their order in memory, their records on disk; opened in the state of the last checkpoint."""

from __future__ import annotations

import secrets
from abc import abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, overload

import numpy as np

from scrapy_focus.core.errors import FocusError, ResumeError, StorageError
from scrapy_focus.core.frontier import Ranks, Vectors
from scrapy_focus.core.types import Link, Pick, State
from scrapy_focus.frontiers.drawn.frontier import DrawnFrontier
from scrapy_focus.frontiers.keys import KeySet
from scrapy_focus.frontiers.ledger import ASLEEP, FLYING, PROBED, Held, Ledger
from scrapy_focus.frontiers.ranked.frontier import RankedFrontier
from scrapy_focus.frontiers.ranked.load import Loading
from scrapy_focus.frontiers.saved import Saved
from scrapy_focus.frontiers.sqlite.database import storage_error
from scrapy_focus.frontiers.sqlite.records import SqliteRecords
from scrapy_focus.frontiers.sqlite.writer import FlyingRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from scrapy_focus.core.frontier import Keeps
    from scrapy_focus.frontiers.sqlite.records import StoredPick

_COLUMNS = {"row": "i4", "key": "i8", "host": "i4", "arm": "i4"}
_BATCH = 8  # multiple of the keys that are sorted together: a million takes little longer than a thousand
_PUT_AT_ONCE = 1 << 18  # keys
_PLACED_AT_ONCE = 50_000  # links that are placed again together
_NO_KEYS = np.empty(0, np.int64)
_RANKS = Ranks()


@overload
def sqlite_frontier(
    path: Path | None = None, keeps: Ranks = _RANKS, *, anew: bool = False, by_rows: bool = False
) -> SqliteRanked: ...
@overload
def sqlite_frontier(path: Path | None, keeps: Vectors, *, anew: bool = False, by_rows: bool = False) -> SqliteDrawn: ...
@overload
def sqlite_frontier(
    path: Path | None, keeps: Keeps, *, anew: bool = False, by_rows: bool = False
) -> SqliteRanked | SqliteDrawn: ...
def sqlite_frontier(
    path: Path | None = None, keeps: Keeps = _RANKS, *, anew: bool = False, by_rows: bool = False
) -> SqliteRanked | SqliteDrawn:
    """Open a frontier in a file, in the state of its last checkpoint: picks in flight then are in flight.

    About 60 bytes of memory a queued link, or 30 and its vector if vectors are kept, and 50 bytes of disk besides its
    URL and payload; 8 bytes of both for each fetched or given up link. Splits of arms are not in the file: repeat
    them after opening it.

    A frontier that is closed with nothing newer than its last checkpoint leaves an index beside its file
    (:mod:`~scrapy_focus.frontiers.sqlite.index`), of 40 bytes a link, or 30 and its vector. With the index, ten
    million links open in a second; without it, in half a minute, because all rows are read. The result is the same.

    Parameters
    ----------
    path
        The file, created if missing. SQLite keeps ``-wal`` and ``-shm`` beside it while it is open; the index is in
        ``-index`` from closing until the next write. Without a path, a temporary file that is removed when it is
        closed.
    keeps
        Links ordered by rank, or with vectors of a width.
    anew
        Start with nothing queued or in flight: all these links are new and to be placed again, perhaps by a policy
        that keeps something else. Earlier states of these links (fetched, say) are forgotten. See
        :meth:`Stored.stored`.
    by_rows
        Read all rows, even if there is an index.

    Raises
    ------
    FrontierError
        If the width of vectors is invalid.
    ResumeError
        If the file has another format, or holds a crawl that keeps something else.
    StorageError
        If it cannot be read or written; nothing is changed then. Every method that reads or writes may raise it
        later.
    """
    records = SqliteRecords(path)
    try:
        hosts = records.load()
        frontier = _made(records, keeps, hosts)
        if anew:
            frontier._load_anew()
        else:
            frontier._compare()
            if by_rows or not frontier._is_restored():
                frontier = _made(records, keeps, hosts)
                frontier._load()
    except BaseException as error:
        with suppress(FocusError):
            records.close()
        if isinstance(error, FocusError) or not isinstance(error, Exception):
            raise
        raise storage_error(records.path, error) from error
    return frontier


def _made(records: SqliteRecords, keeps: Keeps, hosts: Sequence[str]) -> SqliteRanked | SqliteDrawn:
    """Return a frontier without queued links."""
    frontier = SqliteDrawn(records, keeps.width) if isinstance(keeps, Vectors) else SqliteRanked(records)
    frontier._begin(hosts)
    return frontier


class Stored(Ledger):
    """The additional methods of a frontier in a file: see :func:`sqlite_frontier`."""

    _records: SqliteRecords
    _width: int = 0  # of the vectors; 0: without
    _until = 0  # while links are placed again: the old records are those with smaller numbers
    _placed = 0  # number of the last record that was returned to be placed again
    _interrupted: Sequence[FlyingRow] = ()
    _stamp = 0  # of the last checkpoint
    _at_checkpoint: Sequence[object] = ()  # what shows whether anything changed since

    @abstractmethod
    def _load_links(self) -> Iterable[tuple[NDArray[np.int64], NDArray[np.int32]]]:
        """Queue all links that are queued in the file, and yield their keys and slots."""

    @property
    def path(self) -> Path:
        """The file."""
        return self._records.path

    @property
    def notes(self) -> Mapping[str, bytes]:
        """The notes of the last checkpoint before it was opened."""
        return self._records.notes

    @property
    def interrupted(self) -> Mapping[int, int]:
        """The keys of the picks that were in flight when it was opened anew, by id."""
        return {row.id: row.key for row in self._interrupted}

    @property
    def changed(self) -> int:
        """How many records were added, moved or removed since the last checkpoint; they are in memory."""
        return self._records.changed

    @property
    def writing(self) -> bool:
        """Whether a checkpoint is still being written."""
        return self._records.writing

    def checkpoint(self, notes: Mapping[str, bytes] | None = None, then: Callable[[], None] | None = None) -> None:
        """Write a checkpoint in another thread; returns at once.

        Parameters
        ----------
        notes
            To store in the file under their names; other notes are kept.
        then
            Called in the other thread when all of it is on disk.

        Raises
        ------
        StorageError
            If an earlier checkpoint failed; the one before that is in the file.
        """
        self._stamp = secrets.randbits(62)
        flying = [*self._interrupted] if self._until else self._flying_rows()
        self._records.checkpoint(
            self._order.hosts.names, flying, {**self._counters(), "stamp": self._stamp}, notes or {}, then
        )
        self._at_checkpoint = self._instant()

    def flush(self) -> None:
        """Block until all checkpoints are on disk.

        Raises
        ------
        StorageError
            If one could not be written.
        """
        self._records.flush()

    def close(self) -> None:
        """Finish writing, and close the file; leave an index if the file is complete. Idempotent.

        Raises
        ------
        StorageError
            If a checkpoint could not be written, and no error was raised yet.
        """
        is_stored = not self._until and self._at_checkpoint == self._instant() and self._records.is_stored()
        super().close()
        if is_stored:
            saved = Saved()
            self._save(saved)
            self._records.index.write(saved, self._stamp)

    def stored(self) -> Iterator[list[Link]]:
        """Yield all links that were in a file when it was opened anew, some ten thousand at a time, oldest first.

        Push each part, and write a checkpoint with the current notes before you request the next, so that memory
        holds no more than one part. The old records stay in the file until the first checkpoint after the last part,
        which records that all is placed. After a kill before that, open the file anew again: then the same links come
        in the same order, and their earlier placements are forgotten. So the file has each link twice for a while.
        Links that were in flight are included.

        Raises
        ------
        StorageError
            If they cannot be read, or an earlier checkpoint failed.
        """
        while self._until:
            self.flush()
            part = self._records.before(self._until, after=self._placed, most=_PLACED_AT_ONCE)
            if not part:
                break
            self._placed = part[-1].number
            names = self._order.hosts.names
            yield [Link(each.url, each.key, names[each.host], each.depth, payload=each.payload) for each in part]
        if self._until:
            self._records.erase_range(0, self._until)
            self._until = 0

    def _counters(self) -> dict[str, float]:
        """Return the numbers that a checkpoint stores."""
        return {
            "id": self._next_id, "arms": len(self._order.waiting), "width": self._width, "anew": self._until,
            "woke": self._woke,
        }  # fmt: skip

    def _flying_rows(self) -> list[FlyingRow]:
        return [FlyingRow(pick.id, self._held[pick.id].number, pick.key) for pick in self._flying.values()]

    def _instant(self) -> Sequence[object]:
        """Return a value that changes whenever anything but records changes."""
        return self._counters(), self._flying_rows(), len(self._order.hosts), self.asleep, self._divisions()

    def _divisions(self) -> int:
        """Return how many times arms were split."""
        return 0

    def _is_restored(self) -> bool:
        """Restore everything in memory from the index, and return whether that succeeded; if not, this object is
        unusable.
        """
        records = self._records
        saved = records.index.read(int(records.counters.get("stamp", 0)))
        if saved is None:
            return False
        try:
            self._restore(saved)
            self._finish()
        except (LookupError, ValueError, TypeError, OverflowError) as error:
            records.index.refuse(error)
            return False
        return True

    def _load(self) -> None:
        """Restore everything in memory from the rows in the file."""
        together = _Together(self._known.update_many)
        for keys, slots in self._load_links():
            together.add(keys, slots)
        together.finish()
        self._load_sleepers()
        self._finish()
        self._load_seen(KeySet())

    def _load_anew(self) -> None:
        """Restore everything in memory from the rows in the file, with nothing queued or in flight."""
        counters = self._records.counters
        self._begin_anew(int(counters.get("anew", 0)))
        to_place = KeySet()
        for keys in self._records.keys_before(self._until):
            to_place.update_many(keys)
        self._load_seen(to_place)

    def _finish(self) -> None:
        """Also restore the arms and the picks of the file."""
        self._grow(int(self._records.counters.get("arms", 0)))
        for pick in self._records.flying():
            self._load_pick(pick)

    def _begin(self, hosts: Sequence[str]) -> None:
        """Restore the hosts and the numbers of the file."""
        counters = self._records.counters
        for name in hosts:
            self._order.host(name)
        self._next_id = int(counters.get("id", 1))
        self._woke = counters.get("woke", 0.0)

    def _begin_anew(self, until: int) -> None:
        """Mark all links to be placed; ``until``: the bound of the old records, if this was interrupted before."""
        end = self._records.youngest + 1
        self._until, self._interrupted = until or end, self._records.flying_rows()
        self._records.erase_range(self._until, end)

    def _compare(self) -> None:
        """Refuse a file that keeps something else, or whose links are not all placed."""
        counters = self._records.counters
        if counters.get("anew", 0):
            raise StorageError(
                f"a new policy was placing the links in {self.path} again when it was killed: open it anew, or use "
                "another JOBDIR"
            )
        width = int(counters.get("width", 0))
        if width != self._width and not (width == 0 and self._records.is_empty()):
            raise ResumeError(
                f"{self.path} holds a crawl that keeps {_kept(width)}, but this policy needs {_kept(self._width)}; use "
                "the policy and the settings with which it began, or another JOBDIR"
            )

    def _grow(self, n_arms: int) -> None:
        """Create so many arms; no link in the file may be beyond them."""
        if len(self._order.waiting) > n_arms:
            raise LookupError(f"a link has the arm {len(self._order.waiting) - 1}, and there are {n_arms}")
        self._order.grow(n_arms)

    def _load_sleepers(self) -> None:
        """Restore the sleeping links of the file."""
        width = self._width
        columns = _COLUMNS | {"rank": "f8", "after": "f8"} | (_vector_columns(width) if width else {})
        parts = list(self._records.waiting(columns, after=self._woke))
        if not parts:
            return
        rows = np.concatenate(parts)
        vectors = _vectors(rows, width).tobytes() if width else b""
        self._order.grow(int(rows["arm"].max()) + 1)
        beds = self._sleepers.load(
            rows["key"], rows["row"], rows["host"], rows["arm"], rows["rank"], rows["after"], vectors
        )
        self._known.update_many(rows["key"].copy(), ASLEEP - beds)

    def _load_pick(self, stored: StoredPick) -> None:
        id_, number, key, host, arm, rank, record = stored
        memo, name = self._unpacked(record.memo), self._order.hosts.names[host]
        self._flying[id_] = Pick(
            id_, key, record.url, name, record.depth, arm, rank, memo, record.origin, record.method, record.payload
        )
        self._held[id_] = Held(number, number)
        self._known.set(key, FLYING)

    def _load_seen(self, to_place: KeySet) -> None:
        """Restore the last state of each key that is neither queued nor in flight nor to be placed again."""
        others = _Last([(each, block) for each in (State.PROBED, State.GIVEN_UP) for block in self._records.seen(each)])
        fetched, waiting = [], 0
        for number, keys in self._records.seen(State.FETCHED):
            others.forget(keys, number)
            fetched.append(keys)
            waiting += len(keys)
            if waiting > _PUT_AT_ONCE:
                self._fetched.update_many(np.concatenate(fetched))
                fetched, waiting = [], 0
        self._fetched.update_many(np.concatenate([_NO_KEYS, *fetched]))
        probed = KeySet()
        probed.update_many(others.keys_in(State.PROBED))
        probed.difference_update(self._known)
        probed.difference_update(to_place)
        self._known.update_many(probed.array(), np.full(len(probed), PROBED, np.int32))
        self._given_up.update_many(others.keys_in(State.GIVEN_UP))
        self._given_up.difference_update(self._known)
        self._given_up.difference_update(to_place)
        self._fetched.difference_update(self._known)
        self._fetched.difference_update(to_place)
        self._fetched.difference_update(self._given_up)


class SqliteRanked(Stored, RankedFrontier):
    """A :class:`~scrapy_focus.core.frontier.Ranked` frontier in a file; :func:`sqlite_frontier` opens one."""

    def _load_links(self) -> Iterable[tuple[NDArray[np.int64], NDArray[np.int32]]]:
        loading = Loading(self._queue)
        for part in self._records.waiting(_COLUMNS | {"rank": "f8"}, until=self._woke):
            yield part["key"], loading.add(part["row"], part["host"], part["arm"], part["rank"])
        loading.finish()


class SqliteDrawn(Stored, DrawnFrontier):
    """A :class:`~scrapy_focus.core.frontier.Drawn` frontier in a file; :func:`sqlite_frontier` opens one."""

    def __init__(self, records: SqliteRecords, width: int) -> None:
        super().__init__(records, width)
        self._width = width

    def _divisions(self) -> int:
        return sum(map(len, self._pool.divisions.values()))

    def _load_links(self) -> Iterable[tuple[NDArray[np.int64], NDArray[np.int32]]]:
        for part in self._records.waiting(_COLUMNS | _vector_columns(self._width), until=self._woke):
            vectors = _vectors(part, self._width)
            yield part["key"], self._pool.load(part["row"], part["host"], part["arm"], vectors)


def _vector_columns(width: int) -> dict[str, str]:
    """Return the SQL columns for the vectors of links, and their types."""
    return {f"coalesce(memo, zeroblob({width}))": f"S{width}", f"coalesce(length(memo), {width})": "i4"}


def _vectors(rows: NDArray[np.void], width: int) -> NDArray[np.uint8]:
    """Return the vectors of rows, shape (n, width)."""
    memo, length = _vector_columns(width)
    if (rows[length] != width).any():
        raise LookupError("a link has a vector of another width")
    return np.ascontiguousarray(rows[memo]).view(np.uint8).reshape(-1, width)


class _Together:
    """Adds keys and slots to a map, many at a time."""

    def __init__(self, put: Callable[[NDArray[np.int64], NDArray[np.int32]], None]) -> None:
        self._put = put
        self._keys: list[NDArray[np.int64]] = []
        self._slots: list[NDArray[np.int32]] = []

    def add(self, keys: NDArray[np.int64], slots: NDArray[np.int32]) -> None:
        self._keys.append(keys.copy())
        self._slots.append(slots)
        if len(self._keys) == _BATCH:
            self.finish()

    def finish(self) -> None:
        if self._keys:
            self._put(np.concatenate(self._keys), np.concatenate(self._slots))
        self._keys, self._slots = [], []


class _Last:
    """The last state of each key, for rare states."""

    def __init__(self, blocks: Iterable[tuple[State, tuple[int, NDArray[np.int64]]]]) -> None:
        blocks = list(blocks)
        keys = np.concatenate([_NO_KEYS, *(keys for _, (_, keys) in blocks)])
        lengths = [len(keys) for _, (_, keys) in blocks]
        since = np.repeat(np.array([number for _, (number, _) in blocks], np.int64), lengths)
        states = np.repeat(np.array([state for state, _ in blocks], np.int8), lengths)
        order = np.lexsort((since, keys))
        keys, since, states = keys[order], since[order], states[order]
        last = np.append(keys[1:] != keys[:-1], True)[: len(keys)]
        self._keys, self._since, self._states = keys[last], since[last], states[last]

    def forget(self, keys: NDArray[np.int64], number: int) -> None:
        """Drop keys that had another state later."""
        if not len(self._keys):
            return
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        at = at[self._keys[at] == keys]
        self._states[at[self._since[at] < number]] = State.NEW

    def keys_in(self, state: State) -> NDArray[np.int64]:
        """Return the keys that have a state, shape (n,)."""
        keys: NDArray[np.int64] = self._keys[self._states == state]
        return keys


def _kept(width: int) -> str:
    return f"vectors of width {width}" if width else "no vectors"
