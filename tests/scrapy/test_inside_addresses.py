"""With ``FOCUS_PUBLIC_ONLY`` no stranger makes a crawl ask this machine, its link or its private network."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, REACTOR, Crawled, Follower, SomeHeadsFirst, crawl
from mocksite import MockSite

from scrapy_focus.downloadermiddlewares import PublicOnlyMiddleware
from scrapy_focus.web.addresses import network_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from ipaddress import IPv4Address, IPv6Address

    from scrapy_focus.web.addresses import Network

sys.path.insert(0, str(Path(__file__).parents[2] / "example_project"))

OUTSIDE = "127.0.0.2"  # represents the Internet: a subclass treats it as public


class Judge(PublicOnlyMiddleware):
    """Takes one address on this machine for a public one."""

    def network(self, address: IPv4Address | IPv6Address) -> Network:
        return "public" if str(address) == OUTSIDE else network_of(address)


SETTINGS: dict[str, Any] = {
    "FOCUS_PUBLIC_ONLY": True,
    "DOWNLOADER_MIDDLEWARES": {PublicOnlyMiddleware: None, Judge: 940},
    "ROBOTSTXT_OBEY": True,
    "RETRY_TIMES": 0,
}


@pytest.fixture
def outside() -> Iterator[MockSite]:
    with MockSite(OUTSIDE) as running:
        yield running


def run(seeds: list[str], **settings: Any) -> Crawled:
    """Crawl with the add-on."""
    return crawl(Follower, {**SETTINGS, **settings}, addon=True, seeds=seeds)


def spellings(port: int) -> list[str]:
    """Return URLs of this machine, in many ways."""
    hosts = [
        "127.0.0.1", "localhost", "LOCALHOST.", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0.0.0.0", "[::1]",
        "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "user:pw@127.0.0.1",
    ]  # fmt: skip
    return [f"http://{host}:{port}/inside/{i}" for i, host in enumerate(hosts)]


@pytest.mark.reactor
@pytest.mark.parametrize("heads", [False, True])
def test_links_and_redirects_of_strangers_stay_outside(site: MockSite, outside: MockSite, heads: bool) -> None:
    """Nothing at all is asked of an inside server: no page, no redirect, no robots.txt, no HEAD."""
    links = spellings(site.port)
    redirects = [outside.url(f"/redirect?to={link}") for link in links]
    outside.pages["/"] = "".join(f'<a href="{link}">x</a>' for link in [*links, *redirects, "/ok"])
    more = {"FOCUS_POLICY": SomeHeadsFirst, "FOCUS_POLICY_PARAMS": {"modulus": 1}} if heads else {}
    result = run([outside.url("/")], **more)
    assert site.log == []
    assert "/ok" in outside.paths
    assert result.stats["focus/address/inside"] >= len(links)
    assert result.errors == {}
    assert len(result.logged("Not requested: ")) == 3


@pytest.mark.reactor
@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_nothing_is_refused_where_nobody_asked_for_it(site: MockSite, outside: MockSite, addon: bool) -> None:
    """A project that does not set it crawls wherever its links lead."""
    outside.pages["/"] = f'<a href="{site.url("/ok")}">x</a>'
    result = crawl(Follower, {}, addon=addon, seeds=[outside.url("/")])
    assert site.paths == ["/ok"]
    assert "focus/address/inside" not in result.stats


def test_one_line_is_enough(site: MockSite) -> None:
    """With the scheduler alone the setting holds, too."""
    crawl(Unguarded, {"FOCUS_PUBLIC_ONLY": False}, site=site)
    assert site.paths == ["/ok"]
    result = crawl(Unguarded, {"FOCUS_PUBLIC_ONLY": True}, site=site)
    assert site.paths == ["/ok"]
    assert result.stats["focus/address/inside"] == 1


class Unguarded(Follower):
    """Follows a link to a server on this machine, as if from a public start page."""

    def __init__(self, site: MockSite, **kwargs: Any) -> None:
        super().__init__(seeds=["data:text/html,<p>"], **kwargs)
        self.site = site

    def parse(self, response: Any) -> Iterator[Any]:
        if response.url.startswith("data:"):
            yield response.request.replace(url=self.site.url("/ok"), meta={})


@pytest.mark.reactor
def test_a_seed_of_the_same_network_allows_it(site: MockSite, outside: MockSite) -> None:
    """Who starts on this machine may go about it, with robots.txt; not to the services of the link."""
    site.pages["/"] = f'<a href="http://localhost:{site.port}/ok">x</a><a href="http://169.254.169.254/latest">y</a>'
    result = run([outside.url("/"), site.url("/")])
    assert [path for _, path in site.asked] == ["/robots.txt", "/", "/robots.txt", "/ok"]
    assert result.stats["focus/address/inside"] >= 1
    assert result.outcomes["ignored"] == 1


@pytest.mark.reactor
def test_a_redirect_of_a_seed_is_no_seed(site: MockSite, outside: MockSite) -> None:
    """The redirect target of a start page is not the user's choice, though Scrapy marks it as a start request."""
    run([outside.url(f"/redirect?to={site.url('/ok')}")])
    assert site.log == []


