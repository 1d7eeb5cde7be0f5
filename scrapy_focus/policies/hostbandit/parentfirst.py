"""Links of pages that were worth something, before all others: what is left of Anthelion without anything learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from scrapy_focus.policies.bases import Ordering

if TYPE_CHECKING:
    from scrapy_focus.core.types import Link, Outcome


class ParentFirst(Ordering):
    """Takes the links of pages that were worth something first, and equal ones in the order in which they were found.

    A baseline: nothing is learned. In the plugin that was released with the paper, most of what tells links apart is
    this rule.

    References
    ----------
    Meusel, Mika, Blanco: Focused Crawling for Structured Data. CIKM 2014.
    """

    summary: ClassVar[str] = "Takes links of pages that were worth something first; learns nothing."
    reads_page: ClassVar[bool] = False

    def rank(self, link: Link, source: Outcome | None) -> float:
        return float(source is not None and source.reward > 0)
