"""Sizes as people write them: ``500kB``, ``2 GB``, ``1.5 GiB``."""

from __future__ import annotations

import math
import re
from typing import NamedTuple, Self

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import brief

#: Bytes of each unit.
UNITS = {
    "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
    "TiB": 2**40,
}  # fmt: skip

_BY_LOWER = {"byte": "B", "bytes": "B", **{unit.lower(): unit for unit in UNITS}}
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,6})?) ?([a-z]*)")
_MOST = 1 << 62  # bytes
_LONGEST = 40  # characters


class Size(NamedTuple):
    """A number of bytes in the unit that the user wrote.

    Examples
    --------
    >>> size = Size.of("1.5gb")
    >>> str(size), size.bytes
    ('1.5 GB', 1500000000)
    """

    amount: float
    unit: str  # a key of `UNITS`

    @classmethod
    def of(cls, given: object, name: str = "size", *, hint: str = "such as 500kB, 2GB or 1GiB") -> Self:
        """Read a size with its unit; `name` names it in errors.

        Raises
        ------
        ConfigError
            If it is not a size, has no unit, or is less than a byte.
        """
        text = given if isinstance(given, str) and len(given) <= _LONGEST else ""
        found = _SIZE.fullmatch(" ".join(text.lower().split()))
        unit = _BY_LOWER.get(found[2], "") if found else ""
        amount = float(found[1]) if found else math.nan
        if not (unit and 1 <= amount * UNITS[unit] <= _MOST):
            raise ConfigError(f"{name} is {brief(given)}; it takes a size with its unit, {hint}")
        return cls(amount, unit)

    @property
    def bytes(self) -> int:
        """Its number of bytes."""
        return int(self.amount * UNITS[self.unit])

    def __str__(self) -> str:
        return f"{self.amount:,.10g} {self.unit}"
