"""The bandit of hosts by hand: the best host, how often others are chosen, and the features of a link."""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import beta, kstest

from scrapy_focus import Crawl, HostBandit, Link, State
from scrapy_focus.policies.hostbandit.hosts import HostTable
from scrapy_focus.policies.hostbandit.scores import SCORES
from tests.made import failure, fetch, link, links, page
from tests.policies.manyhosts import ManyHosts, crawl_of, steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scrapy_focus import Pick

PRESET = "cikm-2014"

# Scores

HOSTS = ("many", "none", "few", "new")
RECORDS = {  # pages worth something, worth nothing, predicted rightly, and what the best link promises
    "many": (3, 1, 2, 0.2),
    "none": (0, 2, 1, 0.9),
    "few": (2, 0, 0, 0.5),
    "new": (0, 0, 0, 0.0),  # no link was judged: nothing is promised
}
DRAWN = {"many": 0.5, "none": 0.25, "few": 0.75, "new": 0.125}
# the rate of all is (5 + 1) / (8 + 2) = 0.6, and counts for two pages; alpha and beta are 1
BY_HAND: dict[str, tuple[float, float, float, float]] = {
    "negative bad": (-1, -2, 0, 0),
    "best": (0.2, 0.9, 0.5, 0),
    "success rate": (2, 1 / 3, 3, 1),
    "thompson": (0.5, 0.25, 0.75, 0.125),
    "good x best": (0.6, 0, 1, 0),
    "thompson x best": (0.1, 0.225, 0.375, 0),
    "success rate x best": (0.4, 0.3, 1.5, 0),
    "good": (3, 0, 2, 0),
    "holistic": (0.48, 2 / 9, 1 / 3, 0),
    "posterior": (7 / 6, 0.5, 4 / 3, 1),
    "posterior x best": (7 / 30, 0.45, 2 / 3, 0),
    "joint": (0.2 + math.log(14 / 9), 0.9 - math.log(3.5), 0.5 + math.log(8 / 3), 0),
    "pooled thompson": (0.5, 0.25, 0.75, 0.125),
    "pooled thompson x best": (0.1, 0.225, 0.375, 0),
}


def table_of(score: str, order: Sequence[str], best: Mapping[str, float]) -> HostTable:
    """Return a table of hosts that were seen in this order, with the records above."""
    table = HostTable(score=score, arm="host", prior=1.0, strength=2.0)
    arms = {host: table.number(host, f"http://{host}/") for host in order}
    for host, arm in arms.items():
        good, bad, right, _ = RECORDS[host]
        for at in range(good + bad):
            table.earn(arm, float(at < good), right=at < right)
        table.best[arm], table.drawn[arm] = best[host], DRAWN[host]
    table.enter(list(arms.values()))
    return table


@pytest.mark.parametrize("score", SCORES)
def test_each_score_by_hand(score: str) -> None:
    """Three hosts and one without data, in every order of insertion: values, and the best one."""
    values = dict(zip(HOSTS, BY_HAND[score], strict=True))
    best = {host: record[3] for host, record in RECORDS.items()}
    for order in permutations(HOSTS):
        table = table_of(score, order, best)
        found = {host: table.tournament.score(arm) for arm, host in enumerate(order)}
        assert found == pytest.approx(values, abs=1e-6)
        ranking = sorted(order, key=lambda host: -round(values[host], 6))  # equal ones: the first that was seen
        assert [order[arm] for arm in table.tournament.best_first()] == ranking


@pytest.mark.parametrize("score", SCORES)
def test_no_score_is_anything_but_a_number(score: str) -> None:
    """Nor where links promise less than nothing, a host has nothing but misses, or all pages of all hosts were one."""
    best = {"many": -3.0, "none": -20.0, "few": 0.0, "new": 30.0}
    table = table_of(score, HOSTS, best)
    assert np.isfinite(table.tournament.scores()[:4]).all()
    for good in (0.0, 1.0):
        table = HostTable(score=score, arm="host", prior=1.0, strength=1e-9)
        table.add()
        table.domain[0] = 0
        for _ in range(3_000):
            table.earn(0, good, right=True)
        table.enter([0])
        assert math.isfinite(table.tournament.score(0))


def test_as_published_hosts_begin_with_a_page_of_either_kind() -> None:
    """Section 1.2, alpha = beta = 1: a host with one good page scores (1 + 1) / (0 + 1), a new one 1 / 1."""
    policy = HostBandit(score="success rate", explore=0, preset=PRESET, arm="host")
    crawl = crawl_of(policy, link(1, host="known"), link(2, host="known"), link(3, host="new"))
    assert fetch(crawl, items=1.0).host == "known"
    assert [policy.hosts.tournament.score(arm) for arm in range(2)] == [2.0, 1.0]


