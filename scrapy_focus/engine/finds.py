"""Describes what a crawl found lately, and the links that led there, in words that a person can check on the site.

What a policy calls an arm is a number for a place in the layout of pages. Here, each arm is described by those of its
links that led to finds: by their anchor text, with placeholders for numbers, and by the URLs of the linking pages.
All of it is a sample in bounded memory for people to read: no choice depends on it.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from scrapy_focus.core.printable import WORD, printable
from scrapy_focus.engine.marks import page_of
from scrapy_focus.web.link_kinds import links_like, pages_like, text_like
from scrapy_focus.web.mime import FILE_TYPES, extension

if TYPE_CHECKING:
    from scrapy_focus.core.types import Outcome
    from scrapy_focus.engine.inflight import Entry

_LAST = 3  # finds that are named
_ARMS = 10_000  # arms whose pulls are counted
_FRUITFUL = 500  # arms whose links are kept
_SHAPES = 20  # distinct shapes of links, and of pages, for each arm
_SHARE = 0.4  # of the links of an arm: a text of this share describes the arm
_NAMES = {mime: name for name, mimes in FILE_TYPES.items() for mime in mimes} | {"text/html": "html"}


class Paid(NamedTuple):
    """A group of similar links, and what they led to."""

    words: str
    earned: float
    pulls: int


class _Arm:
    """What those links of an arm that led to finds have in common."""

    __slots__ = ("earned", "kinds", "pages", "texts")

    def __init__(self) -> None:
        self.earned = 0.0
        self.texts: Counter[str] = Counter()
        self.pages: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()

    def note(self, text: str, page: str, kind: str) -> None:
        for counter, value in ((self.texts, text), (self.pages, page), (self.kinds, kind)):
            if value and (value in counter or len(counter) < _SHAPES):
                counter[value] += 1

    def words(self) -> str:
        return links_like(*(_common(counter) for counter in (self.texts, self.kinds, self.pages)))


class Finds:
    """Keeps the last finds, their number by type, and the links that led to them."""

    def __init__(self) -> None:
        self.known = 0  # finds of this crawl that earlier crawls had found
        self.last: deque[str] = deque(maxlen=_LAST)
        self.kinds: Counter[str] = Counter()
        self._pulls: dict[int, int] = {}
        self._arms: dict[int, _Arm] = {}

    def note(self, entry: Entry, outcome: Outcome, earned: float) -> None:
        """Note the outcome of a pick and its reward."""
        arm = outcome.pick.arm
        if arm in self._pulls or len(self._pulls) < _ARMS:
            self._pulls[arm] = self._pulls.get(arm, 0) + 1
        if earned <= 0:
            return
        url = outcome.pick.url
        kind = _kind_of(outcome)
        if kind in self.kinds or len(self.kinds) < _SHAPES:
            self.kinds[kind] += 1
        self.last.append(_name(url))
        if arm not in self._arms and len(self._arms) >= _FRUITFUL:
            return
        record = self._arms.setdefault(arm, _Arm())
        record.earned += earned
        request = entry.request
        if request is not None:
            text = text_like(str(request.meta.get("link_text", "")), WORD)
            record.note(text, pages_like(page_of(request), WORD), kind)

    def paid(self, k: int) -> list[Paid]:
        """Return up to `k` groups of links, the most fruitful first, no two with the same description."""
        sums: dict[str, tuple[float, int]] = {}
        for number, arm in self._arms.items():
            words = arm.words()
            earned, pulls = sums.get(words, (0.0, 0))
            sums[words] = earned + arm.earned, pulls + self._pulls.get(number, 0)
        ranked = sorted(sums.items(), key=lambda each: (-each[1][0], each[1][1], each[0]))[:k]
        return [Paid(words, earned, pulls) for words, (earned, pulls) in ranked]


def _kind_of(outcome: Outcome) -> str:
    """Return the name of a MIME type, or else the extension of the URL."""
    return _NAMES.get(outcome.mime) or extension(outcome.pick.url) or outcome.mime


def unlike(names: list[str]) -> list[str]:
    """Number the repeated names of a list.

    Examples
    --------
    >>> unlike(["../li/a", "../p/a", "../li/a"])
    ['../li/a', '../p/a', '../li/a (2)']
    """
    seen: Counter[str] = Counter()
    told = []
    for name in names:
        seen[name] += 1
        told.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return told


def _common(counter: Counter[str]) -> str:
    """Return what most links of an arm share, ``""`` for nothing."""
    [(value, n)] = counter.most_common(1) or [("", 0)]
    return value if n >= _SHARE * counter.total() else ""


def _name(url: str) -> str:
    """Return the last part of a URL that says something: with the part before it if it has no extension."""
    parts = _parts(url)
    if not parts:
        return printable(url, WORD)
    return printable("/".join(parts[-1:] if "." in parts[-1] else parts[-2:]), WORD)


def _parts(url: str) -> list[str] | None:
    try:
        return [part for part in unquote(urlsplit(url).path).split("/") if part]
    except ValueError:
        return None
