"""When a page changed, as sitemaps and feeds say it: dates of any form, and how far they are believed."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

_LONGEST = 64  # characters of a date
_COARSE = re.compile(r"(\d{4})(?:-(\d\d))?\Z", re.ASCII)  # a year, or a month
_DAY = 86_400.0
_ZONES = 14 * 3600.0  # seconds: the farthest zone is so far ahead of UTC
_SKEW = 60.0  # seconds by which the clock of a server may be ahead


class Moment(NamedTuple):
    """When something was, in seconds since the epoch: at the earliest, and as it is taken to be."""

    earliest: float
    at: float


def read_moment(said: str) -> Moment | None:
    """Return when something was that is written as a W3C date, ISO 8601 or RFC 822; ``None`` for what is no date.

    A day is taken to be its end, as what changed may have done so until then; a month or a year its beginning. Where no
    time zone is written, it is taken to be UTC.

    Examples
    --------
    >>> read_moment("1970-01-02T00:00:00Z"), read_moment("Thu, 01 Jan 1970 01:00:00 +0100")
    (Moment(earliest=86400.0, at=86400.0), Moment(earliest=0.0, at=0.0))
    >>> read_moment("1970-01-02"), read_moment("yesterday")
    (Moment(earliest=36000.0, at=172800.0), None)
    """
    said = said.strip()
    if not 4 <= len(said) <= _LONGEST:
        return None
    try:
        if coarse := _COARSE.match(said):
            start = datetime(int(coarse[1]), int(coarse[2] or 1), 1, tzinfo=UTC).timestamp()
            return Moment(start - _ZONES, start)
        if (day := _day(said)) is not None:
            return Moment(day - _ZONES, day + _DAY)
        moment = _moment(said)
        at = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return Moment(at if moment.tzinfo else at - _ZONES, at)


def believed(moment: Moment, now: float) -> float | None:
    """Return when something was that is said to have been then; ``None`` where that is in the future.

    Examples
    --------
    >>> believed(read_moment("1970-01-02"), now=90_000.0), believed(read_moment("1970-01-03"), now=90_000.0)
    (90000.0, None)
    """
    return None if moment.earliest > now + _SKEW else min(moment.at, now)


def _day(said: str) -> float | None:
    """Return when a day begins in UTC, ``None`` for what is no day."""
    try:
        day = date.fromisoformat(said)
    except ValueError:
        return None
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def _moment(said: str) -> datetime:
    try:
        return datetime.fromisoformat(said)
    except ValueError:
        return parsedate_to_datetime(said)  # "-0000" there means that the zone is not known
