"""A web of synthetic news sites that change and link to each other, each on a different host.

A crawl of one host says nothing about sharing: which host is next, how often each may be requested, and whether
lessons from one host hold for the next. This web has quick hosts and slow ones, and the truth about all of them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from scrapy_focus.lab.sites.news.plan import Manner
from scrapy_focus.lab.sites.news.site import Born, NewsSite, Version
from scrapy_focus.lab.sites.portal.portal import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_MOST: Final = 100  # hosts
_PARTNERS: Final = 3  # hosts that a front page links to
_ABROAD: Final = 0.2  # share of the articles that lead to other hosts
_LATEST: Final = 30  # articles of a host that these are chosen from
_KINDS: Final[tuple[dict[str, Any], ...]] = (
    {"per_hour": 6.0},
    {"per_hour": 0.3},
    {"per_hour": 3.0, "waves": True},
    {"per_hour": 1.0, "small_world": True},
    {"per_hour": 2.0, "far": True},
    {"per_hour": 0.5, "undated": 1.0, "validators": "missing"},
)


class NewsWeb:
    """Synthetic news sites on ``http://news00.example`` and so on, at the time of a clock.

    By default six kinds of them alternate: many articles at once, few, waves, a small world, far lists, and no dates.
    Sizes are drawn: 100 to 1,600 old articles, 2 to 8 sections. Front pages link to those of three other hosts, so
    that each can be reached from each. One article in five links to one or two late articles there.

    Parameters
    ----------
    hosts
        Number of hosts, 2 to 100; or the behaviour of each.
    seed
        Webs with the same parameters are the same to the byte.
    days, clock
        As of :class:`~scrapy_focus.lab.sites.news.site.NewsSite`.

    Raises
    ------
    ValueError
        If there are fewer or more hosts.

    Examples
    --------
    >>> web = NewsWeb(2, seed=0, days=1)
    >>> web.roots
    ['http://news00.example/', 'http://news01.example/']
    """

    def __init__(
        self, hosts: int | Sequence[Manner] = 12, *, seed: int = 0, days: float = 5.0,
        clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        n = hosts if isinstance(hosts, int) else len(hosts)
        if not 2 <= n <= _MOST:
            raise ValueError(f"hosts is {n!r}; a web has 2 to {_MOST} hosts")
        self.seed = seed
        self.clock = clock
        manners = list(manners_of(hosts, seed) if isinstance(hosts, int) else hosts)
        #: The site of each host, such as ``news00.example``.
        self.sites: dict[str, NewsSite] = {}
        names = [f"news{number:02}.example" for number in range(n)]
        for number, (name, manner) in enumerate(zip(names, manners, strict=True)):
            partners = _partners(number, n, seed)
            beyond = _Beyond(self, number, [names[other] for other in partners])
            site = NewsSite(manner, seed=100 * seed + number, days=days, clock=clock, beyond=beyond)
            site.origin = f"http://{name}"
            self.sites[name] = site

    @property
    def roots(self) -> list[str]:
        """The front page of each host."""
        return [f"{site.origin}/" for site in self.sites.values()]

    def fetch(self, url: str) -> Page:
        """Answer a request for a URL now."""
        return self.answer(url, self.clock())

    def answer(self, url: str, at: float) -> Page:
        """Answer a request for a URL at a time; 502 for an unknown host, as proxies do."""
        scheme, _, rest = url.partition("://")
        host, slash, path = rest.partition("/")
        if scheme != "http":
            text = f"This is a proxy for synthetic hosts: ask it for whole URLs, as in {self.roots[0]}\n"
            return Page.of(text.encode(), status=400, mime="text/plain")
        if (site := self.sites.get(host.lower())) is None:
            return Page.of(b"There is no such host.\n", status=502, mime="text/plain")
        return site.answer(slash + path or "/", at, site.origin)

    def born(self, first: float, last: float) -> list[Born]:
        """Return the articles that were born from a time on and before another, by time; their paths are URLs."""
        found = [
            born._replace(path=site.origin + born.path)
            for site in self.sites.values()
            for born in site.born(first, last)
        ]
        return sorted(found, key=lambda born: born.at)

    def versions(self) -> Iterator[Version]:
        """Yield all answers of each page, as each site does, host by host; their paths are URLs."""
        for site in self.sites.values():
            yield from (version._replace(path=site.origin + version.path) for version in site.versions())

    def hubs(self) -> list[str]:
        """Return the URLs of pages that list new articles."""
        return [site.origin + path for site in self.sites.values() for path in site.hubs()]


def manners_of(hosts: int, seed: int = 0) -> list[Manner]:
    """Return how the hosts of a web behave by default."""
    rng = np.random.default_rng([seed, 23])
    manners = []
    for number in range(hosts):
        sections = int(rng.integers(2, 9))
        archive = 100 << int(rng.integers(5))
        kind = _KINDS[number % len(_KINDS)]
        manners.append(Manner(sections=sections, topics=4 * sections, archive=archive, topical=True, **kind))
    return manners


def _partners(number: int, hosts: int, seed: int) -> list[int]:
    """Return the hosts that one links to: the next one, so that all can be reached, and others."""
    rng = np.random.default_rng([seed, 24, number])
    following = (number + 1) % hosts
    others = [other for other in range(hosts) if other not in (number, following)]
    return [following, *rng.permutation(others)[: _PARTNERS - 1].astype(int).tolist()]


class _Beyond:
    """The links from pages of one host to other hosts."""

    def __init__(self, web: NewsWeb, number: int, partners: list[str]) -> None:
        self._web = web
        self._number = number
        self._partners = partners

    @property
    def partners(self) -> list[tuple[str, str]]:
        """URLs of front pages, with anchors."""
        return [(f"http://{name}/", name) for name in self._partners]

    def of_article(self, article: int, born: float) -> list[tuple[str, str]]:
        """Return older articles of other hosts that one links to, with their titles."""
        rng = np.random.default_rng([self._web.seed, 25, self._number, article])
        if rng.random() >= _ABROAD:
            return []
        links: dict[str, str] = {}
        for name in rng.choice(self._partners, int(rng.integers(1, 3))).tolist():
            site = self._web.sites[name]
            earlier = int(np.searchsorted(site.plan.born, born))
            if earlier:
                other = earlier - 1 - int(rng.integers(min(_LATEST, earlier)))
                path, title = site.teaser(other)
                links[site.origin + path] = title
        return list(links.items())
