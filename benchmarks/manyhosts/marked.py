"""Writes the pages of a made-up web with markup, and their links alone, which is all that most simulations need.

The links of a page take some ten microseconds each at most, without numpy: nothing of the text around them is made. All
of a page comes from its number, so that text, links, HTML and the truth about it agree, whichever is asked for first.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final

import numpy as np

from manyhosts import entities as forms
from manyhosts import markup as marks
from manyhosts import plan as plans
from manyhosts import words
from manyhosts.entities import CONTENTS, NOTHING_SHOWN, Naming, Shown
from manyhosts.pages import ASIDE, FOOT, LIST, MOST_WORDS, NAV, TEXT, Row, Writer, Written
from manyhosts.plan import SECTIONS, STEPS, scramble
from scrapy_focus.core.types import Link

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manyhosts.markup import Markup
    from manyhosts.plan import Plan

_MASK: Final = (1 << 64) - 1
_FACTOR, _STEP = 6364136223846793005, 1442695040888963407  # of Knuth's linear congruential generator
_MOST_KNOWN: Final = 400_000  # addresses that are remembered
_UNIT: Final = 2.0**-32
#: Links of an average page, and the scale of their numbers with which it has so many: most hosts are too small for more.
_LINKS: Final = ((7, 9, 12, 15.5, 21, 25), (6, 10, 14, 20, 30, 40))

#: Words of addresses and anchors for each of CONTENTS: names of sections, names of one such thing, what it is about.
_SECTIONS_OF: Final = (
    ("recipes", "recipe", "kitchen", "cooking", "food"), ("products", "product", "shop", "item", "catalog"),
    ("events", "event", "whats-on", "agenda", "tickets"), ("jobs", "job", "careers", "vacancies", "work"),
    ("datasets", "dataset", "data", "downloads", "open-data"), ("news", "blog", "articles", "stories", "magazine"),
)  # fmt: skip
_NAMES_OF: Final = ("recipe", "product", "event", "job", "dataset", "article")
_NOUNS_OF: Final = (
    """cake soup salad bread roast curry pie stew sauce pancakes noodles risotto cookies omelette chicken chocolate
    lemon pumpkin spicy baked vegan crispy""",
    """lamp chair backpack kettle drill jacket headphones blanket bottle keyboard tent mug shelf trainers leather
    steel compact wireless black large deluxe mini""",
    """concert festival workshop lecture exhibition fair meetup opening reading market tour show evening open-air
    annual jazz family charity winter film theatre dance""",
    """engineer assistant manager nurse teacher driver analyst clerk cook technician accountant developer junior
    senior part-time trainee head sales office field lead support""",
    """statistics survey census measurements index records emissions prices population traffic rainfall elections
    monthly regional national annual hourly raw households schools energy trade""",
    """why how what behind inside future lessons interview opinion review week politics study minister record crisis
    plan young city secret changes best""",
)
_VAGUE: Final = ("p", "page", "view", "content", "c", "items", "detail", "archive")
_PLAIN: Final = ("services", "info", "pages", "projects", "gallery", "portfolio")


def _translated(word: str) -> str:
    return "-".join(words.translated(part) for part in word.split("-"))


def _slug(word: str) -> str:
    return unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode()


def _both(groups: Sequence[Sequence[str]]) -> tuple[list[list[str]], list[list[str]]]:
    return [[*group] for group in groups], [[_translated(word) for word in group] for group in groups]


_SECTION_WORDS: Final = [[[_slug(w) for w in g] for g in groups] for groups in _both((*_SECTIONS_OF, _PLAIN))]
_TYPE_WORDS: Final = [[w.capitalize() for w in groups[0]] for groups in _both([_NAMES_OF])]
_NOUNS: Final = _both([nouns.split() for nouns in _NOUNS_OF])


class MarkedWriter(Writer):
    """Writes the pages of a plan that has markup.

    Parameters
    ----------
    plan, markup : Plan, Markup
        What to write.
    links : int
        About how many links a page has on average.
    """

    def __init__(self, plan: Plan, markup: Markup, links: int) -> None:
        super().__init__(plan)
        self.markup = markup
        self.mean = round(float(np.interp(links, *_LINKS)))
        self._known: dict[tuple[int, int], tuple[str, int]] = {}
        self._where: dict[str, tuple[int, int]] = {}
        self._kind: list[int] = plan.kind.tolist()
        self._size: list[int] = np.where(plan.size == plans.ENDLESS, 2000, plan.size).tolist()
        self._lists: list[int] = markup.lists.tolist()
        self._genre: list[int] = markup.genre.tolist()
        self._language: list[int] = plan.language.tolist()
        self._topic: list[int] = plan.topic.tolist()
        self._address: list[int] = plan.address.tolist()
        self._program: list[int] = plan.template.tolist()
        self._says = np.searchsorted(
            [0.65, 0.85], plan.draw("section words", np.arange(plan.n_hosts)), "right"
        ).tolist()
        self._nouns = [self._vocabulary(t, language) for language in range(plans.LANGUAGES) for t in (*range(6), -1)]
        self._slugs = [[_slug(word) for word in group] for group in self._nouns]
        self._make_genres()

    def _vocabulary(self, content: int, language: int) -> list[str]:
        """Return words of titles, of which a sixth to a half say what the page is about."""
        start = words.STARTS[words.GENERAL]
        general = words.WORDS[language][start : start + 60]
        return general if content < 0 else [*_NOUNS[language][content] * 2, *general]

    def _make_genres(self) -> None:
        """Make the lists of hosts that links choose from: by genre, by topic, and all; the known ones first."""
        plan = self.plan
        luck = -np.log(-np.log(plan.draw("known", np.arange(plan.n_hosts)) + 1e-12) + 1e-12)
        fame = 0.5 * np.log(np.minimum(plan.size, 5000) + 1) + luck
        order = np.argsort(-fame, kind="stable")
        order = order[order < plan.public]
        self._hosts_of: list[list[int]] = []
        self._hosts_on: list[list[int]] = []
        self._hosts: list[list[int]] = []  # one list for each language
        for language in range(plans.LANGUAGES):
            mine = order[plan.language[order] == language]
            genre = self.markup.genre[mine]
            self._hosts_of += [mine[genre == t].tolist() or mine.tolist() for t in (*range(len(CONTENTS)), -1)]
            self._hosts_on += [mine[plan.topic[mine] == t].tolist() or mine.tolist() for t in range(words.N_TOPICS)]
            self._hosts.append(mine.tolist())

    # addresses

    def address(self, host: int, page: int) -> tuple[str, int]:
        """Return the URL of a page, and its key."""
        known = self._known.get((host, page))
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
                self._where.clear()
            url = f"http://{self.plan.name(host)}{self._path(host, page)}"
            known = self._known[host, page] = url, self.plan.key(host, page)
            self._where[url] = host, page
        return known

    def find(self, url: str) -> tuple[int, int] | None:
        """Return which page has a URL, whether or not the page exists; None where no page can have it."""
        where = self._where.get(url)
        if where is None:
            name, _, path = url.partition("://")[2].partition("/")
            host = self.plan.host_of(name)
            page = self.plan.page_of(host, path) if host >= 0 else None
            if page is None or self.address(host, page)[0] != url:
                return None
            where = host, page
        return where

    def _path(self, host: int, page: int) -> str:
        if page <= 0 or self._kind[host] == plans.TRAP:
            return self.plan.path(host, page, [])
        is_list = page <= self._lists[host]
        match self._address[host]:
            case plans.NODE:
                return f"/category/{page}" if is_list else f"/node/{page}"
            case plans.QUERY:
                script = "list" if is_list else ("index", "view", "item", self._type_word(host, page))[host % 4]
                return f"/{script}.php?id={page}"
            case plans.SLUG:
                word = self.section_word(host, page)
                if is_list:
                    return f"/{word}/page/{page}"
                title = "-".join(self._title(host, page, self._slugs))
                return f"/{word}/{title}-{page}"
            case _:
                word = self.section_word(host, page)
                return f"/{word}/page/{page}" if is_list else f"/{word}/{page}.html"

    def _type_word(self, host: int, page: int) -> str:
        content = self.markup.content_of(host, page)
        return _slug(_TYPE_WORDS[self._language[host]][content].lower()) if content >= 0 else "page"

    def section_word(self, host: int, page: int) -> str:
        """Return the word in an address that says in which section of its host a page is."""
        section = (page - 1) % SECTIONS
        content = self.markup.content_of(host, page)
        says = self._says[host]  # two of three hosts name what it is about, others say nothing or name the topic
        if says == 0 or (says == 2 and self._kind[host] == plans.TOPICAL):
            own = _SECTION_WORDS[self._language[host]][content]  # the last for none
            # a program has its own word for it, which three of five hosts leave as it is
            return own[(self._program[host] if host % 5 < 3 else host // 5 + (content < 0) * section) % len(own)]
        if says == 1:
            return _VAGUE[(host + section * (host % 3 == 0)) % len(_VAGUE)]
        return self.plan.section_word(host, page)

    def _title(self, host: int, page: int, vocabularies: Sequence[Sequence[str]]) -> list[str]:
        """Return the three words of a title."""
        content = self.markup.content_of(host, page)
        language = self._language[host]
        vocabulary = vocabularies[language * 7 + (content if content >= 0 else 6)]
        x = self.markup.bits(host, page)
        n = len(vocabulary)
        title = [vocabulary[(x >> 7) % n], vocabulary[(x >> 19) % n], vocabulary[(x >> 31) % n]]
        if x >> 43 & 7 == 0:
            spelled = words.SLUGS if vocabularies is self._slugs else words.WORDS
            title[1] = words.keyword(self._topic[host], (x >> 46) % 20, spelled[language])
        return title

    # links

    def links(self, host: int, page: int, depth: int) -> list[Link]:
        """Return the links of a page in document order, each URL once; some ten microseconds each at most."""
        return [row.link for row in self._linked(host, page, depth) if row.link is not None]

    def _linked(self, host: int, page: int, depth: int) -> list[Row]:
        """Return the rows of a page that have a link."""
        rows: list[Row] = []
        seen = {(host, page)}
        tag_paths = self.tag_paths[self._program[host]]
        address, name_of = self.address, self.plan.name
        for block, h, i, x in self._leads_to(host, page):
            if (h, i) in seen:
                continue
            seen.add((h, i))
            url, key = address(h, i)
            anchor, blurb = self._anchor(host, block, h, i, x)
            context = f"{anchor} {blurb}" if blurb else anchor
            link = Link(url, key, name_of(h), depth, anchor, tag_paths[block], context)
            rows.append(Row(block, "", link, blurb))
        return rows

    def _leads_to(self, host: int, page: int) -> list[tuple[int, int, int, int]]:
        """Return (block, host, page, 32 bits) of each link of a page; the same target may come twice."""
        mean, size, lists = self.mean, self._size[host], self._lists[host]
        x = self.markup.bits(host, page) ^ 0xF00D
        is_hub = self._kind[host] == plans.HUB
        is_list = self.markup.is_list(host, page)
        to: list[tuple[int, int, int, int]] = [(NAV, host, 0, 0)]
        to += [(NAV, host, i, 0) for i in range(1, 1 + min(lists, 1 + mean // 6))]
        n_text, n_list, n_aside, n_out = self._numbers(is_list, is_hub, size, x)
        for block, n in ((TEXT, n_text), (LIST, n_list), (ASIDE, n_aside)):
            for k in range(n):
                x = (x * _FACTOR + _STEP) & _MASK
                bits = x >> 32
                leaves = block == TEXT or (block == LIST and is_hub)
                to.append((block, *(self._away(host, page, bits) if leaves else self._near(host, page, k, bits)), bits))
        for _ in range(n_out):
            x = (x * _FACTOR + _STEP) & _MASK
            to.append((ASIDE, *self._away(host, page, x >> 32), x >> 32))
        to.append((FOOT, host, -1, 0))
        if host % 3 == 0:
            to.append((FOOT, host, -3, 0))
        if host % 10 == 0:
            to.append((FOOT, host, -4, 0))
        return to

    def _numbers(self, is_list: bool, is_hub: bool, size: int, x: int) -> tuple[int, int, int, int]:
        """Return how many links a page has in its text, its list, and beside them: to its own host, to others."""
        mean, u = self.mean, (x >> 20 & 0xFF) / 256
        if is_hub:
            return 0, int(mean * (0.5 + u)), int(mean * 0.1), 0
        if is_list:
            return 0, min(int(mean * (0.5 + 0.7 * u)), size), 0, int(mean * 0.25 * u + 0.4)
        return int(mean * 0.22 * u), 0, min(int(mean * (0.25 + 0.25 * u)), size), int(mean * 0.28 * (1 - u) + 0.4)

    def _near(self, host: int, page: int, k: int, bits: int) -> tuple[int, int]:
        """Return a page of the same host: in lists those of their section in turn, and any; elsewhere the next, and any."""
        size, kind = self._size[host], self._kind[host]
        u = bits * _UNIT
        if kind == plans.TRAP:
            return host, page + 1 + int(u * 40)
        if size <= 1:
            return host, 0
        if page > 0 and k % 3 != 2:
            i = page + SECTIONS * (k + 1)
            return host, i if i < size else 1 + (page - 1 + k) % (size - 1)
        i = 1 + int((size - 1) * u * u)
        if page > 0 and bits & 3:  # mostly in the section
            i -= (i - page) % SECTIONS
            i = i if i > 0 else i + SECTIONS
        return host, i if i < size else 1 + int((size - 1) * u)

    def _away(self, host: int, page: int, bits: int) -> tuple[int, int]:
        """Return a page of another host: rather one about the same things, rather a known one, rather its front page."""
        language = self._language[host] if bits % 100 < 85 else bits % plans.LANGUAGES
        content = self.markup.content_of(host, page)
        genre = content if content >= 0 and self._kind[host] != plans.HUB else self._genre[host]
        which, u, w = bits >> 8 & 0xFF, (bits >> 16 & 0x3FFF) / 0x4000, (bits & 0xFFFF) / 0x10000
        same = 170 if self._kind[host] == plans.HUB else 90
        if which < same:
            hosts = self._hosts_of[language * 7 + (genre if genre >= 0 else 6)]
        elif which < same + 40:
            hosts = self._hosts_on[language * words.N_TOPICS + self._topic[host]]
        else:
            hosts = self._hosts[language]
        other = hosts[int(len(hosts) * u * u)]
        size = self._size[other]
        if w < 0.4 or size <= 1:
            return other, 0
        if w < 0.42 and bits & 1:
            return other, size + 1 + (bits & 0xFF)  # stale: it is gone
        return other, 1 + int((size - 1) * ((w - 0.4) / 0.6) ** 2)

    def _anchor(self, host: int, block: int, to: int, page: int, bits: int) -> tuple[str, str]:
        """Return what a link says, and what stands behind it: mostly the title of what it leads to."""
        language = self._language[host]
        terms = words.TERMS[language]
        if page <= 0 and (block in (NAV, FOOT)):
            return terms[(words.HOME, words.ABOUT, words.CONTACT, words.PRIVACY, words.LOG_IN)[-page]], ""
        if block == NAV:
            return self.section_word(to, page).replace("-", " ").capitalize(), ""
        x, foreign = bits * 2654435761 >> 8 & 0xFF, to != host
        if x < 38:
            return terms[words.GENERIC[bits % len(words.GENERIC)]], ""
        if foreign and (x < 90 or page <= 0):
            return self.plan.name(to), ""
        if page <= 0:
            return terms[words.HOME], ""
        title = " ".join(self._title(to, page, self._nouns)[: 2 + (bits >> 5 & 1)]).capitalize()
        content = self.markup.content_of(to, page)
        if content >= 0 and x > 236:
            title = f"{_TYPE_WORDS[self._language[to]][content]}: {title}"
        if block == LIST and host % 3 == 0:
            vocabulary = self._nouns[language * 7 + 6]
            return title, f"{vocabulary[bits % 60]} {vocabulary[(bits >> 7) % 60]}"
        return title, ""

    # pages

    def write_marked(self, host: int, page: int, depth: int) -> Written:
        """Return a page with its markup."""
        plan = self.plan
        language = int(plan.language[host])
        one = np.array([host]), np.array([page])
        traits = plan.traits(*one)
        x = scramble(STEPS[:MOST_WORDS] + scramble(traits.bits)[0])
        sentences = self._sentences(host, traits, x, words.WORDS[language])
        rows = self._linked(host, page, depth)
        rows += [Row(TEXT, sentence, None, "") for sentence in sentences]
        rows.sort(key=lambda row: row.block)
        title = " ".join(self._title(host, page, self._nouns)).capitalize()
        heading = self._static(language, page) if page < 0 else title
        site = plan.domain_name(host).partition(".")[0].capitalize()
        head, shown = self._told(host, page, heading)
        return Written(f"{heading} - {site}", heading, rows, head, shown)

    def _told(self, host: int, page: int, title: str) -> tuple[str, Shown]:
        """Return what a page says to machines: as elements of its head, and of its body."""
        markup = self.markup
        marked, syntax, style = markup.marked(host, page), markup.syntax_of(host), int(markup.style[host])
        x = markup.bits(host, page)
        of = Naming(title, self.address(host, page)[0], self.plan.name(host), x >> 12 & 0xFFFFF)
        shared = marks.common(marked.common, min(page, 1) if page >= 0 else 1, of)
        own = [
            forms.entity(marked.content, marked.variant, of._replace(bits=of.bits + k, title=f"{title} {k + 1}" if k else title))
            for k in range(marked.copies)
        ]  # fmt: skip
        if syntax == marks.MICRODATA:
            # what is broken stands outside of what is not
            parts = [forms.microdata(shared, style)] if shared else []
            parts += [forms.microdata(own, style, broken=marked.broken)] if own else []
            return "", Shown("".join(part.html for part in parts), " ".join(part.text for part in parts if part.text))
        if own and not marked.broken:
            shared, own_json = [*shared, *own], []
        else:
            own_json = own
        head = forms.json_ld(shared, style) if shared else ""
        head += forms.json_ld(own_json, style, x % forms.BREAKS) if own_json else ""
        return head, forms.microdata(own, style) if syntax == marks.BOTH and own else NOTHING_SHOWN
