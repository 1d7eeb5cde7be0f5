"""Keeps a site fresh: it decides which pages to revisit, and when, and fetches new pages as well.

A crawl that follows a site has so many requests, and more pages than these. A page that is fetched too often wastes
requests, and one that is fetched too rarely is stale. How often a page changes is learned from visits that show only
whether it changed since the last one, and how many new links it has.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, cast

import numpy as np
from attrs import field

from scrapy_focus.core.abilities import Left, WatchedPage
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.frontier import Drawn, Vectors
from scrapy_focus.core.giving_up import give_up
from scrapy_focus.core.parameters import configurable, parameter
from scrapy_focus.core.policy import Policy
from scrapy_focus.core.reason import Part, Reason, depth_of
from scrapy_focus.core.types import Link, Placement
from scrapy_focus.learn.allocation import Plan
from scrapy_focus.learn.changes import DAY, RATES, WATCHED, Changes, memo_of, record_of
from scrapy_focus.learn.signals import Belief
from scrapy_focus.policies.branching.features import BYTES
from scrapy_focus.policies.branching.policy import BranchingBandit

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from scrapy_focus.core.abilities import PolicyTable
    from scrapy_focus.core.frontier import Frontier, Keeps
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.types import Memo, Outcome, Pick, Signal

Purpose = Literal["news", "copies"]

_WAITS = tuple(hour * 3600.0 for hour in (0.5, 2.0, 8.0, 24.0, 96.0))  # that separate arms of known pages
_AHEAD = 3600.0  # seconds that the clocks of others may be ahead; reports of later times are wrong
_MOST = 1 << 16  # pages and links with data outside the frontier
_DRAWN = 8  # due pages of each such arm that are drawn, to visit the best of them
MARK = 0x0F0C  # of the memo of a known page
_NEVER = 1e9  # seconds
_FOR_NOW = (408, 429)  # errors below 500 that are temporary
_RETRY = 3600.0  # seconds until a failed page is requested again
_SHARES = 200.0  # picks over which the share of first visits is averaged
_MORE = 1.5  # multiple of the budget for which visits are planned: the best of those due are made


class _Choice(NamedTuple):
    """Why a page was chosen, for :meth:`Revisits.explain`."""

    pick_id: int
    gain: float  # expected reward of the visit
    new: float  # expected reward of the best new link


def _discovery(params: Mapping[str, Any] | None) -> BranchingBandit:
    """Return the policy for new links with these parameters; raise ConfigError for an unknown one."""
    try:
        return BranchingBandit(**(params or {}))
    except TypeError as error:
        raise ConfigError(f"BranchingBandit does not take this: {error}") from error


@configurable
class Revisits(Policy):
    """Revisits pages when that pays, and fetches new ones: to keep copies fresh, or to find what is new soon.

    Each fetched page sleeps until its next visit is due: when the loss that the visit would end has reached a
    threshold. That loss is the time during which new targets of the page are unknown, or its copy is outdated. The
    threshold follows from the budget: visits use it up. How often a page changes, and how many links to targets
    appear on it, is learned from its visits, and before them from similar pages. New links are chosen by a
    :class:`~scrapy_focus.policies.branching.BranchingBandit`. A due page and a new link compete by the expected
    reward of one request.

    Notes
    -----
    The mean delay until new targets are known is least if each page is visited when the unknown time of its targets
    adds up to the same, so that visits go by the square root of the rate. For copies it adds up more slowly, because
    an outdated page cannot become more so.

    *Memory*: 64 bytes for each known page, in the frontier, in place of the features of its link.

    References
    ----------
    Cho, Garcia-Molina: Effective page refresh policies for Web crawlers (2003). Azar, Horvitz, Lubetzky, Peres, Shahaf:
    Tractable near-optimal policies for crawling. PNAS 115 (2018). Upadhyay, Busa-Fekete, Kotłowski, Pál, Szörényi:
    Learning to crawl. AAAI 2020.
    """

    summary: ClassVar[str] = "Revisits pages when enough should have changed, as often as the budget allows."
    may_change: ClassVar[frozenset[str]] = frozenset(("per_day", "longest", "shortest", "explore"))

    frontier: Drawn = field(init=False)

    goal: Purpose | None = parameter(
        'What to keep fresh. ``"news"``: new targets are found soon. ``"copies"``: copies of targets are also as they '
        'are on the site. By default ``"copies"`` if the crawl looks for MIME types, and ``"news"`` otherwise.',
        default=None,
    )
    per_day: float = parameter(
        "Requests a day to plan visits for, if the crawl has no ``FOCUS_BUDGET_RATE``.",
        default=2000.0,
        above=0,
    )
    longest: float = parameter(
        "Days after which a page is due at the latest. A copy is then visited in any case; with news, "
        "a page that promises more than any other.",
        default=14.0,
        above=0,
    )
    shortest: float = parameter("Minimum seconds between two visits of a page.", default=60.0, above=0)
    fade: float = parameter(
        "Days after which the record of a page counts half; 0: it never fades.", default=30.0, at_least=0
    )
    explore: float = parameter(
        "Share of the choices between a due page and a new link where the worse one is taken.",
        default=0.1,
        at_least=0,
        at_most=1,
    )
    discovery: Mapping[str, Any] | None = parameter(
        "Parameters of the BranchingBandit, by name.", default=None, check=_discovery
    )

    def __attrs_post_init__(self) -> None:
        if self.shortest > self.longest * DAY:
            raise ConfigError(
                f"Revisits(longest={self.longest}, shortest={self.shortest}): longest (in days) must be at least "
                "shortest (in seconds)"
            )

    def keeps(self, mission: Mission) -> Keeps:
        return Vectors(BYTES)

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        self.new = _discovery(self.discovery)
        self.new.open(frontier, rng, replace(mission, renders=False, topic=None))
        names = [f"pages visited within {wait / 3600:g} hours" for wait in _WAITS]
        names += ["pages visited later", "pages reported as changed"]
        self.known_arms = [self.new.reserve(name) for name in names]
        self.keeps_copies = (self.goal or ("copies" if mission.types else "news")) == "copies"
        self.changes = Changes(half_life=self.fade * DAY if self.fade else math.inf)
        longest = self.longest * DAY if self.keeps_copies else _NEVER
        self.plan = Plan(self.changes, shortest=self.shortest, longest=longest)
        self._twins: dict[int, int] = {}  # by arm of links: the arm for its links that appeared on a known page
        self._first = 0.5  # share of the picks that are first visits
        self.belief = Belief()
        self._said: dict[int, tuple[str, str]] = {}  # by key of a page reported as changed: the host, the reporter
        self.typical = 0.0  # expected results of visits
        self._shown: dict[int, tuple[int, float]] = {}  # by key of a link that appeared on a known page: that of the
        # page, and the predicted probability that it is a target
        self._born: dict[int, float] = {}  # by key of such a page: targets that came up, as far as known
        self._last: _Choice | None = None
        self._read: tuple[Memo | None, np.void | None] = (None, None)
        super().open(frontier, rng, mission)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_read": (None, None)}

    def attach(self, frontier: Frontier) -> None:
        super().attach(frontier)
        self.new.attach(frontier)

    @property
    def rate(self) -> float:
        """How many requests a second visits are planned for, including those for new links."""
        return self.per_day / DAY if self.budget_rate is None else self.budget_rate

    def importance(self, outcome: Outcome) -> float:
        """Return the value of a fresh copy of a page: by default its reward."""
        return max(outcome.reward, 0.0)

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        if source is None or self._record(source.pick.memo) is None:
            return self.new.place(links, source)
        places = [self._appeared(place) for place in self.new.place(links, None)]
        page, chances = source.pick.key, np.minimum(self.new.chances(), 1.0)
        for link, place in zip(links, places, strict=True):
            if place is not None:
                chance = float(chances[place.arm])
                _remember(self._shown, link.key, (page, chance))
                _remember(self._born, page, self._born.get(page, 0.0) + chance)
        return places

    def select(self, busy: Collection[str]) -> Pick | None:
        waiting = self.frontier.awake(busy)
        due = self._due(waiting)
        if not due:
            self._last = None
            return self._count(self.new.select(busy), is_first=True)
        new = self.new.promise(waiting)
        drawn = self.frontier.draw(due, self.rng, busy=busy)
        records = np.array(drawn.vectors).view(WATCHED)[:, 0]
        records["prior"] = self.changes.newest
        waits = self.now - records["at"]
        values, gains = self.plan.values(records, waits)
        if self.keeps_copies:
            values[waits >= self.longest * DAY] = np.inf
        best = int(np.argmax(values))
        gain = float(gains[best])
        takes_new = new > (gain if np.isfinite(values[best]) else np.inf)
        if new > 0 and self.rng.random() < self.explore:
            takes_new = not takes_new
        if takes_new and (pick := self.new.select(busy)) is not None:
            self._last = None
            return self._count(pick, is_first=True)
        pick = self._count(self.frontier.take_drawn(int(drawn.slots[best])), is_first=False)
        self._last = None if pick is None else _Choice(pick.id, gain, new)
        self.typical += (gain - self.typical) / _SHARES
        return pick

    def _due(self, waiting: NDArray[np.int64]) -> dict[int, int]:
        """Return how many known pages to draw from each arm with due pages."""
        due = {}
        for arm in self.known_arms:
            if arm < len(waiting) and waiting[arm]:
                due[arm] = min(_DRAWN, int(waiting[arm]))
        return due

    def hear(self, signals: Sequence[Signal]) -> None:
        for signal in signals:
            record = self._record(self.frontier.vectors([signal.key])[0])
            if record is None or not float(record["at"]) < signal.modified <= self.now + _AHEAD:
                continue
            _remember(self._said, signal.key, (signal.host, signal.kind))
            if self._found_now(record, self.belief.trust(signal.host, signal.kind)) >= self.typical > 0:
                self.frontier.push([Link("", signal.key)], [Placement(self.known_arms[-1], 0.0, memo_of(record))])

    def _found_now(self, record: np.void, trust: float) -> float:
        """Return the expected reward of a visit now, for a page that changed with this probability, or for its
        current estimate.
        """
        wait = self.now - float(record["at"])
        _, found = self.plan.values(np.array([record]), np.array([wait]))
        changed = 1 - float(self.changes.posterior(record) @ np.exp(-RATES * wait))
        return float(found[0]) + float(record["weight"]) * max(0.0, trust - changed)

    def release(self, pick: Pick) -> None:
        if self._record(pick.memo) is None:
            self.new.release(pick)

    def give_up(self, n: int) -> int:
        """Give up new links, drawn at random from each arm, before any known page; of these the worst."""
        waiting = self.frontier.waiting
        known = sum(int(waiting[arm]) for arm in self.known_arms if arm < len(waiting))
        given = give_up(self.frontier, min(n, len(self.frontier) - known), self.rng, spared=self.known_arms)
        if given < n:
            drawn = self.frontier.draw(None, self.rng)
            records = np.array(drawn.vectors).view(WATCHED)[:, 0]
            values, _ = self.plan.values(records, self.now - records["at"])
            worst = np.argsort(values, kind="stable")[: n - given]
            for record in records[worst]:
                self.plan.remove(record)
            given += self.frontier.drop(drawn.slots[worst])
        return given

    def learn(self, outcome: Outcome) -> None:
        record = self._record(outcome.pick.memo)
        if record is None:
            self.new.learn(outcome)
            if (shown := self._shown.pop(outcome.pick.key, None)) is not None:
                page, chance = shown
                _remember(self._born, page, self._born.get(page, 0.0) + (outcome.reward > 0) - chance)
            return
        if outcome.once:  # it is never revisited
            self.plan.remove(record)
        said = self._said.pop(outcome.pick.key, None)
        if said is not None and outcome.changed is not None:
            self.belief.said(*said, right=outcome.changed)

    def again(self, outcome: Outcome) -> Placement | None:
        pick = outcome.pick
        before = self._record(pick.memo)
        if outcome.error:
            return self._try_again(outcome, before)
        weight = self.importance(outcome) if self.keeps_copies and outcome.changed is not False else 0.0
        if before is None:
            if not (weight or outcome.is_html or "xml" in outcome.mime):
                return None
            record = self._new(outcome, weight)
        else:
            record = before.copy()
            born = max(0.0, self._born.pop(pick.key, 0.0))
            changed = born > 0 if outcome.changed is None else outcome.changed
            self.changes.visited(record, outcome.at, changed, born)
            record["weight"] = max(weight, float(record["weight"]))
            record["misses"] = 0
        self.plan.replace(before, record)
        return self._sleep(record, outcome.at)

    def explain(self, pick: Pick) -> Reason:
        choice = self._last
        if choice is None or choice.pick_id != pick.id:
            return self.new.explain(pick)
        record = self._record(pick.memo)
        if record is None:
            return Reason(depth_of(pick))
        low, high = (round(rate * DAY, 4) for rate in self.changes.interval(record))
        visit, hours = int(record["visits"]) + 1, round((self.now - float(record["at"])) / 3600, 3)
        rate, births = round(self.changes.rate(record) * DAY, 4), round(self.changes.births(record) * DAY, 4)
        gain, new = round(choice.gain, 4), round(choice.new, 4)
        return Reason(
            Part(f"visit {visit}, {hours:.3g} hours after the last one", {"visit": visit, "hours": hours}),
            Part(
                f"changes {rate:.3g} times a day, between {low:.3g} and {high:.3g}",
                {"changes_a_day": rate, "interval": [low, high]},
            ),
            Part(f"{births:.3g} new finds a day appear on it", {"targets_a_day": births}),
            Part(
                f"expected to bring {gain:.3g} finds, the best new link {new:.3g}", {"expected": gain, "new_link": new}
            ),
        )

    def expected_cost(self) -> float | None:
        return self.new.expected_cost()

    def best_arms(self, k: int) -> list[tuple[str, float, int]]:
        return self.new.best_arms(k)

    def tables(self) -> list[PolicyTable]:
        return self.new.tables()

    def expected_left(self) -> Left | None:
        return self.new.expected_left()

    def watched(self, most: int) -> list[WatchedPage]:
        kept = self.frontier.kept(self.known_arms)
        records = np.array(kept.vectors).view(WATCHED)[:, 0]
        known = np.flatnonzero(records["mark"] == MARK)
        chosen = known[np.argsort(-records["visits"][known].astype(np.int64), kind="stable")[:most]]
        urls = self.frontier.urls(kept.numbers[chosen].tolist())
        pages = [
            self._watched_page(url, records[at], float(kept.due[at])) for url, at in zip(urls, chosen, strict=True)
        ]
        flying = ((pick.url, self._record(pick.memo)) for pick in self.frontier.flying.values())
        pages += [self._watched_page(url, record, 0.0) for url, record in flying if record is not None]
        return sorted(pages, key=lambda page: -page.visits)[:most]

    def _watched_page(self, url: str, record: np.void, due: float) -> WatchedPage:
        low, high = self.changes.interval(record)
        return WatchedPage(
            url=url,
            visits=int(record["visits"]),
            changes=int(record["changes"]),
            rate=min(max(self.changes.rate(record), low), high) * DAY,  # at the quickest, the mean is beyond
            low=low * DAY,
            high=high * DAY,
            targets=self.changes.births(record) * DAY,
            last=float(record["at"]),
            next=due if due > self.now else None,
        )

    def save(self, path: str | PathLike[str]) -> None:
        self.new.save(path)

    def load(self, path: str | PathLike[str]) -> None:
        self.discovery = {**(self.discovery or {}), "learned": str(path)}
        _discovery(self.discovery)

    def _appeared(self, place: Placement | None) -> Placement | None:
        """Queue a link that a known page did not have before: separately from those that may be old."""
        if place is None:
            return None
        if place.arm not in self._twins:
            self._twins[place.arm] = self.new.twin(place.arm, "new on a known page: ")
        return place._replace(arm=self._twins[place.arm])

    def _record(self, memo: Memo | None) -> np.void | None:
        """Return the record of a page that was fetched before, read-only; ``None`` for any other memo."""
        if memo is None or memo.dtype != np.uint8:
            return None
        if memo is not self._read[0]:
            record = record_of(cast("NDArray[np.uint8]", memo))
            is_known = record["mark"].item() == MARK and 0 <= record["at"].item() <= self.now
            self._read = memo, record if is_known and record["log"].max() == 0 else None
        return self._read[1]

    def _new(self, outcome: Outcome, weight: float) -> np.void:
        record = self.changes.new(outcome.at, weight=weight, arm=outcome.pick.arm)
        record["mark"] = MARK
        if outcome.max_age is not None:
            self.changes.expect(record, outcome.max_age)
        return record

    def _count(self, pick: Pick | None, *, is_first: bool) -> Pick | None:
        if pick is not None:
            self._first += (is_first - self._first) / _SHARES
        return pick

    def _sleep(self, record: np.void, at: float) -> Placement:
        """Put a page to sleep until it is due, by its record."""
        per_second = self.rate * _MORE * max(0.5, 1 - self._first)
        wait = min(self.plan.interval(record, self.plan.threshold(per_second)), self.longest * DAY)
        return self._place(record, at, wait)

    def _place(self, record: np.void, at: float, wait: float) -> Placement:
        return Placement(self.known_arms[bisect_left(_WAITS, wait)], 0.0, memo_of(record), after=at + wait)

    def _try_again(self, outcome: Outcome, before: np.void | None) -> Placement | None:
        """Put a failed page to sleep: an hour, and twice as long each time."""
        if before is None:
            if outcome.status is not None and outcome.status < 500 and outcome.status not in _FOR_NOW:
                return None
            record = self._new(outcome, 0.0)
        else:
            record = before.copy()
        wait = _RETRY * 2.0 ** int(record["misses"])
        if wait > self.longest * DAY:
            self.plan.replace(before, None)
            return None
        record["misses"] += 1
        self.plan.replace(before, record)
        return self._place(record, outcome.at, wait)


def _remember(memory: dict[int, Any], key: int, value: Any) -> None:
    """Remember an item; drop the oldest if there are too many."""
    memory[key] = value
    if len(memory) > _MOST:
        del memory[next(iter(memory))]
