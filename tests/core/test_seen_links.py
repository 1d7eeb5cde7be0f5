"""A goal that sees links receives each of them before it is placed."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus import Crawl, FilesGoal, ItemsGoal, Job, TopicGoal, memory_frontier
from scrapy_focus.core.goal import SeesLinks, reads_links
from scrapy_focus.core.placer import PART
from scrapy_focus.core.types import State
from scrapy_focus.policies.orderings import BreadthFirst
from scrapy_focus.topic.keywords import KeywordRelevance
from tests.made import Recording, fetch, link, links, page

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scrapy_focus import Link, Outcome


class Sees(ItemsGoal):
    """Writes down the links that it is shown, and how often it and the policy had been asked before."""

    def __init__(self, policy: Recording) -> None:
        self.policy = policy
        self.judged = 0
        self.calls: list[tuple[Any, ...]] = []

    def __call__(self, outcome: Outcome) -> float | None:
        self.judged += 1
        return 2.0 if outcome.items >= 0 else None

    def see_links(self, links: Sequence[Link], source: Outcome | None) -> None:
        reward = None if source is None else source.reward
        self.calls.append(([link.key for link in links], reward, self.judged, len(self.policy.called("place"))))


def test_links_are_shown_after_their_page_was_judged_and_before_they_are_placed() -> None:
    """Seeds come without a page; the reward of a page is known; a page without links is not shown."""
    goal = Sees(policy := Recording())
    crawl = Crawl(policy, frontier=memory_frontier, goal=goal, strict=True)
    crawl.add(links(1))
    fetch(crawl, *links(2, 3))
    fetch(crawl)
    assert goal.calls == [([1], None, 0, 0), ([2, 3], 2.0, 1, 1)]


def test_the_links_of_a_long_page_come_in_the_parts_in_which_they_are_placed() -> None:
    """Each part is shown just before it is placed, so that no call takes long."""
    goal = Sees(policy := Recording())
    crawl = Crawl(policy, frontier=memory_frontier, goal=goal, strict=True)
    crawl.add(links(1))
    fetch(crawl, *links(*range(2, 2 + PART + 10)))
    assert [(len(keys), places) for keys, _, _, places in goal.calls] == [(1, 0), (PART, 1), (10, 2)]


def test_links_of_a_page_whose_reward_comes_later_are_shown_then() -> None:
    """The goal sees them with the reward."""
    goal = Sees(policy := Recording())
    crawl = Crawl(policy, frontier=memory_frontier, goal=goal, strict=True)
    crawl.add(links(1))
    pick = fetch(crawl, *links(2), items=-1.0)
    assert len(goal.calls) == 1
    crawl.reward(pick.id, 7.0)
    assert goal.calls[1:] == [([2], 7.0, 1, 1)]


def test_links_that_a_page_gives_before_its_outcome_are_shown_with_it() -> None:
    """Its reward is not known yet."""
    goal = Sees(policy := Recording())
    crawl = Crawl(policy, frontier=memory_frontier, goal=goal, strict=True)
    crawl.add(links(1))
    pick = crawl.next()
    assert pick is not None
    crawl.add(links(2), page(pick))
    assert goal.calls[1:] == [([2], 0.0, 0, 1)]


class WantsKnown(Recording):
    """Receives queued links again, too."""

    wants_known = frozenset({State.WAITING})


@pytest.mark.parametrize("make", [Recording, WantsKnown])
def test_each_link_is_shown_once_whatever_the_policy_receives(make: type[Recording]) -> None:
    """Otherwise a goal would learn other things with another policy, and in a simulation."""
    goal = Sees(policy := make())
    crawl = Crawl(policy, frontier=memory_frontier, goal=goal, strict=True)
    crawl.add(links(1))
    fetch(crawl, *links(2, 3, 2))
    fetch(crawl, *links(1, 2, 3, 4))
    fetch(crawl, *links(1, 2, 3, 4))
    assert [keys for keys, *_ in goal.calls] == [[1], [2, 3], [4]]


class Titled:
    """A page with a title and a long text."""

    url, status, headers, kind = "http://h/1", 200, {}, ""
    text = f"<title>Lake</title>{'secret' * 1000}"


def test_links_are_shown_again_after_a_kill(tmp_path: Path) -> None:
    """Those that came since the last checkpoint, with the titles of their pages; nothing else of a page is stored."""
    topic = KeywordRelevance(["lake"])
    crawl = Crawl(BreadthFirst(), job=Job(tmp_path / "job"), goal=FilesGoal(relevance=topic), strict=True)
    crawl.add(links(1))
    fetch(crawl, *links(2), page=Titled())
    assert crawl.job is not None
    crawl.job.flush()
    shutil.copytree(tmp_path / "job", tmp_path / "killed")
    crawl.close()
    stored = b"".join(path.read_bytes() for path in (tmp_path / "killed").rglob("*") if path.is_file())
    assert b"secretsecret" not in stored
    goal = FilesGoal(relevance=topic)
    again = Crawl(BreadthFirst(), job=Job(tmp_path / "killed"), goal=goal, strict=True)
    assert goal.relevance_at("http://h/2") == 0.5
    assert goal.relevance_at("http://h/3") == 0.0
    again.close()


def test_a_goal_that_fails_on_links_does_not_stop_the_crawl(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged and counted, and the links are placed; a strict crawl lets it through."""

    class Fails(ItemsGoal):
        def see_links(self, links: Sequence[Link], source: Outcome | None) -> None:
            raise RuntimeError("no such word")

    crawl = Crawl(Recording(), frontier=memory_frontier, goal=Fails())
    assert crawl.add(links(1, 2)) == 2
    assert crawl.counts["error/goal"] == 1
    assert "Fails failed: no such word" in caplog.text
    with pytest.raises(RuntimeError, match="no such word"):
        Crawl(Recording(), frontier=memory_frontier, goal=Fails(), strict=True).add(links(1))


def test_goals_without_a_topic_do_not_see_links() -> None:
    """Their crawls parse no page for it."""
    topic = KeywordRelevance(["lake"])
    assert not any(isinstance(goal, SeesLinks) for goal in (ItemsGoal(), FilesGoal(), TopicGoal(topic)))
    assert reads_links(FilesGoal(relevance=topic))
    assert not reads_links(FilesGoal())


def test_links_known_by_their_keys_alone_have_no_text() -> None:
    """A goal for relevant files skips them."""
    goal = FilesGoal(relevance=KeywordRelevance(["lake"]))
    goal.see_links([link(1)._replace(url="")], None)
    assert goal.state()["links"]["keys"].size == 0
