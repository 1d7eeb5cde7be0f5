"""Recognizes XML, JSON and text for machines that look for a site's pages: lists of links, without data."""

from __future__ import annotations

import json
import re
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

Listing = Literal["sitemap", "feed", "catalogue", "description", ""]

READ = 4096  # bytes of a body that identify it
_MOST = 10_000_000  # bytes of a listing that are read
_ROOTS: dict[bytes, Listing] = {
    b"urlset": "sitemap",
    b"sitemapindex": "sitemap",
    b"rss": "feed",
    b"feed": "feed",
    b"OpenSearchDescription": "description",
    b"browserconfig": "description",
    b"cross-domain-policy": "description",
    b"rsd": "description",
}
_NAME = re.compile(rb"<(?:[A-Za-z_][\w.\-]{0,50}:)?([A-Za-z_][\w.\-]{0,50})")
_CATALOGUE = re.compile(
    rb'"@type"\s{0,9}:\s{0,9}"dcat:Catalog"|"conformsTo"\s{0,9}:\s{0,9}"https?://project-open-data\.'
    rb'|\A\{\s{0,9}"help"\s{0,9}:\s{0,9}"[^"]{0,1000}help_show\?name=(?!datastore_)'
)
_JSON_FEED = re.compile(rb'"version"\s{0,9}:\s{0,9}"https?:(?:\\?/){2}jsonfeed\.org(?:\\?/)')
_LISTED = re.compile(rb'"(?:downloadURL|accessURL|landingPage)"\s{0,9}:\s{0,9}("(?:[^"\\]|\\.){1,2000}")')
_BLANK = b" \t\r\n"
_SCHEMES = (b"http://", b"https://")


def beginning(body: bytes, size: int = READ) -> bytes:
    """Return the first bytes of a body, inflated if it is gzip.

    Examples
    --------
    >>> import gzip
    >>> beginning(gzip.compress(b"<urlset>" + bytes(9000)), 8)
    b'<urlset>'
    """
    if not body.startswith(b"\x1f\x8b"):
        return body[:size]
    try:
        return zlib.decompressobj(wbits=31).decompress(body, size)
    except zlib.error:
        return b""


def listing_of(body: bytes) -> Listing:
    """Return the kind of listing that a body starts with, ``""`` for anything else.

    *Sitemaps* have the root ``urlset`` or ``sitemapindex``; *feeds* are RSS, Atom and JSON Feed, but not the Atom of
    data services (OData); a *catalogue* lists data sets, like the ``data.json`` of an open data portal (DCAT); a
    *description* is for browsers and search boxes.

    Examples
    --------
    >>> listing_of(b'<?xml version="1.0"?><!-- <rss> --><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">')
    'sitemap'
    >>> listing_of(b'<kml xmlns="http://www.opengis.net/kml/2.2">'), listing_of(b'{"type": "FeatureCollection"}')
    ('', '')
    """
    body = _without_mark(body)
    if body.startswith(b"<"):
        root = _root(body)
        if root == b"RDF" and b"purl.org/rss/1.0" in body:
            return "feed"
        if root == b"feed" and (b"/ado/2007/08/dataservices" in body or b"/odata/ns/" in body):
            return ""
        return _ROOTS.get(root, "")
    if body.startswith(b"{"):
        if _CATALOGUE.search(body):
            return "catalogue"
        if _JSON_FEED.search(body):
            return "feed"
    return ""


def lists_urls(body: bytes) -> bool:
    """Whether a body starts with text that has one URL on each line, as a sitemap may.

    Examples
    --------
    >>> lists_urls(b"https://a.test/1\\r\\n\\r\\nhttps://a.test/2"), lists_urls(b"see https://a.test/1")
    (True, False)
    """
    lines = [words for line in _without_mark(body).splitlines() if (words := line.split())]
    if len(body) >= READ and len(lines) > 1:
        del lines[-1]  # it may be cut
    return bool(lines) and all(len(line) == 1 and line[0].lower().startswith(_SCHEMES) for line in lines)


def listed_in(catalogue: bytes) -> Iterator[str]:
    """Yield the URLs of a catalogue of data sets: of files, of pages that lead to them, and of their pages."""
    for found in _LISTED.finditer(catalogue[:_MOST]):
        try:
            yield json.loads(found[1])
        except ValueError:
            continue


def whole(body: bytes) -> bytes:
    """Return the first ten megabytes of a listing, inflated if it is gzip."""
    return beginning(body, _MOST)


def _without_mark(body: bytes) -> bytes:
    """Return the start of a UTF-8 text without byte order mark and blanks."""
    if body.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        body = body.decode("utf-16", "ignore").encode()
    return body.lstrip(_BLANK).removeprefix(BOM_UTF8).lstrip(_BLANK)


def _root(body: bytes) -> bytes:
    """Return the name of the first element without its prefix, ``b""`` if there is none."""
    at = 0
    while (at := body.find(b"<", at)) >= 0:
        if not body.startswith((b"<?", b"<!"), at):
            found = _NAME.match(body, at)
            return found[1] if found else b""
        if body.startswith(b"<?", at):
            end = b"?>"
        elif body.startswith(b"<!--", at):
            end = b"-->"
        else:
            end = b">"
        at = body.find(end, at)
        if at < 0:
            return b""
    return b""
