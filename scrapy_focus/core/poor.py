"""Which links are fetched last, whatever the policy says: the port for their recognition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_focus.core.types import Outcome

#: A link placed for this time, or later, is fetched when nothing else is left; no clock reaches it.
LAST = 1e15


class Poor(Protocol):
    """Recognises poor links; :class:`~scrapy_focus.web.poorlinks.PoorLinks` is one."""

    def is_poor(self, url: str, anchor: str = "") -> bool:
        """Whether a link is poor from the start."""

    def is_barren(self, url: str) -> bool:
        """Whether a link about to be fetched is of a kind that only gives errors."""

    def learn(self, outcome: Outcome) -> None:
        """Learn from the outcome of a pick."""

    def state(self) -> dict[str, Any]:
        """Return the state as plain values."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state of an earlier run."""
