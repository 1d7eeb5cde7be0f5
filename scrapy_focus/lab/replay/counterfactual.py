"""What another policy would have found in a past crawl: its decision log, replayed as far as a recording reaches.

A live crawl happens once, and its rewards (items from the pipelines, say) cannot be repeated. But its log has them,
and a recording of the fetched pages has the links. So another policy can crawl the same pages with the same number of
requests. It will request some that were not fetched then; how many shows how far the answer can be trusted.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from w3lib.url import canonicalize_url

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.goal import heads_tell, types_of
from scrapy_focus.core.log import read_log
from scrapy_focus.core.policy import Policy
from scrapy_focus.core.types import Placement, State
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.replay.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.types import Link, Outcome, Pick
    from scrapy_focus.lab.replay.harvest import Harvest


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterfactual:
    """Two courses of one crawl: the logged one, and that of another policy."""

    logged: Harvest  # the logged course, on the recording
    other: Harvest  # under the other policy, with as many requests
    reproduced: float  # share of the logged picks that the recording could answer, 0 to 1

    @property
    def coverage(self) -> float:
        """Share of the other policy's picks that the recording could answer, 0 to 1.

        The rest gets its reward from the log, or else 0.
        """
        return self.other.coverage

    @property
    def shared(self) -> float:
        """Share of the other policy's picks that the logged crawl also made, as far as its log could be replayed, 0
        to 1.
        """
        made = set(self.logged.asked)
        return sum(url in made for url in self.other.asked) / max(1, len(self.other.asked))

    def __str__(self) -> str:
        logged, other = self.logged.found[-1], self.other.found[-1]
        return (
            f"the logged crawl found {logged:g} with {self.logged.requests:,} requests, and this policy finds at least "
            f"{other:g} with {self.other.requests:,}; {self.coverage:.1%} of what it asks for was recorded, "
            f"{self.shared:.1%} is what the logged crawl asked for too, and {self.reproduced:.1%} of the log could be "
            "replayed"
        )


def counterfactual(
    log: str | Path, policy: Policy, goal: Goal, site: RecordedSite | str | Path, *, seed: int = 0, **options: Any
) -> Counterfactual:
    """Replay the decision log of a crawl, and give another policy the same number of requests.

    Parameters
    ----------
    log
        What ``FOCUS_LOG`` names: a file of JSON lines.
    policy
        The other policy.
    goal
        The reward of a URL that is not in the log. Rewards in the log take precedence.
    site
        A recording of what was fetched, or of more.
    seed
        Of the other policy's randomness.
    options
        See :func:`~scrapy_focus.lab.replay.simulate.simulate`; ``budget`` is what the logged crawl used by default. The
        log itself is replayed without ``budget``, ``ignored``, ``stop`` and ``truth``.

    Raises
    ------
    ConfigError
        If the log cannot be read, or has nothing that is in the recording.
    """
    site = site if isinstance(site, RecordedSite) else RecordedSite(site)
    events = list(read_log(log))
    worth = LoggedGoal(events, goal)
    budget = options.pop("budget", None)
    replayed = Logged(events)
    as_it_was = {**options, "ignored": (), "stop": None, "truth": None}
    logged = simulate(replayed, copy.deepcopy(worth), site, **as_it_was)
    if not logged.requests:
        raise ConfigError(
            f"nothing in the decision log {log} is on the recorded site {site.path}: are they of one crawl?"
        )
    other = simulate(policy, worth, site, seed=seed, budget=budget or logged.requests, **options)
    return Counterfactual(logged=logged, other=other, reproduced=replayed.reproduced)


class LoggedGoal:
    """The rewards of a logged crawl; for other URLs, those of another goal.

    Parameters
    ----------
    events
        The decision log.
    goal
        The other goal. It also judges HEADs.
    """

    def __init__(self, events: Iterable[dict[str, Any]], goal: Goal) -> None:
        self.goal = goal
        self.types = types_of(goal)
        self.heads_tell = heads_tell(goal)
        self.rewards: dict[str, float] = {}
        for pick, outcome in _settled(events):
            if pick["method"] == "GET" and outcome["error"] != "budget":
                self.rewards.setdefault(canonicalize_url(pick["url"]), outcome["reward"])

    def __call__(self, outcome: Outcome) -> float | None:
        known = self.rewards.get(canonicalize_url(outcome.pick.url)) if outcome.pick.method == "GET" else None
        return self.goal(outcome) if known is None else known


class Logged(Policy):
    """Makes the choices of a logged crawl, in its order, as far as links lead there.

    Picks without an outcome in the log, because they were released or the crawl was killed, are skipped.

    Parameters
    ----------
    events
        The decision log.
    """

    reads_page: ClassVar[bool] = False

    def __init__(self, events: Iterable[dict[str, Any]]) -> None:
        picks = sorted((pick for pick, _ in _settled(events)), key=lambda pick: pick["line"])
        self._order = [canonicalize_url(pick["url"]) for pick in picks]
        self._heads = {url for url, pick in zip(self._order, picks, strict=True) if pick["method"] == "HEAD"}
        self._keys: dict[str, int] = {}
        self._next = 0
        self._done = 0

    @property
    def reproduced(self) -> float:
        """Share of the logged picks that could be made again, and that the recording answered."""
        return self._done / max(1, len(self._order))

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        placements: list[Placement | None] = []
        for link in links:
            url = canonicalize_url(link.url)
            self._keys[url] = link.key
            probing = url in self._heads and link.state != State.PROBED
            placements.append(Placement(0, 0.0, method="HEAD" if probing else "GET"))
        return placements

    def select(self, busy: Collection[str]) -> Pick | None:
        while self._next < len(self._order):
            url = self._order[self._next]
            pick = self.frontier.take(self._keys[url]) if url in self._keys else None
            if pick is None and self.frontier.flying:
                return None  # a link to it may be in flight
            self._next += 1
            if pick is not None:
                return pick
        return None

    def due(self) -> float | None:
        return math.inf  # what was not chosen in the log never is

    def learn(self, outcome: Outcome) -> None:
        self._done += outcome.error != "unrecorded"


def _settled(events: Iterable[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each pick, with the number of its ``line``, and its outcome. Ids may come again in the next run."""
    flying: dict[int, dict[str, Any]] = {}
    for line, event in enumerate(events):
        if event["event"] == "pick":
            flying[event["id"]] = {**event, "line": line}
            continue
        pick = flying.pop(event["id"], None)
        if pick is not None and event["event"] == "outcome":
            yield pick, event
