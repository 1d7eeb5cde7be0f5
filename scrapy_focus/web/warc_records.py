"""Web archives (WARC 1.1): turns requests and their answers into records, each a gzip member of its own.

Secrets must not end up in a file that is passed on. So records have no cookies, no credentials, and no body of a
request, and only those headers of a request that are known to be harmless.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urldefrag, urlsplit

from scrapy_focus.web.linkurls import without_credentials

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    Headers = Iterable[tuple[bytes, bytes]]

#: Headers of requests that are stored, in lower case.
HARMLESS = frozenset(
    b"""
    accept accept-charset accept-encoding accept-language cache-control connection content-type host if-match
    if-modified-since if-none-match if-range if-unmodified-since pragma range referer user-agent
    """.split()
)
#: Headers of answers that are not: what may be a session, and what does not describe the stored body.
LEFT_OUT = frozenset({b"set-cookie", b"set-cookie2", b"transfer-encoding"})

_VERSION = "WARC/1.1"
_GZIP = 31  # wbits of zlib
_LEVEL = 3  # 7 % larger than level 6, in half the time; most bodies arrive compressed anyway
_NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"


class Exchange(NamedTuple):
    """A request and its answer."""

    url: str
    method: str
    asked: Headers  # headers of the request
    status: int
    protocol: str  # such as HTTP/1.1
    headers: Headers  # of the answer
    body: bytes  # as received, without chunks
    at: datetime  # UTC, when the answer had arrived
    address: str = ""  # of the server; "" if unknown
    truncated: str = ""  # why the body is incomplete, in a word of the standard
    is_rendered: bool = False  # whether the body was made by a browser


class Before(NamedTuple):
    """An earlier answer of the same URL."""

    date: str
    digest: str  # of the body


def pack_info(name: str, info: Mapping[str, str]) -> bytes:
    """Return the record at the beginning of a file, which says how it was made."""
    writer = _writer()
    return _pack(writer, writer.create_warcinfo_record(name, dict(info)))


def date_of(exchange: Exchange) -> str:
    """Return ``WARC-Date`` of an exchange."""
    return exchange.at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def pack_exchange(exchange: Exchange, before: Before | None = None) -> bytes:
    """Return the records of an answer and its request; ``b""`` for what cannot be stored as it is.

    An answer that nothing has changed, 304, is a revisit of the answer `before`, if that is known. A page that was
    rendered in a browser is a resource, as its headers belong to another body. A resource has no status, so a rendered
    error page is not stored.
    """
    writer, url = _writer(), _target(exchange.url)
    known = {"WARC-Date": date_of(exchange)}
    if exchange.is_rendered:
        if exchange.status != HTTPStatus.OK:
            return b""
        kind = next((value for name, value in exchange.headers if name.lower() == b"content-type"), b"text/html")
        return _pack(writer, _resource(writer, url, exchange.body, kind.decode("latin-1"), known))
    answer = _answer(writer, url, exchange, known, before)
    known["WARC-Concurrent-To"] = answer.rec_headers.get_header("WARC-Record-ID")
    return _pack(writer, answer) + _pack(writer, _request(writer, url, exchange, known))


def name_of(exchange: Exchange) -> tuple[str, str]:
    """Return ``WARC-Target-URI`` and ``WARC-Payload-Digest`` of an answer."""
    digest = hashlib.sha1(exchange.body, usedforsecurity=False).digest()
    return _target(exchange.url), f"sha1:{base64.b32encode(digest).decode()}"


def may_be_revisited(exchange: Exchange) -> bool:
    """Whether a server may later say that this body has not changed."""
    is_page = exchange.method == "GET" and exchange.status == HTTPStatus.OK and not exchange.is_rendered
    return is_page and any(name.lower() in (b"etag", b"last-modified") for name, _ in exchange.headers)


def _answer(writer: Any, url: str, exchange: Exchange, known: Mapping[str, str], before: Before | None) -> Any:
    protocol = exchange.protocol if exchange.protocol.startswith("HTTP/") else "HTTP/1.1"
    headers = [(name, value) for name, value in exchange.headers if name.lower() not in LEFT_OUT]
    said = _head(f"{protocol} {exchange.status} {_phrase(exchange.status)}", headers)
    more = dict(known)
    if exchange.address:
        more["WARC-IP-Address"] = exchange.address
    if exchange.truncated:
        more["WARC-Truncated"] = exchange.truncated
    if exchange.status == HTTPStatus.NOT_MODIFIED:
        more |= {"WARC-Profile": _NOT_MODIFIED, "WARC-Refers-To-Target-URI": url}
        if before is not None:
            more |= {"WARC-Refers-To-Date": before.date, "WARC-Payload-Digest": before.digest}
        return writer.create_warc_record(url, "revisit", http_headers=said, warc_headers_dict=more)
    return writer.create_warc_record(
        url, "response", payload=BytesIO(exchange.body), length=len(exchange.body), http_headers=said,
        warc_headers_dict=more,
    )  # fmt: skip


def _request(writer: Any, url: str, exchange: Exchange, known: Mapping[str, str]) -> Any:
    parts = urlsplit(url)
    path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    headers = [(name, value) for name, value in exchange.asked if name.lower() in HARMLESS]
    if not any(name.lower() == b"host" for name, _ in headers):
        headers.insert(0, (b"Host", parts.netloc.encode()))
    asked = _head(f"{exchange.method} {path} HTTP/1.1", headers)
    return writer.create_warc_record(url, "request", http_headers=asked, warc_headers_dict=known)


def _resource(writer: Any, url: str, body: bytes, kind: str, known: Mapping[str, str]) -> Any:
    return writer.create_warc_record(
        url, "resource", payload=BytesIO(body), length=len(body), warc_content_type=kind, warc_headers_dict=known
    )


def _head(first: str, headers: Headers) -> Any:
    """Return what stands before the body of a message: warcio writes these bytes, and would encode others itself."""
    from warcio.statusandheaders import StatusAndHeaders

    lines = [first.encode(), *(name + b": " + value for name, value in headers)]
    head = StatusAndHeaders(first, [])
    head.headers_buff = b"".join(line + b"\r\n" for line in (*lines, b""))
    head.compute_headers_buffer = lambda _: None
    return head


def _target(url: str) -> str:
    return without_credentials(urldefrag(url)[0])


def _phrase(status: int) -> str:
    """Return the usual phrase of a status, as Scrapy does not keep the one that was sent."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _writer() -> Any:
    """Return the maker of the records of one exchange."""
    from warcio.warcwriter import WARCWriter

    return WARCWriter(None, gzip=False, warc_version=_VERSION)


def _pack(writer: Any, record: Any) -> bytes:
    """Return a record as a member of a gzip file; warcio's own are compressed at level 9, which takes ten times as
    long.
    """
    writer.out = BytesIO()
    writer.write_record(record)
    return zlib.compress(writer.out.getbuffer(), _LEVEL, _GZIP)
