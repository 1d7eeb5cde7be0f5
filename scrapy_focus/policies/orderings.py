"""The baselines that every learned policy has to beat: breadth-first, depth-first, words in the URL, random."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.parameters import configurable, parameter
from scrapy_focus.core.reason import Part, Reason, depth_of
from scrapy_focus.policies.bases import Ordering

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.core.types import Link, Outcome, Pick, Placement

#: Words that the URLs of files often contain.
FILE_WORDS = ("pdf", "doc", "ppt", "xls", "csv", "download", "data", "publication")

_LATER = 2.0**-40  # for each link found before; smaller than a word, whatever the size of the crawl


class BreadthFirst(Ordering):
    """Takes links in the order in which they were found.

    Examples
    --------
    >>> from scrapy_focus import Link
    >>> policy = BreadthFirst()
    >>> policy.rank(Link("http://a/", 1), None) > policy.rank(Link("http://b/", 2), None)
    True
    """

    summary: ClassVar[str] = "Takes links in the order of discovery: near the home page first. What most crawlers do."
    paper_names: ClassVar[Mapping[str, Mapping[str, Any]]] = {"BFS": {}}
    reads_page: ClassVar[bool] = False

    def __init__(self) -> None:
        self._found = 0

    def rank(self, link: Link, source: Outcome | None) -> float:
        self._found += 1
        return -float(self._found)


@configurable
class DepthFirst(Ordering):
    """Takes the links of the most recently fetched page first, in document order.

    Examples
    --------
    >>> from scrapy_focus import Link
    >>> policy = DepthFirst()
    >>> first, second = policy.place([Link("http://a/", 1), Link("http://b/", 2)], None)
    >>> first.rank > second.rank
    True
    >>> policy.place([Link("http://c/", 3)], None)[0].rank > first.rank
    True
    """

    summary: ClassVar[str] = "Takes the links of the newest page first, and so goes far from the home page at once."
    paper_names: ClassVar[Mapping[str, Mapping[str, Any]]] = {"DFS": {"last_first": True}}
    reads_page: ClassVar[bool] = False

    last_first: bool = parameter(
        "In the opposite order: the last link of a page first, as in a plain stack. The released baseline of the "
        "SB-CLASSIFIER paper does so.",
        default=False,
    )

    def __attrs_post_init__(self) -> None:
        self._found = 0

    def rank(self, link: Link, source: Outcome | None) -> float:
        self._found += 1
        return float(self._found)

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        if self.last_first:
            return super().place(links, source)
        return list(super().place(links[::-1], source))[::-1]


def _lower(words: Collection[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.lower() for word in words))


def _check_words(words: Collection[str]) -> None:
    if not len(words) or not all(word.strip() for word in words):  # an empty array is neither true nor false
        raise ConfigError("there is no word to look for; give at least one word, and no empty ones")


@configurable
class KeywordFirst(Ordering):
    """Takes the links with the most of some words in their URL first.

    The score of a link is the share of the words that its URL contains, in upper or lower case. Among equals, the link
    found first is first. Nothing is learned. Other crawlers offer this rule, so it is what a learned policy has to
    beat.

    Examples
    --------
    >>> from scrapy_focus import Link
    >>> policy = KeywordFirst()
    >>> about, table = policy.place([Link("http://a/about", 1), Link("http://a/data/1.CSV", 2)], None)
    >>> table.rank > about.rank
    True
    """

    summary: ClassVar[str] = "Takes the links with the most words such as pdf, csv and data in their URL first."
    paper_names: ClassVar[Mapping[str, Mapping[str, Any]]] = {"KEYWORDS": {}}
    reads_page: ClassVar[bool] = False

    words: Collection[str] = parameter(
        "Words or other parts of a URL; their case does not matter.",
        default=FILE_WORDS,
        convert=_lower,
        check=_check_words,
    )

    def __attrs_post_init__(self) -> None:
        self._found = 0

    def rank(self, link: Link, source: Outcome | None) -> float:
        self._found += 1
        url = link.url.lower()
        return sum(word in url for word in self.words) - self._found * _LATER

    def explain(self, pick: Pick) -> Reason:
        url = pick.url.lower()
        words = [word for word in self.words if word in url]
        sentence = f"the URL contains {', '.join(words)}" if words else "the URL contains none of the words"
        return Reason(depth_of(pick), Part(sentence, {"words": words, "score": round(len(words) / len(self.words), 3)}))


class Random(Ordering):
    """Takes any queued link with equal probability."""

    summary: ClassVar[str] = "Takes any known link at random."
    paper_names: ClassVar[Mapping[str, Mapping[str, Any]]] = {"RANDOM": {}}
    reads_page: ClassVar[bool] = False

    def rank(self, link: Link, source: Outcome | None) -> float:
        return float(self.rng.random())

    def select(self, busy: Collection[str]) -> Pick | None:
        awake = int(self.frontier.awake(busy).sum())
        pick = super().select(busy)
        return None if pick is None else pick._replace(chance=1 / awake)
