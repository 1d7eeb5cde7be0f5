"""Parses the times of change in sitemaps and feeds: dates in any format, and how far they are believed."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

_LONGEST = 64  # characters of a date
_COARSE = re.compile(r"(\d{4})(?:-(\d\d))?\Z", re.ASCII)  # a year, or a month
_DAY = 86_400.0
_ZONES = 14 * 3600.0  # seconds: the largest offset of a time zone before UTC
_SKEW = 60.0  # seconds by which the clock of a server may be fast


class Moment(NamedTuple):
    """A time in seconds since the epoch: the earliest possible, and the assumed one."""

    earliest: float
    at: float


def read_moment(said: str) -> Moment | None:
    """Return the time of a W3C date, ISO 8601 or RFC 822; ``None`` for anything else.

    For a day its end is assumed, as the change may have happened until then; for a month or a year its beginning.
    Without a time zone, UTC is assumed.

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
    """Return the time of a stated moment; ``None`` if it is in the future.

    Examples
    --------
    >>> believed(read_moment("1970-01-02"), now=90_000.0), believed(read_moment("1970-01-03"), now=90_000.0)
    (90000.0, None)
    """
    return None if moment.earliest > now + _SKEW else min(moment.at, now)


def _day(said: str) -> float | None:
    """Return the start of a day in UTC, ``None`` for anything else."""
    try:
        day = date.fromisoformat(said)
    except ValueError:
        return None
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def _moment(said: str) -> datetime:
    try:
        return datetime.fromisoformat(said)
    except ValueError:
        return parsedate_to_datetime(said)  # "-0000" there means an unknown zone
