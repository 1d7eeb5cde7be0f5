"""Whatever a policy, a goal or our own code raises, the crawl continues: every page is fetched, errors are counted."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from crawls import Crawled, Follower, crawl
from mocksite import tree_paths

from scrapy_focus import FocusScheduler, extensions
from scrapy_focus.engine.intake import Intake
from scrapy_focus.engine.requests import Requests
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import Callable

    from mocksite import MockSite

PAGES = 40
OFTEN = pytest.mark.parametrize("chance", [1.0, 0.3], ids=["always", "sometimes"])


class Flaky(BreadthFirst):
    """Fails in one of its methods, with a given probability."""

    def __init__(self, *, method: str, chance: float) -> None:
        super().__init__()
        self.method = method
        self.chance = chance
        self.dice = random.Random(4)

    def fail(self, method: str) -> None:
        if method == self.method and self.dice.random() < self.chance:
            raise ZeroDivisionError("as asked")

    def place(self, links: Any, source: Any) -> Any:
        self.fail("place")
        return super().place(links, source)

    def select(self, busy: Any) -> Any:
        self.fail("select")
        return super().select(busy)

    def learn(self, outcome: Any) -> None:
        self.fail("learn")

    def explain(self, pick: Any) -> dict[str, Any]:
        self.fail("explain")
        return {"why": "first in"}

    def release(self, pick: Any) -> None:
        self.fail("release")


class Wrong(BreadthFirst):
    """Returns forbidden values."""

    def __init__(self, *, answer: str) -> None:
        super().__init__()
        self.answer = answer

    def place(self, links: Any, source: Any) -> Any:
        placements = super().place(links, source)
        if self.answer == "too few":
            return placements[1:]
        if self.answer == "negative arm":
            return [place._replace(arm=-1) for place in placements]
        if self.answer == "half an arm":
            return [place._replace(arm=0.5) for place in placements]
        if self.answer == "rank is nan":
            return [place._replace(rank=float("nan")) for place in placements]
        return None if self.answer == "nothing" else placements

    def select(self, busy: Any) -> Any:
        return "a link" if self.answer == "no pick" else super().select(busy)


class Grumpy:
    """A goal that raises, or answers nonsense."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __call__(self, outcome: Any) -> Any:
        if self.answer == "raise":
            raise ZeroDivisionError("as asked")
        return self.answer


def crawl_tree(site: MockSite, settings: dict[str, Any], *, addon: bool = False) -> Crawled:
    """Crawl the whole tree, and fail unless every page was fetched exactly once."""
    result = crawl(Follower, settings, addon=addon, seeds=[site.url(f"/page/0/{PAGES}")])
    assert sorted(site.paths) == sorted(tree_paths(PAGES))
    assert result.reason == "finished"
    assert result.stats["item_scraped_count"] == PAGES
    return result


@pytest.mark.few(4)
@pytest.mark.reactor
@OFTEN
@pytest.mark.parametrize("method", ["place", "select", "learn", "explain"])
def test_a_policy_that_raises(site: MockSite, method: str, chance: float, tmp_path: Any) -> None:
    """Errors of a policy are logged with its name and counted, and all pages are fetched."""
    settings = {
        "FOCUS_POLICY": Flaky, "FOCUS_POLICY_PARAMS": {"method": method, "chance": chance},
        "FOCUS_LOG": str(tmp_path / "log.jsonl"),
    }  # fmt: skip
    result = crawl_tree(site, settings)
    least = {"place": 21, "select": PAGES, "learn": PAGES, "explain": PAGES}[method] if chance == 1 else 3
    assert set(result.errors) == {method}
    assert least <= result.errors[method]
    assert result.logged(f"{method} of Flaky failed: as asked")


