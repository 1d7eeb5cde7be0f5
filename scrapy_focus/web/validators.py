"""Reads validators and freshness from response headers, for the next visit of a page."""

from __future__ import annotations

import re
from email.utils import parsedate_tz
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST = 500  # characters of an ETag
_LONGEST_DATE = 60
_LONGEST_AGE = 10 * 365 * 86400.0  # seconds
_MAX_AGE = re.compile(r"(?:^|[,;\s])max-age\s{0,5}=\s{0,5}\"?(\d{1,20})", re.IGNORECASE)


def etag_of(values: Sequence[str]) -> str:
    """Return the ``ETag`` of a response, strong or weak, in the form to send back.

    ``""`` if there is none, or several that differ, or one that is too long, or is not printable ASCII.
    """
    value = _only(values)
    return value if len(value) <= _LONGEST and value.isascii() and value.isprintable() else ""


def modified_of(values: Sequence[str]) -> str:
    """Return the ``Last-Modified`` of a response, in the form to send back; ``""`` without a valid date."""
    value = _only(values)
    if len(value) > _LONGEST_DATE or not (value.isascii() and value.isprintable()):
        return ""
    try:
        return value if parsedate_tz(value) is not None else ""
    except (ValueError, IndexError):  # of invalid dates, in some versions of Python
        return ""


def max_age_of(values: Sequence[str], age: str = "") -> float | None:
    """Return for how many seconds a response is fresh by its ``Cache-Control``, minus its ``Age``.

    ``None`` if it does not say. Directives for shared caches (``s-maxage``) do not count. Ten years at most.

    Examples
    --------
    >>> max_age_of(["public, max-age=600"], age="100")
    500.0
    >>> max_age_of(["s-maxage=600"]) is None
    True
    """
    found = [float(each) for value in values for each in _MAX_AGE.findall(value[:_LONGEST])]
    if not found:
        return None
    spent = float(age) if age.isdecimal() and len(age) < 20 else 0.0
    return max(0.0, min(*found, _LONGEST_AGE) - spent)


def _only(values: Sequence[str]) -> str:
    """Return the value of a header that occurs once, or with equal values."""
    different = {value.strip() for value in values}
    return different.pop() if len(different) == 1 else ""
