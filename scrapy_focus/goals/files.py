"""Looking for files of some MIME types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.web.mime import DATA_TYPES, describe_types, effective_mime, matches, parse_types

if TYPE_CHECKING:
    from collections.abc import Collection

    from scrapy_focus.core.types import Outcome


class FilesGoal:
    """An outcome is worth 1 if it is a file of a wanted type.

    Parameters
    ----------
    types
        Extensions like ``csv``, MIME types, or patterns like ``image/*``; by default ``data``, the types of the
        SB-CLASSIFIER paper.
    stored
        Count a file only if an item came of it: where a pipeline drops files that were had before, copies of a
        file under other URLs are worth nothing.
    """

    heads_tell = True

    def __init__(self, *, types: Collection[str] = DATA_TYPES, stored: bool = False) -> None:
        if isinstance(types, str):
            raise ConfigError(f"types is {types!r}; it takes a list, such as [{types!r}]")
        self.types = parse_types(types)
        self.stored = stored

    def __call__(self, outcome: Outcome) -> float:
        fetched = outcome.status is not None and 200 <= outcome.status < 300 and not outcome.error
        url = outcome.pick.url if outcome.page is None else outcome.page.url
        if not fetched or not self.wants(outcome.mime, url):
            return 0.0
        return float(outcome.items > 0) if self.stored and outcome.pick.method == "GET" else 1.0

    def wants(self, mime: str, url: str) -> bool:
        """Whether a file of this MIME type, from this URL, is a target."""
        return matches(mime, self.types) or matches(effective_mime(mime, url), self.types)

    def __repr__(self) -> str:
        return f"files: {describe_types(self.types)}{', each content once' if self.stored else ''}"