@pytest.mark.parametrize("preset", ["", PRESET])
def test_hosts_of_a_domain_are_one_arm_by_default(preset: str) -> None:
    """Section 1.2 has an arm for each host; ours is a registered domain unless ``arm="host"``."""
    hosts = ("www.example.org", "data.example.org", "example.com")
    for params, n_arms in (({}, 2), ({"arm": "host"}, 3)):
        policy = HostBandit(preset=preset, **params)
        crawl_of(policy, *[link(at, host=host) for at, host in enumerate(hosts)])
        assert len(policy.hosts) == n_arms


def test_a_best_link_that_promises_less_than_the_average_makes_a_host_worse() -> None:
    """Also one with a good record: log-odds are added, not multiplied. Signed products would turn them around."""
    below = {"many": -1.0, "none": -1.0, "few": -1.0, "new": -1.0}
    table = table_of("joint", HOSTS, below)
    assert [HOSTS[arm] for arm in table.tournament.best_first()] == ["few", "many", "new", "none"]
    assert max(table.tournament.scores()) == pytest.approx(-1 + math.log(8 / 3))


def test_a_host_with_most_of_the_flight_is_no_choice() -> None:
    """The holistic score of a host that would have more than half of all picks in flight with one more is nothing."""
    table = table_of("holistic", HOSTS, dict.fromkeys(HOSTS, 0.5))
    for arm in (0, 0, 2):
        table.fly(arm, 1)
    table.enter([0, 1, 2, 3])
    assert [table.tournament.score(arm) for arm in range(4)] == pytest.approx([0, 2 / 9, 1 / 3, 0])
    table.fly(0, -1)
    table.fly(1, 1)
    table.enter([0])
    assert table.tournament.score(0) == pytest.approx(0.48)


@pytest.mark.parametrize(("score", "good", "bad"), [("thompson", 1, 1), ("pooled thompson x best", 0.4, 1.6)])
def test_what_thompson_sampling_draws(score: str, good: float, bad: float) -> None:
    """From a beta distribution with one page of either kind, or with two pages at the rate of all, added."""
    table = HostTable(score=score, arm="host", prior=1.0, strength=2.0)
    for at in range(4_000):
        arm = table.number(f"{at}.test", "")
        for n in range(5):
            table.earn(arm, float(n == at % 5), right=True)
    assert table.rate == pytest.approx(0.2, abs=1e-3)
    table.draw(range(2_000), np.random.default_rng(3))
    assert kstest(np.array(table.drawn[:2_000]), beta(1 + good, 4 + bad).cdf).pvalue > 0.01
    assert not any(table.drawn[2_000:])  # of the others nothing was drawn


@pytest.mark.parametrize(("a", "b"), [(0.05, 0.45), (0.1, 0.9), (0.4, 1.6), (0.2, 3.8)])
def test_how_alike_the_pages_of_a_host_are_is_learned(a: float, b: float) -> None:
    """The rate of all hosts counts for as many pages as in the distribution that those of hosts were drawn from."""
    table = HostTable(score="posterior", arm="host", prior=1.0, strength=None)
    assert table.strength == pytest.approx(2.0)
    rng = np.random.default_rng(5)
    for at, rate in enumerate(rng.beta(a, b, 4_000)):
        table.add()
        for _ in range(2):
            table.earn(at, float(rng.random() < rate), right=True)
    assert table.strength == pytest.approx(a + b, rel=0.3)


def test_how_alike_pages_may_be_has_bounds() -> None:
    """All pages of each host alike, or each its own: the rate of all counts for at least 0.1 pages, and 20 at most."""
    for other, low, high in ((1.0, 0.1, 0.2), (0.0, 3.0, 20.0)):
        table = HostTable(score="posterior", arm="host", prior=1.0, strength=None)
        for at in range(2_000):
            table.add()
            first = float(at % 2)
            table.earn(at, first, right=True)
            table.earn(at, first * other, right=True)
        assert low <= table.strength <= high


@pytest.mark.parametrize("score", ["thompson", "pooled thompson"])
@pytest.mark.parametrize("preset", ["", PRESET])
def test_what_was_drawn_for_a_host_is_drawn_anew_when_a_page_of_it_comes(score: str, preset: str) -> None:
    """So of two hosts, one always good and one never, the good one is soon asked alone, whatever was drawn first."""
    for seed in range(6):
        seeds = [link(n, host=("good", "bad")[n % 2]) for n in range(1, 141)]
        crawl = crawl_of(HostBandit(score=score, explore=0, preset=preset), *seeds, seed=seed)
        hosts = []
        for _ in range(60):
            pick = crawl.next()
            hosts.append(pick.host)
            crawl.report(page(pick, items=float(pick.host == "good")))
        assert hosts[-40:].count("good") >= 37, seed
        assert hosts.count("bad") < 20


# Choices against a crawl in plain Python

