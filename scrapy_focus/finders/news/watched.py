"""The report of a folder with news of a watched site: sums of its lists.

Everything is read from the folder, so the report is the same for a running watch, for one resumed after a kill, and
for a command.
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

NEWEST = 100  # articles that are listed
_KEPT = 1000  # last lines that may have the newest articles
_DELAYS = 100_000  # last delays, for the quantiles


class Delays(NamedTuple):
    """The times from publication to first sight, of articles with a publication time."""

    n: int
    mean: float  # seconds
    quantiles: list[float]  # seconds, of 0, 1, .. 100 %

    @property
    def median(self) -> float:
        """The seconds within which half of the articles were seen."""
        return self.quantiles[50]

    @property
    def most(self) -> float:
        """The seconds within which 90 % of the articles were seen."""
        return self.quantiles[90]


class Watched(NamedTuple):
    """Everything that the page of a watched site shows."""

    notes: Notes
    began: float | None  # start of the watch, in seconds since the epoch; None: unknown
    articles: list[Article]  # the newest versions of the newest ones, the newest first
    n_new: int
    n_changes: int
    arrivals: dict[int, int]  # new articles by hour since the epoch
    delays: Delays | None  # of articles that were published while the site was watched; None: no such article
    by: list[tuple[str, int]]  # where new articles were found (a page, a feed, a sitemap), and how many
    hubs: list[tuple[str, int]]  # URLs of pages that linked to new articles, and how many, the most first
    hosts: list[str]
    pages: list[WatchedPage]  # watched pages
    hours: list[Hour]
    said: Said  # tables of the policy
    damaged: int  # lines that could not be read

    @property
    def last(self) -> float:
        """The time of the last note, in seconds since the epoch; 0 if there is none."""
        said = number_in_state(self.notes.state, "now")
        return max([said or 0.0, *(article.at for article in self.articles[:1])])


class Gathering:
    """The sums of the list of a folder; each line is read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._reader = NewsReader(folder / NEWS)
        self._last: deque[Article] = deque(maxlen=_KEPT)
        self._delays: deque[tuple[float, float]] = deque(maxlen=_DELAYS)  # time of publication, delay
        self._arrivals: Counter[int] = Counter()
        self._by: Counter[str] = Counter()
        self._hubs: Counter[str] = Counter()
        self._hosts: Counter[str] = Counter()
        self._n_new = self._n_changes = 0

    def read(self) -> Watched:
        """Return the current report; linear in the lines added since the last call.

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
    """Return the distribution of some delays, ``None`` if there are none.

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
    """Return the daily count of something over the last day, ``None`` if not yet known.

    Hours when the process did not run count, too.
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
    """Return the seconds of the longest time without requests, in whole hours."""
    return max((two.began - one.began - HOUR for one, two in pairwise(hours)), default=0.0)


def number_in_state(state: dict[str, Any], name: str) -> float | None:
    """Return a number from the noted state of a crawl, ``None`` if missing."""
    return number_of(state.get(name))


def _began(notes: Notes, hours: list[Hour]) -> float | None:
    said = number_in_state(notes.runs[0], "now") if notes.runs else None
    if said is None and hours:
        return hours[0].began
    return said
