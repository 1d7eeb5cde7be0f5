"""Workers join, leave, are refused and lose their leader: nothing is lost, and each reports what is wrong."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from crawls import BREADTH_FIRST, Crawled, Follower, crawl, crawl_all
from mocksite import MockSite, tree_paths
from scrapy.settings import Settings

from scrapy_focus import Addon, ConfigError
from tests.cluster.local import NearEngine
from tests.cluster.workers import fetched, settings_of, share, share_among

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from scrapy.http import Response


def all_pages(sites: list[MockSite], n: int) -> list[str]:
    return sorted(site.url(path) for site in sites for path in tree_paths(n))


def seeds_of(sites: list[MockSite], n: int) -> list[str]:
    return [site.url(f"/page/0/{n}") for site in sites]


class Unsendable(Follower):
    """Some links carry values that cannot be sent to another process."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield from super().parse(response)
        if response.url.endswith("/page/0/7"):
            yield response.follow("/ok?lambda", callback=lambda _: None)
            yield response.follow("/ok?open", meta={"file": asyncio.Event()})


class SendableLater(Follower):
    """A page has a link that cannot be sent to another process, and later a plain one to the same URL."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield from super().parse(response)
        if response.url.endswith("/page/0/7"):
            yield response.follow("/ok?later", callback=lambda _: None)
        elif response.url.endswith("/page/1/7"):
            yield response.follow("/ok?later")


def test_what_cannot_be_sent_may_come_again(sites: list[MockSite], tmp_path: Path) -> None:
    """It is not known, so that another link to the same page is followed."""
    result = share(SendableLater, tmp_path, seeds=seeds_of(sites, 7))
    assert sorted(fetched(sites)) == sorted([*all_pages(sites, 7), *(site.url("/ok?later") for site in sites)])
    assert result.total("focus/link/unsendable") == len(sites)


def test_what_cannot_be_sent_is_named(sites: list[MockSite], tmp_path: Path) -> None:
    """A request that cannot be sent is skipped with an error that names it and the reason; all else is crawled."""
    result = share(Unsendable, tmp_path, seeds=seeds_of(sites, 7))
    assert sorted(fetched(sites)) == all_pages(sites, 7)
    assert result.total("focus/link/unsendable") == 6
    errors = [record.getMessage() for record in result.workers[0].records if record.levelname == "ERROR"]
    assert {"lambda" in error for error in errors if "ok?lambda" in error} == {True}
    assert {"Event" in error for error in errors if "ok?open" in error} == {True}
    assert all("plain values" in error for error in errors)


class Rude(Follower):
    """A spider whose argument selects the links to follow."""

    def __init__(self, seeds: list[str], depth: int = 3, **kwargs: Any) -> None:
        super().__init__(seeds, **kwargs)
        self.depth = depth


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("settings", "args", "word"),
    [
        ({"FOCUS_BUDGET_REQUESTS": 5}, {}, "FOCUS_BUDGET_REQUESTS"),
        ({"DOWNLOAD_DELAY": 0.01}, {}, "DOWNLOAD_DELAY"),
        ({"FOCUS_POLICY": BREADTH_FIRST}, {}, "policy"),
        ({}, {"depth": 4}, "depth"),
    ],
)
def test_another_crawl_is_refused(
    sites: list[MockSite], tmp_path: Path, settings: dict[str, Any], args: dict[str, Any], word: str
) -> None:
    """A worker with other settings receives the differences and ends with an error; the others continue."""
    given = {"seeds": seeds_of(sites, 15)}
    result = share_among([(Rude, {}, given), (Rude, settings, {**given, **args})], tmp_path)
    assert sorted(fetched(sites)) == all_pages(sites, 15)
    assert [worker.reason for worker in result.workers] == ["finished", "focus_refused"]
    [message] = result.logged("cannot join the crawl")
    assert word in message
    assert result.workers[1].stats["focus/ending"] == "wrong_argument"
    assert not result.workers[1].items


def test_a_setting_on_the_command_line_is_the_same_in_a_file(sites: list[MockSite], tmp_path: Path) -> None:
    """Scrapy has it as text from there, and as a number from a file: both workers take part."""
    given = {"seeds": seeds_of(sites, 7)}
    text = {"DOWNLOAD_DELAY": "0.0", "DEPTH_LIMIT": "9", "FOCUS_BUDGET_REQUESTS": "500", "ROBOTSTXT_OBEY": "False"}
    number = {"DOWNLOAD_DELAY": 0, "DEPTH_LIMIT": 9, "FOCUS_BUDGET_REQUESTS": 500, "ROBOTSTXT_OBEY": False}
    result = share_among([(Follower, text, given), (Follower, number, given)], tmp_path)
    assert [worker.reason for worker in result.workers] == ["finished", "finished"]


class Kept(Follower):
    """A spider that names the file of its results."""

    out = "found"


def test_all_workers_end_as_the_crawl_does(site: MockSite, tmp_path: Path) -> None:
    """Each reports the results and requests of all; then its own, which may be nothing if others had all hosts."""
    result = share(Kept, tmp_path, {"FOCUS_GOAL": "scrapy_focus.ItemsGoal"}, seeds=[site.url("/page/0/15")])
    n_items, n_requests = int(result.crawl.rewards), result.crawl.budget.requests_used
    assert (n_items, n_requests) == (15, len(site.log))
    own = [int(worker.stats.get("focus/reward", 0)) for worker in result.workers]
    assert sorted(own) == [0, 15]
    for worker, n in zip(result.workers, own, strict=True):
        assert worker.stats["focus/ending"] == "found"
        assert worker.stats["focus/ending_sentence"] == (
            f"Done: 15 items found in {n_requests} requests; {n} of them by this worker, in found."
        )


@pytest.mark.slow
def test_the_rate_of_finds_is_that_of_the_last_hundred_requests(site: MockSite, tmp_path: Path) -> None:
    """Each worker shows that of the whole crawl, even on the first look."""
    settings = {"FOCUS_GOAL": "scrapy_focus.ItemsGoal"}
    result = share(Follower, tmp_path, settings, addon=True, seeds=[site.url("/page/0/127")])
    lines = result.logged("Finished (finished): 127 requests, 127 items")
    assert lines
    assert all("per 100 requests: 100.0 now, 100.0 overall" in line for line in lines), lines


def test_each_worker_has_a_web_archive_of_its_own(sites: list[MockSite], tmp_path: Path) -> None:
    """Together they have every answer once, also in one folder."""
    pytest.importorskip("warcio")
    settings = {"FOCUS_WARC": str(tmp_path / "warc")}
    result = share(Follower, tmp_path, settings, addon=True, seeds=seeds_of(sites, 15))
    stored = [gzip.decompress(path.read_bytes()) for path in (tmp_path / "warc").glob("*.warc.gz")]
    assert len(stored) == sum("focus/warc/stored" in worker.stats for worker in result.workers) > 1
    urls = re.findall(rb"WARC-Type: response\r\n.*?WARC-Target-URI: (.*?)\r\n", b"".join(stored), re.DOTALL)
    assert sorted(url.decode() for url in urls) == sorted(site.url(path) for site in sites for _, path in site.asked)


def test_a_leader_needs_a_folder(site: MockSite) -> None:
    """Without JOBDIR nothing starts."""
    settings = {"FOCUS_CLUSTER": "x", "FOCUS_CLUSTER_ENGINE": NearEngine}
    with pytest.raises(ConfigError, match="JOBDIR is not set"):
        crawl_all([(Follower, settings, {"seeds": [site.url("/ok")]})])
    assert not site.log


def test_the_leader_alone_bounds_what_is_out(site: MockSite, tmp_path: Path) -> None:
    """Workers use all their leases, and a limit of their own is an error."""
    result = share(Follower, tmp_path / "1", seeds=[site.url("/page/0/20")])
    assert [worker.scheduler.choices.room for worker in result.workers] == [None, None]
    with pytest.raises(ConfigError, match="does not yet support FOCUS_MOST_OUT"):
        share(Follower, tmp_path / "2", {"FOCUS_MOST_OUT": 4}, seeds=[site.url("/ok")])


def test_workers_of_one_machine_may_begin_at_once(tmp_path: Path) -> None:
    """The add-on makes the folder that Scrapy's own extensions make too, and fail to if another process just did."""
    folder = tmp_path / "jobs" / "1"
    Addon().update_settings(Settings({"FOCUS_CLUSTER": "auto", "JOBDIR": str(folder)}))
    Addon().update_settings(Settings({"FOCUS_CLUSTER": "auto", "JOBDIR": str(folder)}))
    assert folder.is_dir()
    Addon().update_settings(Settings({"JOBDIR": str(tmp_path / "alone")}))
    assert not (tmp_path / "alone").exists()


