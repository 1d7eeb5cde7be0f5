"""What every part of a frontier says where it finds itself inconsistent."""

from __future__ import annotations

from scrapy_focus.core.errors import FrontierError


def require(condition: object, what: str) -> None:
    """Raise FrontierError where something does not hold."""
    if not condition:
        raise FrontierError(f"the frontier is inconsistent: {what}")
