"""What to look for by topic: ``FOCUS_TOPIC``, ``FOCUS_KEYWORDS``, and why each page was fetched: ``FOCUS_EXPLAIN``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Follower, crawl
from scrapy import Request
from scrapy.settings import Settings

from scrapy_focus import ConfigError
from scrapy_focus.config import Config
from scrapy_focus.core.errors import ResumeError
from scrapy_focus.core.mission import Mission
from scrapy_focus.goals.topic import TopicGoal
from scrapy_focus.policies.branching import BranchingBandit
from scrapy_focus.policies.hotqueue import HotQueue
from scrapy_focus.policies.orderings import BreadthFirst
from scrapy_focus.policies.tagpath.policy import TagPath
from scrapy_focus.policies.treeq.policy import TreeQ
from scrapy_focus.topic.relevance import LinearRelevance

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mocksite import MockSite
    from scrapy.http import Response

    from scrapy_focus.core.policy import Policy
    from scrapy_focus.core.types import Pick

WAYS = pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
TREE = {"SCHEDULER": "scrapy_focus.TreeFrontierScheduler", "FOCUS_SEED": 0}
BEST_FIRST = "scrapy_focus.policies.bestfirst.BestFirst"
ON, OFF = (
    ["honey of bees", "bees in a hive", "a hive of honey"],
    ["steel of mills", "mills in a town", "a town of steel"],
)
ODD = [str(i) for i in range(1, 20, 2)]


@pytest.fixture(scope="module")
def model() -> LinearRelevance:
    return LinearRelevance().fit(ON + OFF, [True] * 3 + [False] * 3)


@pytest.fixture
def stored(model: LinearRelevance, tmp_path: Path) -> Path:
    model.save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


@pytest.fixture
def pages(site: MockSite) -> MockSite:
    """A site with ten pages on the topic and ten off it; links show that only by their words."""
    links = "".join(f"<p><a href=/{i}>{'hive of bees' if i % 2 else 'steel mills'} {i}</a>" for i in range(20))
    site.pages["/"] = (
        f"<title>all</title>{links}<a href=/status?code=404>bees</a><a href=/file?type=text/plain>bees</a>"
    )
    for i in range(20):
        site.pages[f"/{i}"] = f"<p>{ON[i % 3] if i % 2 else OFF[i % 3]}"
    return site


@WAYS
@pytest.mark.parametrize("policy", [None, BEST_FIRST, BREADTH_FIRST, "scrapy_focus.policies.tagpath.TagPath"])
@pytest.mark.parametrize("as_path", [True, False])
def test_pages_on_the_topic_are_the_reward(
    pages: MockSite, model: LinearRelevance, stored: Path, addon: bool, policy: str | None, as_path: bool
) -> None:
    """With any policy, each HTML page that the model finds on the topic earns 1, and items nothing."""
    settings = {"FOCUS_TOPIC": str(stored) if as_path else model, "FOCUS_KEYWORDS": "bees"}
    settings |= TREE if policy is None else {"FOCUS_POLICY": policy, "FOCUS_SEED": 0}
    result = crawl(Follower, settings, addon=addon, seeds=[pages.url("/")])
    assert sorted(pages.paths) == sorted(
        ["/", "/file?type=text/plain", *["/status?code=404"], *(f"/{i}" for i in range(20))]
    )
    assert result.stats["focus/reward"] == 10
    assert len(result.items) == 22
    assert result.errors == {}
    assert "pages on the topic of model" in result.logged("scrapy_focus: policy")[0]


@pytest.mark.parametrize("policy", [None, BEST_FIRST])
@pytest.mark.parametrize("setting", ["FOCUS_TOPIC", "FOCUS_KEYWORDS"])
def test_the_policy_goes_by_topic_and_keywords(
    pages: MockSite, model: LinearRelevance, policy: str | None, setting: str
) -> None:
    """The model, and the keywords, decide which links are followed first."""
    settings = {"FOCUS_TOPIC": model} if setting == "FOCUS_TOPIC" else {"FOCUS_KEYWORDS": ["bees"]}
    settings |= TREE if policy is None else {"FOCUS_POLICY": policy}
    settings |= {"CONCURRENT_REQUESTS": 1, "FOCUS_BUDGET_REQUESTS": 9}
    crawl(Follower, settings, seeds=[pages.url("/")])
    chosen = [path for path in pages.paths if path.strip("/").isdecimal()]
    assert len(chosen) >= 6
    assert all(int(path.strip("/")) % 2 for path in chosen), chosen


def made(**values: Any) -> tuple[TreeQ, Mission]:
    """Return the policy of the tree scheduler with some settings, and its parameters."""
    config = Config.from_settings(Settings(values), TreeQ)
    policy = config.make_policy()
    assert isinstance(policy, TreeQ)
    return policy, config.mission()


def test_parameters_of_the_policy_go_first(model: LinearRelevance, stored: Path) -> None:
    """``FOCUS_POLICY_PARAMS`` takes precedence; otherwise the policy has the very model of the goal, read once."""
    other = LinearRelevance().fit(OFF + ON, [True] * 3 + [False] * 3)
    params = {"relevance": other, "keywords": ["mill"]}
    policy, mission = made(FOCUS_TOPIC=stored, FOCUS_KEYWORDS="bees,wax", FOCUS_POLICY_PARAMS=params)
    assert policy.relevance is other
    assert policy.keywords == ("mill",)
    assert mission.words == ("bees", "wax")
    policy, mission = made(FOCUS_TOPIC=stored, FOCUS_KEYWORDS="bees, queen excluder")
    assert (policy.relevance, policy.keywords) == (None, None)
    assert getattr(mission.topic, "digest", "") == model.digest
    assert [each.strip() for each in mission.words] == ["bees", "queen excluder"]
    config = Config.from_settings(Settings({"FOCUS_TOPIC": str(stored)}), TreeQ)
    assert config.mission().topic is config.goal.relevance  # type: ignore[attr-defined]
    for policy, mission in (made(), made(FOCUS_KEYWORDS="", FOCUS_TOPIC="")):
        assert (policy.relevance, policy.keywords, mission) == (None, None, Mission())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"FOCUS_TOPIC": "/no/model.npz"}, "FOCUS_TOPIC: there is no file /no/model.npz"),
        ({"FOCUS_TOPIC": __file__}, "FOCUS_TOPIC: "),
        ({"FOCUS_TOPIC": 5}, "FOCUS_TOPIC: relevance is 5"),
        ({"FOCUS_TOPIC": "x", "FOCUS_TARGETS": "csv"}, "FOCUS_TOPIC, FOCUS_GOAL and FOCUS_TARGETS all say"),
        ({"FOCUS_TOPIC": "x", "FOCUS_GOAL": "scrapy_focus.ItemsGoal"}, "FOCUS_TOPIC, FOCUS_GOAL and FOCUS_TARGETS"),
        ({"FOCUS_TOPICS": "x"}, "did you mean FOCUS_TOPIC?"),
        ({"FOCUS_KEYWORD": "x"}, "did you mean FOCUS_KEYWORDS?"),
        ({"FOCUS_POLICY_PARAMS": {"per_domain": 0}}, "per_domain=0"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_bad_settings(settings: dict[str, Any], said: str) -> None:
    """What cannot be used is an error that names the setting."""
    with pytest.raises(ConfigError) as caught:
        made(**settings)
    assert said in str(caught.value)


class Asker(Follower):
    """Notes the reasons for which pages were fetched."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "why": response.meta.get("focus_why"), "had": "focus_why" in response.meta}
        yield from (Request(response.urljoin(url)) for url in response.css("a::attr(href)").getall())


