"""Tell which links led to finds: links are grouped if they have the same text on pages whose URLs begin alike.

Links with rare texts, such as titles, are grouped by the extension of what they led to. Links to pages on a topic
are mostly titles: for these, words are counted instead.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from scrapy_focus.core.printable import VALUE
from scrapy_focus.web.link_kinds import links_like, pages_like, text_like
from scrapy_focus.web.mime import extension
from scrapy_focus.web.words import words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.finders.kit.records.notes import Answer

_LEAST = 3  # finds that links with the same text must lead to before the text gets its own row ...
_SHARE = 0.02  # ... and their share of all finds


class Paid(NamedTuple):
    """A group of similar links, and what following them found."""

    words: str  # their text, or a word in it; "": all links that led to nothing
    found: int
    requests: int
    examples: tuple[Answer, ...] = ()  # of those that led to a find, two at most


def paid(answers: Sequence[Answer]) -> list[Paid]:
    """Return the groups of links that led to finds, the most fruitful first; the last one is all links without finds.

    Each request is in exactly one group; the last group is omitted if empty.
    """
    texts = [text_like(answer.anchor, VALUE) for answer in answers]
    common = _common(texts, answers)
    finds: dict[str, list[Answer]] = defaultdict(list)
    requests: Counter[str] = Counter()
    for answer, text in zip(answers, texts, strict=True):
        pages = pages_like(answer.page, VALUE)
        if text in common:
            words = links_like(text, "", pages)
        else:
            words = links_like("", extension(answer.url)[:VALUE], pages)
        requests[words] += answer.sent
        if answer.files > 0:
            finds[words].append(answer)
    found = [Paid(words, len(alike), requests[words], _examples(alike)) for words, alike in finds.items()]
    found.sort(key=lambda each: (-each.found, each.requests, each.words))
    fruitless = requests.total() - sum(each.requests for each in found)
    return [*found, Paid("", 0, fruitless)] if fruitless else found


def _examples(finds: Sequence[Answer]) -> tuple[Answer, ...]:
    """Return the first find of a group, and the first one from another page, or else the second."""
    first, *others = finds
    other = next((each for each in others if each.page != first.page), None)
    return (first, *([other] if other else others[:1]))


def _common(texts: Sequence[str], answers: Sequence[Answer]) -> set[str]:
    """Return the texts that led to enough finds for a row of their own."""
    counts = Counter(text for answer, text in zip(answers, texts, strict=True) if answer.files > 0)
    least = max(_LEAST, _SHARE * counts.total())
    return {text for text, n in counts.items() if text and n >= least}


def words_paid(answers: Sequence[Answer]) -> list[Paid]:
    """Return the words in link texts that led to two or more finds, the most fruitful first."""
    found: Counter[str] = Counter()
    requests: Counter[str] = Counter()
    for answer in answers:
        for word in set(words_of(answer.anchor)):
            found[word] += answer.files > 0
            requests[word] += answer.sent
    paid = [Paid(word, n, requests[word]) for word, n in found.items() if n > 1]
    return sorted(paid, key=lambda each: (-each.found, each.requests, each.words))
