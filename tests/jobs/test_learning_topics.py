"""Topics that learn while they crawl: one object for goal and policy, kept in the JOBDIR."""

from __future__ import annotations

import json
import logging
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from scrapy_focus import ConfigError, Crawl, Job, Link, Outcome, Policy, PolicyError, ResumeError, memory_frontier
from scrapy_focus.commands.status import rows_of
from scrapy_focus.goals.topic import TopicGoal
from scrapy_focus.jobs.doctor.check import check_job
from scrapy_focus.jobs.doctor.cures import repair_job
from scrapy_focus.jobs.doctor.status import read_status
from scrapy_focus.jobs.pickles import Classes
from scrapy_focus.policies.bestfirst import BestFirst
from scrapy_focus.policies.hotqueue import HotQueue
from scrapy_focus.policies.treeq import TreeQ
from tests.growing import Growing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from scrapy_focus import Pick

PAGES = 60
POLICIES: dict[str, Callable[[], Policy]] = {
    "tree": TreeQ, "asynchronous": lambda: TreeQ(mode="asynchronous"), "best-first": BestFirst,
    "hot queue": lambda: HotQueue(max_distance=1),
}  # fmt: skip


class Text(NamedTuple):
    """A page of a few words."""

    url: str
    text: str
    status: int = 200
    headers: Mapping[str, str] = {}
    kind: str = "text/html"


def link(number: int) -> Link:
    return Link(f"http://h{number % 7}.test/{number}", number + 1, f"h{number % 7}.test", anchor=f"word{number}")


def answer(pick: Pick) -> tuple[Outcome, list[Link]]:
    """Page n has its own word and that of the page before; it links to three others."""
    number = pick.key - 1
    text = f"<title>word{number}</title><p>" + (f"word{number - 1}" if number % 3 else "nothing")
    to = [link(other) for other in (number + 1, 2 * number, 3 * number + 1) if other < PAGES]
    return Outcome(pick, status=200, mime="text/html", page=Text(pick.url, text)), to


def crawl_in(folder: Path | None, policy: Policy, topic: Any, **more: Any) -> Crawl:
    where = {"frontier": memory_frontier} if folder is None else {"job": Job(folder / "focus", every=10)}
    return Crawl(policy, goal=TopicGoal(topic), seed=1, strict=True, **where, **more)


def go(crawl: Crawl, n: int) -> list[int]:
    """Fetch up to so many pages, and return their keys."""
    if not crawl.counts["outcomes"]:
        crawl.add([link(0), link(1)])
    fetched = []
    while len(fetched) < n and (pick := crawl.next()) is not None:
        crawl.sent(pick.id)
        crawl.report(*answer(pick))
        fetched.append(pick.key)
        if crawl.job is not None:
            crawl.job.flush()
    return fetched


def topic_of(policy: Policy) -> Any:
    reader = policy._features.reader if isinstance(policy, TreeQ) else policy._reader  # type: ignore[attr-defined]
    return reader.relevance


def killed(crawl: Crawl, at: Path, to: Path) -> Path:
    """Return a copy of a folder as a kill leaves it."""
    shutil.copytree(at, to)
    crawl.job.close()  # type: ignore[union-attr]
    return to


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_a_killed_crawl_has_one_topic_again(tmp_path: Path, policy: Callable[[], Policy]) -> None:
    """After a kill, goal and policy have one topic, which knows what it knew at the last checkpoint, and learns on."""
    crawl = crawl_in(tmp_path / "job", policy(), Growing("word1"))
    fetched = go(crawl, 10)
    crawl.checkpoint()
    known = crawl.goal.relevance.words.copy()  # type: ignore[attr-defined]
    assert len(known) > 1
    fetched += go(crawl, 7)  # fewer than after which there is another
    folder = killed(crawl, tmp_path / "job", tmp_path / "copy")
    topic = Growing("word1")
    again = crawl_in(folder, policy(), topic)
    assert again.goal.relevance is again.mission.topic is topic_of(again.policy) is topic  # type: ignore[attr-defined]
    assert (topic.words, topic.seen) == (known, 10)
    again.frontier.check()
    fetched += go(again, PAGES)
    assert topic.seen == PAGES - 7, "what came after the checkpoint is lost"
    assert sorted(fetched) == list(range(1, PAGES + 1)), "each page came once"
    again.close()


def test_a_stopped_crawl_loses_nothing(tmp_path: Path) -> None:
    """A crawl that is stopped and resumed makes the same choices as an uninterrupted one."""
    whole = crawl_in(None, BestFirst(), Growing("word1"))
    first = crawl_in(tmp_path, BestFirst(), Growing("word1"))
    chosen = go(first, 25)
    first.checkpoint()
    first.close()
    second = crawl_in(tmp_path, BestFirst(), Growing("word1"))
    assert chosen + go(second, PAGES) == go(whole, PAGES)
    assert second.goal.relevance.words == whole.goal.relevance.words  # type: ignore[attr-defined]
    second.close()


def test_links_are_read_again_when_a_topic_has_learned(tmp_path: Path) -> None:
    """What a link's words scored is remembered until the topic has learned more, and not beyond."""
    topic = Growing("honey")
    policy = BestFirst()
    crawl = Crawl(policy, frontier=memory_frontier, goal=TopicGoal(topic), seed=1)
    bees = [Link("http://a.test/bees", 1, "a.test", anchor="bees")]
    before = policy.place(bees, None)[0].rank  # type: ignore[union-attr]
    policy.place(bees, None)
    assert topic.asked == 1
    topic.see("bees make honey")
    assert policy.place(bees, None)[0].rank > before + 0.5  # type: ignore[union-attr]
    crawl.close()


