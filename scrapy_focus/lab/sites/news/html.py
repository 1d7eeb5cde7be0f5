"""The pages of the synthetic news site as HTML, and its XML documents: sitemaps and a feed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import lru_cache, partial
from random import Random
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scrapy_focus.lab.sites.news.plan import Plan

NAME: Final = "The Synthetic Courier"
_WORDS: Final = (
    "harbour council budget railway school museum election storm bridge market hospital theatre river energy housing "
    "farming tourism football chess cycling opera library police fire court weather water traffic airport ferry labour "
    "pension taxes trade exports wages prices climate forest fishing science space medicine vaccine diet fashion film "
    "music books gardens cooking travel history language religion charity defence border passport embassy summit treaty"
).split()
_SENTENCES: Final = (
    "The {a} of the town has {n} more members than a year ago, the office for {b} says.",
    "Nobody had expected that {a} and {b} would be discussed for {n} hours.",
    "{n} people came to hear about {a}, and most of them stayed for {b}.",
    "A report on {a} is due in {n} weeks; what it says of {b} is not known yet.",
    "Those who work in {a} ask for {n} percent more, as those in {b} have got it.",
    "The mayor promised to look at {b} again once {a} is done, in {n} days at the latest.",
    "On {a} there were {n} questions, and the answers were mostly about {b}.",
    "After {n} years the plans for {a} are ready, {b} included.",
)
_STATIC: Final = {
    "about": "We report what a seed decides, day and night.",
    "contact": "Write to us; nobody will read it.",
    "imprint": "This site is made by a program, and so is its news.",
}
_FOOT: Final = (*((f"/{name}", name) for name in _STATIC), ("/archive/", "archive"))


def section_name(section: int) -> str:
    """Return the name of a section, which is also in its address."""
    return _WORDS[section]


def topic_name(topic: int) -> str:
    """Return the name of a topic, which is also in its address."""
    first, second = divmod(topic * 37 % (len(_WORDS) * 41), len(_WORDS))
    return f"{_WORDS[second]}-{_WORDS[(second + 1 + first) % len(_WORDS)]}-{topic}"


def title_of(plan: Plan, article: int) -> str:
    """Return the title of an article."""
    rng = Random(article)
    a, b, c = rng.sample(_own_words(plan, article) if plan.manner.topical else _WORDS, 3)
    return f"{a.capitalize()} and {b}: what {rng.randrange(2, 90)} days of {c} have changed"


def address(plan: Plan, article: int) -> str:
    """Return the path of an article."""
    day = moment(float(plan.born[article]))
    slug = title_of(plan, article).lower().replace(":", "").replace(" ", "-")
    return f"/{day:%Y/%m/%d}/{slug}-{article}"


def moment(at: float) -> datetime:
    """Return a time in seconds since the epoch, in UTC, without what is below a second."""
    return datetime.fromtimestamp(int(at), UTC)


class Beyond(Protocol):
    """The links from pages of one site to other sites; each is a URL and its anchor."""

    @property
    def partners(self) -> Sequence[tuple[str, str]]:
        """The links of the front page."""
        ...

    def of_article(self, article: int, born: float) -> Sequence[tuple[str, str]]:
        """Return the links of an article with this birth time."""
        ...


class Pages:
    """The pages of one site; each is a function of the plan and a time."""

    def __init__(self, plan: Plan, beyond: Beyond | None = None) -> None:
        self._plan = plan
        self._path = lru_cache(maxsize=1 << 16)(lambda article: address(plan, article))
        #: Returns the title of an article.
        self.title = partial(title_of, plan)
        self._beyond = beyond

    def path(self, article: int) -> str:
        """Return the path of an article."""
        return self._path(article)

    def section_path(self, section: int) -> str:
        """Return the path of a section."""
        return f"/s/{section_name(section)}/"

    def topic_path(self, topic: int) -> str:
        """Return the path of a topic."""
        return f"{self.section_path(int(self._plan.section[topic]))}{topic_name(topic)}/"

    def listing(self, title: str, parts: Iterable[tuple[str, Sequence[tuple[str, str]]]], articles: Sequence[int],
                extra: str = "") -> str:  # fmt: skip
        """Return a page with parts of navigation, each a class and its links, and teasers of articles."""
        body = [f"<h1>{title}</h1>"]
        for kind, links in parts:
            body.append(f'<ul class="{kind}">{"".join(f"<li>{_link(*link)}</li>" for link in links)}</ul>')
        body.append(f'<div class="latest">{"".join(map(self._teaser, articles))}</div>')
        return self._page(title, "".join(body), extra)

    def article(self, article: int, at: float) -> str:
        """Return an article as it was at a time."""
        plan = self._plan
        title, updates = self.title(article), plan.updates(article, at)
        published, changed = moment(float(plan.born[article])), moment(plan.changed(article, at))
        head, line = _dates(article, title, published, changed) if plan.dated[article] else ("", "")
        rng = Random(f"{plan.seed}/{article}")
        words = _words(plan, article)
        paragraphs = [f"<p>{_paragraph(rng, words)}</p>" for _ in range(rng.randrange(4, 12))]
        paragraphs += [f'<p class="update">Update {n + 1}: {_paragraph(rng, words)}</p>' for n in range(updates)]
        related = [(self.path(other), self.title(other)) for other in plan.related(article)]
        above = " / ".join(_link(*link) for link in self._above(article))
        where = f'<p class="where">{above}</p>' if above else ""
        aside = _aside("related", "Read on", related)
        if self._beyond is not None and (elsewhere := self._beyond.of_article(article, float(plan.born[article]))):
            aside += _aside("elsewhere", "Elsewhere", elsewhere)
        body = f"{where}<article><h1>{title}</h1>{line}{''.join(paragraphs)}</article>{aside}"
        return self._page(title, body, head)

    def static(self, name: str) -> str | None:
        """Return one of the pages that never change, ``None`` if there is none of this name."""
        return self._page(name, f"<h1>{name}</h1><p>{_STATIC[name]}</p>") if name in _STATIC else None

    def urlset(self, origin: str, urls: Iterable[tuple[str, float | None]]) -> str:
        """Return a sitemap of paths, with the time of each one's last change, if it is stated."""
        rows = "".join(
            f"<url><loc>{origin}{path}</loc>{'' if at is None else f'<lastmod>{_iso(at)}</lastmod>'}</url>"
            for path, at in urls
        )
        return f'{_XML}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</urlset>\n'

    def sitemap_index(self, origin: str, paths: Iterable[str]) -> str:
        """Return a sitemap of sitemaps."""
        rows = "".join(f"<sitemap><loc>{origin}{path}</loc></sitemap>" for path in paths)
        return f'{_XML}<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</sitemapindex>\n'

    def feed(self, origin: str, articles: Sequence[int]) -> str:
        """Return the articles as RSS 2.0."""
        rows = "".join(
            f"<item><title>{self.title(each)}</title><link>{origin}{self.path(each)}</link><guid>{origin}"
            f"{self.path(each)}</guid>"
            + (f"<pubDate>{_rfc(float(self._plan.born[each]))}</pubDate>" if self._plan.dated[each] else "")
            + "</item>"
            for each in articles
        )
        return (
            f'{_XML}<rss version="2.0"><channel><title>{NAME}</title><link>{origin}/</link>'
            f"<description>Latest</description>{rows}</channel></rss>\n"
        )

    def _teaser(self, article: int) -> str:
        return f'<div class="teaser"><h3>{_link(self.path(article), self.title(article))}</h3></div>'

    def _above(self, article: int) -> list[tuple[str, str]]:
        """Return the lists that an article links to."""
        plan, topic = self._plan, int(self._plan.topic[article])
        if not plan.leads_up[article]:
            return []
        section = int(plan.section[topic])
        lists = [(self.section_path(section), section_name(section)), (self.topic_path(topic), topic_name(topic))]
        if plan.manner.far:
            return lists[:1]
        if plan.manner.small_world:
            return lists[1:]
        return lists

    def _page(self, title: str, body: str, head: str = "") -> str:
        manner = self._plan.manner
        places = " ".join(_link(*place) for place in _FOOT)
        top = "" if manner.small_world else f'<div class="top">{_link("/", NAME)}</div>'
        foot = "" if manner.small_world else f'<div class="foot">{places}</div>'
        feed = '<link rel="alternate" type="application/rss+xml" href="/feed.xml">' if manner.feed else ""
        return (
            f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title} - {NAME}</title>{feed}{head}'
            f"</head><body>{top}<main>{body}</main>{foot}</body></html>\n"
        )


