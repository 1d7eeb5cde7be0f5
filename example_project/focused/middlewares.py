"""What the crawl by topic does otherwise than Scrapy."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from scrapy.http.request import NO_CALLBACK
from w3lib.url import safe_url_string

from scrapy_focus.web.domains import domain_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response


class RedirectsAreLinks:
    """Hands redirects to another domain to the spider, which gives them as links; it stands before Scrapy's own.

    Followed at once, the page would be fetched even if its domain had its share of pages, and count for the wrong one.
    Redirects within a domain, and those of ``robots.txt``, are left to Scrapy.
    """

    def process_response(self, request: Request, response: Response) -> Response:
        target = redirect_of(response)
        if target and request.callback is not NO_CALLBACK and _domain(target) != _domain(request.url):
            request.meta["handle_httpstatus_list"] = [response.status]
        return response


def redirect_of(response: Response) -> str:
    """Return where a response redirects to, absolute; ``""`` if it does not, or to what is no URL."""
    location = response.headers.get("Location") if 300 <= response.status < 400 else None
    try:
        return "" if location is None else urljoin(response.url, safe_url_string(location))
    except ValueError:
        return ""


def _domain(url: str) -> str:
    try:
        return domain_of(urlsplit(url).hostname or "")
    except ValueError:
        return ""