def test_it_says_once_that_it_drifts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One warning is in the log of a job, outcomes are counted while the alarm is on, and the status shows it."""
    crawl = crawl_in(tmp_path / "job", BestFirst(), Growing("word1", most=4))
    with caplog.at_level(logging.WARNING):
        go(crawl, 20)
        crawl.checkpoint()
        crawl.close()
        crawl = crawl_in(tmp_path / "job", BestFirst(), Growing("word1", most=4))
        go(crawl, 5)
    assert [record.getMessage() for record in caplog.records] == ["the topic drifts: too many words"]
    assert 5 < crawl.counts["topic/drift"] < 25
    status = crawl.status(best=1)
    assert status.alarm == "the topic drifts: too many words"
    [said] = status.said
    share = 100 * crawl.goal.relevance.frequency  # type: ignore[attr-defined]
    assert said == f"about {share:.0f} % of the pages seen are on the topic, by its estimate"
    crawl.checkpoint()
    crawl.close()
    found = read_status(tmp_path / "job")
    assert (found["said"], found["alarm"]) == ([said], status.alarm)
    texts = [text for _, text in rows_of(found)]
    assert said in texts
    assert status.alarm in texts


def test_no_alarm_no_word(tmp_path: Path) -> None:
    """A topic without an alarm is not counted, and one that learns nothing logs nothing."""
    crawl = crawl_in(None, BestFirst(), Growing("word1"))
    go(crawl, 20)
    assert "topic/drift" not in crawl.counts
    assert crawl.status(best=1).alarm == ""

    class Fixed:
        digest = "fixed"

        def score(self, texts: list[str]) -> Any:
            return np.full(len(texts), 0.7)

    crawl = crawl_in(tmp_path, BestFirst(), Fixed())
    go(crawl, 20)
    assert (crawl.status(best=1).said, crawl.status(best=1).alarm) == ([], "")
    crawl.close()
    with closing(sqlite3.connect(tmp_path / "focus" / "frontier.sqlite")) as database:
        [(goal,)] = database.execute("SELECT value FROM notes WHERE name = 'goal'")
    assert Classes().loads(goal)["topic"] is None


def test_another_topic_does_not_resume(tmp_path: Path) -> None:
    """A job resumes only with a topic made from the same examples and keywords."""
    crawl = crawl_in(tmp_path, BestFirst(), Growing("word1"))
    go(crawl, 5)
    crawl.close()
    with pytest.raises(ResumeError, match="growing word1"):
        crawl_in(tmp_path, BestFirst(), Growing("word2"))


def test_a_state_that_does_not_fit_is_refused_in_words(tmp_path: Path) -> None:
    """If a topic cannot be restored, the error says so and what helps; after focus-check it starts again, and works."""
    crawl = crawl_in(tmp_path, BestFirst(), Growing("word1"))
    go(crawl, 15)
    crawl.close()

    class Changed(Growing):
        def restore(self, state: Any) -> None:
            super().restore({"words": state["sentences"]})

    with pytest.raises(ResumeError, match=r"learned cannot be read: KeyError\('sentences'\).*--fix --anew"):
        crawl_in(tmp_path, BestFirst(), Changed("word1"))
    said: list[str] = []
    assert repair_job(tmp_path, anew=True, say=said.append).is_well
    crawl = crawl_in(tmp_path, BestFirst(), Changed("word1"))
    assert crawl.goal.relevance.words == {"word1"}  # type: ignore[attr-defined]
    go(crawl, 5)
    crawl.close()


def test_a_damaged_state_is_found(tmp_path: Path) -> None:
    """One wrong byte in the learned state of a goal is found by focus-check, which repairs it."""
    crawl = crawl_in(tmp_path, BestFirst(), Growing("word1"))
    go(crawl, 15)
    crawl.close()
    with closing(sqlite3.connect(tmp_path / "focus" / "frontier.sqlite", isolation_level=None)) as database:
        [[note]] = database.execute("SELECT value FROM notes WHERE name = 'goal'")
        database.execute("UPDATE notes SET value = ? WHERE name = 'goal'", (note[:-5] + b"x" + note[-4:],))
    assert not check_job(tmp_path, say=str).is_well
    said: list[str] = []
    assert repair_job(tmp_path, say=said.append).is_well
    assert "wrong: what the goal learned is unreliable" in said[0]


def test_a_state_of_odd_things_is_refused(tmp_path: Path) -> None:
    """What a topic returns as its state and no JOBDIR holds is refused when it is written, in words."""

    class Odd(Growing):
        def state(self) -> Any:
            return self

    with pytest.raises(PolicyError, match=r"what the goal learned cannot be stored.*plain values"):
        crawl_in(tmp_path, BestFirst(), Odd("word1"))


def test_a_topic_that_half_learns_is_refused() -> None:
    """A topic with ``see`` that lacks the rest is refused, and the rest is named."""

    class Half:
        digest = "half"

        def score(self, texts: list[str]) -> Any:
            return np.zeros(len(texts))

        def see(self, text: str, host: str = "") -> None: ...

    with pytest.raises(ConfigError, match=r"Half learns.*lacks refits, frequency, alarm, state, restore"):
        TopicGoal(Half())  # type: ignore[arg-type]


def test_what_is_shown_is_cut(tmp_path: Path) -> None:
    """A very long message, or one with lines, is shown as one short line."""

    class Loud(Growing):
        @property
        def alarm(self) -> str:
            return "drift\n" * 10_000

    crawl = crawl_in(None, BestFirst(), Loud("word1"))
    go(crawl, 3)
    said = crawl.status(best=1).alarm
    assert len(said) <= 1000
    assert "\n" not in said
    assert json.dumps(said)
