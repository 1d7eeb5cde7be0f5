"""Arguments of a watch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from scrapy_focus.finders.kit.arguments.argument import POSITIONAL, argument
from scrapy_focus.finders.kit.arguments.finder_arguments import FolderArguments
from scrapy_focus.finders.kit.arguments.readers import (
    read_hours,
    read_rate,
    read_text,
    sitemaps_argument,
)
from scrapy_focus.finders.kit.arguments.seeds import roots_reader

if TYPE_CHECKING:
    from scrapy_focus.core.budget import Rate
    from scrapy_focus.finders.kit.arguments.argument import Called
    from scrapy_focus.finders.kit.arguments.seeds import Starts
    from scrapy_focus.goals.news import NewsGoal

_HOURS = 24.0


def _read_age(given: str, called: Called) -> float:
    """Return hours; a day for ``""``."""
    return read_hours(given, called) or _HOURS


@dataclass(frozen=True, kw_only=True)
class NewsArguments(FolderArguments):
    """Values of the arguments of a watch."""

    instead_of_texts = "focus watch lists articles, and stores none of them"

    root: Starts = argument(roots_reader("news"), option=POSITIONAL)
    rate: Rate | None = argument(
        read_rate, metavar="N/day",
        help="send at most this many requests of all kinds, such as 2000/day, 500/h or 60/min",
    )  # fmt: skip
    hours: float = argument(
        _read_age, metavar="TIME",
        help="ignore articles that are older than this when first visited, in hours, or such as 2d (default: 24)",
    )  # fmt: skip
    out: str = argument(read_text, default="watched")
    sitemaps: bool = sitemaps_argument()

    @property
    def starts(self) -> Starts:
        return self.root

    @cached_property
    def goal(self) -> NewsGoal:
        """The goal, which decides whether a page is news."""
        from scrapy_focus.goals.news import NewsGoal

        return NewsGoal(hours=self.hours)

    @property
    def looks_for(self) -> str:
        return repr(self.goal)

    @property
    def sends(self) -> str:
        limits = [f"at most {self.rate}" if self.rate else "", super().sends]
        return ", ".join(limit for limit in limits if limit)

    @property
    def fixed(self) -> dict[str, str]:
        return {"root": ",".join(sorted(set(self.root.urls))), "hours": f"{self.hours:g}"}
