"""Requests and answers of Scrapy, as a web archive stores them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import scrapy

from scrapy_focus import __version__
from scrapy_focus.web.warc_records import Exchange

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Headers, Response

_LEFT_OUT = (
    "Set-Cookie of answers; cookies, credentials, other headers that may be secret, and bodies of requests; "
    "the requests of a browser"
)
#: Words of the standard for why a body is incomplete, by the flag of a response.
_TRUNCATED = {"download_stopped": "length", "dataloss": "disconnect"}


def exchange_of(request: Request, response: Response) -> Exchange:
    """Return a request and its answer, as it came from the downloader just now."""
    truncated = next((word for flag, word in _TRUNCATED.items() if flag in response.flags), "")
    if truncated == "length" and not response.body:  # its headers were enough
        truncated = "unspecified"
    return Exchange(
        url=response.url,
        method=request.method,
        asked=[*_pairs(request.headers)],
        status=response.status,
        protocol=response.protocol or "",
        headers=[*_pairs(response.headers)],
        body=response.body,
        at=datetime.now(UTC),
        address="" if response.ip_address is None else str(response.ip_address),
        truncated=truncated,
        is_rendered=bool(request.meta.get("playwright")),
    )


def archive_info(crawler: Crawler) -> dict[str, str]:
    """Return what an archive says about its crawl."""
    settings, spider = crawler.settings, crawler.spider
    return {
        "software": f"scrapy-focus/{__version__} Scrapy/{scrapy.__version__}",
        "format": "WARC File Format 1.1",
        "conformsTo": "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        "robots": "obey" if settings.getbool("ROBOTSTXT_OBEY") else "ignore",
        "http-header-user-agent": str(settings["USER_AGENT"]),
        "isPartOf": "" if spider is None else spider.name,
        "description": f"Left out: {_LEFT_OUT}",
    }


def _pairs(headers: Headers) -> Iterator[tuple[bytes, bytes]]:
    for name, values in headers.items():
        yield from ((_one_line(name), _one_line(value)) for value in values)


def _one_line(text: bytes) -> bytes:
    return text.replace(b"\r", b" ").replace(b"\n", b" ")
