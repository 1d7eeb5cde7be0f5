"""All waiting links in one SQLite file, their order in memory; the file holds the last checkpoint and nothing newer.

Three wishes conflict: tens of millions of links, a crawl that never waits for a disk, and a file in which everything
belongs to one instant. So choices are made in memory, a link is read when it is chosen, and changes stay in memory until a
checkpoint hands them to a thread that writes them as one transaction.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np

from scrapy_focus.core.errors import FocusError, ResumeError, StorageError
from scrapy_focus.core.types import Pick, State
from scrapy_focus.frontiers.drawn.pool import Pool
from scrapy_focus.frontiers.indexed import FLYING, PROBED, Record
from scrapy_focus.frontiers.keys import KeySet
from scrapy_focus.frontiers.ranked.load import Loading
from scrapy_focus.frontiers.sqlite.database import open_database, storage_error
from scrapy_focus.frontiers.sqlite.writer import Changes, Writer
from scrapy_focus.frontiers.vectors import VectorFrontier

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link, Method
    from scrapy_focus.frontiers.indexed import Memo
    from scrapy_focus.frontiers.ranked.queue import Index
    from scrapy_focus.frontiers.sqlite.writer import Moved

_LOADED = {"row": "i4", "key": "i8", "host": "i4", "arm": "i4"}
_AT_ONCE = 1 << 18  # rows that are loaded together
_BATCH = 8  # times as many keys that are put into order together: a million takes little longer than a thousand
_ASKED = 256  # rows of one question
_NOTHING = np.empty(0, np.int64)
_FIELDS = "row, key, url, depth, origin, payload, memo, method"


class SqliteFrontier(VectorFrontier):
    """A :class:`~scrapy_focus.core.frontier.Frontier` that lives on, in one file.

    About 65 bytes of memory a waiting link, or 30 and its vector where vectors are kept, and 50 bytes of disk beside its URL and payload; 8 bytes of both for each that
    was fetched.

    Which width vectors have is in the file, and which arms they had first; divisions are not.

    Opened again it is as it was at the last :meth:`checkpoint`: what was in flight then is in ``flying``, and is to be
    settled or released. A record is in ``_fresh`` if it came or moved since the last checkpoint, in ``_pending`` if that is
    being written, oldest first, and in the file otherwise; the newest counts.

    Parameters
    ----------
    path
        The file, made if it is not there; beside it SQLite keeps ``-wal`` and ``-shm`` while it is open. Without a path, a
        temporary file that is removed by :meth:`close`.

    Attributes
    ----------
    notes
        What was given to the last checkpoint before it was opened.

    Raises
    ------
    ResumeError
        If the file has another format.
    StorageError
        If it cannot be read or written; nothing is changed then. Every method that reads or writes may raise it later.
    """

    _ages: ClassVar[bool] = False

    def __init__(self, path: Path | None = None) -> None:
        super().__init__()
        self._folder = None
        if path is None:
            self._folder = TemporaryDirectory(prefix="scrapy_focus-", ignore_cleanup_errors=True)
            path = Path(self._folder.name) / "frontier.sqlite"
        self.path = path
        self.notes: dict[str, bytes] = {}
        self._fresh = Changes()
        self._pending: deque[Changes] = deque()
        self._next_row = 1
        self._stored_hosts = 0
        self._closed = False
        self._told = False
        self._reader, writer = open_database(path)
        self._writer = Writer(writer, path)
        try:
            self._load()
        except BaseException as error:
            self._writer.close()
            self._reader.close()
            if isinstance(error, FocusError) or not isinstance(error, Exception):
                raise
            raise storage_error(path, error) from error

    def keep_vectors(self, width: int) -> None:
        if self._was_stored and (self._pool is None or self._pool.width != width):
            kept = f"vectors of width {self._pool.width}" if self._pool is not None else "no vectors"
            raise ResumeError(
                f"{self.path} holds a crawl that keeps {kept}, now it should keep vectors of width {width}; go on with the "
                "policy and the settings with which it began, or use another JOBDIR"
            )
        super().keep_vectors(width)

    @property
    def changed(self) -> int:
        """How many records came, moved or left since the last checkpoint; they are in memory."""
        return len(self._fresh)

    @property
    def writing(self) -> bool:
        """Whether a checkpoint is still being written."""
        return self._writer.error is None and any(not changes.finished.is_set() for changes in self._pending)

    def checkpoint(self, notes: Mapping[str, bytes] | None = None, then: Callable[[], None] | None = None) -> None:
        """Let everything be written as it is now, by another thread; returns at once.

        Parameters
        ----------
        notes
            To be kept in the file under their names; those of other names stay.
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
        changes.hosts = list(enumerate(self._index.hosts[self._stored_hosts :], self._stored_hosts))
        self._stored_hosts = len(self._index.hosts)
        changes.flying = [(pick.id, self._held[pick.id], pick.chance) for pick in self._flying.values()]
        changes.counters = {"id": self._next_id, "row": self._next_row, "arms": len(self._index.waiting)}
        if self._pool is not None:
            changes.counters["width"] = self._pool.width
        changes.notes, changes.then = dict(notes or {}), then
        self._pending.append(changes)
        self._writer.hand(changes)

    def flush(self) -> None:
        """Wait until all checkpoints are on disk.

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
        """Finish the checkpoints that are being written, and close the file; what came afterwards is not in it.

        Raises
        ------
        StorageError
            If a checkpoint could not be written, and nobody was told yet.
        """
        if self._closed:
            return
        self._closed = True
        super().close()
        self._writer.close()
        self._reader.close()
        if self._folder is not None:
            self._folder.cleanup()
        if not self._told:
            self._fail_if_failed()

    def _fail_if_failed(self) -> None:
        if self._writer.error is not None:
            self._told = True
            raise self._writer.error

    def _forget_committed(self) -> None:
        while self._pending and self._pending[0].committed and self._pending[0].finished.is_set():
            self._pending.popleft()

    def _store(self, link: Link, host: int, origin: int, arm: int, rank: float, memo: Memo, method: Method) -> int:
        number = self._next_row
        self._next_row += 1
        self._fresh.rows[number] = (
            link.key, link.url, host, link.depth, origin, link.payload, arm, rank, method, _blob(memo),
        )  # fmt: skip
        return number

    def _replace(self, number: int, arm: int, rank: float, memo: Memo, method: Method) -> None:
        row = self._fresh.rows.get(number)
        if row is None:
            self._fresh.moved[number] = arm, rank, method, _blob(memo)
        else:
            self._fresh.rows[number] = (*row[:6], arm, rank, method, _blob(memo))

    def _age(self, number: int) -> int:
        return number

    def _erase(self, number: int) -> None:
        if self._fresh.rows.pop(number, None) is None:
            self._fresh.moved.pop(number, None)
            self._fresh.gone.append(number)

    def _note(self, key: int, state: State) -> None:
        self._fresh.seen[key] = state

    def _read(self, numbers: Sequence[int]) -> list[Record]:
        found: dict[int, Record] = {}
        moved: dict[int, Moved] = {}
        for number in numbers:
            self._look(number, found, moved)
        missing = list(dict.fromkeys(number for number in numbers if number not in found))
        for start in range(0, len(missing), _ASKED):
            self._ask(missing[start : start + _ASKED], found)
        for number, (_, _, method, memo) in moved.items():
            found[number] = found[number]._replace(memo=self._vector(memo), method=method)
        return [found[number] for number in numbers]

    def _look(self, number: int, found: dict[int, Record], moved: dict[int, Moved]) -> None:
        """Find what is known about a record in memory."""
        for changes in (self._fresh, *reversed(self._pending)):
            if number in changes.rows:
                key, url, _, depth, origin, payload, _, _, method, memo = changes.rows[number]
                found[number] = Record(key, url, depth, origin, payload, self._vector(memo), method)
                return
            if number in changes.moved:
                moved.setdefault(number, changes.moved[number])

    def _ask(self, numbers: Sequence[int], found: dict[int, Record]) -> None:
        """Find records in the file."""
        marks = ", ".join("?" * len(numbers))
        try:
            # all at once: a statement that is not finished would keep the log from being emptied
            rows = self._reader.execute(f"SELECT {_FIELDS} FROM links WHERE row IN ({marks})", numbers).fetchall()  # noqa: S608
        except sqlite3.Error as error:
            raise storage_error(self.path, error) from error
        for number, key, url, depth, origin, payload, memo, method in rows:
            found[number] = Record(key, url, depth, origin, payload, self._vector(memo), method)
        if len(rows) < len(numbers):
            missing = next(number for number in numbers if number not in found)
            raise storage_error(self.path, LookupError(f"row {missing} of its links is missing"))

    def _load(self) -> None:
        """Make everything in memory of what is in the file."""
        ask = self._reader.execute
        self.notes = dict(ask("SELECT name, value FROM notes"))
        counters = dict(ask("SELECT name, value FROM counters"))
        if (width := counters.get("width", 0)) > 0:
            self._use(Pool(width, ages=self._ages))
        for host, name in ask("SELECT host, name FROM hosts ORDER BY host"):
            if self._index.host(name) != host:
                raise LookupError(f"host {host} is not where it should be")
        self._stored_hosts = len(self._index.hosts)
        self._next_id, self._next_row = counters.get("id", 1), counters.get("row", 1)
        if self._pool is None:
            self._load_links(cast("Index", self._index))
        else:
            self._load_pool(self._pool)
        self._index.grow(counters.get("arms", 0))
        self._load_flying()
        self._load_seen()
        self._was_stored = bool(len(self._index) or self._flying or counters.get("width"))

    def _load_links(self, index: Index) -> None:
        loading = Loading(index)
        self._load_rows({"rank": "f8"}, lambda part: loading.add(part["row"], part["host"], part["arm"], part["rank"]))
        loading.finish()

    def _load_pool(self, pool: Pool) -> None:
        width = pool.width
        memo, length = f"coalesce(memo, zeroblob({width}))", f"coalesce(length(memo), {width})"

        def add(part: NDArray[np.void]) -> NDArray[np.int32]:
            if (part[length] != width).any():
                raise LookupError("a link has a vector of another width")
            vectors = np.ascontiguousarray(part[memo]).view(np.uint8).reshape(-1, width)
            return pool.load(part["row"], part["host"], part["arm"], vectors)

        self._load_rows({memo: f"S{width}", length: "i4"}, add)

    def _load_rows(self, more: dict[str, str], add: Callable[[NDArray[np.void]], NDArray[np.int32]]) -> None:
        """Give what waits to an index, oldest first, with some more columns, and keep the slots that it returns."""
        kinds = _LOADED | more
        rows = self._reader.execute(
            f"SELECT {', '.join(kinds)} FROM links WHERE row NOT IN (SELECT row FROM flying) ORDER BY row"  # noqa: S608
        )
        kind = np.dtype(list(kinds.items()))
        keys, slots = [], []
        while len(part := np.fromiter(islice(rows, _AT_ONCE), kind)):
            if part["host"].min() < 0 or part["host"].max() >= self._stored_hosts or part["arm"].min() < 0:
                raise LookupError("a link has a host that is not there, or no arm")
            keys.append(part["key"].copy())
            slots.append(add(part))
            if len(keys) == _BATCH:
                self._known.update_many(np.concatenate(keys), np.concatenate(slots))
                keys, slots = [], []
        if keys:
            self._known.update_many(np.concatenate(keys), np.concatenate(slots))

    def _load_flying(self) -> None:
        rows = self._reader.execute(
            f"SELECT flying.id, chance, host, arm, rank, {_FIELDS.replace('row', 'flying.row')} "  # noqa: S608
            "FROM flying LEFT JOIN links ON flying.row = links.row ORDER BY flying.id"
        )
        for id_, chance, host, arm, rank, number, key, url, depth, origin, payload, memo, method in rows:
            if key is None:
                raise LookupError(f"row {number} of its links is missing, which was in flight")
            name = self._index.hosts[host]
            self._flying[id_] = Pick(
                id_, key, url, name, depth, arm, rank, self._vector(memo), origin, method, payload, chance
            )
            self._held[id_] = number
            self._known.set(key, FLYING)

    def _load_seen(self) -> None:
        """Take the last state of each key that neither waits nor flies."""
        probes = [(number, np.frombuffer(blob, np.int64)) for number, blob in self._blobs(State.PROBED)]
        keys = np.concatenate([_NOTHING, *(keys for _, keys in probes)])
        since = np.repeat([number for number, _ in probes], [len(keys) for _, keys in probes])
        order = np.lexsort((since, keys))
        keys, since = keys[order], since[order]
        last = np.append(keys[1:] != keys[:-1], True)[: len(keys)]
        keys, since = keys[last], since[last]
        fetched_at = np.full(len(keys), -1)
        batch = [_NOTHING]
        for number, blob in self._blobs(State.FETCHED):
            batch.append(np.frombuffer(blob, np.int64))
            if len(keys):
                at = np.minimum(np.searchsorted(keys, batch[-1]), len(keys) - 1)
                fetched_at[at[keys[at] == batch[-1]]] = number
            if sum(map(len, batch)) > _AT_ONCE:
                self._fetched.update_many(np.concatenate(batch))
                batch = [_NOTHING]
        self._fetched.update_many(np.concatenate(batch))
        probed = KeySet()
        probed.update_many(keys[since > fetched_at])
        probed.difference_update(self._known)
        self._known.update_many(probed.array(), np.full(len(probed), PROBED, np.int32))
        self._fetched.difference_update(self._known)

    def _vector(self, blob: bytes | None) -> NDArray[np.float32] | None:
        """Return a memo as it is stored."""
        if self._pool is None:
            return None if blob is None else np.frombuffer(blob, np.float32).copy()
        vector = np.frombuffer(blob or bytes(self._pool.width), np.uint8)
        if len(vector) != self._pool.width:
            raise LookupError("a link has a vector of another width")
        return vector.astype(np.float32)

    def _blobs(self, state: State) -> sqlite3.Cursor:
        return self._reader.execute("SELECT number, keys FROM seen WHERE state = ? ORDER BY number", (int(state),))


def _blob(memo: Memo) -> bytes | None:
    return memo if memo is None or isinstance(memo, bytes) else np.asarray(memo, np.float32).tobytes()
