"""Eighteen made-up sites, each of the proportions of a site on which SB-CLASSIFIER was measured.

Comparing crawlers takes sites that differ: how many pages there are, how many data files, how many of the pages lead
to a file, and how many clicks away these are. The sites of Table 1 of the paper do differ, but they have up to a
million pages and change every day. Here each of them has a *profile* of such numbers, and a generator builds a site to
match, at any scale.

What is known and what is not: the numbers of pages, targets and other answers of eleven sites are those published in
the repository of the released system (``source="released counts"``). Those of the other seven could not be read and
are our assumptions (``source="assumed"``). The share of pages with targets and the depth of targets could not be read
for any of the eighteen: **all of these are our assumptions**. Nothing else is taken from the real sites: addresses,
markup, texts and files are made up. A result on these sites says nothing about the real ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from math import sqrt
from typing import TYPE_CHECKING, Final, Literal

from profiles.files import content, noise
from profiles.html import Pages
from profiles.paths import Paths
from profiles.plan import STATIC, Plan
from profiles.style import EXTENSIONS, style_of
from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.lab.sites.portal.words import LANGUAGES
from scrapy_focus.web.mime import FILE_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from profiles.paths import DataFile

LEAST_PAGES, LEAST_TARGETS = 200, 20  # of a scaled profile


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteProfile:
    """The proportions of a site; `density`, `depth` and `depth_spread` of the profiles here are assumptions of ours.

    Raises
    ------
    ValueError
        If no site can have these proportions, or not one that is built here.
    """

    name: str
    url: str  # home page of the real site, which is never asked for anything
    pages: int  # HTML pages
    targets: int  # data files
    other: int  # answers that are neither: dead links, pictures, other types
    density: float  # share of the HTML pages that link to a target
    depth: float  # mean number of clicks from the home page to a target
    depth_spread: float  # standard deviation of the same
    source: Literal["released counts", "assumed"]  # of `pages`, `targets` and `other`
    languages: tuple[str, ...] = ("en",)  # of the editions: en, fr, de; assumed

    def __post_init__(self) -> None:
        per_page = self.targets / max(1.0, self.pages * self.density)
        checks = (
            (self.pages >= LEAST_PAGES, f"pages={self.pages} is less than {LEAST_PAGES}; have more"),
            (self.other >= 0, f"other={self.other} is negative; 0 is for none"),
            (0 < self.density <= 0.6, f"density={self.density} is not in (0, 0.6]; give a share of the pages"),
            (
                0.95 <= per_page <= 31,  # scaling rounds
                f"targets={self.targets} are {per_page:.2g} for each page with any; have 1 to 30, by another density",
            ),
            (3 <= self.depth <= 30, f"depth={self.depth} is not in [3, 30]; give a mean number of clicks"),
            (
                0 < self.depth_spread <= 15,
                f"depth_spread={self.depth_spread} is not in (0, 15]; give a number of clicks",
            ),
            (
                len(self.languages) > 0 and set(self.languages) <= set(LANGUAGES),
                f"languages={self.languages} must be one or more of {LANGUAGES}",
            ),
        )
        for good, message in checks:
            if not good:
                raise ValueError(f"profile {self.name!r}: {message}")

    def scaled(self, factor: float) -> SiteProfile:
        """Return the same proportions with all counts times `factor`, but at least 200 pages and 20 targets.

        `density` stays. `depth` stays too, unless so few pages have targets that their listings cannot be that deep.

        Raises
        ------
        ValueError
            If `factor` is not in (0, 1].
        """
        if not 0 < factor <= 1:
            raise ValueError(
                f"a profile is scaled down, by a factor in (0, 1], but factor={factor!r} was given; 0.05 is a good start"
            )
        factor = min(1.0, max(factor, LEAST_PAGES / self.pages, LEAST_TARGETS / self.targets))
        pages = round(self.pages * factor)
        deepest = 3.2 + pages * self.density / (70 * min(0.92, 2.2 * sqrt(self.density)))
        return replace(
            self,
            pages=pages,
            targets=round(self.targets * factor),
            other=max(min(1, self.other), round(self.other * factor)),
            depth=min(self.depth, deepest),
        )


def _profile(
    name: str,
    url: str,
    counts: tuple[int, int, int],
    assumed: tuple[float, float, float],
    *languages: str,
    source: Literal["released counts", "assumed"] = "released counts",
) -> SiteProfile:
    pages, targets, other = counts
    density, depth, spread = assumed
    return SiteProfile(
        name=name,
        url=url,
        pages=pages,
        targets=targets,
        other=other,
        density=density,
        depth=depth,
        depth_spread=spread,
        source=source,
        languages=languages or ("en",),
    )


#: The sites of Table 1 of the paper by short names: HTML pages, targets, neither; then, assumed: density, depth, spread.
PROFILES: Final[dict[str, SiteProfile]] = {
    profile.name: profile
    for profile in (
        _profile("abs", "https://www.abs.gov.au/", (690_000, 260_000, 5_000), (0.06, 6.0, 2.0), source="assumed"),
        _profile(
            "assemblee",
            "https://www.assemblee-nationale.fr/",
            (790_000, 155_000, 5_000),
            (0.13, 6.5, 2.5),
            "fr",
            source="assumed",
        ),
        _profile("bea", "https://www.bea.gov/", (13_391, 16_053, 2_826), (0.12, 5.0, 1.4)),
        _profile("census", "https://www.census.gov/", (730_000, 257_000, 10_000), (0.08, 6.5, 1.6), source="assumed"),
        _profile("cnis", "https://www.cnis.fr/", (5_278, 7_498, 13), (0.50, 4.4, 0.8), "fr"),
        _profile(
            "collectivites_locales",
            "https://www.collectivites-locales.gouv.fr/",
            (1_678, 3_693, 444),
            (0.45, 4.0, 1.0),
            "fr",
        ),
        _profile("education", "https://www.education.gouv.fr/", (88_520, 10_355, 9_990), (0.07, 6.0, 2.0), "fr"),
        _profile(
            "ilo",
            "https://www.ilo.org/",
            (900_000, 80_000, 10_000),
            (0.035, 6.0, 2.5),
            "en",
            "fr",
            "de",
            source="assumed",
        ),
        _profile("insee", "https://www.insee.fr/", (118_914, 169_770, 2_590), (0.25, 5.8, 1.2), "fr", "en"),
        _profile("interieur", "https://www.interieur.gouv.fr/", (883_870, 24_687, 94_259), (0.012, 8.0, 4.0), "fr"),
        _profile("justice", "https://www.justice.gouv.fr/", (40_810, 14_845, 1_449), (0.18, 5.2, 1.2), "fr"),
        _profile("nces", "https://nces.ed.gov/", (221_839, 83_018, 2_133), (0.15, 5.8, 1.6)),
        _profile("oecd", "https://www.oecd.org/", (161_167, 43_183, 6_735), (0.10, 6.0, 2.0), "en", "fr"),
        _profile("okfn", "https://okfn.org/", (397_039, 12_727, 13_006), (0.008, 7.0, 3.0), "en", "de"),
        _profile("psa_qa", "https://www.psa.gov.qa/", (1_342, 2_434, 1_567), (0.55, 4.2, 0.9)),
        _profile("soumu", "https://www.soumu.go.jp/", (660_000, 328_000, 6_000), (0.20, 6.5, 2.0), source="assumed"),
        _profile(
            "who", "https://www.who.int/", (290_000, 55_000, 6_000), (0.14, 6.0, 1.5), "en", "fr", source="assumed"
        ),
        _profile(
            "worldbank",
            "https://www.worldbank.org/",
            (195_000, 27_000, 5_000),
            (0.045, 5.5, 2.0),
            "en",
            "fr",
            source="assumed",
        ),
    )
}
#: Media types of the data files.
TARGET_MIMES: Final = frozenset(FILE_TYPES[name][0] for names in EXTENSIONS for name in names)


class ProfileSite:
    """A made-up site of the proportions of a profile, and the truth about its data files.

    Everything counted is reachable by links from ``/``, and there are no infinite spaces. A *target* is an address that
    answers 200 with a data file; of a download behind a redirect, it is the address that the redirect leads to. A
    redirect is not a click. Which sections there are, the markup and the patterns of the addresses depend on the name
    of the profile only; the rest on the scale and the seed too.

    Parameters
    ----------
    profile : SiteProfile
        One of `PROFILES`, or another.
    scale : float
        What to multiply the counts by, in (0, 1], see `SiteProfile.scaled`.
    seed : int
        Sites with the same profile, scale and seed are the same to the byte, on every machine.

    Attributes
    ----------
    profile : SiteProfile
        The profile that was built: the scaled one.

    Examples
    --------
    >>> site = ProfileSite(PROFILES["justice"], scale=0.05)
    >>> site.n_pages, site.n_targets, site.n_other
    (2040, 742, 72)
    >>> f"{site.density:.2f} of the pages have targets, {site.depth:.1f} clicks away"
    '0.18 of the pages have targets, 5.2 clicks away'
    """

    def __init__(self, profile: SiteProfile, *, scale: float = 1.0, seed: int = 0) -> None:
        self.profile = profile.scaled(scale)
        self.scale = scale
        self.seed = seed
        style = style_of(profile.name)
        self._plan = Plan(self.profile, style, seed)
        self._paths = Paths(self._plan, style)
        self._html = Pages(self._paths)

    def __repr__(self) -> str:
        return f"ProfileSite(PROFILES[{self.profile.name!r}], scale={self.scale}, seed={self.seed})"

    @property
    def n_pages(self) -> int:
        """Exact number of HTML pages, as listed by `html_paths`."""
        return self._plan.n_pages

    @property
    def n_targets(self) -> int:
        """Exact number of targets."""
        return self._plan.n_targets

    @property
    def n_other(self) -> int:
        """Exact number of addresses that are linked and are neither: dead links, pictures, films, calendar entries."""
        return self.profile.other

    @cached_property
    def n_redirects(self) -> int:
        """Exact number of addresses that are linked and redirect; counted in none of the other numbers."""
        return self._paths.n_redirects()

    @property
    def density(self) -> float:
        """Share of the HTML pages that link to a target."""
        return self._plan.n_bearing / self.n_pages

    @property
    def depth(self) -> float:
        """Mean number of clicks to a target, along shortest paths."""
        return self._plan.depth

    @property
    def depth_spread(self) -> float:
        """Standard deviation of the number of clicks to a target."""
        return self._plan.depth_spread

    def targets(self) -> Iterator[str]:
        """Yield the address of every target once; O(1) memory, about 5 microseconds each."""
        for leaf in self._plan.bearing():
            yield from (file.url for file in self._paths.files(leaf))

    def html_paths(self) -> Iterator[str]:
        """Yield the address of every HTML page once; O(1) memory, about 3 microseconds each."""
        paths = self._paths
        for e in range(len(self._plan.prefixes)):
            yield from (paths.static_path(e, k) for k in range(len(STATIC)))
        for section in self._plan.sections:
            yield from (paths.listing_path(section, n) for n in range(section.tree.n_listings))
            if not section.direct:
                yield from (paths.item_path(section, i) for i in range(section.n_leaves))

    def is_target(self, path: str) -> bool:
        """Return whether `path` is the address of a data file; a redirect to one is not."""
        path = path.partition("#")[0]
        file = self._paths.file_at(path)
        return file is not None and file.url == path

    def fetch(self, path: str) -> Page:
        """Return the answer to a request for `path`, which may have a query: status 200, 301, 302 or 404.

        O(1) but for the links on the page: about 0.1 ms. A file costs microseconds until its body is read.
        """
        path, paths = path.partition("#")[0], self._paths
        if file := paths.file_at(path):
            return _send(file) if path == file.url else _redirect(file.url, 302)
        if media := paths.media_at(path):
            return _send_media(*media)
        if location := paths.moved_to(path):
            return _redirect(location, 301)
        if listing := paths.listing_at(path):
            return Page.of(self._html.listing(*listing).encode())
        if item := paths.item_at(path):
            return Page.of(self._html.item(*item).encode())
        if static := paths.static_at(path):
            return Page.of(self._html.static(*static).encode())
        return Page.of(self._html.missing().encode(), status=404)


def _send_media(number: int, mime: str) -> Page:
    size = 2_000 + number * 7_919 % 60_000
    return Page(status=200, mime=mime, size=size, make=lambda: noise(size, number))


def _send(file: DataFile) -> Page:
    return Page(
        status=200,
        mime=file.mime,
        size=file.size,
        make=lambda: content(file.extension, file.size, file.number),
    )


def _redirect(location: str, status: int) -> Page:
    href = escape(location)
    return Page.of(
        f'<!DOCTYPE html><title>Moved</title><a href="{href}">{href}</a>\n'.encode(), status=status, location=location
    )
