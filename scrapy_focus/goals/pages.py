"""A goal for all pages, whatever their content."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy_focus.core.types import Outcome


class PagesGoal:
    """The reward is 1 for a page in which links can be found, and 0 otherwise.

    For orders that do not learn from rewards, such as that by importance: it counts the pages of the crawl.
    """

    heads_tell = False
    #: The noun for what is counted.
    noun = "pages"

    def __call__(self, outcome: Outcome) -> float:
        return float(outcome.is_html and outcome.status is not None and 200 <= outcome.status < 300)

    def __repr__(self) -> str:
        return "pages"
