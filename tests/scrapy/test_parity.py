"""A live crawl with one request in flight and its simulation on a recording make the same requests in the same order."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from crawls import Follower, crawl
from mocksite import MockSite

from scrapy_focus import FilesGoal, Placement, Policy
from scrapy_focus.core.log import read_log
from scrapy_focus.goals.topic import TopicGoal
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.writer import Answer, SiteWriter
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.sites.portal.portal import Page, StatisticsPortal
from scrapy_focus.lab.sites.server import SiteServer
from scrapy_focus.policies.bestfirst import BestFirst
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.focused import Focused
from scrapy_focus.policies.hostbandit import HostBandit
from scrapy_focus.policies.hotqueue import HotQueue
from scrapy_focus.policies.importance import Importance
from scrapy_focus.policies.orderings import BreadthFirst, DepthFirst, Random
from scrapy_focus.policies.tagpath.offline import TagPathOffline
from scrapy_focus.policies.tagpath.policy import TagPath
from scrapy_focus.policies.treeq.policy import TreeQ
from scrapy_focus.topic.about import AboutTopic
from tests.finders.aboutsite import ABOUT, site_pages
from tests.finders.aboutwords import AboutWords, stand_in
from tests.made import EachAgain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scrapy_focus import Link, Outcome

sys.path.insert(0, str(Path(__file__).parents[2] / "example_project"))
from scrapy_focus.finders.files.spider import DatasetsSpider

BUDGET = 300
_FEW, _VISITS = 60, 400  # pages that are fetched again and again, in so many requests
PRIVATE = "/private/"  # what robots.txt of the portal forbids
SLOWLY = partial(pytest.param, marks=pytest.mark.slow)  # other policies, and other parameters of one
LIVE = {
    "FOCUS_MAX_INFLIGHT": 1,  # and whatever Scrapy allows
    "ROBOTSTXT_OBEY": True,
    "RETRY_PRIORITY_ADJUST": 0,
    "COOKIES_ENABLED": False,
    "LOG_LEVEL": "INFO",
}


class Odd:
    """The portal with typical problems: a calendar that ends, servers that fail, pages that redirect visitors."""

    def __init__(self) -> None:
        self.portal = StatisticsPortal(pages=200, seed=3)

    def fetch(self, path: str) -> Page:
        """Answer as the portal does, but for some paths."""
        odd = sum(path.encode()) % 41
        if "/calendar/" in path and "2024-0" not in path:
            return Page.of(b"no such month", status=404, mime="text/plain")
        if "/news/" in path and odd == 1:
            return Page.of(b"try again", status=503, mime="text/plain")
        if "/news/" in path and odd == 2:
            return Page.of(b"", status=302, location="/news")
        if "/news/" in path and odd == 3:
            return Page.of(b"", status=302, location="https://elsewhere.example/")
        if "/news/" in path and odd == 4:
            return Page.of(b'<html><head><meta http-equiv="refresh" content="0; url=/about?moved"></head></html>')
        if "/news/" in path and odd in (5, 6, 7):
            return Page.of(b"gone", status=410 if odd == 5 else 404, mime="text/plain")
        return self.portal.fetch(path)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SiteServer, RecordedSite]]:
    """A server, and a recording of all its answers."""
    with SiteServer(Odd()) as server:
        path = tmp_path_factory.mktemp("parity") / "odd.sqlite"
        with SiteWriter(path, roots=[server.url], bodies=True, source="test") as writer:
            for url in writer.missing():
                where = "/" + url.removeprefix(server.url)
                if PRIVATE in where:
                    writer.add(Answer(url=url, error="ignored"))
                    continue
                page = server.site.fetch(where)
                headers = {"Content-Type": page.mime, "Content-Length": str(page.size)}
                if page.location is not None:
                    headers["Location"] = page.location
                writer.add(Answer(url=url, status=page.status, headers=headers, body=page.body))
            assert writer.finish().missing == 0
        yield server, RecordedSite(path)


def live(
    server: SiteServer, tmp_path: Path, policy: type[Policy], params: dict[str, Any], about: str = "", **more: Any
) -> list[tuple[str, str]]:
    """Crawl over HTTP; return method and URL of each request, as the server saw them."""
    log = tmp_path / "decisions.jsonl"
    settings = {"FOCUS_POLICY": policy, "FOCUS_POLICY_PARAMS": params, "FOCUS_SEED": 5, "FOCUS_LOG": str(log), **more}
    server.log.clear()
    args = {"root": server.url, "budget": str(BUDGET), "out": str(tmp_path / "found"), "about": about}
    crawled = crawl(DatasetsSpider, {**LIVE, **settings}, addon=True, **args)
    assert not crawled.errors
    return [(each.method, each.path) for each in server.log if each.path != "/robots.txt"]


@pytest.mark.parametrize(
    ("policy", "params"),
    [
        SLOWLY(BreadthFirst, {}),
        SLOWLY(DepthFirst, {}),
        SLOWLY(Random, {}),
        (TagPath, {}),
        SLOWLY(TagPath, {"accounting": "full", "alpha": 0.3, "theta": 0.5}),
        SLOWLY(TagPath, {"probe": False}),
        SLOWLY(Focused, {}),
        SLOWLY(TagPathOffline, {"warmup": 100}),
        SLOWLY(BranchingBandit, {}),
        SLOWLY(BranchingBandit, {"words": ["data"], "horizon": 1, "noise": 0.5, "explore": 0.3, "theta": 0.6}),
        SLOWLY(BranchingBandit, {"unit": "bytes"}),
        SLOWLY(Importance, {"outside": False}),  # a recording does not tell how many links lead elsewhere
        SLOWLY(Importance, {"by": {"pagerank": 1, "location": 0.2}, "epsilon": 0.01, "outside": False}),
        SLOWLY(Importance, {"by": "similarity", "query": "tourism prices statistics"}),
        SLOWLY(HotQueue, {"words": ["publication", "data"], "base": "backlinks"}),
        SLOWLY(EachAgain, {"every": 0.0, "times": 2}),
        SLOWLY(HostBandit, {"arm": "section"}),
        SLOWLY(HostBandit, {"arm": "section", "preset": "cikm-2014", "score": "thompson x best", "explore": 0.3}),
    ],
)
def test_live_and_simulated_crawls_are_the_same(
    recorded: tuple[SiteServer, RecordedSite], tmp_path: Path, policy: type[Policy], params: dict[str, Any]
) -> None:
    """HEADs, redirects and retries included; the live crawl spends one request more, on robots.txt."""
    check_same(recorded, tmp_path, policy, params)


@pytest.mark.slow
def test_one_concurrent_request_will_do(recorded: tuple[SiteServer, RecordedSite], tmp_path: Path) -> None:
    """For a policy that learns: the page before is learned when the next one is chosen."""
    check_same(recorded, tmp_path, BranchingBandit, {}, FOCUS_MAX_INFLIGHT=0, CONCURRENT_REQUESTS=1)


def test_crawls_for_files_on_a_topic_are_the_same(
    recorded: tuple[SiteServer, RecordedSite], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both see the same links, with their texts, and the titles of the same pages; rewards are graded."""
    server, site = recorded
    monkeypatch.setitem(sys.modules, "scrapy_focus.topic.about", stand_in())
    about = "prices data tourism"
    seen = live(server, tmp_path, BreadthFirst, {}, about=about)
    goal = FilesGoal(stored=True, relevance=AboutWords(about))
    harvest = simulate(BreadthFirst(), goal, site, budget=BUDGET - 1, seed=5)
    assert seen == [("GET", "/" + site.urls[page].removeprefix(server.url)) for page in harvest.pages[1:]]
    events = list(read_log(tmp_path / "decisions.jsonl"))
    rewards = [event["reward"] for event in events if event["event"] == "outcome" and event["reward"]]
    assert harvest.found[-1] == pytest.approx(sum(rewards))
    assert {round(3 * reward) for reward in rewards} >= {1, 2}
    assert harvest.exhaustive.worth > harvest.found[-1]