def test_settings_that_cannot_be_sent_are_named(site: MockSite, tmp_path: Path) -> None:
    """What the leader is made of has to be sent to it."""
    settings = {"FOCUS_GOAL": lambda outcome: outcome.items}
    with pytest.raises(ConfigError, match=r"FOCUS_GOAL is .*lambda.* cannot be sent"):
        share(Follower, tmp_path, settings, seeds=[site.url("/ok")])
    assert not site.log


class Leaves(Follower):
    """Is asked to stop when it has had some pages."""

    def __init__(self, seeds: list[str], after: int = 0, **kwargs: Any) -> None:
        super().__init__(seeds, **kwargs)
        self._after = after
        self._left = False
        self._pages = 0

    def parse(self, response: Response) -> Iterator[Any]:
        yield from super().parse(response)
        self._pages += 1
        if self._pages == self._after and not self._left:
            self._left = True
            asyncio.ensure_future(self.crawler.stop_async())  # noqa: RUF006


def test_who_is_stopped_loses_nothing(sites: list[MockSite], tmp_path: Path) -> None:
    """One worker is interrupted: its leases go to the others, which finish."""
    given = {"seeds": seeds_of(sites, 31)}
    result = share_among([(Leaves, {}, given), (Leaves, {}, {**given, "after": 5})], tmp_path)
    assert sorted(fetched(sites)) == all_pages(sites, 31)
    assert [worker.reason for worker in result.workers] == ["finished", "shutdown"]
    assert Counter(item["url"] for item in result.items) == Counter(all_pages(sites, 31))
    assert result.crawl.budget.requests_used == 93


