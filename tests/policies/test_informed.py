"""Policies that know the truth: what they request, and what they do without it."""

from __future__ import annotations

import pickle

import pytest

from scrapy_focus import Crawl, FilesGoal, PolicyError, State, memory_frontier
from scrapy_focus.policies.linkfloor import LinkFloor
from scrapy_focus.policies.tagpath.offline import TagPathOffline
from scrapy_focus.policies.tagpath.oracles import Informed, Omniscient, OracleTagPath
from scrapy_focus.policies.tagpath.policy import FIRST, TARGETS, TagPath
from scrapy_focus.policies.treeq.files import OracleTreeQ
from tests.made import failure, fetch, file, link, links, page

NAV, MAIN = "html/body/nav/ul/li/a", "html/body/main/section.list/h2/a.title"


class Known:
    """A truth with the given kinds of numbers, and ``rest`` for all others."""

    def __init__(self, rest="unknown", **kinds: tuple[int, ...]) -> None:
        self.rest = rest
        self.kinds = {link(number).url: kind for kind, numbers in kinds.items() for number in numbers}

    def kind(self, url):
        return self.kinds.get(url, self.rest)

    def targets(self):
        return [link(int(url.rpartition("/")[2])) for url, kind in self.kinds.items() if kind == "target"]


def told(policy: Informed, truth: Known, *, seed: int = 0) -> Crawl:
    """Return a crawl whose policy knows the truth."""
    policy.inform(truth)
    return Crawl(policy, frontier=memory_frontier, goal=FilesGoal(), seed=seed, strict=True)


@pytest.mark.parametrize(
    "make", [Omniscient, LinkFloor, OracleTagPath, OracleTreeQ, lambda: TagPathOffline(benefit="truth")]
)
def test_who_was_not_told_says_so(make) -> None:
    """Placing anything without the truth raises an error that names the policy and what to do."""
    policy = make()
    crawl = Crawl(policy, frontier=memory_frontier, strict=True)
    with pytest.raises(PolicyError, match=rf"{type(policy).__name__} was not given .* call inform\(truth\)"):
        crawl.add(links(1))


@pytest.mark.parametrize("cls", [Omniscient, OracleTagPath, OracleTreeQ])
def test_the_truth_is_not_pickled(cls: type[Informed]) -> None:
    """A stored policy must be informed again: until then it selects nothing, and says why."""
    policy = cls()
    crawl = told(policy, Known("target"))
    crawl.add(links(1, 2))
    copy = pickle.loads(pickle.dumps(policy))
    copy.attach(crawl.frontier)
    with pytest.raises(PolicyError, match="after a resume"):
        copy.select(())
    copy.inform(Known("target"))
    assert copy.select(()).key == 1


def test_most_policies_start_where_everyone_does() -> None:
    """Only the omniscient names its own seeds: all targets, in the order of their discovery."""
    truth = Known(target=(7, 3, 5), page=(1,))
    for policy in (OracleTagPath(), OracleTreeQ(), TagPathOffline()):
        policy.inform(truth)
        assert policy.seeds() is None
    policy = Omniscient()
    policy.inform(truth)
    assert [seed.key for seed in policy.seeds()] == [7, 3, 5]


def test_omniscient_finds_a_target_with_each_request() -> None:
    """From its own seeds it fetches targets alone, first in first out, and then stops."""
    policy = Omniscient()
    crawl = told(policy, Known(target=(4, 2, 9), page=(1, 3)))
    crawl.add(policy.seeds())
    order = []
    while (pick := crawl.next()) is not None:
        crawl.sent(pick.id)
        crawl.report(file(pick))
        order.append(pick.key)
    assert order == [4, 2, 9]
    assert crawl.rewards == crawl.budget.requests_used == 3


