"""Checks a custom policy: properties that every policy must have, to be called from a test."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.core.abilities import FetchesAgain, ShowsTables
from scrapy_focus.core.crawl import Crawl
from scrapy_focus.core.mission import Mission
from scrapy_focus.core.placer import Placer
from scrapy_focus.core.reason import Reason
from scrapy_focus.core.room import Room
from scrapy_focus.core.types import Link, Outcome, Pick
from scrapy_focus.frontiers.memory import memory_frontier
from scrapy_focus.jobs.pickles import Classes
from scrapy_focus.jobs.snapshots import classes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from scrapy_focus.core.mission import Topic
    from scrapy_focus.core.policy import Policy
    from scrapy_focus.core.status import Status

_MOST_WAITING = 10  # links, in a crawl that gives some up
_VISITS = 10  # times as many requests as there are pages, after which a crawl ends that revisits pages


def check_policy(make: Callable[[], Policy], *, pages: int = 60, seed: int = 0, mission: Mission | None = None) -> None:
    """Raise ``AssertionError`` if a policy breaks its contract; takes about a second.

    Parameters
    ----------
    make
        Returns a new policy each time; a class will do.
    pages
        Size of the small synthetic site that it crawls, on three hosts.
    seed
        Of the crawls.
    mission
        The mission for the policy, as in a live crawl, a simulation and a comparison; empty by default.

    Notes
    -----
    A page takes a second of the crawl's clock. If nothing may be chosen, the clock advances to the time from
    :meth:`~scrapy_focus.core.abilities.Waits.due`, or to when the next sleeping link is due. A crawl whose policy has
    :meth:`~scrapy_focus.core.abilities.FetchesAgain.again`, or ``never_ends``, ends after ten times as many requests
    as there are pages, and must have fetched each of them by then. These properties are checked. It fetches every
    page of the site, with one and with eight in flight. It never selects when nothing is queued, nor a busy host. The
    same seed gives the same order. If few links may be queued, it gives up as many as requested, and the same ones
    with the same seed. It survives failures, HEADs, and released picks. It can be pickled in mid-crawl and then makes
    the same choices. ``explain`` returns JSON values; ``tables`` returns tables, and changes no choice. It does not
    change the links that it receives. Exceptions of the policy itself, or of the crawl because of it
    (:class:`~scrapy_focus.core.errors.PolicyError`), pass through.
    """
    _check_parameters(make())
    site = _Site(pages)
    mission = Mission() if mission is None else mission
    orders = [_crawl(make(), site, mission, seed=seed, in_flight=k) for k in (1, 8)]
    for order in orders:
        fetched = {url for url, method in order if method == "GET"}
        missed = site.reachable - fetched - ({url for url, _ in order} & site.dead_urls)
        _require(not missed, f"it never fetched {sorted(missed)[:3]} though links to them were placed or offered")
    again = _crawl(make(), site, mission, seed=seed, in_flight=1)
    _require(again == orders[0], f"the same seed gave another order: {_first_difference(orders[0], again)}")
    stored = _crawl(make(), site, mission, seed=seed, in_flight=1, pickle_after=len(orders[0]) // 2)
    _require(stored == orders[0], f"after pickling it chose otherwise: {_first_difference(orders[0], stored)}")
    if isinstance(make(), ShowsTables):
        shown = _crawl(make(), site, mission, seed=seed, in_flight=1, asks_tables=True)
        _require(shown == orders[0], f"tables() changed its choices: {_first_difference(orders[0], shown)}")
    for k in (1, 8):
        few = [_crawl(make(), site, mission, seed=seed, in_flight=k, most_waiting=_MOST_WAITING) for _ in range(2)]
        _require(few[0] == few[1], f"where few links may be queued, {_first_difference(*few)} with the same seed")
    policy = make()
    policy.open(memory_frontier(policy.keeps(mission)), np.random.default_rng(seed), mission)
    _require(policy.select(()) is None, "select() gave a pick though nothing is queued")


def _check_parameters(policy: Policy) -> None:
    """Check that the parameters, which a resuming crawl compares, are attributes of the same names."""
    names = inspect.signature(type(policy)).parameters.values()
    named = [each.name for each in names if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
    lacking = [name for name in named if not hasattr(policy, name)]
    _require(
        not lacking, f"it does not store {', '.join(lacking)} under that name; write self.{(lacking or [''])[0]} = ..."
    )


class _Site:
    """A small web on three hosts: a tree with cross links, some dead links, and some pages with rewards."""

    def __init__(self, pages: int) -> None:
        rng = np.random.default_rng(7)
        self.pages = pages
        self.links = [
            [i for i in (2 * page + 1, 2 * page + 2, *rng.integers(0, pages, 3).tolist()) if i < pages]
            for page in range(pages)
        ]
        self.dead = {i for i in range(3, pages) if i % 11 == 3}
        self.worth = {i for i in range(pages) if i % 5 == 4} - self.dead
        self.scripted = set(range(0, pages, 4)) - self.dead
        self.dead_urls = {self.link(page).url for page in self.dead}
        self.reachable = {self.link(page).url for page in self._reached()}

    def _reached(self) -> set[int]:
        """Return the pages that the first one links to."""
        reached, queue = {0}, [0]
        while queue:
            page = queue.pop()
            if page not in self.dead:
                fresh = set(self.links[page]) - reached
                reached |= fresh
                queue.extend(fresh)
        return reached

    def link(self, page: int) -> Link:
        place = "nav" if page % 2 else "main"
        path = f"html/body/{place}/ul/li/a"
        return Link(f"http://h{page % 3}/{page}", page, f"h{page % 3}", page.bit_length(), f"page {page}", path)

    def answer(self, pick: Pick) -> tuple[Outcome, list[Link]]:
        if pick.key in self.dead:
            return Outcome(pick=pick, status=404, mime="text/html", error="http_error"), []
        outcome = Outcome(
            pick=pick, status=200, mime="text/html", size=100, items=float(pick.key in self.worth),
            scripted=pick.key in self.scripted, requests=3 if pick.method == "RENDER" else 1,
        )  # fmt: skip
        return outcome, [] if pick.method == "HEAD" else [self.link(page) for page in self.links[pick.key]]


class _Clock:
    """Seconds that pass with the pages, the same in each crawl."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class _WatchingRoom(Room):
    """Checks whether a policy gives up what it reports."""

    def _give_up(self, n: int) -> None:
        frontier = self._frontier
        before, flying = len(frontier), len(frontier.flying)
        said = self._guard.policy.give_up(n)
        gone = before - len(frontier)
        _require(gone == n == said, f"give_up({n}) answered {said!r}, and gave up {gone} of {before} links")
        _require(len(frontier.flying) == flying, f"give_up({n}) took links out, or queued some again")


