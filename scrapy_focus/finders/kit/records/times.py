"""Times in the format of the files."""

from __future__ import annotations

from datetime import UTC, datetime


def time_text(at: float | None) -> str:
    """Return a time in the format of the lists, ``""`` for none.

    Examples
    --------
    >>> time_text(0.0)
    '1970-01-01T00:00:00+00:00'
    """
    if at is None:
        return ""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def time_of(text: str) -> float | None:
    """Return the time of such a text, in seconds since the epoch; ``None`` if it is not a time.

    Examples
    --------
    >>> time_of("1970-01-01T01:00:00+01:00"), time_of("soon")
    (0.0, None)
    """
    try:
        said = datetime.fromisoformat(text)
        return (said if said.tzinfo else said.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
