"""A statistics portal that is generated page by page: a site to crawl when no real one may be.

A demonstration site should be large enough to defeat breadth-first search and small enough to ship. Both hold because
a page is a function of (seed, path) and nothing else: a million pages take no more memory than two hundred.

It has the obstacles that a focused crawler meets on the portals of statistics offices: data behind paginated
catalogues (about 11 % of the pages link to a data file, and there are about 30 data files per 100 pages), a lot of
news that leads to more news, tables without a file, three languages, downloads without an extension or behind a
redirect, broken links, and a release calendar that never ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from scrapy_focus.lab.sites.portal import files
from scrapy_focus.lab.sites.portal.html import Pages, days_in
from scrapy_focus.lab.sites.portal.plan import (
    LARGEST,
    SECTION_OF_ITEM,
    SECTIONS,
    SERIES_PER_PAGE,
    SMALLEST,
    STATIC,
    DataFile,
    Plan,
)
from scrapy_focus.lab.sites.portal.words import LANGUAGES, PREFIXES, SLUGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

HTML: Final = "text/html"
TARGET_MIMES: Final = frozenset(files.MIME.values())

_ROBOTS: Final = "User-agent: *\n" + "".join(f"Disallow: {prefix}/private/\n" for prefix in PREFIXES)
_ASSETS: Final = {
    "site.css": ("text/css", b"body{font:16px/1.5 sans-serif;margin:0 auto;max-width:70em}\n"),
    "site.js": ("text/javascript", b"document.documentElement.classList.add('js');\n"),
    "logo.png": ("image/png", b"\x89PNG\r\n\x1a\n" + bytes(40)),
    "favicon.ico": ("image/x-icon", b"\x00\x00\x01\x00" + bytes(40)),
}
_MOVED: Final = {"index.html": "", "index.php": "", "home": "", "catalogue": "/data", "statistics": "/indicators"}
_NUMBER = re.compile(r"-(\d{1,12})$", re.ASCII)
_MEDIA = re.compile(r"([a-z]{2})-(\d{1,12})\.(?:jpg|mp4)", re.ASCII)
_DATE = re.compile(r"([1-9]\d{0,11})-(0[1-9]|1[0-2])(?:-(\d\d))?", re.ASCII)
_TODAY: Final = (2024, 6)
_FIRST, _MONTH = 1_717_200_000, 30 * 86_400  # 1 June 2024, and a month, in seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """An answer of a site; the body is made each time that it is read."""

    status: int
    mime: str  # media type, without parameters
    size: int  # bytes of the body
    location: str | None = None  # target of a redirect, absolute or relative to the requested path
    etag: str = ""  # identifies this content, without quotes; "": unknown
    modified: float = 0.0  # time of the last change, in seconds since 1970; 0: unknown
    headers: Mapping[str, str] = field(default_factory=dict, compare=False)  # further ones
    make: Callable[[], bytes] = field(repr=False, compare=False)

    @classmethod
    def of(
        cls, body: bytes, *, status: int = 200, mime: str = HTML, location: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Page:  # fmt: skip
        """Return an answer with a given body."""
        rest = dict(headers or {})
        return cls(status=status, mime=mime, size=len(body), location=location, headers=rest, make=lambda: body)

    @property
    def body(self) -> bytes:
        """The body, `size` bytes."""
        return self.make()


class StatisticsPortal:
    """A synthetic portal of a statistics office, and the truth about its data files.

    About 11 % of the pages link to a target, and there are about 30 targets per 100 pages; portals of a few hundred
    pages scatter more (24 to 36). Everything counted is reachable by links from ``/``. Not counted in `pages`: the
    calendar, which is infinite, and ``/private/``, which robots.txt forbids and which leads nowhere.

    A *target* is an address that answers 200 with one of the media types in `TARGET_MIMES`. For a download behind a
    redirect, the target is the final address. A mirror (the same bytes under a second address) is a separate target,
    because the two cannot be distinguished before both are fetched. Images and films are not targets.

    Parameters
    ----------
    pages : int
        Number of HTML pages, met within 3 %: 200 to 1,000,000.
    seed : int
        Portals with the same parameters are the same to the byte, on every machine.
    endless : bool
        Whether the calendar is endless, as on real portals; if not, it has one year, and an exhaustive crawl ends.
    months : int
        Age of the portal in months. In each month, about a tenth of the files change in place, and about a tenth as
        many are new: on new data sets and publications, at the head of their listings, and on existing data sets.

    Raises
    ------
    ValueError
        If `pages` is out of range.

    Examples
    --------
    >>> site = StatisticsPortal(pages=2000, seed=0)
    >>> site.n_pages, site.n_targets
    (2016, 595)
    >>> site.fetch("/data").status, site.fetch("/data?page=1000").status
    (200, 404)
    >>> site.is_target(next(site.targets()))
    True
    """

    def __init__(self, *, pages: int = 2000, seed: int = 0, endless: bool = True, months: int = 0) -> None:
        if not SMALLEST <= pages <= LARGEST:
            raise ValueError(
                f"a portal has {SMALLEST:,} to {LARGEST:,} pages, but pages={pages!r} was given; "
                "choose a number in that range (2000 is a good start)"
            )
        if months < 0:
            raise ValueError(f"a portal has a future and no past, but months={months!r} was given; choose 0 or more")
        self.pages = pages
        self.seed = seed
        self.endless = endless
        self.months = months
        self._plan = Plan(pages=pages, seed=seed, months=months)
        self._html = Pages(self._plan)

    def __repr__(self) -> str:
        endless = "" if self.endless else ", endless=False"
        months = f", months={self.months}" if self.months else ""
        return f"StatisticsPortal(pages={self.pages}, seed={self.seed}{endless}{months})"

    @property
    def n_pages(self) -> int:
        """Exact number of HTML pages, as listed by `html_paths`."""
        return self._plan.n_pages

    @cached_property
    def n_targets(self) -> int:
        """Exact number of targets; O(targets) the first time, about a second for 1,000,000 pages."""
        return sum(1 for _ in self._target_keys())

    def targets(self) -> Iterator[str]:
        """Yield the address of every target once; O(1) memory, about 12 microseconds each."""
        for e, source, owner, f in self._target_keys():
            yield self._plan.file(e, source, owner, f).url

    def html_paths(self) -> Iterator[str]:
        """Yield the address of every counted HTML page once; O(1) memory, about 3 microseconds each."""
        plan = self._plan
        for e, prefix in enumerate(PREFIXES):
            yield prefix or "/"
            yield from (f"{prefix}/{name}" for name in STATIC)
            for name in SECTIONS:
                yield from _paged(f"{prefix}/{name}", plan.n_listings(e, name))
                yield from (plan.path(e, name, i) for i in range(plan.n_items(e, name)))
            for tag in range(plan.n_tags(e)):
                yield from _paged(plan.tag_path(e, tag), _n_tag_pages(plan, e, tag))
            yield from _paged(f"{prefix}/archive", _n_archive_pages(plan, e))
            for series in range(plan.n_series(e)):
                path = plan.series_path(e, series)
                yield path
                yield from (f"{path}/{year}" for year, _ in plan.years_of(e, series))

    def is_target(self, path: str) -> bool:
        """Return whether `path` is the address of a data file; a redirect to one is not."""
        page = self.fetch(path)
        return page.status == 200 and page.mime in TARGET_MIMES

    def fetch(self, path: str) -> Page:
        """Return the answer to a request for `path`, which may have a query: status 200, 301, 302 or 404.

        O(1) but for the links on the page: about 0.1 ms. A data file costs microseconds until its body is read.
        """
        path = path.partition("#")[0]
        bare, _, query = path.partition("?")
        if "//" in bare:
            return self._missing(0)
        if len(bare) > 1 and bare.endswith("/") and not bare.endswith("/private/"):
            return _redirect(bare.removesuffix("/"))
        if query == "page=0":
            return _redirect(bare)
        e = _edition_of(bare)
        if e is None:
            return self._missing(0)
        parts = bare.removeprefix(PREFIXES[e]).split("/")[1:]
        answer: Page | str | None = self._file(e, path, parts, query) or self._listing(e, parts, _page_number(query))
        if answer is None and not query:
            answer = self._single(e, path, parts)
        if answer is None:
            return self._missing(e)
        return Page.of(answer.encode()) if isinstance(answer, str) else answer

    def _listing(self, e: int, parts: list[str], k: int) -> str | None:
        html = self._html
        match parts:
            case [name] if name in SECTIONS:
                if 0 <= k < self._plan.n_listings(e, name):
                    return html.listing(e, name, k)
                return None
            case ["tag", word] if word in SLUGS[e]:
                tag = SLUGS[e].index(word)
                n = _n_tag_pages(self._plan, e, tag) if tag < self._plan.n_tags(e) else 0
                return html.tag(e, tag, k) if 0 <= k < n else None
            case ["archive"]:
                if 0 <= k < _n_archive_pages(self._plan, e):
                    return html.archive(e, k)
                return None
        return None

    def _single(self, e: int, path: str, parts: list[str]) -> Page | str | None:
        html = self._html
        match parts:
            case [] | [""]:
                return html.home(e)
            case [name] if name in STATIC:
                return html.static(e, name)
            case [name] if name in _MOVED:
                return _redirect((PREFIXES[e] + _MOVED[name]) or "/")
            case ["archive", name, *_]:
                return self._archive(e, path, name)
            case ["calendar"]:
                return html.month(e, *_TODAY)
            case ["calendar", date]:
                return self._calendar(e, date)
            case ["private", name] if name in ("", "login") or name.startswith("microdata-"):
                return html.private(e)
            case [name, *_, last] if name in SECTION_OF_ITEM:
                return self._item(e, path, SECTION_OF_ITEM[name], last)
        return None

    def _item(self, e: int, path: str, section: str, last: str) -> str | None:
        number = _NUMBER.search(last)
        if number is None:
            return None
        i = int(number[1])
        exists = i < self._plan.n_items(e, section) and self._plan.path(e, section, i) == path
        return self._html.item(e, section, i) if exists else None

    def _archive(self, e: int, path: str, name: str) -> str | None:
        number = _NUMBER.search(name)
        series = int(number[1]) if number else -1
        if not 0 <= series < self._plan.n_series(e):
            return None
        base = self._plan.series_path(e, series)
        if path == base:
            return self._html.series(e, series)
        for year, a in self._plan.years_of(e, series):
            if path == f"{base}/{year}":
                return self._html.archive_year(e, series, year, a)
        return None

    def _calendar(self, e: int, date: str) -> str | None:
        found = _DATE.fullmatch(date)
        if found is None:
            return None
        year, month, day = int(found[1]), int(found[2]), int(found[3] or 0)
        if not self.endless and year != _TODAY[0]:
            return None
        if found[3] is None:
            return self._html.month(e, year, month)
        if 1 <= day <= days_in(year, month):
            return self._html.day(e, year, month, day)
        return None

    def _file(self, e: int, path: str, parts: list[str], query: str) -> Page | None:
        """Return the answer for anything that is not HTML, and for short addresses."""
        if e > 0 and parts[:1] != ["archive"]:
            return None  # files are numbered across the editions; only bulletins are below the prefix of theirs
        match parts:
            case ["media", ("images" | "films") as kind, name]:
                if query:
                    return None
                return self._media(kind, name)
            case ["node", number] if _is_number(number) and not query:
                return self._node(int(number))
            case ["assets", name] if name in _ASSETS:
                return Page.of(_ASSETS[name][1], mime=_ASSETS[name][0])
            case ["robots.txt"]:
                return Page.of(_ROBOTS.encode(), mime="text/plain")
        return self._download(path, parts, query)

    def _download(self, path: str, parts: list[str], query: str) -> Page | None:
        """Return the data file at an address, or a redirect to its place."""
        file = self._data_file(path, parts, query)
        if file is None or file.dead:
            return None
        if path == file.url:
            return _send(file)
        return _redirect(file.url, status=302) if path == file.link else None

    def _node(self, number: int) -> Page | None:
        target = self._plan.path_of_node(number)
        return _redirect(target) if target else None

    def _data_file(self, path: str, parts: list[str], query: str) -> DataFile | None:
        """Return the file at an address, or the one that it redirects to."""
        match parts:
            case ["files" | "archive", _, _] | ["media", _, _] if parts[1] not in ("images", "films"):
                return self._plan.file_at(path)
            case ["download", number] | ["node", number, "file"] if _is_number(number):
                return self._plan.file_of_number(int(number))
            case ["download"] if query.startswith("id=") and _is_number(query[3:]):
                return self._plan.file_of_number(int(query[3:]))
        return None

    def _media(self, kind: str, name: str) -> Page | None:
        found = _MEDIA.fullmatch(name)
        if found is None or found[1] not in LANGUAGES or name.endswith(".mp4") != (kind == "films"):
            return None
        e, i = LANGUAGES.index(found[1]), int(found[2])
        if i >= self._plan.n_items(e, "news"):
            return None
        seed = self._plan.draw(1 << 60, f"{kind}/{e}/{i}")
        if kind == "films":
            size = 300_000 + seed % 2_000_000
            return Page(status=200, mime="video/mp4", size=size, make=lambda: files.film(size, seed))
        size = 2_000 + seed % 60_000
        return Page(status=200, mime="image/jpeg", size=size, make=lambda: files.picture(size, seed))

    def _missing(self, e: int) -> Page:
        return Page.of(self._html.missing(e).encode(), status=404)

    def _target_keys(self) -> Iterator[tuple[int, str, int, int]]:
        plan = self._plan
        for e in range(len(LANGUAGES)):
            for source, owners in (
                ("data", plan.n_items(e, "data")),
                ("copy", plan.n_items(e, "data")),
                ("publications", plan.n_items(e, "publications")),
                ("archive", plan.archive_years[e]),
                ("news", plan.n_items(e, "news")),
            ):
                for owner in range(owners):
                    for f in range(plan.n_files(e, source, owner)):
                        if not plan.is_dead(e, source, f, owner):
                            yield e, source, owner, f


def _send(file: DataFile) -> Page:
    return Page(
        status=200,
        mime=files.MIME[file.extension],
        size=file.size,
        etag=f"{file.seed:x}-{file.n_records}",
        modified=_FIRST + file.changed * _MONTH,
        make=lambda: files.build(file.extension, file.n_records, file.seed),
    )


def _edition_of(path: str) -> int | None:
    """Return the number of the edition that a path is in; ``None`` if it is in none."""
    for e in range(len(LANGUAGES) - 1, -1, -1):  # the first edition, whose prefix may be "", comes last
        if path == PREFIXES[e] or path.startswith(f"{PREFIXES[e]}/"):
            return e
    return None


def _redirect(location: str, status: int = 301) -> Page:
    body = f'<!DOCTYPE html><title>Moved</title><p>Moved to <a href="{location}">{location}</a>.</p>\n'
    return Page.of(body.encode(), status=status, location=location)


def _page_number(query: str) -> int:
    """Return the page number in a query: 0 without a query, -1 for any unknown query."""
    if not query:
        return 0
    number = query.removeprefix("page=")
    if number != query and _is_number(number):
        return int(number)
    return -1


def _is_number(text: str) -> bool:
    """Return whether `text` is a number as the site writes it, which keeps an address from having variants."""
    return text.isascii() and text.isdigit() and len(text) <= 12 and (text == "0" or text[0] != "0")


def _paged(base: str, n: int) -> Iterator[str]:
    return (f"{base}?page={k}" if k else base for k in range(n))


def _n_tag_pages(plan: Plan, e: int, tag: int) -> int:
    return -(-plan.n_tagged(e, tag) // SECTIONS["news"].per_page)


def _n_archive_pages(plan: Plan, e: int) -> int:
    return -(-plan.n_series(e) // SERIES_PER_PAGE)
