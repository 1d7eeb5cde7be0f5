"""Limits of a crawl apply to all its workers together: budgets, stop rules, goals, and due times."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from crawls import BREADTH_FIRST, Follower, SomeHeadsFirst
from mocksite import MockSite, tree_paths
from scrapy import Request
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from scrapy_focus import NOT_NOW, FilesGoal, Plateau
from scrapy_focus.core.clock import FastClock
from scrapy_focus.policies.orderings import BreadthFirst
from tests.cluster.local import NearEngine
from tests.cluster.workers import fetched, share
from tests.made import EachAgain

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from scrapy.http import Response


def trees(sites: list[MockSite], n: int = 400) -> list[str]:
    """Return the roots of trees, one on each site, with settings that cause further requests."""
    return [
        site.url(path)
        for site in sites
        for path in (f"/page/0/{n}", f"/redirect?to=/page/1/{n}", "/status?code=500", "/status?code=404", "/ok?x")
    ]


@pytest.mark.few(2)
@pytest.mark.parametrize("budget", [1, 7, 60])
def test_the_servers_see_exactly_the_budget(sites: list[MockSite], tmp_path: Path, budget: int) -> None:
    """Pages, HEADs, redirects, retries and robots.txt of all workers together are as many as were allowed."""
    settings = {"FOCUS_BUDGET_REQUESTS": budget, "FOCUS_POLICY": SomeHeadsFirst, "ROBOTSTXT_OBEY": True}
    result = share(Follower, tmp_path, settings, workers=3, seeds=trees(sites))
    assert sum(len(site.log) for site in sites) == result.crawl.budget.requests_used == budget
    assert result.reasons == {"focus_budget_requests"}
    assert result.errors == {}


def test_no_page_goes_out_before_its_robots_txt(site: MockSite, tmp_path: Path) -> None:
    """Without further requests, the one reserved for a page is used for its robots.txt."""
    settings = {"FOCUS_BUDGET_REQUESTS": 1, "FOCUS_POLICY": BREADTH_FIRST, "ROBOTSTXT_OBEY": True}
    share(Follower, tmp_path, settings, seeds=[site.url("/ok")])
    assert site.asked == [("GET", "/robots.txt")]


def test_requests_that_could_not_be_sent_are_given_back(sites: list[MockSite], tmp_path: Path) -> None:
    """Requests without a server cost nothing, on any worker."""
    with MockSite("127.0.0.4") as gone:
        seeds = [gone.url(f"/{i}") for i in range(5)]
    settings = {"FOCUS_BUDGET_REQUESTS": 40, "RETRY_ENABLED": False, "FOCUS_POLICY": BREADTH_FIRST}
    result = share(Follower, tmp_path, settings, seeds=[*seeds, *trees(sites)])
    assert sum(len(site.log) for site in sites) == result.crawl.budget.requests_used == 40
    assert result.outcomes["failure"] == 5


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("settings", "reason"),
    [({"FOCUS_BUDGET_BYTES": 5000}, "focus_budget_bytes"), ({"FOCUS_BUDGET_SECONDS": 0.5}, "focus_budget_seconds")],
)
def test_other_budgets_end_all_workers(
    sites: list[MockSite], tmp_path: Path, settings: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes and seconds are those of all; each request takes a hundredth of a second, by the clock of the crawl."""
    for module in ("making", "scheduler"):
        monkeypatch.setattr(
            f"scrapy_focus.{module}.clock_of", lambda _: lambda: 1e9 + sum(len(site.log) for site in sites) / 100
        )
    result = share(Follower, tmp_path, settings, seeds=trees(sites, 100_000))
    assert result.reasons == {reason}
    assert (50 if reason == "focus_budget_seconds" else 1) <= len(fetched(sites)) < 3000
    assert result.crawl.budget.bytes_used == result.total("focus/bytes")


