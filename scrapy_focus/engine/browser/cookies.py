"""Gives the cookies of a crawl to a browser, which decides by itself which of its requests get them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from scrapy.utils.httpobj import urlparse_cached

from scrapy_focus.core.printable import counted, printable_logger
from scrapy_focus.web.cookies import cookies_in

if TYPE_CHECKING:
    from collections.abc import Sequence
    from http.cookiejar import Cookie

    from playwright.async_api import BrowserContext, SetCookieParam
    from scrapy import Request

logger = printable_logger(__name__)


async def add_cookies(context: BrowserContext, cookies: Sequence[Cookie]) -> None:
    """Add cookies to a context, except those that the browser refuses, such as ``__Host-`` ones that are not secure."""
    given = [_param(cookie) for cookie in cookies]
    if not given:
        return
    with suppress(Exception):  # it takes all or none
        await context.add_cookies(given)
        return
    n_refused = 0
    for param in given:
        try:
            await context.add_cookies([param])
        except Exception:  # its message has the value
            n_refused += 1
    if n_refused:
        logger.warning("The browser refuses %s, which rendered pages do without", counted(n_refused, "cookie"))


def cookies_of(request: Request) -> list[Cookie]:
    """Return the cookies of the ``Cookie`` header of a request, for its host: browsers ignore that header."""
    header = (request.headers.get("Cookie") or b"").decode(errors="replace")
    url = urlparse_cached(request)
    return cookies_in(header, url.hostname or "", secure=url.scheme == "https")


def _param(cookie: Cookie) -> SetCookieParam:
    is_named = cookie.value is not None
    return {
        "name": cookie.name if is_named else "", "value": (cookie.value if is_named else cookie.name) or "",
        "domain": cookie.domain, "path": cookie.path, "expires": -1 if cookie.expires is None else cookie.expires,
        "secure": bool(cookie.secure), "httpOnly": cookie.has_nonstandard_attr("HttpOnly"),
    }  # fmt: skip
