"""Update the page and tables of a folder periodically while a crawl runs."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy.utils.asyncio import call_later

from scrapy_focus.engine.host import host_of
from scrapy_focus.finders.kit.page.fresh import write_fresh
from scrapy_focus.finders.kit.page.policy_tables import Said, write_tables

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scrapy.crawler import Crawler
    from scrapy.utils.asyncio import CallLaterResult


_FIRST, _LAST = 15.0, 300.0  # seconds between two writes: at first, and after fifty minutes
_SHARE = 0.1  # of the time since the start, in between
_COST = 20.0  # times the duration of a write
_PAGES = 1_000  # listed in fresh.csv while the crawl runs, at 70 microseconds each
_ALL = 10_000  # listed when it ends


class Writings:
    """Calls a function when there is something new and enough time has passed.

    The interval grows from 15 seconds to five minutes, and further if writing is slow: it takes a twentieth of the
    time at most.
    """

    def __init__(self, write: Callable[[], object]) -> None:
        self._write = write
        self._began = monotonic()
        self._next = self._began + _FIRST  # next write, in seconds of time.monotonic
        self._alarm: CallLaterResult | None = None

    def came(self) -> None:
        """Note that there is something new to write."""
        if self._alarm is None:
            self._alarm = call_later(max(0.0, self._next - monotonic()), self._on_alarm)

    def now(self, *args: Any) -> None:
        """Write now, and schedule the next write."""
        began = monotonic()
        self._write(*args)
        now = monotonic()
        wait = min(_LAST, max(_FIRST, _SHARE * (now - self._began)))
        self._next = now + max(wait, _COST * (now - began))

    def stop(self) -> None:
        """Stop writing, except by :meth:`now`."""
        if self._alarm is not None:
            self._alarm.cancel()

    def _on_alarm(self) -> None:
        self._alarm = None
        self.now()


def list_pages(crawler: Crawler, out: Path, is_end: bool) -> None:
    """Write ``fresh.csv``, if the scheduler is one of this package; at the end, call it before the scheduler closes.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    if (host := host_of(crawler)) is not None:
        write_fresh(out, host.crawl.forecasts.watched(_ALL if is_end else _PAGES))


def list_tables(crawler: Crawler, out: Path) -> None:
    """Write the tables of the policy, likewise; they replace those of an earlier policy.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    if (host := host_of(crawler)) is not None:
        write_tables(out, Said(host.policy.__qualname__, host.status().at, host.tables()))