RULES = {
    "negative bad": lambda host: -host.bad,
    "best": lambda host: host.best,
    "success rate": lambda host: (host.good + 1) / (host.bad + 1),
    "good x best": lambda host: host.good * host.best,
    "success rate x best": lambda host: (host.good + 1) / (host.bad + 1) * host.best,
    "good": lambda host: host.good,
    "holistic": lambda host: (
        (host.good + 1) / (host.pages + 1) * (host.right + 1) / (host.pages + 1) if host.pages else 0.0
    ),
}  # fmt: skip


@pytest.mark.few(4)
@pytest.mark.parametrize("in_flight", [1, 16])
@pytest.mark.parametrize("score", RULES)
def test_as_published_the_best_host_and_its_best_link_are_taken(score: str, in_flight: int) -> None:
    """Until no link is queued, with dead links: records kept beside the crawl agree, and hosts leave by their best.

    A failure counts for nothing.
    """
    if score == "holistic" and in_flight > 1:
        pytest.skip("what a host has of the flight is as of when it changed last")
    web = ManyHosts(seed=1, dead=0.1)
    crawl = crawl_of(HostBandit(score=score, explore=0, preset=PRESET, arm="host"), web.link(0))
    hosts: dict[int, SimpleNamespace] = {}
    flying: list[Pick] = []
    chosen = 0
    while flying or len(crawl.frontier):
        if len(flying) == in_flight or not len(crawl.frontier):
            pick = flying.pop(0)
            web.report(crawl, pick)
            if pick.key - 1 not in web.dead:
                host, good = hosts[pick.arm], web.good[pick.key - 1]
                host.good += good
                host.bad += not good
                host.pages += 1
                host.right += (pick.rank >= 0.5) == good
            continue
        waiting = np.flatnonzero(crawl.frontier.waiting).tolist()
        heads = {arm: float(crawl.frontier.heads[arm]) for arm in waiting}
        for arm in waiting:
            hosts.setdefault(arm, SimpleNamespace(good=0, bad=0, pages=0, right=0)).best = heads[arm]
        scores = {arm: RULES[score](hosts[arm]) for arm in waiting}
        pick = crawl.next()
        assert scores[pick.arm] == pytest.approx(max(scores.values()), rel=1e-5)
        assert pick.rank == heads[pick.arm]
        assert crawl.sent(pick.id)
        flying.append(pick)
        chosen += 1
    assert chosen > 250


@pytest.mark.parametrize("score", ["negative bad", "success rate", "good", "posterior"])
@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_hosts_alternate_by_their_records(score: str, order: tuple[int, ...]) -> None:
    """Judged by today's model, too: three hosts, found in any order, the choices of each score worked out beside it."""
    good = {0: [1, 0, 0, 1, 0, 0], 1: [0, 1, 1, 1, 0, 1], 2: [0, 0, 0, 0, 0, 1]}
    seeds = [link(10 * host + n, host=f"{host}.test") for n in range(6) for host in order]
    crawl = crawl_of(HostBandit(score=score, explore=0, strength=2), *seeds)
    counts, left = {host: [0, 0] for host in order}, {host: list(good[host]) for host in order}
    while len(crawl.frontier):
        rate = crawl.policy.hosts.rate
        rule = {
            "negative bad": lambda g, b: -b, "success rate": lambda g, b: (g + 1) / (b + 1), "good": lambda g, b: g,
            "posterior": lambda g, b, rate=rate: (g + 2 * rate) / (g + b + 2) / rate,
        }[score]  # fmt: skip
        scores = {host: rule(*counts[host]) for host in order if left[host]}
        pick = crawl.next()
        host = int(pick.host[0])
        if score != "posterior":  # that of others is as of when they changed last, until they are looked at
            assert host == max(scores, key=scores.get)
        assert scores[host] == pytest.approx(max(scores.values()), abs=0.3)
        worth = left[host].pop(0)
        counts[host][not worth] += 1
        crawl.report(page(pick, items=worth))


# Chance

