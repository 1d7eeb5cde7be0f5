"""What can be said of a folder with news of a watched site: sums of its lists.

Everything comes from the folder, so that it is the same whoever asks: a watch that runs, one that was resumed after a
kill, or a command.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.finders.kit.page.fresh import read_fresh
from scrapy_focus.finders.kit.page.policy_tables import read_tables
from scrapy_focus.finders.kit.page.words import number_of
from scrapy_focus.finders.kit.records.folder_names import NEWS
from scrapy_focus.finders.kit.records.notes import read_notes
from scrapy_focus.finders.news.hours import HOUR, read_hours
from scrapy_focus.finders.news.news_list import NewsReader, newest
from scrapy_focus.web.url_parts import parts_of

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.core.abilities import WatchedPage
    from scrapy_focus.finders.kit.page.policy_tables import Said
    from scrapy_focus.finders.kit.records.notes import Notes
    from scrapy_focus.finders.news.hours import Hour
    from scrapy_focus.finders.news.news_list import Article

NEWEST = 100  # articles that are named
_KEPT = 1000  # lines of which the newest articles are
_DELAYS = 100_000  # the last ones, of which the quantiles are


class Delays(NamedTuple):
    """How long it took until articles were seen that say when they were published."""

    n: int
    mean: float  # seconds
    quantiles: list[float]  # seconds, of 0, 1, .. 100 %

    @property
    def median(self) -> float:
        """Half of the articles were seen within so many seconds."""
        return self.quantiles[50]

    @property
    def most(self) -> float:
        """90 % of the articles were seen within so many seconds."""
        return self.quantiles[90]


class Watched(NamedTuple):
    """All that the page of a watched site shows."""

    notes: Notes
    began: float | None  # when the watch did, in seconds since the epoch; None: nobody knows
    articles: list[Article]  # the newest versions of the newest ones, the newest first
    n_new: int
    n_changes: int
    arrivals: dict[int, int]  # new articles by hour since the epoch
    delays: Delays | None  # of articles that were published while the site was watched; None: there is none
    by: list[tuple[str, int]]  # what new articles were found on: a page, a feed, a sitemap; and how many
    hubs: list[tuple[str, int]]  # URLs of pages on which new articles were found, and how many, the most first
    hosts: list[str]
    pages: list[WatchedPage]  # that are watched
    hours: list[Hour]
    said: Said  # what the policy shows of itself
    damaged: int  # lines that could not be read

    @property
    def last(self) -> float:
        """When something was noted last, in seconds since the epoch; 0 where nothing was."""
        said = number_in_state(self.notes.state, "now")
        return max([said or 0.0, *(article.at for article in self.articles[:1])])


class Gathering:
    """The sums of the list of a folder; what was added to it is read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._reader = NewsReader(folder / NEWS)
        self._last: deque[Article] = deque(maxlen=_KEPT)
        self._delays: deque[tuple[float, float]] = deque(maxlen=_DELAYS)  # when they were published, delay
        self._arrivals: Counter[int] = Counter()
        self._by: Counter[str] = Counter()
        self._hubs: Counter[str] = Counter()
        self._hosts: Counter[str] = Counter()
        self._n_new = self._n_changes = 0

    def read(self) -> Watched:
        """Return what can be said now; linear in what was added since it was asked last.

        Raises
        ------
        OSError
            If a file cannot be read.
        """
        for article in self._reader.read():
            self._add(article)
        notes, hours = read_notes(self.folder), read_hours(self.folder)
        began = _began(notes, hours)
        return Watched(
            notes=notes,
            began=began,
            articles=newest(iter(self._last), NEWEST),
            n_new=self._n_new,
            n_changes=self._n_changes,
            arrivals=dict(self._arrivals),
            delays=delays_of([delay for published, delay in self._delays if began is not None and published >= began]),
            by=self._by.most_common(),
            hubs=self._hubs.most_common(),
            hosts=[host for host, _ in self._hosts.most_common()],
            pages=read_fresh(self.folder),
            hours=hours,
            said=read_tables(self.folder),
            damaged=self._reader.damaged + notes.damaged,
        )

    def _add(self, article: Article) -> None:
        self._last.append(article)
        if article.state == "changed":
            self._n_changes += 1
            return
        self._n_new += 1
        self._arrivals[int(article.at // HOUR)] += 1
        self._by[article.by] += 1
        self._hosts[parts_of(article.url)[0]] += 1
        if article.page:
            self._hubs[article.page] += 1
        if article.published is not None and article.delay is not None:
            self._delays.append((article.published, article.delay))


def delays_of(seconds: list[float]) -> Delays | None:
    """Return the distribution of some delays, ``None`` of none.

    Examples
    --------
    >>> delays = delays_of([30.0, 10.0, 20.0])
    >>> delays.median, delays.quantiles[0], delays.quantiles[100], delays.mean
    (20.0, 10.0, 30.0, 20.0)
    """
    if not seconds:
        return None
    ordered = sorted(seconds)
    ranks = [max(0, math.ceil(percent * len(ordered) / 100) - 1) for percent in range(101)]
    return Delays(len(ordered), sum(ordered) / len(ordered), [ordered[rank] for rank in ranks])


def per_day(hours: list[Hour], name: str, now: float) -> float | None:
    """Return how many there were a day of something over the last day, ``None`` where that is not known yet.

    ``hours`` that were not watched, as the process did not run, count.
    """
    if not hours:
        return None
    last = int(now // HOUR)
    first = max(int(hours[0].began // HOUR), last - 24)
    whole = last - first  # hours
    if whole < 1:
        return None
    n = sum(hour.counts.get(name, 0) for hour in hours if first <= hour.began // HOUR < last)
    return 24.0 * n / whole


def longest_gap(hours: list[Hour]) -> float:
    """Return the seconds of the longest time in which nothing was asked for, in whole hours."""
    return max((two.began - one.began - HOUR for one, two in pairwise(hours)), default=0.0)


def number_in_state(state: dict[str, Any], name: str) -> float | None:
    """Return a number that was noted of how a crawl stands, ``None`` where there is none."""
    return number_of(state.get(name))


def _began(notes: Notes, hours: list[Hour]) -> float | None:
    said = number_in_state(notes.runs[0], "now") if notes.runs else None
    if said is None and hours:
        return hours[0].began
    return said
