"""``FOCUS_ABOUT``: a sentence for pages, files and structured data, in a project of one's own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Crawled, Follower, crawl
from mocksite import MockSite
from scrapy.settings import Settings

from scrapy_focus import ConfigError
from scrapy_focus.config import Config
from scrapy_focus.core.errors import ResumeError
from scrapy_focus.frontiers.sqlite.database import read_notes
from scrapy_focus.goals.structured_about import StructuredDataAbout
from scrapy_focus.jobs.pickles import Classes
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.treeq.policy import TreeQ
from tests.finders.aboutsite import ABOUT, is_on, site_pages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WAYS = pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
IN_TURN = {"CONCURRENT_REQUESTS": 1, "FOCUS_SEED": 0, "FOCUS_ABOUT": ABOUT}
OWN = "tests.finders.aboutsite.OneWord"


@pytest.fixture(scope="module")
def events() -> Iterator[MockSite]:
    """Pages on three subjects, half of which describe an event."""
    with MockSite(pages=site_pages(thing="Event")) as site:
        yield site


def run(site: MockSite, *, addon: bool = False, **settings: Any) -> Crawled:
    """Crawl a site, without any error."""
    site.log.clear()
    done = crawl(Follower, {**IN_TURN, **settings}, addon=addon, seeds=[site.url("/")])
    assert done.errors == {}
    return done


def of_config(done: Crawled, level: str) -> list[str]:
    """Return what the settings made the package log."""
    return [each.getMessage() for each in done.records if (each.name, each.levelname) == ("scrapy_focus.config", level)]


@WAYS
def test_a_sentence_alone_makes_a_topic_crawl(events: MockSite, addon: bool) -> None:
    """The policy is one that reads links, as one line says; pages about it are the rewards, and come first."""
    done = run(events, addon=addon)
    assert isinstance(done.policy, TreeQ)
    assert len(of_config(done, "INFO")) == 1
    assert "the goal has a topic, so the policy is TreeQ" in of_config(done, "INFO")[0]
    assert of_config(done, "WARNING") == []
    assert f"pages about '{ABOUT}', from 0.5" in done.logged("scrapy_focus: policy")[0]
    assert sum(map(is_on, events.paths[1:28])) == 24
    assert len(events.paths) == 73
    assert 24 <= done.stats["focus/reward"] <= 25  # the root has words of all subjects


@pytest.mark.parametrize(
    "settings",
    [{"FOCUS_POLICY": BREADTH_FIRST}, {"SCHEDULER": "scrapy_focus.SleepingBanditScheduler"}],
    ids=["BreadthFirst", "SleepingBandit"],
)
def test_it_is_the_reward_of_any_policy(events: MockSite, settings: dict[str, Any]) -> None:
    """Also of one that reads no links, of which a line warns."""
    done = run(events, **settings)
    assert "does not read it: links whose words fit the topic get no priority" in of_config(done, "WARNING")[0]
    assert len(of_config(done, "WARNING")) == 1
    assert len(events.paths) == 73
    assert 24 <= done.stats["focus/reward"] <= 25


def test_files_are_worth_their_relevance(tmp_path: Path) -> None:
    """With ``FOCUS_TARGETS``, each file is worth a number from 0 to 1, by its link; pages are worth nothing."""
    texts = {
        "/1.csv": "Storms and hurricanes",
        "/2.csv": "Court of appeal",
        "/3.csv": "Cheese soup",
        "/4.csv": "Snow and rain",
    }
    links = "".join(f'<p><a href="{path}">{text}</a>' for path, text in texts.items())
    with MockSite(pages={"/": f"<html><title>Files</title>{links}"}) as site:
        for path in texts:
            site.answers[path] = lambda _: (200, {"Content-Type": "text/csv"}, b"1,2\n")
        done = run(site, FOCUS_TARGETS="csv", FOCUS_LOG=str(tmp_path / "log.jsonl"))
    assert isinstance(done.policy, BranchingBandit)
    assert of_config(done, "WARNING") == []
    events = done.events()
    paths = {each["id"]: each["url"].removeprefix(site.url("")) for each in events if each["event"] == "pick"}
    rewards = {paths[each["id"]]: each["reward"] for each in events if each["event"] == "outcome"}
    assert rewards["/"] == 0
    assert min(rewards["/1.csv"], rewards["/4.csv"]) > 0.5 > max(rewards["/2.csv"], rewards["/3.csv"])
    assert len({*rewards.values()}) == 5
    assert all(0 < rewards[path] < 1 for path in texts)
    assert done.stats["focus/reward"] == pytest.approx(sum(rewards.values()), abs=1e-3)


def test_structured_data_must_be_about_it(events: MockSite) -> None:
    """With ``FOCUS_STRUCTURED``, a find has an event and is about the sentence."""
    done = run(events, FOCUS_STRUCTURED=["Event"])
    assert isinstance(done.policy, TreeQ)
    assert done.stats["focus/reward"] == 12
    assert f"pages with Event in json-ld or microdata about '{ABOUT}'" in done.logged("scrapy_focus: policy")[0]
    goal = done.scheduler.config.goal
    assert isinstance(goal, StructuredDataAbout)
    assert goal.names == ("Event",)


def test_keywords_of_a_topic_add_to_it(events: MockSite) -> None:
    """With ``FOCUS_TOPIC``, a dict, pages with the keywords are rewards, too, and links with them come first."""
    done = run(events, FOCUS_TOPIC={"keywords": ["court", "lawyer", "contract"]})
    assert 48 <= done.stats["focus/reward"] <= 49
    assert done.scheduler.crawl.mission.words == ("court", "lawyer", "contract")
    assert done.scheduler.crawl.mission.topic.about == ABOUT


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"FOCUS_ABOUT": "አዲስ አበባ"}, "FOCUS_ABOUT: no word of 'አዲስ አበባ' is known to the embedding; write"),
        ({"FOCUS_ABOUT": "x" * 1_001}, "FOCUS_ABOUT: about has 1,001 characters"),
        ({"FOCUS_ABOUT": 7}, "FOCUS_ABOUT is 7"),
        ({"FOCUS_ABOUT": " "}, "FOCUS_ABOUT"),
        ({"FOCUS_EMBEDDING": "no/folder"}, "FOCUS_ABOUT: there is no embedding 'no/folder'"),
        ({"FOCUS_EMBEDDING": OWN, "FOCUS_ABOUT": ""}, f"FOCUS_EMBEDDING is '{OWN}', and FOCUS_ABOUT is not set"),
        ({"FOCUS_TOPIC": "model.npz"}, "FOCUS_TOPIC is 'model.npz', and FOCUS_ABOUT is set; a sentence goes with"),
        ({"FOCUS_TOPIC": {"about": "rain"}}, "FOCUS_TOPIC has about, and so do the settings: FOCUS_ABOUT; remove one"),
        (
            {"FOCUS_TOPIC": {"embedding": OWN}, "FOCUS_EMBEDDING": OWN},
            "FOCUS_TOPIC has embedding, and so do the settings: FOCUS_EMBEDDING; remove one",
        ),
        ({"FOCUS_TOPIC": {"keyword": ["rain"]}}, "FOCUS_ABOUT: there is no 'keyword' of a topic"),
        ({"FOCUS_GOAL": "scrapy_focus.ItemsGoal"}, "FOCUS_GOAL and FOCUS_ABOUT both say what to look for; set one"),
        ({"FOCUS_TARGETS": "csv", "FOCUS_STRUCTURED": ["Event"]}, "FOCUS_STRUCTURED and FOCUS_TARGETS both say what"),
        ({"FOCUS_TARGETS": "csv", "FOCUS_TOPIC": {"keywords": ["rain"]}}, "FOCUS_TOPIC, FOCUS_GOAL and FOCUS_TARGETS"),
        ({"FOCUS_CLUSTER": "auto"}, "FOCUS_CLUSTER is 'auto', which does not yet support a topic that learns"),
        ({"FOCUS_CLUSTER": "auto", "FOCUS_TARGETS": "csv"}, "FOCUS_CLUSTER is 'auto', which does not yet support"),
        ({"FOCUS_ABUT": "rain"}, "did you mean FOCUS_ABOUT?"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_settings_that_contradict_each_other(settings: dict[str, Any], said: str, tmp_path: Path) -> None:
    """Each is an error of one line that names the settings."""
    with pytest.raises(ConfigError) as caught:
        Config.from_settings(Settings({"FOCUS_ABOUT": ABOUT, "JOBDIR": str(tmp_path)} | settings), BranchingBandit)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, with the setting."""
    from scrapy_focus.learn import embedding

    embedding._load.cache_clear()
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ConfigError, match=r'FOCUS_ABOUT: .* needs tokenizers: pip install "scrapy-focus\[about\]"'):
        Config.from_settings(Settings({"FOCUS_ABOUT": ABOUT}), BranchingBandit)


