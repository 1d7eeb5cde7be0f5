"""The addresses of a profile site, and what stands behind each (internal).

Addresses end in a number; an address exists if it is the one that the thing of that number ought to have.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from profiles.plan import FORM, STATIC, Plan, Section
from profiles.tree import mixes
from scrapy_focus.lab.sites.portal.words import N_NOUNS, NOUNS, SLUGS
from scrapy_focus.web.mime import FILE_TYPES

if TYPE_CHECKING:
    from profiles.style import Style

FILES_PER_LEAF: Final = 256  # numbers set aside for the files of a leaf
SMALLEST: Final = 10_000  # bytes
YEARS, THIS_YEAR = 15, 2024
_TITLE, _CATEGORY, _FILE, _OTHER, _PERMALINK = range(8, 13)  # what is drawn, see `Plan.draw`
_SIZE_RANGE: Final = 725  # three draws in this range add up to the logarithm of a size, in 256ths of a doubling
_MEDIA: Final = {"jpg": "image/jpeg", "png": "image/png", "mp4": "video/mp4", "ics": "text/calendar"}
_OTHERS: Final = ("",) * 11 + ("jpg",) * 6 + ("png", "mp4", "ics")  # "": a dead link
_LAST_NUMBER = re.compile(r"(\d{1,12})(?:\.[A-Za-z0-9]{1,5})?$", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A data file and its two addresses, which differ when the download is a redirect."""

    number: int
    link: str  # what pages link to
    url: str  # where the file is in the end
    title: str
    extension: str
    size: int  # bytes

    @property
    def mime(self) -> str:
        """Media type."""
        return FILE_TYPES[self.extension][0]


