"""Goes on with a stored crawl: its last checkpoint, and everything that it was told since, told once more.

What happened outside (which link was fetched, what came back, what it was worth) is taken from the journal. What the
policy made of it (where links wait, what was learned) comes about again from the same inputs, so no policy has to know
about any of this. Where one chooses otherwise the second time, because it looks at a clock, say, what happened counts.
"""

from __future__ import annotations

import json
import logging
import pickle
import platform
from importlib.metadata import PackageNotFoundError, version
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from scrapy_focus.core.errors import PolicyError, ResumeError, StorageError
from scrapy_focus.core.noted import NotedPage
from scrapy_focus.core.types import Link, Outcome, Pick, State
from scrapy_focus.jobs.checksums import damaged
from scrapy_focus.jobs.description import describe, differences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scrapy_focus.core.crawl import Crawl
    from scrapy_focus.core.types import Placement
    from scrapy_focus.jobs.job import Job
    from scrapy_focus.jobs.journal import Event

logger = logging.getLogger(__name__)

_LIBRARIES = ("numpy", "scikit-learn", "scipy")
_AT_ONCE = 50_000  # links that a policy which begins anew is given


def store(crawl: Crawl, job: Job) -> dict[str, bytes]:
    """Return what a checkpoint holds besides the links: the pickled policy, and all numbers of a crawl as JSON.

    Raises
    ------
    PolicyError
        If the policy cannot be pickled.
    """
    try:
        policy = pickle.dumps(crawl.policy, protocol=5)
    except Exception as error:
        name = type(crawl.policy).__qualname__
        raise PolicyError(
            f"the policy {name} cannot be stored, which a JOBDIR needs: {error}; leave out what cannot be pickled in "
            f"{name}.__getstate__, and make it again in attach()"
        ) from error
    state = {
        "description": describe(crawl.policy, crawl.goal, job.name),
        "versions": versions(),
        "budget": crawl.budget.state(),
        "limits": {name: getattr(crawl.budget, name) for name in ("requests", "bytes", "seconds")},
        "plateau": None if crawl.plateau is None else {"rule": crawl.plateau.reason, **crawl.plateau.state()},
        "counts": dict(crawl.counts),
        "fallbacks": crawl.fallbacks,
        "rewards": crawl.rewards,
        "found_at": list(crawl.found_at),
        "recovered": sorted(crawl.recovered),
        "log": _mark(crawl),
    }
    return {"policy": policy, "crawl": json.dumps(state).encode()}


def _mark(crawl: Crawl) -> tuple[str, int] | None:
    try:
        return None if crawl.log is None else crawl.log.mark()
    except OSError as error:
        raise StorageError(
            f"the decision log cannot be written: {error}; make room, and start the crawl again"
        ) from error


