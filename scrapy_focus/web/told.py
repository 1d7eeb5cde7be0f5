"""Which entries of sitemaps and feeds are news of pages, and may be believed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import urljoin, urlsplit

from scrapy_focus.web.changed import believed, read_moment
from scrapy_focus.web.domains import domain_of

if TYPE_CHECKING:
    from scrapy_focus.web.entries import Listed

_REMEMBERED = 200_000  # entries; between one and two times as many
_LONGEST = 4096  # characters of a URL

#: Why an entry is no news: it has no URL that can be asked for; no date; a date that is none; one in the future; a page
#: of another domain; or the date that was told before.
Reason = Literal["no_url", "undated", "unreadable", "future", "elsewhere", "repeated"]


class Change(NamedTuple):
    """Somebody says of a page when it changed last."""

    url: str  # absolute
    modified: float  # seconds since the epoch


class Told:
    """Tells news from what was told before.

    A sitemap says the same of most pages each time that it is read, so of each page the last date is remembered as it
    was written: of the last 200,000 at least. A listing speaks for the pages of its own registered domain only.

    Examples
    --------
    >>> from scrapy_focus.web.entries import Listed
    >>> told, entry = Told(), Listed("/a", changed="1970-01-02T00:00:00Z")
    >>> told.news(entry, "http://h.test/feed.xml", now=90_000.0)
    Change(url='http://h.test/a', modified=86400.0)
    >>> told.news(entry, "http://h.test/feed.xml", now=90_000.0)
    'repeated'
    """

    def __init__(self) -> None:
        self._new: dict[int, int] = {}
        self._old: dict[int, int] = {}

    def news(self, entry: Listed, listing: str, now: float) -> Change | Reason:
        """Return what an entry of the listing at this URL says, or why it says nothing; ``now`` in seconds since the
        epoch.
        """
        url = absolute(listing, entry.url)
        if not url:
            return "no_url"
        if not entry.changed:
            return "undated"
        if not self._is_new(url, entry.changed):
            return "repeated"
        moment = read_moment(entry.changed)
        if moment is None:
            return "unreadable"
        modified = believed(moment, now)
        if modified is None:
            return "future"
        if domain_of(urlsplit(url).hostname or "") != domain_of(urlsplit(listing).hostname or ""):
            return "elsewhere"
        return Change(url, modified)

    def _is_new(self, url: str, said: str) -> bool:
        """Whether something else was told of a page, or nothing; it is remembered."""
        page, text = hash(url), hash(said)
        before = self._new.get(page)
        if before is None:
            before = self._old.get(page)
            self._new[page] = text
            if len(self._new) >= _REMEMBERED:
                self._old, self._new = self._new, {}
        elif before != text:
            self._new[page] = text
        return before != text


def absolute(base: str, url: str) -> str:
    """Return an URL that is relative to another, without its fragment; ``""`` for what cannot be asked for.

    Examples
    --------
    >>> absolute("http://h.test/feed.xml", "a#b"), absolute("http://h.test/feed.xml", "javascript:x")
    ('http://h.test/a', '')
    """
    if not url:
        return ""
    try:
        joined = urljoin(base, url.strip()).partition("#")[0]
        known = joined.startswith(("http://", "https://")) and urlsplit(joined).hostname
    except ValueError:
        return ""
    return joined if known and len(joined) <= _LONGEST else ""