def test_crawls_for_files_about_a_sentence_are_the_same(
    recorded: tuple[SiteServer, RecordedSite], tmp_path: Path
) -> None:
    """The default policy reads the same relevance of links, and learns from the same graded rewards."""
    server, site = recorded
    about = "tourism, hotels and travel"
    seen = live(server, tmp_path, BranchingBandit, {}, about=about)
    goal = FilesGoal(stored=True, relevance=AboutTopic(about))
    harvest = simulate(BranchingBandit(), goal, site, budget=BUDGET - 1, seed=5)
    assert seen == [("GET", "/" + site.urls[page].removeprefix(server.url)) for page in harvest.pages[1:]]
    events = list(read_log(tmp_path / "decisions.jsonl"))
    rewards = [event["reward"] for event in events if event["event"] == "outcome" and event["reward"]]
    assert harvest.found[-1] == pytest.approx(sum(rewards))
    assert len({*rewards}) > 10


@pytest.mark.parametrize("policy", [TreeQ, BestFirst])
def test_crawls_for_pages_about_a_sentence_are_the_same(tmp_path: Path, policy: type[Policy]) -> None:
    """Both judge the same texts of pages and links, and learn from them at the same instants."""
    pages = site_pages(60)
    with MockSite(pages=pages) as server:
        with SiteWriter(tmp_path / "site.sqlite", roots=[server.url("/")], bodies=True, source="test") as writer:
            for path, text in pages.items():
                headers = {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(text.encode()))}
                writer.add(Answer(url=server.url(path), status=200, headers=headers, body=text.encode()))
            assert writer.finish().missing == 0
        settings = {**LIVE, "FOCUS_POLICY": policy, "FOCUS_SEED": 5, "FOCUS_ABOUT": ABOUT, "ROBOTSTXT_OBEY": False}
        crawled = crawl(Follower, settings, addon=True, seeds=[server.url("/")])
    assert crawled.errors == {}
    goal = TopicGoal(AboutTopic(ABOUT))
    site = RecordedSite(tmp_path / "site.sqlite")
    harvest = simulate(policy(), goal, site, budget=len(pages), seed=5)
    assert server.paths == ["/" + site.urls[page].split("/", 3)[3] for page in harvest.pages[1:]]
    assert len(server.paths) == len(pages) == 121
    assert crawled.stats["focus/reward"] == harvest.found[-1] > 0
    live = crawled.scheduler.config.goal.relevance
    assert (live.refits, live.frequency) == (goal.relevance.refits, goal.relevance.frequency)
    assert live.refits == 3
    assert (live.score([*pages.values()]) == goal.relevance.score([*pages.values()])).all()


