"""How relevant files are to a topic, judged by what is known before they are read: their links and their names.

A topic cannot read a spreadsheet or a PDF, and need not: who published the file described it, in the text of the link,
next to it, in the title of the page, and in the name of the file. The crawl shows each link when it finds it, and the
file arrives thousands of requests later. So the relevance of each link is computed once, and a number is kept.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import numpy as np

from scrapy_focus.web.html import title_of
from scrapy_focus.web.link_texts import LETTER, text_of, words_in_name, words_in_url
from scrapy_focus.web.mime import FILE_TYPES
from scrapy_focus.web.names import announced_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.mission import Topic
    from scrapy_focus.core.types import Link, Outcome, Page

_PLACES = 1 << 18  # links that are remembered: 12 bytes each, 3 MB
_LONGEST_NAME = 200  # characters of a name or title


@runtime_checkable
class _SeesTexts(Protocol):
    """A topic that also learns what texts of links look like."""

    def see_links(self, texts: Sequence[str]) -> None:
        """Receive the texts of links, before they are scored."""


@runtime_checkable
class _TellsWords(Protocol):
    """A topic that says which words of a text speak for it."""

    def words_for(self, text: str) -> Sequence[str]:
        """Return these words, the strongest first."""


class LinkRelevance:
    """Remembers the relevance of the links that a crawl met, by their URLs.

    Parameters
    ----------
    topic
        The model. If it has a method ``see_links``, it receives the texts before it scores them.
    places
        How many links are remembered, a power of two. Each URL has one place, and the newest link there wins.

    Notes
    -----
    *Memory*: 12 bytes a place. *Time*: that of the model, once for each new link.

    Examples
    --------
    >>> from scrapy_focus import Link
    >>> from scrapy_focus.topic.keywords import KeywordRelevance
    >>> links = LinkRelevance(KeywordRelevance(["municipal", "budget"]))
    >>> links.see([Link("http://a.test/f/17.pdf", 1, anchor="Municipal budget"), Link("http://a.test/map.pdf", 2)])
    >>> links.at("http://a.test/f/17.pdf"), links.at("http://a.test/map.pdf"), links.at("http://a.test/new.pdf")
    (0.5, 0.0, None)
    """

    def __init__(self, topic: Topic, *, places: int = _PLACES) -> None:
        self.topic = topic
        self._seer = cast("_SeesTexts", topic) if isinstance(topic, _SeesTexts) else None
        self._teller = cast("_TellsWords", topic) if isinstance(topic, _TellsWords) else None
        self._keys: NDArray[np.uint64] = np.zeros(places, np.uint64)  # of the link at each place; 0: none
        self._scores: NDArray[np.float32] = np.zeros(places, np.float32)
        self._page: tuple[int, str] = (-1, "")  # the last page whose links were seen: its pick, and its title

    def see(self, links: Sequence[Link], source: Outcome | None = None) -> None:
        """Judge the links of a page, and remember their relevance; ``source``: as for a goal that sees links."""
        known = [link for link in links if link.url]  # some policies receive known links as keys alone
        if not known:
            return
        title = self._title(source)
        texts = [text_of(link, title) for link in known]
        if self._seer is not None:
            self._seer.see_links(texts)
        keys = np.array([_key(link.url) for link in known], np.uint64)
        places = keys & np.uint64(len(self._keys) - 1)
        self._keys[places] = keys
        self._scores[places] = self.scores(texts)

    def at(self, url: str) -> float | None:
        """Return the relevance of a link that was seen, from 0 to 1; ``None`` for others, and for forgotten ones."""
        key = _key(url)
        place = key & (len(self._keys) - 1)
        return float(self._scores[place]) if int(self._keys[place]) == key else None

    def of(self, url: str, page: Page | None = None, name: str = "") -> float:
        """Return the relevance of the file of a link, from 0 to 1: that of the link when it was seen, or of the names.

        If the server names the file otherwise than the link, the better of both counts.

        Parameters
        ----------
        url
            The URL of the link, before redirects.
        page
            The response, whose own URL or headers may name the file better.
        name
            Another name of the file, if there is one.
        """
        seen, in_url = self.at(url), words_in_url(url)
        more = [each for each in dict.fromkeys(_names(page, name)) if each not in in_url]
        if seen is None:
            return float(self.scores([" ".join([in_url, *more]).strip()])[0])
        if not more:
            return seen
        return max(seen, float(self.scores([" ".join(more)])[0]))

    def words(self, url: str, page: Page | None = None, name: str = "", anchor: str = "") -> list[str]:
        """Return the words of a link and of the names of its file that spoke for it, if the model tells them; neither
        numbers nor types of files.
        """
        if self._teller is None:
            return []
        parts = dict.fromkeys([anchor, words_in_url(url), *_names(page, name)])
        words = self._teller.words_for(" ".join(filter(None, parts)))
        return [word for word in words if LETTER.search(word) and word.lower() not in FILE_TYPES]

    def scores(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the relevance of each text, from 0 to 1, shape (n,)."""
        return np.clip(np.nan_to_num(np.asarray(self.topic.score(texts), np.float64)), 0.0, 1.0)

    def _title(self, source: Outcome | None) -> str:
        """Return the title of a page, computed once for its links, which come in parts."""
        if source is None or source.page is None or not source.is_html:
            return ""
        if self._page[0] != source.pick.id:
            self._page = source.pick.id, _title_of(source.page)
        return self._page[1]

    def state(self) -> dict[str, Any]:
        """Return what is remembered, as arrays: without empty places."""
        there = self._keys.nonzero()[0]
        return {"keys": self._keys[there], "scores": self._scores[there]}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what was remembered."""
        keys = np.asarray(state["keys"], np.uint64)
        places = keys & np.uint64(len(self._keys) - 1)
        self._keys[:] = 0
        self._keys[places] = keys
        self._scores[places] = np.asarray(state["scores"], np.float32)


def _title_of(page: Page) -> str:
    """Return the title of a page; if a job records what is read of it, nothing else is recorded."""
    made = getattr(page, "made", None)
    title = title_of(page.text) if made is None else made("title", lambda page: title_of(page.text))
    return str(title)[:_LONGEST_NAME]


def _names(page: Page | None, name: str) -> list[str]:
    """Return the words of further names of a file: those that its server sends, and that of its final URL."""
    names = [words_in_name(name)]
    if page is not None:
        names += [words_in_name(announced_name(page.headers)), words_in_url(page.url)]
    return [each for each in names if each]


def _key(url: str) -> int:
    """Return the 64 bits by which a URL is known: the same in a live and in a simulated crawl."""
    return int.from_bytes(blake2b(url.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") or 1
