"""The list of news of a watched site: a line for each article when it was first seen, and one for each change."""

from __future__ import annotations

import json
from collections import deque
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from scrapy_focus.core.printable import printable_logger
from scrapy_focus.finders.kit.records.folder_names import NEWS
from scrapy_focus.finders.kit.records.lines import add_line, cut_line, number_in, text_in
from scrapy_focus.finders.kit.records.times import time_of, time_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from scrapy_focus.finders.kit.spiders.items import By

logger = printable_logger(__name__)


State = Literal["new", "changed"]

_MOST = 200_000  # articles that are remembered
_BY: tuple[By, ...] = ("page", "feed", "sitemap", "start")
_LONGEST_LINE = 1 << 20  # bytes


class Article(NamedTuple):
    """A line of the list."""

    url: str
    title: str
    state: State
    at: float  # when this version was seen, in seconds since the epoch
    first_seen: float  # when the article was first seen, likewise
    published: float | None  # as stated on the page; None: not stated
    by: By  # where its link was found
    page: str  # URL of that page, "" for a start URL
    anchor: str  # text of the link
    changed_since: float | None = None  # when the previous version was seen; None: this is the first
    changes: int = 0  # changes seen so far
    digest: str = ""  # the same for the same text, "" if unknown
    text: str = ""  # a digest of its main text, which identifies a version; "" likewise

    @property
    def id(self) -> str:
        """A permanent name for the article: a URN of its URL."""
        return uuid5(NAMESPACE_URL, self.url.encode(errors="backslashreplace").decode()).urn

    @property
    def delay(self) -> float | None:
        """Seconds from publication to first sight; ``None`` if unknown."""
        if self.published is None:
            return None
        return max(0.0, self.first_seen - self.published)


class _Known(NamedTuple):
    """What is remembered of an article."""

    first_seen: float
    last: float  # when its last version was seen
    changes: int
    digest: str
    text: str

    def is_another(self, article: Article) -> bool:
        """Whether an article is a different version from this one.

        The digests of the main text are compared. A line of an earlier version of this package has no such digest, or
        one of another method: then the text of its paragraphs is compared instead.
        """
        if _way_of(self.text) == _way_of(article.text) != "":
            return self.text != article.text
        return not (self.digest and self.digest == article.digest)


class NewsList:
    """The list of a folder, read once and added to.

    Parameters
    ----------
    out
        The folder.

    Notes
    -----
    *Memory*: about 500 bytes per article, for the last 200,000. A forgotten article would be listed as new again.
    """

    def __init__(self, out: Path) -> None:
        self.path = out / NEWS
        self._known: dict[int, _Known] = {}
        self._texts: dict[int, None] = {}  # of articles, by their digests
        cut_line(self.path)
        for article in NewsReader(self.path).read():
            self._remember(article)

    def __len__(self) -> int:
        """How many articles are remembered."""
        return len(self._known)

    def __contains__(self, url: str) -> bool:
        return _key(url) in self._known

    def begin(self) -> None:
        """Create the list, even if nothing is found."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch()

    def see(self, article: Article) -> Article | None:
        """List an article that is new or has changed, and return it as listed.

        Return ``None``, without a line, for a version that is already listed, as when an article was fetched again
        after a kill or its page changed only around it; and for a new article with the text of another one.
        """
        known = self._known.get(_key(article.url))
        if article.state == "new":
            if known is not None or (article.digest and _key(article.digest) in self._texts):
                return None
            listed = article._replace(first_seen=article.at, changed_since=None, changes=0)
        elif known is None or article.at <= known.last or not known.is_another(article):
            return None
        else:
            listed = article._replace(first_seen=known.first_seen, changed_since=known.last, changes=known.changes + 1)
        add_line(self.path, _line(listed))
        self._remember(listed)
        return listed

    def _remember(self, article: Article) -> None:
        key = _key(article.url)
        self._known.pop(key, None)
        self._known[key] = _Known(article.first_seen, article.at, article.changes, article.digest, article.text)
        if article.digest:
            self._texts[_key(article.digest)] = None
        for remembered in (self._known, self._texts):
            if len(remembered) > _MOST:
                del remembered[next(iter(remembered))]


class NewsReader:
    """Reads a list from its beginning, and then the lines added since the last call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged = 0  # lines that could not be read
        self._offset = 0  # bytes

    def read(self) -> Iterator[Article]:
        """Yield the articles not yet read, a line at a time; an incomplete last line is left for the next call.

        Raises
        ------
        OSError
            If the file cannot be read.
        """
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        with file:
            file.seek(self._offset)
            while (line := file.readline(_LONGEST_LINE)).endswith(b"\n"):
                self._offset += len(line)
                article = _article(line)
                if article is None:
                    self.damaged += 1
                else:
                    yield article


def newest(articles: Iterator[Article], most: int) -> list[Article]:
    """Return the last lines of a list, the newest first, and only the newest of each article."""
    found: dict[str, Article] = {}
    for article in reversed(deque(articles, maxlen=4 * most)):
        if len(found) < most:
            found.setdefault(article.url, article)
    return [*found.values()]


def _line(article: Article) -> dict[str, Any]:
    """Return an article as a line, with the number of its changes only if there are any."""
    line: dict[str, Any] = {
        "url": article.url, "title": article.title, "state": article.state, "at": time_text(article.at),
        "first_seen": time_text(article.first_seen), "published": time_text(article.published) or None,
        "by": article.by, "page": article.page, "anchor": article.anchor, "id": article.id,
        "digest": article.digest, "text": article.text,
    }  # fmt: skip
    if article.state == "changed":
        line |= {"changed_since": time_text(article.changed_since), "changes": article.changes}
    return line


def _article(line: bytes) -> Article | None:
    """Return the article in a line, ``None`` if it is malformed."""
    try:
        fields: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or not text_in(fields, "url"):
        return None
    at = time_of(text_in(fields, "at"))
    if at is None:
        return None
    first = time_of(text_in(fields, "first_seen"))
    return Article(
        url=text_in(fields, "url"),
        title=text_in(fields, "title"),
        state="changed" if fields.get("state") == "changed" else "new",
        at=at,
        first_seen=at if first is None else first,
        published=time_of(text_in(fields, "published")),
        by=_by(fields),
        page=text_in(fields, "page"),
        anchor=text_in(fields, "anchor"),
        changed_since=time_of(text_in(fields, "changed_since")),
        changes=number_in(fields, "changes"),
        digest=text_in(fields, "digest"),
        text=text_in(fields, "text"),
    )


def _way_of(digest: str) -> str:
    """Return the method of a text digest."""
    return digest.partition(":")[0]


def _by(fields: Mapping[str, Any]) -> By:
    return next((by for by in _BY if fields.get("by") == by), "page")


def _key(url: str) -> int:
    return int.from_bytes(blake2b(url.encode(errors="surrogatepass"), digest_size=8).digest())
