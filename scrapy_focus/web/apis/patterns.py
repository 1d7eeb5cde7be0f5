"""URLs as texts with holes, which are filled from the URL of a page and from answers; and all readings of a URL so.

A value fills a hole only where it begins and ends between letters, digits and other characters: ``17`` is in
``d-17.csv`` and in ``d17``, and not in ``2017``.
"""

from __future__ import annotations

import re
from itertools import combinations, islice, pairwise, product
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import urljoin

from scrapy_focus.web.apis.templates import in_url, origin_of, spelled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Mode = Literal["whole", "raw", "lower"]

_LONGEST = 600  # characters of a text of which readings are made
_EDGES = 60  # in such a text
_SPOTS = 24  # for holes in a text
_HOLES = 3  # of a reading
_READINGS = 150  # of a text
_ALIKE = 6  # leaves with one value that are told apart
_MADE = 2_000  # URLs of a reading on one page
_DIGITS = re.compile(r"[0-9]{1,9}\Z")
_NUMBERS = re.compile(r"[0-9]{1,9}")
_RUNS = re.compile(r"(?:%[0-9A-F]{2}|[A-Za-z])+|[0-9]+|.", re.DOTALL)


class Hole(NamedTuple):
    """Where a value stands.

    ``family`` is the number of the API whose answer has it at the path ``name``, or -1 for a slot of the page's URL. A
    number may be multiplied, and another added.
    """

    family: int
    name: str
    mode: Mode = "whole"
    times: int = 1
    plus: int = 0

    @property
    def is_reckoned(self) -> bool:
        """Whether it is filled by another number than the value."""
        return self.times != 1 or self.plus != 0

    def __str__(self) -> str:
        if self.family >= 0:
            return f"{{{self.name}}}"
        times = f"*{self.times}" if self.times != 1 else ""
        return f"{{page{self.name}{times}{f'{self.plus:+d}' if self.plus else ''}}}"

    def filled(self, value: str) -> str:
        """Return what stands in the hole for a value; ``""`` if nothing can."""
        if self.is_reckoned:
            if not _DIGITS.match(value):
                return ""
            number = int(value) * self.times + self.plus
            return str(number) if number >= 0 else ""
        return _spelled(value, self.mode)


class Pattern(NamedTuple):
    """A URL with holes: one more text than there are holes. ``is_url``: the value in the only hole is a URL itself."""

    texts: tuple[str, ...]
    holes: tuple[Hole, ...]
    is_url: bool = False

    def __str__(self) -> str:
        if self.is_url:
            return self.holes[0].name
        return self.texts[0] + "".join(f"{hole}{text}" for hole, text in zip(self.holes, self.texts[1:], strict=True))

    @property
    def families(self) -> frozenset[int]:
        """Of which APIs it needs an answer."""
        return frozenset(hole.family for hole in self.holes if hole.family >= 0)

    @property
    def has_list(self) -> bool:
        """Whether it is filled from each element of a list."""
        return any(hole.family >= 0 and "[]" in hole.name for hole in self.holes)

    @property
    def counts_on(self) -> bool:
        """Whether it leads from a page to the next one by its number."""
        return any(hole.family < 0 and hole.plus > 0 for hole in self.holes)

    def text(self, values: Sequence[str]) -> str:
        """Return the text with its holes filled, ``""`` if one of them cannot be."""
        pieces = [self.texts[0]]
        for hole, value, text in zip(self.holes, values, self.texts[1:], strict=True):
            piece = hole.filled(value)
            if not piece:
                return ""
            pieces += (piece, text)
        return "".join(pieces)


class Rows(NamedTuple):
    """The values at a path of the answers of one API: which answer and which elements of lists, and the value."""

    indexes: list[tuple[int, ...]]
    values: list[str]
    distinct: dict[str, None]
    groups: dict[int, dict[tuple[int, ...], list[str]]]  # by the first so many indexes, made when it is needed

    def grouped(self, n: int) -> dict[tuple[int, ...], list[str]]:
        """Return the values by their first ``n`` indexes."""
        if n not in self.groups:
            groups: dict[tuple[int, ...], list[str]] = {}
            for indexes, value in zip(self.indexes, self.values, strict=True):
                groups.setdefault(indexes[:n], []).append(value)
            self.groups[n] = groups
        return self.groups[n]


