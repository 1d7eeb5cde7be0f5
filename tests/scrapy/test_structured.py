"""Crawls that look for pages with structured data: ``FOCUS_STRUCTURED``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from crawls import Follower, crawl
from scrapy.http import HtmlResponse
from scrapy.settings import Settings

from scrapy_focus import ConfigError, StructuredDataGoal
from scrapy_focus.config import Config
from scrapy_focus.core.errors import ResumeError
from scrapy_focus.engine.inflight import ResponsePage
from scrapy_focus.goals import structured
from scrapy_focus.policies.treeq.policy import TreeQ

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mocksite import MockSite
    from scrapy.http import Response

EVENT = '<script type="application/ld+json">{"@context": "https://schema.org", "@type": "Event", "name": "%d"}</script>'
PLACE = '<p itemscope itemtype="http://schema.org/Place"><b itemprop=name>Hall</b></p>'


@pytest.fixture
def pages(site: MockSite) -> MockSite:
    """Twelve pages: every third has an event, all have a place; two have one broken syntax, two are unreadable."""
    site.pages["/"] = (
        "<title>all</title>"
        + "".join(f"<a href=/{i}>{i}</a>" for i in range(12))
        + "<a href=/text>t</a><a href=/none>n</a>"
    )
    for i in range(12):
        site.pages[f"/{i}"] = (
            f"<p>{PLACE}{EVENT % i if i % 3 == 0 else ''}{EVENT.replace('{', '[') % i if i < 2 else ''}"
        )
    site.answers["/text"] = lambda _: (200, {"Content-Type": "text/plain"}, (EVENT % 0).encode())
    site.answers["/none"] = lambda _: (404, {"Content-Type": "text/html"}, (EVENT % 0).encode())
    return site


class Entities(Follower):
    """Yields an item for each event, read by the crawl's goal."""

    name = "entities"

    def parse(self, response: Response) -> Iterator[Any]:
        goal = self.crawler.engine.scheduler.config.goal
        if isinstance(response, HtmlResponse):
            for entity in goal.wanted(goal.reading(ResponsePage(response))):
                yield {"name": entity.values["name"]}
            yield from response.follow_all(css="a")


def test_callback_and_goal_read_a_page_once(pages: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree is Scrapy's own, nothing is parsed again, and pages without markup are not read at all."""
    read: list[str] = []
    real = structured.read_entities
    monkeypatch.setattr(structured, "parsed", lambda text: pytest.fail("a page was parsed again"))
    monkeypatch.setattr(
        structured,
        "read_entities",
        lambda root, source, url, **given: read.append(url) or real(root, source, url, **given),
    )
    result = crawl(Entities, {"FOCUS_STRUCTURED": "Event"}, seeds=[pages.url("/")])
    assert sorted(int(item["name"]) for item in result.items) == [0, 3, 6, 9]
    assert sorted(read) == sorted(pages.url(f"/{i}") for i in range(12))
    assert result.stats["focus/reward"] == 4
    assert result.errors == {}


def test_any_thing_counts_with_a_star(pages: MockSite) -> None:
    """All pages with markup then."""
    result = crawl(Follower, {"FOCUS_STRUCTURED": "*"}, seeds=[pages.url("/")])
    assert result.stats["focus/reward"] == 12


def test_a_stored_crawl_resumes_for_the_same_types_only(pages: MockSite, tmp_path: Path) -> None:
    """However they are written."""
    settings: dict[str, Any] = {"JOBDIR": str(tmp_path), "FOCUS_SEED": 0, "CONCURRENT_REQUESTS": 1}
    first = crawl(
        Follower, {**settings, "FOCUS_STRUCTURED": "Event", "FOCUS_BUDGET_REQUESTS": 7}, seeds=[pages.url("/")]
    )
    assert first.reason == "focus_budget_requests"
    with pytest.raises(ResumeError, match=r"goal was pages with Event .* and is pages with Place"):
        crawl(Follower, {**settings, "FOCUS_STRUCTURED": "Place"}, seeds=[pages.url("/")])
    second = crawl(Follower, {**settings, "FOCUS_STRUCTURED": ["http://schema.org/Event"]}, seeds=[pages.url("/")])
    assert second.stats["focus/reward"] == 4


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"FOCUS_STRUCTURED": ["JobPostng"]},
            "FOCUS_STRUCTURED: 'JobPostng' is not a type of schema.org; did you mean JobPosting?",
        ),
        ({"FOCUS_STRUCTURED": "Recipe,Evnt"}, "did you mean Event?"),
        ({"FOCUS_STRUCTURED": []}, r"FOCUS_STRUCTURED is \[\]; it takes types of schema.org"),
        ({"FOCUS_STRUCTURED": ["*", "Recipe"]}, r"or '\*' alone"),
        ({"FOCUS_STRUCTURED": True}, "FOCUS_STRUCTURED is True; it takes types"),
        ({"FOCUS_STRUCTURED": [5]}, r"FOCUS_STRUCTURED is \[5\]"),
        ({"FOCUS_STRUCTURED": ["Recipe", ""]}, "FOCUS_STRUCTURED: one of the types is ''"),
        ({"FOCUS_STRUCTURED": "Recipe", "FOCUS_TARGETS": "csv"}, "FOCUS_STRUCTURED and FOCUS_TARGETS both say what to look for"),
        ({"FOCUS_STRUCTURED": "Recipe", "FOCUS_GOAL": "scrapy_focus.ItemsGoal"}, "FOCUS_STRUCTURED and FOCUS_GOAL both"),
        ({"FOCUS_STRUCTURED": "Recipe", "FOCUS_TOPIC": "x.npz"}, "FOCUS_STRUCTURED and FOCUS_TOPIC both"),
        ({"FOCUS_STRUCTURE": "Recipe"}, "did you mean FOCUS_STRUCTURED?"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_cannot_be_looked_for_is_said_in_one_line(settings: dict[str, Any], said: str) -> None:
    """Before the crawl begins."""
    with pytest.raises(ConfigError, match=said) as raised:
        Config.from_settings(Settings(settings), TreeQ)
    assert "\n" not in str(raised.value)


def test_without_extruct_the_setting_says_how_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line."""
    monkeypatch.setitem(sys.modules, "extruct", None)
    with pytest.raises(ConfigError, match=r"FOCUS_STRUCTURED: .*pip install \"scrapy-focus\[structured\]\""):
        Config.from_settings(Settings({"FOCUS_STRUCTURED": "Recipe"}), TreeQ)


@pytest.mark.parametrize("off", [None, "", False])
def test_it_can_be_turned_off(off: Any) -> None:
    """For example on the command line, if a project sets it."""
    goal = Config.from_settings(Settings({"FOCUS_STRUCTURED": off, "FOCUS_TARGETS": "csv"}), TreeQ).goal
    assert not isinstance(goal, StructuredDataGoal)


def test_types_may_be_given_in_any_way() -> None:
    """As a list, or separated by commas."""
    for given in (
        "Recipe, schema:Event,http://schema.org/Dataset",
        ["Recipe", "Event", "Dataset"],
        ("Recipe", "schema:Event", "Dataset"),
    ):
        goal = Config.from_settings(Settings({"FOCUS_STRUCTURED": given}), TreeQ).goal
        assert isinstance(goal, StructuredDataGoal)
        assert goal.names == ("Recipe", "Event", "Dataset")
