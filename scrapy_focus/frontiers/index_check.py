"""Whether an index is in order: every invariant of ``index`` and ``runs``, one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.core.errors import FrontierError
from scrapy_focus.frontiers.ranked.queue import NOTED, QUEUED

if TYPE_CHECKING:
    from array import array

    from scrapy_focus.frontiers.drawn.chunks import Members
    from scrapy_focus.frontiers.drawn.pool import Pool
    from scrapy_focus.frontiers.ranked.queue import Index
    from scrapy_focus.frontiers.ranked.runs import Runs


def check_index(index: Index) -> None:
    """Raise FrontierError if an invariant does not hold; linear."""
    waiting = [slot for slot in range(len(index.pair)) if index.pair[slot] >= 0]
    require(len(waiting) == len(index), f"{len(index)} links are counted, {len(waiting)} wait")
    found = [slot for pair in range(len(index._queues)) for slot in _check_pair(index, pair)]
    require(sorted(found) == waiting, "a link stands in no queue, or in two")
    pairs: list[list[int]] = [[] for _ in index._arms]
    for pair, arm in enumerate(index.pair_arm):
        if index._pair_head[pair] >= 0:
            pairs[arm].append(pair)
    for arm, its_pairs in enumerate(pairs):
        _check_arm(index, arm, its_pairs)
    unused = {slot for slot, flags in enumerate(index._flags) if not flags and index.pair[slot] < 0}
    require(unused == set(index._free) and len(unused) == len(index._free), "the free slots are not those that are")


def _check_pair(index: Index, pair: int) -> list[int]:
    slots, count, head = index._slots(pair), index._pair_count[pair], index._pair_head[pair]
    where = f"the queue of {index.hosts[index.pair_host[pair]]} in arm {index.pair_arm[pair]}"
    ranks = [index.rank[slot] for slot in slots]
    require(len(slots) == count, f"{where} counts {count} links, not {len(slots)}")
    require(all(index.pair[slot] == pair for slot in slots), f"{where} holds a link of another")
    require(head in slots if slots else head < 0, f"the head of {where} does not wait in it")
    require(not slots or index.rank[head] == max(ranks), f"the head of {where} is not its best link")
    require(head < 0 or index._flags[head] & NOTED, f"the head of {where} is not noted")
    queue = index._queues[pair]
    if queue is None:
        require(ranks == sorted(ranks, reverse=True), f"{where} is not in order")
        return slots
    stale = sum(index.pair[slot] < 0 for slot in queue)
    require(stale == queue.stale, f"{where} counts {queue.stale} stale entries, not {stale}")
    best = queue.best(index.rank)
    require(best >= 0 and index.rank[best] == index.rank[head], f"the head of {where} is not as good as its last entry")
    require(all(index._flags[slot] & QUEUED for slot in queue), f"{where} has an entry without a flag")
    _check_runs(queue, index.rank)
    return slots


def _check_arm(index: Index, number: int, pairs: list[int]) -> None:
    arm, count = index._arms[number], index._waiting[number]
    waiting = sum(index._pair_count[pair] for pair in pairs)
    require(waiting == count, f"arm {number} counts {count} links, not {waiting}")
    best = max((index.rank[index._pair_head[pair]] for pair in pairs), default=-np.inf)
    require(best == index._heads[number], f"the head of arm {number} is not its best link")
    require(len(pairs) == arm.pairs, f"arm {number} counts {arm.pairs} hosts, not {len(pairs)}")
    tops = list(arm.tops)
    stale = sum(index.pair[slot] < 0 or not index._is_head(slot) for slot in tops)
    require(len(set(tops)) == len(tops), f"a head of arm {number} is noted twice")
    require(all(index._flags[slot] & NOTED for slot in tops), f"arm {number} notes a head without a flag")
    require(len(tops) - stale == arm.pairs, f"arm {number} does not note all of its heads")
    require(stale == arm.tops.stale, f"arm {number} counts {arm.tops.stale} stale heads, not {stale}")
    _check_runs(arm.tops, index.rank)
    require(len(arm.members) == count, f"arm {number} has {len(arm.members)} members, not {count}")
    for place, slot in enumerate(arm.members):
        require(index._place[slot] == place, f"a member of arm {number} stands elsewhere than it says")
        require(index.pair_arm[index.pair[slot]] == number, f"a member of arm {number} is in another")


def check_pool(pool: Pool) -> None:
    """Raise FrontierError if an invariant of a pool does not hold; linear."""
    n = len(pool.record)
    require(len(pool._arm) == len(pool._host) == len(pool.age) == n, "the columns have other lengths")
    require(len(pool._vectors) == n * pool.width, "the vectors are not one for each slot")
    waiting = [slot for slot in range(n) if pool.waits(slot)]
    require(len(waiting) == len(pool), f"{len(pool)} links are counted, {len(waiting)} wait")
    require(sorted(pool._free) == sorted({*range(n)} - {*waiting}), "the free slots are not those that are")
    counts = np.bincount([pool._host[slot] for slot in waiting], minlength=len(pool.hosts))
    require(np.array_equal(counts, pool.host_waiting), "the counts of the hosts are not those of their links")
    found = []
    for arm, members in enumerate(pool._arms):
        slots = members.slots().tolist()
        found += slots
        require(len(slots) == pool.waiting[arm], f"arm {arm} counts {pool.waiting[arm]} links, not {len(slots)}")
        require(all(pool.arm(slot) == arm for slot in slots), f"a member of arm {arm} is in another")
        _check_members(members, pool, f"arm {arm}")
        _check_scarce(pool, arm, slots)
    require(sorted(found) == waiting, "a link stands in no arm, or in two")
    if pool._flat is not None:
        lengths = [len(chunk) for members in pool._arms for chunk in members.chunks]
        require(list(pool._flat[1]) == lengths, "the chunks have other lengths than they say")


def _check_members(members: Members, pool: Pool, where: str) -> None:
    ages = [pool.age[slot] for slot in members.slots()]
    require(ages == sorted(set(ages)), f"the members of {where} are not in order")
    require(all(age <= members.last for age in ages), f"a member of {where} is younger than the youngest")
    require(len(members.lows) == len(members.chunks), f"{where} has other bounds than chunks")
    for at, low in enumerate(members.lows):
        its_ages = [pool.age[slot] for slot in members.chunk(at)]
        require(its_ages and its_ages[0] >= low, f"a chunk of {where} begins before its bound, or is empty")
        require(
            not at or pool.age[members.chunk(at - 1)[-1]] < low, f"a chunk of {where} ends behind the bound of the next"
        )


def _check_scarce(pool: Pool, arm: int, slots: list[int]) -> None:
    scarce = pool._scarce.get(arm)
    if scarce is None:
        return
    closed = pool._closed
    require(closed is not None, "nobody knows which hosts were closed")
    unclosed = [s for s in slots if closed is None or pool._host[s] >= len(closed) or not closed[pool._host[s]]]
    if scarce.kept is not None:
        _check_members(scarce.kept, pool, f"what is left of arm {arm}")
        kept = scarce.kept.slots().tolist()
        require({*unclosed} <= {*kept} <= {*slots}, f"what is left of arm {arm} is not what is open")
    if scarce.hosts is not None:
        require({pool._host[s] for s in unclosed} <= scarce.hosts, f"a host of arm {arm} is not noted")


def _check_runs(runs: Runs, rank: array[float]) -> None:
    for run in [runs.hot, *(run for _, _, run in runs.heap)]:
        ranks = [rank[slot] for slot in run]
        require(ranks == sorted(ranks), "a run is not in order")
    require(all(run and key == -rank[run[-1]] for key, _, run in runs.heap), "the heap of a queue has other ranks")


def require(condition: object, what: str) -> None:
    """Raise FrontierError where something does not hold."""
    if not condition:
        raise FrontierError(f"the frontier is inconsistent: {what}")