def test_the_next_start_resumes(sites: list[MockSite], tmp_path: Path) -> None:
    """All workers are interrupted: the next start resumes, with any number of them, and fetches nothing twice."""
    given = {"seeds": seeds_of(sites, 31), "after": 6}
    common = settings_of(tmp_path)
    first = share_among([(Leaves, common, given)] * 2, tmp_path)
    assert first.reasons == {"shutdown"}
    assert len(fetched(sites)) < 93
    second = share_among([(Leaves, common, {"seeds": given["seeds"]})] * 3, tmp_path)
    assert second.leader is not first.leader
    assert sorted(fetched(sites)) == all_pages(sites, 31)
    assert len(first.items) + len(second.items) == second.crawl.rewards == 93


@pytest.mark.few(1)
@pytest.mark.parametrize("is_shared_first", [True, False])
def test_one_process_resumes_what_several_began(
    sites: list[MockSite], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_shared_first: bool
) -> None:
    """And several resume what one began: nothing is fetched twice."""
    monkeypatch.setattr(Crawled, "check", lambda _: None)  # how outcomes ended is counted where that was
    seeds, job = seeds_of(sites, 15), {"JOBDIR": str(tmp_path / "job")}
    for is_shared, budget in ((is_shared_first, 20), (not is_shared_first, 100)):
        settings = {**job, "FOCUS_BUDGET_REQUESTS": budget}
        if is_shared:
            share(Follower, tmp_path, settings, seeds=seeds)
        else:
            crawl(Follower, settings, seeds=seeds)
        assert len(fetched(sites)) == min(budget, 45)
    assert sorted(fetched(sites)) == all_pages(sites, 15)


class Late(Follower):
    """Begins when others are at work already."""

    custom_settings = {"EXTENSIONS": {"tests.cluster.test_worker_ends.Later": 1}}


class Later:
    """Delays the opening of a worker's spider by half a second."""

    @classmethod
    def from_crawler(cls, crawler: Any) -> Later:
        start = crawler.spider.start

        async def later() -> Any:
            await asyncio.sleep(0.4)
            async for each in start():
                yield each

        crawler.spider.start = later
        return cls()


def test_a_worker_may_come_late(tmp_path: Path) -> None:
    """It gets hosts without owner."""
    with MockSite("127.0.0.5", latency=0.02) as first, MockSite("127.0.0.6") as second:
        first.pages["/last"] = f'<a href="{second.url("/page/0/15")}">further</a>'
        given = {"seeds": [first.url("/page/0/31"), first.url("/last")]}
        settings = {"FOCUS_POLICY": BREADTH_FIRST}
        share_among([(Follower, settings, given), (Late, settings, given)], tmp_path)
        assert sorted(fetched([first, second])) == sorted([
            *map(first.url, [*tree_paths(31), "/last"]), *map(second.url, tree_paths(15)),
        ])  # fmt: skip


class Away(NearEngine):
    """Loses its connection for a while, after some pages."""

    calls = 0  # since then
    resets = 0

    async def call(self, method: str, *args: Any) -> Any:
        if self.calls or self.pages() >= 20:
            type(self).calls += 1
        now = self.calls
        if 0 < now < 6:
            raise ConnectionError("nobody answers")
        answer = await super().call(method, *args)
        if 6 <= now < 9:
            raise ConnectionError("the answer is lost")
        return answer

    async def reset(self) -> None:
        type(self).resets += 1


