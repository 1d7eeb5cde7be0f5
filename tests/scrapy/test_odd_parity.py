"""A simulated crawl of a failing site ends each pick like a live one, with the same requests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from crawls import STOCK, crawl
from oddsite import LARGE, LINKS, OddSite

from scrapy_focus import EventLog, FilesGoal, Placement, Policy
from scrapy_focus.core.log import read_log
from scrapy_focus.core.types import State
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.writer import SiteWriter
from scrapy_focus.lab.replay.counterfactual import counterfactual
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.spiders.recorder import RecordSpider
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.orderings import BreadthFirst
from scrapy_focus.policies.tagpath.policy import TagPath

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from mocksite import Answer

    from scrapy_focus import Link, Outcome, Pick

sys.path.insert(0, str(Path(__file__).parents[2] / "example_project"))
from scrapy_focus.finders.files.spider import DatasetsSpider

IMAGE = {"Content-Type": "image/png"}
REFRESH = b'<html><meta http-equiv="refresh" content="0;url=/after/busy"></html>'
CYRILLIC = """<p><a href='/ok?name=список&first'>1</a><a href='/ok?name=список&second#там'>2</a><a href='\\ok?\\'>3</a>
    <a href='/ok?name=&#9731;'>4</a><a href='///me:pw@localhost:1/'>5</a><a rel=nofollow href='/ok?name=список'>6</a>"""
ODDER: dict[str, Answer] = {
    "/more": (200, {"Content-Type": "text/html"}, b""),
    "/busy": (503, {"Content-Type": "text/html"}, REFRESH),  # a refresh goes before a retry
    "/after/busy": (200, {"Content-Type": "text/html"}, b"<p>at last</p>"),
    "/image/moved": (302, {**IMAGE, "Location": "/image.png"}, b""),  # ignored where it is linked, not where it leads
    "/image.png": (200, IMAGE, b"P" * 3000),
    "/image/busy": (503, IMAGE, b"P" * 3000),
    "/image/large/moved": (302, {**IMAGE, "Location": "/ok?never", "Content-Length": str(LARGE)}, b"P"),
    "/image/gone": (404, IMAGE, b"P"),
    "/mail": (302, {"Location": "ftp://elsewhere.example/"}, b""),
    "/to/forbidden": (302, {"Location": "/forbidden?moved"}, b""),
    "/to/reset": (302, {"Location": "/reset?moved"}, b""),
    "/to/self": (302, {"Location": "/to/self"}, b""),
    "/to/data.csv": (302, {"Location": "/data.csv"}, b""),
    "/data.csv": (200, {"Content-Type": "text/csv"}, b"a,b"),
    "/other.csv": (200, {"Content-Type": "text/csv"}, b"c,d"),
    "/copy.csv": (200, {"Content-Type": "text/csv"}, b"a,b"),
    "/cyrillic": (200, {"Content-Type": "text/html; charset=windows-1251"}, CYRILLIC.encode("cp1251")),
    "/utf-16": (200, {"Content-Type": "text/html; charset=utf-16"}, CYRILLIC.encode("utf-16")),
    **{f"/chain/{i}": (302, {"Location": f"/chain/{i + 1}"}, b"") for i in range(1, 25)},
    **{f"/row/{i}": (302, {"Location": f"/row/{i + 1}"}, b"") for i in range(1, 21)},
    "/row/21": (200, {"Content-Type": "text/html"}, b'<a href="/after/row">on</a>'),
}
MORE = [path for path in ODDER if not path.startswith(("/chain/", "/row/")) and path != "/data.csv"]
#: What fails in a way that a recording of the GET cannot tell of a HEAD.
BREAKING = ("/truncated", "/badgzip")


class OdderSite(OddSite):
    """With answers that combine two oddities."""

    def _odd(self) -> dict[str, Answer]:
        hrefs = [*MORE, *LINKS, "/chain/1", "/row/1", "/row/2", "http://nowhere.127.0.0.1/"]
        links = "".join(f'<a href="{href}">on</a>' for href in hrefs)
        return {**super()._odd(), **ODDER, "/": (200, {"Content-Type": "text/html"}, links.encode())}


class HeadFirst(Policy):
    """Looks at nearly everything with a HEAD, and fetches it at once if that was not refused."""

    reads_page: ClassVar[bool] = False

    def __init__(self) -> None:
        self._found = 0.0

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        if source is not None and links[0].state == State.PROBED:
            return [None if source.error == "ignored" else Placement(0, 1.0)]
        self._found -= len(links)
        return [
            Placement(0, self._found - i, method="GET" if link.url.endswith(BREAKING) else "HEAD")
            for i, link in enumerate(links)
        ]

    def select(self, busy: Collection[str]) -> Pick | None:
        return self.frontier.pop(0, busy)


@pytest.fixture(scope="module")
def server() -> Iterator[OdderSite]:
    with OdderSite() as site:
        yield site


@pytest.fixture(scope="module")
def recorded(server: OdderSite, tmp_path_factory: pytest.TempPathFactory) -> RecordedSite:
    """What the recorder makes of the site."""
    path = tmp_path_factory.mktemp("odd") / "odd.sqlite"
    settings = {"SCHEDULER": STOCK, "ROBOTSTXT_OBEY": True, "COOKIES_ENABLED": False, "RETRY_TIMES": 0}
    with SiteWriter(path, roots=[server.url("/")]) as writer:
        crawl(RecordSpider, settings, writer=writer)
        assert not writer.finish().missing
    return RecordedSite(path)


def live(server: OdderSite, log: Path, policy: type[Policy], **settings: Any) -> list[tuple[str, str]]:
    """Crawl the site with one request in flight; return method and path of each request."""
    one = {
        "CONCURRENT_REQUESTS": 1, "FOCUS_MAX_INFLIGHT": 1, "ROBOTSTXT_OBEY": True, "RETRY_PRIORITY_ADJUST": 0,
        "COOKIES_ENABLED": False, "FOCUS_POLICY": policy, "FOCUS_LOG": str(log), "FOCUS_SEED": 0,
    }  # fmt: skip
    start = len(server.log)
    args = {"root": server.url("/"), "out": str(log.parent / "found")}
    crawled = crawl(DatasetsSpider, {**one, **settings}, addon=True, **args)
    assert not crawled.errors
    return server.asked[start:]


def ends(log: Path) -> list[tuple[str, str, str, float]]:
    """Return how each pick of a decision log ended: method, URL, error and reward."""
    picks: dict[int, Any] = {}
    found = []
    for event in read_log(log):
        if event["event"] == "pick":
            picks[event["id"]] = event
        else:
            pick = picks.pop(event["id"])
            found.append((pick["method"], pick["url"], event.get("error", "released"), event.get("reward", 0.0)))
    assert not picks
    return found


def comparable(asked: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Remove requests that Scrapy sends by itself, and those that its HTTP library repeats."""
    return [each for each in asked if not each[1].startswith(("/robots.txt", "/reset"))]


