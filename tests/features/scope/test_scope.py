"""What is out of scope is never requested, whatever leads there."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Follower, SomeHeadsFirst, crawl
from mocksite import MockSite, tree_paths
from scrapy import Request

from scrapy_focus import ConfigError
from scrapy_focus.config import Config
from scrapy_focus.downloadermiddlewares import ScopeMiddleware
from scrapy_focus.engine.host import host_of
from scrapy_focus.features import rows_of
from scrapy_focus.features.scope.record import SCOPE, ScopeRecord
from scrapy_focus.policies.orderings import BreadthFirst
from tests.made import EachAgain

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from scrapy.http import Response

ADDON = pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
ELSEWHERE = "127.0.0.2"
FAST = {"FOCUS_POLICY": BREADTH_FIRST}


def links(*urls: str) -> str:
    """Return a page with links."""
    return "".join(f'<a href="{url}">{url}</a>' for url in urls)


def scoped(stats: dict[str, Any]) -> dict[str, int]:
    """Return the counts of what was out of scope."""
    return {name.rpartition("/")[2]: n for name, n in stats.items() if name.startswith("focus/scope/")}


class AllHeadsFirst(SomeHeadsFirst):
    """Looks at each link with a HEAD first."""

    def __init__(self) -> None:
        super().__init__(modulus=1)


@pytest.mark.both
@pytest.mark.reactor
@ADDON
@pytest.mark.parametrize(("policy", "n_refused"), [(BreadthFirst, 3), (AllHeadsFirst, 3 + 2)])
def test_what_is_excluded_is_never_requested(
    site: MockSite, addon: bool, policy: type[BreadthFirst], n_refused: int
) -> None:
    """Neither as a link nor behind a redirect or a meta refresh, with GET and with HEAD; each URL is counted once."""
    site.pages["/"] = links(
        "/logout", "/logout#top", "/redirect?to=/logout%3F1", "/refresh?to=/logout%3F2", "/redirect?to=/ok", "/a",
        "/redirect?to=/redirect%3Fto=/log%6Fut%3F3",
    )  # fmt: skip
    site.pages["/a"] = links("/logout", "/LOGOUT", "/ok?next=/x")
    settings = {"FOCUS_EXCLUDE": ["(?i)^[^?]*/log(o|%6F)ut"], "FOCUS_POLICY": policy}
    result = crawl(Follower, settings, addon=addon, seeds=[site.url("/")])
    assert not [seen for seen in site.log if seen.path.lower().startswith("/log")]
    assert {"/ok", "/a", "/ok?next=/x"} <= set(site.paths)
    assert scoped(result.stats) == {"excluded": 5}
    assert result.outcomes["out_of_scope"] == n_refused
    assert result.errors == {}
    assert result.reason == "finished"


class RedirectingHeads(MockSite):
    """Redirects HEADs only."""

    def respond(self, seen: Any) -> Any:
        if seen.method == "HEAD" and seen.path == "/head":
            return 302, {"Location": "/out"}, b""
        return super().respond(seen)


@ADDON
def test_redirects_of_heads(addon: bool) -> None:
    """A HEAD obeys all rules, not only exclusions."""
    with RedirectingHeads(pages={"/in/": links("/head?in", "/head")}) as site:
        settings = {"FOCUS_INCLUDE": ["/in/", "head"], "FOCUS_POLICY": AllHeadsFirst}
        result = crawl(Follower, settings, addon=addon, seeds=[site.url("/in/")])
        assert {path for _, path in site.asked} == {"/in/", "/head", "/head?in"}
        assert scoped(result.stats) == {"not_included": 1}
        assert result.outcomes["out_of_scope"] == 1


def test_a_target_that_was_refused_stays_unknown(site: MockSite) -> None:
    """It is not marked as seen when a redirect leads there."""
    site.pages["/"] = links("/redirect?to=/out")
    result = crawl(Follower, FAST | {"FOCUS_EXCLUDE": "^[^?]*/out$"}, seeds=[site.url("/")])
    assert site.paths == ["/", "/redirect?to=/out"]
    key = result.scheduler.focus_host.links.key(Request(site.url("/out")))
    assert [state.name for state in result.scheduler.crawl.knows([key])] == ["NEW"]


def test_start_urls_are_always_requested(site: MockSite) -> None:
    """One line says that a rule would exclude them; what they redirect to is requested unless it is excluded."""
    site.pages |= {"/home": links("/in/1", "/out"), "/out": "", "/in/1": ""}
    seeds = [site.url(path) for path in ("/redirect?to=/home", "/redirect?to=/very-bad", "/bad")]
    result = crawl(Follower, FAST | {"FOCUS_INCLUDE": ["/in/"], "FOCUS_EXCLUDE": ["bad$"]}, seeds=seeds)
    assert sorted(site.paths) == ["/bad", "/home", "/in/1", "/redirect?to=/home", "/redirect?to=/very-bad"]
    [said] = result.logged("is requested, although")
    assert "although no FOCUS_INCLUDE matches it" in said
    assert scoped(result.stats) == {"excluded": 1, "not_included": 1}


def test_robots_txt_is_an_exception(site: MockSite) -> None:
    """It is requested even if an expression excludes it."""
    crawl(Follower, FAST | {"FOCUS_EXCLUDE": ["robots"], "ROBOTSTXT_OBEY": True}, seeds=[site.url("/ok")])
    assert site.asked == [("GET", "/robots.txt"), ("GET", "/ok")]


@ADDON
@pytest.mark.parametrize(
    ("scope", "found"),
    [
        ("page", {"/docs/"}),
        ("prefix", {"/docs/", "/docs/a", "/docs/gone"}),
        ("host", {"/docs/", "/docs/a", "/docs/gone", "/b", "/c"}),
        ("domain", {"/docs/", "/docs/a", "/docs/gone", "/b", "/c"}),
        ("any", {"/docs/", "/docs/a", "/docs/gone", "/b", "/c", "away /x", "away /y"}),
    ],
)
def test_each_scope(site: MockSite, addon: bool, scope: str, found: set[str]) -> None:
    """Links and redirects that lead out of it are counted under its name; not even robots.txt of their host is requested."""
    with MockSite(ELSEWHERE, pages={"/x": "", "/y": ""}) as other:
        site.pages |= {"/docs/": links("a", "/docs/../b", "gone", "/c", other.url("/x")), "/docs/a": "", "/b": ""}
        site.pages["/c"] = ""
        site.answers["/docs/gone"] = lambda _: (302, {"Location": other.url("/y")}, b"")
        settings = FAST | {"FOCUS_SCOPE": scope, "ROBOTSTXT_OBEY": True}
        result = crawl(Follower, settings, addon=addon, seeds=[site.url("/docs/")])
        asked = {path.replace("/docs/../b", "/b") for path in site.paths} | {f"away {path}" for path in other.paths}
        assert asked == found
        assert bool(other.log) == (scope == "any")
    assert set(scoped(result.stats)) == {scope} - {"any"}


@pytest.mark.parametrize(
    ("scope", "found"),
    [
        ("host", ["/new/", "/new/a", "/b", "/new/c", "/d"]),
        ("prefix", ["/new/", "/new/a", "/new/c"]),
        ("page", ["/new/"]),
    ],
)
def test_a_start_url_that_redirects_to_another_host(
    site: MockSite, tmp_path: Path, scope: str, found: list[str]
) -> None:
    """That host is in scope, too, with its folder; also in a run that does not know the start URL any more."""
    with MockSite(ELSEWHERE, pages={"/new/": links("a", "/b"), "/b": "", "/new/c": "", "/d": ""}) as other:
        other.pages["/new/a"] = links("c", "/d")
        site.answers["/"] = lambda _: (302, {"Location": other.url("/new/")}, b"")
        settings = FAST | {"FOCUS_SCOPE": scope, "JOBDIR": str(tmp_path), "FOCUS_BUDGET_REQUESTS": 2}
        result = crawl(Follower, settings, seeds=[site.url("/")])
        assert other.paths == ["/new/"]
        assert len(result.logged("that is in the scope of the crawl, too")) == (scope != "page")
        crawl(Follower, settings | {"FOCUS_BUDGET_REQUESTS": 9}, seeds=[])
        assert sorted(other.paths) == sorted(found)


@pytest.mark.both
@ADDON
def test_depth_is_exact_with_many_in_flight(site: MockSite, addon: bool, tmp_path: Path) -> None:
    """Of a tree, exactly the levels up to the limit are fetched, in two runs as in one."""
    settings = FAST | {"FOCUS_DEPTH": 3, "JOBDIR": str(tmp_path), "CONCURRENT_REQUESTS_PER_DOMAIN": 16}
    crawl(Follower, settings | {"FOCUS_BUDGET_REQUESTS": 5}, addon=addon, seeds=[site.url("/page/0/40")])
    assert len(site.paths) == 5
    result = crawl(Follower, settings, addon=addon, seeds=[site.url("/page/0/40")])
    assert sorted(site.paths) == sorted(path for k, path in enumerate(tree_paths(40)) if log2(k + 1) < 4)
    assert scoped(result.stats) == {"depth": 16}


class Hopping(Follower):
    """Handles redirects by itself, as links, and queues a request of no page."""

    name = "hopping"
    handle_httpstatus_list = [302]

    def parse(self, response: Response) -> Iterator[Any]:
        if response.status == 302:
            yield response.follow(response.headers["Location"].decode())
            return
        if response.meta["depth"] == 0:
            self.crawler.engine.crawl(Request(response.urljoin("/loose")))
        yield from super().parse(response)


@pytest.mark.parametrize(("depth", "found"), [(0, ["/"]), (1, ["/", "/loose", "/redirect?to=/a", "/a"])])
def test_what_counts_as_a_link(site: MockSite, depth: int, found: list[str]) -> None:
    """A redirect does not, even if the spider follows it; a request of no page does. 0 allows start pages only."""
    site.pages |= {"/": links("/redirect?to=/a"), "/a": links("/b"), "/b": "", "/loose": links("/c"), "/c": ""}
    result = crawl(Hopping, FAST | {"FOCUS_DEPTH": depth}, seeds=[site.url("/")])
    assert sorted(site.paths) == sorted(found)
    assert scoped(result.stats) == {"depth": 2}


@pytest.mark.both
@pytest.mark.reactor
@ADDON
def test_pages_of_a_host_are_exact_with_many_in_flight(site: MockSite, addon: bool, tmp_path: Path) -> None:
    """Over two runs: redirects within a host are not counted, those to another host are counted there, by all ways."""
    with MockSite(ELSEWHERE) as other:
        moved = [f"/redirect?to={other.url(f'/ok%3F{i}')}" for i in range(3)]
        site.pages["/"] = links("/redirect?to=/ok", *moved, *(f"/ok?{i}" for i in range(40)))
        for i in range(3):
            other.answers[f"/ok?{i}"] = lambda _: (302, {"Location": "/ok"}, b"")
        settings = FAST | {
            "FOCUS_MAX_PAGES_PER_HOST": 12, "JOBDIR": str(tmp_path), "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
            "FOCUS_POLICY": BREADTH_FIRST,
        }  # fmt: skip
        crawl(Follower, settings | {"FOCUS_BUDGET_REQUESTS": 8}, addon=addon, seeds=[site.url("/")])
        assert len(site.paths) + len(other.paths) == 8
        result = crawl(Follower, settings, addon=addon, seeds=[site.url("/")])
        assert len(set(site.paths)) == 12 + 1  # what the end of the budget cut off is requested again
        assert set(other.paths) == {"/ok", "/ok?0", "/ok?1", "/ok?2"}
    assert scoped(result.stats) == {"host_full": 44 - 11}
    assert result.outcomes["out_of_scope"] == 44 - 11


@pytest.mark.parametrize("most", [1, 2])
def test_a_redirect_to_a_host_that_has_its_pages(site: MockSite, most: int) -> None:
    """It is not followed; start URLs are requested in any case, and counted."""
    with MockSite(ELSEWHERE, pages={"/": links("/1")}) as other:
        site.pages["/"] = links(f"/redirect?to={other.url('/ok')}")
        settings = FAST | {"FOCUS_MAX_PAGES_PER_HOST": most, "FOCUS_MAX_INFLIGHT": 1}
        result = crawl(Follower, settings, seeds=[site.url("/"), other.url("/")])
        assert other.paths == ["/", "/ok"][:most]
        assert len(site.paths) == most
        assert result.stats["focus/scope/host_full"] == 3 - most


@ADDON
def test_a_narrower_scope_on_resume(site: MockSite, tmp_path: Path, addon: bool) -> None:
    """Queued links that are out of it are skipped, each with one outcome; a wider scope is announced."""
    site.pages["/"] = links(*(f"/a/{i}" for i in range(3)), *(f"/b/{i}" for i in range(3)))
    site.pages |= {f"/{a}/{i}": "" for a in "ab" for i in range(3)}
    job = FAST | {"JOBDIR": str(tmp_path)}
    crawl(Follower, job | {"FOCUS_BUDGET_REQUESTS": 1}, addon=addon, seeds=[site.url("/")])
    narrow = {"FOCUS_EXCLUDE": ["/b/"], "FOCUS_BUDGET_REQUESTS": 3}
    result = crawl(Follower, job | narrow, addon=addon, seeds=[site.url("/")])
    assert sorted(site.paths) == ["/", "/a/0", "/a/1"]
    assert not result.logged("the scope is wider")
    result = crawl(Follower, job | {"FOCUS_EXCLUDE": ["/b/0"]}, addon=addon, seeds=[site.url("/")])
    assert len(result.logged("the scope is wider than in the last run")) == 1
    assert result.outcomes["out_of_scope"] + len(site.paths) == 7
    assert "/b/0" not in site.paths


def test_a_smaller_depth_on_resume(site: MockSite, tmp_path: Path) -> None:
    """Queued links that are too deep now are skipped."""
    settings = FAST | {"JOBDIR": str(tmp_path)}
    crawl(Follower, settings | {"FOCUS_DEPTH": 5, "FOCUS_BUDGET_REQUESTS": 4}, seeds=[site.url("/page/0/40")])
    result = crawl(Follower, settings | {"FOCUS_DEPTH": 2}, seeds=[site.url("/page/0/40")])
    assert sorted(site.paths) == sorted(tree_paths(40)[:7])
    assert result.outcomes["out_of_scope"] == 2


def test_counts_go_on_after_a_resume(site: MockSite, tmp_path: Path) -> None:
    """A URL that two runs rule out is counted once, and one that a killed run ruled out since its checkpoint, too."""
    site.pages |= {"/": links("/a", "/out/1", "/out/2"), "/a": links("/out/2", "/out/3"), "/out/1": ""}
    settings = FAST | {"JOBDIR": str(tmp_path), "FOCUS_EXCLUDE": ["/out/"]}
    first = crawl(Follower, settings | {"FOCUS_BUDGET_REQUESTS": 1}, seeds=[site.url("/")])
    assert scoped(first.stats) == {"excluded": 2}
    record = ScopeRecord(tmp_path / "focus" / SCOPE)
    record.rule_out("excluded", site.url("/out/3"))
    record.close()
    assert scoped(crawl(Follower, settings, seeds=[site.url("/")]).stats) == {"excluded": 3}


def test_downloads_of_pipelines_are_only_excluded(site: MockSite) -> None:
    """They are parts of a page, and need not be included."""

    class Downloads(Follower):
        """Downloads without the scheduler."""

        name = "downloads"

        async def parse(self, response: Response) -> AsyncIterator[Any]:
            for path in ("/ok?in", "/ok?out"):
                try:
                    yield {"status": (await self.crawler.engine.download_async(Request(site.url(path)))).status}
                except Exception as error:
                    yield {"error": type(error).__name__}

    rules = {"FOCUS_INCLUDE": ["/nothing"], "FOCUS_EXCLUDE": ["out"], "FOCUS_SCOPE": "page"}
    result = crawl(Downloads, FAST | rules, seeds=[site.url("/ok")])
    assert result.items == [{"status": 200}, {"error": "OutOfScope"}]
    assert site.paths == ["/ok", "/ok?in"]


@ADDON
@pytest.mark.parametrize("settings", [{}, {"FOCUS_SCOPE": "any"}, {"FOCUS_MAX_PAGES_PER_HOST": 0, "FOCUS_EXCLUDE": []}])
def test_without_rules_there_is_no_feature(site: MockSite, addon: bool, settings: dict[str, Any]) -> None:
    """Nor a middleware."""
    seen = []

    class Looks(Follower):
        """Looks at the components of its crawl."""

        name = "looks"

        def parse(self, response: Response) -> Iterator[Any]:
            host = host_of(self.crawler)
            assert host is not None
            seen.append(host.features.able("scope"))
            seen.append(self.crawler.get_downloader_middleware(ScopeMiddleware))
            yield from ()

    crawl(Looks, settings, addon=addon, seeds=[site.url("/ok")])
    assert seen == [None, None]


def test_a_failing_rule_refuses(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request is not sent if its scope cannot be checked."""
    site.pages["/"] = links("/a")
    monkeypatch.setattr("scrapy_focus.features.scope.rules.Rules.broken_by", lambda *_: 1 / 0)
    result = crawl(Follower, FAST | {"FOCUS_EXCLUDE": ["x"]}, seeds=[site.url("/")])
    assert site.paths == ["/"]
    assert result.errors["scope"] >= 1