class Ground(NamedTuple):
    """What the holes of a page are filled from."""

    url: str
    slots: Mapping[str, str]
    rows: Mapping[tuple[int, str], Rows]


def absolute(text: str, ground: Ground) -> str:
    """Return the URL that a text means on a page."""
    return origin_of(ground.url) + text if text.startswith("/") and not text.startswith("//") else text


def relative(url: str, page_url: str) -> str:
    """Return the text of a URL: without its origin, if that is the page's."""
    url, origin = spelled(url), origin_of(spelled(page_url))
    return url[len(origin) :] if url.startswith(f"{origin}/") else url


class _Spot(NamedTuple):
    """A part of a text in place of which there may be a hole."""

    begin: int
    end: int
    hole: Hole


def made_of(pattern: Pattern, ground: Ground) -> Iterator[str]:
    """Yield the URLs that a pattern makes on a page, as they are written: 2,000 at most, and maybe twice."""
    leaves = [hole for hole in pattern.holes if hole.family >= 0]
    if pattern.is_url:
        yield from _urls_in(leaves[0], ground)
        return
    fixed = {at: ground.slots.get(hole.name, "") for at, hole in enumerate(pattern.holes) if hole.family < 0}
    if not all(fixed.values()):
        return  # the page's own URL has nothing for a hole
    for row in _rows(leaves, ground):
        text = pattern.text(_filled(len(pattern.holes), fixed, row))
        if text:
            yield absolute(text, ground)


def _filled(n_holes: int, fixed: Mapping[int, str], row: Sequence[str]) -> list[str]:
    """Return the values of all holes: those that are fixed, and between them those of a row."""
    values = iter(row)
    return [fixed[at] if at in fixed else next(values) for at in range(n_holes)]


def _urls_in(leaf: Hole, ground: Ground) -> Iterator[str]:
    """Yield the values of a leaf that are URLs themselves."""
    rows = ground.rows.get((leaf.family, leaf.name))
    if rows is None:
        return
    for value in list(rows.distinct)[:_MADE]:
        if url := joined(ground.url, value):
            yield url


def _rows(leaves: Sequence[Hole], ground: Ground) -> Iterator[tuple[str, ...]]:
    """Yield values for holes that belong together: of the same elements of the lists that their paths share."""
    if not leaves:
        yield ()
        return
    columns = []
    for hole in leaves:
        column = ground.rows.get((hole.family, hole.name))
        if column is None:
            return
        columns.append(column)
    first = columns[0]
    if len(leaves) == 1:
        for value in list(first.distinct)[:_MADE]:
            yield (value,)
        return
    others = []
    for hole, column in zip(leaves[1:], columns[1:], strict=True):
        shared = _shared(leaves[0], hole)
        others.append((shared, column.grouped(shared)))
    seen = set()
    for row in islice(_joined_rows(first, others), _MADE):
        if row not in seen:
            seen.add(row)
            yield row


def _joined_rows(
    first: Rows, others: Sequence[tuple[int, Mapping[tuple[int, ...], list[str]]]]
) -> Iterator[tuple[str, ...]]:
    """Yield each value of the first column with those of the others that share its place in lists."""
    for indexes, value in zip(first.indexes, first.values, strict=True):
        for rest in product(*(grouped.get(indexes[:shared], ()) for shared, grouped in others)):
            yield (value, *rest)


def _shared(one: Hole, other: Hole) -> int:
    """Return how many indexes two paths have in common, the number of the answer included."""
    if one.family != other.family:
        return 0
    n = 1
    for a, b in zip(one.name.split("[]")[:-1], other.name.split("[]")[:-1], strict=False):
        if a != b:
            break
        n += 1
    return n


def readings(text: str, known: Mapping[str, Sequence[Hole]]) -> list[Pattern]:
    """Return the readings of a text, by what may stand for its parts; the text itself first, then the simplest.

    Parameters
    ----------
    text
        As :func:`relative` returns it.
    known
        What each value may be, as it is spelled in URLs.
    """
    found = [Pattern((text,), ())]
    if len(text) > _LONGEST:
        return found
    spots = _spots(text, known)
    for n in range(1, _HOLES + 1):
        for chosen in combinations(spots, n):
            ordered = sorted(chosen)
            if any(one.end > other.begin for one, other in pairwise(ordered)):
                continue
            texts, at = [], 0
            for begin, end, _ in ordered:
                texts.append(text[at:begin])
                at = end
            found.append(Pattern((*texts, text[at:]), tuple(hole for _, _, hole in ordered)))
            if len(found) == _READINGS:
                return found
    return found


