"""Why a link was chosen, from its features: a sentence for each that says something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.reason import Part, depth_of, reads_like
from scrapy_focus.policies.treeq.features import IN_LINKS, LEARNED, LEVELS, PUBLISHED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scrapy_focus.core.types import Pick

_MOST_LINKS = 36  # whose number a code can hold
_NEUTRAL, _LITTLE = 0.5, 0.05  # the value of words without evidence; values this close to it are not reported
_UNKNOWN = (0.5, 0.51)  # the share of relevant pages of a domain without a fetched page

_PARENT, _NEARNESS, _PATH, _URL, _ANCHOR, _WORDS, _HOST, _NEW_HOST = PUBLISHED
_LINKS_SHARE, _LINKS = IN_LINKS
_BESIDE, _LEARNED_WORDS = LEARNED


def explained(known: Mapping[str, float], pick: Pick, *, about: str = "") -> list[Part]:
    """Return a part for the features of a pick, given by name: the words first, then the pages around it.

    A feature without a sentence is named with its value, unless that is zero. ``about`` is the sentence of the topic,
    if it has one.
    """
    left = dict(known)
    parts = []
    for names, sentence in _SENTENCES:
        numbers = {name: left.pop(name) for name in names if name in left}
        if names == _WAY and pick.depth <= 1:
            parts.append(depth_of(pick)._replace(numbers=numbers))
        elif about and _WORDS in numbers:
            parts.append(Part(f"the link {reads_like(about, numbers[_WORDS])}", numbers))
        elif numbers:
            parts.append(Part(sentence(numbers), numbers))
    return [*parts, *(Part(f"{name} {value}" if value else "", {name: value}) for name, value in left.items())]


def _keywords(numbers: Mapping[str, float]) -> str:
    places = [place for place, name in (("anchor", _ANCHOR), ("URL", _URL)) if numbers.get(name)]
    return f"keyword in the {' and the '.join(places)}" if places else ""


def _probability(numbers: Mapping[str, float]) -> str:
    return f"words of the link {100 * numbers[_WORDS]:.0f} % on the topic"


def _learned_words(numbers: Mapping[str, float]) -> str:
    learned = numbers[_LEARNED_WORDS]
    if abs(learned - _NEUTRAL) <= _LITTLE:
        return ""
    return f"words like these led {'to' if learned > _NEUTRAL else 'away from'} relevant pages"


def _way(numbers: Mapping[str, float]) -> str:
    if numbers.get(_PARENT):
        return "found on a relevant page"
    if nearness := numbers.get(_NEARNESS):
        return f"{round(1 / nearness)} clicks behind a relevant page"
    return "no relevant page on the way there"


def _beside(numbers: Mapping[str, float]) -> str:
    return f"{100 * numbers[_BESIDE]:.0f} % of the links beside it relevant"


def _links(numbers: Mapping[str, float]) -> str:
    """Say how many relevant pages link to it, as far as a code of so many levels can hold."""
    number = round(2 ** (numbers[_LINKS] * LEVELS / 12) - 1)
    if number <= 1:
        return ""
    said = f"{'about ' * (number > 5)}{number}"
    if number >= _MOST_LINKS:
        said = f"more than {_MOST_LINKS - 1}"
    share = numbers.get(_LINKS_SHARE, 0)
    of_all = f", {100 * share:.0f} % of all that do" if share < 1 else ""
    return f"{said} relevant pages link there{of_all}"


def _host(numbers: Mapping[str, float]) -> str:
    if numbers.get(_NEW_HOST):
        return "a new domain"
    share = numbers.get(_HOST)
    return "" if share is None or share in _UNKNOWN else f"{100 * share:.0f} % of its domain relevant"


_WAY = (_PARENT, _NEARNESS, _PATH)
_SENTENCES: tuple[tuple[tuple[str, ...], Callable[[Mapping[str, float]], str]], ...] = (
    ((_ANCHOR, _URL), _keywords),
    ((_WORDS,), _probability),
    ((_LEARNED_WORDS,), _learned_words),
    (_WAY, _way),
    ((_BESIDE,), _beside),
    ((_LINKS, _LINKS_SHARE), _links),
    ((_NEW_HOST, _HOST), _host),
)
