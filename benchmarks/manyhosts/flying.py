"""Crawls a made-up web with a policy, step by step, at most one request at a time on a host."""

from __future__ import annotations

import heapq
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from scrapy_focus.core.types import Outcome, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from manyhosts.web import MadeUpWeb, WebPage
    from scrapy_focus.core.crawl import Crawl
    from scrapy_focus.core.types import Pick


class Step(NamedTuple):
    """A pick that was settled."""

    outcome: Outcome
    page: WebPage  # behind the redirects
    requests: int  # that were sent for it
    reward: float
    seconds: float  # of CPU since the last step, in policy and frontier: choosing, placing, learning
    longest: float  # of these, at once


class _Flight:
    """A pick on its way, and the pages that were asked for it."""

    __slots__ = ("also", "error", "page", "pick", "requests", "seconds")

    def __init__(self, pick: Pick, crawl: Crawl, web: MadeUpWeb) -> None:
        self.pick, self.error = pick, ""
        self.also: list[int] = []
        self.page = web.page(pick.url, depth=pick.depth + 1)
        self.requests, self.seconds = 1, self.page.seconds
        crawl.sent(pick.id)
        while self.page.location and not self.error:
            target = web.link(self.page.location)
            if crawl.frontier.states([target.key])[0] != State.NEW:
                self.error = "redirect_seen"
            elif not crawl.sent(pick.id):
                self.error = "budget"
            else:
                self.requests += 1
                self.also.append(target.key)
                self.page = web.page(target.url, depth=pick.depth + 1)
                self.seconds += self.page.seconds

    def outcome(self) -> Outcome:
        page: WebPage = self.page
        if self.error or not page.status:
            return Outcome(pick=self.pick, error=self.error or page.error, seconds=self.seconds, also=tuple(self.also))
        return Outcome(
            pick=self.pick, status=page.status, mime=page.mime, error=page.error, seconds=self.seconds, page=page,
            also=tuple(self.also),
        )  # fmt: skip


def _no_seconds() -> float:
    return 0.0


def steps(
    crawl: Crawl, web: MadeUpWeb, in_flight: int = 1, judging: Callable[[], float] = _no_seconds
) -> Iterator[Step]:
    """Crawl until nothing can be chosen, with so many requests in flight; time is that of the web.

    ``judging`` returns the seconds of CPU that the goal has taken so far, which are not counted.
    """
    flights: list[tuple[float, int, _Flight]] = []
    busy: Counter[str] = Counter()
    now, spent, longest = 0.0, 0.0, 0.0
    while True:
        pick = None
        if len(flights) < in_flight:
            clock = time.thread_time()
            pick = crawl.next(busy.keys() if in_flight > 1 else ())
            took = time.thread_time() - clock
            spent, longest = spent + took, max(longest, took)
        if pick is not None:
            flight = _Flight(pick, crawl, web)
            busy[pick.host] += 1
            heapq.heappush(flights, (now + flight.seconds, pick.id, flight))
            if len(flights) < in_flight:
                continue
        if not flights:
            return
        now, _, flight = heapq.heappop(flights)
        busy -= Counter([flight.pick.host])
        outcome = flight.outcome()
        links = flight.page.links if outcome.is_html else []
        judged, rewards, clock = judging(), crawl.rewards, time.thread_time()
        crawl.report(outcome, links)
        took = time.thread_time() - clock - (judging() - judged)
        yield Step(outcome, flight.page, flight.requests, crawl.rewards - rewards, spent + took, max(longest, took))
        spent, longest = 0.0, 0.0
