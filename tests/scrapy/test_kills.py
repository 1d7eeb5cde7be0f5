"""Crawls that are killed with SIGKILL, repeatedly: nothing is missed, and nothing finished is done twice."""

from __future__ import annotations

import json
import math
import os
import pickle
import random
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest
from killed import CONCURRENT, Asked, Hashed, KilledSite, failures, has_more_at, more_at, path_of
from killer import CommandLine, Hunt, Kill, Nursery
from scrapy.settings import Settings

from scrapy_focus import Crawl
from scrapy_focus.config import Config
from scrapy_focus.features import rows_of
from scrapy_focus.jobs.job import Job
from scrapy_focus.lab.sites.portal.portal import TARGET_MIMES
from scrapy_focus.policies.focused import Focused
from scrapy_focus.policies.tagpath.policy import FIRST, TagPath
from scrapy_focus.policies.treeq.policy import TreeQ
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scrapy_focus import Pick

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no SIGKILL here")

ALONE = {"SCHEDULER": "scrapy_focus.FocusScheduler"}
ADDON = {"ADDONS": {"scrapy_focus.Addon": 500}}
ORDERINGS = "scrapy_focus.policies.orderings."
TAG_PATH = "scrapy_focus.policies.tagpath.TagPath"
HASHED = {**ADDON, "FOCUS_POLICY": "killed.Hashed"}
PAGES = {**ADDON, "FOCUS_POLICY": TAG_PATH, "FOCUS_POLICY_PARAMS": {"probe": False, "blocked": []}}
HEADS = {
    **ADDON, "FOCUS_POLICY": TAG_PATH, "FOCUS_TARGETS": sorted(TARGET_MIMES), "FOCUS_POLICY_PARAMS": {"blocked": []},
}  # fmt: skip
FOCUSED = {**ALONE, "FOCUS_POLICY": "scrapy_focus.policies.focused.Focused"}
OFFLINE = {
    **ADDON, "FOCUS_POLICY": "scrapy_focus.policies.tagpath.offline.TagPathOffline", "FOCUS_POLICY_PARAMS": {"warmup": 150},
}  # fmt: skip
TREE = {
    "SCHEDULER": "scrapy_focus.TreeFrontierScheduler", "FOCUS_POLICY": "scrapy_focus.policies.treeq.TreeQ",
    "FOCUS_POLICY_PARAMS": {"rules": {"tau": 4.0}},
}  # fmt: skip
BREADTH_FIRST = {**ALONE, "FOCUS_POLICY": f"{ORDERINGS}BreadthFirst"}
DEPTH_FIRST = {**ADDON, "FOCUS_POLICY": f"{ORDERINGS}DepthFirst"}
RANDOM = {**ADDON, "FOCUS_POLICY": f"{ORDERINGS}Random"}
KINDS = ["sometime", "after_requests", "in_a_checkpoint", "at_a_new_journal", "at_its_start", "near_its_end"]


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as running:
        yield running


@dataclass
class Reference:
    """The result of an uninterrupted crawl."""

    english: bool
    asks: Counter[Asked]
    answered: set[Asked]  # with 200
    items: Counter[str]
    rewards: float


