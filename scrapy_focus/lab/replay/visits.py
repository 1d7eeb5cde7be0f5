"""Whether the pages of a recorded site have changed when they are revisited, as a live crawl would find out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.web.validators import etag_of, max_age_of, modified_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_focus.lab.recordings.format import RecordedSite

_NOT_FOUND, _GONE = 404, 410
_MISSES = 3  # answers 404 in a row after which a page is gone


class Known:
    """What a crawl has seen of each page that it may revisit."""

    def __init__(self, site: RecordedSite) -> None:
        self.site = site
        self._seen: dict[int, int] = {}  # by key: the last answer
        self._misses: dict[int, int] = {}  # by key: answers 404 in a row
        self._headers: dict[int, tuple[bool, float | None]] = {}  # by answer: the stated lifetimes

    def changed(self, key: int, answer: int) -> bool | None:
        """Return whether a fetched page changed since its last visit, ``None`` at the first."""
        version = int(self.site.answers.digest[answer]) or answer
        before, self._seen[key] = self._seen.get(key), version
        return None if before is None else before != version

    def can_tell(self, answer: int) -> bool:
        """Whether a server can report that an answer is unchanged."""
        return self._said(answer)[0]

    def max_age(self, answer: int) -> float | None:
        """Return for how many seconds an answer claims to stay unchanged."""
        return self._said(answer)[1]

    def is_gone(self, key: int, status: int) -> bool:
        """Record an answer, and return whether the page must not be fetched again, whatever the policy says."""
        if status == _NOT_FOUND:
            self._misses[key] = self._misses.get(key, 0) + 1
        elif 200 <= status < 300:
            self._misses.pop(key, None)
        return status == _GONE or self._misses.get(key, 0) >= _MISSES

    def _said(self, answer: int) -> tuple[bool, float | None]:
        said = self._headers.get(answer)
        if said is None:
            headers = {name.lower(): value for name, value in self.site.headers(answer).items()}
            said = self._headers[answer] = _can_tell(headers), _max_age(headers)
        return said


def _can_tell(headers: Mapping[str, str]) -> bool:
    return any(
        read([headers[name]]) for name, read in (("etag", etag_of), ("last-modified", modified_of)) if name in headers
    )


def _max_age(headers: Mapping[str, str]) -> float | None:
    said = headers.get("cache-control")
    return None if said is None else max_age_of([said], headers.get("age", ""))