@pytest.mark.few(3)
@pytest.mark.parametrize("answer", ["too few", "negative arm", "half an arm", "rank is nan", "nothing", "no pick"])
def test_a_policy_that_answers_nonsense(site: MockSite, answer: str) -> None:
    """An answer that breaks the contract counts as an error of that method, and all pages are fetched."""
    result = crawl_tree(site, {"FOCUS_POLICY": Wrong, "FOCUS_POLICY_PARAMS": {"answer": answer}})
    method = "select" if answer == "no pick" else "place"
    assert set(result.errors) == {method}
    assert result.logged(f"{method} of Wrong failed")


def test_a_policy_that_cannot_undo(site: MockSite) -> None:
    """An error while a pick is released is counted, and the pick is queued again."""
    settings = {
        "FOCUS_POLICY": Flaky, "FOCUS_POLICY_PARAMS": {"method": "release", "chance": 1.0}, "FOCUS_BUDGET_REQUESTS": 5,
        "ROBOTSTXT_OBEY": True,
    }  # fmt: skip
    seeds = [site.url(f"/status?code=500&{i}") for i in range(8)]
    result = crawl(Follower, settings, seeds=seeds)
    assert len(site.log) == 5
    assert result.errors.get("release", 0) == result.stats.get("focus/released", 0)
    assert result.reason == "focus_budget_requests"


@pytest.mark.few(2)
@pytest.mark.parametrize("answer", ["raise", "much", float("nan"), float("inf"), [1]], ids=str)
def test_a_goal_that_cannot_tell(site: MockSite, answer: Any) -> None:
    """A goal that raises, or returns no finite number, is counted; the reward is 0 and the crawl continues."""
    result = crawl_tree(site, {"FOCUS_GOAL": Grumpy(answer)})
    assert result.errors == {"goal": PAGES}
    assert result.stats["focus/reward"] == 0
    assert len(result.logged("goal of Grumpy failed")) == 3


def failing(method: Callable[..., Any], times: int) -> Callable[..., Any]:
    """Return a method that raises at its second call and some more, and after that does what it should."""
    calls = iter(range(10**9))

    def instead(*args: Any) -> Any:
        if 1 <= next(calls) <= times:
            raise ZeroDivisionError("ours")
        return method(*args)

    return instead


@pytest.mark.few(2)
@pytest.mark.both
@pytest.mark.reactor
@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
@pytest.mark.parametrize("times", [1, 5])
@pytest.mark.parametrize(
    ("method", "counted"),
    [("_next", "next_request"), ("_has_pending", "has_pending_requests")],
)
def test_errors_of_our_own(
    site: MockSite, monkeypatch: pytest.MonkeyPatch, method: str, counted: str, times: int, addon: bool
) -> None:
    """An exception in our own code is logged and counted, never reaches the engine, and costs no page."""
    monkeypatch.setattr(FocusScheduler, method, failing(getattr(FocusScheduler, method), times))
    result = crawl_tree(site, {"CONCURRENT_ITEMS": 1}, addon=addon)
    assert 1 <= result.errors[counted] <= times
    assert result.logged(f"scrapy_focus failed in {counted}: ours")


@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
@pytest.mark.parametrize("times", [1, 5])
def test_errors_while_requests_come_in(
    site: MockSite, monkeypatch: pytest.MonkeyPatch, times: int, addon: bool
) -> None:
    """A request that could not be taken is sent all the same, at worst once more than needed."""
    monkeypatch.setattr(Intake, "take", failing(Intake.take, times))
    result = crawl(Follower, {"CONCURRENT_ITEMS": 1}, addon=addon, seeds=[site.url(f"/page/0/{PAGES}")])
    assert set(site.paths) == set(tree_paths(PAGES))
    assert len(site.paths) <= PAGES + times
    assert result.errors == {"enqueue_request": times}
    assert result.reason == "finished"


