"""Crawls a recorded site without a network, with the same loop as a live crawl.

A simulation is useful only if a live crawl would have made the same choices. So policy, goal, frontier and budget are
those of a live crawl, driven by the same :class:`~scrapy_focus.core.crawl.Crawl`. Only the network, Scrapy's
downloader and its dupefilter are simulated (``answers.py``).
"""

from __future__ import annotations

import copy
import heapq
import itertools
import math
from collections import Counter, deque
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.core.abilities import FetchesAgain, Hears, Knows
from scrapy_focus.core.budget import Budget
from scrapy_focus.core.crawl import Crawl
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.goal import reads_links, types_of
from scrapy_focus.core.outstanding import learns, most_out
from scrapy_focus.core.types import State
from scrapy_focus.frontiers.memory import memory_frontier
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.replay.answers import Answers, Flight, new_files
from scrapy_focus.lab.replay.harvest import Harvest
from scrapy_focus.lab.replay.latency import Constant
from scrapy_focus.lab.replay.leases import Desk, Leases
from scrapy_focus.lab.replay.signals import RecordedSignals
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.policies.tagpath.oracles import Informed
from scrapy_focus.web.mime import BLOCKED_MIMES, blocked_extensions
from scrapy_focus.web.poorlinks import PoorLinks

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from scrapy_focus.core.frontier import MakeFrontier
    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.log import EventLog
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.policy import Policy
    from scrapy_focus.core.stop import StopRule
    from scrapy_focus.core.types import Link, Outcome, Pick
    from scrapy_focus.lab.replay.answers import Items, Render
    from scrapy_focus.lab.replay.latency import Latency


class SimulatedClock:
    """Seconds that pass when something is simulated to take time."""

    def __init__(self, begin: float = 0.0) -> None:
        self.begin = begin
        self.now = begin

    def __call__(self) -> float:
        return self.now


