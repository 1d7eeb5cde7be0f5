"""Near copies in a crawl of several workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from copysite import CopySite
from crawls import BREADTH_FIRST, Follower

from tests.cluster.workers import share

if TYPE_CHECKING:
    from pathlib import Path


def test_copies_are_not_followed(tmp_path: Path) -> None:
    """What a worker learns of parameters that do not matter holds for its hosts."""
    with CopySite(shelves=12, items=2, tracking="utm_source") as site:
        settings = {"FOCUS_IGNORE_PARAMETERS": True, "FOCUS_POLICY": BREADTH_FIRST, "FOCUS_TARGETS": ["csv"]}
        result = share(Follower, tmp_path, settings, addon=True, seeds=[site.url("/")])
        assert site.fetched() == site.distinct()
        assert len(site.paths) < 3 * len(site.distinct())
    assert result.total("focus/near/dropped") > 0
    assert result.errors == {}
