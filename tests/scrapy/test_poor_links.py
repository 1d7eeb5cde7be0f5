"""Live crawls of a blog with a login for each article: logins are fetched last, by settings and commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from crawls import Follower, crawl

from scrapy_focus.__main__ import main
from scrapy_focus.finders.important.spider import ImportantSpider
from scrapy_focus.finders.kit.spiders.polite import FOCUS_POOR_LAST

if TYPE_CHECKING:
    from pathlib import Path

    from mocksite import MockSite

ARTICLES = 12
ONE = {"FOCUS_MAX_INFLIGHT": 1, "FOCUS_SEED": 1}
DEPTH_FIRST = "scrapy_focus.policies.orderings.DepthFirst"


def blog(site: MockSite) -> str:
    """Make the blog, and return where to start; logins answer 404."""
    site.pages["/"] = "".join(f'<h2><a href="/post/{i}">{i}</a></h2>' for i in range(ARTICLES))
    for i in range(ARTICLES):
        site.pages[f"/post/{i}"] = f'<a href="/wp-login.php?redirect_to={i}">Log in to reply</a>'
        site.answers[f"/wp-login.php?redirect_to={i}"] = lambda _: (404, {"Content-Type": "text/html"}, b"gone")
    return site.url("/")


def logins(site: MockSite) -> list[bool]:
    """Return for each request whether it was for a login."""
    return ["wp-login" in path for path in site.paths if path != "/robots.txt"]


LAST = [False] * (1 + ARTICLES) + [True] * ARTICLES


@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
@pytest.mark.parametrize(
    "settings", [{}, {"FOCUS_POLICY": DEPTH_FIRST, "FOCUS_POOR_LAST": True}], ids=["default policy", "by the setting"]
)
def test_logins_come_last(site: MockSite, settings: dict[str, Any], addon: bool) -> None:
    """With the default policy, and with any other if the setting is on; all are fetched."""
    result = crawl(Follower, {**ONE, **settings}, addon=addon, seeds=[blog(site)])
    assert logins(site) == LAST
    assert (result.reason, result.stats["focus/poor/links"]) == ("finished", ARTICLES)
    result.check()


@pytest.mark.parametrize(
    "settings", [{"FOCUS_POOR_LAST": False}, {"FOCUS_POLICY": DEPTH_FIRST}], ids=["turned off", "a published order"]
)
def test_logins_are_links_like_others_where_that_is_turned_off(site: MockSite, settings: dict[str, Any]) -> None:
    """By the setting, and by default in a published system."""
    result = crawl(Follower, {**ONE, **settings}, seeds=[blog(site)])
    assert sorted(logins(site)) == LAST
    assert logins(site) != LAST
    assert "focus/poor/links" not in result.stats
    result.check()


def test_commands_ask_for_logins_last() -> None:
    """The settings of all commands contain it, whichever policy they have."""
    assert FOCUS_POOR_LAST is True


def test_a_command_asks_for_logins_last(site: MockSite, tmp_path: Path) -> None:
    """Its published policy puts them after pages with fewer links to them."""
    settings = {**ONE, "FOCUS_POOR_LAST": FOCUS_POOR_LAST, "ROBOTSTXT_OBEY": False}
    crawl(ImportantSpider, settings, addon=True, root=blog(site), out=str(tmp_path))
    assert logins(site) == LAST


def test_a_job_that_was_stopped_has_its_logins_last(
    site: MockSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a stop nothing is lost or fetched twice, and ``focus-status`` shows how many links come last."""
    settings = {**ONE, "JOBDIR": str(tmp_path)}
    seeds = [blog(site)]
    first = crawl(Follower, {**settings, "FOCUS_BUDGET_REQUESTS": 8}, seeds=seeds)
    assert first.reason == "focus_budget_requests"
    with pytest.raises(SystemExit):
        main(["status", str(tmp_path)])
    assert "7 links to log in, share or print, or of kinds that always fail" in capsys.readouterr().out
    crawl(Follower, settings, seeds=seeds)
    assert logins(site) == LAST
    assert len(set(site.paths)) == len(site.paths)


def test_a_slip_in_the_types_is_doubted(site: MockSite) -> None:
    """One warning at the start suggests the right type, wherever the types are set; other words are fine."""
    for settings in ({"FOCUS_TARGETS": "cvs,pdf"}, {"FOCUS_TARGETS": ["pdf", "CVS"]}):
        result = crawl(Follower, settings, seeds=[site.url("/ok")])
        [record] = [record for record in result.records if "did you mean" in record.getMessage()]
        assert (record.levelname, record.getMessage()) == (
            "WARNING", "cvs is used as an extension; did you mean csv?",
        )  # fmt: skip
    assert not crawl(Follower, {"FOCUS_TARGETS": "csv,dat,epub"}, seeds=[site.url("/ok")]).logged("did you mean")
