"""What is left to be found: by hand, on a site that is known, and where nothing can be said."""

from __future__ import annotations

import itertools
import math
import pickle
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from profiles.profiles import PROFILES, TARGET_MIMES, ProfileSite
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.importers.folder import record_site
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.policies.branching import coverage as module
from scrapy_focus.policies.branching.arms import PAGES, TARGETS
from scrapy_focus.policies.branching.coverage import Coverage, Signs, expected, known
from scrapy_focus.policies.branching.policy import BranchingBandit

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.core.abilities import Left
    from scrapy_focus.core.types import Outcome

LISTS, FILES, OTHER = 0, 1, 2
KINDS = np.array([PAGES, TARGETS, PAGES], np.int8)
GOOD, BAD = 2.0, -3.0  # log-odds that are predicted of lists, and of other pages
SIGNS = Signs(found=500, pulls=1000, targets=40.0, pages=60.0, arms=120.0, most=1000.0, news=0.5)


class Site:
    """Lists that lead to one file each, and other pages that lead to so many of their kind and to nothing else."""

    def __init__(self, lists: int, more: int = 0) -> None:
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

    def pull(self, arm: int, hit: bool, revealed: dict[int, int]) -> None:
        self.waiting[arm] -= 1
        for other, count in revealed.items():
            self.waiting[other] += count
        self.coverage.note(arm, hit, revealed, KINDS, BAD if arm == OTHER else GOOD)

    def signs(self) -> Signs:
        return self.coverage.signs(self.waiting, KINDS, *self.drawn())

    def left(self) -> Left | None:
        return self.coverage.left(self.waiting, KINDS, *self.drawn())

    def drawn(self) -> tuple[np.ndarray, np.ndarray]:
        """Return one link of each arm of pages that has queued links: those of an arm are alike here."""
        arms = np.array([arm for arm in (LISTS, OTHER) if self.waiting[arm]], np.intp)
        return arms, np.where(arms == OTHER, BAD, GOOD)


def test_pages_that_wait_are_judged_by_pages_that_looked_alike() -> None:
    """Of four pages with log-odds 2.1 three led to files, of six with -3 none; ten and a hundred such pages are
    queued.
    """
    coverage = Coverage()
    for _ in range(40):
        coverage.note(FILES, True, {}, KINDS)  # so that a link to a file is one but for 0.2 %
    for i in range(4):
        coverage.note(LISTS, False, {FILES: 1} if i else {}, KINDS, 2.1)
    for _ in range(6):
        coverage.note(OTHER, False, {OTHER: 2}, KINDS, BAD)
    file = (40 + 0.9) / 41
    share = 0.3 * file  # of all pages
    for step in range(int((10 - 2) / 0.5) + int((2 + 3) / 0.5)):  # from the best that can be down to -3
        better = share if step < 15 else math.exp(-0.5) * share / (1 - share + math.exp(-0.5) * share)
        at_two, at_bad = step == 15, step == 25
        pulls, found = (4, 3 * file) if at_two else (6, 0.0) if at_bad else (0, 0.0)
        share = (found + 3 * better) / (pulls + 3)
        if at_two:
            good = share
    signs = coverage.signs(np.array([10, 5, 100]), KINDS, np.array([LISTS, LISTS, OTHER]), np.array([2.0, 2.4, BAD]))
    assert signs.pages == pytest.approx(10 * good + 100 * share)
    assert good == pytest.approx((3 * file + 3 * 0.3 * file) / 7, rel=0.2)
    assert signs.targets == pytest.approx(5 * file)


def test_the_other_estimate_is_that_of_the_arms() -> None:
    """Four pulls of lists revealed 2, 1, 1 and 0 files; of two files one was a target; 10 lists and 3 files are
    queued.
    """
    coverage = Coverage()
    for hit, revealed in ((False, {FILES: 2, OTHER: 4}), (False, {FILES: 1})):
        coverage.note(LISTS, hit, revealed, KINDS)
    coverage.note(FILES, True, {}, KINDS)
    coverage.note(FILES, False, {}, KINDS)
    coverage.note(LISTS, False, {FILES: 1}, KINDS)
    coverage.note(LISTS, False, {}, KINDS)
    signs = coverage.signs(np.array([10, 3, 0]), KINDS, np.array([LISTS]), np.array([0.0]))
    revealed = 2 * 0.9 + 1 * 0.9 + 1 * (1 + 0.9) / (2 + 1)  # links to files times the hits per pull known by then
    lists = (0.05 / 5) / (4 + 1) + revealed / (4 + 0.3)
    files = (1 + 0.9) / (2 + 1)
    assert (signs.found, signs.pulls) == (1, 6)
    assert signs.targets == pytest.approx(3 * files)
    assert signs.arms == pytest.approx(10 * lists + 3 * files)
    assert signs.news == pytest.approx(4 / 4, rel=0.02)