def test_omniscient_asks_for_nothing_else() -> None:
    """Anything but a target is given up, even a seed."""
    crawl = told(Omniscient(), Known(page=(1,), target=(2,), redirect=(3,), dead=(4,), other=(5,)))
    crawl.add(links(1, 2, 3, 4, 5, 6))
    states = crawl.frontier.states(range(1, 7))
    assert states == [State.GIVEN_UP, State.WAITING, *[State.GIVEN_UP] * 4]
    assert crawl.counts["link/given_up"] == 5


def test_the_oracle_places_links_by_their_kind() -> None:
    """Targets are fetched at once, pages and redirects are queued in the cluster of their path, all others are given
    up.
    """
    crawl = told(OracleTagPath(), Known(page=(1, 2), target=(3, 8), redirect=(4,), dead=(5,), other=(6,)))
    crawl.add([link(1, tag_path=NAV)])
    fetch(crawl, *[link(i, tag_path=MAIN if i == 4 else NAV) for i in range(2, 9)])
    assert crawl.frontier.states(range(2, 9)) == [
        State.WAITING, State.WAITING, State.WAITING, State.GIVEN_UP, State.GIVEN_UP, State.GIVEN_UP, State.WAITING
    ]  # fmt: skip
    arms = {found.key: place.arm for arm in range(4) for found, place in crawl.frontier.scan(arm)}
    assert arms == {2: FIRST, 3: TARGETS, 4: FIRST + 1, 8: TARGETS}
    pick = crawl.next()
    assert (pick.key, pick.method, crawl.policy.explain(pick)) == (3, "GET", {"kind": "known target"})


@pytest.mark.parametrize("kind", ["dead", "other", "unknown", "page"])
def test_the_oracle_fetches_its_seeds(kind: str) -> None:
    """A start page is fetched whatever its kind, for without it there is no crawl."""
    assert told(OracleTagPath(), Known(kind)).add([link(1)]) == 1


def test_the_oracle_sends_no_head_and_learns_no_classifier() -> None:
    """Over a crawl of pages, targets and files that nobody wants, every request is a GET and no label is kept."""
    policy = OracleTagPath()
    crawl = told(policy, Known("page", target=tuple(range(20, 30))))
    crawl.add([link(1, tag_path=NAV)])
    fetch(crawl, *[link(i, tag_path=NAV) for i in range(2, 30)])
    while (pick := crawl.next()) is not None:
        assert pick.method == "GET"
        crawl.report((file if pick.key >= 20 else page)(pick))
    assert crawl.rewards == 10
    assert policy.predictor.labels == 0
    assert not policy.probe


def test_the_oracle_credits_as_tagpath_does() -> None:
    """The arm of a page earns for each target that is found on it; as released, a dead pull is none."""
    policy = OracleTagPath()
    crawl = told(policy, Known("page", target=(3, 4)))
    crawl.add([link(1, tag_path=NAV)])
    fetch(crawl, link(2, tag_path=MAIN), link(3, tag_path=MAIN), link(4, tag_path=MAIN))
    for _ in range(2):
        crawl.report(file(crawl.next()))
    crawl.report(failure(crawl.next()))
    assert list(zip(policy.stats.pulls[FIRST:], policy.stats.sums[FIRST:], strict=True)) == [(1.0, 2.0), (0.0, 0.0)]


def test_the_oracle_fetches_targets_of_any_extension() -> None:
    """What the truth calls a target is one, though TagPath never asks for pictures."""
    picture = link(2, url="http://h/map.png", tag_path=NAV)
    truth = Known("page")
    truth.kinds[picture.url] = "target"
    crawl = told(OracleTagPath(), truth)
    crawl.add([link(1, tag_path=NAV)])
    fetch(crawl, picture)
    assert crawl.next().arm == TARGETS


def test_the_oracle_has_the_parameters_of_tagpath() -> None:
    """All that are about groups and scores, with the same defaults."""
    oracle, tagpath = OracleTagPath(), TagPath()
    for name in ("theta", "n", "m", "w", "alpha", "accounting", "index", "max_clusters"):
        assert getattr(oracle, name) == getattr(tagpath, name)