def _spots(text: str, known: Mapping[str, Sequence[Hole]]) -> list[_Spot]:
    """Return where holes fit into a text: the longest first, and of equal ones those that add nothing."""
    spots = []
    for begin, end in combinations(_edges(text), 2):
        holes = known.get(text[begin:end])
        if not holes:
            continue
        is_within_word = text[begin - 1].isalnum() or text[end : end + 1].isalnum()
        for hole in holes[: 2 * _ALIKE]:
            # A reckoned number beside letters is too likely to be there by chance.
            if not (hole.is_reckoned and is_within_word):
                spots.append(_Spot(begin, end, hole))
    spots.sort(key=lambda spot: (spot.begin - spot.end, spot.hole.plus != 0))
    return spots[:_SPOTS]


def _edges(text: str) -> list[int]:
    """Return where letters, digits and other characters of a text meet, and its end."""
    start = 0
    if not text.startswith("/"):  # no value stands for a host
        start = len(origin_of(text))
    ends = (run.end() for run in _RUNS.finditer(text))
    return [end for end in ends if end > start][:_EDGES]


def slot_holes(slots: Mapping[str, str], text: str, *, is_call: bool) -> dict[str, list[Hole]]:
    """Return what the slots of a page may stand for in a text: themselves, and numbers that follow from theirs."""
    known = _as_they_are(slots)
    numbers = {int(found) for found in _NUMBERS.findall(text)}
    for name, value in slots.items():
        if not _DIGITS.match(value) or str(int(value)) != value:
            continue
        n = int(value)
        offsets = _offset_steps(n, numbers) if is_call else ()
        for times, plus in dict.fromkeys([(1, 1), (1, -1), *offsets]):
            made = n * times + plus
            if made not in numbers:
                continue
            holes = known.setdefault(str(made), [])
            hole = Hole(-1, name, "whole", times, plus)
            if hole not in holes:
                holes.append(hole)
    return known


def _as_they_are(slots: Mapping[str, str]) -> dict[str, list[Hole]]:
    """Return the holes that slots fill with their own value, in each of its spellings."""
    known: dict[str, list[Hole]] = {}
    for name, value in slots.items():
        for mode in _modes(value):
            known.setdefault(_spelled(value, mode), []).append(Hole(-1, name, mode))
    return known


def _offset_steps(n: int, numbers: set[int]) -> list[tuple[int, int]]:
    """Return the steps by which a call may reckon an offset from the number of a page: the size of a page, which may be
    one of the numbers of the call or follow from its offset, times the number, counted from one or from zero.
    """
    steps = []
    for size in sorted(numbers):
        if size > 1:
            steps += [(size, -size), (size, 0)]
    if n > 1:
        for offset in numbers:
            if offset > n - 1 and offset % (n - 1) == 0:
                size = offset // (n - 1)
                steps.append((size, -size))
    return steps


def leaf_holes(rows: Mapping[tuple[int, str], Rows]) -> dict[str, list[Hole]]:
    """Return which leaves each value may come from, as it is spelled in URLs."""
    known: dict[str, list[Hole]] = {}
    for (family, path), column in rows.items():
        for value in column.distinct:
            if len(value) > _LONGEST:
                continue
            for mode in _modes(value):
                holes = known.setdefault(_spelled(value, mode), [])
                if len(holes) < _ALIKE:
                    holes.append(Hole(family, path, mode))
    return known


def joined(base: str, value: str) -> str:
    """Return the URL of the same kind that a value is, joined to a page's; ``""`` for none."""
    try:
        url = urljoin(base, value.strip()).partition("#")[0]
    except ValueError:
        return ""
    return url if url.startswith(("http://", "https://")) else ""


def _modes(value: str) -> Iterator[Mode]:
    whole = in_url(value)
    yield "whole"
    if in_url(value, whole=False) != whole:
        yield "raw"
    if value.lower() != value:
        yield "lower"


def _spelled(value: str, mode: Mode) -> str:
    if mode == "raw":
        return in_url(value, whole=False)
    return in_url(value.lower() if mode == "lower" else value)
