"""Looking for items: whatever the spider scrapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy_focus.core.types import Outcome


class ItemsGoal:
    """An outcome is worth the items that its page gave, as they came out of the item pipelines."""

    #: Whether the headers of a response are enough to know what it is worth, so that a HEAD can tell.
    heads_tell = False

    def __call__(self, outcome: Outcome) -> float:
        return outcome.items

    def __repr__(self) -> str:
        return "items scraped"
