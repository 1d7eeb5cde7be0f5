"""Decides which entries of sitemaps and feeds are news about pages, and credible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import urljoin, urlsplit

from scrapy_focus.web.changed import believed, read_moment
from scrapy_focus.web.domains import domain_of

if TYPE_CHECKING:
    from scrapy_focus.web.entries import Listed

_REMEMBERED = 200_000  # entries; remembers between one and two times as many
_LONGEST = 4096  # characters of a URL

#: Why an entry is not news: no requestable URL; no date; an invalid date; a date in the future; a page of another
#: domain; or the same date as before.
Reason = Literal["no_url", "undated", "unreadable", "future", "elsewhere", "repeated"]


class Change(NamedTuple):
    """A statement about when a page last changed."""

    url: str  # absolute
    modified: float  # seconds since the epoch


class ListingNews:
    """Separates news from what was known before.

    A sitemap says the same about most pages each time that it is read. So the last date, as written, is remembered for
    each listing and page: the last 200,000 at least. A listing is believed about pages of its own registered domain
    only.

    Examples
    --------
    >>> from scrapy_focus.web.entries import Listed
    >>> seen, entry = ListingNews(), Listed("/a", changed="1970-01-02T00:00:00Z")
    >>> seen.news(entry, "http://h.test/feed.xml", now=90_000.0)
    Change(url='http://h.test/a', modified=86400.0)
    >>> seen.news(entry, "http://h.test/feed.xml", now=90_000.0)
    'repeated'
    """

    def __init__(self) -> None:
        self._new: dict[int, int] = {}
        self._old: dict[int, int] = {}

    def news(self, entry: Listed, listing: str, now: float) -> Change | Reason:
        """Return the news in an entry of the listing at this URL, or why there is none.

        ``now`` is in seconds since the epoch.
        """
        url = absolute(listing, entry.url)
        if not url:
            return "no_url"
        if not entry.changed:
            return "undated"
        if not self._is_new(listing, url, entry.changed):
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

    def _is_new(self, listing: str, url: str, said: str) -> bool:
        """Whether a listing's statement about a page is new; it is remembered."""
        page, text = hash((listing, url)), hash(said)
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
    """Return a URL joined with its base, without its fragment; ``""`` if it cannot be requested.

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
