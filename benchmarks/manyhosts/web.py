"""A web of many hosts that is made up page by page: for crawls by topic or for structured data, simulated or over HTTP.

A crawl that looks for a topic meets hosts that are about it, portals with a section on it, directories that list such
hosts, and mostly hosts that have nothing to do with it. Comparing crawlers takes all of them, thousands of times, and
the truth: what each page is about is known from the generator, whatever a classifier thinks of its text.

It is a model, not a sample: no share in it was measured anywhere. Use it to tell mechanisms apart, not as evidence
about the real web.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from manyhosts import plan as plans
from manyhosts import words
from manyhosts.marked import MarkedWriter
from manyhosts.markup import EMPTY, SETTINGS, Markup
from manyhosts.pages import Writer, html_of, text_of
from scrapy_focus.core.types import Link

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from manyhosts.entities import Facts
    from manyhosts.pages import Written
    from manyhosts.plan import Ints, Plan, Traits

HTML: Final = "text/html"
TOPICS: Final = words.TOPICS
_ROBOTS: Final = "User-agent: *\nDisallow: /private/\n"
LINKS: Final = 15  # of a page on average, in a web with markup
_LEAST: Final = 2_000  # hosts: with fewer, topics would have none


class Size(NamedTuple):
    """How much of a web is about a topic; pages that strayed to hosts about something else are not counted."""

    hosts: int  # names
    domains: int  # registered domains
    pages: int  # about, in expectation


class Found(NamedTuple):
    """How much there is to be found in a web: the pages that describe something, by some rule."""

    pages: int
    entities: int  # of the types asked for on these pages; of all types where none was asked for
    hosts: int  # names
    domains: int  # registered domains
    of: int  # all pages that answer with 200, those that readers are told about (about, privacy) not counted


class WebPage:
    """What asking for a URL brings: a page, a redirect, or a failure. Text, links and HTML are made when asked for.

    It can be the ``page`` of an ``Outcome``. Its ``text`` is what readers see, where a response has its source: models that
    read text are trained on it and given it, and nothing needs to be parsed.

    Attributes
    ----------
    url : str
        What was asked for.
    status : int
        HTTP status; 0 where there was no answer, see `error`.
    mime : str
        Media type without parameters; ``""`` where there was no answer.
    location : str
        Where a redirect leads, absolute; ``""`` for anything else.
    error : str
        As in ``Outcome.error``: ``""`` for a page.
    topics : tuple of str
        What the page is about; most pages are about nothing, and a few about two topics.
    entities : tuple of str
        Type of each entity that can be read from the markup of the page, in document order, what is nested after what it
        is part of; ``()`` for most pages, and for all in a web without markup.
    facts : int
        How many values these entities have, other entities not counted.
    host : str
        Name of the host.
    seconds : float
        Until the answer came.
    """

    def __init__(
        self, url: str, *, host: str, status: int, error: str = "", mime: str = "", location: str = "",
        seconds: float = 0.0, write: Callable[[], Written] | None = None, paths: Sequence[str] = (), language: str = "",
        topics: Callable[[], tuple[str, ...]] | None = None, facts: Callable[[], Facts] | None = None,
        links: Callable[[], list[Link]] | None = None,
    ) -> None:  # fmt: skip
        self.url = url
        self.host = host
        self.status = status
        self.error = error
        self.mime = mime
        self.location = location
        self.seconds = seconds
        self._write = write
        self._topics = topics
        self._facts = facts
        self._links = links
        self._paths = paths
        self._language = language

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """What the page is about."""
        return () if self._topics is None else self._topics()

    @cached_property
    def _described(self) -> Facts:
        return EMPTY if self._facts is None else self._facts()

    @property
    def entities(self) -> tuple[str, ...]:
        """Types of what the page describes to machines, in document order."""
        return self._described.types

    @property
    def facts(self) -> int:
        """How many values these entities have."""
        return self._described.leaves

    @cached_property
    def _written(self) -> Written | None:
        return None if self._write is None else self._write()

    @property
    def kind(self) -> str:
        """What its first bytes say: nothing that its type does not."""
        return ""

    @property
    def title(self) -> str:
        """What stands in the title bar."""
        return "" if self._written is None else self._written.title

    @cached_property
    def text(self) -> str:
        """What readers see, the title first, a line for each element; ``""`` where there is no page."""
        if self._written is None:
            return _ROBOTS if self.mime == "text/plain" else ""
        return text_of(self._written)

    @property
    def links(self) -> list[Link]:
        """The links in document order, each URL once, with their places, as ``core.html`` finds them in the HTML."""
        if self._links is not None:
            return self._links()
        return [] if self._written is None else [row.link for row in self._written.rows if row.link is not None]

    @property
    def html(self) -> str:
        """The page as it is sent; made again each time."""
        if self._written is None:
            return self.text or f"<!DOCTYPE html><title>{self.status}</title><p>{self.error or self.location}</p>\n"
        return html_of(self._written, self._paths, self.host, self._language)

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the answer."""
        headers = {"Content-Type": f"{self.mime}; charset=utf-8"} if self.mime else {}
        return headers | ({"Location": self.location} if self.location else {})