_XML: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'


def with_noise(html: str, at: float) -> str:
    """Return a page with a clock and a token, which differ at each visit."""
    token = Random(at).getrandbits(64)
    form = f'<form><input type="hidden" name="token" value="{token:x}"></form>'
    return html.replace("<main>", f'<p class="clock">{moment(at):%H:%M:%S}</p>{form}<main>', 1)


def _dates(article: int, title: str, published: datetime, changed: datetime) -> tuple[str, str]:
    """Return how an article states when it was published and changed, in its head and in a line, in one format each."""
    first, last = published.isoformat(), changed.isoformat()
    match article % 4:
        case 0:
            said = {
                "@context": "https://schema.org", "@type": "NewsArticle", "headline": title, "datePublished": first,
                "dateModified": last,
            }  # fmt: skip
            return f'<script type="application/ld+json">{json.dumps(said)}</script>', ""
        case 1:
            return (
                f'<meta property="og:type" content="article"><meta property="article:published_time" content="{first}">'
                f'<meta property="article:modified_time" content="{last}">'
            ), ""
        case 2:
            return (
                "",
                f'<p class="byline"><time itemprop="datePublished" datetime="{first}">{published:%d %B}</time></p>',
            )
        case _:
            return f'<meta name="DC.date.issued" content="{first}">', f'<p class="byline">{published:%d %B %Y}</p>'


