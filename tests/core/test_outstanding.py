"""How many picks may be out at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scrapy_focus.core.outstanding import LEAST, most_out


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**6), st.integers(0, 10**6))
def test_what_is_learned_never_lowers_the_bound(outcomes: int, more: int, hosts: int, others: int) -> None:
    """Nor do more hosts."""
    assert most_out(outcomes + more, hosts + others) >= most_out(outcomes, hosts) >= LEAST


def test_a_crawl_of_one_host_has_few_out_until_it_has_seen_much() -> None:
    """Fewer than a tenth of its outcomes from some hundreds on, and an ever smaller share."""
    assert all(most_out(outcomes) <= outcomes / 10 for outcomes in range(225, 100_000, 7))
    shares = [most_out(10**n) / 10**n for n in range(2, 9)]
    assert shares == sorted(shares, reverse=True)
    assert most_out(0) == LEAST


def test_a_long_crawl_of_many_hosts_has_one_out_for_each() -> None:
    """But not at once, as a crawl on a topic finds more hosts than it learns about."""
    assert most_out(100_000, 4_000) == 4_000
    assert most_out(20_000, 4_000) == 1_000
    assert all(most_out(outcomes, 10**6) <= outcomes / 10 for outcomes in range(225, 100_000, 7))
