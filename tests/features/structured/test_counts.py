"""Structured data of pages is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Follower, crawl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mocksite import MockSite
    from scrapy.http import Response

EVENT = '<script type="application/ld+json">{"@context": "https://schema.org", "@type": "Event", "name": "%d"}</script>'


PLACE = '<p itemscope itemtype="http://schema.org/Place"><b itemprop=name>Hall</b></p>'


POLICIES = [None, BREADTH_FIRST, "scrapy_focus.policies.tagpath.TagPath", "scrapy_focus.policies.treeq.policy.TreeQ"]


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


@pytest.mark.parametrize("policy", POLICIES)
def test_pages_of_a_wanted_type_are_the_reward(pages: MockSite, policy: str | None) -> None:
    """With any policy, each HTML page with a thing of such a type earns 1; everything read is counted."""
    settings = {"FOCUS_STRUCTURED": ["schema:Event", "Recipe"], "FOCUS_SEED": 0}
    result = crawl(Follower, settings | ({"FOCUS_POLICY": policy} if policy else {}), seeds=[pages.url("/")])
    assert len(pages.paths) == 15
    assert result.stats["focus/reward"] == 4
    counted = {name: count for name, count in result.stats.items() if name.startswith("focus/structured/")}
    assert counted == {
        "focus/structured/pages": 12,
        "focus/structured/entities": 16,
        "focus/structured/wanted": 4,
        "focus/structured/type/Event": 4,
        "focus/structured/type/Place": 12,
        "focus/structured/broken": 2,
    }
    assert result.errors == {}
    assert "goal pages with Event, Recipe in json-ld or microdata" in result.logged("scrapy_focus: policy")[0]


class Reader(Follower):
    """Reads pages only where it can."""

    def parse(self, response: Response) -> Iterator[Any]:
        if response.url.endswith("/"):
            yield from response.follow_all(css="a")


def test_pages_that_scrapy_cannot_parse_do_no_harm(site: MockSite) -> None:
    """An unknown charset, an invalid base, which is still a page, and an empty page."""
    site.pages["/"] = "".join(f"<a href=/{name}>x</a>" for name in ("charset", "base", "script", "empty"))
    site.answers["/charset"] = lambda _: (200, {"Content-Type": "text/html; charset=hex"}, (EVENT % 0).encode())
    site.pages["/base"] = f'<base href="http://[">{EVENT % 1}{PLACE}'
    site.pages["/script"] = EVENT % 2
    site.pages["/empty"] = ""
    settings = {"FOCUS_STRUCTURED": "Event", "METAREFRESH_ENABLED": False}
    result = crawl(Reader, settings, seeds=[site.url("/")])
    assert result.outcomes == {"ok": 5}
    assert result.stats["focus/reward"] == 2
    assert result.stats["focus/structured/entities"] == 3
    assert result.errors == {}


def test_counts_are_those_of_all_runs(pages: MockSite, tmp_path: Path) -> None:
    """A crawl that resumes counts on."""
    settings: dict[str, Any] = {"JOBDIR": str(tmp_path), "FOCUS_SEED": 0, "FOCUS_STRUCTURED": "Event"}
    first = crawl(Follower, {**settings, "FOCUS_BUDGET_REQUESTS": 7}, seeds=[pages.url("/")])
    assert 0 < first.stats["focus/structured/pages"] < 12
    second = crawl(Follower, settings, seeds=[pages.url("/")])
    assert second.stats["focus/structured/pages"] == 12
