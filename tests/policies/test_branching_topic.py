"""The default policy where files about something are looked for: relevant links first, and unlearned if it is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scrapy_focus import Crawl, FilesGoal, Job, Link, Mission, check_policy, memory_frontier
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.sites.portal.portal import TARGET_MIMES
from scrapy_focus.policies.branching.arms import PAGES, TARGETS
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.branching.relevance import LinkRelevance
from scrapy_focus.policies.revisits import Revisits
from scrapy_focus.topic.keywords import KeywordRelevance
from tests.made import failure, page
from tests.policies.portal import recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from scrapy_focus import Goal, Outcome, Pick

LISTS, PER_LIST = 12, 20
LISTING, ITEM, DOWNLOAD = "html/body/nav/a.next", "html/body/main/ul/li/a", "html/body/main/p/a.download"
EVERY = 6  # one item in so many is about honey


class About:
    """A topic of one word."""

    digest = "one word"

    def __init__(self, word: str) -> None:
        self.about = word

    def score(self, texts: Sequence[str]) -> NDArray[np.float64]:
        return np.array([0.9 if self.about in text.lower() else 0.02 for text in texts])


def number_of(pick: Pick) -> int:
    return int(pick.url.rpartition("-")[2].partition(".")[0])


def word_of(number: int) -> str:
    return "honey" if number % EVERY == 0 else "steel"


def site(pick: Pick) -> tuple[Outcome, list[Link]]:
    """Return an answer of a site of 12 lists of 20 items each; an item has a table, whose link says only "download"."""
    number = number_of(pick)
    if "/list-" in pick.url:
        found = [
            Link(f"http://h/{word_of(i)}/item-{i}.html", 1000 + i, "h", 1, f"Prices of {word_of(i)}", ITEM)
            for i in range(PER_LIST * number, PER_LIST * (number + 1))
        ]
        if number + 1 < LISTS:
            found.append(listing(number + 1))
        return page(pick), found
    if "/item-" in pick.url:
        return page(pick), [Link(f"http://h/get/table-{number}.csv", 5000 + number, "h", 2, "download", DOWNLOAD)]
    if "/table-" in pick.url:
        return page(pick, mime="text/csv"), []
    return failure(pick), []


def listing(number: int) -> Link:
    return Link(f"http://h/list-{number}", 1 + number, "h", 0, "next" if number else "", LISTING if number else "")


class Wanted:
    """The truth: a table about honey is worth 1, whatever a topic says; ``of`` any table, if it is empty."""

    types = frozenset(["text/csv"])

    def __init__(self, topic: Any = None, of: str = "honey") -> None:
        self.relevance = topic
        self.of = of

    def __call__(self, outcome: Outcome) -> float:
        is_table = "/table-" in outcome.pick.url and not outcome.error
        return float(is_table and (not self.of or word_of(number_of(outcome.pick)) == self.of))


def crawl_of(goal: Goal, *, seed: int = 0, **more: Any) -> Crawl:
    where = more or {"frontier": memory_frontier}
    return Crawl(BranchingBandit(), goal=goal, seed=seed, strict=True, **where)


def go(
    crawl: Crawl, steps: int = 1 << 20, until: int = 1 << 20, after: Callable[[Crawl], None] | None = None
) -> list[str]:
    """Fetch until nothing is left, or so many steps or rewards are reached; return the URLs in order."""
    if not crawl.counts["outcomes"]:
        crawl.add([listing(0)])
    asked: list[str] = []
    while len(asked) < steps and crawl.rewards < until and (pick := crawl.next()) is not None:
        crawl.sent(pick.id)
        asked.append(pick.url)
        crawl.report(*site(pick))
        if after is not None:
            after(crawl)
    return asked


def requests_for(topic: Any, until: int, seed: int) -> int:
    """Return the requests until so many tables about honey are found."""
    return len(go(crawl_of(Wanted(topic), seed=seed), until=until))


N_RELEVANT = len(range(0, LISTS * PER_LIST, EVERY))


@pytest.mark.parametrize("seed", range(2))
def test_relevant_links_come_first(seed: int) -> None:
    """With a sentence, 90 % of the relevant tables take at most 60 % of the requests that they take without one."""
    most = int(0.9 * N_RELEVANT)
    assert requests_for(About("honey"), most, seed) <= 0.6 * requests_for(None, most, seed)


def test_the_relevance_of_a_page_counts_for_its_links() -> None:
    """Of two links that say "download", the one on the page that was linked as relevant is more relevant."""
    bandit = BranchingBandit()
    mission = Mission(types=frozenset(["text/csv"]), topic=About("honey"))
    bandit.open(memory_frontier(bandit.keeps(mission)), np.random.default_rng(0), mission)
    assert bandit.relevance is not None
    links = [Link(f"http://h/{word}.html", at, "h", anchor=word) for at, word in enumerate(("honey", "steel"), 1)]
    bandit.frontier.push(links, bandit.place(links, None))
    rows = []
    for each in links:
        pick = bandit.frontier.take(each.key)
        assert pick is not None
        got = [Link(f"http://h/{each.key}.csv", 10 + each.key, "h", anchor="download")]
        [place] = bandit.place(got, page(pick))
        assert place is not None
        assert place.memo is not None
        rows.append(place.memo.view(np.uint16)[-2:])
    honey, steel = bandit.relevance.odds(TARGETS, np.array(rows))
    assert honey > steel + 0.5
    assert rows[0][0] == rows[1][0], "their own texts are equal"


@pytest.mark.parametrize("seed", range(2))
def test_a_topic_that_lies_costs_little(seed: int) -> None:
    """If the topic says steel, and only tables about honey are worth something, half of these take at most 1.5 times as
    many requests as without a topic, and all are found.
    """
    most = N_RELEVANT // 2
    assert requests_for(About("steel"), most, seed) <= 1.5 * requests_for(None, most, seed)
    crawl = crawl_of(Wanted(About("steel")), seed=seed)
    go(crawl)
    assert crawl.rewards == N_RELEVANT


@pytest.mark.parametrize("kind", [PAGES, TARGETS])
def test_expectations_are_unlearned(kind: int) -> None:
    """After thirty links of each sort for which a topic was wrong, the other sort is preferred."""
    relevance = LinkRelevance(About("honey"))
    rows = relevance.read([Link("http://h/1", 1, anchor="honey"), Link("http://h/2", 2, anchor="steel")])
    before = relevance.odds(kind, rows)
    assert before[0] > before[1] + 1
    for _ in range(30):
        relevance.learn(kind, rows[0], 0.0)
        relevance.learn(kind, rows[1], 1.0)
    after = relevance.odds(kind, rows)
    assert after[0] < after[1]


def test_nothing_is_left_out() -> None:
    """A crawl to the end fetches every page and every file, relevant or not."""
    asked = go(crawl_of(Wanted(About("honey"))))
    assert len(asked) == len(set(asked)) == LISTS + 2 * LISTS * PER_LIST


@pytest.mark.parametrize("seed", range(2))
def test_graded_rewards_are_the_labels(seed: int) -> None:
    """With a reward of 0.9 for honey and 0.02 for steel, irrelevant files stay files, and few of them are fetched early."""
    crawl = crawl_of(FilesGoal(types=["csv"], relevance=About("honey")), seed=seed)
    asked = go(crawl, 120)
    policy: Any = crawl.policy
    hits, others = policy.kinds.seen["csv"]
    assert hits > others, "a file is a file, whatever it is about"
    tables = [url for url in asked if "/table-" in url]
    fitting = [url for url in tables if word_of(int(url[:-4].rpartition("-")[2])) == "honey"]
    assert len(fitting) > len(tables) / 2
    assert policy.coverage.found < len(tables), "only relevant files count as found"


def test_without_types_a_topic_changes_nothing() -> None:
    """A goal of pages has a topic too: there, the policy keeps the same rows, and makes the same choices."""

    class Pages(Wanted):
        types = frozenset()

    with_topic, without = (crawl_of(Pages(topic)) for topic in (About("honey"), None))
    assert go(with_topic) == go(without)
    policies: list[Any] = [with_topic.policy, without.policy]
    assert [policy.relevance for policy in policies] == [None, None]


def test_without_a_topic_nothing_is_kept_for_it() -> None:
    """Where files are looked for without a topic, a link keeps 64 bytes, and the arms are those of two kinds."""
    bandit = BranchingBandit()
    types = frozenset(["text/csv"])
    widths = [bandit.keeps(Mission(types=types, topic=topic)).width for topic in (None, About("honey"))]  # type: ignore[union-attr]
    assert widths == [64, 68]
    crawl = crawl_of(Wanted())
    go(crawl, 100)
    policy: Any = crawl.policy
    assert policy.relevance is policy.fits is None
    assert max(policy._arm_of) < 2 * policy._clusters.n_clusters
    assert not policy.arms._first
    assert not policy.coverage._first


class AsBefore(BranchingBandit):
    """The policy as it was before it read topics, where these differ: every reward is a hit, and every label 0 or 1."""

    def learn(self, outcome: Outcome) -> None:
        earn = self.arms.earn

        def earn_as_before(arm: int, reward: float, cost: float, revealed: Any, **more: Any) -> None:
            earn(arm, reward, cost, revealed)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.arms, "earn", earn_as_before)
            super().learn(outcome)

    def _found(self, outcome: Outcome) -> Any:
        return super()._found(outcome)._replace(worth=float(outcome.reward > 0))


@pytest.mark.parametrize("reward", [0.25, 1.0, 3.0])
def test_choices_without_a_topic_are_as_before(reward: float) -> None:
    """On a portal, with rewards of any size, the policy asks for the same URLs in the same order."""

    class Sized(FilesGoal):
        def __call__(self, outcome: Outcome) -> float:
            return reward * super().__call__(outcome)

    asked = [
        simulate(made, Sized(types=TARGET_MIMES), recorded(200, 0), budget=150, seed=3).asked
        for made in (BranchingBandit(), AsBefore())
    ]
    assert asked[0] == asked[1]


def test_it_says_what_a_link_reads_like() -> None:
    """The reason has the sentence and the relevance of the link; of a topic without a sentence, the number alone."""
    for topic, said in ((About("honey"), 'the link reads like "honey" (0.02)'), (KeywordRelevance(["honey"]), "")):
        crawl = Crawl(BranchingBandit(), frontier=memory_frontier, goal=Wanted(topic), seed=0, explain=True)
        crawl.add([Link("http://h/a.csv", 1, "h", anchor="table")])
        crawl.next()
        assert crawl.why["relevance"] == pytest.approx(0.02 if said else 0.0)
        assert ("reads like" in crawl.why["why"]) is bool(said)
        assert said in crawl.why["why"]


def test_it_keeps_the_contract() -> None:
    """The policy with a topic survives failures, pickles, releases and eight in flight as any other."""
    mission = Mission(types=frozenset(["text/csv"]), topic=KeywordRelevance(["page"]))
    check_policy(BranchingBandit, mission=mission)


def test_a_stopped_crawl_goes_on_the_same(tmp_path: Path) -> None:
    """Stopped at a checkpoint and resumed, with a new object for the topic, it makes the same choices."""
    whole = go(crawl_of(Wanted(About("honey"))), 200)
    first = crawl_of(Wanted(About("honey")), job=Job(tmp_path / "focus", every=50))
    asked = go(first, 90)
    first.checkpoint()
    first.close()
    topic = About("honey")
    second = crawl_of(Wanted(topic), job=Job(tmp_path / "focus", every=50))
    policy: Any = second.policy
    assert policy.relevance.topic is topic
    assert asked + go(second, 110) == whole
    second.close()


def test_a_policy_that_shares_its_frontier_needs_no_more_room() -> None:
    """Revisits keeps records of 64 bytes, so that its part for new links does without the topic."""
    policy = Revisits()
    mission = Mission(types=frozenset(["text/csv"]), topic=About("honey"))
    policy.open(memory_frontier(policy.keeps(mission)), np.random.default_rng(0), mission)
    assert policy.new.relevance is None
