"""A worker's knowledge of the crawl, from the leader's last answers."""

from __future__ import annotations

import time
from collections import deque
from types import MappingProxyType
from typing import TYPE_CHECKING

from scrapy_focus.core.budget import Rate
from scrapy_focus.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scrapy_focus.cluster.messages import Answer, News, Portrait
    from scrapy_focus.core.abilities import Left, PolicyTable, WatchedPage

_HUNGRY = 0.3  # seconds between two messages of an idle worker
_LOOKS = 5.0  # seconds between two portraits
_RECENT = 256  # rewards whose time is remembered


class CrawlNews:
    """Keeps the last news and the last portrait of a crawl; requests a portrait when one is read.

    Parameters
    ----------
    now
        Returns the local time, in seconds since the epoch.
    speed
        Seconds of that clock per second of the machine's.
    """

    def __init__(self, now: Callable[[], float], speed: float) -> None:
        self.news: News | None = None
        self.finished = ""  # why the crawl is over, according to the leader
        self.wants_portrait = True
        self._now = now
        self._speed = speed
        self._at = time.monotonic()  # when the news arrived
        self._portrait: Portrait | None = None
        self._looked = float("-inf")
        self._found_at: deque[tuple[int, float]] = deque(maxlen=_RECENT)

    def take(self, answer: Answer) -> None:
        """The leader answered."""
        now = time.monotonic()
        if answer.news is not None:
            self.news, self._at = answer.news, now
            used = int(answer.news.used["requests"])
            if not self._found_at or self._found_at[-1][0] < used:
                self._found_at.append((used, answer.news.rewards))
        if answer.portrait is not None:
            self._portrait, self._looked = answer.portrait, now
            self._found_at = deque(answer.portrait.found_at, maxlen=_RECENT)
        self.finished = answer.finished

    def time(self, seconds: float | None) -> float | None:
        """Return the time that was so many seconds away in the last news; if it has passed, the next message's time."""
        if seconds is None:
            return None
        since = (time.monotonic() - self._at) * self._speed
        return self._now() + max(_HUNGRY * self._speed, seconds - since)

    @property
    def asleep(self) -> int:
        """How many links sleep until a time."""
        return 0 if self.news is None else self.news.asleep

    @property
    def next_due(self) -> float | None:
        """When the first of these is due, in seconds since the epoch."""
        return None if self.news is None else self.time(self.news.next_due)

    @property
    def next_turn(self) -> float | None:
        """When the rate of the budget allows the next choice, likewise."""
        return None if self.news is None else self.time(self.news.next_turn)

    @property
    def due(self) -> float | None:
        """When the policy may choose the next link, likewise."""
        return None if self.news is None else self.time(self.news.due)

    def whole(self, at: float, best: int) -> Status | None:
        """Return the state of the crawl of all machines, with so many of the best arms; ``None``: unknown yet."""
        news = self.news
        if news is None:
            return None
        return Status(
            counts=MappingProxyType(news.counts),  # type: ignore[arg-type]
            waiting=news.waiting, asleep=news.asleep, next_due=self.next_due, arms=news.arms, awake=news.awake,
            in_flight=news.out, owed=frozenset(), rewards=news.rewards,
            found_at=self._found_at, used=news.used, limits=news.limits,
            finished=self.finished, at=at, due=self.due, recovered=frozenset(),
            rate=Rate.of(news.rate) if news.rate else None, next_turn=self.next_turn,
            best_arms=self.best_arms(best), left=self.left, cost=self.cost,
        )  # fmt: skip

    # The policy's forecasts, with the interface of core/forecasts.py

    def best_arms(self, k: int) -> Sequence[tuple[str, float, int]]:
        """Return up to ``k`` of the best arms."""
        return () if self._portrait is None else self._portrait.best_arms[:k]

    @property
    def left(self) -> Left | None:
        """Return how many targets are expected to be left."""
        return None if self._portrait is None else self._portrait.left

    @property
    def cost(self) -> float | None:
        """Return how many requests the next target is expected to cost."""
        return None if self._portrait is None else self._portrait.cost

    def watched(self, most: int) -> list[WatchedPage]:
        """Return nothing: the leader knows these pages."""
        return []

    def tables(self) -> list[PolicyTable]:
        """Return the tables of the policy from the last portrait."""
        self.look()
        return [] if self._portrait is None else [*self._portrait.tables]

    def look(self) -> None:
        """Have the next message request a portrait, unless the last one is new."""
        if time.monotonic() - self._looked > _LOOKS:
            self.wants_portrait = True