class Paths:
    """Addresses and titles; every method is O(1) but for those that look for a category, O(log categories).

    Parameters
    ----------
    plan : Plan
        What exists.
    style : Style
        The patterns of addresses.
    """

    def __init__(self, plan: Plan, style: Style) -> None:
        self.plan = plan
        self.style = style
        self._homes = {section.root: section for section in plan.sections if section.root != section.folder}
        self._folders = {section.folder: section for section in plan.sections}
        self._static = {self.static_path(e, k): (e, k) for e in range(len(plan.prefixes)) for k in range(len(STATIC))}
        before, after = (re.escape(part) for part in style.pager.split("{}"))
        self._pager = re.compile(f"{before}(\\d{{1,9}}){after}$", re.ASCII)

    # --- words

    def title(self, section: Section, i: int) -> str:
        """Return the title of an item."""
        return self._words(NOUNS, section.edition, self.plan.draw(_TITLE, section.first_leaf + i), " ").capitalize()

    def category_title(self, section: Section, category: int) -> str:
        """Return the title of a category; of an archive, its year."""
        if section.style.kind == "archive":
            return str(THIS_YEAR - category % 30)
        bits = self.plan.draw(_CATEGORY, (section.number << 24) + category)
        language = self.plan.languages[section.edition]
        return f"{NOUNS[language][bits % N_NOUNS]} {NOUNS[language][(bits >> 8) % N_NOUNS]}".capitalize()

    def _words(self, words: tuple[tuple[str, ...], ...], edition: int, bits: int, between: str) -> str:
        of = words[self.plan.languages[edition]]
        return between.join((of[bits % N_NOUNS], of[(bits >> 8) % N_NOUNS], of[(bits >> 16) % N_NOUNS]))

    # --- addresses of pages

    def static_path(self, e: int, k: int) -> str:
        """Return the address of a page of plain text."""
        return f"{self.plan.prefixes[e]}/{STATIC[k]}{self.style.suffix}"

    def category_path(self, section: Section, category: int) -> str:
        """Return the address of the first page of a category."""
        if category == 0:
            return section.root
        slug = self.category_title(section, category).lower() if section.style.kind == "archive" else ""
        if not slug:
            bits = self.plan.draw(_CATEGORY, (section.number << 24) + category)
            slug = SLUGS[self.plan.languages[section.edition]][bits % N_NOUNS]
        return f"{section.folder}/{self.style.branch}/{slug}-{category}"

    def page_path(self, section: Section, category: int, k: int) -> str:
        """Return the address of page `k` of a category."""
        path = self.category_path(section, category)
        return path + self.style.pager.format(k * section.style.per_page if self.style.by_offset else k) if k else path

    def listing_path(self, section: Section, listing: int) -> str:
        """Return the address of a listing page."""
        category = section.tree.category_of(listing)
        return self.page_path(section, category, listing - int(section.tree.first[category]))

    def leaf_path(self, section: Section, i: int) -> str:
        """Return the address of a leaf."""
        return self.listing_path(section, i) if section.direct else self.item_path(section, i)

    def item_path(self, section: Section, i: int) -> str:
        """Return the address of an item, in the pattern of its section."""
        g, folder, suffix = section.first_leaf + i, section.folder, self.style.suffix
        bits = self.plan.draw(_TITLE, g)
        match section.style.address:
            case 0:
                return f"{folder}/{self._words(SLUGS, section.edition, bits, '-')}-{i}{suffix}"
            case 1:
                day = f"{THIS_YEAR - i * YEARS // section.n_leaves}/{1 + (bits >> 24) % 12:02d}"
                return f"{folder}/{day}/{self._words(SLUGS, section.edition, bits, '-')}-{i}{suffix}"
            case 2:
                slugs = SLUGS[self.plan.languages[section.edition]]
                return f"{folder}/{slugs[bits % N_NOUNS]}/{slugs[(bits >> 8) % N_NOUNS]}-{i}{suffix}"
            case 3:
                return f"{folder}/view/{i}{suffix}"
        return f"{folder}/detail{suffix}?id={i}"

    def permalink(self, section: Section, i: int) -> str | None:
        """Return the short address of an item, which redirects, or None: one item in ten of some sections has one."""
        if not (self.style.permalinks and section.style.kind in ("news", "pages")):
            return None
        g = section.first_leaf + i
        return f"/node/{g}" if self.plan.draw(_PERMALINK, g) % 10 == 0 else None

    # --- addresses of files and of the rest

    def files(self, leaf: int) -> list[DataFile]:
        """Return the files of a leaf."""
        section = self.plan.section_of(leaf)
        return [self._file(section, leaf, j) for j in range(int(self.plan.files[leaf]))]

    def _file(self, section: Section, leaf: int, j: int) -> DataFile:
        style, plan = self.style, self.plan
        number = leaf * FILES_PER_LEAF + j
        bits = plan.draw(_FILE, number)
        extension = style.extensions[(bits >> 24) % len(style.extensions)]
        doublings = sum((bits >> shift) % 1024 * _SIZE_RANGE >> 10 for shift in (32, 42, 52))
        form = style.forms[plan.draw(FORM, leaf) % len(style.forms)]
        name = f"{self._words(SLUGS, section.edition, bits, '-')}-{number}"
        shown = extension.upper() if form == "upper" else extension
        plain = f"{style.folder}/{2010 + leaf % 14}-{1 + leaf % 12:02d}/{name}.{shown}"
        link = url = plain
        if form == "redirect":
            link = f"{style.redirect}/{number}"
        elif form == "bare":
            link = url = f"{style.bare}/{number}"
        elif form == "query":
            link = url = f"{style.query}{number}"
        return DataFile(
            number=number,
            link=link,
            url=url,
            title=self._words(NOUNS, section.edition, bits, " ").capitalize(),
            extension=extension,
            size=SMALLEST * (256 + doublings % 256 << (doublings >> 8)) >> 8,
        )

    def other_path(self, number: int) -> str:
        """Return address `number` of those that are neither pages nor targets."""
        bits = self.plan.draw(_OTHER, number)
        slug = f"{SLUGS[0][bits % N_NOUNS]}-{SLUGS[0][(bits >> 8) % N_NOUNS]}-{number}"
        if extension := _OTHERS[(bits >> 16) % len(_OTHERS)]:
            return f"{self.style.media}/{slug}.{extension}"
        return f"{self.style.folder}/old/{slug}.pdf" if bits >> 63 else f"/old/{slug}{self.style.suffix}"

    def n_redirects(self) -> int:
        """Return the number of addresses that redirect; O(leaves)."""
        plan, style = self.plan, self.style
        forms = np.array([form == "redirect" for form in style.forms])
        redirected = forms[mixes(plan.salt + (FORM << 40), plan.n_leaves) % np.uint64(len(forms))]
        total = int(plan.files[redirected].sum(dtype=np.int64))
        for section in plan.sections:
            if style.permalinks and section.style.kind in ("news", "pages"):
                start = plan.salt + (_PERMALINK << 40) + section.first_leaf
                total += int(np.count_nonzero(mixes(start, section.n_leaves) % np.uint64(10) == 0))
        return total

    # --- what stands behind an address

    def static_at(self, path: str) -> tuple[int, int] | None:
        """Return (edition, number) of a page of plain text."""
        return self._static.get(path)

    def file_at(self, path: str) -> DataFile | None:
        """Return the file that has that address or is linked under it."""
        style = self.style
        if not path.startswith((f"{style.folder}/", f"{style.bare}/", f"{style.redirect}/", style.query)):
            return None
        found = _LAST_NUMBER.search(path)
        leaf, j = divmod(int(found[1]), FILES_PER_LEAF) if found else (-1, 0)
        if not 0 <= leaf < self.plan.n_leaves or j >= self.plan.files[leaf]:
            return None
        file = self._file(self.plan.section_of(leaf), leaf, j)
        return file if path in (file.link, file.url) else None

    def media_at(self, path: str) -> tuple[int, str] | None:
        """Return (number, media type) of a picture, a film or a calendar entry."""
        found = _LAST_NUMBER.search(path) if path.startswith(f"{self.style.media}/") else None
        number = int(found[1]) if found else -1
        exists = 0 <= number < self.plan.profile.other and self.other_path(number) == path
        return (number, _MEDIA[path.rpartition(".")[2]]) if exists else None

    def moved_to(self, path: str) -> str | None:
        """Return where a short address leads."""
        number = path.removeprefix("/node/")
        leaf = int(number) if number != path and number.isascii() and number.isdigit() and len(number) < 12 else -1
        if not 0 <= leaf < self.plan.n_leaves:
            return None
        section = self.plan.section_of(leaf)
        i = leaf - section.first_leaf
        return self.item_path(section, i) if self.permalink(section, i) == path else None

    def listing_at(self, path: str) -> tuple[Section, int] | None:
        """Return (section, listing page)."""
        if path in self._homes:
            return self._homes[path], 0
        section = self._section_at(path)
        if section is None:
            return None
        found, k = self._pager.search(path), 0
        if found:
            path, k = path[: found.start()], int(found[1])
            if self.style.by_offset:
                k, left = divmod(k, section.style.per_page)
                k = 0 if left else k
            if k == 0:
                return None
        category = 0
        if path != section.root:
            last = _LAST_NUMBER.search(path)
            category = int(last[1]) if last else -1
            if not 0 < category < len(section.tree.starts) or self.category_path(section, category) != path:
                return None
        pages = section.tree.pages_of(category)
        if k >= len(pages) or (found and found[1][0] == "0"):
            return None
        return section, pages[k]

    def item_at(self, path: str) -> tuple[Section, int] | None:
        """Return (section, item)."""
        section, found = self._section_at(path), _LAST_NUMBER.search(path)
        if section is None or found is None or section.direct:
            return None
        i = int(found[1])
        return (section, i) if i < section.n_leaves and self.item_path(section, i) == path else None

    def _section_at(self, path: str) -> Section | None:
        parts = path.partition("?")[0].split("/", 3)
        return self._folders.get("/".join(parts[:2])) or self._folders.get("/".join(parts[:3]))
