"""What making a recording from something that lies on disk has in common: the first page is found, answers are written.

An archive does not say where a crawl started, and a recording must. The first page that answered well is taken, and
where redirects led to it, the first of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from w3lib.url import canonicalize_url, safe_url_string

from scrapy_focus.recordings.format import mime_of
from scrapy_focus.recordings.html import redirect_of
from scrapy_focus.recordings.writer import SiteWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from scrapy_focus.recordings.format import Completeness
    from scrapy_focus.recordings.writer import Answer


class FirstPage:
    """Looks at answers in the order in which they came, and knows where their crawl started.

    Parameters
    ----------
    root
        URL that has to be among them, where the user named one.
    """

    def __init__(self, root: str | None = None) -> None:
        self.has_root = False
        self.page: str | None = None
        self._root = None if root is None else identity(root)
        self._came_from: dict[str, str] = {}

    @property
    def is_known(self) -> bool:
        """Whether nothing that comes can change the answer."""
        return self.page is not None and (self._root is None or self.has_root)

    def see(self, url: str, status: int | None, headers: Mapping[str, str]) -> None:
        """Take note of one answer."""
        self.has_root = self.has_root or identity(url) == self._root
        if self.page is not None or status is None:
            return
        if leads := redirect_of(url, status, headers):
            self._came_from.setdefault(identity(leads), url)
        elif status == 200 and "html" in mime_of(headers) and not url.endswith("/robots.txt"):
            while (before := self._came_from.pop(identity(url), None)) is not None:
                url = before
            self.page = url


def merge_headers(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers by name; those that came several times are joined by commas, but for those of which the last counts."""
    merged: dict[str, str] = {}
    for spelled, value in pairs:
        name = spelled.strip().title()
        single = name in ("Content-Type", "Location") or name not in merged
        merged[name] = value if single else f"{merged[name]}, {value}"
    return merged


def identity(url: str) -> str:
    """Return by what a URL is told apart; itself where it is none."""
    try:
        return canonicalize_url(safe_url_string(url))
    except ValueError:
        return url


def record_answers(
    answers: Iterable[Answer],
    path: str | Path,
    *,
    root: str,
    bodies: bool,
    source: str,
    progress: Callable[[int], None] | None,
) -> Completeness:
    """Write answers to a recording, which is finished when they come to an end.

    Raises
    ------
    RecordingError
        If the recording cannot be written. Whatever the answers raise leaves a readable, unfinished recording.
    """
    with SiteWriter(path, roots=[root], bodies=bodies, source=source) as writer:
        for answer in answers:
            writer.add(answer)
            if progress is not None:
                progress(writer.added)
        return writer.finish()
