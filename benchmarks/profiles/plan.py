"""Where everything is on a profile site, and how many clicks from the home page (internal).

A section is a tree of categories. Each category is a run of listing pages, which pagers lead through, and each listing
page leads to its items. Links to the side never lead more than one click deeper than the page that they are on, so the
number of clicks to a page is known without a crawl: that of the first listing of its category, plus the steps of
the pager, plus one for the item.

A *leaf* is a page that may have files: an item, or a listing page of a section where files stand on these. Leaves are
numbered over the whole site. What is stored: the number of files of each leaf (one byte), and per listing
page its depth and its place in the order of depths (six bytes).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import accumulate
from math import isqrt, sqrt
from typing import TYPE_CHECKING, Final

import numpy as np

from profiles.style import KINDS, SectionStyle, Style
from profiles.tree import Tree, draws, grow, mix, uniform
from scrapy_focus.lab.sites.portal.words import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from profiles.profiles import SiteProfile

MAX_FILES: Final = 240  # of one page
STATIC: Final = ("about", "contact", "legal")

_RICH, _MIXED, _POOR = 0.84, 0.12, 0.04  # shares of the pages with files, by role of the section
_FRONT, _MOST_FRONT = 6, 120  # items on a home page: usually, and where targets are near it
_NEAR, _NOT_FRONT = 2, 4.2  # clicks to the files of such items, and to those of others at least, in the mean
_MOST_BELOW = 500  # categories below one, where many are near the home page
_CHAIN_PER_CLICK = 3  # listing pages that a section needs for each click of the mean depth
_IN_CHAINS = 0.6  # of all pages, at most, are in sections that get pages for their depth
_SMALL, _MEDIUM = 600, 1_300  # pages below which a site has fewer sections, shorter listings and one edition
_ROUNDS = 12  # attempts at the wanted depth, whose ...
_OF_SPREAD = 0.2  # ... standard deviation counts so much, and the mean 1
FORM, PICK, CHAIN, YIELD, SECTION = range(5)  # what is drawn


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Section:
    """A section of one edition."""

    number: int
    edition: int
    style: SectionStyle
    root: str  # address of its first page
    folder: str  # of the addresses of its items and categories
    direct: bool
    n_leaves: int
    first_leaf: int  # its number on the site
    tree: Tree

    @property
    def n_pages(self) -> int:
        """Number of HTML pages."""
        return self.tree.n_listings + (0 if self.direct else self.n_leaves)

    def leaves_of(self, listing: int) -> range:
        """Return the leaves that a listing page leads to, or is."""
        if self.direct:
            return range(listing, listing + 1)
        p = self.style.per_page
        return range(listing * p, min((listing + 1) * p, self.n_leaves))

    def listing_of(self, i: int) -> int:
        """Return the listing page that leads to leaf `i`, or is it."""
        return i if self.direct else i // self.style.per_page

    def depth_of(self, i: int) -> int:
        """Return the clicks to leaf `i`."""
        return int(self.tree.depths[self.listing_of(i)]) + (not self.direct)

    def depths(self) -> NDArray[np.int64]:
        """Return the clicks to each leaf."""
        depths = self.tree.depths.astype(np.int64)
        return depths if self.direct else np.repeat(depths, self.style.per_page)[: self.n_leaves] + 1


@dataclass(slots=True, kw_only=True)
class _Draft:
    """A section before its tree is grown."""

    edition: int
    style: SectionStyle
    bearing: int = 0  # leaves with files
    n_leaves: int = 0

    @property
    def role(self) -> str:
        return KINDS[self.style.kind].role

    @property
    def per_page(self) -> int:
        return 1 if KINDS[self.style.kind].direct else self.style.per_page

    @property
    def n_pages(self) -> int:
        listings = -(-self.n_leaves // self.per_page)
        return listings if KINDS[self.style.kind].direct else listings + self.n_leaves

    def fit(self, pages: int) -> None:
        """Set the number of leaves for at most that many pages."""
        p = self.per_page
        self.n_leaves = pages if KINDS[self.style.kind].direct else pages - -(-pages // (p + 1))


class Plan:
    """The structure of one site.

    Parameters
    ----------
    profile : SiteProfile
        What to build, scaled already.
    style : Style
        Which sections there are.
    seed : int
        Plans with the same profile and seed are equal.
    """

    def __init__(self, profile: SiteProfile, style: Style, seed: int) -> None:
        key = f"{profile.name}/{profile.pages}/{profile.targets}/{seed}"
        self.salt = int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big")
        self.profile = profile
        n_editions = len(profile.languages) if profile.pages >= _MEDIUM else 1
        self.languages = [LANGUAGES.index(name) for name in profile.languages[:n_editions]]
        self.prefixes = [style.prefix, *(f"/{name}" for name in profile.languages[1:n_editions])]
        self._fit(style)
        self.firsts = [section.first_leaf for section in self.sections]
        self.n_leaves = len(self.files)
        self.n_pages = sum(section.n_pages for section in self.sections) + len(STATIC) * n_editions
        self.n_targets = int(self.files.sum(dtype=np.int64))
        self.n_bearing = int(np.count_nonzero(self.files))

    def bearing(self) -> Iterator[int]:
        """Yield the leaves with files."""
        return (int(leaf) for leaf in np.flatnonzero(self.files))

    def draw(self, purpose: int, n: int) -> int:
        """Return 64 bits that depend on the site, the purpose and `n`."""
        return mix(self.salt + (purpose << 40) + n)

    def section_of(self, leaf: int) -> Section:
        """Return the section of a leaf, by its number on the site."""
        return self.sections[bisect_right(self.firsts, leaf) - 1]

    def others_of(self, leaf: int) -> range:
        """Return the numbers of the addresses that are neither pages nor targets and that a leaf links to."""
        n = self.profile.other
        return range(leaf * n // self.n_leaves, (leaf + 1) * n // self.n_leaves)

    def near(self, section: Section, depth: int, bits: int) -> int | None:
        """Return a leaf of a section at most `depth` clicks away, chosen by `bits`; None if there is none."""
        reach = section.tree.reach
        n = reach[min(depth if section.direct else depth - 1, len(reach) - 1)]
        if n == 0:
            return None
        leaves = section.leaves_of(int(section.tree.order[(bits >> 8) % n]))
        return leaves[bits % len(leaves)]

    def _fit(self, style: Style) -> None:
        """Grow sections until their files are as deep as wanted, or keep the best of some attempts."""
        drafts, profile = self._drafts(style), self.profile
        shift, widen, best = 0.0, 1.0, float("inf")
        for _ in range(_ROUNDS):
            sections = self._grown(drafts, style, shift, profile.depth_spread * widen)
            files = self._files(drafts, sections)
            depths = np.concatenate([section.depths() for section in sections]) + 1
            n_files = files.astype(np.int64)
            mean = int((n_files * depths).sum()) / int(n_files.sum())
            spread = sqrt(max(0.0, int((n_files * depths**2).sum()) / int(n_files.sum()) - mean**2))
            error, ratio = mean - profile.depth, spread / profile.depth_spread
            missed = abs(error) + _OF_SPREAD * abs(spread - profile.depth_spread)
            if missed < best:
                best, self.sections, self.files, self.depth, self.depth_spread = missed, sections, files, mean, spread
            if abs(error) < 0.05 and 0.9 < ratio < 1.1:
                break
            shift -= error
            widen = min(4.0, max(0.25, widen / min(1.5, max(0.67, ratio))))

    def _drafts(self, style: Style) -> list[_Draft]:
        """Return the sections with their sizes, so that pages and pages with files add up."""
        profile = self.profile
        n, most = (6, 6) if profile.pages < _SMALL else (8, 10) if profile.pages < _MEDIUM else (10, 20)
        shares = _edition_shares(len(self.languages))
        drafts, weights = [], []
        per_bearing = profile.targets / (profile.pages * profile.density)
        high = min(0.9, max(0.05, (per_bearing - 1.2) / 12))  # share of the kinds with many files a page
        near = max(0.0, (_NOT_FRONT - profile.depth) / (_NOT_FRONT - _NEAR))  # share of the pages on home pages
        for e, share in enumerate(shares):
            styles = [replace(of, per_page=min(of.per_page, most)) for of in (style.front, *style.sections[:n])]
            raw = []
            for s, of in enumerate(styles):
                kind = KINDS[of.kind]
                weight = 0.5 + uniform(self.draw(SECTION, 100 * e + s))
                if kind.role == "rich":
                    weight *= high if kind.extra > 1 else 1 - high
                raw.append(weight if of.kind != "front" else 0.02)
            for role, part in (("rich", _RICH), ("mixed", _MIXED), ("poor", _POOR)):
                total = sum(w for w, of in zip(raw, styles, strict=True) if KINDS[of.kind].role == role)
                raw = [
                    w * part * share / total if KINDS[of.kind].role == role else w
                    for w, of in zip(raw, styles, strict=True)
                ]
            drafts += [_Draft(edition=e, style=of) for of in styles]
            weights += [w * (1 - near) + near * share * (of.kind == "front") for w, of in zip(raw, styles, strict=True)]
        bearing = min(round(profile.pages * profile.density), profile.targets)
        steps = [int(bearing * x / sum(weights) + 0.5) for x in accumulate(weights, initial=0.0)]
        steps[-1] = bearing
        dense = min(0.92, 2.2 * sqrt(profile.density))
        used = 0
        for draft, end in zip(drafts, steps[1:], strict=True):
            is_front = draft.style.kind == "front"
            most_bearing = _MOST_FRONT if near else _FRONT // 2
            draft.bearing = min(end - used, most_bearing) if is_front else end - used
            used += draft.bearing
            draft.n_leaves = max(3, int(draft.bearing / (dense if draft.role == "rich" else dense / 2)) + 1)
            if is_front:
                draft.n_leaves = max(_FRONT, draft.bearing)
                draft.style = replace(draft.style, per_page=draft.n_leaves)
        self._deepen([draft for draft in drafts if draft.role != "poor"])
        self._fill(drafts, [d for d in drafts if d.role == "poor" and d.style.kind != "front"])
        return drafts

    def _deepen(self, drafts: list[_Draft]) -> None:
        """Give sections as many listing pages as the depth takes, with fewer items on each, down to one."""
        most = int(_IN_CHAINS * self.profile.pages / (2 * len(drafts)))  # a listing page, and its one item
        wanted = max(1, min(most, int(_CHAIN_PER_CLICK * (self.profile.depth - 3))))
        for draft in drafts:
            draft.n_leaves = max(draft.n_leaves, wanted)
            draft.style = replace(draft.style, per_page=max(1, min(draft.style.per_page, draft.n_leaves // wanted)))

    def _fill(self, drafts: list[_Draft], poor: list[_Draft]) -> None:
        """Give the poor sections the pages that are left."""
        fixed = sum(d.n_pages for d in drafts if d not in poor) + len(STATIC) * len(self.languages)
        left = self.profile.pages - fixed
        shares = _edition_shares(len(self.languages))
        weights = [shares[d.edition] * (0.4 + 1.6 * uniform(self.draw(SECTION, 5000 + k))) for k, d in enumerate(poor)]
        for draft, weight in zip(poor, weights, strict=True):
            draft.fit(max(3, int(left * weight / sum(weights))))
            draft.n_leaves = max(draft.n_leaves, draft.bearing, 1)
        rest = left - sum(d.n_pages for d in poor[1:])
        poor[0].fit(max(3, rest))
        poor[0].n_leaves = max(poor[0].n_leaves, poor[0].bearing, 1)

    def _grown(self, drafts: list[_Draft], style: Style, shift: float, spread: float) -> list[Section]:
        """Return the sections with their trees: `shift` clicks deeper than wanted, spread over `spread` clicks."""
        sections: list[Section] = []
        first_leaf = 0
        for number, draft in enumerate(drafts):
            kind, e = KINDS[draft.style.kind], draft.edition
            jitter = uniform(self.draw(SECTION, 9000 + number)) - 0.5
            mean = self.profile.depth - (1 if kind.direct else 2)  # clicks to its listings
            root = int(e > 0) + int(draft.style.kind != "front")
            n, branching = -(-draft.n_leaves // draft.per_page), style.branching
            if draft.role == "poor":
                mean *= 1.1 + jitter * 0.5
            else:
                mean += shift + jitter * 1.5 * spread
                branching = max(branching, min(_MOST_BELOW, n if mean - root < 1.5 else isqrt(n)))
            words = kind.words[self.languages[e]].split()
            folder = f"{self.prefixes[e]}/{words[draft.style.word]}"
            home = (self.prefixes[e] if e else "") or "/"
            tree = grow(
                n,
                root=root,
                mean=mean,
                spread=spread,
                stride=draft.style.stride,
                branching=branching,
                fresh_share=draft.style.fresh_share,
                key=self.draw(CHAIN, number << 24),
            )
            sections.append(
                Section(
                    number=number,
                    edition=e,
                    style=draft.style,
                    root=home if draft.style.kind == "front" else folder,
                    folder=folder,
                    direct=kind.direct,
                    n_leaves=draft.n_leaves,
                    first_leaf=first_leaf,
                    tree=tree,
                )
            )
            first_leaf += draft.n_leaves
        return sections

    def _files(self, drafts: list[_Draft], sections: list[Section]) -> NDArray[np.uint8]:
        """Return the number of files of each leaf: some categories have more of them than others."""
        files = np.zeros(sections[-1].first_leaf + sections[-1].n_leaves, dtype=np.uint8)
        chosen, weights = [], []
        for draft, section in zip(drafts, sections, strict=True):
            tree = section.tree
            favour = 0.3 + 1.7 * draws(self.draw(PICK, section.number << 24), len(tree.starts))
            favour = np.repeat(favour, np.diff(tree.first))
            if not section.direct:
                favour = np.repeat(favour, section.style.per_page if len(favour) > 1 else section.n_leaves)
            keys = draws(self.draw(PICK, (section.number << 24) + 1), section.n_leaves) / favour[: section.n_leaves]
            leaves = np.sort(np.argsort(keys, kind="stable")[: draft.bearing])
            chosen.append(section.first_leaf + leaves)
            weights.append(np.full(len(leaves), KINDS[section.style.kind].extra))
        bearing, weight = np.concatenate(chosen), np.concatenate(weights)
        weight = weight * (0.3 + 2.1 * draws(self.draw(YIELD, 0), len(weight)) ** 2)
        extra = np.zeros(len(bearing), dtype=np.int64)
        while (left := self.profile.targets - len(bearing) - int(extra.sum())) > 0:
            room = extra < MAX_FILES - 1
            steps = np.cumsum(np.where(room, weight, 0.0))
            steps = np.floor(steps * (left / steps[-1])).astype(np.int64)
            steps[np.flatnonzero(room)[-1] :] = left
            extra = np.minimum(extra + np.diff(steps, prepend=0), MAX_FILES - 1)
        files[bearing] = 1 + extra
        return files


def _edition_shares(n: int) -> list[float]:
    return [1.0] if n == 1 else [0.65, *[0.35 / (n - 1)] * (n - 1)]
