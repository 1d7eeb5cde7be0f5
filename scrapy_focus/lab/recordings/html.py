"""Reads a web page as a crawl with Scrapy would: the same text, the same links, in the same places.

Two requirements conflict: the same result as Scrapy's own functions, and a million links in a minute. So a link is
joined, repaired and quoted by these functions, but once for all pages of a folder: a menu is the same on all of them.
"""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from parsel import Selector
from w3lib.encoding import html_to_unicode
from w3lib.html import get_base_url, get_meta_refresh, strip_html5_whitespace
from w3lib.url import canonicalize_url, safe_url_string

from scrapy_focus.core.errors import RecordingError
from scrapy_focus.core.printable import printable_logger
from scrapy_focus.web.html import Place, PlaceReader
from scrapy_focus.web.linkurls import joined, safe_url, without_credentials
from scrapy_focus.web.mime import parse_mime

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lxml.etree import _Element

logger = printable_logger(__name__)

REDIRECTING = (301, 302, 303, 307, 308)  # statuses whose Location Scrapy follows
_HEAD = 4096  # characters searched for a <base> or a refresh, as in Scrapy
_SOON = 100  # seconds: a refresh that takes longer is not followed, Scrapy's METAREFRESH_MAXDELAY
_LONGEST = 2083  # characters of a URL, Scrapy's URLLENGTH_LIMIT
LARGEST = 64 << 20  # bytes of a body that are read of an archive, and its maximum when decompressed
_CHUNK = 1 << 16  # bytes
_REMEMBERED = 1 << 9  # characters of a link; longer ones are not in menus, and 65,536 of them take much memory
_FOLLOWED = {"a": "href", "area": "href", "iframe": "src", "frame": "src"}
_FROM_ORIGIN = re.compile(r"/(?!/)|(?:https?:)?//[^/?#;]")  # links that lead to the same URL from all pages of a host
_PLAIN = re.compile(r"[!#-;=?-\[\]_a-z~]+\Z")  # as in web.html: text without need of repair


class Found(NamedTuple):
    """A link of a page, and its place."""

    url: str
    place: Place


class Content(NamedTuple):
    """The content of a page: its links in document order, or the URL that it redirects visitors to."""

    links: list[Found]
    refresh: str


def decompress(body: bytes, headers: Mapping[str, str]) -> bytes:
    """Return a body before its ``Content-Encoding``; unchanged if that is unknown or false.

    For a body that was cut off, the readable part is returned, and at most 64 MiB of any. Brotli and Zstandard need
    the packages that Scrapy installs.
    """
    for encoding in reversed(get_header(headers, "Content-Encoding").lower().split(",")):
        match encoding.strip():
            case "gzip" | "x-gzip":
                body = _read_all(gzip.GzipFile(fileobj=BytesIO(body))) or body
            case "deflate":  # the standard means zlib's format, and some servers send it without its frame
                body = _inflate(body, zlib.MAX_WBITS) or _inflate(body, -zlib.MAX_WBITS) or body
            case "br":
                body = _unbrotli(body) or body
            case "zstd":
                body = _unzstd(body) or body
    return body


def gunzip(packed: bytes, most: int = LARGEST) -> bytes:
    """Return the content of a gzip file.

    Raises
    ------
    ValueError
        If it is larger than it may be.
    OSError, EOFError, zlib.error
        If it is not such a file, damaged or cut off.
    """
    with gzip.GzipFile(fileobj=BytesIO(packed)) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"{len(packed):,} bytes of gzip inflate to more than {most:,}")
    return content


def decode(body: bytes, headers: Mapping[str, str]) -> tuple[str, str]:
    """Return the text of a page and its encoding, from its headers or its own declaration."""
    kind = get_header(headers, "Content-Type")
    encoding, text = html_to_unicode(kind, body, auto_detect_fun=_detect, default_encoding="ascii")
    return text, encoding


def get_header(headers: Mapping[str, str], name: str) -> str:
    """Return a header, whatever the case of its name; ``""`` if it is missing."""
    name = name.lower()
    return next((value for key, value in headers.items() if key.lower() == name), "")


def mime_of(headers: Mapping[str, str]) -> str:
    """Return the MIME type in headers, ``""`` if they have none."""
    return parse_mime(get_header(headers, "Content-Type"))


def is_page(mime: str, body: bytes) -> bool:
    """Whether a response is searched for links: HTML by its type, or by its first bytes without one."""
    return "html" in mime or (not mime and body[:512].lstrip().lower().startswith((b"<!doctype html", b"<html")))


def read_page(url: str, headers: Mapping[str, str], body: bytes) -> Content:
    """Return the content of an HTML page; each URL counts once, at the place where ``web.html.locate`` first finds
    it.

    An unreadable page is empty: Scrapy's own functions raise on it, too.
    """
    try:
        return _read(url, headers, body)
    except Exception:  # any failure of parsers: a <base> that is not a URL, an unknown encoding
        logger.exception("The links of %s cannot be read", url)
        return Content([], "")