class MadeUpWeb:
    """A made-up web of many hosts, with the truth about the topic of each page.

    Hosts are about a topic, portals with sections, directories, junk, or traps without an end. Their sizes follow a
    power law: half of the topical ones have a dozen pages, a few have ten thousands. A sixth is in a second language,
    which has its own word for everything. Topics come in groups that share words and link to each other. Hosts belong to
    registered domains, under ``.example`` and ``.test``; some domains have several, a few have dozens of strangers.

    Of what is asked for, a few percent fail: pages that are gone, hosts that are, hosts that moved and redirect to
    another, a log-in page that ``robots.txt`` forbids. Three percent of the hosts take 4 to 12 seconds for an answer.

    **With markup**, hosts are also about recipes, products, events, jobs, data sets or articles, or about nothing of the
    kind, and some tell machines so, as JSON-LD, microdata or both: by template, with single pages left out, on list pages
    too or not, all pages or only the later ones, and a few of them broken. Others say on each page who they are and where
    the page stands on the site, and nothing else. Words in addresses and anchors say on many hosts what a section is
    about, with markup and without. Such a web has other addresses and links than one of the same seed without markup.

    What was measured, by Web Data Commons: 5.7 % of pages had any markup in 2010, 37 % in 2018, 47 % in 2022, on 42 % of the
    domains. ``"2022"`` has the last; ``"2012"`` has it on 8.5 % of the pages of 5.6 % of the domains. Recipes are on about 1.2 %
    and 2.4 % of all pages, events on 1.1 % and 2.1 %. That, and all else in ``markup.py``, is made up.

    Parameters
    ----------
    seed : int
        Webs with the same parameters are the same to the byte, on every machine.
    hosts : int
        2,000 to 250,000; each takes 4 microseconds to be made and about 300 bytes, pages take none. With markup four
        times that.
    markup : {None, "2012", "2022"}
        How much of the web has markup; None for none.
    pages : int or None
        About how many pages the hosts have together, at least two a host: half of them have two thirds of the mean or
        less, the largest some hundred times the mean, and no trap is endless. None: no bound. Only with markup.
    links : int or None
        About how many links a page has on average, 8 to 25 (15). Only with markup.

    Raises
    ------
    ValueError
        If a parameter is out of range, there is no such markup, or `pages` or `links` is given without markup.

    Examples
    --------
    >>> web = MadeUpWeb(seed=1, hosts=3000)
    >>> [seed] = web.seeds("beekeeping", 1, np.random.default_rng(0))
    >>> page = web.page(seed)
    >>> page.status, page.topics, len(page.links) > 10
    (200, ('beekeeping',), True)
    >>> web.page(page.links[0].url).host == page.host
    True
    >>> web.keywords("beekeeping")[:3]
    ['bees', 'honey', 'hive']
    """

    def __init__(
        self, *, seed: int = 0, hosts: int = 150_000, markup: str | None = None, pages: int | None = None,
        links: int | None = None,
    ) -> None:  # fmt: skip
        if not _LEAST <= hosts <= plans.MOST_HOSTS:
            raise ValueError(
                f"a web has {_LEAST:,} to {plans.MOST_HOSTS:,} hosts, but hosts={hosts!r} was given; "
                "choose a number in that range (150000 is the default)"
            )
        self.seed = seed
        self.hosts = hosts
        _check_markup(hosts, markup, pages, links)
        self.markup = markup
        self.pages = pages
        self.links = links
        self._plan: Plan = plans.Plan(seed=seed, hosts=hosts, pages=pages)
        self._writer = Writer(self._plan)
        self._marked: MarkedWriter | None = None
        if markup is not None:
            self._writer = self._marked = MarkedWriter(self._plan, Markup(self._plan, SETTINGS[markup]), links or LINKS)

    def __repr__(self) -> str:
        parameters = {"markup": self.markup, "pages": self.pages, "links": self.links}
        given = "".join(f", {name}={value!r}" for name, value in parameters.items() if value is not None)
        return f"MadeUpWeb(seed={self.seed}, hosts={self.hosts}{given})"

    @property
    def topics(self) -> tuple[str, ...]:
        """What can be asked for; four and four are related."""
        return TOPICS

    def related(self, topic: str) -> tuple[str, ...]:
        """Return the topics that share words and links with a topic."""
        return tuple(TOPICS[t] for t in words.NEIGHBOURS[_number(topic)])

    def keywords(self, topic: str, n: int = 10, *, language: str = "en") -> list[str]:
        """Return the words of a topic that people would search for, in one language."""
        return words.keywords(_number(topic), n, words.LANGUAGES.index(language))

    def page(self, url: str, *, depth: int = 0) -> WebPage:
        """Return what asking for a URL brings; its links get the depth given. O(links), about half a millisecond."""
        if self._marked is not None:
            return self._marked_page(self._marked, url, depth)
        plan = self._plan
        name, _, path = url.partition("#")[0].partition("://")[2].partition("/")
        host = plan.host_of(name)
        if host < 0 or plan.fate[host] == plans.DEAD:
            return WebPage(url, host=name, status=0, error="failure: CannotResolveHostError")
        seconds = float(plan.seconds[host])
        if path == "robots.txt":
            return WebPage(url, host=name, status=200, mime="text/plain", seconds=seconds)
        page = plan.page_of(host, path)
        traits = plan.traits(*_one(host, page or 0))
        if page is None or self._url(host, page, traits) != f"http://{name}/{path}" or not plan.exists(host, page):
            return WebPage(url, host=name, status=404, error="http_error", mime=HTML, seconds=seconds)
        if (other := self._other_answer(url, name, host, page)) is not None:
            return other
        return WebPage(
            url, host=name, status=200, mime=HTML, topics=partial(self._topics, traits), seconds=seconds,
            write=partial(self._writer.write, host, page, traits, depth),
            paths=self._writer.templates[plan.template[host]], language=words.LANGUAGES[plan.language[host]],
        )  # fmt: skip

    def _other_answer(self, url: str, name: str, host: int, page: int) -> WebPage | None:
        """Return what comes for a page of a host that moved, or forbids it; ``None``: the page itself."""
        plan, seconds = self._plan, float(self._plan.seconds[host])
        if plan.fate[host] == plans.MOVED:
            to = int(plan.moved_to[host])
            location = self._url(to, page if plan.exists(to, page) and plan.kind[to] != plans.TRAP else 0)
            return WebPage(url, host=name, status=301, location=location, mime=HTML, seconds=seconds)
        if page == -4:
            return WebPage(url, host=name, status=403, error="http_error", mime=HTML, seconds=seconds)
        return None

    def _marked_page(self, writer: MarkedWriter, url: str, depth: int) -> WebPage:
        """The same in a web with markup, where text and HTML are made when asked for, and links without them."""
        plan = self._plan
        url_of = url.partition("#")[0]
        name, _, path = url_of.partition("://")[2].partition("/")
        where = writer.find(url_of)
        host = plan.host_of(name) if where is None else where[0]
        if host < 0 or plan.fate[host] == plans.DEAD:
            return WebPage(url, host=name, status=0, error="failure: CannotResolveHostError")
        seconds = float(plan.seconds[host])
        if path == "robots.txt":
            return WebPage(url, host=name, status=200, mime="text/plain", seconds=seconds)
        if where is None or not plan.exists(*where):
            return WebPage(url, host=name, status=404, error="http_error", mime=HTML, seconds=seconds)
        page = where[1]
        if (other := self._other_answer(url, name, host, page)) is not None:
            return other
        return WebPage(
            url, host=name, status=200, mime=HTML, seconds=seconds, paths=writer.templates[plan.template[host]],
            language=words.LANGUAGES[plan.language[host]], topics=partial(self._topics_of, host, page),
            facts=partial(writer.markup.facts, host, page), links=partial(writer.links, host, page, depth),
            write=partial(writer.write_marked, host, page, depth),
        )  # fmt: skip

    def _topics_of(self, host: int, page: int) -> tuple[str, ...]:
        return self._topics(self._plan.traits(*_one(host, page)))

    def link(self, url: str) -> Link:
        """Return a link to a URL of this web that stands on no page, as for a seed; ValueError if there is none."""
        name, _, path = url.partition("://")[2].partition("/")
        host = self._plan.host_of(name)
        page = None if host < 0 else self._plan.page_of(host, path)
        if page is None:
            raise ValueError(f"{url} is no address of this web; use one of seeds() or of the links of a page")
        return Link(url, self._plan.key(host, page), name)

    def some_pages(self, n: int, rng: np.random.Generator) -> list[str]:
        """Return URLs of `n` pages as somebody might have noted them: of hosts that answer, half of them front pages.

        Known hosts are likelier, as they are for links. No more is asked of the pages: of those in a web with markup, as
        many have some as of all pages, about.
        """
        plan = self._plan
        n_live = int(((plan.fate == plans.ALIVE) & (np.arange(plan.n_hosts) < plan.public)).sum())
        if n > n_live:
            raise ValueError(f"{self!r} has {n_live} hosts that answer, but {n} pages were asked for; ask for fewer")
        weight = np.where(
            plan.fate[: plan.public] == plans.ALIVE, np.sqrt(np.minimum(plan.size[: plan.public], 5_000)), 0
        )
        hosts = rng.choice(plan.public, n, replace=False, p=weight / weight.sum())
        urls = []
        for host in hosts.tolist():
            page = 0 if rng.random() < 0.5 else int(rng.integers(min(int(plan.size[host]), 2_000)))
            urls.append(self._url(host, page if plan.exists(host, page) else 0))
        return urls

    def described(self, types: Collection[str] = (), least: int = 1) -> Found:
        """Return how much there is to be found, of a web with bounded pages; O(pages), 3 microseconds each, once.

        Parameters
        ----------
        types : collection of str
            A page counts if it describes an entity of such a type. Empty: of any, or of none in particular.
        least : int
            And if its entities have so many values.

        Raises
        ------
        ValueError
            If this web has no markup or no bound.
        """
        if self._marked is None or self.pages is None:
            raise ValueError(f"{self!r} has no markup, or no bound of its pages; give markup= and pages=")
        pages = entities = 0
        hosts: set[int] = set()
        for (host, found), n in self._all_facts.items():
            wanted = sum(name in types for name in found.types) if types else len(found.types)
            if wanted and found.leaves >= least:
                pages, entities = pages + n, entities + n * wanted
                hosts.add(host)
        domains = {int(self._plan.domain[host]) for host in hosts}
        return Found(pages, entities, len(hosts), len(domains), self._all_facts.total())

    @cached_property
    def _all_facts(self) -> Counter[tuple[int, Facts]]:
        """How many pages of each host describe what, those that describe nothing included."""
        plan = self._plan
        told: Counter[tuple[int, Facts]] = Counter()
        assert self._marked is not None
        facts = self._marked.markup.facts
        for host in np.flatnonzero(plan.fate[: plan.public] == plans.ALIVE).tolist():
            told.update((host, facts(host, page)) for page in range(int(plan.size[host])) if plan.exists(host, page))
        return told

    def is_relevant(self, url: str, topic: str) -> bool:
        """Whether a page is about a topic."""
        return topic in self.page(url).topics

    def seeds(self, topic: str, n: int, rng: np.random.Generator) -> list[str]:
        """Return `n` pages about a topic, on as many domains, none of which links to another."""
        plan, t = self._plan, _number(topic)
        start, size = int(plan.list_start[t]), int(plan.list_size[t])
        urls: list[str] = []
        domains: set[int] = set()
        linked: set[str] = set()
        for at in rng.permutation(size).tolist():
            host = int(plan.listed[start + at])
            url = self._url(host, int(rng.integers(min(plan.size[host], 30))))
            page = self.page(url)
            targets = {link.url for link in page.links}
            if (
                topic in page.topics
                and url not in linked
                and not targets & {*urls}
                and plan.domain[host] not in domains
            ):
                urls.append(url)
                linked |= targets
                domains.add(int(plan.domain[host]))
                if len(urls) == n:
                    return urls
        raise ValueError(f"{self!r} has no {n} seeds on {topic}, only {len(urls)}; ask for fewer, or make more hosts")

    def examples(self, topic: str, n: int, rng: np.random.Generator) -> tuple[list[str], list[str]]:
        """Return the texts of `n` pages about a topic, and of `n` others, from hosts that nothing links to.

        Of the others, a third is about other topics, and half of these about related ones.
        """
        t = _number(topic)
        related = [*words.NEIGHBOURS[t].tolist()]
        wanted = [[t], related, [k for k in range(words.N_TOPICS) if k != t and k not in related], [-1]]
        numbers = [n, n // 6, n // 6, n - 2 * (n // 6)]
        texts = [self._reserved(labels, k, rng) for labels, k in zip(wanted, numbers, strict=True)]
        return texts[0], texts[1] + texts[2] + texts[3]

    def relevant_hosts(self, topic: str) -> Size:
        """Return how many hosts, domains and pages there are to be found on a topic; O(hosts)."""
        plan, t = self._plan, _number(topic)
        live = np.arange(plan.public)[plan.fate[: plan.public] == plans.ALIVE]
        about = np.isin(plan.kind[live], (plans.TOPICAL, plans.MIXED))
        share = (plan.sections[live] == t).mean(1) * plan.purity[live] * about
        pages = float((share * np.minimum(plan.size[live], 1 << 20)).sum())
        return Size(int((share > 0).sum()), len(np.unique(plan.domain[live[share > 0]])), round(pages))

    def _reserved(self, labels: list[int], n: int, rng: np.random.Generator) -> list[str]:
        plan = self._plan
        texts: list[str] = []
        for _ in range(400):
            hosts = rng.integers(plan.public, plan.n_hosts, 256)
            pages = (np.minimum(plan.size[hosts], 200) * rng.random(256) ** 2).astype(np.int64)
            is_wanted = np.isin(plan.traits(hosts, pages).label, labels) & (plan.fate[hosts] == plans.ALIVE)
            for host, page in zip(hosts[is_wanted].tolist(), pages[is_wanted].tolist(), strict=True):
                if len(texts) == n:
                    return texts
                texts.append(self.page(self._url(host, page)).text)
        return texts

    def _topics(self, traits: Traits) -> tuple[str, ...]:
        label = int(traits.label[0])
        labels = (label, self._plan.second_label(label, int(traits.bits[0])))
        return tuple(TOPICS[t] for t in labels if t >= 0)

    def _url(self, host: int, page: int, traits: Traits | None = None) -> str:
        if self._marked is not None:
            return self._marked.address(host, page)[0]
        plan, one, title = self._plan, _one(host, page), []
        if plan.address[host] == plans.SLUG:
            title = plan.titles(*one, traits or plan.traits(*one))[0].tolist()
        return f"http://{plan.name(host)}{plan.path(host, page, title)}"


def _check_markup(hosts: int, markup: str | None, pages: int | None, links: int | None) -> None:
    if markup is None and (pages is not None or links is not None):
        raise ValueError(
            f"pages and links are for webs with markup; give markup={' or '.join(map(repr, SETTINGS))} too"
        )
    if markup is not None and markup not in SETTINGS:
        raise ValueError(f"there is no markup {markup!r}; choose {' or '.join(map(repr, SETTINGS))}, or None for none")
    if pages is not None and pages < 2 * hosts:
        raise ValueError(f"pages={pages!r} was given for {hosts} hosts; choose at least {2 * hosts}")
    if links is not None and not 8 <= links <= 25:
        raise ValueError(f"links={links!r} was given, but pages have 8 to 25 links on average; choose such a number")


def _one(host: int, page: int) -> tuple[Ints, Ints]:
    return np.array([host]), np.array([page])


def _number(topic: str) -> int:
    if topic not in TOPICS:
        raise ValueError(f"there is no topic {topic!r}; choose one of {', '.join(TOPICS)}")
    return TOPICS.index(topic)
