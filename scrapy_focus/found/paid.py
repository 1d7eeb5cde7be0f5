"""Says which links paid, in words that a person can check on the site: what they say, and on which pages they stand.

What a policy calls an arm is a number, and behind it a place in the layout of pages. Whoever reads about a crawl knows
neither. So links are put together that say the same, with the numbers in them left open, on pages whose addresses begin
alike. Links to files whose texts are rare, such as titles, are put together by their extension.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from scrapy_focus.core.printable import printable
from scrapy_focus.found.listed import parts_of
from scrapy_focus.web.mime import extension

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.found.notes import Answer

_LEAST = 3  # files to which links with the same text led, so that it stands for itself ...
_SHARE = 0.02  # ... and share of all files
_LANGUAGE = 2  # letters of a first part of an address that says little
_LONGEST = 60  # characters of a text or address
_NUMBER = re.compile(r"\d+")


class Paid(NamedTuple):
    """Links that are alike, and what following them brought."""

    links: str  # what they say: ``Download (CSV)``, or their extension: ``.csv``; "": neither
    pages: str  # where they stand: ``/publication/…``; "": they were given
    files: int
    requests: int


def paid(answers: Sequence[Answer]) -> list[Paid]:
    """Return the links that led to files, the most fruitful first; the last one stands for all that led to none.

    Each request is in one of them; the last is left out if there is none.
    """
    shapes = Counter(_shape(answer.anchor) for answer in answers if answer.files > 0)
    least = max(_LEAST, _SHARE * shapes.total())
    common = {shape for shape, n in shapes.items() if shape and n >= least}
    sums: dict[tuple[str, str], list[int]] = {}
    for answer, shape in zip(answers, [_shape(answer.anchor) for answer in answers], strict=True):
        links = shape if shape in common else f".{kind}"[:_LONGEST] if (kind := extension(answer.url)) else ""
        total = sums.setdefault((links, _pages(answer.page)), [0, 0])
        total[0] += answer.files > 0
        total[1] += answer.sent
    found = [Paid(*words, *numbers) for words, numbers in sums.items() if numbers[0]]
    found.sort(key=lambda each: (-each.files, each.requests, each.links, each.pages))
    fruitless = sum(requests for files, requests in sums.values() if not files)
    return [*found, Paid("", "", 0, fruitless)] if fruitless else found


@lru_cache(maxsize=1 << 12)
def _shape(anchor: str) -> str:
    """Return the text of a link with its numbers left open."""
    return _NUMBER.sub("…", printable(" ".join(anchor.split()), _LONGEST))


@lru_cache(maxsize=1 << 12)
def _pages(url: str) -> str:
    """Return how the address of a page begins."""
    parts = [part for part in unquote(parts_of(url)[1]).split("/") if part]
    kept = parts[: 2 if parts and len(parts[0]) <= _LANGUAGE else 1]
    return printable(f"/{'/'.join(kept)}{'/…' if len(parts) > len(kept) else ''}", _LONGEST) if url else ""
