"""Whether the pages of a recorded site have changed when they are fetched again, as a live crawl would find out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from scrapy_focus.web.validators import etag_of, max_age_of, modified_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_focus.recordings.format import RecordedSite

_NOT_FOUND, _GONE = 404, 410
_MISSES = 3  # answers 404 in a row, after which a page is gone


class Versions(Protocol):
    """Says which version of a page of a recorded site there is at a time."""

    def __call__(self, page: int, at: float) -> int:
        """Return a number that is another one where the page, by its number, reads otherwise."""


class Known:
    """What a crawl has seen of each page that it may fetch again."""

    def __init__(self, site: RecordedSite, versions: Versions | None = None) -> None:
        self.site = site
        self.versions = versions
        self._seen: dict[int, tuple[int, int]] = {}  # by key: what came last
        self._misses: dict[int, int] = {}  # by key: answers 404 in a row
        self._headers: dict[int, tuple[bool, float | None]] = {}  # by URL: what they say

    def changed(self, key: int, page: int, at: float) -> bool | None:
        """Return whether a page that came is another one than at its last visit, ``None`` at the first."""
        version = int(self.site.digest[page]) or page, 0 if self.versions is None else self.versions(page, at)
        before, self._seen[key] = self._seen.get(key), version
        return None if before is None else before != version

    def can_tell(self, page: int) -> bool:
        """Whether the server of a URL can say that nothing has changed."""
        return self._said(page)[0]

    def max_age(self, page: int) -> float | None:
        """Return for how many seconds a URL says that it stays as it is."""
        return self._said(page)[1]

    def is_gone(self, key: int, status: int) -> bool:
        """Note an answer, and return whether the page is not to be fetched again, whatever the policy says."""
        if status == _NOT_FOUND:
            self._misses[key] = self._misses.get(key, 0) + 1
        elif 200 <= status < 300:
            self._misses.pop(key, None)
        return status == _GONE or self._misses.get(key, 0) >= _MISSES

    def _said(self, page: int) -> tuple[bool, float | None]:
        said = self._headers.get(page)
        if said is None:
            headers = {name.lower(): value for name, value in self.site.headers(page).items()}
            said = self._headers[page] = _can_tell(headers), _max_age(headers)
        return said


def _can_tell(headers: Mapping[str, str]) -> bool:
    return any(
        read([headers[name]]) for name, read in (("etag", etag_of), ("last-modified", modified_of)) if name in headers
    )


def _max_age(headers: Mapping[str, str]) -> float | None:
    said = headers.get("cache-control")
    return None if said is None else max_age_of([said], headers.get("age", ""))