@pytest.mark.parametrize(
    ("name", "value"), [("FOCUS_SCOPE", "host"), ("FOCUS_MAX_PAGES_PER_HOST", 3), ("FOCUS_DEPTH", 3)]
)
def test_in_a_cluster(tmp_path: Path, name: str, value: Any) -> None:
    """What one machine has to know of others is refused by its name."""
    from scrapy.settings import Settings

    settings = Settings({"FOCUS_CLUSTER": "auto", "JOBDIR": str(tmp_path), name: value})
    if name == "FOCUS_DEPTH":
        Config.from_settings(settings, BreadthFirst, rows_of({}))
        return
    with pytest.raises(ConfigError, match=f"does not yet support {name}"):
        Config.from_settings(settings, BreadthFirst, rows_of({}))


def test_requests_that_may_leave_the_area(site: MockSite) -> None:
    """``allow_offsite`` lifts the area only."""

    class Leaves(Follower):
        """Allows its links to leave."""

        name = "leaves"

        def parse(self, response: Response) -> Iterator[Any]:
            for request in super().parse(response):
                yield request.replace(meta={"allow_offsite": True}) if isinstance(request, Request) else request

    site.pages |= {"/in/": links("/ok", "/bad"), "/in/1": ""}
    crawl(Leaves, FAST | {"FOCUS_SCOPE": "prefix", "FOCUS_EXCLUDE": ["bad"]}, seeds=[site.url("/in/")])
    assert site.paths == ["/in/", "/ok"]


