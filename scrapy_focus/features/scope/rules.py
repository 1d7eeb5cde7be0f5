"""The rules of a scope, and which of them a URL breaks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from scrapy_focus.web.areas import REACHES
from scrapy_focus.web.expressions import compiled

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

    from scrapy_focus.web.areas import Reach

#: Why a URL is out of scope: an exclusion, no inclusion, its place, its depth, or the number of pages of its host. Or
#: ``""``: it is in scope.
Reason = Literal["", "excluded", "not_included", "page", "prefix", "host", "domain", "depth", "host_full"]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules of a scope.

    Examples
    --------
    >>> rules = Rules(include=["/data/", "/docs/"], exclude=["logout"])
    >>> [rules.broken_by(f"http://a.test{path}") for path in ("/data/1", "/data/logout", "/", "/#/docs/")]
    ['', 'excluded', 'not_included', 'not_included']
    """

    include: Sequence[str] = ()  # regular expressions, one of which has to match
    exclude: Sequence[str] = ()  # likewise, none of which may match
    reach: Reach = "any"
    depth: int | None = None  # links from a start URL; None: no limit
    n_pages: int = 0  # pages of a host; 0: no limit

    def excludes(self, url: str) -> bool:
        """Whether an exclusion matches a URL without its fragment."""
        return _matches(self._excluded, url)

    def broken_by(self, url: str) -> Reason:
        """Return which of the expressions rule a URL out."""
        if self.excludes(url):
            return "excluded"
        if self.include and not _matches(self._included, url):
            return "not_included"
        return ""

    def is_wider_than(self, others: Rules) -> bool:
        """Whether some URL may be in the scope that was out of another one."""
        return (
            not set(others.exclude) <= set(self.exclude)
            or bool(others.include and not (self.include and set(self.include) <= set(others.include)))
            or REACHES.index(self.reach) > REACHES.index(others.reach)
            or (others.depth is not None and (self.depth is None or self.depth > others.depth))
            or bool(others.n_pages and not 0 < self.n_pages <= others.n_pages)
        )

    @cached_property
    def _excluded(self) -> list[re.Pattern[str]]:
        return [compiled(each) for each in self.exclude]

    @cached_property
    def _included(self) -> list[re.Pattern[str]]:
        return [compiled(each) for each in self.include]


def _matches(expressions: list[re.Pattern[str]], url: str) -> bool:
    bare = url.partition("#")[0]
    return any(each.search(bare) for each in expressions)
