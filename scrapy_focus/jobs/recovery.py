"""Resumes a stored crawl: restores its last checkpoint, and applies every event since once more.

External facts (which link was fetched, its outcome, its reward) are read from the journal. The policy's reactions
(where links are placed, what was learned) result again from the same events, so no policy has to support this. If a
policy chooses differently the second time, for example because it reads a clock, the recorded facts count.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from scrapy_focus.core.events import Added, Picked
from scrapy_focus.core.printable import printable_logger
from scrapy_focus.core.types import State
from scrapy_focus.jobs.records import event_of
from scrapy_focus.jobs.snapshots import POLICY, STATE, learned_by_goal, policy_of, snapshot_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from scrapy_focus.core.crawl_state import CrawlState
    from scrapy_focus.core.frontier import Drawn, Frontier, Ranked
    from scrapy_focus.core.types import Link, Pick
    from scrapy_focus.frontiers.sqlite.frontier import Stored
    from scrapy_focus.jobs.journal import Record
    from scrapy_focus.jobs.pickles import Classes

logger = printable_logger(__name__)


def recover(
    crawl: CrawlState,
    stored: Stored,
    notes: Mapping[str, bytes],
    state: Mapping[str, Any],
    records: Iterable[Record],
    *,
    classes: Classes,
) -> bool:
    """Bring a new crawl to the state of a stored one; picks in flight then are in flight again.

    Parameters
    ----------
    crawl
        The state of the new crawl, whose frontier is ``stored``.
    stored
        The frontier as it was at the last checkpoint.
    notes, state
        Notes and state of the checkpoint, see :mod:`~scrapy_focus.jobs.snapshots`.
    records
        The events since, see :mod:`~scrapy_focus.jobs.records`.
    classes
        The classes that the policy may contain, see :func:`~scrapy_focus.jobs.snapshots.classes_of`.

    Returns
    -------
    bool
        Whether a checkpoint should follow at once: the policy is new, or the decision log is another file.

    Raises
    ------
    ResumeError
        If what the policy learned cannot be read.
    StorageError
        If the files cannot be read.
    """
    log, mark = crawl.decisions.log, state["log"]
    is_cut = log is not None and mark is not None and log.cut(*mark)
    crawl.decisions.log = log if is_cut else None  # events must not be written again to the crawl's own log
    led = Led(crawl.frontier)
    crawl.choices.frontier = cast("Frontier", led)
    is_new = POLICY not in notes
    if is_new:
        _begin_anew(crawl, stored, notes, state, led)
    else:
        folder = stored.path.parent
        policy = policy_of(notes, state, crawl.guard.policy, folder, classes, crawl.mission.topic)
        crawl.apply(snapshot_of(state, policy, learned_by_goal(notes, folder, classes)))
        crawl.guard.policy.attach(cast("Frontier", led))
    choices = 0
    for record in records:
        event = event_of(record, crawl.picks)
        if isinstance(event, Picked):
            choices += 1
            led.lead(event.key, event.id)
        crawl.apply(event)
        led.let_go()
    crawl.choices.frontier = crawl.guard.policy.frontier = led.frontier
    if crawl.choices.otherwise:
        logger.warning(
            "%s made %d of the last %d choices differently when they were repeated: it depends on more than "
            "its inputs and self.rng. The crawl continues from what was fetched; what it learned may differ slightly",
            type(crawl.guard.policy).__qualname__, crawl.choices.otherwise, choices,
        )  # fmt: skip
    crawl.decisions.log = log
    return is_new or (log is not None and not is_cut)


def _begin_anew(
    crawl: CrawlState, stored: Stored, notes: Mapping[str, bytes], state: Mapping[str, Any], led: Led
) -> None:
    """Have a new policy place all links of a crawl as seeds, and choose the picks in flight.

    It is used after ``focus check`` dropped the old policy. Links are placed in the order in which they were found,
    some tens of thousands at a time, and are stored with the same notes: after a kill meanwhile, this starts again,
    with the same links and the same randomness.
    """
    policy = crawl.guard.policy
    crawl.apply(snapshot_of(state, policy))
    selected = crawl.counts["selected"]
    policy.open(cast("Frontier", led), np.random.default_rng(zlib.crc32(notes[STATE])), crawl.mission)
    keys = set(stored.interrupted.values())
    interrupted: dict[int, Link] = {}
    for links in stored.stored():
        interrupted.update((link.key, link) for link in links if link.key in keys)
        crawl.apply(Added(links, None, state["at"]))
        stored.checkpoint(notes)
        stored.flush()
    for pick_id, key in stored.interrupted.items():
        led.lead(key, pick_id)
        link = interrupted[key]
        crawl.apply(Picked(pick_id, key, (), state["at"], (link.url, link.host, link.depth, link.payload)))
        led.let_go()
    crawl.counts["selected"], crawl.choices.otherwise = selected, 0
    logger.warning("the policy starts to learn again: it placed %d links", len(stored) + len(stored.flying))


class Led:
    """A frontier that returns one given link, whichever is asked for; otherwise like the frontier that it wraps.

    A repeated crawl is led through its choices in this way. It applies to one pick, until :meth:`let_go`.
    ----------
    frontier
        The wrapped frontier, of either order.
    """

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier
        self._goal: tuple[int, int] | None = None  # key, id
        self._led: tuple[int, int] | None = None  # the goal, once it was returned

    def lead(self, key: int, pick_id: int) -> None:
        """Return this link, if it is queued, under this id when the next one is taken."""
        self._goal = key, pick_id

    def let_go(self) -> None:
        """Lead no more."""
        self._goal = self._led = None

    def pop(self, arm: int, busy: Collection[str] = ()) -> Pick | None:
        """Take the best link of an arm."""
        return self._follow() or cast("Ranked", self.frontier).pop(arm, busy)

    def take(self, key: int, *, pick_id: int | None = None) -> Pick | None:
        """Take one link by its key."""
        return self._follow() or self.frontier.take(key, pick_id=pick_id)

    def take_drawn(self, slot: int) -> Pick | None:
        """Take a drawn link."""
        return self._follow() or cast("Drawn", self.frontier).take_drawn(slot)

    def release(self, pick: Pick) -> None:
        """Queue a pick again; if it is the given one, it is returned again."""
        self.frontier.release(pick)
        if self._led == (pick.key, pick.id):
            self._goal = self._led

    def __len__(self) -> int:
        return len(self.frontier)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.frontier, name)

    def _follow(self) -> Pick | None:
        if self._goal is None:
            return None
        key, pick_id = self._goal
        if pick_id in self.frontier.flying or self.frontier.states([key]) != [State.WAITING]:
            return None
        self._led, self._goal = self._goal, None
        return self.frontier.take(key, pick_id=pick_id)
