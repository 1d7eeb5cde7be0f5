"""Whether pages called relevant are so, as far as an independent sign tells."""

from __future__ import annotations

import numpy as np
import pytest

from scrapy_focus.topic.background import Bag
from scrapy_focus.topic.drift import Drift, missed
from tests.learn.topics import pages


def told(*, true: float, called: float, seed: int, of_topic: float = 0.8, of_others: float = 0.1) -> str:
    """Return the first alarm in 400 pages, with these shares of pages called relevant, and really relevant ones among
    them.
    """
    rng = np.random.default_rng(seed)
    drift = Drift("a sign")
    for _ in range(400):
        is_called = bool(rng.random() < called)
        is_true = is_called and rng.random() < true
        drift.add(called=is_called, sign=bool(rng.random() < (of_topic if is_true else of_others)))
        if alarm := drift.alarm(of_topic=of_topic):
            return alarm
    return ""


@pytest.mark.parametrize("called", [0.2, 0.7])
def test_good_crawls_are_left_alone(called: float) -> None:
    """Of fifty crawls where four of five pages called relevant are so, none raises the alarm."""
    assert not any(told(true=0.8, called=called, seed=seed) for seed in range(50))


def test_a_crawl_that_drifted_is_told_of() -> None:
    """Where one of ten pages called relevant is, the alarm says how many have the sign, in all of fifty crawls."""
    alarms = [told(true=0.1, called=0.7, seed=seed) for seed in range(50)]
    assert all("were called relevant" in alarm and "have a sign" in alarm for alarm in alarms)


def test_a_sign_that_tells_nothing_raises_no_alarm() -> None:
    """Where pages off the topic have the sign as often, nothing can be said."""
    assert not told(true=0.0, called=0.7, seed=0, of_topic=0.3, of_others=0.4)


def test_examples_with_nothing_of_their_own_are_told_of_where_pages_are_called_relevant() -> None:
    """Three examples that share but what all pages do raise the alarm; three of one topic do not, nor where few pages
    are called relevant.
    """
    seen = [Bag.of(text) for text in pages(30, on=True) + pages(270, on=False)]
    drifts = {called: Drift("a sign") for called in (5, 50)}
    for called, drift in drifts.items():
        for i in range(100):
            drift.add(called=i < called, sign=False)
    mixed = [Bag.of(f"{text} topic{i}") for i, text in enumerate(pages(3, on=False, seed=3))]
    alike = [Bag.of(text) for text in pages(3, on=True, seed=3)]
    assert "50 were called relevant, and the 3 examples" in drifts[50].alarm_of_few(mixed, seen)
    assert not drifts[50].alarm_of_few(alike, seen)
    assert not drifts[5].alarm_of_few(mixed, seen)


@pytest.mark.parametrize(("recognised", "said"), [(0, True), (1, True), (2, False), (3, False)])
def test_examples_that_are_not_recognised_are_told_of(recognised: int, said: bool) -> None:
    """A model that would miss most of its own examples says so."""
    assert bool(missed(recognised, 3)) == said