def test_a_rate_is_that_of_all_workers(sites: list[MockSite], tmp_path: Path) -> None:
    """Links of all workers take turns; redirects and retries, which do not wait for a turn, are not counted here."""
    settings = {"FOCUS_BUDGET_RATE": "72000/hour", "FOCUS_BUDGET_REQUESTS": 24, "ROBOTSTXT_OBEY": False}
    seeds = [site.url(path) for site in sites for path in ("/page/0/400", "/status?code=404", "/ok?x")]
    before = time.monotonic()
    share(Follower, tmp_path, settings, workers=3, seeds=seeds)
    after = sorted(seen.at - before for site in sites for seen in site.log)
    assert len(after) == 24
    assert all(seconds >= turn * 0.05 for turn, seconds in enumerate(after)), "a slow machine only comes later"


def test_a_plateau_ends_all_workers(sites: list[MockSite], tmp_path: Path) -> None:
    """What is found is counted for all."""
    rule = Plateau(window=5, slope=0.5, decay=1.0, patience=3)
    settings = {"FOCUS_STOP": rule, "FOCUS_TARGETS": ["text/csv"]}
    result = share(Follower, tmp_path, settings, workers=3, seeds=trees(sites, 100_000))
    assert result.reasons == {"focus_plateau"}
    assert result.crawl.budget.requests_used >= 15


def later(outcome: Any) -> None:
    """A goal that never knows at once."""


class SaysLater(Follower):
    """Tells the worth of each page a while after it was parsed, or in its callback."""

    wait = "0.05"

    def parse(self, response: Response) -> Iterator[Any]:
        scheduler, pick = self.crawler.engine.scheduler, response.meta["focus_pick"]
        if self.wait:
            asyncio.get_running_loop().call_later(float(self.wait), scheduler.reward, pick, 0.5)
        else:
            scheduler.reward(pick, 0.5)
        yield from response.follow_all(css="a")


@pytest.mark.few(1)
@pytest.mark.parametrize("wait", ["0.05", ""])
def test_rewards_may_come_later(sites: list[MockSite], tmp_path: Path, wait: str) -> None:
    """The leader receives a page when its reward is known, even if that was known before the report."""
    seeds = [site.url("/page/0/7") for site in sites]
    result = share(SaysLater, tmp_path, {"FOCUS_GOAL": later}, seeds=seeds, wait=wait)
    assert len(fetched(sites)) == 21
    assert result.crawl.rewards == result.total("focus/reward") == 10.5
    assert result.errors == {}


def test_each_content_counts_once(sites: list[MockSite], tmp_path: Path) -> None:
    """The leader decides which was first: copies on other hosts, fetched by other workers, earn nothing."""
    for site in sites:
        site.answers |= {
            f"/{k}.csv": lambda _, k=k: (200, {"Content-Type": "text/csv"}, b"a,%d\n" % k) for k in range(5)
        }
        site.pages["/"] = "".join(f'<a href="/{k}.csv">{k}</a>' for k in range(5))
    settings = {"FOCUS_GOAL": FilesGoal(types=["text/csv"], stored=True)}
    result = share(Follower, tmp_path, settings, workers=3, seeds=[site.url("/") for site in sites])
    assert len(fetched(sites)) == 18
    assert result.crawl.rewards == 5
    assert result.crawl.counts["reward/copy"] == 10


class SecondTime(BreadthFirst):
    """Leaves each link unchanged until it is offered a second time."""

    def __init__(self) -> None:
        super().__init__()
        self.offered: Counter[int] = Counter()

    def place(self, links: Any, source: Any) -> Any:
        self.offered.update(link.key for link in links)
        return [
            place if self.offered[link.key] > 1 or source is None else NOT_NOW
            for link, place in zip(links, super().place(links, source), strict=True)
        ]


class OneAfterTheOther(Follower):
    """Begins with the second half of its pages when the policy was offered two links of each of the first half."""

    async def start(self) -> AsyncIterator[Any]:
        half = len(self.seeds) // 2
        for seed in self.seeds[:half]:
            yield Request(seed)
        while not NearEngine.made or len(NearEngine.made[-1].crawl.policy.offered) < 3 * half:
            await asyncio.sleep(0.02)  # its sender receives at once that they were left
        for seed in self.seeds[half:]:
            yield Request(seed)