class Copying(Follower):
    """Copies from the ``meta`` of a page to its links, which have no Referer."""

    name = "copying"
    custom_settings = {"REFERER_ENABLED": False}

    def parse(self, response: Response) -> Iterator[Any]:
        yield from response.follow_all(css="a", meta={"is_start_request": response.meta["is_start_request"]})


def test_links_with_the_meta_of_a_start_request_are_links(site: MockSite) -> None:
    """They have to be in scope, even if nothing tells from which page they are."""
    site.pages |= {"/": links("/in/1", "/out"), "/in/1": links("/in/2", "/out2"), "/in/2": ""}
    crawl(Copying, FAST | {"FOCUS_INCLUDE": ["/in/"]}, seeds=[site.url("/")])
    assert site.paths == ["/", "/in/1", "/in/2"]


def test_a_foreseen_redirect(site: MockSite) -> None:
    """A target that is out of scope is not requested by way of a guess: the link itself is, and its redirect refused."""
    site.pages["/"] = links(*(f"/{i}" for i in range(12)))
    for i in range(12):
        site.answers[f"/{i}"] = lambda _, i=i: (301, {"Location": f"/{i}/"}, b"")
        site.pages[f"/{i}/"] = ""
    settings = FAST | {"FOCUS_EXCLUDE": ["/(10|11)/$"], "FOCUS_MAX_INFLIGHT": 1}
    result = crawl(Follower, settings, seeds=[site.url("/")])
    assert result.stats["focus/redirect/foreseen"] > 0
    assert {"/10", "/11"} <= set(site.paths)
    assert not {"/10/", "/11/"} & set(site.paths)
    assert result.outcomes["out_of_scope"] == 2
    assert {f"/{i}/" for i in range(10)} <= set(site.paths)


def test_pages_are_revisited(site: MockSite) -> None:
    """In a crawl that revisits pages, a start URL that is not included is requested again and again; each page is counted once."""
    site.pages |= {"/": links("/in/1", "/out"), "/in/1": "one"}
    settings = {
        "FOCUS_POLICY": EachAgain, "FOCUS_POLICY_PARAMS": {"every": 0.1}, "FOCUS_BUDGET_REQUESTS": 6,
        "FOCUS_INCLUDE": ["/in/"], "FOCUS_MAX_PAGES_PER_HOST": 2, "FOCUS_MAX_INFLIGHT": 1,
    }  # fmt: skip
    result = crawl(Follower, settings, seeds=[site.url("/")])
    assert sorted(site.paths) == 3 * ["/"] + 3 * ["/in/1"]
    assert scoped(result.stats) == {"not_included": 1}
