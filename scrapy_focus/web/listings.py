"""XML and JSON that a site has for machines that look for its pages: lists of links, and no data of their own."""

from __future__ import annotations

import json
import re
import zlib
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

Listing = Literal["sitemap", "feed", "catalogue", "description", ""]

READ = 4096  # bytes of a body that say what it is
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
)
_JSON_FEED = re.compile(rb'"version"\s{0,9}:\s{0,9}"https?:(?:\\?/){2}jsonfeed\.org(?:\\?/)')
_LISTED = re.compile(rb'"(?:downloadURL|accessURL|landingPage)"\s{0,9}:\s{0,9}("(?:[^"\\]|\\.){1,2000}")')
_BLANK = b" \t\r\n"


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
    """Say which kind of listing the beginning of a body is, ``""`` for anything else.

    *Sitemaps* have the root ``urlset`` or ``sitemapindex``; *feeds* are RSS, Atom and JSON Feed, but not what a data
    service (OData) sends as Atom; a *catalogue* lists data sets, as the ``data.json`` of an open data portal does
    (DCAT); a *description* is for browsers and search boxes.

    Examples
    --------
    >>> listing_of(b'<?xml version="1.0"?><!-- <rss> --><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">')
    'sitemap'
    >>> listing_of(b'<kml xmlns="http://www.opengis.net/kml/2.2">'), listing_of(b'{"type": "FeatureCollection"}')
    ('', '')
    """
    body = body.removeprefix(b"\xef\xbb\xbf").lstrip(_BLANK)
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


def listed_in(catalogue: bytes) -> Iterator[str]:
    """Yield the URLs of a catalogue of data sets: of files, of what leads to them, and of their pages."""
    for found in _LISTED.finditer(catalogue[:_MOST]):
        try:
            yield json.loads(found[1])
        except ValueError:
            continue


def whole(body: bytes) -> bytes:
    """Return as much of a listing as is read, ten megabytes, inflated if it is gzip."""
    return beginning(body, _MOST)


def _root(body: bytes) -> bytes:
    """Return the name of the first element without its prefix, ``b""`` where there is none."""
    at = 0
    while (at := body.find(b"<", at)) >= 0:
        if body.startswith((b"<?", b"<!"), at):
            comment = body.startswith(b"<!--", at)
            end = b"?>" if body[at + 1] == ord("?") else b"-->" if comment else b">"
            at = body.find(end, at)
            if at < 0:
                return b""
            continue
        found = _NAME.match(body, at)
        return found[1] if found else b""
    return b""