SHARES = {
    "none": lambda at: 0.3,
    "hyperbolic": lambda at: 0.3 / (at // 300 + 1),
    "exponential": lambda at: 0.3 * 2 ** -(at / 300),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("preset", ["", PRESET])
@pytest.mark.parametrize("decay", SHARES)
def test_as_many_hosts_are_drawn_as_lambda_says(decay: Any, preset: str) -> None:
    """After 300, 600, 900 and 1,200 choices their number is within four standard deviations of the expected one."""
    policy = HostBandit(explore=0.3, decay=decay, decay_every=300, preset=preset, score="good", candidates=1)
    crawl = crawl_of(policy, *[link(n, host=f"{n % 20}.test") for n in range(1_200)])
    drawn, mean, variance = 0, 0.0, 0.0
    for at in range(1_200):
        share = SHARES[decay](at)
        assert policy.exploring == pytest.approx(share)
        mean, variance = mean + share, variance + share * (1 - share)
        pick = crawl.next()
        drawn += policy.explain(pick)["at random"]
        crawl.report(page(pick))
        if at % 300 == 299:
            assert abs(drawn - mean) <= 4 * math.sqrt(variance), at


@pytest.mark.parametrize(
    ("decay", "shares"),
    [
        ("none", [0.6, 0.6, 0.6, 0.6, 0.6, 0.6]),
        ("hyperbolic", [0.6, 0.6, 0.3, 0.3, 0.2, 0.15]),
        ("exponential", [0.6, 0.3 * math.sqrt(2), 0.3, 0.15 * math.sqrt(2), 0.15, 0.075]),
    ],
)
def test_lambda_by_hand(decay: Any, shares: list[float]) -> None:
    """0.6 falls to a half, a third, a quarter after 1,000, 2,000, 3,000 choices, or to a half each time."""
    policy = HostBandit(explore=0.6, decay=decay, decay_every=1_000)
    crawl_of(policy)
    found = []
    for policy.steps in (0, 500, 1_000, 1_500, 2_000, 3_000):
        found.append(policy.exploring)
    assert found == pytest.approx(shares)
    policy.steps = 999
    assert policy.exploring == 0.6 or decay == "exponential"


@pytest.mark.parametrize("preset", ["", PRESET])
def test_a_host_at_random_is_any_host(preset: str) -> None:
    """Each is equally likely, whatever its rewards, and however many links are queued there."""
    policy = HostBandit(explore=1, decay="none", preset=preset, score="best", candidates=1)
    crawl = crawl_of(
        policy, *[link(1_000 * host + n, host=f"{host}.test") for host in range(5) for n in range(100 + 150 * host)]
    )
    hosts = Counter(fetch(crawl, items=float(n % 2)).host for n in range(450))
    assert all(abs(n - 90) <= 4 * math.sqrt(450 * 0.2 * 0.8) for n in hosts.values()), hosts
    assert len(hosts) == 5


# Features of a link


def said(policy: HostBandit, pick: Pick) -> tuple[int, int, int, int]:
    """Return what is said of a pick: parents that were worth something, and not, and siblings."""
    why = policy.explain(pick)
    return tuple(why.get(f"{who} {what}", 0) for who in ("parents", "siblings") for what in ("worth", "not"))


def pick_of(crawl: Crawl, key: int) -> Pick:
    """Let the crawl choose, until it has this one; put all others back."""
    others = []
    while (pick := crawl.next()).key != key:
        others.append(pick)
    for other in others:
        crawl.release(other.id)
    return pick


@pytest.mark.parametrize("preset", ["", PRESET])
def test_parents_and_siblings_are_counted(preset: str) -> None:
    """For a page with a reward and six links: as these are fetched, the others are updated."""
    policy = HostBandit(explore=0, preset=preset)
    crawl = crawl_of(policy, link(1))
    fetch(crawl, *links(2, 3, 4, 5, 6, 7), items=1.0)
    counts = []
    for worth in (1.0, 0.0, 0.0, 1.0):
        pick = crawl.next()
        counts.append(said(policy, pick))
        crawl.report(page(pick, items=worth))
    assert counts == [(1, 0, 0, 0), (1, 0, 1, 0), (1, 0, 1, 1), (1, 0, 1, 2)]
    pick = crawl.next()
    crawl.report(failure(pick))  # which says nothing
    assert said(policy, crawl.next()) == (1, 0, 2, 2)


def test_a_link_has_several_parents() -> None:
    """Up to three; the reward of a page, and the results of its links, are known to all links on it, too."""
    policy = HostBandit(explore=0)
    crawl = crawl_of(policy, *links(1, 2, 3, 4))
    for seed, worth in ((1, 1.0), (2, 0.0), (3, 1.0), (4, 1.0)):
        crawl.report(page(pick_of(crawl, seed), items=worth), links(10, 10 + seed))
    pick = pick_of(crawl, 10)
    assert said(policy, pick) == (2, 1, 0, 0)
    crawl.release(pick.id)
    for child in (11, 12, 14):
        crawl.report(page(pick_of(crawl, child), items=1.0))
    assert said(policy, pick_of(crawl, 10)) == (2, 1, 2, 0)


def test_a_page_that_was_fetched_before_is_a_sibling_to_later_links() -> None:
    """It counts once, however often the page links there; and no page is its own child."""
    policy = HostBandit(explore=0)
    crawl = crawl_of(policy, *links(1, 2, 3))
    crawl.report(page(pick_of(crawl, 1), items=1.0))
    crawl.report(failure(pick_of(crawl, 3)))
    crawl.report(page(pick_of(crawl, 2), items=1.0), links(1, 4, 1, 2, 1, 3))
    assert said(policy, crawl.next()) == (1, 0, 1, 0)


def test_links_in_flight_are_told_of_later_parents() -> None:
    """So what they turn out to be worth is known to the other links of these."""
    policy = HostBandit(explore=0)
    crawl = crawl_of(policy, *links(1, 2, 3))
    flying = [pick_of(crawl, key) for key in (3, 1, 2)]
    crawl.report(page(flying[1]), links(3, 4))
    crawl.report(page(flying[2]), links(3, 5))
    crawl.report(page(flying[0], items=1.0))
    assert said(policy, pick_of(crawl, 4)) == (0, 1, 1, 0)
    assert said(policy, pick_of(crawl, 5)) == (0, 1, 1, 0)


def test_what_redirects_to_a_page_is_that_page() -> None:
    """Unless it is known as a separate page, which is unchanged."""
    policy = HostBandit(explore=0)
    crawl = crawl_of(policy, *links(1, 2, 3, 4))
    crawl.report(page(pick_of(crawl, 1), items=1.0, also=(101,)))
    crawl.report(failure(pick_of(crawl, 2), None)._replace(error="redirect_seen", also=(1,)))
    crawl.report(page(pick_of(crawl, 3)), links(101, 1, 5))
    assert said(policy, pick_of(crawl, 5)) == (0, 1, 1, 0)
    crawl.report(page(pick_of(crawl, 4)), links(1, 6))
    assert said(policy, pick_of(crawl, 6)) == (0, 1, 1, 0)


@pytest.mark.parametrize("preset", ["", PRESET])
def test_labels_that_come_late(preset: str) -> None:
    """A goal may say long after the page what it was worth: its siblings, in flight or not, know when it does."""
    policy = HostBandit(explore=0, preset=preset)
    crawl = crawl_of(policy, link(1), goal=lambda outcome: None if outcome.pick.key == 2 else 1.0)
    fetch(crawl, *links(2, 3, 4))
    late, pick = pick_of(crawl, 2), pick_of(crawl, 3)
    crawl.report(page(late), links(5))
    assert said(policy, pick) == (1, 0, 0, 0)
    assert len(crawl.frontier) == 1  # so long, its own links are not queued
    crawl.reward(late.id, 0.0)
    assert said(policy, pick) == (1, 0, 0, 1)
    crawl.report(page(pick))
    assert said(policy, pick_of(crawl, 4)) == (1, 0, 1, 1)
    assert said(policy, pick_of(crawl, 5)) == (0, 1, 0, 0)


def test_as_published_links_are_judged_again_when_siblings_are_known() -> None:
    """If siblings of good pages are good: a page that links to a known good one has better links."""

    def promise(*others: int) -> float:
        crawl = crawl_of(HostBandit(explore=0, preset=PRESET), *links(*range(1, 41), host="first"))
        for at in range(30):
            crawl.report(page(pick_of(crawl, at + 1)), links(100 + 2 * at, 101 + 2 * at, host=f"{at}"))
            for key in (100 + 2 * at, 101 + 2 * at):
                crawl.report(page(pick_of(crawl, key), items=float(at % 2)))
        crawl.report(page(pick_of(crawl, 31)), [*links(*others), link(500, host="last")])
        return float(pick_of(crawl, 500).rank)

    assert promise(102) == promise(103) > promise() + 0.02
    assert promise(104) < promise(102)


# Today's model


def test_links_that_are_worth_more_by_now_come_up() -> None:
    """Cakes and news were found on forty hosts before anything was learned of either.

    Cakes come first soon, on any queued hosts: hosts are scored again. Scored once, they are not distinguished.
    """
    found = {}
    for preset in ("", PRESET):
        urls = [f"http://{host}.test/{word}/{n}" for n in range(6) for host in range(40) for word in ("news", "cakes")]
        seeds = [Link(url, key + 1, url[7:].partition("/")[0]) for key, url in enumerate(urls)]
        crawl = crawl_of(HostBandit(explore=0, preset=preset, score="best"), *seeds)
        found[preset] = 0
        for _ in range(200):
            pick = crawl.next()
            found[preset] += "cakes" in pick.url
            crawl.report(page(pick, items=float("cakes" in pick.url)))
    assert found[""] > 170
    assert found[PRESET] < 130


def test_a_host_comes_up_when_its_links_are_worth_more_than_when_it_was_seen_last() -> None:
    """It keeps its old score, below thirty others; two hosts at random are scored each time."""
    others = {f"n{n}.test" for n in range(30)}
    crawl = crawl_of(HostBandit(explore=0, score="best"))

    def teach(word: str, worth: float, first: int) -> None:
        for n in range(first, first + 40):
            crawl.add([link(n, host="w.test", url=f"http://w.test/{word}/{n}")])
            fetch(crawl, busy=others | {"z.test"}, items=worth)

    teach("cakes", 0.0, 1_000)
    teach("news", 1.0, 2_000)
    crawl.add([link(1, host="z.test", url="http://z.test/cakes/1")])
    crawl.add([link(n, host=f"n{n % 30}.test", url=f"http://n{n % 30}.test/news/{n}") for n in range(10, 610)])
    assert fetch(crawl, items=1.0).host in others
    teach("cakes", 1.0, 3_000)
    teach("cakes", 1.0, 4_000)
    hosts = [fetch(crawl, items=0.7).host for _ in range(100)]
    assert "z.test" in hosts


@pytest.mark.slow
@pytest.mark.parametrize("score", ["best", "joint"])
def test_what_was_promised_before_pages_turned_out_to_be_rare_does_not_come_first(score: str) -> None:
    """Five hundred hosts were found when any page was as likely as not; by now cakes are better than most, by less."""
    early = [link(n, host=f"n{n}.test", url=f"http://n{n}.test/news/{n}") for n in range(1, 501)]
    others = {each.host for each in early}
    crawl = crawl_of(HostBandit(explore=0, score=score), *early)
    for n in range(1_000, 1_300):
        word = "cakes" if n % 6 == 0 else "news"
        crawl.add([link(n, host="w.test", url=f"http://w.test/{word}/{n}")])
        fetch(crawl, busy=others, items=float(n % 12 == 0))
    crawl.add([link(n, host="w.test", url=f"http://w.test/cakes/{n}") for n in range(2_000, 2_040)])
    hosts = Counter(fetch(crawl, items=float(at % 2)).host for at in range(20))
    assert hosts["w.test"] >= 15


class Watching(HostBandit):
    """Records the calls of its classifier."""

    stores = frozenset({__name__})

    def open(self, frontier: Any, rng: np.random.Generator, mission: Any) -> None:
        super().open(frontier, rng, mission)
        self.asked: set[bytes] = set()
        self.told: list[bytes] = []
        self.offsets: list[float] = []
        judge = self._judge

        def decide(rows: Any) -> Any:
            self.asked.update(row.tobytes() for row in rows)
            self.most = float(max(odds := judge.decide(rows)))
            return odds

        def learn(row: Any, label: float, **rest: Any) -> None:
            self.told.append(row.tobytes())
            self.offsets.append(rest.get("offset", 0.0))
            judge.learn(row, label, **rest)

        self._judge = SimpleNamespace(decide=decide, learn=learn)


@pytest.mark.parametrize("preset", ["", PRESET])
def test_what_a_page_was_chosen_by_is_learned(preset: str) -> None:
    """With 16 in flight: whatever arrived meanwhile about its parents and siblings, it is the same row."""
    web, policy = ManyHosts(seed=4), Watching(preset=preset)
    crawl, flying, rows = crawl_of(policy, web.link(0)), [], {}
    changed = 0
    said_then = {}
    while flying or len(crawl.frontier):
        if len(flying) == 16 or not len(crawl.frontier):
            pick = flying.pop(0)
            changed += said(policy, pick) != said_then[pick.id]
            web.report(crawl, pick)
            assert policy.told.pop() in rows[pick.id]
            assert not policy.told
            continue
        if not preset:
            policy.asked.clear()
        flying.append(pick := crawl.next())
        rows[pick.id], said_then[pick.id] = set(policy.asked), said(policy, pick)
    assert changed > 50


def logit(share: float) -> float:
    return math.log(share / (1 - share))


@pytest.mark.parametrize("score", ["joint", "posterior x best"])
def test_the_record_of_a_host_is_the_prior_of_its_links(score: str) -> None:
    """With the joint score, the record of a host is passed to the classifier as an offset, and added to its
    prediction.
    """
    policy = Watching(score=score, explore=0, strength=2)
    crawl = crawl_of(policy, *links(*range(1, 31)))
    good = 0
    for at in range(30):
        rate = policy.hosts.rate
        prior = logit((good + 2 * rate) / (at + 2)) if score == "joint" else 0.0
        pick = crawl.next()
        said_by_both = 1 / (1 + math.exp(-policy.most - prior))
        assert policy.explain(pick)["link"] == pytest.approx(said_by_both, abs=1e-3)
        worth = float(at % 3 == 0)
        crawl.report(page(pick, items=worth))
        assert policy.offsets[-1] == pytest.approx(prior)
        good += worth
    assert len(policy.offsets) == 30


# Failures and releases


@pytest.mark.few(2)
@pytest.mark.parametrize("preset", ["", PRESET])
@pytest.mark.parametrize("score", ["holistic", "posterior x best"])
def test_failures_and_releases_leave_no_pull_behind(score: str, preset: str) -> None:
    """After a crawl with dead links, with every third pick first released unsent, nothing is in flight."""
    web, policy = ManyHosts(seed=2, dead=0.2), HostBandit(score=score, preset=preset, per_domain=1_000)
    crawl, flying = crawl_of(policy, *map(web.link, range(40))), []
    for at in range(2_000):
        if len(flying) == 8 or not len(crawl.frontier):
            if not flying:
                break
            web.report(crawl, flying.pop(at % len(flying)))
            continue
        pick = crawl.next()
        if at % 3:
            flying.append(pick)
        else:
            crawl.release(pick.id)
            assert policy.explain(pick) == {}
    assert not flying
    assert len(crawl.frontier) == 0
    assert policy.hosts.in_flight == 0
    assert not any(policy.hosts.flying)
    assert not policy.domains.flying.any()
    assert crawl.counts["outcomes"] == policy.steps > 200


def test_a_release_undoes_a_choice() -> None:
    """Lambda's count, what the domain may still be asked for, and the place of the host are as before."""
    policy = HostBandit(explore=0, per_domain=1, decay_every=1, score="posterior x best")
    crawl = crawl_of(policy, *links(1, 2))
    pick = crawl.next()
    assert (policy.steps, crawl.next()) == (1, None)
    crawl.release(pick.id)
    assert policy.steps == 0
    assert fetch(crawl).host == "h"
    assert crawl.next() is None
    assert len(crawl.frontier) == 0


def test_a_link_that_was_released_is_promised_again() -> None:
    """As published: its host keeps its place, above one with worse links than its own and more than others."""
    taught = [link(n, host="w", url=f"http://w/{('news', 'cakes')[n % 2]}/{n}") for n in range(1, 41)]
    crawl = crawl_of(HostBandit(score="best", explore=0, preset=PRESET), *taught)
    for _ in taught:
        pick = crawl.next()
        crawl.report(page(pick, items=float("cakes" in pick.url)))
    crawl.add([link(51, host="x", url="http://x/cakes/1"), link(52, host="x", url="http://x/news/1")])
    crawl.add([link(53, host="y", url="http://y/other/1")])
    pick = crawl.next()
    assert pick.key == 51
    crawl.release(pick.id)
    assert [crawl.next().key for _ in range(3)] == [51, 53, 52]


def test_a_failure_is_a_page_worth_nothing_but_teaches_nothing_of_links() -> None:
    """A host of dead links is left for another one. As published, it is not."""
    found = {}
    for preset in ("", PRESET):
        policy = HostBandit(explore=0, score="success rate", preset=preset)
        crawl = crawl_of(policy, *[link(10 * host + n, host=f"{host}.test") for host in range(2) for n in range(5)])
        crawl.report(failure(first := crawl.next()))
        found[preset] = crawl.next().host == first.host
        assert policy.best_arms(5) == policy.tables() == []
    assert found == {"": False, PRESET: True}


# Domains


@pytest.mark.parametrize("preset", ["", PRESET])
@pytest.mark.parametrize("arm", ["domain", "host", "section"])
def test_no_domain_is_asked_for_more_than_its_pages(arm: str, preset: str) -> None:
    """With 16 in flight and busy hosts: never more than seven a domain, and as many where there are; then it is over."""
    web = ManyHosts(200, seed=5)
    crawl = crawl_of(HostBandit(arm=arm, per_domain=7, preset=preset), *map(web.link, range(200)))
    picks, flying = [], []
    for pick in steps(crawl, web, in_flight=16, busy=lambda at: {f"w{at % 2}.d{at % 6}.test"}, flying=flying):
        picks.append(pick)
        assert max(Counter(each.host.partition(".")[2] for each in picks).values()) <= 7
    assert Counter(each.host.partition(".")[2] for each in picks) == {f"d{n}.test": 7 for n in range(6)}
    states = Counter(crawl.frontier.states(range(1, 201)))
    assert states == {State.FETCHED: 42, State.GIVEN_UP: 158}
    assert crawl.counts["link/given_up"] <= 158


@pytest.mark.parametrize("preset", ["", PRESET])
@pytest.mark.parametrize("arm", ["domain", "host", "section"])
def test_hosts_count_for_themselves_where_that_is_wanted(arm: str, preset: str) -> None:
    """Each of twelve hosts gives three pages, in six domains."""
    web = ManyHosts(200, seed=5)
    crawl = crawl_of(HostBandit(arm=arm, per_domain=3, per_host=True, preset=preset), *map(web.link, range(200)))
    picks = list(steps(crawl, web, in_flight=16))
    assert Counter(pick.host for pick in picks) == {f"w{w}.d{d}.test": 3 for w in range(2) for d in range(6)}


@pytest.mark.parametrize("preset", ["", PRESET])
def test_later_links_of_a_domain_that_had_its_pages_are_not_kept(preset: str) -> None:
    crawl = crawl_of(HostBandit(per_domain=1, preset=preset), link(1), link(2, host="other"), link(3))
    crawl.report(page(crawl.next({"other"})))
    assert fetch(crawl, *links(4, 5), link(6, host="third")).host == "other"
    assert crawl.frontier.states([1, 3, 4, 5]).count(State.GIVEN_UP) == 3
    assert fetch(crawl).key == 6
    assert len(crawl.frontier) == 0


def test_ten_failures_count_as_a_page() -> None:
    crawl = crawl_of(HostBandit(per_domain=2), *links(*range(1, 40)))
    asked = 0
    while (pick := crawl.next()) is not None:
        asked += 1
        crawl.report(failure(pick))
    assert asked == 20


@pytest.mark.parametrize("preset", ["", PRESET])
def test_the_best_domain_is_the_best_again_when_it_is_full_no_more(preset: str) -> None:
    """Though links of others are queued, and whatever made room: a failure, or a pick that was never sent."""
    for release in (True, False):
        policy = HostBandit(per_domain=3, score="success rate", explore=0, preset=preset)
        crawl = crawl_of(policy, *links(1, 2, 3, 4, 5), *links(*range(10, 20), host="other"))
        assert [fetch(crawl, items=1.0).host for _ in range(2)] == ["h", "h"]
        third, other = crawl.next(), crawl.next()
        assert (third.host, other.host) == ("h", "other")
        if release:
            crawl.release(third.id)
        else:
            crawl.report(failure(third))
        assert crawl.next().host == "h"
        assert crawl.next().host == "other"


@pytest.mark.parametrize("preset", ["", PRESET])
def test_a_domain_that_is_full_is_asked_again_when_a_page_fails(preset: str) -> None:
    """By its best link then, though links were found while it was full."""
    crawl = crawl_of(HostBandit(per_domain=2, preset=preset, explore=0), *links(1, 2, 3), link(9, host="other"))
    first, other = crawl.next({"other"}), crawl.next({"h"})
    second = crawl.next()
    assert crawl.next() is None
    crawl.report(page(other), links(5, 6))
    assert crawl.next() is None
    crawl.report(failure(first))
    assert fetch(crawl).host == "h"
    crawl.report(page(second))
    assert crawl.next() is None
    assert len(crawl.frontier) == 0


# Busy hosts


@pytest.mark.parametrize("preset", ["", PRESET])
@pytest.mark.parametrize("arm", ["domain", "host", "section"])
def test_links_of_busy_hosts_are_left_where_they_are(arm: str, preset: str) -> None:
    """A domain with one busy host is used through the other; one with all hosts busy is skipped, however good."""
    policy = HostBandit(arm=arm, score="good", explore=0, preset=preset)
    seeds = [link(n, host=host) for n, host in enumerate(["a.x.test", "b.x.test", "y.test"] * 4, 1)]
    crawl = crawl_of(policy, *seeds)
    for _ in range(3):
        fetch(crawl, busy={"b.x.test", "y.test"}, items=1.0)
    assert fetch(crawl, busy={"y.test"}).host in ("a.x.test", "b.x.test")
    assert {fetch(crawl, busy={"a.x.test", "y.test"}).host for _ in range(2)} == {"b.x.test"}
    assert fetch(crawl, busy={"a.x.test", "b.x.test", "never.test"}).host == "y.test"
    flying = crawl.next()
    assert crawl.next({"a.x.test", "b.x.test", "y.test"}) is None
    crawl.report(page(flying))
    left = [fetch(crawl).host for _ in range(len(crawl.frontier))]
    assert Counter([*left, flying.host])["y.test"] == 3


@pytest.mark.parametrize("preset", ["", PRESET])
def test_one_free_host_is_found_among_many_busy_ones(preset: str) -> None:
    """Though it is the last by its record, and sections do not tell whose hosts are busy."""
    for arm in ("host", "section"):
        crawl = crawl_of(
            HostBandit(arm=arm, explore=0.5, score="negative bad", preset=preset),
            *[link(n, host=f"{n % 50}.test", url=f"http://{n % 50}.test/x/{n}") for n in range(1, 251)],
        )
        busy = {f"{n}.test" for n in range(50)} - {"17.test"}
        assert [fetch(crawl, busy=busy).host for _ in range(4)] == ["17.test"] * 4


@pytest.mark.parametrize("preset", ["", PRESET])
def test_a_host_at_random_is_one_that_takes_something(preset: str) -> None:
    """So lambda's share is the same while most hosts are busy."""
    policy = HostBandit(explore=1, decay="none", preset=preset)
    crawl = crawl_of(policy, *[link(n, host=f"{n % 20}.test") for n in range(200)])
    busy = {f"{n}.test" for n in range(17)}
    picks = [crawl.next(busy) for _ in range(20)]
    assert all(policy.explain(pick)["at random"] for pick in picks)
    assert {pick.host for pick in picks} == {"17.test", "18.test", "19.test"}