@pytest.mark.parametrize("second", ["public", "inside"])
def test_a_name_that_changes(site: MockSite, outside: MockSite, monkeypatch: pytest.MonkeyPatch, second: str) -> None:
    """A start page's name that changes to an inside address is refused; so is a link's name that changes in between.

    A response that came from there is dropped.
    """
    if REACTOR:
        pytest.skip("with a reactor names come from its resolver")
    asked: list[str] = []
    system = socket.getaddrinfo

    def changing(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host == "changes.test":
            asked.append(host)
            limit = 1 if second == "inside" else 3
            host = OUTSIDE if len(asked) <= limit else "127.0.0.1"
        return system(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", changing)
    outside.pages["/"] = f'<a href="http://changes.test:{site.port}/ok">x</a>'
    result = run([outside.url("/"), f"http://changes.test:{outside.port}/ok?0"], ROBOTSTXT_OBEY=False)
    assert {item["url"] for item in result.items} <= {outside.url("/"), f"http://changes.test:{outside.port}/ok?0"}
    assert not any(str(site.port) in item["url"] for item in result.items)
    assert site.paths == ([] if second == "inside" else ["/ok"])


@pytest.mark.reactor
def test_a_proxy_is_asked_for_names_and_not_for_inside_addresses(site: MockSite) -> None:
    """A proxy on this machine is used; a name that only it knows is left to it, an inside address in a URL is not."""
    names = ["http://only.the.proxy.knows.test/ok", "http://127.0.0.1:1/a", "http://10.0.0.1/b", "http://2130706433/c"]
    outside = "http://start.test/"
    for path in (outside, names[0]):
        site.pages[path] = "".join(f'<a href="{name}">x</a>' for name in names)
    result = crawl(Proxied, {**SETTINGS, "ROBOTSTXT_OBEY": False}, addon=True, seeds=[outside], proxy=site.url(""))
    assert sorted(site.paths) == sorted([outside, names[0]])
    assert result.stats["focus/address/inside"] == 3


class Proxied(Follower):
    """Sends everything through a proxy."""

    def __init__(self, proxy: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.proxy = proxy

    async def start(self) -> Any:
        async for request in super().start():
            yield request.replace(meta={"proxy": self.proxy})

    def parse(self, response: Any) -> Iterator[Any]:
        for each in super().parse(response):
            yield each.replace(meta={"proxy": self.proxy}) if hasattr(each, "meta") else each


def test_a_resumed_crawl_remembers_where_it_began(site: MockSite, tmp_path: Path) -> None:
    """Its start pages are not asked for again, and what they allow is."""
    site.pages["/"] = "".join(f'<a href="/ok?{i}">x</a>' for i in range(9))
    settings = {"JOBDIR": str(tmp_path), "CLOSESPIDER_PAGECOUNT": 3, "CONCURRENT_REQUESTS": 1, "ROBOTSTXT_OBEY": False}
    for _ in range(2):
        run([site.url("/")], FOCUS_POLICY=BREADTH_FIRST, **settings)
        settings["CLOSESPIDER_PAGECOUNT"] = 0
    assert sorted(site.paths) == sorted(["/", *(f"/ok?{i}" for i in range(9))])


def test_our_spiders_ask_for_it(site: MockSite, outside: MockSite, tmp_path: Path) -> None:
    """The topic spider, with the settings of its project, does not go inside from outside pages."""
    from focused import settings as project

    from scrapy_focus.finders.topic.spider import TopicSpider

    outside.pages["/"] = f'<a href="{site.url("/ok")}">bees</a><a href="/redirect?to={site.url("/ok?2")}">bees</a>'
    own = {name: getattr(project, name) for name in dir(project) if name.isupper()}
    judged = {
        **SETTINGS["DOWNLOADER_MIDDLEWARES"],
        "scrapy_focus.finders.kit.spiders.middlewares.RedirectsAreLinks": 610,
    }
    own |= {"DOWNLOADER_MIDDLEWARES": judged, "DOWNLOAD_DELAY": 0}
    spider = type(
        "Topic", (TopicSpider,), {"custom_settings": {**TopicSpider.custom_settings, "DOWNLOADER_MIDDLEWARES": judged}}
    )
    result = crawl(spider, own, addon=True, seeds=outside.url("/"), keywords="bees", out=str(tmp_path / "out.jsonl"))
    assert site.log == []
    assert result.stats["focus/address/inside"] >= 2


def test_a_recording_asks_no_inside_sub_domain(site: MockSite, outside: MockSite, tmp_path: Path) -> None:
    """The recorder, which visits all sub-domains of a site, skips inside ones; its own roots may be inside."""
    from scrapy_focus.lab.recordings.writer import SiteWriter
    from scrapy_focus.lab.spiders.recorder import RecordSpider

    outside.pages["/"] = f'<a href="{site.url("/ok")}">x</a><a href="/ok">y</a>'
    settings = {**SETTINGS, "SCHEDULER": "scrapy.core.scheduler.Scheduler"}
    for root, asked in ((outside.url("/"), []), (site.url("/ok"), ["/ok"])):
        with SiteWriter(tmp_path / f"{len(asked)}.sqlite", roots=[root]) as writer:
            writer._domains = ("127.0.0.1", "127.0.0.2")  # as if they were one site
            crawl(RecordSpider, settings, writer=writer)
        assert site.paths == asked
    assert outside.paths == ["/", "/ok"]
