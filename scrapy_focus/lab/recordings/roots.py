"""Doubts about the roots of a recording: URLs that are missing because they begin differently.

A copy of a site holds one scheme and host. With ``http://`` for ``https://``, or without ``www.``, all full links of
its pages are missing, or are behind a redirect each time, and a comparison on such a recording says little about the
site.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from scrapy_focus.lab.recordings.format import open_recording, reading, roots_of

if TYPE_CHECKING:
    from pathlib import Path

_SHARE = 0.05  # share of all URLs at which there is a doubt
_NAMED = 3  # hosts
_URLS = (
    "SELECT pages.url, pages.status IS NULL AND pages.error IS NULL, leads.url FROM pages "
    "LEFT JOIN pages AS leads ON leads.id = pages.redirect"
)


class Doubt(NamedTuple):
    """The evidence against the roots of a recording."""

    reason: str  # in words
    root: str  # the root that is probably meant; "": the roots are right, and other hosts are missing

    def __str__(self) -> str:
        advice = f": is {self.root} its root? Record it from there, into another file" if self.root else ""
        return f"{self.reason}{advice}."


def doubt_of(path: Path) -> Doubt | None:
    """Return the evidence against the roots of a recording, ``None`` for none; linear in its URLs.

    Raises
    ------
    RecordingError
        If it cannot be read.
    """
    roots = roots_of(path)
    counts = _count(path, {_origin(root) for root in roots})
    for root in roots:
        doubt = _doubt_of_root(root, counts)
        if doubt is not None:
            return doubt
    n = counts.missing.total()
    if not n or n < _SHARE * counts.known:
        return None
    hosts = ", ".join(f"{origin} ({each:,})" for origin, each in counts.missing.most_common(_NAMED))
    more = " and others" if len(counts.missing) > _NAMED else ""
    share = f"{n:,} of {counts.known:,} URLs ({n / counts.known:.1%})"
    return Doubt(f"{share} are at other hosts and missing: {hosts}{more}", "")


class _Counts(NamedTuple):
    """Where the URLs of a recording are, by their origins."""

    roots: set[str]
    known: int  # URLs, in all
    missing: Counter[str]  # linked URLs at other places than roots that were not recorded
    moved: Counter[tuple[str, str]]  # redirects from one to the other


def _count(path: Path, roots: set[str]) -> _Counts:
    known = 0
    missing: Counter[str] = Counter()
    moved: Counter[tuple[str, str]] = Counter()
    with closing(open_recording(path, writable=False)) as database, reading(path):
        for url, is_missing, leads in database.execute(_URLS):
            known += 1
            origin = _origin(url)
            if is_missing and origin not in roots:
                missing[origin] += 1
            elif leads is not None and (target := _origin(leads)) != origin:
                moved[origin, target] += 1
    return _Counts(roots, known, missing, moved)


def _doubt_of_root(root: str, counts: _Counts) -> Doubt | None:
    """Return the doubt whether a crawl from a root should have begun at another origin of the same host."""
    origin = _origin(root)
    others = {each for each in counts.missing if _same_host(each, origin)}
    for source, to in counts.moved:
        if source == origin and to not in counts.roots and _same_host(to, origin):
            others.add(to)
    strayed = Counter({each: counts.missing[each] + counts.moved[origin, each] for each in others})
    for other, n in strayed.most_common(1):
        if n >= _SHARE * counts.known:
            share = f"{n:,} of {counts.known:,} URLs ({n / counts.known:.1%})"
            return Doubt(f"{share} are at {other} and missing, or redirect there", other + root[len(origin) :])
    return None


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _same_host(one: str, other: str) -> bool:
    """Whether two origins are of one host, with ``www.`` or without."""
    return _bare(one) == _bare(other)


def _bare(origin: str) -> str:
    return (urlsplit(origin).hostname or "").removeprefix("www.")
