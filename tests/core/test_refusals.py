"""Answers that refuse programs are recognised, each with what to do about it."""

from __future__ import annotations

import pytest

from scrapy_focus.web.html import parsed
from scrapy_focus.web.refusals import guard_of, has_password_form, refusal_of

GUARDED = "ask its owner for access, or look for an API or a download of its data"
ANSWERS = [
    (401, {"www-authenticate": 'Basic realm="x"'}, "",
     "it answers 401 and asks for a name and a password", "set HTTPAUTH_USER, HTTPAUTH_PASS and HTTPAUTH_DOMAIN=h.test:81"),
    (401, {"www-authenticate": 'Bearer realm="a",Basic realm="x"'}, "",
     "it answers 401 and asks for a name and a password", "set HTTPAUTH_USER, HTTPAUTH_PASS and HTTPAUTH_DOMAIN=h.test:81"),
    (401, {"www-authenticate": "Negotiate"}, "",
     "it answers 401 and asks for a login (Negotiate)", "send what it asks for, with DEFAULT_REQUEST_HEADERS"),
    (401, {}, "", "it answers 401 and asks for a login", "send what it asks for, with DEFAULT_REQUEST_HEADERS"),
    (403, {}, "Forbidden",
     "it answers 403: access is denied", "set USER_AGENT to who you are, or ask its owner for access"),
    (403, {"server": "cloudflare"}, "<b>Cloudflare Ray ID</b>: 1. Please enable JavaScript and cookies",
     "it answers 403: a guard (Cloudflare) turns programs away", GUARDED),
    (503, {"cf-mitigated": "challenge"}, "", "it answers 503: a guard (Cloudflare) turns programs away", GUARDED),
    (403, {"server": "AkamaiGHost"}, "Access Denied", "it answers 403: a guard (Akamai) turns programs away", GUARDED),
    (403, {"x-datadome": "protected"}, "", "it answers 403: a guard (DataDome) turns programs away", GUARDED),
    (429, {}, "Show that you are not a robot", "it answers 429: a guard turns programs away", GUARDED),
    (429, {}, "", "it answers 429: it was sent too many requests", "try again later, with a larger DOWNLOAD_DELAY"),
    (503, {}, "", "it answers 503: it is overloaded or down", "try again later"),
    (500, {}, "captcha", "it answers 500: the server fails", "try again later"),
    (404, {}, "captcha", "it answers 404", ""),
    (410, {}, "", "it answers 410", ""),
]  # fmt: skip


@pytest.mark.parametrize(("status", "headers", "body", "why", "advice"), ANSWERS)
def test_each_refusal_has_its_sentence(status: int, headers: dict[str, str], body: str, why: str, advice: str) -> None:
    """By its status, its headers, and what guards write on their pages."""
    assert refusal_of(status, headers, body.encode(), "h.test:81")[:2] == (why, advice)


@pytest.mark.parametrize(
    ("status", "headers", "section"),
    [
        (401, {}, "login-wall"), (401, {"www-authenticate": "Basic"}, "login-wall"), (403, {}, "blocked"),
        (403, {"cf-mitigated": "challenge"}, "blocked"), (429, {}, "blocked"), (451, {}, "blocked"),
        (404, {}, "unreachable"), (503, {}, "unreachable"),
    ],
)  # fmt: skip
def test_each_refusal_names_the_section_on_it(status: int, headers: dict[str, str], section: str) -> None:
    """The section of the page on problems."""
    assert refusal_of(status, headers, b"", "h.test").section == section


def test_a_text_on_robots_is_no_guard() -> None:
    """On a page that was given, only a guard that names itself counts."""
    assert guard_of({}, b"Are you a robot? A history of the captcha", by_name=True) == ""
    assert guard_of({}, b'<script src="/_Incapsula_Resource?x"></script>', by_name=True) == "a guard (Imperva)"


@pytest.mark.parametrize(
    ("page", "asks"),
    [
        ("<form><input name=user><input type=PASSWORD></form>", True),
        ("<form><input name=q></form><p>password</p>", False),
    ],
)
def test_a_form_for_a_password(page: str, asks: bool) -> None:
    """It has an input of that type."""
    root = parsed(f"<html><body>{page}</body></html>")
    assert root is not None
    assert has_password_form(root) is asks
