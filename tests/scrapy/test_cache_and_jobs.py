"""What crawls keep from one run to the next: cached pages, cookies, and everything under JOBDIR."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Crawled, Follower, crawl, crawl_all
from mocksite import MockSite, tree_paths
from scrapy import FormRequest, Request, Spider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from scrapy.http import Response
    from twisted.python.failure import Failure

ADDON = pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
TAG_PATH = "scrapy_focus.policies.tagpath.TagPath"


@pytest.mark.few(1)
@pytest.mark.both
@pytest.mark.reactor
@ADDON
def test_pages_from_the_cache_cost_nothing(site: MockSite, tmp_path: Path, addon: bool) -> None:
    """A second run with the HTTP cache sends no request and uses no budget, and finds the same."""
    settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path), "FOCUS_BUDGET_REQUESTS": 31}
    first = crawl(Follower, settings, addon=addon, seeds=[site.url("/page/0/30")])
    assert first.stats["focus/requests"] == len(site.log) == 30
    second = crawl(Follower, settings, addon=addon, seeds=[site.url("/page/0/30")])
    assert len(site.log) == 30
    assert second.stats["focus/requests"] == 0
    assert second.stats["focus/bytes"] == 0
    assert second.stats["focus/reward"] == first.stats["focus/reward"] == 30
    assert second.outcomes == {"ok": 30}


@ADDON
def test_cookies_are_kept(site: MockSite, addon: bool) -> None:
    """A cookie that a page sets is sent with later requests, also after a redirect and a HEAD."""
    site.pages["/after"] = '<a href="/redirect?to=/ok?cookie">x</a>'
    settings = {"FOCUS_MAX_INFLIGHT": 1, "FOCUS_POLICY": BREADTH_FIRST}
    crawl(Follower, settings, addon=addon, seeds=[site.url("/cookie"), site.url("/after")])
    assert site.paths == ["/cookie", "/after", "/redirect?to=/ok?cookie", "/ok?cookie"]
    assert [seen.headers.get("cookie") for seen in site.log] == [None, *["visited=yes"] * 3]


@pytest.mark.few(1)
@pytest.mark.both
@pytest.mark.reactor
@ADDON
@pytest.mark.parametrize("policy", [TAG_PATH, BREADTH_FIRST], ids=["tagpath", "breadth_first"])
def test_a_stopped_crawl_resumes(site: MockSite, tmp_path: Path, policy: str, addon: bool) -> None:
    """Over two runs with one JOBDIR every page is fetched once, whatever was in flight when the first one stopped."""
    settings = {"JOBDIR": str(tmp_path), "FOCUS_POLICY": policy}
    first = crawl(
        Follower, {**settings, "CLOSESPIDER_PAGECOUNT": 40}, addon=addon, seeds=[site.url("/page/0/120")]
    )  # fmt: skip
    assert first.reason == "closespider_pagecount"
    done = len(site.paths)
    assert 40 <= done < 80
    second = crawl(Follower, settings, addon=addon, seeds=[site.url("/page/0/120")])
    assert Counter(site.paths) == Counter(tree_paths(120))
    assert second.reason == "finished"
    assert second.logged("resumed with")
    assert second.stats["item_scraped_count"] == 120 - done
    assert second.stats["focus/reward"] == 120
    assert second.errors == {}


def test_an_answer_after_the_end_is_no_error(site: MockSite, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """After a second Ctrl-C, responses may arrive when all files are closed: nothing is lost, and nothing is logged."""
    settings = {"JOBDIR": str(tmp_path), "CLOSESPIDER_PAGECOUNT": 5}
    ended = crawl(Follower, settings, seeds=[site.url("/page/0/20")])
    caplog.clear()
    ended.scheduler.focus_host.received(1000)
    ended.scheduler.focus_host.received(None)
    assert not caplog.records
    assert crawl(Follower, {"JOBDIR": str(tmp_path)}, seeds=[site.url("/page/0/20")]).reason == "finished"


def test_learned_state_is_restored(site: MockSite, tmp_path: Path) -> None:
    """Arms, pulls and rewards of the first run exist in the second, which resumes from them."""
    settings = {"JOBDIR": str(tmp_path), "FOCUS_SEED": 1}
    first = crawl(Follower, {**settings, "CLOSESPIDER_PAGECOUNT": 40}, seeds=[site.url("/page/0/120")])
    learned = first.scheduler.crawl.policy
    done, before = len(site.paths), learned.best_arms(99)
    assert learned.steps == sum(pulls for _, _, pulls in before) == done >= 10
    second = crawl(Follower, settings, seeds=[site.url("/page/0/120")])
    now = second.scheduler.crawl.policy
    after = now.best_arms(99)
    assert now.steps == sum(pulls for _, _, pulls in after) == sum(earned for _, earned, _ in after) == 120
    assert {name for name, _, _ in before} <= {name for name, _, _ in after}
    assert now.best_arms(3)[0][0] in {name for name, _, _ in learned.best_arms(9)}


@ADDON
def test_budgets_continue(site: MockSite, tmp_path: Path, addon: bool) -> None:
    """A budget is for all runs together: the second cannot use what the first used."""
    settings = {"JOBDIR": str(tmp_path), "ROBOTSTXT_OBEY": True}
    seeds = [site.url("/page/0/500")]
    crawl(Follower, {**settings, "FOCUS_BUDGET_REQUESTS": 30}, addon=addon, seeds=seeds)
    assert len(site.log) == 30
    result = crawl(Follower, {**settings, "FOCUS_BUDGET_REQUESTS": 50}, addon=addon, seeds=seeds)
    assert len(site.log) == 50
    assert result.stats["focus/requests"] == 50
    result = crawl(Follower, {**settings, "FOCUS_BUDGET_REQUESTS": 50}, addon=addon, seeds=seeds)
    assert len(site.log) == 50
    assert result.reason == "focus_budget_requests"
    assert len(set(site.paths)) == len(site.paths)


class Rich(Spider):
    """Makes requests that carry more than a URL, one of which cannot be stored."""

    name = "rich"

    def __init__(self, site: MockSite, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.site = site

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.site.url("/ok?start"))

    def parse(self, response: Response) -> Iterator[Any]:
        yield response.follow("/ok?kwargs", self.parse_kwargs, cb_kwargs={"number": 7, "text": "\u00fc"})
        yield response.follow("/ok?list", self.parse_kwargs, cb_kwargs={"number": [1, 2], "text": ""})
        yield response.follow("/ok?meta", self.parse_meta, meta={"deep": {"a": [1, {2}]}}, headers={"X-Mine": "1"})
        yield response.follow("/ok?put", self.parse_body, method="PUT", body=b"\x00\xff")
        yield FormRequest(response.urljoin("/ok?form"), formdata={"user": "me"}, callback=self.parse_body)
        yield response.follow("/status?code=404", errback=self.rescue, cookies={"c": "d"})
        yield response.follow("/ok?lambda", lambda response: [{"lost": 1}])

    def parse_kwargs(self, response: Response, number: Any, text: str) -> Iterator[Any]:
        yield {"number": number, "text": text}

    def parse_meta(self, response: Response) -> Iterator[Any]:
        yield {"deep": response.meta["deep"], "mine": response.request.headers["X-Mine"]}

    def parse_body(self, response: Response) -> Iterator[Any]:
        yield {"sent": response.request.body}

    def rescue(self, failure: Failure) -> Iterator[Any]:
        yield {"rescued": failure.value.response.status}


@pytest.mark.reactor
@ADDON
def test_requests_survive_a_stop(site: MockSite, tmp_path: Path, addon: bool) -> None:
    """Callbacks, arguments, meta, bodies, cookies and errbacks are stored in the job; others are counted and named."""
    settings = {"JOBDIR": str(tmp_path), "FOCUS_POLICY": BREADTH_FIRST}
    first = crawl(Rich, {**settings, "FOCUS_BUDGET_REQUESTS": 1}, addon=addon, site=site)
    assert site.paths == ["/ok?start"]
    assert first.stats["focus/link/kept"] == 1
    assert first.logged("/ok?lambda> cannot be stored, and is lost if this process ends")
    assert first.logged("1 queued requests cannot be stored, and are lost with this stop")
    second = crawl(Rich, settings, addon=addon, site=site)
    assert second.outcomes["lost"] == 1
    expected = [
        {"number": 7, "text": "\u00fc"}, {"number": [1, 2], "text": ""}, {"deep": {"a": [1, {2}]}, "mine": b"1"},
        {"sent": b"\x00\xff"}, {"sent": b"user=me"}, {"rescued": 404},
    ]  # fmt: skip
    assert Counter(map(str, second.items)) == Counter(map(str, expected))
    assert [seen.headers.get("cookie") for seen in site.log if "404" in seen.path] == ["c=d"]
    assert second.reason == "finished"


class Flood(Rich):
    """Starts from more URLs than a run may fetch."""

    async def start(self) -> AsyncIterator[Any]:
        for i in range(300):
            yield Request(self.site.url(f"/ok?{i}"), self.parse_seed)

    def parse_seed(self, response: Response) -> None:
        pass


def test_no_seed_is_lost(site: MockSite, tmp_path: Path) -> None:
    """Seeds yielded while the first run ends are requested in the second, and every one is fetched once."""
    settings = {"JOBDIR": str(tmp_path)}
    first = crawl(Flood, {**settings, "FOCUS_BUDGET_REQUESTS": 50}, site=site)
    assert first.stats.get("log_count/ERROR", 0) == 0
    second = crawl(Flood, settings, site=site)
    assert Counter(site.paths) == Counter(f"/ok?{i}" for i in range(300))
    assert second.reason == "finished"


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.few(1)
@ADDON
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"FOCUS_POLICY": BREADTH_FIRST}, ["BranchingBandit", "BreadthFirst"]),
        ({"FOCUS_POLICY_PARAMS": {"theta": 0.9}}, ["theta", "0.75", "0.9"]),
        ({"FOCUS_TARGETS": "csv"}, ["goal", "items scraped", "csv"]),
    ],
    ids=["policy", "params", "goal"],
)
def test_another_policy_is_refused(
    site: MockSite, tmp_path: Path, settings: dict[str, Any], said: list[str], addon: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """A job does not resume with another policy or parameters: the message names the difference, nothing changes."""
    job = {"JOBDIR": str(tmp_path)}
    crawl(Follower, {**job, "CLOSESPIDER_PAGECOUNT": 20}, addon=addon, seeds=[site.url("/page/0/120")])
    kept, asked = everything(tmp_path / "focus"), len(site.log)
    caplog.clear()
    try:
        refused: Crawled | None = crawl(Follower, {**job, **settings}, addon=addon, seeds=[site.url("/page/0/120")])
    except Exception as error:
        refused = None
        messages = [str(error), str(error.__context__)]
    else:
        messages = []
    messages += [record.getMessage() for record in caplog.records]
    assert refused is None or refused.reason != "finished"
    assert any(all(word in message for word in said) for message in messages), messages
    assert everything(tmp_path / "focus") == kept
    assert len(site.log) == asked
    crawl(Follower, job, addon=addon, seeds=[site.url("/page/0/120")])
    assert Counter(site.paths) == Counter(tree_paths(120))


@pytest.mark.reactor
@ADDON
def test_two_crawls_in_one_process(tmp_path: Path, addon: bool) -> None:
    """Parallel crawls have separate budgets, policies, logs and stats."""
    with MockSite() as one, MockSite() as two:
        jobs = [
            (
                Follower,
                {"FOCUS_BUDGET_REQUESTS": 25, "FOCUS_LOG": str(tmp_path / "1")},
                {"seeds": [one.url("/page/0/60")]},
            ),
            (
                Follower,
                {"FOCUS_POLICY": BREADTH_FIRST, "FOCUS_LOG": str(tmp_path / "2")},
                {"seeds": [two.url("/page/0/60")]},
            ),
        ]
        first, second = crawl_all(jobs, addon=addon)
        assert len(one.log) == first.stats["focus/requests"] == 25
        assert sorted(two.paths) == sorted(tree_paths(60))
    assert (first.reason, second.reason) == ("focus_budget_requests", "finished")
    assert second.stats["focus/requests"] == second.stats["focus/reward"] == 60
    urls = [{json.loads(line).get("url") for line in (tmp_path / name).read_text().splitlines()} for name in "12"]
    assert not (urls[0] & urls[1]) - {None}
