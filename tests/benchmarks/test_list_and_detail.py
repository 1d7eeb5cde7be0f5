"""In ordinary list-and-detail projects the learning crawl has its items no later than the stock one."""

from __future__ import annotations

import pytest

from list_and_detail import AuthorsMade, BooksByRules, BooksMadeDetails, BooksPagesFirst, BooksPagesLast, measure

pytestmark = pytest.mark.slow

FIRST_ITEMS = [BooksPagesFirst, BooksPagesLast, BooksMadeDetails, BooksByRules, AuthorsMade]
ADDON = {"ADDONS": {"scrapy_focus.Addon": 500}}
ONE = {"CONCURRENT_REQUESTS": 1, "FOCUS_MAX_INFLIGHT": 1}  # so that each choice knows what the last one brought


@pytest.mark.parametrize("spider", FIRST_ITEMS)
def test_the_fifth_item_comes_no_later(spider: type) -> None:
    """Listing pages that code makes do not go before the first details, in whatever order they were made."""
    stock = measure(spider, {"CONCURRENT_REQUESTS": 1, "CLOSESPIDER_ITEMCOUNT": 5})[0]
    for seed in range(5):
        ours = measure(spider, {**ADDON, **ONE, "FOCUS_SEED": seed, "CLOSESPIDER_ITEMCOUNT": 5})[0]
        assert ours <= stock, (spider.name, seed)


def test_the_whole_crawl_is_no_later() -> None:
    """Half of the items and 90 % of them come no later either, and all of them do come."""
    *stock, items = measure(AuthorsMade, {"CONCURRENT_REQUESTS": 1})
    *ours, found = measure(AuthorsMade, {**ADDON, **ONE, "FOCUS_SEED": 1})
    assert found == items == 60
    assert ours[1] <= stock[1]
    assert ours[2] <= stock[2]