def simulate(
    policy: Policy,
    goal: Goal,
    site: RecordedSite | str | Path,
    *,
    budget: int | Budget | None = None,
    concurrency: int | Leases = 1,
    latency: float | Latency = 0.0,
    seed: int | None = 0,
    ignored: Collection[str] | None = None,
    items: Items = new_files,
    retries: int = 2,
    blocked_mimes: Collection[str] = BLOCKED_MIMES,
    stop: StopRule | None = None,
    most_waiting: int | None = None,
    poor_last: bool | None = None,
    mission: Mission | None = None,
    frontier: MakeFrontier = memory_frontier,
    log: EventLog | None = None,
    truth: SiteTruth | None = None,
    render: Render = "learn",
    learn_redirects: bool = True,
) -> Harvest:
    """Crawl a recorded site, and return the harvest.

    Parameters
    ----------
    policy
        The policy; a new one for each crawl.
    goal
        The value of an outcome; a new goal for each crawl if it remembers what it saw.
    site
        A recording by :class:`~scrapy_focus.lab.recordings.writer.SiteWriter`, or the path of its file.
    budget
        Requests of all kinds, or a :class:`~scrapy_focus.core.budget.Budget`, whose limits are used; without one, the
        crawl runs until nothing is left. A policy that revisits pages needs one, or a stop rule. With a rate, links
        wait for their turns as in a live crawl.
    concurrency
        Maximum picks in flight; if the policy learns, at most :func:`~scrapy_focus.core.outstanding.most_out`, as in
        a live crawl. With 1, a simulation makes the choices of a live crawl with ``FOCUS_MAX_INFLIGHT = 1``, if goal,
        mission, seed and spider are equal. For another rule, or for several workers with picks in flight or ready:
        :class:`~scrapy_focus.lab.replay.leases.Leases`.
    latency
        Seconds that each request takes, or a :class:`~scrapy_focus.lab.replay.latency.Latency`. With several in
        flight, an outcome arrives when its last request is answered, so learning lags as in a live crawl.
    seed
        Seed of the policy's randomness and, independently, of the latency.
    ignored
        Extensions of URLs that the spider does not request; by default, those of images, films and the like that the
        goal does not want, as in the spider ``datasets``; ``()`` for a spider that requests every link.
    items
        How many items the spider would make of a page; by default one of each file with new content.
    retries
        Number of retries of a failing URL, as Scrapy's ``RETRY_TIMES``.
    blocked_mimes
        As ``FOCUS_BLOCKED_MIMES``: types that are stopped when their headers arrive.
    stop
        When to stop early. It is copied.
    most_waiting
        As ``FOCUS_MOST_WAITING``: maximum queued links; the least wanted are given up.
    poor_last
        As ``FOCUS_POOR_LAST``: whether poor links are fetched when nothing else is left; by default the policy
        decides.
    mission
        What the policy knows of the goal beforehand, as set by a live crawl's settings; derived from the goal by
        default.
    frontier
        A function that makes the frontier for a policy; ``FOCUS_FRONTIER`` in a live crawl.
    log
        Where to write decisions, as in a live crawl; closed at the end.
    truth
        The truth about the whole site, to share it between simulations. It must be made from the same recording, with
        an equal goal, and the same ``ignored``, ``items``, ``retries`` and ``blocked_mimes``.
    render
        As ``FOCUS_RENDER``: which pages a browser shows, if the recording has renderings. With ``"learn"``, those
        that the policy requests; with ``"always"``, all with scripts, in place of their plain copies.
    learn_redirects
        As ``FOCUS_LEARN_REDIRECTS``: whether the targets of redirects are requested at once where a host redirects only
        by a slash, to https, or to or from ``www.``. A target that was not recorded is never guessed. A link is skipped
        only if its recorded answer leads to a known URL; a live crawl follows skipped links when their rule ends.

    Raises
    ------
    RecordingError
        If the site cannot be read, or the goal reads the text of a page that was recorded without.
    ConfigError
        If an argument cannot be used.
    Exception
        Whatever the policy or the goal raises.

    Notes
    -----
    A HEAD is answered with the recorded status and headers of the GET. A URL that was never recorded costs a request,
    ends as the error ``unrecorded``, and is counted in :attr:`Harvest.missed
    <scrapy_focus.lab.replay.harvest.Harvest.missed>`. Not simulated: requests for robots.txt, which cost a live crawl
    one for each host (the recording knows the URLs that it forbids, which cost nothing), and delays between requests
    to a host.

    A policy that listens receives the reports of sitemaps and feeds whose bodies were recorded. But a recording has
    the links of HTML pages only, so that pages listed only there are not found.

    If URLs of the recording have several versions, the clock starts with the first of these, and each URL answers
    with the version of that time. The totals that a crawl is compared with are those of the first versions. Otherwise
    the clock starts at 0.

    A rendered page costs the requests and bytes that it took when the site was recorded, all of which count. Scripts
    and style sheets that pages share are requested once in a crawl. The other requests of the browser are sent when
    the page arrives, all at once. A page with scripts that was never rendered ends as ``unrecorded`` if a browser is
    to show it; one without is the same in a browser.

    A page that is unchanged since its last visit gives no links and no items. It costs no body if its headers have an
    ``ETag`` or a ``Last-Modified``: the server is assumed to be right, and always asked.

    When the budget is used up, or the stop rule is reached, requests in flight still arrive, but their redirects are
    not followed and failures not retried: such a pick is released, as in a live crawl, which would continue it in its
    next run.
    """
    _check_numbers(concurrency, retries, seed)
    if not isinstance(site, RecordedSite):
        site = RecordedSite(site)
    limits = budget if isinstance(budget, Budget) else Budget(requests=budget)
    _check_end(policy, stop, limits)
    wanted = types_of(goal)
    if ignored is None:
        ignored = blocked_extensions(wanted)
    if poor_last is None:
        poor_last = policy.poor_last
    if truth is None:
        truth = SiteTruth(site, goal, ignored=ignored, items=items, retries=retries, blocked_mimes=blocked_mimes)
    elif truth.site.path.absolute() != site.path.absolute():
        raise ConfigError(f"the truth is of {truth.site.path}, and the site to be crawled is {site.path}")
    if isinstance(policy, Informed):
        policy.inform(truth)
    clock = SimulatedClock(site.begin)
    crawl = Crawl(
        policy, frontier=frontier, goal=goal, mission=mission,
        budget=Budget(requests=limits.requests, bytes=limits.bytes, seconds=limits.seconds, rate=limits.rate),
        stop=copy.deepcopy(stop), most_waiting=most_waiting,
        poor=PoorLinks() if poor_last else None,
        seed=seed, log=log, strict=True, clock=clock,
    )  # fmt: skip
    answers = Answers(
        site, ignored=ignored, items=items, retries=retries, blocked=blocked_mimes, wanted=wanted,
        reads_page=policy.reads_page or reads_links(goal),
        wants_known=bool(policy.wants_known) or isinstance(policy, Knows),
        knows=crawl.knows if crawl.comes_back else None, render=render,
        foresees=learn_redirects and not crawl.comes_back,
    )  # fmt: skip
    network = np.random.default_rng(None if seed is None else [seed, 1])
    delays = latency if callable(latency) else Constant(latency)
    run = _Run(crawl, answers, clock, delays, network, Desk(_leases(concurrency, policy)))
    try:
        run.start(_seeds(policy, answers))
        run.go()
    finally:
        crawl.close()
    return run.harvest(truth)


