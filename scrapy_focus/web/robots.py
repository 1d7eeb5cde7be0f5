"""Reads rules for robots: in headers, in ``<meta name="robots">``, in ``rel``, and the text of a robots.txt."""

from __future__ import annotations

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from scrapy_focus.web.linkurls import spellings
from scrapy_focus.web.listings import beginning

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lxml.etree import _Element

#: Bytes of a robots.txt that are read: the minimum of RFC 9309.
ROBOTS_BYTES = 500 * 1024

_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_NONE = frozenset({"noindex", "nofollow"})  # the meaning of "none"
_WITH_VALUE = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")


def asked_of_robots(root: _Element | None, headers: Iterable[str]) -> frozenset[str]:
    """Return the rules of a page for all robots, in lower case: ``nofollow``, ``noindex``, and others.

    Parameters
    ----------
    root
        The parsed page, ``None`` for anything but HTML.
    headers
        Values of ``X-Robots-Tag``. Rules for a named robot (``examplebot: noindex``) do not count.
    """
    said: set[str] = set()
    for value in headers:
        if not _is_for_one(value):
            said.update(_words(value))
    if root is not None:
        for meta in root.iter("meta"):
            if (meta.get("name") or "").strip().lower() == "robots":
                said.update(_words(meta.get("content") or ""))
    if "none" in said:
        said |= _NONE
    return frozenset(said)


def _is_for_one(value: str) -> bool:
    """Whether a header starts with the name of a robot, and not with a directive that has a value."""
    name, colon, _ = value.partition(":")
    return bool(colon) and "," not in name and name.strip().lower() not in _WITH_VALUE


def nofollowed(root: _Element, base: str, *, encoding: str = "utf-8") -> frozenset[str]:
    """Return the URLs of a page, without fragments, all of whose links have ``rel="nofollow"``."""
    followed: list[str] = []
    others: set[str] = set()
    for element in root.iter("a", "area"):
        href = element.get("href")
        if href is None:
            continue
        if "nofollow" in (element.get("rel") or "").lower().split():
            others |= spellings(base, href, encoding)
        else:
            followed.append(href)
    if not others:
        return frozenset()
    return frozenset(others.difference(*(spellings(base, href, encoding) for href in followed)))


def retry_after(value: str, *, now: float) -> float | None:
    """Return the delay of a ``Retry-After`` header in seconds; ``None`` if it is unusable.

    ``now`` is the time in seconds since 1970, to which a date is compared.
    """
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(float(value[:12]), 1e12)
    try:
        date = parsedate_to_datetime(value)
        until = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError, OSError):
        return None
    return max(0.0, until - now)


def rules_of(body: bytes, *, is_encoded: bool) -> bytes | None:
    """Return a robots.txt for a parser, in UTF-8; ``None`` if it could not be decoded.

    A gzip body is inflated, whatever its headers say.

    Parameters
    ----------
    body
        The body as received, or decoded.
    is_encoded
        Whether its headers name an encoding that was not decoded. Then it is read only if it is text.
    """
    found = beginning(body, ROBOTS_BYTES)
    if found.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        found = found.decode("utf-16", "ignore").encode()
    is_binary = bool(body) and (not found or _CONTROLS.search(found) is not None)
    return None if is_encoded and is_binary else found


def _words(text: str) -> list[str]:
    return [word.strip().lower() for word in text.split(",")]