def test_limits_are_so_many_spreads_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a spread of 0.2 and limits 2 below and 3 above, 99 are 100 exp(-0.4) - 1 to 100 exp(0.6) - 1."""
    monkeypatch.setattr(module, "_MIDDLE", {"targets": 0.0, "one": 0.0, "rate": 1.0, "gap": 0.0})
    monkeypatch.setattr(module, "_SPREAD", {"one": math.log(0.2)})
    monkeypatch.setattr(module, "_LIMITS", {"below": 2.0, "above": 3.0})
    signs = SIGNS._replace(targets=69.0)  # and 60 pages, half of which count, as every second pull is a find
    assert expected(signs) == (math.floor(100 * math.exp(-0.4) - 1), 99, math.ceil(100 * math.exp(0.6) - 1))


def test_what_waits_is_the_most_that_is_left() -> None:
    """Where no page reveals a new one, the upper limit is 1.25 times what can be behind; if all do, there is none.

    Half a new page for each doubles it.
    """
    free = expected(SIGNS._replace(news=1.0)).high
    assert expected(SIGNS._replace(most=80.0, news=1.0)).high == free
    assert expected(SIGNS._replace(most=80.0, news=0.0)).high == 100
    assert expected(SIGNS._replace(most=40.0, news=0.5)).high == 100
    assert free > 100


@pytest.mark.parametrize("name", ["targets", "pages"])
def test_the_more_wait_the_more_are_left(name: str) -> None:
    """No limit decreases when more links are queued that are as good as the others."""
    lefts = [expected(SIGNS._replace(arms=100 + n, **{name: float(n)})) for n in (10, 50, 200, 800)]
    for fewer, more in itertools.pairwise(lefts):
        assert fewer.middle < more.middle
        assert fewer.high < more.high
        assert fewer.low <= more.low


def test_what_is_less_sure_has_limits_further_apart() -> None:
    """Limits are a larger ratio apart where pages reveal more new pages, and for pages than for predicted targets."""

    def apart(signs: Signs) -> float:
        left = expected(signs._replace(most=1e6))
        return (1 + left.high) / (1 + left.low)

    pages = SIGNS._replace(targets=0.0, pages=1000.0, arms=1000.0)
    assert apart(pages._replace(news=5.0)) > apart(pages)
    assert apart(pages) > apart(SIGNS._replace(targets=1000.0, pages=0.0, arms=1000.0))


def test_the_truth_is_between_the_limits() -> None:
    """On a site of 400 lists with a file each, what is left is held from the middle on, and falls to nothing."""
    site = Site(lists=400)
    site.crawl(200)
    for found in (200, 250, 300, 350, 390):
        left = site.left()
        assert left is not None
        assert left.low <= 400 - found <= left.high
        assert left.middle == pytest.approx(400 - found, rel=0.35)
        site.crawl({350: 40, 390: 10}.get(found, 50))
    assert site.left() == (0, 0, 0)


def test_few_finds_say_nothing() -> None:
    """Before ten targets are found there is no estimate, and with ten there is one, if few links are queued."""
    site = Site(lists=12)
    site.crawl(9)
    assert site.left() is None
    site.crawl(1)
    assert site.left() is not None


def test_growing_sites_say_nothing_at_first() -> None:
    """Where each other page reveals five more, 150 pulls pass; where it reveals none, something is said before."""
    growing, done = Site(lists=80, more=5), Site(lists=80)
    for site in (growing, done):
        site.crawl(49)
    assert growing.coverage.pulls == 147
    assert growing.left() is None
    assert done.left() is not None
    growing.crawl(1)
    assert known(growing.signs()._replace(found=100_000)) is not None


def test_wide_limits_say_nothing() -> None:
    """The limits of the number of all targets are a factor of three apart at most."""
    few, many = (SIGNS._replace(found=found, pulls=2 * found) for found in (30, 1000))
    assert known(few) is None
    assert known(many) == expected(many)
    assert expected(few) == expected(many), "only the share of finds counts for the limits"


def test_steady_finds_say_nothing() -> None:
    """There is no estimate if half of the recent finds are above the upper limit, unless no more are queued."""
    signs = SIGNS._replace(targets=1.0, pages=1.0, arms=2.0)
    high = expected(signs).high
    assert known(signs._replace(recent=2 * high)) == expected(signs)
    assert known(signs._replace(recent=2 * high + 1)) is None
    few = signs._replace(most=2.0, news=0.0, recent=100.0)
    assert known(few) == expected(few)


def test_what_is_several_steps_away_keeps_it_from_saying_something() -> None:
    """With ten times the upper limit ahead nothing is said; nor with more than was found, while most finds are recent."""
    signs = SIGNS._replace(targets=1.0, pages=1.0, arms=2.0)
    high = expected(signs).high
    assert known(signs._replace(ahead=9.9 * high)) == expected(signs)
    assert known(signs._replace(ahead=10.1 * high)) is None
    wide = SIGNS._replace(found=50, targets=60.0, recent=26.0)
    assert known(wide._replace(ahead=49.0)) == expected(wide)
    assert known(wide._replace(ahead=51.0)) is None
    assert known(wide._replace(ahead=51.0, recent=24.0)) == expected(wide)


def test_recent_finds_are_counted() -> None:
    """Finds of the last 200 pulls count, and those of long ago do not."""
    site = Site(lists=400)
    site.crawl(50)
    assert site.signs().recent == pytest.approx(50, rel=0.3)
    for _ in range(2000):
        site.pull(LISTS, False, {})
    assert site.signs().recent < 0.1


def test_rare_finds_lower_the_limits() -> None:
    """When other pages were pulled for long without a find, queued ones are worth less than they look."""
    site = Site(lists=400, more=1)
    site.crawl(300)
    before = expected(site.signs())
    for _ in range(3000):
        site.pull(OTHER, False, {OTHER: 1})
    after = expected(site.signs())
    assert after.middle < before.middle / 2
    assert after.low < before.low
    assert after.high < before.high


def test_records_forget() -> None:
    """What lists revealed long ago counts no more: after 60 pulls a record is a decayed mean."""
    site = Site(lists=2000)
    site.crawl(100)
    full = site.signs()
    assert full.arms / site.waiting[LISTS] == pytest.approx(1, rel=0.02)
    assert full.pages / site.waiting[LISTS] == pytest.approx(1, rel=0.05)
    for _ in range(500):
        site.pull(LISTS, False, {})
    assert site.signs().arms / site.waiting[LISTS] < 0.01
    assert site.signs().pages / site.waiting[LISTS] < 0.01


def test_arms_come_into_being_when_used() -> None:
    """Arms keep what they have while others come, far beyond the room that there was at first."""
    coverage = Coverage()
    for _ in range(20):
        coverage.note(FILES, True, {}, KINDS)
    kinds = np.full(5000, TARGETS, np.int8)
    waiting = np.zeros(5000, np.int64)
    waiting[FILES] = 10
    nothing = np.zeros(0, np.intp), np.zeros(0)
    before = coverage.signs(waiting[:3], kinds[:3], *nothing).targets
    coverage.note(4999, False, {4998: 1}, kinds)
    assert coverage.signs(waiting, kinds, *nothing).targets == before == pytest.approx(10 * 20.9 / 21)
    waiting[4999] = 1
    assert coverage.signs(waiting, kinds, *nothing).targets - before == pytest.approx(0.9 / 2)


def test_it_goes_on_where_it_was() -> None:
    """Pickled and read again in the middle of a crawl, it says the same as one that was not."""
    one, other = Site(lists=300), Site(lists=300)
    one.crawl(100)
    other.crawl(100)
    other.coverage = pickle.loads(pickle.dumps(other.coverage))
    one.crawl(120)
    other.crawl(120)
    assert one.signs() == other.signs()
    assert one.left() == other.left()
    assert one.left() is not None


class Asked(BranchingBandit):
    """The default policy, asked after each outcome what is left."""

    def watch(self, every: int) -> None:
        self.every = every
        self.said: list[tuple[int, Left | None]] = []  # targets that were found, and what was said then
        self.chosen: list[int] = []

    def learn(self, outcome: Outcome) -> None:
        super().learn(outcome)
        self.chosen.append(outcome.pick.key)
        if len(self.chosen) % self.every == 0:
            self.said.append((self.coverage.found, self.expected_left()))


@pytest.fixture(scope="module", params=[("cnis", 0.03, 0.5), ("collectivites_locales", 0.05, 0.45)])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RecordedSite:
    """Return a recording of a small synthetic site, with targets on about half of the pages."""
    name, scale, density = request.param
    profile = replace(PROFILES[name], density=density, depth=4.2, depth_spread=0.9)
    path: Path = tmp_path_factory.mktemp("left") / f"{name}.sqlite"
    record_site(ProfileSite(profile, scale=scale, seed=1), path, root="http://site.example/")
    return RecordedSite(path)


def crawl(site: RecordedSite, every: int, seed: int = 0) -> tuple[Asked, int]:
    """Crawl a whole site, and return the policy and how many targets there are."""
    policy = Asked(targets=TARGET_MIMES)
    policy.watch(every)
    goal = FilesGoal(types=TARGET_MIMES)
    truth = SiteTruth(site, goal, ignored=())
    simulate(policy, goal, site, seed=seed, ignored=(), truth=truth)
    return policy, int(truth.exhaustive.worth)


@pytest.mark.slow
def test_intervals_hold_in_simulated_crawls(recorded: RecordedSite) -> None:
    """From half of the targets to the last but few, four of five intervals hold, and in the end nothing is left."""
    holds = []
    for seed in range(3):
        policy, targets = crawl(recorded, every=5, seed=seed)
        later = [(found, left) for found, left in policy.said if 0.5 <= found / targets <= 0.95]
        holds += [left.low <= targets - found <= left.high for found, left in later if left is not None]
        assert policy.expected_left() == (0, 0, 0)
    assert len(holds) > 40
    assert sum(holds) >= 0.8 * len(holds)


@pytest.mark.slow
def test_asking_changes_no_choice(recorded: RecordedSite) -> None:
    """Asking for the estimate after each outcome does not change the crawl."""
    often, _ = crawl(recorded, every=1)
    never, _ = crawl(recorded, every=1_000_000)
    assert often.chosen == never.chosen