@pytest.fixture(scope="module")
def english(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """The smaller site."""
    return refer(nursery, tmp_path_factory.mktemp("english") / "0", english=True)


@pytest.fixture(scope="module")
def whole(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """The larger site."""
    return refer(nursery, tmp_path_factory.mktemp("whole") / "0", english=False)


def refer(nursery: Nursery, folder: Path, *, english: bool) -> Reference:
    """Crawl without a kill, and verify the result with the portal's own data."""
    with KilledSite(english=english) as site:
        hunt = Hunt(site, folder, BREADTH_FIRST, random.Random(0))
        hunt.run(nursery, [])
        done = Done(hunt)
        paths = {asked.path for asked in done.answered}
        if not english:
            assert {*site.portal.targets(), *site.portal.html_paths()} <= paths
        assert sum(path.startswith("/below/") for path in paths) > 5
        assert not [item for item in done.items if item.startswith("damaged")]
        assert hunt.stats["focus/requests"] == len(site.log)
        return Reference(english, Counter(site.asks), done.answered, done.items, hunt.stats["focus/reward"])


@dataclass
class Done:
    """The files of a crawl, and what to expect of it."""

    hunt: Hunt
    repeats: int = 0
    flying: list[int] = field(default_factory=list)  # at each kill

    @property
    def budget(self) -> int:
        return self.hunt.settings.get("FOCUS_BUDGET_REQUESTS", 0)

    @property
    def answered(self) -> set[Asked]:
        return {asked for asked, status in self.hunt.site.answered if status == 200}

    @cached_property
    def items(self) -> Counter[str]:
        return self.ids("items")

    def ids(self, name: str) -> Counter[str]:
        """Return the ids of the items in a file."""
        return Counter(json.loads(line)["id"] for line in (self.hunt.folder / name).read_text().splitlines())

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        text = (self.hunt.folder / "log.jsonl").read_text()
        assert text.endswith("\n")
        return [json.loads(line) for line in text.splitlines()]

    @cached_property
    def crawl(self) -> Crawl:
        """The crawl in the job, opened once more."""
        return opened(self.hunt.folder / "job/focus", self.hunt.settings)

    def check(self, reference: Reference) -> None:
        """Fail unless it did the same as an uninterrupted one."""
        try:
            self.check_reached(reference)
            self.check_repeats(reference)
            self.check_budget()
            self.check_log()
            self.check_rewards(reference)
            self.check_learned()
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.hunt}") from error
        finally:
            if "crawl" in self.__dict__:
                self.crawl.close()

    def check_reached(self, reference: Reference) -> None:
        """Everything was fetched, and every item exists, at most as often as its page was fetched."""
        if self.budget:
            assert self.hunt.stats["finish_reason"] == "focus_budget_requests"
            assert self.items.keys() <= reference.items.keys()
        else:
            assert self.hunt.stats["finish_reason"] == "finished"
            assert reference.answered <= self.answered
            assert self.items.keys() == self.ids("feed.jsonl").keys() == reference.items.keys()
        assert self.ids("feed.jsonl") <= self.items, "the feed has less of what was lost"
        if "FOCUS_KILL_SAFE_FETCH" not in self.hunt.settings:  # else items are scraped again from a stored response
            times = Counter(asked.path for asked, status in self.hunt.site.answered if status in (200, 404))
            assert not {item: n for item, n in self.items.items() if item.startswith("/") and n > times[item]}

    def check_repeats(self, reference: Reference) -> None:
        """Repeated requests were in flight at a kill; none of them had an outcome."""
        allowed, begun, pending = Counter(reference.asks), Counter[Asked](), Counter[Asked]()
        asks = self.hunt.site.asks
        kills = [*self.hunt.kills, None]
        start = 0
        for kill in kills:
            for asked in asks[start : kill.asked if kill else None]:
                begun[asked] += 1
                if asked.method == "HEAD":
                    ways = max(1, self.hunt.site.ways[asked.path])
                    allowed[asked] = max(allowed[asked], ways + failures(asked.path))
                if begun[asked] > allowed[asked]:
                    assert pending[asked], f"{asked} was asked for again, and was not in flight"
                    pending[asked] -= 1
                    allowed[asked] += 1
                    self.repeats += 1
            if kill is not None:
                start = kill.asked
                flying = self.in_flight(kill)
                self.flying.append(len(flying))
                for pick in flying:
                    pending.update(asked for asked in self.requests_of(pick) if begun[asked])

    def in_flight(self, kill: Kill) -> list[Pick]:
        """Return the picks without an outcome at a kill."""
        if not kill.folder.exists():
            return []
        with opened_for_a_while(kill.folder, self.hunt.settings) as crawl:
            picks = [crawl.frontier.take(key) for key in crawl.recovered]
            crawl.frontier.check()
        assert None not in picks
        return picks

    def requests_of(self, pick: Pick) -> Iterator[Asked]:
        """Yield what may be asked for because of a pick."""
        fields = pickle.loads(pick.payload)
        if fields.get("method", "GET") == "POST":
            yield Asked("POST", path_of(pick.url), fields["body"])
            return
        for path in self.hunt.site.leads_to(path_of(pick.url)):
            yield Asked(pick.method, path)
            if has_more_at(path):
                yield Asked("GET", more_at(path))

    def check_budget(self) -> None:
        """All counted requests were sent, except those about to be sent at a kill."""
        used, sent = self.crawl.budget.requests_used, len(self.hunt.site.log)
        assert self.hunt.stats["focus/requests"] == used
        assert sent <= used <= sent + len(self.hunt.kills) * (CONCURRENT + 1)
        assert not self.budget or used == self.budget

    def check_log(self) -> None:
        """The log has each pick once, followed by one outcome or release; the counts are equal."""
        open_, known, n = set[int](), set[int](), Counter[str]()
        for event in self.events:
            n[event["event"]] += 1
            if event["event"] == "pick":
                assert event["id"] not in known, event
                known.add(event["id"])
                open_.add(event["id"])
            else:
                assert event["id"] in open_, event
                open_.remove(event["id"])
        assert not open_
        counts = self.crawl.counts
        assert (n["pick"], n["outcome"], n["release"]) == (counts["selected"], counts["outcomes"], counts["released"])
        assert self.budget or not len(self.crawl.frontier)
        assert not self.crawl.status().in_flight
        self.crawl.frontier.check()

    def check_rewards(self, reference: Reference) -> None:
        """All rewards are in the log, and are those of the pages."""
        methods = {event["id"]: event["method"] for event in self.events if event["event"] == "pick"}
        outcomes = [event for event in self.events if event["event"] == "outcome" and methods[event["id"]] == "GET"]
        assert self.crawl.rewards == self.hunt.stats["focus/reward"] == sum(event["reward"] for event in outcomes)
        if "FOCUS_TARGETS" not in self.hunt.settings:
            assert all(event["reward"] == event["items"] for event in outcomes)
            assert self.budget or self.crawl.rewards == reference.rewards

    def check_learned(self) -> None:
        """The policy's learned state follows from the log, as far as the log has enough."""
        policy = self.crawl.policy
        picks = {event["id"]: event for event in self.events if event["event"] == "pick"}
        released = {event["id"] for event in self.events if event["event"] == "release"}
        outcomes = [(picks[event["id"]], event) for event in self.events if event["event"] == "outcome"]
        chosen = [pick for id_, pick in picks.items() if id_ not in released]
        if isinstance(policy, (Hashed, TagPath, Focused, TreeQ)):
            assert policy.steps == len(chosen)
        if isinstance(policy, TreeQ):
            assert policy.results == len(outcomes) == policy.tree.counts.sum()
            assert policy._features.groups.back.sum(axis=1).tolist() == [len(outcomes)] * 3
        if isinstance(policy, Hashed):
            pulls, sums = Counter(pick["arm"] for pick in chosen), Counter[int]()
            for pick, outcome in outcomes:
                sums[pick["arm"]] += outcome["reward"]
            assert {arm: n for arm, n in enumerate(policy.stats.pulls) if n} == pulls
            assert {arm: n for arm, n in enumerate(policy.stats.sums) if n} == +sums
        if isinstance(policy, TagPath) and policy._accounting == "full":
            pulls = Counter(pick["arm"] for pick in chosen if pick["arm"] >= FIRST)
            assert {arm: n for arm, n in enumerate(policy.stats.pulls) if n} == pulls
            sums, somewhere = Counter[int](), 0.0
            for pick, outcome in outcomes:
                sums[pick["arm"]] += outcome["reward"] * (pick["arm"] >= FIRST)
                sums[pick["origin"]] += outcome["reward"] * (pick["origin"] >= FIRST)
                somewhere += outcome["reward"] * (0 <= pick["origin"] < FIRST)
            sums = +sums
            assert policy.stats.sums.sum() == sums.total() + somewhere
            assert all(policy.stats.sums[arm] >= n for arm, n in sums.items())


def opened(folder: Path, settings: dict[str, Any]) -> Crawl:
    """Open the crawl in a folder, without Scrapy."""
    config = Config.from_settings(Settings(settings), TagPath, rows_of({}))
    return Crawl(
        config.make_policy(), goal=config.goal, mission=config.mission(), budget=config.make_budget(), job=Job(folder),
        strict=True,
    )  # fmt: skip


class opened_for_a_while:
    """Open the crawl in a folder, and close it again."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.crawl = opened(folder, settings)

    def __enter__(self) -> Crawl:
        return self.crawl

    def __exit__(self, *_: object) -> None:
        self.crawl.close()


def hunted(
    runner: Nursery | CommandLine,
    folder: Path,
    settings: dict[str, Any],
    plan: list[str],
    seed: int,
    reference: Reference,
) -> Done:
    """Crawl with kills as planned, and check all of it."""
    rng = random.Random(seed)
    with KilledSite(english=reference.english) as site:
        settings = {"FOCUS_SEED": seed, "FOCUS_CHECKPOINT_EVERY": rng.choice([7, 20, 1000]), **settings}
        total = min(settings.get("FOCUS_BUDGET_REQUESTS", math.inf), reference.asks.total())
        hunt = Hunt(site, folder, settings, rng, total=int(total))
        hunt.run(runner, plan)
        done = Done(hunt)
        done.check(reference)
    return done


def summary(all_done: list[Done]) -> str:
    kills = [kill for done in all_done for kill in done.hunt.kills]
    return (
        f"{len(kills)} kills in {len(all_done)} crawls ({dict(Counter(kill.when for kill in kills))}), "
        f"{sum(len(done.hunt.site.log) for done in all_done)} requests, {sum(map(sum, (done.flying for done in all_done)))} "
        f"picks in flight when killed, {sum(done.repeats for done in all_done)} requests repeated"
    )


@pytest.mark.parametrize(
    ("settings", "plan"),
    [
        (HASHED, ["after_requests", "in_a_checkpoint"]),
        pytest.param(PAGES, ["sometime", "at_a_new_journal"], marks=pytest.mark.slow),
        pytest.param(TREE, ["in_a_checkpoint", "after_requests"], marks=pytest.mark.slow),
        pytest.param(BREADTH_FIRST, ["at_its_start", "near_its_end"], marks=pytest.mark.slow),
    ],
    ids=["bandit", "tagpath", "tree", "breadth_first"],
)
def test_a_killed_crawl_does_what_another_does(
    nursery: Nursery, tmp_path: Path, settings: dict[str, Any], plan: list[str], english: Reference
) -> None:
    """Every page is fetched and every item exists, only pages in flight are fetched twice, and nothing is unlearned."""
    done = hunted(nursery, tmp_path / "0", settings, plan, 1, english)
    assert len(done.hunt.kills) >= len(plan) - 1
    print(summary([done]))


@pytest.mark.slow
def test_a_budget_is_for_all_runs(nursery: Nursery, tmp_path: Path, english: Reference) -> None:
    """The site gets no more requests than allowed, and fewer only by those that a kill prevented."""
    budget = {"FOCUS_BUDGET_REQUESTS": 250}
    done = hunted(nursery, tmp_path / "0", HASHED | budget, ["after_requests", "at_a_new_journal"], 2, english)
    print(summary([done]))


@pytest.mark.slow
def test_the_command_line(tmp_path: Path, english: Reference) -> None:
    """The same with the commands of Scrapy, where a reactor runs."""
    done = hunted(CommandLine(), tmp_path / "0", BREADTH_FIRST, ["after_requests"], 3, english)
    assert len(done.hunt.kills) == 1
    print(summary([done]))


@pytest.mark.slow
@pytest.mark.timeout(10 * HANG)
@pytest.mark.parametrize(
    ("settings", "seed"),
    [
        (HASHED, 10),
        ({**HASHED, "FOCUS_BUDGET_REQUESTS": 600}, 20),
        (PAGES, 30),
        (HEADS, 40),
        ({**HEADS, "FOCUS_BUDGET_REQUESTS": 600}, 50),
        (FOCUSED, 60),
        (OFFLINE, 70),
        (BREADTH_FIRST, 80),
        (DEPTH_FIRST, 90),
        (RANDOM, 100),
        (TREE, 110),
    ],
    ids=[
        "bandit", "bandit_budget", "tagpath", "tagpath_heads", "tagpath_heads_budget", "focused", "offline", "breadth_first",
        "depth_first", "random", "tree",
    ],
)  # fmt: skip
def test_a_hundred_kills(
    nursery: Nursery, tmp_path: Path, settings: dict[str, Any], seed: int, whole: Reference,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Twelve at least in each of these crawls, at random."""
    killed_again_and_again(nursery, tmp_path, settings, seed, whole, capsys)


def killed_again_and_again(
    nursery: Nursery, folder: Path, settings: dict[str, Any], seed: int, whole: Reference,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Kill crawls at random, at least twelve times in all."""
    all_done: list[Done] = []
    while sum(len(done.hunt.kills) for done in all_done) < 12:
        seed += 1
        plan = random.Random(seed).choices(KINDS, k=12)
        all_done.append(hunted(nursery, folder / str(seed), settings, plan, seed, whole))
    with capsys.disabled():
        print(f"\n{summary(all_done)}")