def _read(url: str, headers: Mapping[str, str], body: bytes) -> Content:
    text, encoding = decode(body, headers)
    base = get_base_url(text[:_HEAD], url, encoding)
    seconds, refresh = get_meta_refresh(text[:_HEAD], base, encoding, ignore_tags=("noscript",))
    if refresh and seconds is not None and seconds < _SOON and refresh.startswith(("http:", "https:")):
        return Content([], refresh)
    return Content(_links(Selector(text=text, type="html").root, base, encoding), "")


def first_pages(roots: Sequence[str]) -> dict[str, str]:
    """Return the URLs of the first pages of a site, made safe, by their canonical forms.

    Raises
    ------
    RecordingError
        If there are none, or one is not an absolute URL.
    """
    try:
        spelled = [safe_url_string(root.strip()).partition("#")[0] for root in roots]
        if roots and all(urlsplit(root).hostname and root.startswith(("http://", "https://")) for root in spelled):
            first: dict[str, str] = {}
            for root in spelled:
                first.setdefault(canonicalize_url(root), root)
            return first
    except ValueError:
        pass
    raise RecordingError(
        f"the root of a recording is {', '.join(roots) or 'not given'}: give the URL of its first page, as in "
        "https://example.org/"
    )


def redirect_of(url: str, status: int | None, headers: Mapping[str, str]) -> str:
    """Return the URL that a response redirects to by its status, ``""`` if it is not a redirect."""
    location = get_header(headers, "Location")
    if status not in REDIRECTING or not location:
        return ""
    try:
        safe = safe_url_string(location)
        if location.startswith("//"):
            safe = f"{urlsplit(url).scheme}://{safe.lstrip('/')}"
        return without_credentials(urljoin(url, safe))
    except ValueError:
        return ""


def _links(root: _Element, base: str, encoding: str) -> list[Found]:
    folder, origin = urljoin(base, "."), urljoin(base, "/")
    spelled: dict[str, tuple[str, bool]] = {}
    first: dict[str, _Element] = {}
    plain: dict[str, _Element] = {}
    for element in root.iter(*_FOLLOWED):
        href = element.get(_FOLLOWED[element.tag])
        if href is None:
            continue
        if href not in spelled:
            stripped = strip_html5_whitespace(href)
            start = folder
            if _FROM_ORIGIN.match(stripped):
                start = origin
            elif _needs_base(stripped):
                start = base
            spell = _spell if len(href) < _REMEMBERED else _spell.__wrapped__
            spelled[href] = spell(start, "#" if stripped.startswith("#") else stripped, encoding)
        url, is_plain = spelled[href]
        if url:
            first.setdefault(url, element)
            if is_plain:
                plain.setdefault(url, element)
    reader = PlaceReader()
    return [Found(url, reader.place(plain.get(url, element))) for url, element in first.items()]


def _needs_base(href: str) -> bool:
    """Whether an address is joined to the whole URL of a page, and not just to its folder."""
    return href[:1] in "#/;?" or ":" in href.partition("/")[0]


@lru_cache(maxsize=1 << 16)
def _spell(start: str, href: str, encoding: str) -> tuple[str, bool]:
    """Return the URL that a link on a page leads to, without its fragment, and whether it was spelled that way.

    The URL is ``""`` where no request would be sent.
    """
    if not href:
        return "", False
    try:
        spelled = joined(start, href).partition("#")[0]
        url = safe_url(spelled, encoding)
    except ValueError:
        return "", False
    if not url.startswith(("http://", "https://")) or len(url) > _LONGEST:
        return "", False
    return url, url == spelled and _PLAIN.match(href) is not None


def _inflate(body: bytes, form: int) -> bytes:
    try:
        return zlib.decompressobj(form).decompress(body, LARGEST)
    except zlib.error:
        return b""


def _unbrotli(body: bytes) -> bytes:
    try:
        import brotli

        unpacker = brotli.Decompressor()
        read = bytearray(unpacker.process(body, output_buffer_limit=_CHUNK))
        while len(read) < LARGEST and (part := unpacker.process(b"", output_buffer_limit=_CHUNK)):
            read += part
        return bytes(read)
    except ImportError:
        return _cannot_unpack("br", "brotli")
    except Exception:  # any exception of the package for a broken body
        return b""


def _unzstd(body: bytes) -> bytes:
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    try:
        zstd = import_module(name)
    except ImportError:
        return _cannot_unpack("zstd", name)
    return _read_all(zstd.ZstdFile(BytesIO(body)))


@lru_cache
def _cannot_unpack(encoding: str, package: str) -> bytes:
    """Warn once for each encoding."""
    logger.warning("Bodies with Content-Encoding %s need the package %s: their links are lost", encoding, package)
    return b""


def _read_all(file: Any) -> bytes:
    """Return what a decompressing file gives before it ends or turns out to be broken."""
    read = bytearray()
    with suppress(Exception):  # each format has its own errors
        while len(read) < LARGEST and (part := file.read1(_CHUNK)):
            read += part
    return bytes(read)


def _detect(body: bytes) -> str | None:
    for encoding in ("ascii", "utf-8", "cp1252"):
        try:
            body.decode(encoding)
        except UnicodeError:
            continue
        return encoding
    return None