def test_a_request_that_cannot_be_made_again(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A waiting request that cannot be read back is counted as lost, and the crawl of the others ends as usual."""
    monkeypatch.setattr(Requests, "unpack", failing(Requests.unpack, 3))
    result = crawl(Follower, {}, seeds=[site.url(f"/ok?{i}") for i in range(10)])
    assert len(site.paths) == 7
    assert result.outcomes == {"ok": 7, "lost": 3}
    assert result.errors == {"unpack": 3}
    assert result.reason == "finished"


def test_an_error_while_outcomes_are_drawn(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """If reporting outcomes fails, the next attempt reports them all, and every page is fetched."""
    monkeypatch.setattr(FocusScheduler, "_settle", failing(FocusScheduler._settle, 3))
    result = crawl_tree(site, {})
    assert sum(result.errors.values()) == 3


class Babbling(BreadthFirst):
    """Answers nonsense about itself."""

    def __init__(self, *, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def best_arms(self, k: int) -> Any:
        return self.answer

    def expected_left(self) -> Any:
        return self.answer

    def expected_cost(self) -> Any:
        return self.answer


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "answer",
    ["best", float("nan"), [("a", float("nan"), 1)], (1, 2), [None], 10**400, object()],
    ids=lambda value: type(value).__name__,
)
def test_a_policy_that_babbles_about_itself(site: MockSite, answer: Any) -> None:
    """Progress is shown to the end, each complaint once, the crawl ends as usual, and costs do not end it earlier."""
    settings = {
        "FOCUS_POLICY": Babbling, "FOCUS_POLICY_PARAMS": {"answer": answer}, "FOCUS_PROGRESS": "log", "LOGSTATS_INTERVAL": 0.02,
        "FOCUS_COST_LIMIT": 1, "DOWNLOAD_DELAY": 0.005,
    }  # fmt: skip
    result = crawl_tree(site, settings, addon=True)
    progress = [line for line in result.logged("per 100 requests") if not line.startswith("Finished")]
    assert len(progress) > 3
    assert any(
        f"{PAGES} requests" in line or f"{PAGES - 1} requests" in line
        for line in [*progress, *result.logged("Finished")]
    )
    for method in ("best_arms", "expected_left", "expected_cost"):
        assert len(result.logged(f"{method} of Babbling failed")) == 1
    assert set(result.errors) == {"best_arms", "expected_left", "expected_cost"}


def test_an_error_of_the_panel_ends_no_panel(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is logged and counted, and the next picture is drawn."""
    monkeypatch.setattr(extensions, "progress", failing(extensions.progress, 3))
    settings = {"FOCUS_PROGRESS": "log", "LOGSTATS_INTERVAL": 0.02, "DOWNLOAD_DELAY": 0.01}
    result = crawl_tree(site, settings, addon=True)
    assert result.errors == {"progress": 3}
    assert len([line for line in result.logged("per 100 requests") if not line.startswith("Finished")]) > 3


class Undecided(BreadthFirst):
    """Chooses nothing after some picks."""

    chosen = 0

    def select(self, busy: Any) -> Any:
        self.chosen += 1
        return super().select(busy) if self.chosen <= 5 else None


@pytest.mark.parametrize("job", [False, True], ids=["memory", "job"])
def test_a_policy_that_chooses_nothing(site: MockSite, tmp_path: Any, job: bool) -> None:
    """Any link is chosen where otherwise nothing would ever happen, and the log says why, once."""
    settings = {"FOCUS_POLICY": Undecided} | ({"JOBDIR": str(tmp_path)} if job else {})
    result = crawl_tree(site, settings)
    assert result.stats["focus/select/none"] > 3
    assert len(result.logged("select of Undecided chose nothing")) == 1
    assert result.errors == {}


def forgetful(outcome: Any) -> None:
    """A goal without a return."""


def test_a_goal_that_forgets_to_return(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs some waiting at first, and then none; the log says once what to do."""
    monkeypatch.setattr("scrapy_focus.core.late._SHORTEST", 0.2)
    monkeypatch.setattr("scrapy_focus.scheduler._PATIENCE", 0.5)
    result = crawl_tree(site, {"FOCUS_GOAL": forgetful, "FOCUS_MAX_INFLIGHT": 1})
    assert result.stats["focus/reward/late"] == PAGES
    assert len(result.logged("The goal forgetful answered None")) == 1
    assert result.scheduler.crawl.state.rewards.late._share == 0.0
