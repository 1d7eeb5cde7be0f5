"""Sends passwords, headers and cookies to some hosts alone, without storing them.

The headers of a request are copied to its retries and redirects, and stored with its job. So these headers are added
when a request leaves, by the innermost middleware, and removed when it comes back.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import scrapy
from scrapy.http.cookies import CookieJar
from w3lib.http import basic_auth_header

from scrapy_focus.engine.access import access_of
from scrapy_focus.engine.host import host_of
from scrapy_focus.web.cookies import BrowserRules, merged

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from scrapy_focus.engine.inflight import Entry
    from scrapy_focus.web.access import Access, Proxy

_USER = re.compile(rb"^([^/?#]*//)[^/?#]*@")  # and password, in a URL
_COOKIE, _PROXY = "Cookie", "Proxy-Authorization"


class PrivateHeaders:
    """Adds what the crawl sends to some hosts alone to outgoing requests, and removes it when the response arrives.

    These are the headers of :class:`~scrapy_focus.web.access.Access`, its cookies, those that a redirect of the same
    pick has set, and the password of a proxy. A request for a browser gets the proxy alone: the browser asks for
    headers and cookies at each of its own requests (:mod:`scrapy_focus.engine.browser`).

    Credentials in redirects are removed: a site must not decide who signs in where.
    """

    def __init__(self, crawler: Crawler, access: Access) -> None:
        self.access = access
        self.cookies = Cookies(crawler, access)
        self._has_none = not (access.headers or access.cookies or access.proxy)
        self._before: WeakKeyDictionary[Request, dict[str, list[bytes]]] = WeakKeyDictionary()  # their previous values

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler, access_of(crawler))

    def process_request(self, request: Request) -> None:
        if headers := self._headers(request):
            self._before[request] = {name: request.headers.getlist(name) for name in headers}
            for name, value in headers.items():
                request.headers[name] = value
        if self.access.proxy is not None:
            request.meta["proxy"] = self.access.proxy.url

    def process_response(self, request: Request, response: Response) -> Response:
        self._remove(request)
        self.cookies.note(request, response)
        location = response.headers.get("Location")
        if location is not None and b"@" in location:
            response.headers["Location"] = _USER.sub(rb"\1", location)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        self._remove(request)

    def _headers(self, request: Request) -> dict[str, bytes]:
        if self._has_none and not self.cookies.of_redirects:
            return {}
        headers = {} if self.access.proxy is None else _sign_in(self.access.proxy)
        if request.meta.get("playwright"):
            return headers
        headers |= self.access.headers_for(request.url)
        own, given = request.headers.get(_COOKIE) or b"", headers.pop(_COOKIE, b"")
        kept = self.cookies.header(request)
        cookies = merged(kept, given, own) if self.cookies.are_of_scrapy else merged(own, given, kept)
        if cookies != own:
            headers[_COOKIE] = cookies
        return headers

    def _remove(self, request: Request) -> None:
        for name, values in self._before.pop(request, {}).items():
            if values:
                request.headers[name] = values
            else:
                del request.headers[name]
        if self.access.proxy is not None:
            request.meta.pop("proxy", None)


class Cookies:
    """The cookies of the crawl, and those that redirects set.

    A cookie of a redirect is sent with the requests that follow this redirect, and with no others: without it, a crawl
    without cookies could never fetch a page that redirects to itself until it receives one. With ``COOKIES_ENABLED``,
    Scrapy keeps the cookies of sites.
    """

    def __init__(self, crawler: Crawler, access: Access) -> None:
        self.crawler = crawler
        self._given = access.cookies
        #: Whether Scrapy keeps the cookies of sites, which are newer than the given ones.
        self.are_of_scrapy = crawler.settings.getbool("COOKIES_ENABLED")
        self._jar = self._new_jar()
        self.of_redirects: dict[int, CookieJar] = {}  # by pick
        self._forgets = False  # whether it is notified of settled picks

    def header(self, request: Request) -> bytes:
        """Return the ``Cookie`` header of a request, ``b""`` for none."""
        if not (self.of_redirects or self._given):
            return b""
        entry = self._entry(request) if self.of_redirects else None
        jar = self._jar if entry is None else self.of_redirects.get(entry.pick.id, self._jar)
        asked = scrapy.Request(request.url)
        jar.add_cookie_header(asked)
        return asked.headers.get(_COOKIE) or b""

    def note(self, request: Request, response: Response) -> None:
        """Keep the cookies that a redirect sets, until its pick is settled."""
        if self.are_of_scrapy or not 300 <= response.status < 400 or "Set-Cookie" not in response.headers:
            return
        if (entry := self._entry(request)) is not None:
            self._jar_of(entry).extract_cookies(response, request)
            entry.has_cookie = True

    def _new_jar(self) -> CookieJar:
        jar = CookieJar(BrowserRules())
        for cookie in self._given:
            jar.set_cookie(cookie)
        return jar

    def _jar_of(self, entry: Entry) -> CookieJar:
        host = host_of(self.crawler)
        if host is not None and not self._forgets:
            self._forgets = True
            host.features.on("give_back", self._forget)
            host.features.on("outcome", self._forget)
        if entry.pick.id not in self.of_redirects:
            self.of_redirects[entry.pick.id] = self._new_jar()
        return self.of_redirects[entry.pick.id]

    def _forget(self, entry: Entry, _: object = None) -> None:
        self.of_redirects.pop(entry.pick.id, None)

    def _entry(self, request: Request) -> Entry | None:
        host = host_of(self.crawler)
        if host is None:
            return None
        return host.inflight.find(request)


def add_headers(settings: BaseSettings) -> None:
    """Enable passwords, headers and cookies for some hosts alone, and the cookies of redirects."""
    settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", PrivateHeaders, 955)


def _sign_in(proxy: Proxy) -> dict[str, bytes]:
    if not proxy.user:
        return {}
    return {_PROXY: basic_auth_header(proxy.user, proxy.password, "utf-8")}