def test_links_that_the_policy_left_are_sent_again(sites: list[MockSite], tmp_path: Path) -> None:
    """A worker sends a link again if the policy left it unchanged."""
    for site in sites:
        site.pages |= {"/": '<a href="/a">a</a><a href="/b">b</a>', "/other": '<a href="/a">a</a>'}
        site.pages |= {"/a": "a", "/b": "b"}
    seeds = [site.url(path) for path in ("/", "/other") for site in sites]
    share(OneAfterTheOther, tmp_path, {"FOCUS_POLICY": SecondTime}, seeds=seeds)
    assert sorted(fetched(sites)) == sorted(site.url(path) for site in sites for path in ("/", "/a", "/other"))


def test_pages_are_revisited(sites: list[MockSite], tmp_path: Path) -> None:
    """Each page is fetched at its times, by the owner of its host, and with conditions."""
    for site in sites:
        page = (200, {"Content-Type": "text/html", "ETag": '"1"'}, b"<html><a href='/child'>")
        site.answers["/"] = lambda n, page=page: page if n == 1 else (304, {"ETag": '"1"'}, b"")
        site.pages["/child"] = "child"
    settings = {"FOCUS_POLICY": EachAgain, "FOCUS_POLICY_PARAMS": {"every": 0.2, "times": 2}}
    result = share(Follower, tmp_path, settings, seeds=[site.url("/") for site in sites])
    assert Counter(fetched(sites)) == {site.url(path): 3 for site in sites for path in ("/", "/child")}
    asked = [seen.headers.get("if-none-match") for site in sites for seen in site.log if seen.path == "/"]
    assert Counter(asked) == {None: 3, '"1"': 6}
    assert result.outcomes == {"ok": 6, "unchanged": 12}
    assert result.crawl.counts["link/again"] == 12
    assert result.errors == {}


@pytest.mark.few(1)
@pytest.mark.parametrize("policy", ["foragers.Foragers", "revisits.Revisits"])
def test_policies_for_what_changes(sites: list[MockSite], tmp_path: Path, policy: str) -> None:
    """They decide for all workers, to the last request."""
    clock = FastClock(86400.0, time.time())
    settings = {
        "FOCUS_POLICY": f"scrapy_focus.policies.{policy}", "FOCUS_BUDGET_REQUESTS": 60, "_FOCUS_CLOCK": str(clock),
    }  # fmt: skip
    result = share(Follower, tmp_path, settings, addon=True, seeds=[site.url("/page/0/15") for site in sites])
    assert len(fetched(sites)) == result.crawl.budget.requests_used == 60
    assert 10 < len(set(fetched(sites))) <= 45
    assert result.errors == {}


