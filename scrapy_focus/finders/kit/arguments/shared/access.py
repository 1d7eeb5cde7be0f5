"""How a crawl presents itself to sites, and how fast it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy.exceptions import UsageError

from scrapy_focus.core.printable import counted
from scrapy_focus.finders.kit.arguments.access_readers import (
    read_account,
    read_agent,
    read_cookie_file,
    read_delay,
    read_headers,
    read_proxy,
)
from scrapy_focus.finders.kit.arguments.argument import Arguments, argument
from scrapy_focus.finders.kit.arguments.credentials import PASSWORD
from scrapy_focus.finders.kit.arguments.readers import number_reader, read_yes
from scrapy_focus.finders.kit.arguments.seeds import host_of
from scrapy_focus.web.access import Access
from scrapy_focus.web.origins import origins_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from scrapy_focus.finders.kit.arguments.access_readers import Cookies, Header
    from scrapy_focus.finders.kit.arguments.argument import Names
    from scrapy_focus.finders.kit.arguments.credentials import Account
    from scrapy_focus.finders.kit.arguments.seeds import Starts
    from scrapy_focus.web.access import Proxy

_AUTHORIZATION = "Authorization"
_NAMED = 5  # hosts and domains that are named


@dataclass(frozen=True, kw_only=True)
class AccessArguments(Arguments):
    """How a crawl presents itself to sites, and how fast it is.

    Cookies, headers and passwords are not stored. A crawl that resumes without them continues without them.

    Arguments
    ---------
    cookies
        A file ``cookies.txt`` in Netscape's format; each cookie goes to its own domain and path.
    header
        A header ``Name: value``, or a list of them, for the start URLs: it goes to their scheme, host and port only.
    user_agent
        Who the crawl says it is, on all hosts and to ``robots.txt``.
    proxy
        The URL of an HTTP proxy for all requests: ``http://user:password@proxy.example:3128``.
    auth
        The user name to sign in with at the start URLs (``Basic``). The password is in the environment variable
        ``FOCUS_PASSWORD``; otherwise it is asked for.
    delay
        The time between two requests to a host: seconds, or ``500ms``, ``1min``; 0 for none.
    concurrency
        How many requests to a host are in flight at once, at most.
    insecure
        ``yes`` to accept any certificate.
    """

    heading = "access"

    cookies: Cookies = argument(
        read_cookie_file, metavar="FILE",
        help="send the cookies of a cookies.txt (Netscape's format), each to its own site only",
    )  # fmt: skip
    header: list[Header] = argument(
        read_headers, metavar="'NAME: VALUE'", repeats=True,
        help="send this header to the hosts of the start URLs only; may be given several times",
    )  # fmt: skip
    user_agent: str = argument(
        read_agent, metavar="TEXT", help="who the crawl says it is: 'mybot (+https://example.org/contact)'"
    )
    proxy: Proxy | None = argument(
        read_proxy, metavar="URL", help="send all requests through this HTTP proxy: http://user:password@host:port"
    )
    auth: Account | None = argument(
        read_account, metavar="USER",
        help=f"sign in to the hosts of the start URLs; the password is asked for, or taken from {PASSWORD} in the "
        "environment",
    )  # fmt: skip
    delay: float | None = argument(
        read_delay, metavar="TIME", help="seconds between two requests to a host, or 500ms, 1min; 0 for none"
    )
    concurrency: int | None = argument(
        number_reader("requests", 4), metavar="N", help="have at most N requests to a host in flight at once"
    )
    insecure: bool = argument(
        read_yes, default="no", switch="yes", help="accept hosts whose certificate is not valid, without checking any"
    )

    def check(self, names: Names) -> None:
        if self.auth is not None and any(header.name.lower() == "authorization" for header in self.header):
            raise UsageError(
                f"{names.of('auth')} and {names.of('header')} both set {_AUTHORIZATION}; give one of the two"
            )
        super().check(names)

    def set_up(self, crawler: Crawler) -> None:
        self.change(crawler.settings)
        if self.auth is not None:
            self.auth.ask()
        super().set_up(crawler)

    def change(self, settings: BaseSettings) -> None:
        """Apply what Scrapy has settings for."""
        changed: dict[str, Any] = {
            "USER_AGENT": self.user_agent or None,
            "DOWNLOAD_DELAY": self.delay,
            "CONCURRENT_REQUESTS_PER_DOMAIN": self.concurrency,
            "CONCURRENT_REQUESTS": max(settings.getint("CONCURRENT_REQUESTS"), self.concurrency or 0) or None,
            "DOWNLOAD_VERIFY_CERTIFICATES": False if self.insecure else None,
            "HTTPPROXY_ENABLED": False if self.proxy else None,  # that of Scrapy takes the environment's
        }
        settings.update({name: value for name, value in changed.items() if value is not None}, "spider")

    def access_from(self, starts: Starts) -> Access:
        """Return what the crawl sends to some hosts alone; it asks for the password."""
        shared: dict[str, bytes] = {}
        for header in self.header:
            name = header.name.title()
            between = b"; " if name == "Cookie" else b", "
            shared[name] = between.join(filter(None, [shared.get(name), header.value.encode()]))
        if self.auth is not None:
            shared[_AUTHORIZATION] = self.auth.header
        origins = [origin for url in starts.urls for origin in origins_of(url)] if shared else []
        headers = dict.fromkeys(origins, shared)
        for origin, value in starts.credentials.items():
            headers[origin] = {**headers.get(origin, {}), _AUTHORIZATION: value}
        return Access(
            headers=headers, cookies=self.cookies.cookies, proxy=self.proxy, takes_any_certificate=self.insecure
        )

    def sends_from(self, starts: Starts) -> list[str]:
        """Say what goes to which hosts alone, without any value."""
        hosts = _listed([*dict.fromkeys(urlsplit(url).netloc for url in starts.urls)])
        said = []
        if self.auth is not None:
            said.append(f"the name {self.auth.user} with its password to {hosts}")
        elif starts.credentials:
            signed = dict.fromkeys(origin.partition(":")[2].rpartition(":")[0] for origin in starts.credentials)
            said.append(f"a name with its password to {_listed([*signed])}")
        if self.header:
            said.append(f"{', '.join(dict.fromkeys(header.name for header in self.header))} to {hosts}")
        if self.cookies.file:
            said.append(f"the cookies of {self.cookies.file} to {self._domains(starts)}")
        return said

    def _domains(self, starts: Starts) -> str:
        """Return the domains that get cookies, those of the start URLs by name."""
        domains = dict.fromkeys(cookie.domain.lstrip(".") for cookie in self.cookies.cookies)
        own = [each for each in domains if any(f".{host}".endswith(f".{each}") for host in map(host_of, starts.urls))]
        if not own:
            return f"{counted(len(domains), 'domain')}, none of which is that of a start URL"
        return _listed(own, len(domains) - len(own), "domain")


def _listed(names: list[str], n_others: int = 0, noun: str = "host") -> str:
    """Return the first names, and how many others there are."""
    n_others += len(names[_NAMED:])
    others = [counted(n_others, f"other {noun}")] if n_others else []
    return " and ".join([", ".join(names[:_NAMED]), *others])
