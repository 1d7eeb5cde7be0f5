"""Reads a file ``cookies.txt``, and decides as a browser does which request gets a cookie (RFC 6265, 5.4).

:class:`http.cookiejar.MozillaCookieJar` refuses files that curl, wget and browsers accept: those without its first
line, and those whose second column differs from the dot of the domain. It also logs the line that it cannot read, with
the value of the cookie.
"""

from __future__ import annotations

from http.cookiejar import Cookie, DefaultCookiePolicy
from time import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import counted
from scrapy_focus.web.addresses import literal

if TYPE_CHECKING:
    from urllib.request import Request

_COLUMNS = 7
_HTTP_ONLY = "#HttpOnly_"


class BrowserRules(DefaultCookiePolicy):
    """Sends a cookie to its own host alone, or, if it names a domain, to that domain and its subdomains.

    The policy of the standard library sends a cookie without a domain to subdomains, too.
    """

    def domain_return_ok(self, domain: str, request: Request) -> bool:
        """Leave it to :meth:`return_ok_domain`."""
        return True

    def return_ok_domain(self, cookie: Cookie, request: Request) -> bool:
        """Whether the host of a request gets a cookie."""
        host, domain = urlsplit(request.get_full_url()).hostname or "", cookie.domain.lower().lstrip(".")
        if domain in {host, f"{host}.local"}:  # the standard library adds it to names without a dot
            return True
        return cookie.domain_specified and host.endswith(f".{domain}") and literal(host) is None


def read_cookies(text: str, *, now: float | None = None) -> list[Cookie]:
    """Return the cookies of a file in Netscape's format that have not expired.

    Raises
    ------
    ConfigError
        If a line is not a cookie; the message has its number, and none of its contents.

    Examples
    --------
    >>> [cookie.name for cookie in read_cookies("#HttpOnly_.a.example\\tTRUE\\t/\\tFALSE\\t0\\tsession\\tx")]
    ['session']
    """
    now = time() if now is None else now
    lines = enumerate(text.lstrip("\ufeff").splitlines(), 1)
    cookies = [_cookie(number, line) for number, line in lines if line.strip() and not _is_comment(line)]
    return [cookie for cookie in cookies if not cookie.is_expired(int(now))]


def cookies_in(header: str, host: str, *, secure: bool) -> list[Cookie]:
    """Return the cookies of a ``Cookie`` header for a host."""
    pairs = [each.strip().partition("=") for each in header.split(";") if each.strip()]
    return [
        make_cookie(name if equals else "", value if equals else name, domain=host, secure=secure)
        for name, equals, value in pairs
    ]


def make_cookie(
    name: str, value: str, *, domain: str, path: str = "/", secure: bool = False, expires: int | None = None,
    with_subdomains: bool = False, http_only: bool = False,
) -> Cookie:  # fmt: skip
    """Return a cookie; one without a name is sent as its value alone."""
    return Cookie(
        version=0, name=name or value, value=value if name else None, port=None, port_specified=False,
        domain=f".{domain}" if with_subdomains else domain, domain_specified=with_subdomains,
        domain_initial_dot=with_subdomains, path=path, path_specified=True, secure=secure, expires=expires,
        discard=expires is None, comment=None, comment_url=None, rest={"HttpOnly": ""} if http_only else {},
    )  # fmt: skip


def merged(*headers: bytes) -> bytes:
    """Return ``Cookie`` headers as one, in which a later header replaces the cookies of earlier ones by their names.

    Examples
    --------
    >>> merged(b"a=1; b=2", b"", b"b=3")
    b'a=1; b=3'
    """
    cookies: dict[bytes, bytes] = {}
    for header in headers:
        pairs = [pair.strip() for pair in header.split(b";") if pair.strip()]
        named = {pair.partition(b"=")[0] for pair in pairs}
        cookies = {pair: name for pair, name in cookies.items() if name not in named}
        cookies |= {pair: pair.partition(b"=")[0] for pair in pairs}
    return b"; ".join(cookies)


def _is_comment(line: str) -> bool:
    return line.startswith("#") and not line.startswith(_HTTP_ONLY)


def _cookie(number: int, line: str) -> Cookie:
    columns = line.removeprefix(_HTTP_ONLY).rstrip("\r\n").split("\t")
    if len(columns) == _COLUMNS - 1:
        columns.append("")  # an empty value, whose tab an editor removed
    try:
        domain, subdomains, path, secure, expires, name, value = columns
        until = int(float(expires))
    except (ValueError, OverflowError):
        what = counted(len(columns), "column") if len(columns) != _COLUMNS else "no time in its fifth column"
        raise ConfigError(f"line {number} has {what}, and not {_COLUMNS} separated by tabs") from None
    host = domain.strip().lower().lstrip(".")
    if not host:
        raise ConfigError(f"line {number} has no domain in its first column")
    return make_cookie(
        name, value, domain=host, path=path or "/", secure=secure == "TRUE", expires=until if until > 0 else None,
        with_subdomains=subdomains == "TRUE", http_only=line.startswith(_HTTP_ONLY),
    )  # fmt: skip