def test_a_job_resumes_with_its_sentence_and_embedding_only(tmp_path: Path) -> None:
    """Anything else is refused by name; the same continues with what was learned."""
    job = {"JOBDIR": str(tmp_path / "job")}
    with MockSite(pages=site_pages()) as site:
        first = run(site, **job, FOCUS_BUDGET_REQUESTS=60)
        before = set(site.paths)
        assert learned(tmp_path)["refits"] == 2
        for other, said in (
            ({"FOCUS_ABOUT": "rain"}, f"goal was pages about '{ABOUT}', from 0.5 and is pages about 'rain', from 0.5"),
            ({"FOCUS_EMBEDDING": OWN}, "mission: embedding was "),
            ({"FOCUS_TOPIC": {"keywords": ["rain"]}}, "mission: words was None and is rain"),
            ({"FOCUS_TOPIC": {"frequency": 0.1}}, "mission: topic was "),
            ({"FOCUS_ABOUT": ""}, f"goal was pages about '{ABOUT}', from 0.5 and is "),
            ({"FOCUS_TARGETS": "csv"}, f"goal was pages about '{ABOUT}', from 0.5 and is files"),
        ):
            with pytest.raises((ResumeError, RuntimeError)) as caught:
                run(site, **job, **other)
            assert said in f"{caught.value} {caught.value.__context__}"
            assert not site.log
        rest = run(site, **job)
        assert not before & set(site.paths)
    assert len(first.items) + len(rest.items) == 73
    assert learned(tmp_path)["_seen"] == 73
    assert rest.scheduler.crawl.mission.topic.refits == 2
    assert rest.scheduler.crawl.mission.topic.frequency == learned(tmp_path)["frequency"]


def learned(folder: Path) -> dict[str, Any]:
    """Return the state of the topic in a job."""
    state: dict[str, Any] = Classes().loads(read_notes(folder / "job" / "focus" / "frontier.sqlite")["goal"])
    return dict(state["topic"])
