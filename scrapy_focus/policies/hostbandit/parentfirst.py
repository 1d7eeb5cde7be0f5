"""Links of rewarded pages before all others: Anthelion without any learning."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from scrapy_focus.policies.bases import Ordering

if TYPE_CHECKING:
    from scrapy_focus.core.types import Link, Outcome


class ParentFirst(Ordering):
    """Takes the links of rewarded pages first, and equal ones in the order of discovery.

    A baseline: nothing is learned. In the plugin that was released with the paper, this rule makes most of the
    difference between links.

    References
    ----------
    Meusel, Mika, Blanco: Focused Crawling for Structured Data. CIKM 2014.
    """

    summary: ClassVar[str] = "Takes links of rewarded pages first; learns nothing."
    reads_page: ClassVar[bool] = False

    def rank(self, link: Link, source: Outcome | None) -> float:
        return float(source is not None and source.reward > 0)
