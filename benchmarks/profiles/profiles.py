"""Eighteen synthetic sites, each of the proportions of a site on which SB-CLASSIFIER was measured.

Comparing crawlers takes sites that differ: how many pages there are, how many data files, how many of the pages lead
to a file, and how many clicks away these are. The sites of Table 1 of the paper do differ, but they have up to a
million pages and change every day. Here each of them has a *profile* of such numbers, and a generator builds a site to
match, at any scale.

Table 1 of the paper has the number of targets, the percentage of pages with targets, the depth of targets, and whether
a site is multilingual. Pages, targets and other answers of eleven sites are counted in the repository of the released
system (``source="released counts"``); where its targets differ from Table 1 by more than 5 %, those of Table 1 are
used. Pages of the other seven are the available ones of Table 1 that are no targets (``source="Table 1"``). Their other
answers are our assumption, as Table 1 does not count them. Everything else is invented: languages, addresses, markup,
texts, files and their sizes. A result on these sites says nothing about the real ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
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
PAGES_PER_CLICK = 50  # of a scaled profile, for each click of the depth beyond the third, at least


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteProfile:
    """The proportions of a site.

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
    source: Literal["released counts", "Table 1", "assumed"]  # of `pages` and `targets`
    languages: tuple[str, ...] = ("en",)  # of the editions: en, fr, de

    def __post_init__(self) -> None:
        per_page = self.targets / max(1.0, self.pages * self.density)
        checks = (
            (self.pages >= LEAST_PAGES, f"pages={self.pages} is less than {LEAST_PAGES}; have more"),
            (self.other >= 0, f"other={self.other} is negative; 0 is for none"),
            (0 < self.density <= 0.6, f"density={self.density} is not in (0, 0.6]; give a share of the pages"),
            (
                0.95 <= per_page <= 61,  # scaling rounds
                f"targets={self.targets} are {per_page:.2g} for each page with any; have 1 to 60, by another density",
            ),
            (2.5 <= self.depth <= 100, f"depth={self.depth} is not in [2.5, 100]; give a mean number of clicks"),
            (
                0 < self.depth_spread <= 100,
                f"depth_spread={self.depth_spread} is not in (0, 100]; give a number of clicks",
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

        `density` stays. So do `depth` and `depth_spread`, if there are 50 pages for each click of the depth beyond the
        third. Otherwise both shrink alike: files that are 87 clicks away in the mean take 4,200 pages.

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
        depth = min(self.depth, 3 + pages / PAGES_PER_CLICK)
        return replace(
            self,
            pages=pages,
            targets=round(self.targets * factor),
            other=max(min(1, self.other), round(self.other * factor)),
            depth=depth,
            depth_spread=self.depth_spread * depth / self.depth,
        )


def _profile(
    name: str,
    host: str,
    counts: tuple[int, int, int],
    proportions: tuple[float, float, float],
    *languages: str,
    source: Literal["released counts", "Table 1"] = "released counts",
) -> SiteProfile:
    pages, targets, other = counts
    percent, depth, spread = proportions
    return SiteProfile(
        name=name,
        url=f"https://{host}/",
        pages=pages,
        targets=targets,
        other=other,
        density=percent / 100,
        depth=depth,
        depth_spread=spread,
        source=source,
        languages=languages or ("en",),
    )


#: The sites of Table 1 of the paper by short names: HTML pages, targets, neither; then the percentage of the pages that
#: link to a target, and mean and standard deviation of the depth of targets.
PROFILES: Final[dict[str, SiteProfile]] = {
    profile.name: profile
    for profile in (
        _profile("abs", "www.abs.gov.au", (689_000, 263_260, 5_000), (8.86, 8.94, 2.56), source="Table 1"),
        _profile(
            "assemblee",
            "www.assemblee-nationale.fr",
            (793_480, 155_940, 5_000),
            (4.34, 5.84, 1.07),
            "fr",
            source="Table 1",
        ),
        _profile("bea", "www.bea.gov", (13_391, 16_053, 2_826), (32.19, 5.73, 3.21)),
        _profile("census", "www.census.gov", (730_690, 257_680, 10_000), (3.47, 4.23, 0.48), source="Table 1"),
        _profile("cnis", "www.cnis.fr", (5_278, 7_498, 13), (13.87, 4.26, 1.59), "fr"),
        _profile(
            "collectivites_locales", "www.collectivites-locales.gouv.fr", (1_678, 3_693, 444), (5.4, 2.8, 0.82), "fr"
        ),
        _profile("education", "www.education.gouv.fr", (88_520, 10_355, 9_990), (3.95, 11.89, 13.22), "fr"),
        _profile(
            "ilo", "www.ilo.org", (909_700, 81_010, 10_000), (2.53, 4.26, 1.28), "en", "fr", "de", source="Table 1"
        ),
        _profile("insee", "www.insee.fr", (118_914, 169_770, 2_590), (41.34, 5.2, 1.81), "fr", "en"),
        _profile("interieur", "www.interieur.gouv.fr", (883_870, 22_980, 94_259), (1.54, 66.94, 39.43), "fr"),
        _profile("justice", "www.justice.gouv.fr", (40_810, 14_845, 1_449), (4.85, 86.91, 86.3), "fr"),
        _profile("nces", "nces.ed.gov", (221_839, 83_018, 2_133), (18.87, 3.63, 1.66)),
        _profile("oecd", "www.oecd.org", (161_167, 43_183, 6_735), (15.61, 6.28, 5.65), "en", "fr"),
        _profile("okfn", "okfn.org", (397_039, 12_727, 13_006), (0.74, 2.64, 2.89), "en", "de"),
        _profile("psa_qa", "www.psa.gov.qa", (1_342, 2_434, 1_567), (4.15, 3.03, 0.61), "en", "fr"),
        _profile(
            "soumu", "www.soumu.go.jp", (665_040, 328_830, 6_000), (6.3, 5.18, 1.29), "en", "de", source="Table 1"
        ),
        _profile("who", "www.who.int", (296_270, 55_590, 6_000), (14.19, 4.43, 0.62), "en", "fr", source="Table 1"),
        _profile(
            "worldbank", "www.worldbank.org", (200_570, 23_100, 5_000), (2.38, 4.52, 0.69), "en", "fr", source="Table 1"
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
    '0.05 of the pages have targets, 43.8 clicks away'
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
