"""Converts responses to plain values and back, so that they can be stored until their page is done."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from scrapy.http import Headers
from scrapy.responsetypes import responsetypes

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

_LARGEST = 4 << 20  # bytes of a body that is stored


def question_of(request: Request) -> tuple[str, str, bytes]:
    """Return the key under which the response to a request is stored."""
    return request.method, request.url, request.body


def answer_of(request: Request, response: Response) -> tuple[Any, ...] | None:
    """Return a response as plain values; ``None`` for a browser's response, or one too large to store."""
    is_plain = request.url.startswith("http") and type(response).__module__.startswith("scrapy.http.")
    if not is_plain or len(response.body) > _LARGEST or any(str(key).startswith("playwright") for key in request.meta):
        return None
    address = None if response.ip_address is None else str(response.ip_address)
    headers = {name: response.headers.getlist(name) for name in response.headers}
    return response.url, response.status, headers, response.body, response.flags, address, response.protocol


def response_of(answer: tuple[Any, ...]) -> Response:
    """Rebuild the response, as it came from the downloader."""
    url, status, values, body, flags, address, protocol = answer
    headers = Headers(values)
    cls = responsetypes.from_args(headers=headers, url=url, body=body)
    return cls(
        url, status=status, headers=headers, body=body, flags=flags, protocol=protocol,
        ip_address=None if address is None else ip_address(address),
    )  # fmt: skip
