"""Which requests a server may answer with 304."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy import Request

_CONDITIONS = ("If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range")


def has_conditions(request: Request) -> bool:
    """Whether a request may be answered with 304."""
    return any(name in request.headers for name in _CONDITIONS)
