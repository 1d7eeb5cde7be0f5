"""The scope of a crawl of several workers."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

from crawls import BREADTH_FIRST, Follower
from mocksite import MockSite, tree_paths

from tests.cluster.workers import share

if TYPE_CHECKING:
    from pathlib import Path


def test_all_workers_stay_in_scope(tmp_path: Path) -> None:
    """Patterns and depth hold for each of them, whichever found a link."""
    with MockSite() as site:
        settings = {"FOCUS_EXCLUDE": ["/page/4/"], "FOCUS_DEPTH": 4, "FOCUS_POLICY": BREADTH_FIRST}
        result = share(Follower, tmp_path, settings, addon=True, seeds=[site.url("/page/0/60")])
        below = {k for k in range(60) if _is_below(k, 4)}
        levels = [path for k, path in enumerate(tree_paths(60)) if log2(k + 1) < 5 and k not in below]
        assert sorted(set(site.paths)) == sorted(levels)
    assert result.total("focus/scope/excluded") > 0
    assert result.errors == {}


def _is_below(k: int, top: int) -> bool:
    """Whether a page of a tree is another one, or below it."""
    while k > top:
        k = (k - 1) // 2
    return k == top
