"""Where everything is on the synthetic portal: how many items there are, and the address of each (internal).

Nothing is stored per item. An item is (edition, section, i); its address ends in ``-<i>``, so that an address is
checked by computing the one that item i ought to have.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from scrapy_focus.lab.sites.portal import files
from scrapy_focus.lab.sites.portal.words import LANGUAGES, N_NOUNS, NOUNS, PREFIXES, SENTENCES, SLUGS

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALLEST, LARGEST = 200, 1_000_000  # pages

_EDITION_SHARES: Final = (0.60, 0.25, 0.15)  # of the items; the first k items of an edition are the translated ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A paginated listing and the items that it leads to."""

    item: str  # first segment of the address of an item
    per_page: int
    share: float  # of all pages; news takes what is left


SECTIONS: Final = {
    "news": Section(item="news", per_page=10, share=0.0),
    "data": Section(item="dataset", per_page=10, share=0.065),
    "publications": Section(item="publication", per_page=10, share=0.042),
    "indicators": Section(item="indicator", per_page=20, share=0.22),
    "topics": Section(item="topic", per_page=12, share=0.008),
    "glossary": Section(item="glossary", per_page=25, share=0.05),
}
SECTION_OF_ITEM: Final = {section.item: name for name, section in SECTIONS.items()}
STATIC: Final = ("about", "contact", "legal")
ARCHIVE_SHARE: Final = 0.0025  # of all pages are archive years
YEARS, SERIES_PER_PAGE, BULLETINS = 10, 20, 24  # years per series of bulletins; series per listing; files per year
LAST_ARCHIVED, THIS_YEAR = 2009, 2024