def _own_words(plan: Plan, article: int) -> list[str]:
    """Return the words of the topic of an article and of its section, each once."""
    topic = int(plan.topic[article])
    return list(dict.fromkeys((*_some_words(topic), *_some_words(-1 - int(plan.section[topic])))))


def _words(plan: Plan, article: int) -> Sequence[str]:
    """Return the words of an article, with frequent ones repeated."""
    if not plan.manner.topical:
        return _WORDS
    topic = int(plan.topic[article])
    return (*_some_words(topic) * 40, *_some_words(-1 - int(plan.section[topic])) * 20, *_WORDS)


@lru_cache(maxsize=1 << 12)
def _some_words(of: int) -> tuple[str, ...]:
    return tuple(Random(of).sample(_WORDS, 5))


def _paragraph(rng: Random, words: Sequence[str]) -> str:
    sentences = [
        rng.choice(_SENTENCES).format(a=rng.choice(words), b=rng.choice(words), n=rng.randrange(2, 90))
        for _ in range(rng.randrange(2, 6))
    ]
    if words is not _WORDS:
        sentences.append(f"Also on {', '.join(rng.choices(words, k=6))}.")
    return " ".join(sentences)


def _aside(kind: str, title: str, links: Iterable[tuple[str, str]]) -> str:
    items = "".join(f"<li>{_link(*link)}</li>" for link in links)
    return f'<aside class="{kind}"><h2>{title}</h2><ul>{items}</ul></aside>'


def _link(path: str, text: str) -> str:
    return f'<a href="{path}">{text}</a>'


def _iso(at: float) -> str:
    return moment(at).isoformat()


def _rfc(at: float) -> str:
    return format_datetime(moment(at))
