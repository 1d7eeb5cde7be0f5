"""Resumes a stored crawl: its last checkpoint, and every event since, applied once more.

What happened outside (which link was fetched, what came back, what it was worth) is taken from the journal. What the
policy made of it (where links wait, what was learned) comes about again from the same events, so no policy has to know
about any of this. Where one chooses otherwise the second time, because it looks at a clock, say, what happened counts.
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
    """Bring a new crawl to where a stored one was; what was in flight then is in flight now.

    Parameters
    ----------
    crawl
        The state of the new crawl, whose frontier is ``stored``.
    stored
        The frontier as it was at the last checkpoint.
    notes, state
        Of the checkpoint, see :mod:`~scrapy_focus.jobs.snapshots`.
    records
        What happened since, see :mod:`~scrapy_focus.jobs.records`.
    classes
        What the policy may hold, see :func:`~scrapy_focus.jobs.snapshots.classes_of`.

    Returns
    -------
    bool
        Whether a checkpoint should follow at once: the policy is a new one, or the decision log another file.

    Raises
    ------
    ResumeError
        If what the policy learned cannot be read.
    StorageError
        If the files cannot be read.
    """
    log, mark = crawl.decisions.log, state["log"]
    is_cut = log is not None and mark is not None and log.cut(*mark)
    crawl.decisions.log = log if is_cut else None  # into a log of its own nothing is to be written again
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
            "%s chose otherwise %d of %d times when it went through the last choices again: it depends on more than "
            "its inputs and self.rng. What was fetched counts; what it learned may differ a little",
            type(crawl.guard.policy).__qualname__, crawl.choices.otherwise, choices,
        )  # fmt: skip
    crawl.decisions.log = log
    return is_new or (log is not None and not is_cut)


def _begin_anew(
    crawl: CrawlState, stored: Stored, notes: Mapping[str, bytes], state: Mapping[str, Any], led: Led
) -> None:
    """Let a new policy place all links of a crawl as seeds, and choose what was in flight: ``focus-check`` dropped the
    old one.

    Links come in the order in which they were found, some tens of thousands at a time, and are written down with the
    same notes: a kill meanwhile begins this anew, with the same links and the same randomness.
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
    logger.warning("the policy begins to learn anew: it placed %d links", len(stored) + len(stored.flying))


class Led:
    """A frontier that gives out the link to which it is led, whatever is asked for; in all else the frontier that it
    wraps.

    A crawl that is done again is led in this way along the choices that it made. It counts for one pick, until
    :meth:`let_go`.

    Parameters
    ----------
    frontier
        Of either order.
    """

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier
        self._goal: tuple[int, int] | None = None  # key, id
        self._led: tuple[int, int] | None = None  # the goal that was given out

    def lead(self, key: int, pick_id: int) -> None:
        """Let the next link that is taken be this one, if it waits, under this id."""
        self._goal = key, pick_id

    def let_go(self) -> None:
        """Lead no more."""
        self._goal = self._led = None

    def pop(self, arm: int, busy: Collection[str] = ()) -> Pick | None:
        """Take out the best link of an arm."""
        return self._follow() or cast("Ranked", self.frontier).pop(arm, busy)

    def take(self, key: int, *, pick_id: int | None = None) -> Pick | None:
        """Take out one link by its key."""
        return self._follow() or self.frontier.take(key, pick_id=pick_id)

    def take_drawn(self, slot: int) -> Pick | None:
        """Take out a link that was drawn."""
        return self._follow() or cast("Drawn", self.frontier).take_drawn(slot)

    def release(self, pick: Pick) -> None:
        """Let a pick wait again; where it is the one to which it is led, it is given out again."""
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
