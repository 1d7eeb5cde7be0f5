"""A synthetic news site at any time: to be served by a clock, or to be recorded.

A test of revisiting needs a site that changes, and the truth about when. Both uses share one plan: a server shows the
site as it is now, by any clock; a recording gets each address with all its answers.
"""

from __future__ import annotations

import re
import time
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from scrapy_focus.lab.sites.news.html import NAME, Pages, section_name, topic_name, with_noise
from scrapy_focus.lab.sites.news.plan import BEGIN, DAY, Manner, Plan
from scrapy_focus.lab.sites.portal.portal import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from scrapy_focus.lab.sites.news.html import Beyond

_ON_FRONT, _IN_SECTION, _IN_TOPIC, _ON_WIRE, _IN_FEED = 15, 25, 20, 30, 20  # articles that are listed
_PICKS = 15  # old articles on the first page, where no new ones are
_REGIONS = 6  # intermediate pages between sections, if the good lists are far
_PER_PAGE = 50  # articles on a page of the archive
_PER_SITEMAP = 1000
_ARTICLE = re.compile(r"-(\d{1,9})\Z", re.ASCII)
_ARCHIVED = re.compile(r"/archive/(\d{1,6})\Z", re.ASCII)
_SITEMAP = re.compile(r"/sitemap-archive-(\d{1,6})\.xml\Z", re.ASCII)
_KEPT = {"list": 60, "article": 600, "old": 86_400}  # seconds, of Cache-Control


class Version(NamedTuple):
    """The answer of a path from a time on, until its next version."""

    path: str
    since: float  # seconds since the epoch; the beginning, where it was so before
    page: Page


class Born(NamedTuple):
    """An article, as a benchmark knows it."""

    path: str
    at: float  # when it was born, in seconds since the epoch
    gone: float  # when it was withdrawn; inf: never


