"""Which links are fetched last, whatever the policy says: what a crawl asks of whoever recognises them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_focus.core.types import Outcome

#: Links that are placed for this time, or a later one, are fetched when nothing else is left; no clock shows it.
LAST = 1e15


class Poor(Protocol):
    """Recognises poor links; :class:`~scrapy_focus.web.poorlinks.PoorLinks` is one."""

    def is_poor(self, url: str, anchor: str = "") -> bool:
        """Whether a link is poor from the start."""

    def is_barren(self, url: str) -> bool:
        """Whether a link that is about to be fetched is of a kind that brings errors alone."""

    def learn(self, outcome: Outcome) -> None:
        """See what a pick brought back."""

    def state(self) -> dict[str, Any]:
        """Return what was learned, as plain values."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Know what an earlier run had learned."""