_SOURCES: Final = ("data", "publications", "archive", "news", "copy")
_MAX_FILES: Final = 40  # per page
_FILES_PER_DATASET: Final = (1, 2, 2, 3, 4, 6)
_EXTENSIONS: Final = ("csv",) * 7 + ("xlsx",) * 5 + ("ods",) * 2 + ("json",) * 2 + ("zip",) * 2 + ("pdf",) * 2
_NEW: Final = {"data": 0.08, "publications": 0.1, "news": 0.02}  # of the items of an edition, each month
_GROWS, _CHANGES = 10, 10  # one data set in so many gets another file each month, and one file in so many changes
_FORMS: Final = ("plain",) * 9 + ("upper",) * 2 + ("node",) * 3 + ("query",) * 2 + ("redirect",) * 4
_NUMBERED = re.compile(r"-(\d{1,12})(?:\.[A-Za-z]{1,4})?$", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A data file and its two addresses, which differ when the download is a redirect."""

    link: str  # what pages link to
    url: str  # where the file is in the end
    title: str
    extension: str
    n_records: int
    seed: int  # of the content; a mirror has the seed of its original
    dead: bool  # linked, yet answered with 404
    changed: int  # month of the last change of its content, 0 for never

    @property
    def size(self) -> int:
        """Length in bytes."""
        return files.size_of(self.extension, self.n_records)


class Plan:
    """The arithmetic of one portal; every method is O(1) unless it returns an iterator.

    Parameters
    ----------
    pages : int
        Wished number of HTML pages; `n_pages` is the exact one.
    seed : int
        Two plans with the same `pages` and `seed` are equal.
    months : int
        Portal age in months: items are added, and files are added and changed.
    """

    def __init__(self, *, pages: int, seed: int, months: int = 0) -> None:
        self.pages = pages
        self.seed = seed
        self.months = months
        self.added = [dict.fromkeys(SECTIONS, 0) for _ in LANGUAGES]
        self._salt = f"{seed}/{pages}/"
        self.counts = [{name: self._share(s.share, e) for name, s in SECTIONS.items()} for e in range(len(LANGUAGES))]
        self.archive_years = [self._share(ARCHIVE_SHARE, e, least=int(e == 0)) for e in range(len(LANGUAGES))]
        self.bulletins = BULLETINS if pages >= 1_000 else BULLETINS // 2
        for counts in self.counts:
            counts["news"] = 0
        left = pages - sum(self.pages_of_edition(e) for e in range(len(LANGUAGES)))
        for e, counts in enumerate(self.counts):
            # An item of news costs 1.2 pages: its own, a tenth of a listing, a tenth of a tag's listing.
            counts["news"] = max(10, int(left * _EDITION_SHARES[e] / 1.2))
        for added, counts in zip(self.added, self.counts, strict=True):
            added.update({name: months * math.ceil(share * counts[name]) for name, share in _NEW.items()})
        self.n_pages = sum(self.pages_of_edition(e) for e in range(len(LANGUAGES)))

    def draw(self, n: int, key: str) -> int:
        """Return a whole number in [0, n) that depends on the seed and on `key` only."""
        return int.from_bytes(blake2b((self._salt + key).encode(), digest_size=8).digest(), "big") % n

    # --- counts

    def n_listings(self, e: int, section: str) -> int:
        """Return the number of listing pages of a section."""
        return _ceil(self.n_items(e, section), SECTIONS[section].per_page)

    def n_items(self, e: int, section: str) -> int:
        """Return the number of items of a section; the last ones are those that were added since the first month."""
        return self.counts[e][section] + self.added[e][section]

    def listed(self, e: int, section: str, start: int, stop: int) -> list[int]:
        """Return the items from one place of a section to another: added ones are at its head."""
        first, n = self.counts[e][section], self.n_items(e, section)
        return [n - 1 - place if place < n - first else place - (n - first) for place in range(start, min(stop, n))]

    def n_tags(self, e: int) -> int:
        """Return the number of keywords in use."""
        return min(N_NOUNS, max(2, self.counts[e]["news"] // 25))

    def n_tagged(self, e: int, tag: int) -> int:
        """Return the number of news under a keyword: items `tag`, ``tag + n_tags``, ``tag + 2 * n_tags``..."""
        return len(range(tag, self.counts[e]["news"], self.n_tags(e)))

    def n_series(self, e: int) -> int:
        """Return the number of series of old bulletins."""
        return _ceil(self.archive_years[e], YEARS)

    def pages_of_edition(self, e: int) -> int:
        """Return the number of HTML pages in one language; O(keywords)."""
        total = 1 + len(STATIC) + sum(self.n_items(e, name) for name in SECTIONS)
        total += sum(self.n_listings(e, name) for name in SECTIONS)
        if self.counts[e]["news"]:
            total += sum(_ceil(self.n_tagged(e, g), SECTIONS["news"].per_page) for g in range(self.n_tags(e)))
        return total + self.archive_years[e] + self.n_series(e) + _ceil(self.n_series(e), SERIES_PER_PAGE)

    def _share(self, share: float, e: int, least: int = 1) -> int:
        total = round(self.pages * share)
        others = [int(total * _EDITION_SHARES[other]) for other in range(1, len(LANGUAGES))]
        return max(least, others[e - 1] if e else total - sum(others))

    # --- words

    def title(self, e: int, key: str) -> str:
        """Return three words with a capital, the title of the thing called `key`."""
        text = " ".join(NOUNS[e][word] for word in self._words(e, key))
        return text[0].upper() + text[1:]

    def slug(self, e: int, key: str) -> str:
        """Return the words of the title as they occur in an address."""
        return "-".join(SLUGS[e][word] for word in self._words(e, key))

    def sentence(self, e: int, key: str) -> str:
        """Return one sentence of running text."""
        n = self.draw(8 * N_NOUNS**2 * 40, f"s/{e}/{key}")
        n, template = divmod(n, 8)
        n, a = divmod(n, N_NOUNS)
        n, b = divmod(n, N_NOUNS)
        return SENTENCES[e][template].format(a=NOUNS[e][a], b=NOUNS[e][b], n=n + 2)

    def _words(self, e: int, key: str) -> tuple[int, int, int]:
        n = self.draw(N_NOUNS * 10 * 10, f"t/{e}/{key}")
        n, second = divmod(n, 10)
        n, third = divmod(n, 10)
        return n, (n + 1 + second) % N_NOUNS, (n + 12 + third) % N_NOUNS

    # --- addresses of pages

    def path(self, e: int, section: str, i: int) -> str:
        """Return the address of an item."""
        year = f"{self.year(e, i)}/" if section == "news" else ""
        return f"{PREFIXES[e]}/{SECTIONS[section].item}/{year}{self.slug(e, f'{section}/{i}')}-{i}"

    def year(self, e: int, i: int) -> int:
        """Return the year of an item of news; item 0 is the newest."""
        return THIS_YEAR if i >= self.counts[e]["news"] else THIS_YEAR - 20 * i // self.counts[e]["news"]

    def series_path(self, e: int, series: int) -> str:
        """Return the address of a series of old bulletins; the address of a year adds ``/<year>``."""
        return f"{PREFIXES[e]}/archive/{self.slug(e, f'series/{series}')}-{series}"

    def years_of(self, e: int, series: int) -> Iterator[tuple[int, int]]:
        """Yield (year, number of the archive page) of a series."""
        for a in range(series * YEARS, min((series + 1) * YEARS, self.archive_years[e])):
            yield LAST_ARCHIVED - a % YEARS, a

    def tag_name(self, e: int, tag: int) -> str:
        """Return a keyword."""
        return NOUNS[e][tag]

    def tag_path(self, e: int, tag: int) -> str:
        """Return the address of the news under a keyword."""
        return f"{PREFIXES[e]}/tag/{SLUGS[e][tag]}"

    def node(self, e: int, section: str, i: int) -> str:
        """Return the short address of an item, which redirects to the long one."""
        return f"/node/{(i * len(SECTIONS) + list(SECTIONS).index(section)) * len(LANGUAGES) + e}"

    def path_of_node(self, number: int) -> str | None:
        """Return the address that ``/node/<number>`` redirects to, or None if there is no such item."""
        number, e = divmod(number, len(LANGUAGES))
        i, index = divmod(number, len(SECTIONS))
        section = list(SECTIONS)[index]
        return self.path(e, section, i) if i < self.n_items(e, section) else None

    # --- files

    def n_files(self, e: int, source: str, owner: int) -> int:
        """Return the number of files on the page of `owner`, dead ones included and mirrors excluded."""
        if source == "data":
            first = _FILES_PER_DATASET[self.draw(len(_FILES_PER_DATASET), f"n/{e}/{owner}")]
            return min(first + sum(1 for _ in self._grown(e, owner)), _MAX_FILES)
        if source == "news":
            return int(owner % 100 == self.draw(100, f"attached/{e}"))
        if source == "copy":
            return int(self.draw(16, f"copy/{e}/{owner}") == 0)
        return self.bulletins if source == "archive" else 1

    def _grown(self, e: int, owner: int) -> Iterator[int]:
        """Yield the months in which an initial data set got another file."""
        if owner < self.counts[e]["data"]:
            yield from (m for m in range(1, self.months + 1) if self.draw(_GROWS, f"grows/{m}/{e}/{owner}") == 0)

    def _changed(self, key: str) -> int:
        """Return the month in which a file last changed, 0 for never."""
        months = range(self.months, 0, -1)
        return next((month for month in months if self.draw(_CHANGES, f"changes/{month}/{key}") == 0), 0)

    def is_dead(self, e: int, source: str, f: int, owner: int) -> bool:
        """Return whether the link to a file is broken; the first file of a page never is."""
        return f > 0 and source == "data" and self.draw(20, f"dead/{e}/{owner}/{f}") == 0

    def files(self, e: int, source: str, owner: int) -> Iterator[DataFile]:
        """Yield the files of a page in the order of their links."""
        return (self.file(e, source, owner, f) for f in range(self.n_files(e, source, owner)))

    def file(self, e: int, source: str, owner: int, f: int) -> DataFile:
        """Return file `f` of the page of `owner`; a mirror ("copy") is owned by its dataset."""
        number = ((owner * _MAX_FILES + f) * len(_SOURCES) + _SOURCES.index(source)) * len(LANGUAGES) + e
        key = f"file/{e}/{'data' if source == 'copy' else source}/{owner}/{f}"
        bits = self.draw(1 << 60, key)
        bits, uniform = divmod(bits, 1 << 20)
        extension = _EXTENSIONS[bits % len(_EXTENSIONS)] if source in ("data", "copy") else "pdf"
        stem = f"{self.slug(e, key)}-{number}"
        changed = self._changed(key)
        n_records = files.records_for(extension, (uniform + 0.5) / (1 << 20))
        link, url = self._addresses(e, source, owner, number, f"{stem}.{extension}")
        return DataFile(
            link=link,
            url=url,
            title=self.title(e, key),
            extension=extension,
            n_records=n_records + changed,
            seed=bits + changed,
            dead=self.is_dead(e, source, f, owner),
            changed=changed,
        )

    def file_at(self, path: str) -> DataFile | None:
        """Return the file whose name in `path` ends in its number, or None; the rest of `path` is not compared."""
        found = _NUMBERED.search(path)
        return self.file_of_number(int(found[1])) if found else None

    def file_of_number(self, number: int) -> DataFile | None:
        """Return the file that has that number, dead or not, or None."""
        number, e = divmod(number, len(LANGUAGES))
        number, index = divmod(number, len(_SOURCES))
        owner, f = divmod(number, _MAX_FILES)
        source = _SOURCES[index]
        owners = self.archive_years[e] if source == "archive" else self.n_items(e, "data" if index == 4 else source)
        return self.file(e, source, owner, f) if owner < owners and f < self.n_files(e, source, owner) else None

    def _addresses(self, e: int, source: str, owner: int, number: int, name: str) -> tuple[str, str]:
        folder = f"/files/{2010 + number % 14}-{1 + number % 12:02d}/"
        if source == "archive":
            folder = f"{PREFIXES[e]}/archive/files/"
        elif source == "copy":
            folder = "/files/mirror/"
        elif source == "data":
            form = _FORMS[self.draw(len(_FORMS), f"form/{e}/{owner}")]
            if form == "redirect":
                return f"/download/{number}", f"/media/{2010 + number % 14}/{name}"
            if form == "node":
                return f"/node/{number}/file", f"/node/{number}/file"
            if form == "query":
                return f"/download?id={number}", f"/download?id={number}"
            if form == "upper":
                stem, _, extension = name.rpartition(".")
                name = f"{stem}.{extension.upper()}"
        return folder + name, folder + name


def _ceil(n: int, divisor: int) -> int:
    return -(-n // divisor)
