"""Parse the arguments for the access to sites. No message repeats a value that may be a secret."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from scrapy.exceptions import UsageError

from scrapy_focus.core.durations import Duration, unit_of
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import brief
from scrapy_focus.finders.kit.arguments.credentials import PASSWORD, Account
from scrapy_focus.web.access import Proxy
from scrapy_focus.web.cookies import read_cookies
from scrapy_focus.web.linkurls import hide_credentials

if TYPE_CHECKING:
    from collections.abc import Sequence
    from http.cookiejar import Cookie

    from scrapy_focus.finders.kit.arguments.argument import Called

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ZERO = re.compile(r"0+(?:\.0+)? ?([a-z]*)")
_OWN = {  # headers that cannot be set, and what sets them
    "user-agent": "--user-agent sets it, for all hosts",
    "proxy-authorization": "put the password into the URL of --proxy",
    **dict.fromkeys(
        ("host", "connection", "content-length", "transfer-encoding", "te", "upgrade", "expect"),
        "each request has its own",
    ),
}


class Cookies(NamedTuple):
    """The cookies of a file."""

    file: str = ""  # its name; "": no file is given
    cookies: Sequence[Cookie] = ()

    def __repr__(self) -> str:
        return f"Cookies({self.file!r})"


class Header(NamedTuple):
    """A header that is sent with each request to some origins."""

    name: str
    value: str

    def __repr__(self) -> str:
        return f"Header({self.name!r})"


def read_cookie_file(given: str, called: Called) -> Cookies:
    """Return the cookies of a file; none for ``""``."""
    if not given:
        return Cookies()
    try:
        return Cookies(given, read_cookies(Path(given).read_text(encoding="utf-8-sig")))
    except (OSError, UnicodeDecodeError, ConfigError) as error:
        reason = str(error) if isinstance(error, ConfigError) else getattr(error, "strerror", "") or "not UTF-8"
        raise UsageError(
            f"{called} is {brief(given)}, which cannot be read ({reason}); it takes a cookies.txt in Netscape's "
            "format, as written by curl, wget and browser extensions that export cookies"
        ) from None  # the error has the contents of the line


def read_headers(given: str | Sequence[str], called: Called) -> list[Header]:
    """Return headers; each is written as ``Name: value``."""
    lines = [given] if isinstance(given, str) else given
    return [_header(line, called) for line in lines if line]


def _header(line: str, called: Called) -> Header:
    name, colon, value = (part.strip(" \t") for part in line.partition(":"))
    example = called.like("'X-Api-Key: abc'")
    if not colon:
        raise UsageError(f"{called} takes a name and a value with a colon between them, which is missing: {example}")
    if not _TOKEN.fullmatch(name) or not value:
        wrong = f"no value for {name}" if not value and _TOKEN.fullmatch(name) else "a name that no header has"
        raise UsageError(f"{called} has {wrong}; write it as {example}")
    if not value.isprintable():
        raise UsageError(f"{called} has a line break or control character in the value of {name}; it takes one line")
    if name.lower() in _OWN:
        raise UsageError(f"{called} cannot set {name}: {_OWN[name.lower()]}")
    return Header(name, value)


def read_agent(given: str, called: Called) -> str:
    """Return the name of a user agent."""
    if not given.isprintable():
        example = called.like("'mybot (+https://example.org/contact)'")
        raise UsageError(f"{called} is {brief(given)}; it takes one line: {example}")
    return given.strip()


def read_proxy(given: str, called: Called) -> Proxy | None:
    """Return a proxy, ``None`` for ``""``.

    Examples
    --------
    >>> from scrapy_focus.finders.kit.arguments.argument import Called
    >>> read_proxy("http://me:p%40ss@proxy.example:3128", Called("proxy"))
    Proxy('http://proxy.example:3128')
    """
    if not given:
        return None
    url = given if "://" in given else f"http://{given}"
    try:
        parts = urlsplit(url)
        port = parts.port
        named = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    except ValueError:
        named = port = None
    else:
        if parts.scheme not in ("http", ""):
            raise UsageError(
                f"{called} is {hide_credentials(repr(given))}; of proxies, only those that speak HTTP can be used: "
                f"{called.like('http://proxy.example:3128')}"
            )
    if not named or not named.isprintable() or " " in named:
        raise UsageError(
            f"{called} is {hide_credentials(repr(url))}; it takes the URL of a proxy: "
            f"{called.like('http://user:password@proxy.example:3128')}"
        )
    return Proxy(
        f"http://{named}{f':{port}' if port else ''}", unquote(parts.username or ""), unquote(parts.password or "")
    )


def read_account(given: str | Account, called: Called) -> Account | None:
    """Return a user name whose password is asked for later, ``None`` for ``""``."""
    if isinstance(given, Account):
        return given
    if not given:
        return None
    if ":" in given or not given.isprintable():
        raise UsageError(
            f"{called} takes a user name without a password, which is asked for, or taken from {PASSWORD}: "
            f"{called.like('me')}"
        )
    return Account(given)


def read_delay(given: str, called: Called) -> float | None:
    """Return seconds, ``None`` for ``""``.

    Examples
    --------
    >>> from scrapy_focus.finders.kit.arguments.argument import Called
    >>> read_delay("0", Called("delay")), read_delay("2.5", Called("delay")), read_delay("500ms", Called("delay"))
    (0.0, 2.5, 0.5)
    """
    if not given:
        return None
    zero = _ZERO.fullmatch(given.strip().lower())
    if zero and (not zero[1] or unit_of(zero[1])):
        return 0.0
    try:
        return Duration.of(given, str(called), bare="second").seconds
    except ConfigError:
        raise UsageError(
            f"{called} is {given!r}; it takes the seconds between two requests to a host, or a time, and 0 for none: "
            f"{called.like('2', '500ms', '1min')}"
        ) from None