@pytest.mark.slow
def test_the_leader_is_away_for_a_while(sites: list[MockSite], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports of failed calls are sent again, their answers are not used: each page is fetched and counted once."""
    monkeypatch.setattr(Away, "calls", 0)
    monkeypatch.setattr(Away, "resets", 0)
    settings = {"FOCUS_CLUSTER_ENGINE": Away, "FOCUS_BUDGET_REQUESTS": 200, "ROBOTSTXT_OBEY": True}
    result = share(Follower, tmp_path, settings, checks=False, seeds=seeds_of(sites, 31))
    assert sorted(fetched(sites)) == all_pages(sites, 31)
    assert result.crawl.rewards == len(result.items) == 93
    assert result.crawl.budget.requests_used == sum(len(site.log) for site in sites) == 96
    assert result.total("focus/worker/failed_calls") >= 8
    assert result.logged("no answer from the leader")
    assert Away.resets > 0


class Cut(NearEngine):
    """The first worker has no connection for longer than a lease, until the leader drops it; it has leases then."""

    first: ClassVar[Cut | None] = None
    pages_told = 0
    until = 0.0
    is_lost = False

    async def call(self, method: str, *args: Any) -> Any:
        if self.first is None:
            type(self).first = self
        if self is self.first:
            if method == "exchange":
                type(self).pages_told += sum(said[0] == "outcome" for said in args[0].said)
            if self.pages_told >= 10 and not self.until:
                type(self).until = time.monotonic() + 2.5
            if self.until and not self.is_lost:
                leader = self.made[0]
                leader.reap()
                type(self).is_lost = time.monotonic() > self.until and leader.counts["lost_workers"] > 0
                raise ConnectionError("the cable is cut")
        return await super().call(method, *args)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_is_not_heard_of_for_long(
    sites: list[MockSite], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """Others, or the worker itself, fetch its pages once more.

    Its reports about these pages do not count when it returns, but no link is lost.
    """
    monkeypatch.setattr(Cut, "first", None)
    monkeypatch.setattr(Cut, "pages_told", 0)
    monkeypatch.setattr(Cut, "until", 0.0)
    monkeypatch.setattr(Cut, "is_lost", False)
    settings = {"FOCUS_CLUSTER_ENGINE": Cut, "FOCUS_CLUSTER_LEASE": 1, "FOCUS_POLICY": BREADTH_FIRST}
    result = share(Follower, tmp_path, settings, workers=workers, checks=False, seeds=seeds_of(sites, 31))
    assert sorted(set(fetched(sites))) == all_pages(sites, 31)
    assert result.leaders[0].counts["lost_workers"] > 0
    assert result.crawl.rewards == result.crawl.counts["outcomes"] == 93
    assert result.crawl.budget.requests_used >= len(fetched(sites))
    assert {item["url"] for item in result.items} == set(all_pages(sites, 31))


class FailsToClose(NearEngine):
    """Raises when it is closed."""

    async def close(self) -> None:
        raise RuntimeError("it does not close")


def test_an_engine_that_cannot_be_closed_ends_no_crawl_badly(sites: list[MockSite], tmp_path: Path) -> None:
    """It is logged and counted, like any failure."""
    settings = {"FOCUS_CLUSTER_ENGINE": FailsToClose, "FOCUS_POLICY": BREADTH_FIRST}
    result = share(Follower, tmp_path, settings, seeds=seeds_of(sites, 7))
    assert result.reasons == {"finished"}
    assert result.errors == {"close": 2}
    assert sorted(fetched(sites)) == all_pages(sites, 7)


class Silent(NearEngine):
    """Loses its connection after some pages, from a call on that a redirect waits for."""

    is_silent = False

    async def call(self, method: str, *args: Any) -> Any:
        if method == "exchange" and args[0].claims and self.pages() >= 2:
            type(self).is_silent = True
        if self.is_silent:
            raise ConnectionError("nobody answers")
        return await super().call(method, *args)


class Interrupted(Follower):
    """Receives a stop request after the leader is gone."""

    async def start(self) -> AsyncIterator[Any]:
        self._stopping = asyncio.ensure_future(self._stop())
        async for each in super().start():
            yield each

    async def _stop(self) -> None:
        while not Silent.is_silent:
            await asyncio.sleep(0.02)
        await self.crawler.stop_async()


def test_who_waits_for_its_leader_can_be_stopped(
    site: MockSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A redirect waits for an answer that never comes, but a worker still ends when asked to."""
    monkeypatch.setattr(Silent, "is_silent", False)
    monkeypatch.setattr("scrapy_focus.engine.host._STOPPED", 0.2)
    monkeypatch.setattr("scrapy_focus.cluster.conversation._FAREWELL", 0.5)
    seeds = [site.url(f"/redirect?to=/redirect?to=/ok%3F{i}") for i in range(40)]
    settings = {"FOCUS_CLUSTER_ENGINE": Silent, "CONCURRENT_REQUESTS_PER_DOMAIN": 2}
    result = share(Interrupted, tmp_path, settings, workers=1, checks=False, seeds=seeds)
    assert result.reasons == {"shutdown"}
    assert result.logged("could not be reached for")


class Killed(NearEngine):
    """Has its leader killed twice, each time after some pages more."""

    kills = 0

    async def call(self, method: str, *args: Any) -> Any:
        if self.kills < 2 and self.pages() >= (15, 45)[self.kills]:
            type(self).kills += 1
            leader = self.leaders.pop(self.address)
            leader.crawl.job.close()
            raise ConnectionError("killed")
        return await super().call(method, *args)


def test_the_leader_starts_again(sites: list[MockSite], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed leader recovers from its folder; its workers rejoin, and fetch nothing twice."""

    monkeypatch.setattr(Killed, "kills", 0)
    settings = {"FOCUS_CLUSTER_ENGINE": Killed, "FOCUS_BUDGET_REQUESTS": 200, "ROBOTSTXT_OBEY": True}
    result = share(Follower, tmp_path, settings, checks=False, seeds=seeds_of(sites, 31))
    assert len(result.leaders) == 3
    assert sorted(fetched(sites)) == all_pages(sites, 31)
    assert result.crawl.rewards == len(result.items) == 93
    assert result.crawl.budget.requests_used == sum(len(site.log) for site in sites) == 96


def test_each_worker_has_its_feed(sites: list[MockSite], tmp_path: Path) -> None:
    """The name of a worker in the URI of a feed keeps its items apart from those of others."""
    feeds = {str(tmp_path / "items-%(worker)s.jsonl"): {"format": "jsonlines"}}
    result = share(Follower, tmp_path, {"FEEDS": feeds}, seeds=seeds_of(sites, 15))
    files = sorted(tmp_path.glob("items-*.jsonl"))
    assert len(files) == sum(bool(worker.items) for worker in result.workers) > 1
    lines = [json.loads(line)["url"] for file in files for line in file.read_text().splitlines()]
    assert sorted(lines) == all_pages(sites, 15)


def test_stats_are_of_each_worker_and_of_all(sites: list[MockSite], tmp_path: Path) -> None:
    """Each worker counts its own work; the state of the whole crawl is in the stats of all."""
    result = share(Follower, tmp_path, {"ROBOTSTXT_OBEY": True}, seeds=seeds_of(sites, 15))
    for name, n in (("outcome/ok", 45), ("reward", 45), ("requests", 48), ("outcomes", 45)):
        assert result.total(f"focus/{name}") == n, name
    last = max((worker.stats for worker in result.workers), key=lambda stats: stats["focus/cluster/exchanges"])
    assert last["focus/cluster/outcomes"] == last["focus/cluster/reward"] == 45
    assert last["focus/cluster/requests"] == 48
    assert last["focus/waiting"] == last["focus/in_flight"] == 0


def test_a_redirect_that_the_budget_refuses_waits_for_more(site: MockSite, tmp_path: Path) -> None:
    """If the request after a redirect is not granted, the link is queued again, and the next run fetches it."""
    site.pages["/"] = "".join(f'<a href="/redirect?to=/target/{i}">a</a>' for i in range(12))
    site.pages |= {f"/target/{i}": "t" for i in range(12)}
    settings = settings_of(tmp_path, FOCUS_POLICY=BREADTH_FIRST)
    for budget in (8, 100):
        share(Follower, tmp_path, {**settings, "FOCUS_BUDGET_REQUESTS": budget}, seeds=[site.url("/")])
    assert {path for path in site.paths if path.startswith("/target")} == {f"/target/{i}" for i in range(12)}


def test_over_hosts_a_redirect_is_followed_once(sites: list[MockSite], tmp_path: Path) -> None:
    """Redirects to another host, to known and unknown pages: each page is fetched once."""
    for i, site in enumerate(sites):
        other = sites[(i + 1) % 3]
        site.pages["/"] = "".join(
            f'<a href="/redirect?to={other.url(path)}">a</a><a href="{path}">b</a>' for path in ("/ok?known", "/ok?2")
        )
    seeds = [site.url("/") for site in sites]
    share(Follower, tmp_path, {"FOCUS_POLICY": BREADTH_FIRST}, seeds=seeds)
    assert {url: n for url, n in Counter(fetched(sites)).items() if n > 1} == {}
