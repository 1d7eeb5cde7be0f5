"""Which pages of a made-up web describe entities to machines, and of which types: a function of host and number.

What a section of a host is *about* (recipes, products, nothing in particular) and whether its template *says so* are two
things: the words of addresses and anchors come from the first, the truth from both. Who adopted markup is drawn by
registered domain, with a bias for large ones and for some of the programs that sites are made with, until the shares of
a setting are reached; so webs of all seeds have these shares, and differ in who has them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from manyhosts import entities as forms
from manyhosts import plan as plans
from manyhosts.entities import CONTENTS, Facts, Naming
from manyhosts.plan import SECTIONS, scrambled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from manyhosts.plan import Floats, Ints, Plan

JSON_LD, MICRODATA, BOTH = range(3)  # how a host writes what its pages describe
OWNER_AND_TRAIL, OWNER, TRAIL, NOTHING = range(4)  # what a host says on every page
PAGED: Final = 30  # pages from which on hosts have lists of several pages
_MOST_COUNTED: Final = 3_000  # pages of a host: larger ones would be half of a web
_MASK: Final = (1 << 64) - 1


class Rates(NamedTuple):
    """How much of a web has markup, as shares of all its domains and pages."""

    domains: float  # with any
    pages: float  # with any
    types: tuple[float, ...]  # pages that are about such an entity, in the order of CONTENTS
    common: float  # domains with such pages that also say on each page who they are
    size_bias: float  # how much likelier a domain has it that is ten times as large, in logits


#: Settings by name. Of Web Data Commons are: 5.7 % of pages in 2010, of which "2012" is somewhat above; 46.9 % of
#: pages and 42.0 % of domains in 2022. Made up: the share of domains in "2012", and the shares of all types.
SETTINGS: Final = {
    "2012": Rates(0.056, 0.085, (0.012, 0.017, 0.011, 0.004, 0.0015, 0.010), 0.35, 4.0),
    "2022": Rates(0.42, 0.47, (0.024, 0.065, 0.021, 0.015, 0.005, 0.085), 0.6, 1.5),
}

# All of the following is made up.
_LACKS: Final = 0.15  # at most, of the pages of a host
_GENRES: Final = np.cumsum([0.06, 0.17, 0.06, 0.04, 0.015, 0.27])  # of domains; the rest is about none of CONTENTS
_SECTION_OF_GENRE: Final = 0.82  # sections of a host that are about what the host is about
_OTHER: Final = np.cumsum([0.02, 0.08, 0.05, 0.02, 0.01, 0.32])  # what other sections are about
_SAYS_SO: Final = np.array([0.95, 0.95, 0.9, 0.9, 0.9, 0.8])  # templates of adopters that have markup


class Marked(NamedTuple):
    """What a page describes to machines."""

    common: int  # what the host says on every page: OWNER_AND_TRAIL, OWNER, TRAIL or NOTHING
    content: int  # what the page is said to be about, -1 for none
    copies: int  # entities of that content
    variant: int
    broken: bool  # whether what is said about the content cannot be read


NONE: Final = Marked(NOTHING, -1, 0, 0, False)


@lru_cache(maxsize=1024)
def facts_of(marked: Marked, place: int, syntax: int) -> Facts:
    """Return what can be read on a page; `place` as for :func:`common`."""
    of = Naming("t", "http://h.example/t", "h.example", 0)
    shared = forms.facts(common(marked.common, place, of))
    own = [forms.entity(marked.content, marked.variant, of)] * marked.copies if marked.content >= 0 else []
    times = (2 if syntax == BOTH else 1) - marked.broken
    told = forms.facts(own)
    return Facts(shared.types + told.types * times, shared.leaves + told.leaves * times)


def common(which: int, place: int, of: Naming) -> list[dict[str, object]]:
    """Return what a host says on every page; `place` is 0 on its front page."""
    entities = [] if which in (TRAIL, NOTHING) else [forms.organization(of)]
    if place == 0:
        return entities + ([forms.website(of)] if entities else [])
    return entities + ([] if which in (OWNER, NOTHING) else [forms.breadcrumbs(of)])


class Markup:
    """Who has markup in a web.

    Attributes
    ----------
    content : ndarray
        What each section is about, the index in CONTENTS, -1 for none; shape (n_hosts, SECTIONS).
    says_so : ndarray of bool
        Whether the pages of a section describe it; shape (n_hosts, SECTIONS).
    common : ndarray
        What each host says on every page; shape (n_hosts,).
    genre : ndarray
        What each host is mostly about, as `content`; shape (n_hosts,).
    """

    def __init__(self, plan: Plan, rates: Rates) -> None:
        self.plan = plan
        ids = np.arange(plan.n_hosts, dtype=np.int64)
        # strangers on a platform decide for themselves, hosts of a domain have one program
        unit = np.where(plan.platform[plan.domain], ids + (1 << 32), plan.domain)
        _, self._unit = np.unique(unit, return_inverse=True)
        self.genre = self._genre(plan.draw("genre", unit))
        self.content = self._contents(ids)
        self.size = np.minimum(plan.size, _MOST_COUNTED)
        self.lists = np.minimum(SECTIONS, plan.size // 5)  # pages 1 to this are lists of a section each
        self._details(ids)
        self._adopt(ids, rates)
        self._salt = scrambled(plan.salt ^ 0x3A2C)
        self._rows = self._as_lists()

    def _genre(self, u: Floats) -> Ints:
        genre = np.searchsorted(_GENRES, u, "right")
        return np.where(genre < len(CONTENTS), genre, -1).astype(np.int64)

    def _contents(self, ids: Ints) -> Ints:
        plan = self.plan
        column = ids[:, None] * SECTIONS + np.arange(SECTIONS)
        u, v = plan.draw("section of genre", column), plan.draw("other content", column)
        other = np.searchsorted(_OTHER, v, "right")
        other = np.where(other < len(CONTENTS), other, -1)
        portal = self._genre(v)
        content = np.where(u < _SECTION_OF_GENRE, self.genre[:, None], other)
        content = np.where((plan.kind == plans.MIXED)[:, None], portal, content)
        content = np.where((plan.kind == plans.HUB)[:, None] & (u < 0.85), -1, content)
        return np.where((plan.kind == plans.TRAP)[:, None], -1, content).astype(np.int64)

    def _details(self, ids: Ints) -> None:
        """Draw what differs between hosts with markup."""
        plan = self.plan
        self.syntax = np.searchsorted([0.45, 0.9], plan.draw("syntax", self._unit), "right")
        self.lacks = _LACKS * plan.draw("lacks", ids)  # share of pages of a template that have none
        newer = plan.draw("newer", ids)
        self.since = np.where(newer < 0.12, 0.2 + 4 * newer, 0.0)  # only the later pages have any
        faulty = plan.draw("faulty", ids)  # a few templates are broken, and some break on some titles
        self.broken = np.where(faulty < 0.03, 1.0, np.where(faulty < 0.12, (faulty - 0.03) * 3, 0.004))
        self.on_lists = plan.draw("on lists", ids) < 0.2  # list pages describe what they list
        self.variant = (plan.draw("variant", ids) * 3).astype(np.int64)  # 2: one of two pages
        self.style = (plan.draw("style", ids) * (1 << 20)).astype(np.int64)

    def _adopt(self, ids: Ints, rates: Rates) -> None:
        plan = self.plan
        column = ids[:, None] * SECTIONS + np.arange(SECTIONS)
        would = (plan.draw("says so", column) < _SAYS_SO[self.content]) & (self.content >= 0)
        live = (plan.fate == plans.ALIVE) & (ids < plan.public) & (plan.kind != plans.TRAP)
        details = np.maximum(self.size - 1 - self.lists, 0) / SECTIONS * np.where(self.size >= PAGED, 15 / 16, 1.0)
        read = np.where(self.syntax == BOTH, 1.0, 1 - self.broken)  # of both syntaxes, one is broken
        each = details * (1 - self.lacks) * (1 - self.since) * read * live
        n_units = int(self._unit.max()) + 1
        typed = np.zeros((n_units, len(CONTENTS)))
        for t in range(len(CONTENTS)):
            has = ((self.content == t) & would).sum(1) * each
            typed[:, t] = np.bincount(self._unit, has, n_units)
        pages = np.bincount(self._unit, self.size * live, n_units)
        genre = np.full(n_units, -1)
        genre[self._unit] = self.genre
        program = np.zeros(n_units, np.int64)
        program[self._unit] = plan.template
        units = np.arange(n_units)
        shipped = plan.draw("programs", program)  # some programs come with templates that have markup
        noise = -np.log(-np.log(plan.draw("adopts", units) * (1 - 1e-9) + 1e-12))
        wish = noise + 2.0 * shipped
        logs = np.log10(np.maximum(pages, 1))
        total = float(pages.sum())
        chosen = self._choose_typed(wish + rates.size_bias * logs, typed, pages, genre, rates, total)
        common = np.where(plan.draw("common", units) < rates.common, 0, NOTHING)
        which = np.searchsorted([0.7, 0.85], plan.draw("which", units), "right")
        common = np.where(chosen & (common == 0), which, NOTHING)
        covered = np.where(common != NOTHING, pages * (1 - _LACKS / 2), typed.sum(1)) * chosen
        # The others say who they are and nothing else: as many as the domains want, as large as the pages want.
        others = np.flatnonzero(~chosen & (pages > 0))
        n = min(max(round(rates.domains * (pages > 0).sum()) - int(chosen.sum()), 0), len(others))
        wanted = (rates.pages * total - covered.sum()) / (1 - _LACKS / 2)
        low, high = -6.0, 6.0
        for _ in range(24):
            slope = (low + high) / 2
            first = others[np.argsort(-(wish + slope * logs)[others], kind="stable")[:n]]
            low, high = (slope, high) if pages[first].sum() < wanted else (low, slope)
        common[first] = which[first]
        self.says_so = would & chosen[self._unit][:, None]
        self.common = common[self._unit]

    def _choose_typed(
        self, wish: Floats, typed: Floats, pages: Floats | Ints, genre: Ints, rates: Rates, total: float
    ) -> NDArray[np.bool_]:
        """Return which domains describe what they are about: the scarce types first, none much above its share."""
        chosen = np.zeros(len(pages), np.bool_)
        there = np.zeros(len(CONTENTS))
        for t in np.argsort(rates.types):
            target = rates.types[t] * total
            candidates = np.flatnonzero((genre == t) & (pages > 0))
            for unit in candidates[np.argsort(-wish[candidates], kind="stable")].tolist():
                if there[t] >= 0.97 * target:
                    break
                if there[t] + typed[unit, t] <= 1.04 * target:
                    chosen[unit] = True
                    there += typed[unit]
        return chosen

    def _as_lists(self) -> list[tuple[int, int, int, int, float, int, float, bool, int, list[int], list[bool]]]:
        """Return the same by host, as Python reads it fastest."""
        sizes = np.minimum(self.plan.size, plans.ENDLESS)
        columns = (
            self.common, self.syntax, sizes, self.lists, self.lacks, (self.since * sizes).astype(np.int64), self.broken,
            self.on_lists, self.variant, self.content, self.says_so,
        )  # fmt: skip
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def is_list(self, host: int, page: int) -> bool:
        """Whether a page is there to list others: front pages, first pages of sections, and their further pages."""
        size, lists = self._rows[host][2:4]
        return 0 <= page <= lists or (page > 0 and size >= PAGED and self.bits(host, page) & 15 == 0)

    def bits(self, host: int, page: int) -> int:
        """Return 64 bits for a page."""
        return scrambled((host * 0x9E3779B97F4A7C15 + page * 0xBF58476D1CE4E5B9 + self._salt) & _MASK)

    def content_of(self, host: int, page: int) -> int:
        """Return what a page is about, the index in CONTENTS, -1 for none."""
        return -1 if page <= 0 else self._rows[host][9][(page - 1) % SECTIONS]

    def marked(self, host: int, page: int) -> Marked:
        """Return what a page describes; about 2 microseconds."""
        common, _, size, lists, lacks, since, broken, on_lists, variant, content, says_so = self._rows[host]
        section = (page - 1) % SECTIONS
        has = page > 0 and says_so[section]
        if common == NOTHING and not has:
            return NONE
        x = self.bits(host, page)
        if (x >> 44) * 2.0**-20 < lacks:
            return NONE
        if not has:
            return Marked(common, -1, 0, 0, False)
        count = 1
        if page <= lists or (size >= PAGED and x & 15 == 0):
            count = 3 if on_lists else 0
        elif page < since:
            count = 0
        if not count:
            return Marked(common, -1, 0, 0, False) if common != NOTHING else NONE
        is_broken = (x >> 24 & 0xFFFFF) * 2.0**-20 < broken
        return Marked(common, content[section], count, variant if variant < forms.VARIANTS else x >> 8 & 1, is_broken)

    def facts(self, host: int, page: int) -> Facts:
        """Return what can be read on a page; about 2 microseconds."""
        marked = self.marked(host, page)
        return facts_of(marked, min(page, 1) if page >= 0 else 1, self._rows[host][1]) if marked is not NONE else EMPTY

    def syntax_of(self, host: int) -> int:
        """Return how a host writes what it describes: JSON_LD, MICRODATA or BOTH."""
        return self._rows[host][1]


EMPTY: Final = Facts((), 0)