def check_same(
    recorded: tuple[SiteServer, RecordedSite],
    tmp_path: Path,
    policy: type[Policy],
    params: dict[str, Any],
    **settings: Any,
) -> None:
    """Fail unless a live crawl and a simulated one make the same requests."""
    server, site = recorded
    seen = live(server, tmp_path, policy, params, **settings)
    goal = FilesGoal(stored=True)
    harvest = simulate(policy(**params), goal, site, budget=BUDGET - 1, seed=5)
    urls = ["/" + site.urls[page].removeprefix(server.url) for page in harvest.pages[1:]]
    methods = ["HEAD" if head else "GET" for head in harvest.heads[1:]]
    simulated = list(zip(methods, urls, strict=True))
    different = next((i for i, pair in enumerate(zip(seen, simulated, strict=False)) if pair[0] != pair[1]), None)
    assert different is None, (different, seen[different - 2 : different + 3], simulated[different - 2 : different + 3])
    assert len(seen) == len(simulated) == BUDGET - 1
    events = list(read_log(tmp_path / "decisions.jsonl"))
    released = {event["id"] for event in events if event["event"] == "release"}  # unsent, where an answer is retried
    picked = [event["url"] for event in events if event["event"] == "pick" and event["id"] not in released]
    assert picked == harvest.asked
    assert sum(event["reward"] for event in events if event["event"] == "outcome" and event["reward"]) >= 10
    assert harvest.found[-1] >= 10


