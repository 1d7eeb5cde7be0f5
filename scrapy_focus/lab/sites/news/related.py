"""Which earlier articles of a news site an article links to: by topic alone, as a scale-free small world, or rewired.

To show whether a crawler profits from the small-world property of a web, one compares two graphs with the same
degrees, only one of which has the property. So links can be drawn with the property, and rewired afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_RELATED: Final = (3, 12)  # minimum and maximum links of an article to others
_NEARBY: Final = 60  # articles that these are chosen from
_MOST: Final = 60  # of a small world
_OUT: Final = 1.4  # exponent of the distribution of outgoing links
_IN: Final = 2.57 - 1  # exponent of the popularity, which gives 2.57 for incoming links
_PARETO: Final = 1.2  # of the given popularity
_SAME: Final = (0.3, 0.6)  # share of links to any article; of these and the ones to articles of the section
_ROUNDS: Final = 60  # rounds, each of which tries half of all pairs of links


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
        The popularity of each article, by a power law with the exponent 1.2 above; popular ones get more links.
    """

    def __init__(self, popularity: NDArray[np.float64]) -> None:
        self._popularity = popularity ** (_PARETO / _IN)
        self._sums = np.cumsum(self._popularity)
        weights = np.arange(1.0, _MOST + 1) ** -_OUT
        self._degrees = np.cumsum(weights / weights.sum())

    def draw(
        self, rng: np.random.Generator, article: int, section: NDArray[np.int64], topic: NDArray[np.int64]
    ) -> tuple[int, ...]:
        """Return earlier articles, each once; the arguments are those of its section and of its topic, in order."""
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
    """Return other links of as many articles, with the same number of links from and to each of them.

    Two random links exchange their targets, often enough that none is unchanged except by chance. They do not if one
    would then lead to a later article than its own, or if an article would have it twice.
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
    """Return the targets after all allowed exchanges between pairs of links."""
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
