"""All waiting links in this process: columns for the links, one heap for each (arm, host).

Two wishes conflict: taking the best link of an arm, and passing over busy hosts without digging through their links. So
an arm has a heap for each host, and a small heap of the hosts by their best link.
"""

from __future__ import annotations

import pickle
from array import array
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, cast

import numpy as np

from scrapy_focus.core.errors import FrontierError, ResumeError
from scrapy_focus.core.files import write_atomically
from scrapy_focus.core.types import Link, Method, Pick, Placement, State

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

FORMAT = 1


class _Arm:
    """The links of one arm.

    Every link is in the heap of its host as ``(-rank, row)``. ``tops`` holds at least the head of each heap that is not
    empty, and at most twice as many entries as there are heaps and sixteen. Both may hold entries that are stale: a row
    whose link left or moved (``stale`` counts these), a head that is no longer one, or stands there twice.
    """

    __slots__ = ("heaps", "stale", "tops")

    def __init__(self) -> None:
        self.stale = 0
        self.heaps: dict[int, list[tuple[float, int]]] = {}
        self.tops: list[tuple[float, int]] = []


class MemoryFrontier:
    """A :class:`~scrapy_focus.frontiers.base.Frontier` that lives in memory.

    About half a kilobyte a waiting link; push and pop cost O(log n). A clean stop writes it as a whole.

    A row of the columns belongs to one link from push until its heap entry has surfaced. ``_row`` maps waiting keys to
    rows, ``_known`` all others to states: they are disjoint. ``_flying`` holds the picks that ``_known`` calls FLYING.
    """

    def __init__(self) -> None:
        self._row: dict[int, int] = {}
        self._known: dict[int, int] = {}
        self._flying: dict[int, Pick] = {}
        self._next_id = 1
        self._arms: list[_Arm] = []
        self._waiting = np.zeros(16, np.int64)
        self._heads = np.full(16, -np.inf)
        self._host_ids: dict[str, int] = {}
        self._host_names: list[str] = []
        self._host_arms: list[dict[int, int]] = []  # for each host: how many links wait in each arm
        self._free: list[int] = []
        self._live = bytearray()
        self._key = array("q")
        self._rank = array("d")
        self._arm = array("i")
        self._host = array("i")
        self._origin = array("i")
        self._depth = array("i")
        self._head_first = bytearray()
        self._url: list[str] = []
        self._memo: list[NDArray[np.float32] | None] = []
        self._payload: list[bytes] = []

    @property
    def waiting(self) -> NDArray[np.int64]:
        return self._waiting[: len(self._arms)]

    @property
    def heads(self) -> NDArray[np.float64]:
        return self._heads[: len(self._arms)]

    @property
    def flying(self) -> Mapping[int, Pick]:
        return self._flying

    def __len__(self) -> int:
        return len(self._row)

    def awake(self, busy: Collection[str] = ()) -> NDArray[np.int64]:
        counts = self.waiting.copy()
        for name in busy:
            for arm, n in self._host_arms[self._host_ids[name]].items() if name in self._host_ids else ():
                counts[arm] -= n
        return counts

    def states(self, keys: Sequence[int]) -> list[State]:
        row, known = self._row, self._known
        return [State.WAITING if key in row else State(known.get(key, 0)) for key in keys]

    def push(self, links: Sequence[Link], placements: Sequence[Placement | None], *, origin: int = -1) -> int:
        before = len(self._row)
        for link, place in zip(links, placements, strict=True):
            if self._known.get(link.key) == State.FLYING:
                continue
            if place is None:
                if link.key not in self._row:
                    self._known.setdefault(link.key, State.FETCHED)
                continue
            if link.key in self._row:
                self._replace(self._row[link.key], place)
            else:
                self._known.pop(link.key, None)
                self._insert(link.key, link.url, self._host_id(link.host), link.depth, link.payload, place, origin)
        return len(self._row) - before

    def pop(self, arm: int, busy: Collection[str] = ()) -> Pick | None:
        row = self._best(arm, busy)
        return None if row is None else self._fly(row)

    def take(self, key: int) -> Pick | None:
        row = self._row.get(key)
        return None if row is None else self._fly(row)

    def sample(
        self, arm: int, k: int, rng: np.random.Generator, busy: Collection[str] = ()
    ) -> list[tuple[Link, Placement]]:
        if not 0 <= arm < len(self._arms):
            return []
        shut = {self._host_ids[name] for name in busy if name in self._host_ids}
        heaps = [heap for host, heap in self._arms[arm].heaps.items() if host not in shut]
        ends = np.cumsum([len(heap) for heap in heaps])
        available = int(self._waiting[arm]) - sum(self._host_arms[host].get(arm, 0) for host in shut)
        if available <= k:
            rows = [row for heap in heaps for _, row in heap if self._live[row]]
            return [self._view(rows[i]) for i in rng.permutation(len(rows))]
        chosen: dict[int, None] = {}
        while len(chosen) < k:  # stale entries are drawn and thrown back
            for draw in rng.integers(0, int(ends[-1]), size=2 * k):
                heap = int(np.searchsorted(ends, draw, side="right"))
                row = heaps[heap][int(draw) - (int(ends[heap - 1]) if heap else 0)][1]
                if self._live[row]:
                    chosen[row] = None
                if len(chosen) == k:
                    break
        return [self._view(row) for row in chosen]

    def scan(self, arm: int) -> Iterator[tuple[Link, Placement]]:
        if 0 <= arm < len(self._arms):
            for heap in self._arms[arm].heaps.values():
                for _, row in heap:
                    if self._live[row]:
                        yield self._view(row)

    def move(self, keys: Sequence[int], placements: Sequence[Placement | None]) -> None:
        for key, place in zip(keys, placements, strict=True):
            row = self._row.get(key)
            if row is None:
                continue
            if place is None:
                self._remove(row)
                self._known[key] = State.FETCHED
            else:
                self._replace(row, place)

    def settle(self, pick: Pick) -> None:
        self._land(pick)
        self._known[pick.key] = State.PROBED if pick.method == "HEAD" else State.FETCHED

    def release(self, pick: Pick) -> None:
        self._land(pick)
        del self._known[pick.key]
        place = Placement(pick.arm, pick.rank, pick.memo, pick.method)
        self._insert(pick.key, pick.url, self._host_id(pick.host), pick.depth, pick.payload, place, pick.origin)

    def checkpoint(self, folder: Path) -> None:
        write_atomically(folder / "frontier.pickle", pickle.dumps((FORMAT, self.__dict__), protocol=5))

    @classmethod
    def resume(cls, folder: Path) -> MemoryFrontier:
        """Return the frontier that was written to a folder; what was in flight waits again.

        Raises
        ------
        ResumeError
            If there is no frontier in the folder, or one of another format.
        """
        path = folder / "frontier.pickle"
        try:
            version, state = pickle.loads(path.read_bytes())  # noqa: S301 (the user's own job directory)
        except Exception as error:
            raise ResumeError(f"{path} cannot be read ({error}); remove the folder {folder} to start afresh") from error
        if version != FORMAT:
            raise ResumeError(f"{path} has format {version}, this version of scrapy_focus reads {FORMAT}")
        frontier = cls()
        frontier.__dict__.update(state)
        for pick in list(frontier._flying.values()):
            frontier.release(pick)
        return frontier

    def check(self) -> None:
        live = [row for row in range(len(self._url)) if self._live[row]]
        seen: dict[int, int] = {}
        for number, arm in enumerate(self._arms):
            for host, heap in arm.heaps.items():
                for negative, row in heap:
                    if self._live[row]:
                        _require(row not in seen, f"link {self._url[row]} stands in two places")
                        seen[row] = number
                        _require(self._arm[row] == number, f"link {self._url[row]} is in another arm than it says")
                        _require(self._host[row] == host, f"link {self._url[row]} is under another host than it says")
                        _require(-negative == self._rank[row], f"link {self._url[row]} has another rank than it says")
            waiting = sum(arms.get(number, 0) for arms in self._host_arms)
            _require(
                waiting == self._waiting[number], f"arm {number} counts {self._waiting[number]} links, not {waiting}"
            )
            stale = sum(not self._live[row] for heap in arm.heaps.values() for _, row in heap)
            _require(stale == arm.stale, f"arm {number} counts {arm.stale} stale entries, not {stale}")
            ranks = [self._rank[row] for row in live if self._arm[row] == number]
            _require(len(ranks) == waiting, f"arm {number} holds {len(ranks)} links, not {waiting}")
            _require(
                max(ranks, default=-np.inf) == self._heads[number], f"the head of arm {number} is not its best link"
            )
        _require(len(seen) == len(live) == len(self._row), "the index and the heaps hold different links")
        _require(not self._row.keys() & self._known.keys(), "a link waits and is known otherwise at once")
        flying = {key for key, state in self._known.items() if state == State.FLYING}
        _require(flying == {pick.key for pick in self._flying.values()}, "the picks in flight and the states differ")

    def close(self) -> None:
        pass

    def _host_id(self, name: str) -> int:
        host = self._host_ids.get(name)
        if host is None:
            host = self._host_ids[name] = len(self._host_names)
            self._host_names.append(name)
            self._host_arms.append({})
        return host

    def _insert(self, key: int, url: str, host: int, depth: int, payload: bytes, place: Placement, origin: int) -> None:
        arm, rank, memo, method = place
        if arm >= len(self._arms):
            self._grow(arm + 1)
        if self._free:
            row = self._free.pop()
            self._key[row], self._rank[row], self._arm[row], self._host[row] = key, rank, arm, host
            self._origin[row], self._depth[row] = origin, depth
            self._url[row], self._memo[row], self._payload[row] = url, memo, payload
            self._head_first[row], self._live[row] = method == "HEAD", 1
        else:
            row = len(self._url)
            self._key.append(key)
            self._rank.append(rank)
            self._arm.append(arm)
            self._host.append(host)
            self._origin.append(origin)
            self._depth.append(depth)
            self._url.append(url)
            self._memo.append(memo)
            self._payload.append(payload)
            self._head_first.append(method == "HEAD")
            self._live.append(1)
        self._row[key] = row
        entry = self._arms[arm]
        heap = entry.heaps.get(host)
        if heap is None:
            heap = entry.heaps[host] = []
        heappush(heap, (-rank, row))
        if heap[0][1] == row:
            heappush(entry.tops, (-rank, host))
            _trim(entry)
        counts = self._host_arms[host]
        counts[arm] = counts.get(arm, 0) + 1
        self._waiting[arm] += 1
        self._heads[arm] = max(self._heads[arm], rank)

    def _grow(self, n_arms: int) -> None:
        self._arms.extend(_Arm() for _ in range(n_arms - len(self._arms)))
        if n_arms > len(self._waiting):
            size = max(n_arms, 2 * len(self._waiting))
            self._waiting = np.concatenate([self._waiting, np.zeros(size - len(self._waiting), np.int64)])
            self._heads = np.concatenate([self._heads, np.full(size - len(self._heads), -np.inf)])

    def _best(self, arm: int, busy: Collection[str] = ()) -> int | None:
        """Return the row of the best link of an arm on a host that is not busy."""
        if not 0 <= arm < len(self._arms):
            return None
        entry = self._arms[arm]
        passed: dict[int, float] = {}
        found = None
        while entry.tops:
            top = entry.tops[0]
            heap = self._clean(entry, top[1])
            if heap is None or heap[0][0] != top[0]:
                heappop(entry.tops)
            elif self._host_names[top[1]] in busy:
                passed[top[1]] = heappop(entry.tops)[0]
            else:
                found = heap[0][1]
                break
        for host, negative in passed.items():
            heappush(entry.tops, (negative, host))
        return found

    def _clean(self, entry: _Arm, host: int) -> list[tuple[float, int]] | None:
        """Drop stale entries from the top of a host's heap, so that its head is a waiting link."""
        heap = entry.heaps.get(host)
        if heap is None:
            return None
        dropped = False
        while heap and not self._live[heap[0][1]]:
            self._free.append(heappop(heap)[1])
            entry.stale -= 1
            dropped = True
        if not heap:
            del entry.heaps[host]
            return None
        if dropped:
            heappush(entry.tops, (heap[0][0], host))
        return heap

    def _fly(self, row: int) -> Pick:
        arm, host, key = self._arm[row], self._host[row], self._key[row]
        method: Method = "HEAD" if self._head_first[row] else "GET"
        pick = Pick(
            self._next_id, key, self._url[row], self._host_names[host], self._depth[row], arm, self._rank[row],
            self._memo[row], self._origin[row], method, self._payload[row],
        )  # fmt: skip
        self._next_id += 1
        self._remove(row)
        self._known[key] = State.FLYING
        self._flying[pick.id] = pick
        return pick

    def _remove(self, row: int) -> None:
        arm, host = self._arm[row], self._host[row]
        self._live[row] = 0
        del self._row[self._key[row]]
        self._url[row], self._memo[row], self._payload[row] = "", None, b""
        self._waiting[arm] -= 1
        counts = self._host_arms[host]
        if counts[arm] == 1:
            del counts[arm]
        else:
            counts[arm] -= 1
        entry = self._arms[arm]
        entry.stale += 1
        if entry.stale > 2 * self._waiting[arm]:
            self._compact(entry)
        if not self._waiting[arm]:
            self._heads[arm] = -np.inf
        elif self._rank[row] == self._heads[arm]:
            self._heads[arm] = self._rank[cast("int", self._best(arm))]

    def _compact(self, entry: _Arm) -> None:
        """Rebuild the heaps of an arm without stale entries: re-ranking everything again and again stays flat."""
        for host, heap in list(entry.heaps.items()):
            self._free.extend(row for _, row in heap if not self._live[row])
            heap[:] = [item for item in heap if self._live[item[1]]]
            heapify(heap)
            if not heap:
                del entry.heaps[host]
        _rebuild_tops(entry)
        entry.stale = 0

    def _replace(self, row: int, place: Placement) -> None:
        key, url, host, depth = self._key[row], self._url[row], self._host[row], self._depth[row]
        payload, origin = self._payload[row], self._origin[row]
        self._remove(row)
        self._insert(key, url, host, depth, payload, place, origin)

    def _land(self, pick: Pick) -> None:
        if self._flying.pop(pick.id, None) is None:
            raise FrontierError(f"pick {pick.id} ({pick.url}) is not in flight: it was settled or released already")

    def _view(self, row: int) -> tuple[Link, Placement]:
        url, host, depth = self._url[row], self._host_names[self._host[row]], self._depth[row]
        link = Link(url, self._key[row], host, depth, "", "", "", State.WAITING, self._payload[row])
        method: Method = "HEAD" if self._head_first[row] else "GET"
        return link, Placement(self._arm[row], self._rank[row], self._memo[row], method)


def _trim(entry: _Arm) -> None:
    """Where better heads come and go, the head behind them is noted again and again: forget all but one."""
    if len(entry.tops) > 2 * len(entry.heaps) + 16:
        _rebuild_tops(entry)


def _rebuild_tops(entry: _Arm) -> None:
    entry.tops = [(heap[0][0], host) for host, heap in entry.heaps.items()]
    heapify(entry.tops)


def _require(condition: object, what: str) -> None:
    if not condition:
        raise FrontierError(f"the frontier is inconsistent: {what}")
