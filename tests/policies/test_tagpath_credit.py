"""Credits: pulls and rewards of TagPath's arms."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from scrapy_focus.learn.text import char_pairs
from scrapy_focus.policies.tagpath.policy import FIRST, TARGETS, TagPath
from tests.made import failure, fetch, file, page
from tests.policies.test_tagpath import LIST, MAIN, NAV, article, dataset, started

if TYPE_CHECKING:
    from scrapy_focus import Crawl

BOTH = pytest.mark.parametrize("accounting", ["released", "full"])


def arms(crawl: Crawl) -> list[tuple[float, float]]:
    """Return pulls and rewards of the arms of clusters."""
    stats = crawl.policy.stats
    return list(zip(stats.pulls[FIRST:].tolist(), stats.sums[FIRST:].tolist(), strict=True))


def get_file(crawl: Crawl, **rest):
    """Let the next pick be a file, and return it."""
    pick = crawl.next()
    crawl.sent(pick.id)
    crawl.report(file(pick, **rest))
    return pick


@BOTH
def test_the_page_of_a_target_is_credited(accounting: str) -> None:
    """A target credits the arm of the page that led to it, not the arm of its own tag path."""
    crawl = started(TagPath(accounting=accounting))
    crawl.add([article(1, NAV), article(2, MAIN)])
    fetch(crawl, dataset(3, LIST), dataset(4, LIST))
    assert get_file(crawl).origin == FIRST
    get_file(crawl)
    assert arms(crawl) == [(1.0, 2.0), (0.0, 0.0)]


@BOTH
def test_the_reward_counts_targets_that_were_not_known(accounting: str) -> None:
    """Section 3.2: a page with twelve links, five of them to targets of which two were fetched before, earns three."""
    crawl = started(TagPath(accounting=accounting))
    crawl.add([article(1, NAV), article(2, MAIN)])
    fetch(crawl, dataset(3, LIST), dataset(4, LIST))
    get_file(crawl)
    get_file(crawl)
    targets, pages = [dataset(i, LIST) for i in range(3, 8)], [article(i, NAV) for i in range(8, 15)]
    second = fetch(crawl, *targets, *pages)
    assert [get_file(crawl).key for _ in range(3)] == [5, 6, 7]
    assert arms(crawl)[second.arm - FIRST] == (1.0, 3.0)
    assert crawl.next().arm >= FIRST, "no target is left"


@BOTH
def test_targets_of_the_start_page_credit_its_arm(accounting: str) -> None:
    """The start page is a page of an arm like others: what is found on it is credited to the arm of no path."""
    crawl = started(TagPath(accounting=accounting))
    crawl.add([article(1, "")])
    fetch(crawl, dataset(2))
    get_file(crawl)
    assert arms(crawl) == [(1.0, 1.0)]


@BOTH
def test_a_seed_that_is_a_target_credits_nobody(accounting: str) -> None:
    """Nobody found it; with full accounting its own pull earned it."""
    crawl = started(TagPath(accounting=accounting))
    crawl.add([article(1)])
    get_file(crawl)
    assert arms(crawl) == [(0.0, 0.0)] if accounting == "released" else [(1.0, 1.0)]


@pytest.mark.parametrize(("accounting", "counted"), [("released", (0.0, 0.0)), ("full", (1.0, 0.0))])
def test_failures_count_as_they_are_told_to(accounting: str, counted: tuple[float, float]) -> None:
    """As released, a pull that ended in no page was none, and the arm keeps its bonus; with full accounting it counts."""
    crawl = started(TagPath(accounting=accounting))
    crawl.add([article(i) for i in range(3)])
    for status in (404, None, 500):
        before = arms(crawl)
        pick = crawl.next()
        assert arms(crawl)[0][0] == before[0][0] + 1, "in flight it counts"
        crawl.report(failure(pick, status))
    assert arms(crawl) == [(3 * counted[0], 0.0)]


@pytest.mark.parametrize(("accounting", "page_arm", "own"), [("released", (1, 1), (0, 0)), ("full", (1, 1), (1, 1))])
def test_a_target_taken_for_a_page(accounting: str, page_arm: tuple, own: tuple) -> None:
    """It credits the arm of its page; its own pull is none as released, with full accounting it earned the target."""
    crawl = started(TagPath(accounting=accounting))
    crawl.add([article(1, NAV)])
    fetch(crawl, article(2, MAIN))
    assert get_file(crawl).arm == FIRST + 1
    assert arms(crawl) == [page_arm, own]


@pytest.mark.parametrize(("accounting", "pulls"), [("released", 1.0), ("full", 0.0)])
def test_a_page_taken_for_a_target(accounting: str, pulls: float) -> None:
    """The cluster of its tag path earns what is found on it; it counts as a pull of that cluster as released."""
    crawl = started(TagPath(accounting=accounting))
    crawl.add([article(1, NAV)])
    fetch(crawl, dataset(2, MAIN))
    wrong = fetch(crawl, dataset(3, LIST), article(4, LIST))
    assert wrong.arm == TARGETS
    assert arms(crawl) == [(1.0, 0.0), (pulls, 0.0), (0.0, 0.0)], "NAV, MAIN for the page, LIST for link 4"
    assert get_file(crawl).key == 3
    assert arms(crawl)[1] == (pulls, 1.0)
    fetched = fetch(crawl, dataset(5))
    assert (fetched.key, fetched.arm) == (4, FIRST + 2)
    get_file(crawl)
    assert arms(crawl)[2] == (1.0, 1.0)


def test_a_target_found_through_a_page_that_was_taken_for_a_target() -> None:
    """The memo of its links names the arm to be credited, also where they are pages themselves."""
    crawl = started(TagPath())
    crawl.add([article(1, NAV)])
    fetch(crawl, dataset(2, MAIN))
    fetch(crawl, article(4, LIST))
    pick = get_file(crawl)
    assert (pick.key, pick.origin, int(pick.memo[1])) == (4, TARGETS, FIRST + 1)
    assert arms(crawl) == [(1.0, 0.0), (1.0, 1.0), (0.0, 0.0)]


def test_credit_survives_a_head() -> None:
    """A target that was requested with a HEAD first credits the arm of the page where it was found, once."""
    crawl = started(TagPath(), trained=False)
    crawl.add([article(1, NAV)])
    fetch(crawl, dataset(2, LIST), article(3, MAIN))
    head = get_file(crawl)
    assert head.method == "HEAD"
    assert arms(crawl) == [(1.0, 0.0)], "a HEAD earns nothing"
    assert get_file(crawl).method == "GET"
    assert arms(crawl) == [(1.0, 1.0)]
    assert fetch(crawl).method == "HEAD"
    got = fetch(crawl, dataset(5, LIST))
    assert (got.key, got.arm, got.origin) == (3, FIRST + 1, FIRST)
    assert get_file(crawl).method == "HEAD"
    assert get_file(crawl).origin == FIRST + 1
    assert arms(crawl) == [(1.0, 1.0), (1.0, 1.0)]


def test_credit_survives_the_end_of_the_heads() -> None:
    """Links that wait for a HEAD when the classifier is trained keep who is to be credited for them."""
    crawl = started(TagPath(batch=2), trained=False)
    crawl.add([article(1, NAV)])
    fetch(crawl, dataset(2, LIST), dataset(3, LIST), article(4, MAIN))
    assert get_file(crawl).method == "HEAD"
    assert crawl.policy.predictor.ready
    while (pick := crawl.next()) is not None:
        assert pick.method == "GET"
        crawl.report(file(pick))
    assert arms(crawl)[0] == (1.0, 3.0)


def test_credit_survives_a_server_that_changes_its_mind() -> None:
    """HEAD says file, GET gives a page with a link, HEAD says page, GET gives a file: the first link's cluster earned it."""
    crawl = started(TagPath(), trained=False)
    crawl.add([article(1, NAV)])
    fetch(crawl, dataset(2, MAIN))
    assert get_file(crawl).method == "HEAD"
    assert fetch(crawl, article(3, LIST)).arm == TARGETS
    assert fetch(crawl).method == "HEAD"
    assert get_file(crawl).key == 3
    assert arms(crawl) == [(1.0, 0.0), (1.0, 1.0), (0.0, 0.0)]


