"""Pauses and slows down requests to hosts that ask for it."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from scrapy.utils.httpobj import urlparse_cached

from scrapy_focus.core.printable import printable_logger

if TYPE_CHECKING:
    from collections import Counter

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_focus.engine.slots import Slots

logger = printable_logger(__name__)

_HALF_A_DAY = 43_200.0  # seconds; a time further ahead is written with its date


class Pace:
    """Pauses hosts and slows them down, for ``FOCUS_LONGEST_WAIT`` seconds at most, and logs it.

    Parameters
    ----------
    crawler
        The crawler of the crawl.
    slots
        The download slots.
    counts
        Where to count.
    seeds
        Hosts of the start requests so far: a pause of these is logged as a warning.
    longest
        The longest pause, in seconds.
    """

    def __init__(
        self, crawler: Crawler, slots: Slots, counts: Counter[str], *, seeds: set[str], longest: float
    ) -> None:
        self.crawler = crawler
        self.slots = slots
        self.counts = counts
        self.seeds = seeds
        self.longest = longest
        self._warned: dict[str, float] = {}  # by slot: the pause, in seconds, that the last warning named

    @property
    def put_off_hosts(self) -> tuple[int, float]:
        """Return how many hosts are paused, and in how many seconds the first of them opens."""
        return self.slots.shut, max(0.0, self.slots.opens_in() or 0.0)

    def put_off(self, request: Request, seconds: float, why: str) -> None:
        """Send nothing to the host of a request for so many seconds."""
        seconds = min(seconds, self.longest)
        slot = self._slot(request)
        if seconds > 0 and self.slots.put_off(slot, seconds):
            self.counts["host/put_off"] += 1
            is_seed = urlparse_cached(request).hostname in self.seeds
            is_news = is_seed and seconds >= 2 * self._warned.get(slot, 0.0)
            if is_news:
                self._warned[slot] = seconds
            until = datetime.now().astimezone() + timedelta(seconds=seconds)
            when = f"{until:%H:%M:%S}" if seconds < _HALF_A_DAY else f"{until:%Y-%m-%d %H:%M}"
            said = "No requests go to %s until %s (for %.0f s): %s"
            logger.log(logging.WARNING if is_news else logging.INFO, said, slot, when, seconds, why)

    def is_put_off(self, request: Request) -> bool:
        """Whether the host of a request is paused."""
        return self.slots.is_shut(self._slot(request))

    def slow_down(self, request: Request, delay: float) -> None:
        """Leave at least so many seconds between requests to the host of this one."""
        self.counts["host/slowed_down"] += 1
        self.slots.slow_down(self._slot(request), min(delay, self.longest))

    def owe(self, request: Request, n_requests: int) -> None:
        """Pause the host of a page for one delay per further request that a browser sent for it."""
        self.slots.owe(self._slot(request), n_requests)

    def _slot(self, request: Request) -> str:
        slot: str = self.crawler.engine.downloader.get_slot_key(request)
        return slot