@WAYS
@pytest.mark.parametrize("policy", [None, BEST_FIRST])
def test_pages_know_why_they_were_fetched(
    pages: MockSite, model: LinearRelevance, tmp_path: Path, addon: bool, policy: str | None
) -> None:
    """Each response has in its meta the policy's reason for its link: the same as in the decision log."""
    settings = {
        "FOCUS_TOPIC": model,
        "FOCUS_KEYWORDS": "bees",
        "FOCUS_EXPLAIN": True,
        "FOCUS_LOG": str(tmp_path / "log.jsonl"),
    }
    settings |= TREE if policy is None else {"FOCUS_POLICY": policy}
    result = crawl(Asker, settings, addon=addon, seeds=[pages.url("/")])
    why = {event["url"]: event["why"] for event in result.events() if event["event"] == "pick"}
    assert len(result.items) == 22
    for item in result.items:
        assert json.loads(json.dumps(item["why"])) == why[item["url"]] != {}
    if policy is None:
        names = {*result.policy.layout.names} - {"relevant share of the links beside it"} | {"leaf", "value", "chance"}
        for item in result.items:
            assert names <= item["why"].keys()
            words = item["url"].rpartition("/")[2]
            assert item["why"]["keyword in the anchor"] == (words in ("plain", *ODD))
            assert all(0 <= item["why"][name] <= 1 for name in names - {"leaf", "value"})