def _check_numbers(concurrency: int | Leases, retries: int, seed: int | None) -> None:
    in_flight = concurrency.slots if isinstance(concurrency, Leases) else concurrency
    if in_flight < 1 or retries < 0 or (seed is not None and seed < 0):
        raise ConfigError(
            f"simulate(concurrency={concurrency}, retries={retries}, seed={seed}): at least one pick is in flight, and "
            "neither retries nor seed are negative"
        )


def _leases(concurrency: int | Leases, policy: Policy) -> Leases:
    if isinstance(concurrency, Leases):
        return concurrency
    return Leases(slots=concurrency, most_out=most_out if learns(type(policy)) else None)


def _check_end(policy: Policy, stop: StopRule | None, budget: Budget) -> None:
    """Raise an error if nothing would end the simulation."""
    comes_again = isinstance(policy, FetchesAgain) or policy.never_ends
    if comes_again and stop is None and not any(budget.limits.values()):
        raise ConfigError(
            f"{type(policy).__qualname__} fetches pages again and again, so that the simulation would not end: give it "
            "a budget, or a stop rule"
        )


def _seeds(policy: Policy, answers: Answers) -> Sequence[Link]:
    """Return where the crawl begins: at the roots, unless a policy with the truth returns other links."""
    seeds = policy.seeds() if isinstance(policy, Informed) else None
    return answers.roots() if seeds is None else seeds