@pytest.mark.few(1)
@pytest.mark.parametrize("budget", [None, 12, 37, 61])
@pytest.mark.parametrize("policy", [BreadthFirst, HeadFirst, TagPath, BranchingBandit])
def test_live_and_simulated_picks_end_alike(
    server: OdderSite, recorded: RecordedSite, tmp_path: Path, policy: type[Policy], budget: int | None
) -> None:
    """To the end, and also with a budget that ends in the middle of a redirect; robots.txt takes one request."""
    goal, params = FilesGoal(stored=True), {"probe": False} if policy is TagPath else {}
    settings = {} if budget is None else {"FOCUS_BUDGET_REQUESTS": budget + 1}
    asked = live(server, tmp_path / "live.jsonl", policy, FOCUS_POLICY_PARAMS=params, **settings)
    log = EventLog(tmp_path / "simulated.jsonl")
    harvest = simulate(policy(**params), goal, recorded, budget=budget, log=log)
    assert ends(tmp_path / "simulated.jsonl") == ends(tmp_path / "live.jsonl")
    paths = ["/" + recorded.urls[page].removeprefix(server.url("/")) for page in harvest.pages[1:].tolist()]
    methods = ["HEAD" if head else "GET" for head in harvest.heads[1:]]
    assert comparable(list(zip(methods, paths, strict=True))) == comparable(asked)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["live.jsonl", "live.jsonl.gz"])
@pytest.mark.parametrize("policy", [BreadthFirst, HeadFirst, TagPath, BranchingBandit])
def test_the_log_of_a_live_crawl_is_replayed(
    server: OdderSite, recorded: RecordedSite, tmp_path: Path, policy: type[Policy], name: str
) -> None:
    """All of it, including HEADs, with what it found; and another policy gets as many requests."""
    live(server, tmp_path / name, policy, FOCUS_BUDGET_REQUESTS=90)
    answer = counterfactual(tmp_path / name, BreadthFirst(), FilesGoal(stored=True), recorded)
    settled = [end for end in ends(tmp_path / name) if end[2] != "released"]
    assert answer.reproduced == 1
    assert answer.logged.asked == [url for _, url, _, _ in settled]
    assert answer.logged.found[-1] == sum(reward for method, _, _, reward in settled if method == "GET") >= 1
    assert answer.other.requests == answer.logged.requests
    assert answer.coverage == 1


@pytest.mark.slow
def test_the_log_of_a_crawl_with_many_in_flight_is_replayed(
    server: OdderSite, recorded: RecordedSite, tmp_path: Path
) -> None:
    """In the order of its choices, with one in flight and with many."""
    log = tmp_path / "live.jsonl"
    live(server, log, TagPath, CONCURRENT_REQUESTS=16, CONCURRENT_REQUESTS_PER_DOMAIN=16, FOCUS_MAX_INFLIGHT=0)
    for options in ({}, {"concurrency": 8, "latency": 0.1}):
        answer = counterfactual(log, BreadthFirst(), FilesGoal(stored=True), recorded, **options)
        assert answer.reproduced == 1
        assert sorted(answer.logged.asked) == sorted(url for _, url, _, _ in ends(log))
        assert answer.logged.found[-1] == sum(reward for method, _, _, reward in ends(log) if method == "GET") == 2