def test_without_the_setting_nothing_is_said(pages: MockSite, model: LinearRelevance) -> None:
    """Meta is unchanged, also for the requests that a callback yields."""
    result = crawl(Asker, {**TREE, "FOCUS_TOPIC": model}, seeds=[pages.url("/")])
    assert not any(item["had"] for item in result.items)


def test_retries_and_redirects_still_know_why(site: MockSite) -> None:
    """A page fetched through a redirect, or at the second try, has the reasons of the chosen link."""
    site.pages["/"] = "<a href=/redirect?to=/ok?end>go</a><a href=/status?code=503>busy</a>"
    settings = {**TREE, "FOCUS_EXPLAIN": True, "RETRY_TIMES": 2, "HTTPERROR_ALLOW_ALL": True, "FOCUS_KEYWORDS": "busy"}
    result = crawl(Asker, settings, seeds=[site.url("/")])
    found = {item["url"]: item["why"] for item in result.items}
    assert found[site.url("/ok?end")]["keyword in the anchor"] == 0
    assert found[site.url("/status?code=503")]["keyword in the anchor"] == 1
    assert site.paths.count("/status?code=503") == 3


class Speechless(BreadthFirst):
    """Cannot give reasons."""

    def explain(self, pick: Pick) -> dict[str, Any]:
        raise RuntimeError(f"no idea why {pick.url}")


@WAYS
def test_a_policy_that_cannot_say_why(site: MockSite, addon: bool) -> None:
    """Its errors are counted, and the pages are fetched, without reasons."""
    settings = {"FOCUS_POLICY": Speechless, "FOCUS_EXPLAIN": True}
    result = crawl(Asker, settings, addon=addon, seeds=[site.url("/page/0/10")])
    assert len(result.items) == 10
    assert all(item["why"] == {} for item in result.items)
    assert result.errors == {"explain": 10}


def test_a_job_resumes_with_a_moved_model(pages: MockSite, stored: Path, tmp_path: Path) -> None:
    """The model counts, not the path of its file; with another one the job is refused, and the message names both."""
    settings: dict[str, Any] = {
        **TREE,
        "JOBDIR": str(tmp_path / "job"),
        "FOCUS_EXPLAIN": True,
        "CONCURRENT_REQUESTS": 1,
    }
    first = crawl(Asker, {**settings, "FOCUS_TOPIC": str(stored), "FOCUS_BUDGET_REQUESTS": 8}, seeds=[pages.url("/")])
    moved = stored.rename(tmp_path / "moved.npz")
    LinearRelevance().fit(OFF + ON, [True] * 3 + [False] * 3).save(stored)
    with pytest.raises((ResumeError, RuntimeError)) as caught:
        crawl(Asker, {**settings, "FOCUS_TOPIC": str(stored)}, seeds=[pages.url("/")])
    said = f"{caught.value} {caught.value.__context__}"
    assert "goal was pages on the topic of model" in said
    rest = crawl(Asker, {**settings, "FOCUS_TOPIC": str(moved)}, seeds=[pages.url("/")])
    assert len(first.items) + len(rest.items) == 22
    assert len(pages.paths) == 23
    assert all(item["why"] for item in rest.items)


def chosen(caplog: pytest.LogCaptureFixture, default: type[Policy], **values: Any) -> tuple[type[Policy], list[Any]]:
    """Return the policy that settings choose, and the log message about it: level and text."""
    caplog.clear()
    with caplog.at_level("INFO", logger="scrapy_focus.config"):
        policy = Config.from_settings(Settings(values), default).policy
    return policy, [(record.levelname, record.getMessage()) for record in caplog.records]