def test_credit_survives_all_of_that_and_the_end_of_the_heads() -> None:
    """Links of a page predicted to be a target keep their credit when they are classified in the queue."""
    crawl = started(TagPath(), trained=False)
    for i in range(7):
        crawl.policy.predictor.observe(char_pairs((dataset if i % 2 else article)(90 + i).url), bool(i % 2))
    crawl.add([article(1, NAV)])
    fetch(crawl, dataset(2, MAIN))
    get_file(crawl)
    fetch(crawl, dataset(3, LIST), *[dataset(i, LIST) for i in (4, 5)], *[article(i, LIST) for i in (6, 7)])
    assert get_file(crawl).method == "HEAD"
    assert crawl.policy.predictor.ready
    picks = [get_file(crawl) for _ in range(5)]
    assert sorted((pick.key, pick.method, pick.arm) for pick in picks) == [
        *[(i, "GET", TARGETS) for i in (3, 4, 5)],
        *[(i, "GET", FIRST + 2) for i in (6, 7)],
    ]
    assert arms(crawl) == [(1.0, 0.0), (1.0, 5.0), (0.0, 0.0)]


def test_a_redirect_labels_the_url_that_was_asked_for() -> None:
    """The classifier learns that the link that was found leads to a target, not that its destination does."""
    policy = TagPath()
    crawl = started(policy)
    seen = []
    policy.predictor.observe = lambda features, label: seen.append((features.tolist(), label)) or False
    crawl.add([dataset(1), article(2)])
    get_file(crawl, page=SimpleNamespace(url="http://cdn/elsewhere"))
    fetch(crawl, page=SimpleNamespace(url="http://h/login"))
    assert seen == [(char_pairs(dataset(1).url).tolist(), True), (char_pairs(article(2).url).tolist(), False)]


