"""Recognizes responses that refuse programs, with the reason and what to do about each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lxml.etree import _Element

    from scrapy_focus.core.problems import Section

READ = 64 * 1024  # bytes of a body that are read

#: What to do if a guard refuses programs.
OWNER = "ask its owner for access, or look for an API or a download of its data"
_LATER = "try again later"
_ADVICE = {
    403: "set USER_AGENT to who you are, or ask its owner for access",
    407: "give the proxy a name and a password",
    429: "try again later, with a larger DOWNLOAD_DELAY",
    451: "look for the data elsewhere",
}
_MEANS = {
    403: "access is denied",
    407: "the proxy asks for a login",
    429: "it was sent too many requests",
    451: "the law forbids it",
    503: "it is overloaded or down",
}
_BLOCKED = frozenset({403, 429, 451})
_GUARDS = (  # name, a header and its value, text of the body
    ("Cloudflare", "cf-mitigated", "challenge", ("cloudflare ray id", "challenges.cloudflare.com")),
    ("Akamai", "server", "akamaighost", ("errors.edgesuite.net",)),
    ("DataDome", "x-datadome", "", ("captcha-delivery.com",)),
    ("Imperva", "", "", ("incapsula incident id", "_incapsula_resource")),
    ("HUMAN", "", "", ("px-captcha", "perimeterx")),
    ("AWS WAF", "x-amzn-waf-action", "", ("awswafintegration", "awswafcookiedomainlist")),
    ("Sucuri", "", "", ("sucuri website firewall",)),
)
_ANY_GUARD = re.compile(r"enable javascript and cookies|captcha|you(?:'re| are)? (?:not )?(?:a )?(?:human|robot)")


class Refusal(NamedTuple):
    """Why there is no page, and what to do; ``advice`` is ``""`` if nothing special helps."""

    why: str
    advice: str = ""
    section: Section = "unreachable"  # of the documents that says more


def refusal_of(status: int, headers: Mapping[str, str], body: bytes, host: str) -> Refusal:
    """Explain a response without success; names of headers are in lower case, and the host includes its port.

    Examples
    --------
    >>> refusal_of(404, {}, b"", "a.test")
    Refusal(why='it answers 404', advice='', section='unreachable')
    >>> refusal_of(503, {}, b"", "a.test").why
    'it answers 503: it is overloaded or down'
    """
    said = f"it answers {status}"
    if status == 401:
        return _login(said, headers.get("www-authenticate", ""), host)
    if status in (403, 405, 429, 503) and (guard := guard_of(headers, body)):
        return Refusal(f"{said}: {guard} turns programs away", OWNER, "blocked")
    if status >= 500:
        return Refusal(f"{said}: {_MEANS.get(status, 'the server fails')}", _LATER)
    means = _MEANS.get(status)
    why = f"{said}: {means}" if means else said
    return Refusal(why, _ADVICE.get(status, ""), "blocked" if status in _BLOCKED else "unreachable")


def guard_of(headers: Mapping[str, str], body: bytes, *, by_name: bool = False) -> str:
    """Return who guards a site against programs, by a response: ``"a guard (Cloudflare)"``; ``""`` for nobody.

    ``by_name``: only guards that name themselves, as the texts of others may be on any page.
    """
    text = body[:READ].decode("latin-1").lower()
    for name, header, value, words in _GUARDS:
        if any(word in text for word in words) or (header in headers and value in headers[header].lower()):
            return f"a guard ({name})"
    return "a guard" if not by_name and _ANY_GUARD.search(text) else ""


def has_password_form(root: _Element) -> bool:
    """Whether a page asks for a password."""
    return any((each.get("type") or "").strip().lower() == "password" for each in root.iter("input"))


def _login(said: str, challenge: str, host: str) -> Refusal:
    if re.search(r"(?:^|,)\s*basic\b", challenge.lower()):
        settings = f"HTTPAUTH_USER, HTTPAUTH_PASS and HTTPAUTH_DOMAIN={host}"
        return Refusal(f"{said} and asks for a name and a password", f"set {settings}", "login-wall")
    scheme = challenge.partition(" ")[0]
    what = f" ({scheme[:40]})" if scheme else ""
    advice = "send what it asks for, with DEFAULT_REQUEST_HEADERS"
    return Refusal(f"{said} and asks for a login{what}", advice, "login-wall")
