"""Near copies where pages are fetched again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
import test_coming_back
import test_visits
from copysite import CopySite, prose
from crawls import Follower, crawl
from test_coming_back import _slow_heartbeat  # noqa: F401

if TYPE_CHECKING:
    from pathlib import Path


def test_near_copies_learn_nothing_from_later_visits() -> None:
    """A page that changes while it is watched teaches nothing about its parameters."""
    with CopySite(shelves=6, items=2, sorts=True) as shop:
        shop.own = lambda path, query: _changing(shop, path, query)
        settings = test_visits.again(
            400, FOCUS_IGNORE_PARAMETERS=True, FOCUS_POLICY_PARAMS={"every": test_visits.EVERY, "times": 3}
        )
        result = crawl(Follower, settings, seeds=[shop.url("/")])
        assert max(Counter(shop.paths).values()) >= 3
    assert result.stats["focus/near/learned"] == 1
    assert "focus/near/unlearned" not in result.stats


def _changing(shop: CopySite, path: str, query: dict[str, str]) -> str | None:
    """Return a shelf with a different text at each later request for one of its URLs."""
    kind, _, number = path[1:].partition("/")
    if kind != "shelf":
        return None
    shop._where = f"{kind}{number}"
    times = Counter(shop.paths)
    visit = max((n for where, n in times.items() if where.partition("?")[0] == path), default=1)
    news = prose(visit * 1000 + int(number)) if visit > 1 else ""
    return f"<html><body>{shop.shelf(int(number), query)}<p>{news}</p></body></html>"


@pytest.mark.slow
def test_near_copies_are_not_seen_in_later_visits(tmp_path: Path) -> None:
    """A page is not a copy of itself: with ignored parameters, each page that was fetched is revisited."""
    with CopySite(shelves=6, items=2, sorts=True) as shop:
        settings = test_coming_back.again(
            shop, 1000, FOCUS_IGNORE_PARAMETERS=True, FOCUS_MAX_INFLIGHT=1, JOBDIR=str(tmp_path)
        )
        settings["FOCUS_POLICY_PARAMS"] = {"every": 2 * test_coming_back.EVERY, "times": 2}
        first = crawl(Follower, {**settings, "CLOSESPIDER_PAGECOUNT": 40}, seeds=[shop.url("/")])
        second = crawl(Follower, settings, seeds=[shop.url("/")])
        visits = Counter(shop.paths)
        assert second.reason == "finished"
        assert shop.fetched() == shop.distinct()
        assert set(visits.values()) == {3}, "copies that were fetched before anybody knew, too"
    assert first.stats["focus/near/dropped"] > 0
    assert first.errors == second.errors == {}