class _Run:
    """The event loop: picks leave, their requests are answered one after the other, outcomes arrive."""

    def __init__(
        self,
        crawl: Crawl,
        answers: Answers,
        clock: SimulatedClock,
        latency: Latency,
        rng: np.random.Generator,
        desk: Desk,
    ) -> None:
        self.crawl = crawl
        self.answers = answers
        self.clock = clock
        self.latency = latency
        self.rng = rng
        self.desk = desk
        self.signals = RecordedSignals(answers.site, crawl.counts) if isinstance(crawl.policy, Hears) else None
        self.asked: list[str] = []
        self.rows: list[tuple[float, int, int, float, int, bool, float, int]] = [(0.0, 0, 0, 0.0, -1, False, 0.0, 0)]
        self.counts: Counter[str] = Counter()
        self.missed = 0
        self._waiting: list[tuple[float, int, Flight]] = []  # a heap by time
        self._held: deque[Flight] = deque()  # redirects and retries that must not be sent; a request may be refunded
        self._order = itertools.count()
        self._owing: dict[int, Sequence[Link]] = {}  # by pick: the links of outcomes whose reward comes later
        self._hosts: set[str] = set()
        self._target_bytes = 0
        self._other_bytes = 0

    def start(self, links: Sequence[Link]) -> None:
        """Start a crawl with these links."""
        self.crawl.add(self.answers.start(links))
        self._placed(links)

    def go(self) -> None:
        """Crawl until the budget is used up, the plateau is reached, or nothing is left."""
        while True:
            while self._held and not self.crawl.finished():
                self._advance(self._held.popleft())
            self._fill()
            self._look_after_owed()
            if (chance := self._next_chance()) is not None:
                self.clock.now = max(self.clock.now, chance)
            elif self._waiting:
                self.clock.now, _, flight = heapq.heappop(self._waiting)
                self._advance(flight)
            elif self._held:
                self._release(self._held.popleft().pick)
            elif not self._wait():
                return

    def _fill(self) -> None:
        """Choose while there is room, and send chosen picks as soon as there is a slot for them."""
        crawl, desk = self.crawl, self.desk
        self._start_ready()
        while desk.has_room(self._seen) and (pick := crawl.next(desk.closed())) is not None:
            self.asked.append(pick.url)
            desk.lay_ready(pick)
            self._start_ready()

    def _seen(self) -> tuple[int, int]:
        """Outcomes and hosts so far."""
        names_hosts = self.crawl.names_hosts
        return self.crawl.counts["outcomes"], 0 if names_hosts is None else len(names_hosts.hosts)

    def _start_ready(self) -> None:
        while (pick := self.desk.to_start()) is not None:
            if self.crawl.finished():
                self._release(pick)
            else:
                flight = Flight(pick, self.clock.now)
                self.answers.foresee(flight)
                self._advance(flight)

    def _next_chance(self) -> float | None:
        """Return when another link is due or has its turn, and can be fetched before anything in flight arrives."""
        crawl = self.crawl
        due, turn = crawl.sleepers.next_due, crawl.next_turn
        if due is None and turn is None:
            return None
        if not self._waiting or crawl.finished() or not self.desk.has_room(self._seen):
            return None
        times = []
        if due is not None:
            times.append(due if turn is None else max(due, turn))
        if turn is not None and len(crawl.frontier):
            times.append(turn)
        first = min(times, default=math.inf)
        return first if first < self._waiting[0][0] else None

    def _wait(self) -> bool:
        """Advance the clock to the next event if nothing is in flight; ``False`` if there is none."""
        status = self.crawl.status()
        if status.owed:  # the goal returned None: no reward will come
            self.crawl.expire(everything=True)
            self._look_after_owed()
            return True
        times = [status.due if status.waiting else None, status.next_due]
        later = [time for time in times if time is not None and self.clock.now < time < math.inf]
        if status.finished or not later:
            return False
        self.clock.now = min(later)
        return True

    def harvest(self, truth: SiteTruth) -> Harvest:
        """Return the harvest."""
        found, target_bytes, other_bytes, seconds, pages, heads, rewards, hosts = zip(*self.rows, strict=True)
        return Harvest(
            found=np.array(found, np.float64), target_bytes=np.array(target_bytes, np.int64),
            other_bytes=np.array(other_bytes, np.int64), seconds=np.array(seconds, np.float64),
            pages=np.array(pages, np.int64), heads=np.array(heads, np.bool_), rewards=np.array(rewards, np.float64),
            hosts=np.array(hosts, np.int64), exhaustive=truth.exhaustive, asked=self.asked, missed=self.missed,
            stopped=self.crawl.finished(), counts=self.counts + self.crawl.counts,
        )  # fmt: skip

    def _release(self, pick: Pick) -> None:
        self.desk.end(pick)
        self.crawl.release(pick.id)

    def _advance(self, flight: Flight) -> None:
        """Record the request that was answered, and send the next one of this pick, or report its outcome."""
        if flight.out >= 0:
            self._receive(flight)
        if flight.besides:
            self._ask_besides(flight)
            return
        page = self.answers.next_request(flight)
        if flight.is_short:
            self._release(flight.pick)
        elif page < 0:
            self._conclude(flight)
        elif flight.requests and not flight.is_head and self.crawl.finished():
            self._held.append(flight)
        elif self.crawl.sent(flight.pick.id):
            flight.out = page
            flight.requests += 1
            heapq.heappush(self._waiting, (self.clock.now + self._seconds(page), next(self._order), flight))
        else:
            self._release(flight.pick)

    def _ask_besides(self, flight: Flight) -> None:
        """Send the further requests of a browser for a page, as far as the budget allows. A page that does not get
        all of them is queued again, as in a live crawl.
        """
        asked, flight.besides = flight.besides, []
        flight.coming = [] if self.crawl.finished() else [size for size in asked if self.crawl.sent()]
        self.counts["browser/requests"] += len(flight.coming)
        if len(flight.coming) < len(asked):
            flight.is_short = True
            self.counts["browser/refused/budget"] += len(asked) - len(flight.coming)
        if not flight.coming:
            self._release(flight.pick)
            return
        flight.out = flight.shown
        flight.requests += len(flight.coming)
        heapq.heappush(self._waiting, (self.clock.now + self._seconds(flight.out), next(self._order), flight))

    def _seconds(self, page: int) -> float:
        seconds = self.latency(page, self.rng)
        if not 0 <= seconds < math.inf:
            raise ConfigError(
                f"the latency {self.latency!r} said {seconds!r}; a request takes a number of seconds from 0"
            )
        return seconds

    def _receive(self, flight: Flight) -> None:
        if flight.coming:
            for size in flight.coming:
                self._came(flight, size)
            flight.coming = []
        else:
            received = self.answers.receive(flight, self.clock.now)
            if received is None:
                self.crawl.received(None)
            else:
                flight.received = received
                self._came(flight, received)
        flight.out = -1

    def _came(self, flight: Flight, received: int) -> None:
        """Record an answered request with its bytes."""
        self.crawl.received(received)
        self._other_bytes += received
        flight.all_received += received
        self._note(flight)

    def _note(self, flight: Flight) -> None:
        self.rows.append((
            self.crawl.rewards, self._target_bytes, self._other_bytes, self.clock.now - self.clock.begin, flight.out,
            flight.is_head, 0.0, len(self._hosts),
        ))  # fmt: skip

    def _conclude(self, flight: Flight) -> None:
        self.desk.end(flight.pick)
        outcome = self.answers.outcome(flight, self.clock.now)
        if flight.leads_to >= 0 and self.crawl.knows([flight.leads_to]) != [State.NEW]:
            outcome = outcome._replace(also=(*outcome.also, flight.leads_to))
        self.counts[f"outcome/{_name_of(outcome, flight)}"] += 1
        self.missed += outcome.error == "unrecorded"
        if flight.shown >= 0:
            self.counts["browser/read"] += 1
        before, concluded = self.crawl.rewards, self.crawl.counts["outcomes"]
        has_links = not outcome.error and not flight.is_head
        links = self.answers.links(flight) if has_links else []
        if self.signals is not None:
            for part in self.signals.of(flight, self.clock.now):
                self.crawl.hear(part)
        self.crawl.report(outcome, links)
        if self.crawl.counts["outcomes"] > concluded:
            self._placed(links)
        else:  # its reward comes later, and its links are placed then
            self._owing[flight.pick.id] = links
        if reward := self.crawl.rewards - before:
            self._earn(flight, reward)

    def _look_after_owed(self) -> None:
        """Check which outcomes have their reward, and which of their links the policy left unchanged."""
        if self._owing:
            for pick_id in self._owing.keys() - self.crawl.status().owed:
                self._placed(self._owing.pop(pick_id))

    def _placed(self, links: Sequence[Link]) -> None:
        """Record that the policy received these links; those that are still new may be offered again."""
        states = self.crawl.knows([link.key for link in links]) if links else ()
        if State.NEW in states:
            self.answers.forget([link for link, state in zip(links, states, strict=True) if state == State.NEW])

    def _earn(self, flight: Flight, reward: float) -> None:
        """Write a reward to the row of the last request, which was of this pick if it had any."""
        if reward > 0:
            self._hosts.add(self.answers.site.hosts[flight.final if flight.final >= 0 else flight.pick.key])
            self._target_bytes += flight.received
            self._other_bytes -= flight.received
        _, _, _, seconds, page, head, earlier, _ = self.rows[-1]
        self.rows[-1] = (
            self.crawl.rewards, self._target_bytes, self._other_bytes, seconds, page, head, earlier + reward,
            len(self._hosts),
        )  # fmt: skip


def _name_of(outcome: Outcome, flight: Flight) -> str:
    """Return the name that an outcome is counted by."""
    if outcome.error:
        return outcome.error.partition(":")[0]
    if flight.is_head:
        return "probed"
    if outcome.changed is False:
        return "unchanged"
    return "ok"
