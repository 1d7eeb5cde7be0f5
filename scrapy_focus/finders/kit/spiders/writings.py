"""Writes again and again, while a crawl runs, what people open of its folder."""

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


_FIRST, _LAST = 15.0, 300.0  # seconds between two writings: at first, and after fifty minutes
_SHARE = 0.1  # of the time since the beginning, in between
_COST = 20.0  # times as long as a writing took
_PAGES = 1_000  # that are listed in fresh.csv while the crawl runs, as that takes 70 microseconds for each
_ALL = 10_000  # when it ends


class Writings:
    """Lets something be written when something came and some time has passed.

    That is a quarter of a minute at first, and five minutes later on; more where writing takes long, so that it takes
    a twentieth of the time at most.
    """

    def __init__(self, write: Callable[[], object]) -> None:
        self._write = write
        self._began = monotonic()
        self._next = self._began + _FIRST  # writing, in seconds of time.monotonic
        self._alarm: CallLaterResult | None = None

    def came(self) -> None:
        """Something came that is to be written."""
        if self._alarm is None:
            self._alarm = call_later(max(0.0, self._next - monotonic()), self._on_alarm)

    def now(self, *args: Any) -> None:
        """Write it now, and plan the next writing."""
        began = monotonic()
        self._write(*args)
        now = monotonic()
        wait = min(_LAST, max(_FIRST, _SHARE * (now - self._began)))
        self._next = now + max(wait, _COST * (now - began))

    def stop(self) -> None:
        """Nothing is written any more, but by :meth:`now`."""
        if self._alarm is not None:
            self._alarm.cancel()

    def _on_alarm(self) -> None:
        self._alarm = None
        self.now()


def list_pages(crawler: Crawler, out: Path, is_end: bool) -> None:
    """Write ``fresh.csv``, where the scheduler is one of this package; before it is closed, at the end.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    if (host := host_of(crawler)) is not None:
        write_fresh(out, host.crawl.forecasts.watched(_ALL if is_end else _PAGES))


def list_tables(crawler: Crawler, out: Path) -> None:
    """Write what the policy shows of itself, likewise; what an earlier one showed does not stay.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    if (host := host_of(crawler)) is not None:
        write_tables(out, Said(host.policy.__qualname__, host.status().at, host.tables()))
