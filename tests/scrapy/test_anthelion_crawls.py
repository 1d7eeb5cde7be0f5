"""Live crawls with the bandit of hosts: one settings line, a model that ``focus train`` wrote, and what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from crawls import Follower, crawl
from scrapy.cmdline import execute

from scrapy_focus import ConfigError, HostBandit
from scrapy_focus.core.log import read_log

if TYPE_CHECKING:
    from pathlib import Path

    from mocksite import MockSite

RECIPE = (
    '<script type="application/ld+json">{"@context": "https://schema.org", "@type": "Recipe", "name": "%d"}</script>'
)
ONE_LINE = {"SCHEDULER": "scrapy_focus.AnthelionScheduler", "FOCUS_STRUCTURED": ["Recipe"], "FOCUS_SEED": 0}


@pytest.fixture
def pages(site: MockSite) -> MockSite:
    """Sixty recipes and as many news, found in turn; links of either lead to more of the same."""
    site.pages["/"] = "".join(f"<a href=/{kind}/{i}.html>x</a>" for i in range(20) for kind in ("news", "recipes"))
    for i in range(60):
        more = i + 20
        for kind, markup in (("news", ""), ("recipes", RECIPE % i)):
            link = f"<a href=/{kind}/{more}.html>x</a>" if more < 60 else ""
            site.pages[f"/{kind}/{i}.html"] = f"<p>{kind}</p>{markup}{link}"
    return site


def test_one_settings_line_learns_what_to_look_for(pages: MockSite, tmp_path: Path) -> None:
    """Of sixty pages, most have a recipe; why each was chosen is in the log."""
    log = tmp_path / "log.jsonl"
    settings = {**ONE_LINE, "CLOSESPIDER_PAGECOUNT": 60, "FOCUS_MAX_INFLIGHT": 1, "FOCUS_LOG": str(log)}
    result = crawl(Follower, settings, seeds=[pages.url("/")])
    assert type(result.policy) is HostBandit
    assert result.stats["focus/reward"] >= 42
    assert result.errors == {}
    reasons = [event["why"] for event in read_log(log) if event["event"] == "pick"]
    assert reasons[-1]["host"] == "127.0.0.1" or reasons[-1]["host"].startswith("127.0.0.1:")
    assert reasons[-1]["pages"] >= 58
    assert reasons[-1]["link"] > 0.5


def test_a_model_that_focus_train_wrote_judges_links(
    pages: MockSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From example URLs and anchors of good links, by its command; nothing is learned about links then."""
    monkeypatch.chdir(tmp_path)
    for name, kind in (("on", "recipes"), ("off", "news")):
        (tmp_path / name).mkdir()
        for i in range(8):
            (tmp_path / name / f"{i}.txt").write_text(f"{kind} {i} html")
    with pytest.raises(SystemExit) as ended:
        execute(["scrapy", "focus-train", "--positive", "on", "--negative", "off", "--out", "recipes.npz"])
    assert not ended.value.code
    params = {"classifier": "static", "model": "recipes.npz", "explore": 0}
    settings = {**ONE_LINE, "FOCUS_POLICY_PARAMS": params, "CLOSESPIDER_PAGECOUNT": 61, "FOCUS_MAX_INFLIGHT": 1}
    result = crawl(Follower, settings, seeds=[pages.url("/")])
    assert result.errors == {}
    assert result.stats["focus/reward"] == 60
    assert [path.split("/")[1] for path in pages.paths if path.count("/") == 2][:60] == ["recipes"] * 60


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"score": "beste"}, "score is one of"), ({"classifier": "static"}, "focus train"),
        ({"classifier": "static", "model": "no.npz"}, "no.npz"), ({"scores": "best"}, "scores"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_the_first_request(pages: MockSite, params: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        crawl(Follower, {**ONE_LINE, "FOCUS_POLICY_PARAMS": params}, seeds=[pages.url("/")])
    assert "\n" not in str(error.value)
    assert not pages.paths
