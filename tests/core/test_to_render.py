"""Pages with scripts are queued again, to be rendered: once, with their requests, and survive kills."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scrapy_focus import (
    Crawl,
    Outcome,
    Placement,
    PolicyError,
    State,
    check_policy,
    memory_frontier,
)
from scrapy_focus.core import abilities
from scrapy_focus.jobs.job import Job
from scrapy_focus.policies.orderings import BreadthFirst
from tests.made import Renders, link, links

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus import Pick


def page(pick: Pick, **more: object) -> Outcome:
    """Return what a page with scripts comes to."""
    return Outcome(pick=pick, status=200, mime="text/html", **{"scripted": True, **more})  # type: ignore[arg-type]


def fetch(crawl: Crawl, *found: int, **more: object) -> tuple[str, str]:
    """Fetch the next link, whose page has some links."""
    pick = crawl.next()
    assert pick is not None
    crawl.report(page(pick, **more), links(*found))
    return pick.method, pick.url


def test_a_page_with_scripts_is_rendered_once() -> None:
    """After it was fetched, as one link; what the browser shows besides is placed, and the rendering is learned from."""
    policy = Renders()
    crawl = Crawl(policy, frontier=memory_frontier, seed=0)
    crawl.add([link(1, payload=b"request")])
    assert fetch(crawl, 2, scripted=True) == ("GET", "http://h/1")
    assert crawl.knows([1]) == [State.WAITING]
    assert fetch(crawl, scripted=False) == ("GET", "http://h/2")
    assert crawl.knows([2]) == [State.FETCHED]
    pick = crawl.next()
    assert pick is not None
    assert (pick.method, pick.url, pick.payload) == ("RENDER", "http://h/1", b"request")
    crawl.report(page(pick, requests=4, received=900), links(2, 3))
    assert crawl.knows([1, 3]) == [State.FETCHED, State.WAITING]
    assert fetch(crawl, scripted=False) == ("GET", "http://h/3")
    assert crawl.next() is None
    assert policy.learned == [
        ("GET", "http://h/1", 1), ("GET", "http://h/2", 1), ("RENDER", "http://h/1", 4), ("GET", "http://h/3", 1),
    ]  # fmt: skip
    assert crawl.counts["link/render"] == 1


def test_what_failed_is_not_rendered_nor_what_no_policy_wants() -> None:
    """Nor is anything where the policy has no such method."""
    for policy, error in ((Renders(), "http_error"), (BreadthFirst(), "")):
        crawl = Crawl(policy, frontier=memory_frontier, seed=0)
        crawl.add(links(1))
        fetch(crawl, error=error)
        assert crawl.next() is None
        assert crawl.knows([1]) == [State.FETCHED]


def test_a_rendering_that_was_not_sent_waits_again() -> None:
    """As a rendering: no second plain page is fetched."""
    crawl = Crawl(Renders(), frontier=memory_frontier, seed=0)
    crawl.add(links(1))
    fetch(crawl)
    pick = crawl.next()
    assert pick is not None
    crawl.release(pick.id)
    assert fetch(crawl) == ("RENDER", "http://h/1")
    assert crawl.next() is None


def test_what_waits_to_be_rendered_survives_a_kill(tmp_path: Path) -> None:
    """With the data of outcomes, from the journal and from a checkpoint."""
    for name, checkpoint in (("journal", False), ("checkpoint", True)):
        policy = Renders()
        crawl = Crawl(policy, job=Job(tmp_path / name), seed=0)
        crawl.add(links(1, 2))
        fetch(crawl)
        fetch(crawl, requests=3, received=5)
        if checkpoint:
            crawl.close()
        else:
            del crawl  # a kill leaves the lock to the system
        again = Crawl(Renders(), job=Job(tmp_path / name), seed=0)
        assert fetch(again) == ("RENDER", "http://h/1")
        assert fetch(again) == ("RENDER", "http://h/2")
        assert isinstance(again.policy, Renders)
        assert again.policy.learned[1] == ("GET", "http://h/2", 3)
        again.close()


class ComesBack(Renders):
    """Has all pages fetched again, at once."""

    def again(self, outcome: Outcome) -> Placement:
        return Placement(0, 0.0)


def test_a_page_that_waits_for_its_next_visit_is_not_rendered() -> None:
    """It is queued once, and nothing is lost by that: the policy is called again after that visit."""
    crawl = Crawl(ComesBack(), frontier=memory_frontier, seed=0)
    crawl.add(links(1))
    assert [fetch(crawl), fetch(crawl)] == [("GET", "http://h/1")] * 2
    assert crawl.counts["link/render"] == 0
    assert not any(crawl.counts[name] for name in crawl.counts if name.startswith("error/"))
    crawl.frontier.check()


class Odd(BreadthFirst):
    """Answers nonsense."""

    def render(self, outcome: Outcome) -> Placement | None:
        return "soon"  # type: ignore[return-value]


def test_nonsense_is_named() -> None:
    """In a check of the policy; a crawl continues without the rendering, and counts it."""
    crawl = Crawl(Odd(), frontier=memory_frontier, seed=0)
    crawl.add(links(1, 2))
    fetch(crawl)
    assert fetch(crawl) == ("GET", "http://h/2")
    assert crawl.counts["error/render"] == 2
    with pytest.raises(PolicyError, match=r"render\(\) answered 'soon'; return a Placement, or None"):
        check_policy(Odd)


def test_a_policy_that_renders_keeps_its_promises() -> None:
    """The checks of policies have pages with scripts."""
    check_policy(Renders)
    assert issubclass(Renders, abilities.Renders)
