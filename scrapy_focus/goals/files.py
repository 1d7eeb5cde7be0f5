"""A goal for files of given types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.web.mime import DATA_TYPES, effective_mime, is_vague, matches
from scrapy_focus.web.names import announced_name
from scrapy_focus.web.wanted import Wanted

if TYPE_CHECKING:
    from collections.abc import Collection

    from scrapy_focus.core.types import Outcome, Page


class FilesGoal:
    """The reward is 1 for a file of a wanted type; for a rendered page, the number of such files that its scripts made.

    The type is the one that the server sends. If that is unspecific (``application/octet-stream``, ``text/plain``, no
    type), the extension of the URL decides, or else that of the file name that the server sends, or else the first
    bytes, if available.

    Parameters
    ----------
    types
        Extensions like ``csv``, MIME types, patterns like ``image/*``, or regular expressions of URLs; by default
        ``data``, the types of the SB-CLASSIFIER paper.
    stored
        Count a file only if it yielded an item: with a pipeline that drops files stored before, copies of a file under
        other URLs earn nothing.
    """

    heads_tell = True
    #: The noun for what is counted.
    noun = "files"

    def __init__(self, *, types: Collection[str] = DATA_TYPES, stored: bool = False) -> None:
        if isinstance(types, str):
            raise ConfigError(f"types is {types!r}; it takes a list, such as [{types!r}]")
        self.wanted = Wanted.of(types)
        self.types = self.wanted.types
        self.stored = stored

    def __call__(self, outcome: Outcome) -> float:
        if outcome.status is None or not 200 <= outcome.status < 300 or outcome.error:
            return 0.0
        if outcome.made:
            return self._worth_of_made(outcome)
        url = outcome.pick.url if outcome.page is None else outcome.page.url
        if not self.finds(outcome.mime, url, outcome.page):
            return 0.0
        if self.stored and outcome.pick.method == "GET":
            return float(outcome.items > 0)
        return 1.0

    def _worth_of_made(self, outcome: Outcome) -> float:
        """Return how many of the files made by a page are wanted; if files are stored, at most its items."""
        made = float(sum(self.makes(name) for name in outcome.made))
        if self.stored:
            return min(made, outcome.items)
        return made

    def wants(self, mime: str, url: str) -> bool:
        """Whether a file of this MIME type, from this URL, is a target, judging by these two only."""
        return self._is_one(mime, url) or self.wanted.takes(mime, url)

    def makes(self, name: str) -> bool:
        """Whether a file that scripts made is a target, judging by its name."""
        name = _as_path(name)
        return self.wants(effective_mime("", name), name)

    def finds(self, mime: str, url: str, page: Page | None) -> bool:
        """Whether a response is a target, judging by all its properties."""
        if page is None or not is_vague(mime) or self._is_one(mime, url):
            return self.wants(mime, url)
        mime, name = _told(mime, url, page)
        return self.wants(mime, url) or self.wants(mime, name)

    def _is_one(self, mime: str, url: str) -> bool:
        return matches(mime, self.types) or matches(effective_mime(mime, url), self.types)

    def __repr__(self) -> str:
        return f"files: {self.wanted}{', each content once' if self.stored else ''}"


def file_mime(mime: str, url: str, page: Page) -> str:
    """Return the MIME type of a file: from its server, or else from its URL, its name or its first bytes."""
    return effective_mime(*_told(mime, url, page)) if is_vague(mime) else mime


def _as_path(name: str) -> str:
    """Return a file name as the path of a URL, in which ``?`` or ``#`` would end the path."""
    return name.replace("?", "_").replace("#", "_")


def _told(mime: str, url: str, page: Page) -> tuple[str, str]:
    """Return a MIME type and a name with extension, for a file whose server sends an unspecific type."""
    if effective_mime(mime, url) != mime:
        return mime, url
    name = _as_path(announced_name(page.headers))
    return (mime, name) if effective_mime(mime, name) != mime else (page.kind or mime, name or url)
