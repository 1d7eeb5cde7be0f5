"""User names and passwords: those in start URLs, and that of ``--auth``."""

from __future__ import annotations

import os
import warnings
from getpass import GetPassWarning, getpass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from scrapy.exceptions import UsageError
from w3lib.http import basic_auth_header

from scrapy_focus.web.linkurls import without_credentials
from scrapy_focus.web.origins import origins_of

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The environment variable with the password.
PASSWORD = "FOCUS_PASSWORD"  # noqa: S105 (its name)


class Account:
    """A user name whose password comes from the environment, or from the terminal."""

    def __init__(self, user: str) -> None:
        self.user = user
        self._password: str | None = None

    def ask(self) -> None:
        """Get the password, once: from ``FOCUS_PASSWORD``, or from the user.

        Raises
        ------
        UsageError
            If there is no terminal to ask on.
        """
        if self._password is not None:
            return
        self._password = os.environ.get(PASSWORD)
        if self._password is None:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", GetPassWarning)  # it would show what is typed
                    self._password = getpass(f"Password of {self.user}: ")
            except (GetPassWarning, EOFError, OSError) as error:
                raise UsageError(
                    f"there is no terminal on which to ask for the password of {self.user}; put it into the "
                    f"environment variable {PASSWORD}"
                ) from error

    @property
    def header(self) -> bytes:
        """The value of ``Authorization``."""
        self.ask()
        return basic_auth_header(self.user, self._password or "", "utf-8")


def take_credentials(urls: Iterable[str]) -> tuple[list[str], dict[str, bytes]]:
    """Return URLs without user names and passwords, and the values of ``Authorization`` by origin.

    Credentials for ``http`` at its usual port are also valid for ``https`` at its usual port, as sites redirect there.
    Anything that is not a URL stays unchanged.

    Examples
    --------
    >>> take_credentials(["http://me:p%40ss@example.org/x", "http://a.example/"])[0]
    ['http://example.org/x', 'http://a.example/']
    """
    bare: list[str] = []
    headers: dict[str, bytes] = {}
    for url in urls:
        try:
            parts, rest = urlsplit(url), without_credentials(url)
            if rest != url:
                header = basic_auth_header(unquote(parts.username or ""), unquote(parts.password or ""), "utf-8")
                own, *others = origins_of(rest) or [""]
                headers[own] = header
                for origin in others:
                    headers.setdefault(origin, header)
        except ValueError:
            rest = url
        bare.append(rest)
    return bare, headers
