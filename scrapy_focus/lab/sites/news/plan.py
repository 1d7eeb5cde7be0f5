"""The events of the synthetic news site: when each article is born, updated and withdrawn, and where it is listed.

All of them are drawn at once from a seed. So the site at any time, forward or back, is a function of the plan and
that time, and a benchmark knows what there was to find when.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np

from scrapy_focus.lab.sites.news.related import SmallWorld, by_topic, rewired

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

Validators = Literal["right", "missing", "stuck", "restless"]
LastMod = Literal["right", "missing", "lying"]

#: The start of every site's time, in seconds since the epoch: Monday, 5 January 2026, 0:00 UTC.
BEGIN: Final = 1_767_571_200.0
HOUR: Final = 3600.0
DAY: Final = 24 * HOUR

_OLD = 90 * DAY  # mean age of archived articles at the start
_UPDATES, _UPDATED = 0.8, 4 * HOUR  # updates of an article on average; time between two of them
_WITHDRAWN, _LIVES = 0.04, 36 * HOUR  # share of the articles, and the time to withdrawal on average
_FADING = 0.01  # share of the archive that is withdrawn while the site is watched
_WAVES, _WAVE, _IN_WAVE = 8 * HOUR, 3 * HOUR, 5 / 7  # between two waves, how long one lasts, share of births in waves
_ON_FRONT = 0.3  # share of the articles on the front page, where news come in waves
_UP = 0.1  # share of the articles of a small world that lead to a list


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """The behaviour of a news site. Fields are independent, so that the effect of each on a crawl can be measured
    alone.

    Raises
    ------
    ValueError
        If a value is unknown, or a number out of range.
    """

    per_hour: float = 7.0  # articles born, on average
    sections: int = 30
    topics: int = 400  # in the sections; each lists its latest articles
    archive: int = 5_000  # articles at the start
    far: bool = False  # whether new articles are listed four and five clicks from the first page, and not at once
    waves: bool = False  # whether most articles are born in waves, each on one topic, and few are on the first page
    undated: float = 0.0  # share of the articles without a publication date
    validators: Validators = "right"  # ETag and Last-Modified; stuck: they never change; restless: at each visit
    noisy: bool = False  # whether pages have a clock and a token, which change at each visit
    lastmod: LastMod = "right"  # of sitemaps; lying: always now
    lying: float = 1.0  # share of the addresses with a false date, if the sitemap lies
    feed: bool = True  # whether there is an RSS feed of the latest articles
    max_age: bool = False  # whether Cache-Control says how long pages may be kept
    crawl_delay: float = 0.0  # Crawl-delay of robots.txt in seconds; 0: none
    small_world: bool = False  # whether articles link to each other as pages of the Web do, and few to lists
    rewired: bool = False  # whether the links between articles are exchanged at random; each has as many as without
    topical: bool = False  # whether articles use the words of their topics

    def __post_init__(self) -> None:
        for name, kind in (("validators", Validators), ("lastmod", LastMod)):
            if getattr(self, name) not in get_args(kind):
                raise ValueError(f"{name} is {getattr(self, name)!r}; it is one of {', '.join(get_args(kind))}")
        for name in ("undated", "lying"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)!r}; it is a share from 0 to 1")
        if not (0 < self.per_hour <= 1000 and 1 <= self.sections <= 60 and self.sections <= self.topics <= 2000):
            raise ValueError(
                f"per_hour={self.per_hour!r}, sections={self.sections!r}, topics={self.topics!r}: a site has up to "
                "1,000 articles an hour, 1 to 60 sections, and as many topics at least, up to 2,000"
            )
        if not 0 <= self.crawl_delay <= 3600:
            raise ValueError(f"crawl_delay is {self.crawl_delay!r}; it takes 0 to 3,600 seconds")
        if not 0 <= self.archive <= 1_000_000:
            raise ValueError(f"archive is {self.archive!r}; it takes 0 to 1,000,000 articles")


class Plan:
    """Which articles are born, changed and withdrawn when; times are seconds since the epoch, columns have shape
    (articles,).

    Articles are numbered in the order of their births. Sections are numbered from 0, and so are topics; each topic
    belongs to one section.

    Parameters
    ----------
    manner
        How the site behaves.
    seed
        Plans with the same arguments are the same.
    days
        From :data:`BEGIN` on, for how long articles are born.
    """

    def __init__(self, manner: Manner, *, seed: int = 0, days: float = 5.0) -> None:
        if not 0 < days <= 366:
            raise ValueError(f"days is {days!r}; it takes a number above 0, up to 366")
        self.manner = manner
        self.seed = seed
        self.end = BEGIN + days * DAY
        rng = np.random.default_rng([seed, 18])
        self._draw_topics(rng)
        self._draw_births(rng)
        self._draw_changes(rng)

    def __len__(self) -> int:
        return len(self.born)

    def born_within(self, first: float, last: float) -> NDArray[np.int64]:
        """Return the numbers of the articles that were born from a time on and before another."""
        low, high = np.searchsorted(self.born, [first, last])
        return np.arange(low, high)

    def is_there(self, article: int, at: float) -> bool:
        """Whether an article is born and not withdrawn."""
        return bool(self.born[article] <= at < self.gone[article])

    def updates(self, article: int, at: float) -> int:
        """Return how often an article was updated by then."""
        return int(np.searchsorted(self._updates[article], at, side="right")) if article in self._updates else 0

    def changed(self, article: int, at: float) -> float:
        """Return when an article was published or updated last."""
        n = self.updates(article, at)
        return float(self._updates[article][n - 1] if n else self.born[article])

    def changes(self, article: int) -> list[float]:
        """Return when an article was born, updated and withdrawn, in order."""
        times = [float(self.born[article]), *self._updates.get(article, np.zeros(0)).tolist()]
        gone = float(self.gone[article])
        return [time for time in times if time < gone] + ([gone] if np.isfinite(gone) else [])

    @lru_cache(maxsize=1 << 14)  # noqa: B019 (a plan lives as long as its site)
    def related(self, article: int) -> tuple[int, ...]:
        """Return the articles that an article links to; all of them are earlier."""
        return self._rewired[article] if self.manner.rewired else self._drawn(article)

    @cached_property
    def of_topic(self) -> list[NDArray[np.int64]]:
        """The articles of each topic, in the order of their births."""
        return _groups(self.topic, self.manner.topics)

    @cached_property
    def of_section(self) -> list[NDArray[np.int64]]:
        """The articles of each section, likewise."""
        return _groups(self.section[self.topic], self.manner.sections)

    @cached_property
    def leads_up(self) -> NDArray[np.bool_]:
        """Which articles lead to a list."""
        share = _UP if self.manner.small_world else 1.0
        return np.random.default_rng([self.seed, 21]).random(len(self)) < share

    @cached_property
    def on_front(self) -> NDArray[np.int64]:
        """The articles that are listed on the front page while they are new, likewise."""
        return np.flatnonzero(self.top)

    @cached_property
    def everything(self) -> NDArray[np.int64]:
        """All articles, likewise."""
        return np.arange(len(self))

    def latest(self, of: NDArray[np.int64], at: float, n: int) -> list[int]:
        """Return the latest of some articles that exist, latest first, up to a limit."""
        place = int(np.searchsorted(self.born[of], at, side="right"))
        found: list[int] = []
        while place and len(found) < n:
            some = of[max(0, place - 2 * n) : place][::-1]
            found += some[self.gone[some] > at].tolist()
            place = max(0, place - 2 * n)
        return found[:n]

    def listed(self, of: NDArray[np.int64]) -> Iterator[float]:
        """Yield when a list of some articles may change, from the beginning on."""
        times = np.concatenate([self.born[of], self.gone[of]])
        yield from np.unique(times[(times > BEGIN) & (times <= self.end)]).tolist()

    def _drawn(self, article: int) -> tuple[int, ...]:
        """Return the articles that an article links to before any rewiring."""
        topic = self.topic[article]
        if self.manner.small_world:
            rng = np.random.default_rng([self.seed, 20, article])
            return self._world.draw(rng, article, self.of_section[self.section[topic]], self.of_topic[topic])
        rng = np.random.default_rng([self.seed, 19, article])
        return by_topic(rng, article, self.of_topic[topic], self.popularity)

    @cached_property
    def _world(self) -> SmallWorld:
        return SmallWorld(self.popularity)

    @cached_property
    def _rewired(self) -> list[tuple[int, ...]]:
        drawn = [self._drawn(article) for article in range(len(self))]
        return rewired(drawn, np.random.default_rng([self.seed, 22]))

    def _draw_topics(self, rng: np.random.Generator) -> None:
        manner = self.manner
        weights = 1 / np.arange(1.0, manner.topics + 1)
        #: Share of the articles that each topic has, shape (topics,).
        self.weights: NDArray[np.float64] = rng.permutation(weights / weights.sum())
        popular = 1 / np.arange(1.0, manner.sections + 1)
        rest = rng.choice(manner.sections, manner.topics - manner.sections, p=popular / popular.sum())
        #: The section of each topic, shape (topics,).
        self.section: NDArray[np.int64] = np.concatenate([np.arange(manner.sections), rest])

    def _draw_births(self, rng: np.random.Generator) -> None:
        manner, span = self.manner, self.end - BEGIN + DAY
        old = BEGIN - DAY - rng.exponential(_OLD, manner.archive)
        expected = manner.per_hour * span / HOUR
        alone = rng.poisson(expected * (1 - _IN_WAVE if manner.waves else 1.0))
        born = [old, BEGIN - DAY + span * rng.random(alone)]
        topic = [rng.choice(manner.topics, manner.archive + alone, p=self.weights)]
        if manner.waves:
            each = expected * _IN_WAVE / (span / _WAVES)  # articles of a wave
            for start in BEGIN - DAY + span * rng.random(rng.poisson(span / _WAVES)):
                n = rng.poisson(each)
                born.append(start + _WAVE * rng.random(n))
                topic.append(np.full(n, rng.integers(manner.topics)))
        times, topics = np.concatenate(born), np.concatenate(topic)
        order = np.argsort(times, kind="stable")
        order = order[times[order] < self.end]
        #: When each article was born.
        self.born: NDArray[np.float64] = times[order]
        #: The topic of each article.
        self.topic: NDArray[np.int64] = topics[order]

    def _draw_changes(self, rng: np.random.Generator) -> None:
        n = len(self.born)
        #: The popularity of each article, by a power law: popular ones get more links.
        self.popularity: NDArray[np.float64] = 1 + rng.pareto(1.2, n)
        #: Whether each article is listed on the front page while it is new.
        self.top: NDArray[np.bool_] = rng.random(n) < (_ON_FRONT if self.manner.waves else 1.0)
        #: Whether each article says when it was published.
        self.dated: NDArray[np.bool_] = rng.random(n) >= self.manner.undated
        is_new = self.born >= BEGIN - DAY
        dies = rng.random(n) < np.where(is_new, _WITHDRAWN, _FADING)
        fades = BEGIN + (self.end - BEGIN) * rng.random(n)
        #: When each article is withdrawn; inf: never.
        self.gone: NDArray[np.float64] = np.where(
            dies, np.where(is_new, self.born + rng.exponential(_LIVES, n), fades), np.inf
        )
        self._updates: dict[int, NDArray[np.float64]] = {}
        for article in np.flatnonzero(is_new).tolist():
            gaps = rng.exponential(_UPDATED, rng.poisson(_UPDATES))
            if len(gaps):
                self._updates[article] = self.born[article] + np.cumsum(gaps)


def _groups(of: NDArray[np.int64], n: int) -> list[NDArray[np.int64]]:
    """Return the numbers of those that belong to each of n groups, in order."""
    order = np.argsort(of, kind="stable")
    return np.split(order, np.searchsorted(of[order], np.arange(1, n)))
