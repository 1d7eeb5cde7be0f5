"""The common error of all parts of a frontier that find it inconsistent."""

from __future__ import annotations

from scrapy_focus.core.errors import FrontierError


def require(condition: object, what: str) -> None:
    """Raise FrontierError if a condition is false."""
    if not condition:
        raise FrontierError(f"the frontier is inconsistent: {what}")
