"""Which hosts a made-up web has, what each page is about, and what it is called: all a function of a seed.

Hosts are rows of a few arrays. Pages are pairs (host, number) and take no memory: 0 is the front page, negative numbers
are pages that every host has, and everything else is computed when asked for, for many pages at once.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyhosts import words
from manyhosts.words import N_TOPICS

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

TOPICAL, MIXED, HUB, JUNK, TRAP = range(5)  # kinds of hosts
ALIVE, DEAD, MOVED = range(3)  # fates: a dead one has no address any more, a moved one redirects to another
SECTIONS: Final = 6  # of each host; page i > 0 is in section (i - 1) % SECTIONS
ENDLESS: Final = 1 << 31  # pages of a trap
MOST_HOSTS: Final = 250_000
NODE, QUERY, SLUG, SECTION = range(4)  # kinds of addresses
LANGUAGES: Final = len(words.LANGUAGES)
#: Lists of hosts that links choose from, for each language: four for each topic, and four that are for none.
LIST_TOPICAL, LIST_MIXED, LIST_HUB, LIST_ANY_TOPICAL = 0, N_TOPICS, 2 * N_TOPICS, 3 * N_TOPICS
LIST_ANY_MIXED, LIST_JUNK, LIST_TRAP, LIST_LURE = 3 * N_TOPICS + 1, 3 * N_TOPICS + 2, 3 * N_TOPICS + 3, 3 * N_TOPICS + 4
LISTS: Final = 4 * N_TOPICS + 4

_GOLDEN, _A, _B = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_MASK: Final = (1 << 64) - 1
STEPS: Final = np.arange(1, 4097, dtype=np.uint64) * np.uint64(_GOLDEN)
_SHARES: Final = np.cumsum([0.36, 0.17, 0.025, 0.42, 0.025])  # of the kinds of hosts
#: Share of each topic; the first of each group has most.
_POPULARITY: Final = np.cumsum(np.tile([0.48, 0.20, 0.18, 0.14], N_TOPICS // 4)) * 4 / N_TOPICS
_TAIL: Final = 1.8  # exponent of the sizes of hosts in a bounded web
_LURES: Final = 0.22  # share of junk hosts that are stuffed with the words of a topic
_NAMES: Final = 1 << 18  # that three syllables have
_ODD: Final = 0x2545F
_BACK: Final = pow(_ODD, -1, _NAMES)
_SYLLABLES: Final = [c + v for c in "bdfghklmnprstvwz" for v in "aeio"]
_PARTS: Final = {syllable: k for k, syllable in enumerate(_SYLLABLES)}
_SUB: Final = ("www", "blog", "forum", "wiki", "shop", "news", "docs", "club", "archive", "my", "old", "info")
_STATIC: Final = {-1: "about", -2: "contact", -3: "privacy", -4: "private/login"}
_NUMBER_OF: Final = {path: i for i, path in _STATIC.items()}
_CATEGORIES: Final = ("articles", "blog", "guide", "p", "stories", "archive")
_SEGMENT: Final = 8  # words of a title that are drawn: four for the title, the others for a blurb


def scramble(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return 64 well mixed bits for each number (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(_A)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(_B)
    return x ^ (x >> np.uint64(31))


def scrambled(x: int) -> int:
    """The same for one number."""
    x = (x ^ (x >> 30)) * _A & _MASK
    x = (x ^ (x >> 27)) * _B & _MASK
    return x ^ (x >> 31)


def unit(x: NDArray[np.uint64]) -> Floats:
    """Return numbers in [0, 1) of the upper 53 bits."""
    return (x >> np.uint64(11)).astype(np.float64) * 2.0**-53


class Traits(NamedTuple):
    """What pages are about, each shape (n_pages,)."""

    label: Ints  # the topic; -1: none
    seeming: Ints  # the topic that its words are from, which pages without one may have too; -1: none
    weight: Floats  # share of these words in the text
    bits: NDArray[np.uint64]  # for whatever else is decided about the page


def _any_topic(u: Floats) -> Ints:
    return np.minimum(np.searchsorted(_POPULARITY, u, "right"), N_TOPICS - 1).astype(np.int64)


class Plan:
    """The hosts of a made-up web, and what is on their pages."""

    def __init__(self, *, seed: int, hosts: int, pages: int | None = None) -> None:
        self.salt = scrambled(seed & _MASK)
        self.n_hosts = hosts
        ids = np.arange(hosts, dtype=np.int64)
        self._name_domains(ids)
        by_domain = np.where(self.platform[self.domain], ids + (1 << 32), self.domain)  # what sites of a domain share
        self.kind = np.searchsorted(_SHARES / _SHARES[-1], self.draw("kind", by_domain), "right").astype(np.int64)
        self.topic = _any_topic(self.draw("topic", by_domain))
        lured = (self.kind == JUNK) & (self.draw("lure", by_domain) < _LURES)
        self.lure = np.where(lured, self.topic, -1)  # whose words are in each title on the host, and in few texts
        self.language = (self.draw("language", self.domain) < 0.16).astype(np.int64)
        if pages is not None:
            self.kind[self.kind == TRAP] = JUNK  # a bounded web has none
        self.size = self._sizes(self.draw("size", ids), pages)
        self.template = (self.draw("template", by_domain) * 6).astype(np.int64)
        self.address = np.searchsorted([0.25, 0.4, 0.75], self.draw("address", ids), "right").astype(np.int64)
        self.junk = (self.draw("junk", by_domain) * words.N_JUNK).astype(np.int64)
        spread = self.draw("purity", ids)
        purity = np.array([0.42, 0.66, 0.0, 0.0, 0.0]) + spread[:, None] * [0.43, 0.24, 0, 0, 0]
        self.purity = np.take_along_axis(purity, self.kind[:, None], 1)[:, 0]
        self.stray = np.array([0.6, 0.9, 1.0, 0.994, 1.0])[self.kind]  # above it, a page strays to another topic
        self.stray = np.where(self.kind == TOPICAL, self.purity + (1 - self.purity) * 0.6, self.stray)
        self.stray = np.where(self.kind == MIXED, self.purity + (1 - self.purity) * 0.8, self.stray)
        self.sections = self._section_topics(ids, by_domain)
        self.home = np.where(self.kind == TOPICAL, self.topic, -1)  # what the front page is about
        reserved = int(self.domain[-1] * 0.96) if hosts else 0
        self.public = int(np.searchsorted(self.domain, reserved))  # hosts from here on are linked from nowhere
        fate = self.draw("fate", ids)
        self.fate = np.where(fate < 0.012, DEAD, np.where((fate < 0.035) & (self.kind != HUB), MOVED, ALIVE))
        slow = self.draw("slow", ids)
        self.seconds = np.where(slow < 0.03, 4 + 8 * slow / 0.03, 0.1 + 0.6 * slow**3)  # until an answer comes
        self._make_lists(ids)
        self._names: dict[int, str] = {}  # at most one for each host

    def draw(self, what: str, of: Ints) -> Floats:
        """Return a number in [0, 1) for each of some things; others for each purpose."""
        base = scrambled(self.salt ^ int.from_bytes(what.encode(), "big") & _MASK)
        return unit(scramble((of.astype(np.uint64) + np.uint64(1)) * np.uint64(_GOLDEN) + np.uint64(base)))

    def _name_domains(self, ids: Ints) -> None:
        u, v = self.draw("hosts of a domain", ids), self.draw("more hosts", ids)
        many = np.where(u < 0.90, 1, np.where(u < 0.995, 2 + (v * 3).astype(np.int64), 12 + (v * 60).astype(np.int64)))
        ends = np.cumsum(many)
        self.n_domains = int(np.searchsorted(ends, self.n_hosts)) + 1
        self.domain = np.repeat(np.arange(self.n_domains), many[: self.n_domains])[: self.n_hosts]
        self.platform = many[: self.n_domains] >= 12  # where anybody may have a site
        self.first = (ends - many)[: self.n_domains]

    def _sizes(self, u: Floats, pages: int | None) -> Ints:
        if pages is not None:
            return self._bounded_sizes(u, pages)
        scale = np.array([7.0, 30.0, 30.0, 10.0, 1.0])[self.kind]
        slope = np.array([0.85, 0.9, 1.2, 1.0, 1.0])[self.kind]
        size = 3 + scale * ((1 - u) ** (-1 / slope) - 1)
        size = np.minimum(size, np.array([30_000, 60_000, 800, 20_000, 0])[self.kind]).astype(np.int64)
        return np.where(self.kind == TRAP, ENDLESS, size + np.where(self.kind == MIXED, 20, 0))

    def _bounded_sizes(self, u: Floats, pages: int) -> Ints:
        """Return sizes that sum to `pages`, or somewhat less: log-logistic, so a power law from the median on."""
        odds = (u / (1 - u)) ** (1 / _TAIL) * np.array([0.9, 2.0, 1.5, 0.9, 1.0])[self.kind]
        low, high = 0.0, float(pages)
        for _ in range(60):
            median = (low + high) / 2
            size = 1 + np.minimum(median * odds, pages / 50).astype(np.int64)
            low, high = (median, high) if size.sum() <= pages else (low, median)
        sizes: Ints = 1 + np.minimum(low * odds, pages / 50).astype(np.int64)
        return sizes

    def _section_topics(self, ids: Ints, by_domain: Ints) -> NDArray[np.int64]:
        own = self.topic[:, None]
        column = ids[:, None] * SECTIONS + np.arange(SECTIONS)
        other = words.NEIGHBOURS[own, (self.draw("neighbour", column) * 3).astype(np.int64)]
        topical = np.where(self.draw("drift", column) < 0.08, other, own)
        u = self.draw("sections", by_domain[:, None] * SECTIONS + np.arange(SECTIONS))
        portal = np.where(u < 0.55, _any_topic(u / 0.55), -1)
        spread = self.draw("special", by_domain)[:, None] < 0.5  # directories of one topic, and of all
        directory = np.where(spread, own, (own + 2 * np.arange(SECTIONS)) % N_TOPICS)
        sections = np.full((len(ids), SECTIONS), -1, np.int64)
        for kind, topics in ((TOPICAL, topical), (MIXED, portal), (HUB, directory)):
            sections[self.kind == kind] = topics[self.kind == kind]
        return sections

    def _make_lists(self, ids: Ints) -> None:
        """Say which hosts each kind of link chooses from: the known ones first, which are rather the large ones."""
        fame = 0.5 * np.log(np.minimum(self.size, 5000)) - np.log(-np.log(self.draw("fame", ids) + 1e-12) + 1e-12)
        order = np.argsort(-fame, kind="stable")
        order = order[order < self.public]
        hosts: list[Ints] = []
        sections: list[Ints] = []
        self.position = np.zeros(self.n_hosts, np.int64)  # of topical hosts in their list
        for language in range(LANGUAGES):
            mine = order[self.language[order] == language]
            of = {kind: mine[self.kind[mine] == kind] for kind in range(5)}
            everyone = {kind: order[self.kind[order] == kind] for kind in range(5)}
            of = {kind: rows if len(rows) else everyone[kind] for kind, rows in of.items()}
            topical = [of[TOPICAL][self.topic[of[TOPICAL]] == t] for t in range(N_TOPICS)]
            for rows in topical:
                self.position[rows] = np.arange(len(rows))
            lists = [(rows, None) for rows in topical]
            for kind in (MIXED, HUB):
                for t in range(N_TOPICS):
                    has = self.sections[of[kind]] == t
                    lists.append((of[kind][has.any(1)], has[has.any(1)].argmax(1)))
            lists += [(of[kind], None) for kind in (TOPICAL, MIXED, JUNK, TRAP)]
            lists += [(of[JUNK][self.lure[of[JUNK]] == t], None) for t in range(N_TOPICS)]
            for rows, section in lists:
                some = rows if len(rows) else order[:1]
                hosts.append(some)
                sections.append(np.full(len(some), -1) if section is None or not len(rows) else section)
        self.list_size = np.array([len(rows) for rows in hosts])
        self.list_start = np.cumsum(self.list_size) - self.list_size
        self.listed = np.concatenate(hosts)
        self.listed_section = np.concatenate(sections)
        u = self.draw("moved to", ids)
        which = self.language * LISTS + np.where(self.kind == TOPICAL, LIST_TOPICAL + self.topic, LIST_JUNK)
        to = self.listed[self.list_start[which] + (u * self.list_size[which]).astype(np.int64)]
        self.moved_to = np.where(self.fate[to] == ALIVE, to, self.listed[self.list_start[which]])
        self.fate[(self.fate == MOVED) & (self.fate[self.moved_to] != ALIVE)] = DEAD

    def bits(self, hosts: Ints, pages: Ints, salt: int = 0) -> NDArray[np.uint64]:
        """Return 64 bits for each page, others for each salt."""
        x = hosts.astype(np.uint64) * np.uint64(_GOLDEN) + pages.astype(np.uint64) * np.uint64(_B)
        return scramble(scramble(x + np.uint64((self.salt + salt * _A) & _MASK)))

    def key(self, host: int, page: int) -> int:
        """Return the key of the link to a page."""
        return scrambled(scrambled((host * _GOLDEN + page * _B + self.salt) & _MASK) ^ 0x5EED) >> 1

    def keys(self, hosts: Ints, pages: Ints) -> list[int]:
        """Return the same for many."""
        keys: list[int] = (scramble(self.bits_once(hosts, pages) ^ np.uint64(0x5EED)) >> np.uint64(1)).tolist()
        return keys

    def bits_once(self, hosts: Ints, pages: Ints) -> NDArray[np.uint64]:
        """Return 64 bits for each page that nothing else is decided by."""
        x = hosts.astype(np.uint64) * np.uint64(_GOLDEN) + pages.astype(np.uint64) * np.uint64(_B)
        return scramble(x + np.uint64(self.salt))

    def traits(self, hosts: Ints, pages: Ints) -> Traits:
        """Return what pages are about."""
        x = self.bits(hosts, pages)
        u = (x >> np.uint64(40)) * 2.0**-24
        v = ((x >> np.uint64(16)) & np.uint64(0xFFFFFF)) * 2.0**-24
        clarity = (x & np.uint64(0xFFFF)) * 2.0**-16
        kind, section = self.kind[hosts], self.sections[hosts, (pages - 1) % SECTIONS]
        anything = (v * N_TOPICS).astype(np.int64)
        other = np.where(kind == TOPICAL, words.NEIGHBOURS[section, (v * 3).astype(np.int64)], anything)
        label = np.where(u < self.purity[hosts], section, np.where(u > self.stray[hosts], other, -1))
        label = np.where(pages == 0, self.home[hosts], np.where(pages < 0, -1, label))
        w = (x >> np.uint64(20) & np.uint64(0xFFFF)) * 2.0**-16
        seeming = np.where((w < 0.40) | (kind == HUB), section, np.where(w > 0.93, anything, -1))
        lure = self.lure[hosts]
        seeming = np.where(label >= 0, label, np.where((lure >= 0) & (w < 0.9), lure, seeming))
        weight = np.where(
            label >= 0, 0.02 + 0.20 * clarity * clarity, np.where(kind == HUB, 0.05, 0.01 + 0.07 * clarity)
        )
        return Traits(label, seeming, np.where(seeming >= 0, weight, 0.0), x)

    def second_label(self, label: int, bits: int) -> int:
        """Return the other topic that a page of one is about, -1 for most."""
        return words.neighbour(label, bits >> 9) if label >= 0 and bits >> 50 & 31 == 7 else -1

    def titles(self, hosts: Ints, pages: Ints, traits: Traits) -> NDArray[np.int64]:
        """Return the words of titles and of the blurb after each, by their numbers, shape (n_pages, 8)."""
        x = scramble(self.bits(hosts, pages, 1)[:, None] + STEPS[:_SEGMENT])
        low = (x & np.uint64(0x7FF)).astype(np.int64)
        share = np.where(self.lure[hosts] >= 0, 0.30, 0.05 + 0.6 * traits.weight) * (traits.seeming >= 0) * 2048
        group = words.GROUP_SOURCE[traits.seeming]
        source = np.where(low < share[:, None] * 0.75, traits.seeming[:, None] + words.FIRST_TOPIC, group[:, None])
        junk = np.where(
            (self.kind[hosts] == JUNK)[:, None] & (low > 1500), words.FIRST_JUNK + self.junk[hosts, None], 1
        )
        source = np.where(low < share[:, None], source, junk)
        return self.words_of(source, x)

    def words_of(self, source: Ints, x: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return a word of each source, by its number; the first ones of a source are the frequent ones."""
        u = unit(x)
        return words.STARTS[source] + (words.SIZES[source] * u * u).astype(np.int64)

    def name(self, host: int) -> str:
        """Return the name of a host, as in ``hive-karomi.example``."""
        if (name := self._names.get(host)) is None:
            name = self._names[host] = self._make_name(host)
        return name

    def domain_name(self, host: int) -> str:
        """Return the registered domain of a host."""
        domain = int(self.domain[host])
        x = (domain * _ODD + self.salt) % _NAMES
        name = _SYLLABLES[x >> 12] + _SYLLABLES[x >> 6 & 63] + _SYLLABLES[x & 63]
        first, bits = int(self.first[domain]), scrambled(x + self.salt >> 1)
        if self.kind[first] == TOPICAL and not self.platform[domain] and bits % 10 < 3:
            slugs = words.SLUGS[self.language[first]]
            name = f"{slugs[words.STARTS[words.FIRST_TOPIC + self.topic[first]] + (bits >> 8) % 12]}-{name}"
        return f"{name}.{'test' if bits >> 40 & 3 == 0 else 'example'}"

    def _make_name(self, host: int) -> str:
        domain = int(self.domain[host])
        k = host - int(self.first[domain])
        name = self.domain_name(host)
        if self.platform[domain]:
            return f"{_SYLLABLES[k % 64]}{_SYLLABLES[(k * 7 + domain) % 64]}{k}.{name}"
        return name if k == 0 and domain % 3 else f"{_SUB[k]}.{name}"

    def host_of(self, name: str) -> int:
        """Return the host of a name, -1 where there is none."""
        labels = name.split(".")
        if len(labels) not in (2, 3):
            return -1
        word = labels[-2].rpartition("-")[2]
        parts = [_PARTS.get(word[k : k + 2], -1) for k in (0, 2, 4)]
        if len(word) != 6 or min(parts) < 0:
            return -1
        x = parts[0] << 12 | parts[1] << 6 | parts[2]
        domain = (x - self.salt) * _BACK % _NAMES
        if domain >= self.n_domains:
            return -1
        first = int(self.first[domain])
        if len(labels) == 2:
            k = 0
        elif self.platform[domain]:
            k = int(labels[0][4:]) if labels[0][4:].isdecimal() and len(labels[0]) < 8 else -1
        else:
            k = _SUB.index(labels[0]) if labels[0] in _SUB else -1
        host = first + k
        known = k >= 0 and host < self.n_hosts and self.domain[host] == domain and self.name(host) == name
        return host if known else -1

    def section_word(self, host: int, page: int) -> str:
        """Return the part of the address that says where on its host a page is."""
        section = (page - 1) % SECTIONS
        topic = int(self.sections[host, section])
        if topic < 0 or self.kind[host] == TOPICAL or (host + section) % 2:
            return _CATEGORIES[(host + section) % len(_CATEGORIES)]
        return words.keyword(topic, host % 5, words.SLUGS[self.language[host]])

    def path(self, host: int, page: int, title: list[int]) -> str:
        """Return the path of a page; `title` has the numbers of the words of its title."""
        if page <= 0:
            return "/" + _STATIC.get(page, "")
        if self.kind[host] == TRAP:
            return f"/calendar/{page}"
        match self.address[host]:
            case 0:
                return f"/node/{page}"
            case 1:
                return f"/index.php?id={page}"
            case 2:
                slugs = words.SLUGS[self.language[host]]
                return f"/{self.section_word(host, page)}/{slugs[title[0]]}-{slugs[title[1]]}-{slugs[title[2]]}-{page}"
            case _:
                return f"/{self.section_word(host, page)}/{page}.html"

    def page_of(self, host: int, path: str) -> int | None:
        """Return the number that a path may have; whether it is the page's path is for the caller to see."""
        bare = path.strip("/")
        if not bare:
            return 0
        if bare in _NUMBER_OF:
            return _NUMBER_OF[bare]
        digits = bare.removesuffix(".html").rpartition("-" if self.address[host] == SLUG else "/")[2]
        digits = digits.rpartition("=")[2] if "?" in digits else digits.rpartition("/")[2]
        return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 11 else None

    def exists(self, host: int, page: int) -> bool:
        """Whether there is such a page; one in seventy of those that are linked to is gone."""
        if page <= SECTIONS:
            return -4 <= page < int(self.size[host])
        gone = self.kind[host] != TRAP and self.key(host, page) % 70 == 0
        return page < int(self.size[host]) and not gone
