"""What is left to be found: by hand, on a site that is known, and where nothing can be said."""

from __future__ import annotations

import math
import pickle
from typing import TYPE_CHECKING

import numpy as np
import pytest

from scrapy_focus.policies.branching.arms import PAGES, TARGETS
from scrapy_focus.policies.branching.coverage import Coverage, Signs, expected, known

if TYPE_CHECKING:
    from scrapy_focus.core.policy import Left

LISTS, FILES, OTHER = 0, 1, 2
KINDS = np.array([PAGES, TARGETS, PAGES], np.int8)


class Site:
    """Lists that lead to one file each, and other pages that lead to so many of their kind and to nothing else."""

    def __init__(self, lists: int, more: float = 0.0) -> None:
        self.coverage = Coverage()
        self.waiting = np.array([lists, 0, 1])
        self.more = more

    def crawl(self, pages: int) -> None:
        """Fetch so many lists, each with its file and one of the other pages."""
        for _ in range(pages):
            self.pull(LISTS, False, {FILES: 1})
            self.pull(FILES, True, {})
            if self.waiting[OTHER]:
                self.pull(OTHER, False, {OTHER: self.more})

    def pull(self, arm: int, hit: bool, revealed: dict[int, float]) -> None:
        self.waiting[arm] -= 1
        for other, count in revealed.items():
            self.waiting[other] += count
        self.coverage.note(arm, hit, revealed, KINDS)

    def left(self) -> Left | None:
        return self.coverage.left(self.waiting, KINDS)


def test_the_guess_is_that_of_the_records() -> None:
    """Four pulls of lists revealed 2, 1, 1 and 0 files; of two files one was a target; 10 lists and 3 files wait."""
    coverage = Coverage()
    for hit, revealed in ((False, {FILES: 2, OTHER: 4}), (False, {FILES: 1})):
        coverage.note(LISTS, hit, revealed, KINDS)
    coverage.note(FILES, True, {}, KINDS)
    coverage.note(FILES, False, {}, KINDS)
    coverage.note(LISTS, False, {FILES: 1}, KINDS)
    coverage.note(LISTS, False, {}, KINDS)
    signs = coverage.signs(np.array([10, 3, 0]), KINDS)
    revealed = 2 * 0.9 + 1 * 0.9 + 1 * (1 + 0.9) / (2 + 1)  # links to files times the hits per pull known by then
    lists = (0.05 / 5) / (4 + 1) + revealed / (4 + 0.3)
    files = (1 + 0.9) / (2 + 1)
    assert signs.found == 1
    assert signs.guess == pytest.approx(10 * lists + 3 * files)
    assert signs.pages == pytest.approx(11 / 5)
    assert signs.hits == pytest.approx(1 / 6, rel=0.005), "of 200 pulls all six are recent"
    assert signs.news == pytest.approx(4 / 4, rel=0.02)


def test_limits_are_quantiles_of_the_logarithm() -> None:
    """The limits of a guess of 99 are 100 times the exponentials of the sums, less one, in whole numbers outwards."""
    left = expected(Signs(found=500, guess=99.0, hits=0.25, news=0.5, pages=2.0))
    assert left.low == pytest.approx(100 * math.exp(-4.98 + 4.13 * 0.5 - 0.29 * math.log(2)) - 1, abs=1)
    assert left.middle == pytest.approx(100 * math.exp(-0.64 + 0.80 * 0.5) - 1, abs=0.5)
    assert left.high == pytest.approx(100 * 1.5**1.32 * math.exp(0.02) - 1, abs=1)
    assert left == (left.low // 1, left.middle // 1, left.high // 1)


def test_the_truth_is_between_the_limits() -> None:
    """On a site of 400 lists with a file each, what is left is held from the middle on, and falls to nothing."""
    site = Site(lists=400)
    site.crawl(200)
    for found in (200, 250, 300, 350, 390):
        left = site.left()
        assert left is not None
        assert left.low <= 400 - found <= left.high
        assert left.middle == pytest.approx(400 - found, rel=0.2)
        site.crawl({350: 40, 390: 10}.get(found, 50))
    assert site.left() == (0, 0, 0)


def test_few_finds_say_nothing() -> None:
    """Before ten targets are found nothing is said, and with ten it is, if little waits."""
    site = Site(lists=12)
    site.crawl(9)
    assert site.left() is None
    site.crawl(1)
    assert site.left() is not None


def test_growing_sites_say_nothing() -> None:
    """Where each other page reveals five more, nobody knows how large the site is, however many were found."""
    growing, done = Site(lists=400, more=5.0), Site(lists=400)
    growing.crawl(390)
    done.crawl(390)
    assert growing.coverage.found == done.coverage.found == 390
    assert growing.left() is None
    assert done.left() is not None


def test_wide_limits_say_nothing() -> None:
    """The limits of the number of all targets are a factor of three apart at most."""
    few, many = (Signs(found, guess=100.0, hits=0.5, news=0.2, pages=1.0) for found in (30, 1000))
    assert known(few) is None
    assert known(many) == expected(many)
    assert expected(few) == expected(many), "the number of those that were found is not in the limits"


def test_rare_finds_lower_the_limits() -> None:
    """When other pages were pulled for long without a find, what waits is worth less than its record says."""
    site = Site(lists=400, more=1.0)
    site.crawl(300)
    before, hits = site.left(), site.coverage.signs(site.waiting, KINDS).hits
    for _ in range(400):
        site.pull(OTHER, False, {OTHER: 1})
    after = site.left()
    assert site.coverage.signs(site.waiting, KINDS).hits == pytest.approx(hits * math.exp(-400 / 200), rel=0.05)
    assert before is not None
    assert after is not None
    assert after.low < before.low
    assert after.middle < before.middle


def test_records_forget() -> None:
    """What an arm revealed long ago counts no more: after 60 pulls a record is a decayed mean."""
    site = Site(lists=2000)
    site.crawl(100)
    full = site.coverage.signs(site.waiting, KINDS).guess / site.waiting[LISTS]
    for _ in range(500):
        site.pull(LISTS, False, {})
    assert full == pytest.approx(1, rel=0.02)
    assert site.coverage.signs(site.waiting, KINDS).guess / site.waiting[LISTS] < 0.01


def test_arms_come_into_being_when_used() -> None:
    """Arms keep what they have while others come, far beyond the room that there was at first."""
    coverage = Coverage()
    for _ in range(20):
        coverage.note(FILES, True, {}, KINDS)
    kinds = np.full(5000, TARGETS, np.int8)
    waiting = np.zeros(5000, np.int64)
    waiting[FILES] = 10
    before = coverage.signs(waiting[:3], kinds[:3]).guess
    coverage.note(4999, False, {4998: 1}, kinds)
    assert coverage.signs(waiting, kinds).guess == before == pytest.approx(10 * 20.9 / 21)
    waiting[4999] = 1
    assert coverage.signs(waiting, kinds).guess - before == pytest.approx(0.9 / 2 + 0.9 / 1.3)


def test_it_goes_on_where_it_was() -> None:
    """Pickled and read again in the middle of a crawl, it says the same as one that was not."""
    one, other = Site(lists=300), Site(lists=300)
    one.crawl(100)
    other.crawl(100)
    other.coverage = pickle.loads(pickle.dumps(other.coverage))
    one.crawl(120)
    other.crawl(120)
    assert one.coverage.signs(one.waiting, KINDS) == other.coverage.signs(other.waiting, KINDS)
    assert one.left() == other.left()
    assert one.left() is not None
