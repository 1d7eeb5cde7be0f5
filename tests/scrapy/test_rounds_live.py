"""Live crawls of the policies that fetch pages again without learning."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from crawls import Follower, crawl

from scrapy_focus.policies.rounds import AtRandom, HubsInTurn, InTurn, Restarts

if TYPE_CHECKING:
    from mocksite import MockSite

FAMILY = {"/": '<a href="/1">1</a><a href="/2">2</a>', "/1": '<a href="/">home</a>', "/2": '<a href="/1">1</a>'}


def asked(site: MockSite, policy: type, requests: int, **params: Any) -> list[str]:
    """Crawl with one request in flight; return the paths that were asked for."""
    site.pages |= FAMILY
    settings = {
        "FOCUS_POLICY": policy, "FOCUS_POLICY_PARAMS": params, "FOCUS_BUDGET_REQUESTS": requests,
        "FOCUS_MAX_INFLIGHT": 1, "FOCUS_SEED": 0, "ROBOTSTXT_OBEY": False,
    }  # fmt: skip
    result = crawl(Follower, settings, seeds=[site.url("/")])
    assert result.reason == "focus_budget_requests"
    assert result.errors == {}
    assert "focus/select/none" not in result.stats
    return list(site.paths)


@pytest.mark.reactor
@pytest.mark.parametrize(
    ("policy", "params", "order"),
    [
        (InTurn, {}, ["/", "/", "/1", "/", "/2", "/1", "/", "/2", "/1", "/"]),
        (HubsInTurn, {"links": 2}, ["/", "/", "/1", "/", "/2", "/", "/", "/"]),
    ],
    ids=["in turn", "hubs"],
)
def test_requests_are_those_of_the_policy(
    site: MockSite, policy: type, params: dict[str, Any], order: list[str]
) -> None:
    """Unchanged pages are not read again, and do not change their state."""
    assert asked(site, policy, len(order), **params) == order


@pytest.mark.reactor
def test_pages_at_random(site: MockSite) -> None:
    """All of them, again and again."""
    paths = asked(site, AtRandom, 40)
    assert {path: paths.count(path) > 3 for path in FAMILY} == dict.fromkeys(FAMILY, True)


@pytest.mark.reactor
def test_each_round_begins_from_nothing(site: MockSite) -> None:
    """In the order of discovery, as far as the time of a round allows; no page counts as unchanged."""
    paths = asked(site, Restarts, 12, every=0.25 / 86_400)
    begins = [n for n, path in enumerate(paths) if path == "/"]
    rounds = [paths[begin:end] for begin, end in pairwise([*begins, len(paths)])]
    assert len(rounds) >= 4
    assert all(each == ["/", "/1", "/2"][: len(each)] for each in rounds), rounds