class Rules(CrawlSpider):
    """Follows its rules."""

    name = "rules"
    rules: ClassVar[Any] = [
        Rule(LinkExtractor(allow=r"/page/\d*[02468]/"), callback="parse_even", follow=True),
        Rule(LinkExtractor(allow=r"/page/"), callback="parse_odd", follow=True),
    ]

    def __init__(self, seeds: list[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = seeds

    def parse_even(self, response: Response) -> Iterator[Any]:
        yield {"even": response.url}

    def parse_odd(self, response: Response) -> Iterator[Any]:
        yield {"odd": response.url}


def test_rules_of_a_crawl_spider(sites: list[MockSite], tmp_path: Path) -> None:
    """Each page is read by the callback of its rule, whichever worker found its link."""
    result = share(Rules, tmp_path, seeds=[site.url("/page/0/15") for site in sites])
    expected = Counter(
        ("odd" if k % 2 else "even", site.url(path)) for site in sites for k, path in enumerate(tree_paths(15))
    )
    got = Counter(next(iter(item.items())) for item in result.items)
    assert {each: n for each, n in got.items() if n > 1} == {}
    assert set(got) == set(expected)
    assert len(fetched(sites)) == 48, "the start requests are not filtered"


class Slow(Follower):
    """Finds its start requests one after the other, over some tenths of a second."""

    async def start(self) -> AsyncIterator[Any]:
        for seed in self.seeds:
            yield Request(seed)
            await asyncio.sleep(0.1)


def test_a_start_that_takes_long(sites: list[MockSite], tmp_path: Path) -> None:
    """Idle workers wait for what others may still find; what both start with is fetched once."""
    result = share(Slow, tmp_path, seeds=[site.url("/page/0/5") for site in sites])
    assert sorted(fetched(sites)) == sorted(site.url(path) for site in sites for path in tree_paths(5))
    assert result.reasons == {"finished"}


class Polls(Follower):
    """Asks for one page again and again, from its start and from its callbacks."""

    async def start(self) -> AsyncIterator[Any]:
        for _ in range(3):
            yield Request(self.seeds[0], dont_filter=True, cb_kwargs={"left": 0})
        yield Request(self.seeds[1], dont_filter=True, cb_kwargs={"left": 4})

    def parse(self, response: Response, left: int) -> Iterator[Any]:
        yield {"left": left}
        if left:
            yield response.request.replace(cb_kwargs={"left": left - 1})


def test_a_page_may_be_asked_for_again_and_again(sites: list[MockSite], tmp_path: Path) -> None:
    """What is not to be filtered is not: the start requests of both workers are the same, those after that are not."""
    share(Polls, tmp_path, {"FOCUS_POLICY": BREADTH_FIRST}, seeds=[sites[0].url("/ok"), sites[1].url("/ok")])
    assert len(sites[0].log) == 5, "one, and two more of each worker"
    assert len(sites[1].log) == 5


def test_a_page_with_very_many_links(sites: list[MockSite], tmp_path: Path) -> None:
    """They are sent in one message, and fetched by all."""
    links = [sites[k % 3].url(f"/ok?{k}") for k in range(1200)]
    sites[0].pages["/"] = "".join(f'<a href="{url}">{k}</a>' for k, url in enumerate(links))
    settings = {"FOCUS_BUDGET_REQUESTS": 30, "FOCUS_POLICY": BREADTH_FIRST}
    result = share(Follower, tmp_path, settings, seeds=[sites[0].url("/")])
    assert len(fetched(sites)) == 30
    assert result.crawl.status().waiting == 1201 - 30


def test_what_one_crawl_learned_helps_the_next(sites: list[MockSite], tmp_path: Path) -> None:
    """The leader saves it once, and the leader of another crawl begins with it."""
    learned = tmp_path / "learned"
    seeds = [site.url("/page/0/15") for site in sites]
    share(Follower, tmp_path / "1", {"FOCUS_LEARNED_TO": str(learned)}, addon=True, seeds=seeds)
    assert learned.stat().st_size > 100
    result = share(Follower, tmp_path / "2", {"FOCUS_LEARNED_FROM": str(learned)}, addon=True, seeds=seeds)
    assert result.errors == {}
    assert len(fetched(sites)) == 90


def test_decisions_are_logged_and_explained(sites: list[MockSite], tmp_path: Path) -> None:
    """One log has the decisions for all workers, and each request has the reason of its choice."""
    log, whys = tmp_path / "log.jsonl", []

    class Explained(Follower):
        def parse(self, response: Response) -> Iterator[Any]:
            whys.append(response.meta["focus_why"])
            return super().parse(response)

    settings = {"FOCUS_LOG": str(log), "FOCUS_EXPLAIN": True}
    share(Explained, tmp_path, settings, addon=True, seeds=[site.url("/page/0/7") for site in sites])
    events = Counter(json.loads(line)["event"] for line in log.read_text().splitlines())
    assert events["pick"] - events["release"] == events["outcome"] == 21
    assert len(whys) == 21
    assert all(whys)


class Asks(BreadthFirst):
    """Asks for the text of pages, and for the keys of links that are known."""

    reads_outcome = True

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.known = 0

    def know(self, keys: Any, source: Any) -> None:
        self.known += len(keys)

    def learn(self, outcome: Any) -> None:
        self.texts.append(outcome.page.text)


def test_policies_receive_what_they_ask_for(sites: list[MockSite], tmp_path: Path) -> None:
    """Texts of pages and keys of known links are sent to the leader, for a policy that uses them."""
    result = share(
        Follower, tmp_path, {"FOCUS_POLICY": Asks}, addon=True, seeds=[site.url("/page/0/7") for site in sites]
    )
    policy = result.crawl.policy
    assert len(policy.texts) == 21
    assert all("<nav>" in text for text in policy.texts)
    assert policy.known == 3 * (7 + 7), "each page leads to the top and to itself"