class EachNoted(EachAgain):
    """An :class:`EachAgain` that revisits failures, too, and notes the changes that it learns."""

    def __init__(self, *, every: float = 0.0) -> None:
        super().__init__(every=every)
        self.noted: list[tuple[Any, ...]] = []

    def learn(self, outcome: Outcome) -> None:
        super().learn(outcome)
        status = 200 if outcome.changed is False else outcome.status  # live, a check brings the whole page
        self.noted.append((
            "/" + outcome.pick.url.split("/", 3)[3], status, outcome.changed, outcome.error, outcome.reward,
            outcome.mime, outcome.once, outcome.max_age,
        ))  # fmt: skip

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        placements = super().place(links, source)
        return [place if len(self.visits) < _FEW else None for place in placements]

    def again(self, outcome: Outcome) -> Placement | None:
        return Placement(0, -1e9 * self.visits[outcome.pick.key], after=self.now + self.every)


@pytest.mark.slow
@pytest.mark.parametrize("validators", [True, SLOWLY(False)])
def test_visits_are_the_same_live_and_simulated(
    recorded: tuple[SiteServer, RecordedSite], tmp_path: Path, validators: bool
) -> None:
    """Changed, unchanged and gone pages are the same; an unchanged page earns nothing in either."""
    server, site = recorded
    log = tmp_path / "decisions.jsonl"
    settings = {"FOCUS_POLICY": EachNoted, "FOCUS_SEED": 5, "FOCUS_LOG": str(log), **LIVE}
    server.log.clear()
    server.validators = validators
    args = {"root": server.url, "budget": str(_VISITS), "out": str(tmp_path / "found"), "sitemaps": "no"}
    crawled = crawl(DatasetsSpider, settings, addon=True, **args)
    server.validators = False
    policy = EachNoted()
    harvest = simulate(policy, FilesGoal(stored=True), site, budget=_VISITS - 1, seed=5)
    assert not crawled.errors
    assert crawled.policy.noted == policy.noted
    assert [each.path for each in server.log if each.path != "/robots.txt"] == [
        "/" + site.urls[page].removeprefix(server.url) for page in harvest.pages[1:]
    ]
    assert {noted[2] for noted in policy.noted} == {None, False}
    assert any(noted[6] for noted in policy.noted), "something is gone"
    assert (304 in {each.status for each in server.log}) == validators
    assert crawled.stats["focus/reward"] == harvest.found[-1] > 0
    names = ("outcome/unchanged", "outcome/ok", "outcome/http_error")
    assert [crawled.stats[f"focus/{name}"] for name in names] == [harvest.counts[name] for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("policy", [BreadthFirst, BranchingBandit])
def test_with_few_waiting_links_both_are_the_same(
    recorded: tuple[SiteServer, RecordedSite], tmp_path: Path, policy: type[Policy]
) -> None:
    """The same links are given up live and in a simulation, by rank and at random."""
    server, site = recorded
    seen = live(server, tmp_path, policy, {}, FOCUS_MOST_WAITING=80)
    harvest = simulate(policy(), FilesGoal(stored=True), site, budget=BUDGET - 1, seed=5, most_waiting=80)
    paths = ["/" + site.urls[page].removeprefix(server.url) for page in harvest.pages[1:]]
    assert [path for _, path in seen] == paths
    assert harvest.counts["link/dropped"] > 50


@pytest.mark.slow
def test_the_default_policy_is_the_same_live_and_simulated(
    recorded: tuple[SiteServer, RecordedSite], tmp_path: Path
) -> None:
    """Without a chosen policy, the add-on uses BranchingBandit, which knows the wanted files."""
    server, site = recorded
    server.log.clear()
    args = {"root": server.url, "budget": str(BUDGET), "out": str(tmp_path / "found")}
    crawled = crawl(DatasetsSpider, {**LIVE, "FOCUS_SEED": 7}, addon=True, **args)
    policy = crawled.scheduler.crawl.policy
    goal = FilesGoal(stored=True)
    assert type(policy) is BranchingBandit
    assert policy.looks_for == goal.types
    harvest = simulate(BranchingBandit(), goal, site, budget=BUDGET - 1, seed=7)
    paths = ["/" + site.urls[page].removeprefix(server.url) for page in harvest.pages[1:]]
    assert [each.path for each in server.log if each.path != "/robots.txt"] == paths
    assert {each.method for each in server.log} == {"GET"}
    assert crawled.stats["focus/reward"] == harvest.found[-1] >= 10
