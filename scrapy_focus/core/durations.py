"""Times and units of time as people write them: ``90s``, ``30 min``, ``24h``, ``7 days``."""

from __future__ import annotations

import math
import re
from typing import NamedTuple, Self

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import brief

#: Seconds of each unit.
UNITS = {"millisecond": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86_400.0, "week": 604_800.0}

_SHORT = {
    "ms": "millisecond", "s": "second", "sec": "second", "min": "minute", "h": "hour", "hr": "hour", "d": "day",
    "w": "week",
}  # fmt: skip
_TIME = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ?([a-z]*)")
_MOST = 100 * 365 * UNITS["day"]
_LONGEST = 40  # characters


def unit_of(word: str) -> str:
    """Return the name of a unit of time, ``""`` if it is none.

    Examples
    --------
    >>> unit_of("min"), unit_of("hrs"), unit_of("day"), unit_of("m")
    ('minute', 'hour', 'day', '')
    """
    for name in (word, word.removesuffix("s")):
        if (unit := _SHORT.get(name, name)) in UNITS:
            return unit
    return ""


class Duration(NamedTuple):
    """A time in the unit that the user wrote.

    Examples
    --------
    >>> lasts = Duration.of("24h")
    >>> str(lasts), lasts.seconds
    ('24 hours', 86400.0)
    """

    amount: float
    unit: str  # a name in `UNITS`

    @classmethod
    def of(
        cls, given: object, name: str = "time", *, bare: str = "", hint: str = "such as 90s, 30min, 24h or 7d"
    ) -> Self:
        """Read a time. `name` names it in errors; `bare` is the unit of a number without one, ``""`` for none.

        Raises
        ------
        ConfigError
            If it is not a time, has no unit, is 0, or is longer than a hundred years.
        """
        found = _TIME.fullmatch(_text_of(given))
        unit = unit_of(found[2]) if found and found[2] else bare
        amount = float(found[1]) if found else math.nan
        if not (unit and 0 < amount * UNITS[unit] <= _MOST):
            what = f"a time with its unit, {hint}" if not bare else f"a number of {bare}s above 0, or a time {hint}"
            raise ConfigError(f"{name} is {brief(given)}; it takes {what}")
        return cls(amount, unit)

    @property
    def seconds(self) -> float:
        """Its length in seconds."""
        return self.amount * UNITS[self.unit]

    def __str__(self) -> str:
        return f"{self.amount:,.10g} {self.unit}{'s' * (self.amount != 1)}"


def _text_of(given: object) -> str:
    """Return a time as a text with single spaces in small letters; ``""`` for neither a text nor a number."""
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        given = str(given)
    if not isinstance(given, str) or len(given) > _LONGEST:
        return ""
    return " ".join(given.lower().split())