def test_a_topic_chooses_the_policy(caplog: pytest.LogCaptureFixture, model: LinearRelevance) -> None:
    """Instead of the default policy, which reads no topic, one that does is chosen, and one line says so."""
    policy, said = chosen(caplog, BranchingBandit, FOCUS_TOPIC=model)
    assert policy is TreeQ
    ((level, text),) = said
    assert level == "INFO"
    assert "TreeQ" in text
    assert "FOCUS_POLICY = 'scrapy_focus.policies.branching.BranchingBandit'" in text
    goal = TopicGoal(model)
    assert chosen(caplog, BranchingBandit, FOCUS_GOAL=goal)[0] is TreeQ
    assert chosen(caplog, BranchingBandit, FOCUS_TOPIC=model, FOCUS_POLICY_PARAMS={"per_domain": 5})[0] is TreeQ
    for default, values in (
        (BranchingBandit, {}),
        (BranchingBandit, {"FOCUS_KEYWORDS": "bees"}),
        (BranchingBandit, {"FOCUS_KEYWORDS": "bees", "FOCUS_TARGETS": "csv"}),
        (TagPath, {"FOCUS_KEYWORDS": "bees"}),
        (TreeQ, {"FOCUS_TOPIC": model}),
        (HotQueue, {"FOCUS_TOPIC": model}),
    ):
        assert chosen(caplog, default, **values) == (default, [])
    assert chosen(caplog, BranchingBandit, FOCUS_TOPIC=model, FOCUS_POLICY=BEST_FIRST)[1] == []


def test_a_policy_that_reads_no_topic_is_warned_of(
    caplog: pytest.LogCaptureFixture, model: LinearRelevance, tmp_path: Path
) -> None:
    """The choice stays, whether made by name, by a scheduler, or by a setting that only this policy uses."""
    named = "scrapy_focus.policies.branching.BranchingBandit"
    for default, values, why in (
        (BranchingBandit, {"FOCUS_POLICY": named}, "BranchingBandit is set"),
        (TreeQ, {"FOCUS_POLICY": named}, "BranchingBandit is set"),
        (TagPath, {}, "TagPath is the policy of the scheduler"),
        (BranchingBandit, {"FOCUS_LEARNED_TO": str(tmp_path / "learned")}, "FOCUS_LEARNED_TO is set"),
        (BranchingBandit, {"FOCUS_REQUEST_PRIORITY": True}, "FOCUS_REQUEST_PRIORITY is on"),
        (BranchingBandit, {"FOCUS_POLICY_PARAMS": {"words": ["bee"]}}, "FOCUS_POLICY_PARAMS are those of another"),
    ):
        policy, said = chosen(caplog, default, FOCUS_TOPIC=model, **values)
        assert policy is (TagPath if default is TagPath else BranchingBandit)
        ((level, text),) = said
        assert level == "WARNING"
        assert why in text
        assert "TreeFrontierScheduler" in text


@WAYS
def test_a_topic_decides_in_a_crawl_of_the_default_scheduler(
    pages: MockSite, model: LinearRelevance, addon: bool
) -> None:
    """One setting is enough: the links whose words fit are followed first."""
    settings = {"FOCUS_TOPIC": model, "CONCURRENT_REQUESTS": 1, "FOCUS_BUDGET_REQUESTS": 9, "FOCUS_SEED": 0}
    result = crawl(Follower, settings, addon=addon, seeds=[pages.url("/")])
    followed = [path for path in pages.paths if path.strip("/").isdecimal()]
    assert len(followed) >= 6
    assert all(int(path.strip("/")) % 2 for path in followed), followed
    assert isinstance(result.policy, TreeQ)


def test_a_job_keeps_its_policy(pages: MockSite, model: LinearRelevance, tmp_path: Path) -> None:
    """A job that began with the default policy by name is refused without it; the message says what to set."""
    settings: dict[str, Any] = {"JOBDIR": str(tmp_path / "job"), "FOCUS_TOPIC": model, "CONCURRENT_REQUESTS": 1}
    named = {"FOCUS_POLICY": "scrapy_focus.policies.branching.BranchingBandit"}
    first = crawl(Follower, {**settings, **named, "FOCUS_BUDGET_REQUESTS": 8}, seeds=[pages.url("/")])
    with pytest.raises((ResumeError, RuntimeError)) as caught:
        crawl(Follower, settings, seeds=[pages.url("/")])
    said = f"{caught.value} {caught.value.__context__}"
    assert f"use the same settings (FOCUS_POLICY = '{named['FOCUS_POLICY']}'), or another JOBDIR" in said
    rest = crawl(Follower, {**settings, **named}, seeds=[pages.url("/")])
    assert len(first.items) + len(rest.items) == 22