class _WatchingPlacer(Placer):
    """Checks whether a policy changes the links that it receives."""

    def _place(self, links: Sequence[Link], source: Outcome | None, origin: int) -> None:
        before = list(links)
        super()._place(links, source, origin)
        _require(list(links) == before, "place() changed the links that it was given")


def _crawl(
    policy: Policy,
    site: _Site,
    mission: Mission,
    *,
    seed: int,
    in_flight: int,
    pickle_after: int = -1,
    asks_tables: bool = False,
    most_waiting: int | None = None,
) -> list[tuple[str, str]]:
    clock = _Clock()
    crawl = Crawl(
        policy, frontier=memory_frontier, mission=mission, seed=seed, strict=True, clock=clock,
        most_waiting=most_waiting,
    )  # fmt: skip
    state, counts = crawl.state, crawl.counts
    state.room = _WatchingRoom(most_waiting, crawl.frontier, state.guard, counts)
    state.placer = _WatchingPlacer(
        crawl.frontier, state.sleepers, state.guard, state.choices, state.poor_last, counts=counts
    )
    crawl.add([site.link(0)])
    order: list[tuple[str, str]] = []
    out: list[Pick] = []
    released = 0
    most = _most_visits(policy, site)
    while True:
        busy = {pick.host for pick in out} if in_flight > 1 else set()
        is_over = len(order) >= most
        pick = crawl.next(busy) if len(out) < in_flight and not is_over else None
        if pick is not None:
            _check_pick(crawl, pick, busy, asks_tables=asks_tables)
            if len(order) // 13 > released and len(order) % 13 == 12:
                released += 1
                crawl.release(pick.id)
                continue
            crawl.sent(pick.id)
            order.append((pick.url, pick.method))
            out.append(pick)
            if len(order) == pickle_after:
                crawl.guard.take_up(_copy(crawl.policy, mission.topic))
                crawl.policy.attach(crawl.frontier)
            continue
        if out:
            clock.now += 1.0
            outcome, links = site.answer(out.pop(0))
            crawl.report(outcome, links)
            _require(len(order) < 2 * _VISITS * site.pages, "it fetches the same pages again and again")
            continue
        # Nothing is in flight: either links become due later, or the crawl is over.
        later = _next_due(crawl.status(), clock.now)
        if is_over or later is None:
            break
        clock.now = later
    crawl.frontier.check()
    is_left = len(crawl.frontier) > 0 and not is_over
    _require(
        not crawl.counts["select/none"] and not is_left,
        "select() gives nothing though links are queued and no host is busy",
    )
    return order


def _check_pick(crawl: Crawl, pick: Pick, busy: Collection[str], *, asks_tables: bool) -> None:
    _require(pick.host not in busy, f"select() gave a link of the busy host {pick.host}")
    _check_explanation(crawl.policy, pick)
    if asks_tables:
        crawl.forecasts.tables()


def _most_visits(policy: Policy, site: _Site) -> float:
    """Return after how many requests to end a crawl that would not end itself."""
    if isinstance(policy, FetchesAgain) or policy.never_ends:
        return _VISITS * site.pages
    return math.inf


def _next_due(status: Status, now: float) -> float | None:
    """Return when the next link becomes due, ``None`` if none does."""
    times = [status.next_due]
    if status.waiting:
        times.append(status.due)
    return min((time for time in times if time is not None and now < time < math.inf), default=None)


def _copy(policy: Policy, topic: Topic | None) -> Policy:
    """Return a policy as a ``JOBDIR`` restores it: it receives the topic of the mission again."""
    state = policy.__getstate__()
    _require(
        not (isinstance(state, dict) and "frontier" in state),
        "it was pickled with its frontier; extend super().__getstate__()",
    )
    classes = classes_of(type(policy), Classes())
    try:
        copy: Policy = classes.loads(classes.dumps(policy, topic), topic)
    except Exception as error:
        raise AssertionError(f"it cannot be pickled in mid-crawl: {error}") from error
    return copy


def _check_explanation(policy: Policy, pick: Pick) -> None:
    reasons = policy.explain(pick)
    _require(isinstance(reasons, Mapping), f"explain() gave {reasons!r}; return a Reason or a dict")
    try:
        json.dumps(Reason.of(reasons, pick).record(), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"explain() gave {reasons!r}, which JSON cannot hold: {error}") from error


def _first_difference(one: Sequence[object], two: Sequence[object]) -> str:
    pairs: Iterator[tuple[object, object]] = zip(one, two, strict=False)
    return next(
        (f"step {i}: {a} and {b}" for i, (a, b) in enumerate(pairs) if a != b), f"{len(one)} and {len(two)} steps"
    )


def _require(condition: object, what: str) -> None:
    if not condition:
        raise AssertionError(what)
