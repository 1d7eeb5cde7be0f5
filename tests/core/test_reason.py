"""Why a link was chosen: what a policy says of it, and what the log and spiders get."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus import Bandit, Crawl, Part, Reason, memory_frontier
from scrapy_focus.policies.orderings import BreadthFirst
from tests.made import link, links

if TYPE_CHECKING:
    from scrapy_focus import Policy


class Says(BreadthFirst):
    """Returns what it was made with."""

    def __init__(self, said: Any) -> None:
        super().__init__()
        self.said = said

    def explain(self, pick):
        return self.said


class Hosts(Bandit):
    """Extends the answer of its base class, as policies did when that was a dict."""

    def arm(self, link):
        return 0

    def explain(self, pick):
        return {**super().explain(pick), "host": pick.host, "mean of all": super().explain(pick)["mean"]}


def why(policy: Policy, **options: Any) -> dict[str, Any]:
    """Return why a crawl says that a policy chose its first link."""
    crawl = Crawl(policy, frontier=memory_frontier, explain=True, strict=True)
    crawl.add([link(1, **options), *links(2, 3)])
    assert crawl.next() is not None
    json.dumps(crawl.why, allow_nan=False)
    return crawl.why


def test_a_reason_is_its_sentences_and_its_numbers() -> None:
    """A part without a sentence has numbers alone; the log has all numbers, and the sentences as one text."""
    said = Reason(
        Part("3 of 8 pages were finds", {"pages": 8, "finds": 3}), Part("", {"odds": 0.6}), Part("drawn at random")
    )
    assert str(said) == "3 of 8 pages were finds; drawn at random"
    assert said == {"pages": 8, "finds": 3, "odds": 0.6}
    assert why(Says(said)) == {**said, "why": str(said)}


def test_a_policy_that_says_nothing_itself_has_a_reason() -> None:
    """How far the link is from a seed, and where it was queued, with how many others."""
    said = why(BreadthFirst(), depth=2)
    assert said == {
        "arm": 0, "rank": said["rank"], "waiting": 2,
        "why": f"2 clicks from a seed; from queue 0 at rank {said['rank']:g}, 2 links left there",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({}, "a seed"),
        ({"kind": "page", "score": 0.5, "misses": 0}, "a seed; kind page; score 0.5"),
        ({"score": 0.5, "why": "the largest score"}, "a seed; the largest score"),
        ({"why": 5}, "a seed; why 5"),
    ],
)
def test_a_dict_is_made_into_a_reason(said: dict[str, Any], text: str) -> None:
    """Its ``why`` is the sentence, or else its names and values are; all that it has is kept."""
    assert why(Says(said)) == {**said, "why": text}


def test_a_policy_may_add_to_what_its_base_class_says() -> None:
    """A reason reads like the dict of its numbers."""
    assert why(Hosts()) == {
        "arm": 0, "pulls": 1.0, "mean": 0.0, "host": "h", "mean of all": 0.0,
        "why": "a seed; pulls 1.0; host h",
    }  # fmt: skip


def test_the_text_is_one_printable_line() -> None:
    """Whatever a site called its elements, and however much a policy says."""
    said = why(Says(Reason(Part("at html/\x1b[31m\n" + 3000 * "a", {"at": "\x1b"}))))
    assert said["why"].startswith("at html/\\x1b[31m\\naaa")
    assert len(said["why"]) == 2000
    assert said["at"] == "\x1b"