def versions() -> dict[str, str]:
    """Return the versions of what a pickled policy is made of."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def recover(crawl: Crawl, job: Job) -> None:
    """Bring a new crawl to where a stored one was; what was in flight then is in flight now.

    Raises
    ------
    ResumeError
        If the stored crawl had another goal, policy or parameters, or what it learned cannot be read.
    StorageError
        If the files cannot be read.
    """
    state = _compatible(crawl, job)
    crawl.budget.restore(state["budget"])
    if crawl.plateau is not None and (state["plateau"] or {"rule": ""}).get("rule", "plateau") == crawl.plateau.reason:
        crawl.plateau.restore(state["plateau"])
    crawl.counts.update(state["counts"])
    crawl.fallbacks = state["fallbacks"]
    crawl.rewards = state["rewards"]
    crawl.recovered.update(state["recovered"])
    crawl.found_at.extend((requests, rewards) for requests, rewards in state["found_at"])
    log_goes_on = crawl.log is None or (state["log"] is not None and crawl.log.cut(*state["log"]))
    log, crawl.log = crawl.log, crawl.log if log_goes_on else None
    flying: dict[int, Pick | int] = {}
    if "policy" in job.notes:
        crawl.policy = _policy(crawl, job, state)
        crawl.policy.attach(crawl.frontier)
        flying.update(job.frontier.flying)
    else:
        flying.update(_begin_anew(crawl, job))
    crawl.fly((pick for pick in flying.values() if isinstance(pick, Pick)), chosen="policy" in job.notes)
    again = _Again(crawl, job, flying)
    for event in job.events():
        try:
            again.tell(event)
        except _Unfit as error:
            raise StorageError(
                f"the journal in {job.folder} tells of {error}, which never began; see scrapy focus-check"
            ) from error
    if again.otherwise:
        logger.warning(
            "%s chose otherwise %d of %d times when it went through the last choices again: it depends on more than "
            "its inputs and self.rng. What was fetched counts; what it learned may differ a little",
            type(crawl.policy).__qualname__, again.otherwise, again.choices,
        )  # fmt: skip
    crawl.stop_reason = ""
    crawl.log = log
    if "policy" not in job.notes or not log_goes_on:  # with a log of its own, nothing is to be written to it again
        job.checkpoint(store(crawl, job))
        job.flush()


def _compatible(crawl: Crawl, job: Job) -> dict[str, Any]:
    if wrong := damaged(job.notes):
        raise StorageError(f"the {' and '.join(wrong)} in {job.folder} is damaged; see scrapy focus-check")
    try:
        state = json.loads(job.notes["crawl"])
        then = state["description"]
    except (KeyError, ValueError, TypeError) as error:
        raise StorageError(
            f"what {job.folder} says of its crawl cannot be read ({error!r}); see scrapy focus-check"
        ) from error
    if then is None:  # see focus-check --fix
        logger.warning("it is not known any more with which settings the crawl in %s began", job.folder)
    elif differing := differences(then, _described(crawl, job, then)):
        raise ResumeError(
            f"the crawl in {job.folder} cannot go on with other settings: {differing}; use the same settings, or another "
            "JOBDIR"
        )
    return dict(state)


def _described(crawl: Crawl, job: Job, then: dict[str, Any]) -> dict[str, Any]:
    """Return what describes a crawl, with what it began with where that may change."""
    now = describe(crawl.policy, crawl.goal, job.name)
    return now | {name: then[name] for name in crawl.policy.may_change if name in then}


def _policy(crawl: Crawl, job: Job, state: dict[str, Any]) -> Any:
    try:
        policy = pickle.loads(job.notes["policy"])  # noqa: S301 (the user's own job directory)
        if type(policy) is not type(crawl.policy):
            raise TypeError(f"it is a {type(policy).__qualname__}, not a {type(crawl.policy).__qualname__}")
        return policy
    except Exception as error:
        changed = differences(state.get("versions", {}), versions())
        raise ResumeError(
            f"what the policy in {job.folder} learned cannot be read: {error!r}{f' ({changed})' if changed else ''}; install "
            "these versions again, or let scrapy focus-check --fix keep the links and begin to learn anew"
        ) from error


def _begin_anew(crawl: Crawl, job: Job) -> dict[int, Pick | int]:
    """Let a new policy place all links of a crawl as seeds, and return what flies: ``focus-check --fix`` dropped the old one.

    Where links wait together, some tens of thousands at a time are placed in the order of their ranks.
    """
    frontier, flying = job.frontier, list(job.frontier.flying.values())
    for pick in flying:
        frontier.release(pick)
    crawl.policy.open(frontier, np.random.default_rng())
    waiting = chain.from_iterable(frontier.scan(arm) for arm in range(len(frontier.waiting)))
    places: list[tuple[list[int], Sequence[Placement | None]]] = []  # the frontier may not change while it is scanned
    while part := list(islice(waiting, _AT_ONCE)):
        part.sort(key=lambda each: -each[1].rank)
        links = [link._replace(state=State.NEW) for link, _ in part]
        places.append(([link.key for link in links], crawl.placements(links)))
    for keys, placements in places:
        frontier.move(keys, placements)
    taken: dict[int, Pick | int] = {}
    for pick in flying:
        frontier.steer(pick.key, pick.id)  # the journal knows it by this id
        taken[pick.id] = frontier.take(pick.key) or pick.key
    frontier.let_go()
    logger.warning("the policy begins to learn anew: it placed %d links that wait", len(frontier) + len(flying))
    return taken


class _Unfit(Exception):
    """An event that does not follow from those before it."""


class _Again:
    """Tells a crawl what it was told before."""

    def __init__(self, crawl: Crawl, job: Job, flying: dict[int, Pick | int]) -> None:
        self.crawl = crawl
        self.frontier = job.frontier
        self.picks = flying  # by id: the pick, or only its key
        self.choices = self.otherwise = 0

    def tell(self, event: Event) -> None:
        """Tell one event."""
        kind, *rest = event
        tell: dict[str, Callable[..., None]] = {
            "add": self._add,
            "pick": self._pick,
            "used": self._used,
            "release": self._release,
            "recovered": self._recovered,
            "outcome": self._outcome,
        }
        if kind not in tell:
            raise _Unfit(f"a {kind!r}")
        tell[kind](*rest)

    def _flight(self, pick_id: int) -> Pick | int:
        if pick_id not in self.picks:
            raise _Unfit(f"pick {pick_id}")
        return self.picks[pick_id]

    def _add(self, links: list[tuple[Any, ...]], source: tuple[Any, ...] | None) -> None:
        outcome = None if source is None else self._outcome_of(source)
        self.crawl.add([Link(*link) for link in links], outcome)

    def _pick(self, pick_id: int, key: int, busy: Sequence[str]) -> None:
        self.choices += 1
        self.frontier.steer(key, pick_id)
        pick = self.crawl.choose(busy)
        chosen = pick is not None and (pick.key, pick.id) == (key, pick_id)
        if not chosen:
            self.otherwise += 1
            if pick is not None:
                self.crawl.put_back(pick)
            self.frontier.steer(key, pick_id)
            pick = self.frontier.take(key)
        self.frontier.let_go()
        self.picks[pick_id] = key if pick is None else pick
        if pick is not None:
            self.crawl.depart(pick, chosen=chosen)
            self.frontier.amend(pick)

    def _used(self, requests: int) -> None:
        self.crawl.budget.requests_used = requests

    def _release(self, pick_id: int) -> None:
        pick = self.picks.pop(pick_id, None)
        if isinstance(pick, Pick):
            self.crawl.release(pick.id)

    def _recovered(self, keys: list[int]) -> None:
        self.crawl.recovered.update(keys)
        self.crawl.counts["recovered"] += len(keys)

    def _outcome(
        self,
        record: tuple[Any, ...],
        links: list[tuple[Any, ...]],
        also: list[int],
        used: dict[str, float],
        counts: dict[str, int],
    ) -> None:
        self.crawl.budget.restore(used)
        outcome = self._outcome_of(record)
        found = [Link(*link) for link in links]
        if outcome is None:
            known = [cast("int", self._flight(record[0])), *also]
            self.frontier.push([Link("", key) for key in known], [None] * len(known))
            self.crawl.add(found)
        else:
            self.crawl.conclude(outcome, found, also)
        del self.picks[record[0]]
        dict.update(self.crawl.counts, counts)

    def _outcome_of(self, record: tuple[Any, ...]) -> Outcome | None:
        pick_id, method, status, mime, size, seconds, items, error, reward, read = record
        pick = self._flight(pick_id)
        if not isinstance(pick, Pick):
            return None
        page = None if read is None else NotedPage(None, read)
        return Outcome(
            pick=pick._replace(method=method), status=status, mime=mime, size=size, seconds=seconds, items=items, error=error,
            reward=reward, page=page,
        )  # fmt: skip


def record_outcome(outcome: Outcome) -> tuple[Any, ...]:
    """Return an outcome as a journal has it, with what was read of its page."""
    page = outcome.page
    read = page.read if isinstance(page, NotedPage) else None
    return (
        outcome.pick.id, outcome.pick.method, outcome.status, outcome.mime, outcome.size, outcome.seconds, outcome.items,
        outcome.error, outcome.reward, read,
    )  # fmt: skip