@pytest.mark.parametrize(
    ("outcome", "labels"),
    [
        ({"status": 404, "mime": "application/json", "error": "http_error"}, 0),
        ({"status": 404, "mime": "text/html"}, 0),
        ({"mime": "image/png"}, 0),
        ({"status": None, "mime": "", "error": "timeout"}, 0),
        ({"mime": "application/json", "status": 206}, 1),
        ({"mime": "text/html"}, 1),
    ],
)
def test_only_pages_and_targets_are_labels(outcome: dict, labels: int) -> None:
    """Errors, whatever their type, and files that nobody wants teach the classifier nothing."""
    crawl = started(TagPath())
    before = crawl.policy.predictor.labels
    crawl.add([article(1)])
    crawl.report(page(crawl.next(), **outcome))
    assert crawl.policy.predictor.labels == before + labels


def test_a_splash_page_does_not_end_the_crawl() -> None:
    """Index, one hub, five files: all are found, though at one time a single link is queued."""
    crawl = started(TagPath(), trained=False)
    crawl.add([article(1, "")])
    fetch(crawl, article(2, "html/body/a"))
    assert fetch(crawl).method == "HEAD"
    fetch(crawl, *[dataset(i) for i in range(3, 8)])
    while (pick := crawl.next()) is not None:
        crawl.report(file(pick))
    assert crawl.rewards == 5.0


@pytest.mark.parametrize(("accounting", "dead"), [("released", 60), ("full", 15)])
def test_dead_links_in_a_footer(accounting: str, dead: int) -> None:
    """As released, an arm of dead links is drained first; with full accounting few of sixty are tried.

    After 50 pulls of an arm whose pages lead to a file each, t is about 115, and 1 + alpha * sqrt(ln t / 50) equals
    alpha * sqrt(ln t / n) at n = 11 dead links.
    """
    crawl = started(TagPath(accounting=accounting))
    crawl.add([article(i, LIST) for i in range(60)] + [article(i, MAIN) for i in range(100, 160)])
    alive = tried = 0
    while alive < 50:
        pick = crawl.next()
        crawl.sent(pick.id)
        if pick.key < 100:
            tried += 1
            crawl.report(failure(pick))
        elif pick.key < 200:
            alive += 1
            crawl.report(page(pick), [dataset(pick.key + 1000)])
        else:
            crawl.report(file(pick))
    assert tried == dead if accounting == "released" else tried <= dead
