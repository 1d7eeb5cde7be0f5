"""To which earlier ones the articles of a news site link: by topic alone, as a scale-free small world, or rewired.

Whether a crawler profits from the small-world property of a web is asked of two graphs in which each page has as many
links as in the other. Only one of them has it. So links can be drawn in a way that has it, and rewired afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_RELATED: Final = (3, 12)  # articles to which an article links, from and to
_NEARBY: Final = 60  # articles among which these are chosen
_MOST: Final = 60  # of a small world
_OUT: Final = 1.4  # exponent of how many articles link to so many others
_IN: Final = 2.57 - 1  # of how popular they are, which makes 2.57 of how many are linked from so many
_PARETO: Final = 1.2  # of the popularity that is given
_SAME: Final = (0.3, 0.6)  # share of the links to any article; of those and the ones to articles of the section
_ROUNDS: Final = 60  # in each of which half of all pairs of links are tried


def by_topic(
    rng: np.random.Generator, article: int, same: NDArray[np.int64], popularity: NDArray[np.float64]
) -> tuple[int, ...]:
    """Return earlier articles of a topic, the popular and late ones first; ``same`` are all of it, in order."""
    near = _before(article, same)
    wanted = min(len(near), int(rng.integers(*_RELATED)))
    return tuple(_draw(rng, near, wanted, popularity)) if wanted else ()


class SmallWorld:
    """Draws links as the Web at large has them: power laws of both degrees, neighbours that are linked, short paths.

    Most articles link to one or two, few to dozens. Four links of ten lead to late articles of the topic, three to such
    of the section, and three to whatever is popular, of any age.

    Parameters
    ----------
    popularity
        Of each article, by a power law with exponent 1.2 of what is above; others link to it the more.
    """

    def __init__(self, popularity: NDArray[np.float64]) -> None:
        self._popularity = popularity ** (_PARETO / _IN)
        self._sums = np.cumsum(self._popularity)
        weights = np.arange(1.0, _MOST + 1) ** -_OUT
        self._degrees = np.cumsum(weights / weights.sum())

    def draw(
        self, rng: np.random.Generator, article: int, section: NDArray[np.int64], topic: NDArray[np.int64]
    ) -> tuple[int, ...]:
        """Return earlier articles, each once; given are those of its section and of its topic, in order."""
        wanted = 1 + int(np.searchsorted(self._degrees, rng.random()))
        kinds = np.bincount(np.searchsorted(_SAME, rng.random(wanted)), minlength=3).tolist()
        found: list[int] = []
        if article:
            found += np.searchsorted(self._sums[:article], rng.random(kinds[0]) * self._sums[article - 1]).tolist()
        for n, same in zip(kinds[1:], (section, topic), strict=True):
            near = _before(article, same)
            found += _draw(rng, near, min(n, len(near)), self._popularity)
        return tuple(dict.fromkeys(found))


def rewired(links: list[tuple[int, ...]], rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Return other links of as many articles, in which each links to as many and is linked from as many.

    Two links that are drawn at random exchange what they lead to, often enough to leave none as it was but by chance.
    They do not where one would then lead to a later article than its own, or where an article would have it twice.
    """
    lengths = np.fromiter(map(len, links), np.int64, len(links))
    sources = np.repeat(np.arange(len(links)), lengths)
    targets = np.fromiter((other for each in links for other in each), np.int64, len(sources))
    for _ in range(_ROUNDS):
        one, other = np.array_split(rng.permutation(len(sources))[: len(sources) // 2 * 2], 2)
        targets = _exchanged(sources, targets, one, other)
    ends = np.cumsum(lengths)[:-1]
    return [tuple(each.tolist()) for each in np.split(targets, ends)]


def _exchanged(
    sources: NDArray[np.int64], targets: NDArray[np.int64], one: NDArray[np.int64], other: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the targets after as many exchanges between pairs of links as are allowed."""
    may = (targets[other] < sources[one]) & (targets[one] < sources[other])
    while True:
        after = targets.copy()
        after[one[may]], after[other[may]] = targets[other[may]], targets[one[may]]
        twice = _twice(sources, after)
        bad = may & (twice[one] | twice[other])
        if not bad.any():
            return after
        may &= ~bad


def _twice(sources: NDArray[np.int64], targets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which links their article has more than once."""
    keys = sources * (int(targets.max(initial=0)) + 1) + targets
    order = np.argsort(keys, kind="stable")
    same = keys[order][1:] == keys[order][:-1]
    twice = np.zeros(len(keys), bool)
    twice[order[1:][same]] = True
    twice[order[:-1][same]] = True
    return twice


def _before(article: int, same: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the latest of some articles that are earlier than one."""
    place = int(np.searchsorted(same, article))
    return same[max(0, place - _NEARBY) : place]


def _draw(rng: np.random.Generator, near: NDArray[np.int64], wanted: int, popularity: NDArray[np.float64]) -> list[int]:
    """Draw some, each once, the popular and late ones more often."""
    if not wanted:
        return []
    weights = popularity[near] / np.arange(len(near), 0, -1)
    drawn: list[int] = rng.choice(near, wanted, replace=False, p=weights / weights.sum()).tolist()
    return drawn