class NewsSite:
    """A synthetic news site at the time of a clock.

    A front page lists the latest 15 articles and links to the sections, these list 25 and link to their topics, these
    list 20. Articles link to their section, their topic, and to earlier articles on it. If the good lists are far,
    the first page shows old articles. New ones are then listed by topics alone, four clicks away, and by ``/wire/``,
    five clicks away. In a small world, articles link to other articles, and one in ten to its topic, or to its
    section if the good lists are far. Sections alone link to the front page, and no page to an archive. Withdrawn
    articles answer 404 or 410.

    Parameters
    ----------
    manner
        Its behaviour; that of most news sites by default.
    seed
        Sites with the same parameters are the same to the byte.
    days
        For how long articles are born.
    clock
        Returns the time, in seconds since the epoch. Articles are born from
        :data:`~scrapy_focus.lab.sites.news.plan.BEGIN` on, 5 January 2026, and in the day before that.
    beyond
        Its links to other sites; none by default.

    Examples
    --------
    >>> site = NewsSite(seed=0, clock=lambda: BEGIN + 3600)
    >>> site.fetch("/").status, site.fetch("/nowhere").status
    (200, 404)
    """

    def __init__(
        self, manner: Manner | None = None, *, seed: int = 0, days: float = 5.0,
        clock: Callable[[], float] = time.time, beyond: Beyond | None = None,
    ) -> None:  # fmt: skip
        self.manner = manner if manner is not None else Manner()
        self.clock = clock
        #: The prefix of paths in sitemaps and the feed, such as ``http://127.0.0.1:8000``.
        self.origin = ""
        self.plan = Plan(self.manner, seed=seed, days=days)
        self._html = Pages(self.plan, beyond)
        self._beyond = [("partners", beyond.partners)] if beyond is not None else []
        self._sections = {section_name(section): section for section in range(self.manner.sections)}
        self._topics = {topic_name(topic): topic for topic in range(self.manner.topics)}
        self._old = self.plan.everything[self.plan.born < BEGIN - DAY][::-1]  # the archive, the latest first
        popularity = self.plan.popularity[self._old]
        self._picks = self._old[(-popularity).argsort(kind="stable")[: 4 * _PICKS]]

    def fetch(self, path: str) -> Page:
        """Answer a request for a path now."""
        return self.answer(path, self.clock(), self.origin)

    def answer(self, path: str, at: float, origin: str = "") -> Page:
        """Answer a request for a path at a time. ``origin`` is the prefix of paths that have to be absolute."""
        bare, _, query = path.partition("?")
        if query:
            return _missing()
        if (found := _ARTICLE.search(bare)) is not None and bare[1:2].isdigit():
            return self._article(int(found[1]), bare, at)
        html = self._list(bare, at)
        if html is not None:
            return self._page(bare, html, at, self._list_changed(bare, at), "list")
        if (static := self._html.static(bare[1:])) is not None:
            return self._page(bare, static, at, BEGIN - 300 * DAY, "old")
        return self._machine(bare, at, origin) or _missing()

    def born(self, first: float, last: float) -> list[Born]:
        """Return the articles that were born from a time on and before another."""
        plan = self.plan
        return [
            Born(self._html.path(article), float(plan.born[article]), float(plan.gone[article]))
            for article in plan.born_within(first, last).tolist()
        ]

    def versions(self) -> Iterator[Version]:
        """Yield all answers of each page from the start to the end, path by path, in the order of time.

        Sitemaps, feed and robots.txt are skipped. An article that is not born yet has no version.
        """
        for path, times in self._histories():
            last = None
            for at in times if path[1:2].isdigit() else [BEGIN, *times]:
                page = self.answer(path, at)
                known = (page.status, page.body)
                if known != last:
                    yield Version(path, at, page)
                last = known

    def teaser(self, article: int) -> tuple[str, str]:
        """Return the path and the title of an article, by its number."""
        return self._html.path(article), self._html.title(article)

    def hubs(self) -> list[str]:
        """Return the paths of pages that list new articles."""
        html = self._html
        topics = [html.topic_path(topic) for topic in range(self.manner.topics)]
        if self.manner.far:
            return ["/wire/", *topics]
        return ["/", *(html.section_path(section) for section in range(self.manner.sections)), *topics]

    def _histories(self) -> Iterator[tuple[str, Sequence[float]]]:
        """Yield each path, and the times when its page may change."""
        plan, html = self.plan, self._html
        yield from self._histories_of_lists()
        yield from ((f"/{name}", ()) for name in ("about", "contact", "imprint"))
        if not self.manner.small_world:
            yield "/archive/", ()
        for page in range(self._n_archived):
            yield f"/archive/{page + 1}", list(plan.listed(self._archived(page)))
        for article in range(len(plan)):
            yield html.path(article), [max(BEGIN, at) for at in plan.changes(article) if at < plan.end]

    def _histories_of_lists(self) -> Iterator[tuple[str, Sequence[float]]]:
        """Yield the paths of the front page, of sections and of topics, and the times when they may change."""
        plan, html, far = self.plan, self._html, self.manner.far
        yield "/", list(plan.listed(self._picks if far else plan.on_front))
        if far:
            yield "/wire/", list(plan.listed(plan.everything))
            yield from ((f"/r/{region}/", ()) for region in range(_REGIONS))
        for section in range(self.manner.sections):
            path = html.section_path(section)
            yield path, () if far else list(plan.listed(plan.of_section[section]))
            if far:
                yield f"{path}topics/", ()
        for topic in range(self.manner.topics):
            yield html.topic_path(topic), list(plan.listed(plan.of_topic[topic]))

    @property
    def _n_archived(self) -> int:
        """How many pages the archive has."""
        return 0 if self.manner.small_world else -(-len(self._old) // _PER_PAGE)

    def _archived(self, page: int) -> NDArray[np.int64]:
        """Return the articles on a page of the archive, in the order of their births."""
        return self._old[page * _PER_PAGE : (page + 1) * _PER_PAGE][::-1]

    def _article(self, article: int, path: str, at: float) -> Page:
        plan = self.plan
        if not 0 <= article < len(plan) or at < plan.born[article] or self._html.path(article) != path:
            return _missing()
        if at >= plan.gone[article]:
            return Page.of(b"<h1>This article is not here any more.</h1>\n", status=410 if article % 2 else 404)
        kind = "article" if at - plan.born[article] < DAY else "old"
        changed = plan.changed(article, at) if plan.dated[article] else 0.0
        return self._page(path, self._html.article(article, at), at, changed, kind)

    def _list(self, path: str, at: float) -> str | None:
        """Return a page of links, ``None`` for any other path."""
        plan, html, far = self.plan, self._html, self.manner.far
        match path.split("/")[1:]:
            case [""]:
                return self._front(at)
            case ["wire", ""] if far:
                return html.listing("Wire", [], self._latest(plan.everything, at, _ON_WIRE))
            case ["r", region, ""] if far and region in map(str, range(_REGIONS)):
                return html.listing(
                    f"Region {region}", [("sections", self._all_sections()[int(region) :: _REGIONS])], []
                )
            case ["s", section, ""] if section in self._sections:
                return self._section(self._sections[section], at)
            case ["s", section, "topics", ""] if far and section in self._sections:
                return html.listing(f"Topics of {section}", [("topics", self._topics_of(self._sections[section]))], [])
            case ["s", section, topic, ""] if path == self._topic_path(topic):
                return self._topic(section, topic, at)
            case ["archive", page]:
                return self._archive_page(page, path, at)
        return None

    def _topic(self, section: str, topic: str, at: float) -> str:
        up = [(f"/s/{section}/", section)]
        if self.manner.far:
            up.append(("/wire/", "all news as they come"))
        latest = self._latest(self.plan.of_topic[self._topics[topic]], at, _IN_TOPIC)
        return self._html.listing(topic, [("up", up)], latest)

    def _archive_page(self, page: str, path: str, at: float) -> str | None:
        """Return the list of the pages of the archive, where `page` is ``""``, or one of them."""
        if not page and not self.manner.small_world:
            pages = [(f"/archive/{number + 1}", f"page {number + 1}") for number in range(self._n_archived)]
            return self._html.listing("Archive", [("pages", pages)], [])
        found = _ARCHIVED.match(path)
        if found is None or not 1 <= int(found[1]) <= self._n_archived:
            return None
        some = self._archived(int(found[1]) - 1)
        return self._html.listing(f"Archive, page {found[1]}", [], self._latest(some, at, _PER_PAGE))

    def _front(self, at: float) -> str:
        plan, html = self.plan, self._html
        if self.manner.far:
            regions = [(f"/r/{region}/", f"region {region + 1}") for region in range(_REGIONS)]
            picks = self._picks[plan.gone[self._picks] > at][:_PICKS]
            return html.listing("From all regions", [("regions", regions), *self._beyond], picks.tolist())
        sections = [("sections", self._all_sections()), *self._beyond]
        return html.listing("Today", sections, self._latest(plan.on_front, at, _ON_FRONT))

    def _section(self, section: int, at: float) -> str:
        name, plan = section_name(section), self.plan
        small = self.manner.small_world
        up = [("up", [("/", NAME)])] if small else []
        if self.manner.far:
            there = [(f"/s/{name}/topics/", f"all topics of {name}")]
            return self._html.listing(name, [*up, ("topics", there)], [])
        beside = [] if small else [("sections", self._all_sections())]
        parts = [*up, *beside, ("topics", self._topics_of(section))]
        return self._html.listing(name, parts, self._latest(plan.of_section[section], at, _IN_SECTION))

    def _list_changed(self, path: str, at: float) -> float:
        """Return when a list last changed, according to the births of its articles."""
        plan, parts = self.plan, path.split("/")
        of = plan.on_front if path == "/" else plan.everything
        if parts[1] == "s":
            known = parts[2] in self._sections and parts[3:] in ([""], ["topics", ""])
            of = plan.of_section[self._sections[parts[2]]] if known else plan.of_topic[self._topics[parts[3]]]
        if parts[1] in ("archive", "r") or (self.manner.far and (path == "/" or parts[3:] in ([""], ["topics", ""]))):
            return BEGIN - DAY
        latest = plan.latest(of, at, 1)
        return float(plan.born[latest[0]]) if latest else BEGIN - DAY

    def _machine(self, path: str, at: float, origin: str) -> Page | None:
        """Return the documents for machines: robots.txt, sitemaps, the feed."""
        plan, html = self.plan, self._html
        maps = [f"/sitemap-archive-{k + 1}.xml" for k in range(-(-len(self._old) // _PER_SITEMAP))]
        if path == "/robots.txt":
            return self._robots(origin)
        if path == "/feed.xml" and self.manner.feed:
            return self._feed(path, at, origin)
        if path == "/sitemap.xml":
            paths = ["/sitemap-lists.xml", "/sitemap-news.xml", *maps]
            return Page.of(html.sitemap_index(origin, paths).encode(), mime="application/xml")
        if path == "/sitemap-lists.xml":
            lists = dict.fromkeys(("/", *self.hubs()))
            return self._urlset(((each, self._list_changed(each, at)) for each in lists), at, origin)
        if path == "/sitemap-news.xml":
            new = plan.born_within(BEGIN - DAY, at).tolist()
            return self._map_of(reversed(new), at, origin)
        if (found := _SITEMAP.match(path)) and path in maps:
            low = (int(found[1]) - 1) * _PER_SITEMAP
            return self._map_of(self._old[low : low + _PER_SITEMAP].tolist(), at, origin)
        return None

    def _robots(self, origin: str) -> Page:
        delay = f"Crawl-delay: {self.manner.crawl_delay:g}\n" if self.manner.crawl_delay else ""
        said = f"User-agent: *\nDisallow:\n{delay}\nSitemap: {origin}/sitemap.xml\n"
        return Page.of(said.encode(), mime="text/plain")

    def _feed(self, path: str, at: float, origin: str) -> Page:
        html = self._html.feed(origin, self._latest(self.plan.everything, at, _IN_FEED))
        return self._page(path, html, at, self._list_changed("/wire/", at), "list", "application/rss+xml")

    def _map_of(self, articles: Iterable[int], at: float, origin: str) -> Page:
        """Return a sitemap of those articles that exist."""
        plan, html = self.plan, self._html
        there = (article for article in articles if plan.is_there(article, at))
        return self._urlset(((html.path(article), plan.changed(article, at)) for article in there), at, origin)

    def _urlset(self, urls: Iterable[tuple[str, float]], at: float, origin: str) -> Page:
        """Return a sitemap, with the times of changes as the site states them."""
        said: list[tuple[str, float | None]] = []
        for path, changed in urls:
            if self.manner.lastmod == "missing":
                said.append((path, None))
            elif self.manner.lastmod == "lying" and _share(path) < self.manner.lying:
                said.append((path, at))
            else:
                said.append((path, changed))
        return Page.of(self._html.urlset(origin, said).encode(), mime="application/xml")

    def _page(self, path: str, html: str, at: float, changed: float, kind: str, mime: str = "text/html") -> Page:
        """Return a page with its validators; ``changed`` 0: not stated."""
        digest, made = blake2b(html.encode(), digest_size=8).hexdigest(), html
        if self.manner.noisy and mime == "text/html":
            made = with_noise(html, at)
        match self.manner.validators:
            case "missing":
                digest, changed = "", 0.0
            case "stuck":
                digest, changed = blake2b(path.encode(), digest_size=8).hexdigest(), changed and BEGIN - 2 * DAY
            case "restless":
                digest, changed = f"{digest}-{at}", changed and at
        body = made.encode()
        headers = {"Cache-Control": f"max-age={_KEPT[kind]}"} if self.manner.max_age else {}
        return Page(
            status=200, mime=mime, size=len(body), etag=digest, modified=changed, headers=headers, make=lambda: body
        )

    def _latest(self, of: NDArray[np.int64], at: float, n: int) -> list[int]:
        return self.plan.latest(of, at, n)

    def _all_sections(self) -> list[tuple[str, str]]:
        return [(self._html.section_path(number), name) for name, number in self._sections.items()]

    def _topics_of(self, section: int) -> list[tuple[str, str]]:
        topics = (self.plan.section == section).nonzero()[0].tolist()
        return [(self._html.topic_path(topic), topic_name(topic)) for topic in topics]

    def _topic_path(self, name: str) -> str | None:
        if name in self._topics:
            return self._html.topic_path(self._topics[name])
        return None


def _missing() -> Page:
    return Page.of(b"<h1>There is no such page.</h1>\n", status=404)


def _share(path: str) -> float:
    """Return a number from 0 to 1 that belongs to a path."""
    return int.from_bytes(blake2b(path.encode(), digest_size=4).digest()) / (1 << 32)
