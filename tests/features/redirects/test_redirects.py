"""Sites that redirect many of their links only by a slash or a sub-domain: the redirects are foreseen, no page is lost."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Follower, SomeHeadsFirst, crawl
from handmadehosts import Handmade, html
from mocksite import MockSite

from scrapy_focus.extensions import progress
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.lab.sites.portal.portal import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from crawls import Crawled
    from mocksite import Answer
    from scrapy.http import Response

POLICIES = pytest.mark.parametrize(
    "policy", [pytest.param(BREADTH_FIRST, marks=pytest.mark.slow), None], ids=["breadth-first", "default"]
)
ONE = {"FOCUS_SEED": 1, "FOCUS_MAX_INFLIGHT": 1}
N = 200


class SlashSite(MockSite):
    """A home page with links to pages without a slash; each redirects to the one with a slash.

    Parameters
    ----------
    links
        Paths that the home page links to.
    """

    def __init__(self, links: list[str]) -> None:
        super().__init__()
        self.links = links
        self.own: Callable[[str], Answer | None] = lambda path: None  # answers of a test

    def answer(self, path: str) -> Answer:
        if (found := self.own(path)) is not None:
            return found
        if path == "/":
            return _html("".join(f'<p><a href="{link}">page {link}</a>' for link in self.links))
        if path == "/robots.txt":
            return 404, {}, b""
        return _html(f"This is {path}") if path.endswith("/") else (301, {"Location": f"{path}/"}, b"")


def _html(body: str, status: int = 200) -> Answer:
    return status, {"Content-Type": "text/html"}, f"<html><body>{body}".encode()


def pages(n: int = N, folder: str = "page") -> list[str]:
    return [f"/{folder}/{k}" for k in range(n)]


def follow(site: MockSite, settings: dict[str, Any] | None = None, *, spider: type = Follower) -> Crawled:
    result = crawl(spider, ONE | (settings or {}), seeds=[site.url("/")])
    assert result.errors == {}
    return result


def found(result: Crawled, site: MockSite) -> Counter[str]:
    """Return the paths of the pages that the spider saw."""
    return Counter(item["url"].removeprefix(site.url("")) for item in result.items)


def counts(result: Crawled) -> dict[str, int]:
    """Return the counts under ``focus/redirect/``."""
    return {name.rpartition("/")[2]: n for name, n in result.stats.items() if name.startswith("focus/redirect/")}


@POLICIES
def test_nearly_half_of_the_requests_are_saved(policy: str | None) -> None:
    """Ten redirects are followed to learn, and one in 32 later, as a check; each page is seen once."""
    chosen = {"FOCUS_POLICY": policy} if policy else {}
    with SlashSite(pages()) as site:
        result = follow(site, {"FOCUS_LEARN_REDIRECTS": False, **chosen})
        assert len(site.paths) == 2 * N + 1
        assert counts(result) == {}
    with SlashSite(pages()) as site:
        result = follow(site, chosen)
        checks = (N - 10) // 32
        assert len(site.paths) == N + 1 + 10 + checks
        assert counts(result) == {"foreseen": N - 10 - checks}
        assert found(result, site) == Counter(["/", *(f"{path}/" for path in pages())])
        assert "185 redirects foreseen, which saved as many requests" in progress(result.scheduler.focus_host)


@POLICIES
def test_a_folder_without_redirects_costs_one_request_and_no_page(policy: str | None) -> None:
    """A wrong guess is a 404; the original URL is requested, and the rule ends for now."""
    links = [*pages(60, "a"), *pages(60, "b")]

    def own(path: str) -> Answer | None:
        if path.startswith("/b/"):
            return _html("none", 404) if path.endswith("/") else _html(f"This is {path}")
        return None

    n: list[int] = []
    for on in (False, True):
        with SlashSite(links) as site:
            site.own = own
            result = follow(site, {"FOCUS_LEARN_REDIRECTS": on, **({"FOCUS_POLICY": policy} if policy else {})})
            assert found(result, site) == Counter(["/", *(f"{path}/" for path in pages(60, "a")), *pages(60, "b")])
            n.append(len(site.paths))
    counted = counts(result)
    wrong = counted.get("wrong", 0)
    assert (policy is not None) <= wrong <= 2  # the default policy may finish one folder before the other
    assert n == [181, 181 - counted["foreseen"] + 2 * wrong]
    assert n[1] < n[0]


def test_a_page_linked_in_both_spellings_is_fetched_once() -> None:
    """A link whose target was seen needs no request, but for one in 32; a target that comes later is known."""
    links = [*pages(10, "first"), *(each for path in pages(100) for each in (f"{path}/", path))]
    links += [each for path in pages(50, "late") for each in (path, f"{path}/")]
    with SlashSite(links) as site:
        result = follow(site, {"FOCUS_POLICY": BREADTH_FIRST})
        targets = Counter(path for path in site.paths if path.endswith("/"))
        assert set(targets.values()) == {1}
        assert len(targets) == 161
        assert found(result, site) == targets
        assert counts(result) == {"known": 146}
        assert result.outcomes == {"ok": 161, "redirect_seen": 150}
        assert len(site.paths) == 161 + 10 + 4


def test_skipped_links_are_followed_when_the_rule_ends() -> None:
    """A page whose other spelling was seen turns out to be another page."""
    links = [*pages(10, "first"), *(each for path in pages(20, "both") for each in (f"{path}/", path)), "/own"]
    with SlashSite(links) as site:
        site.own = lambda path: _html("other") if path.startswith("/both/") or path == "/own" else None
        site.answers["/own/"] = lambda _: _html("none", 404)
        own = site.own
        site.own = lambda path: _html("none", 404) if path == "/own/" else own(path)
        result = follow(site, {"FOCUS_POLICY": BREADTH_FIRST})
        assert counts(result) == {"foreseen": 1, "known": 20, "returned": 20, "wrong": 1}
        assert found(result, site) == Counter(
            ["/", "/own", *(f"{path}/" for path in pages(10, "first")),
             *(each for path in pages(20, "both") for each in (path, f"{path}/"))]
        )  # fmt: skip


def test_dead_links_cost_one_request_each_until_too_many_guesses_fail() -> None:
    """A host that redirects no dead links: eleven guesses fail, then the rule ends."""
    with SlashSite([*pages(10), *pages(40, "dead")]) as site:
        site.own = lambda path: _html("none", 404) if path.startswith("/dead") else None
        result = follow(site, {"FOCUS_POLICY": BREADTH_FIRST})
        assert counts(result) == {"foreseen": 11, "wrong": 11}
        assert result.outcomes == {"ok": 11, "http_error": 40}
        assert len(site.paths) == 1 + 20 + 40 + 11


@pytest.mark.parametrize("status", [500, 502, 401, 410])
def test_a_target_that_fails_is_no_reason_to_lose_a_page(status: int) -> None:
    """Whatever the error: the original URL is requested at once."""
    with SlashSite([*pages(10), "/own"]) as site:
        site.own = {"/own": _html("page"), "/own/": _html("error", status)}.get
        result = follow(site, {"FOCUS_POLICY": BREADTH_FIRST})
        assert site.paths[-2:] == ["/own/", "/own"]
        assert found(result, site)["/own"] == 1
        assert counts(result) == {"foreseen": 1, "wrong": 1}


def test_a_busy_server_is_asked_again_for_the_target() -> None:
    """A 503 says nothing about a URL."""
    with SlashSite([*pages(10), "/busy"]) as site:
        site.own = lambda path: _html("busy", 503) if path == "/busy/" and site.paths.count(path) == 1 else None
        result = follow(site, {"FOCUS_POLICY": BREADTH_FIRST})
        assert site.paths[-2:] == ["/busy/", "/busy/"]
        assert found(result, site)["/busy/"] == 1
        assert counts(result) == {"foreseen": 1}


def test_a_target_that_redirects_back_is_a_wrong_guess() -> None:
    """The original URL is requested, and not the target again."""
    with SlashSite([*pages(10), "/back"]) as site:
        site.own = {"/back": _html("page"), "/back/": (302, {"Location": "/back"}, b"")}.get
        result = follow(site, {"FOCUS_POLICY": BREADTH_FIRST})
        assert site.paths[-2:] == ["/back/", "/back"]
        assert found(result, site)["/back"] == 1
        assert counts(result) == {"foreseen": 1, "wrong": 1}


def test_robots_txt_of_the_target_is_obeyed() -> None:
    """A forbidden target is not requested; the original URL is, as without the feature."""
    with SlashSite([*pages(10), *pages(5, "not")]) as site:
        robots: Answer = (200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /not/*/$\n")
        site.own = lambda path: robots if path == "/robots.txt" else None
        result = follow(site, {"FOCUS_POLICY": BREADTH_FIRST, "ROBOTSTXT_OBEY": True})
        assert [path for path in site.paths if path.startswith("/not")] == pages(5, "not")
        assert result.outcomes == {"ok": 11, "ignored": 5}


class Traced(Follower):
    """Says how it came to each page, and requests some pages in its own way."""

    def parse(self, response: Response) -> Iterator[Any]:
        trace = {name: response.meta.get(name) for name in ("redirect_urls", "redirect_times", "redirect_reasons")}
        yield {"url": response.url, **trace}
        if response.url.endswith("/own/0/"):
            return
        yield from response.follow_all(css="a")
        if len(response.css("a")) > 1:
            yield response.follow("/seen", dont_filter=True)
            yield response.follow("/form", method="POST", body=b"x")
            yield response.follow("/kept", meta={"dont_redirect": True, "handle_httpstatus_list": [301]})
            yield response.follow("/listed", meta={"handle_httpstatus_list": [301]})


def test_the_original_url_is_in_the_trace_and_own_requests_are_unchanged() -> None:
    """``redirect_urls`` is that of a redirect; ``dont_filter``, POST and requests for redirects go as they are."""
    with SlashSite([*pages(10), "/own/0"]) as site:
        result = follow(site, {"FOCUS_POLICY": BREADTH_FIRST}, spider=Traced)
        by_path = {item["url"].removeprefix(site.url("")): item for item in result.items}
        assert by_path["/own/0/"] == {
            "url": site.url("/own/0/"), "redirect_urls": [site.url("/own/0")], "redirect_times": 1,
            "redirect_reasons": ["foreseen"],
        }  # fmt: skip
        assert counts(result) == {"foreseen": 1}
        assert {"/seen", "/form", "/kept", "/listed"} <= {seen.path for seen in site.log}


def test_heads_go_to_the_original_url() -> None:
    """A HEAD says whether a page is worth a request; the redirect is foreseen for the GET that follows."""
    with SlashSite(pages(60)) as site:
        policy = f"{SomeHeadsFirst.__module__}.{SomeHeadsFirst.__qualname__}"
        result = follow(site, {"FOCUS_POLICY": policy})
        heads = [seen.path for seen in site.log if seen.method == "HEAD" and seen.path != "/"]
        assert {path for path in heads if path.endswith("/")} == {f"{path}/" for path in heads if path[-1] != "/"}
        assert len(heads) > 20
        assert found(result, site) == Counter(["/", *(f"{path}/" for path in pages(60))])
        assert counts(result)["foreseen"] > 0


def test_a_budget_is_exact_and_a_resumed_crawl_learns_anew(tmp_path: Path) -> None:
    """Each page is fetched once over all runs, whenever a run ends."""
    with SlashSite(pages(100)) as site:
        items: Counter[str] = Counter()
        settings = {"JOBDIR": str(tmp_path), "FOCUS_POLICY": BREADTH_FIRST, "FOCUS_MAX_INFLIGHT": 8}
        for budget in (60, 120, 1000):
            result = follow(site, {**settings, "FOCUS_BUDGET_REQUESTS": budget})
            items += found(result, site)
            assert len(site.paths) <= budget
        assert items == Counter(["/", *(f"{path}/" for path in pages(100))])
        assert result.reason == "finished"
        assert len(site.paths) < 180


def test_the_same_crawl_comes_twice() -> None:
    """With one in flight, the order of requests is the same."""
    logs = []
    for _ in range(2):
        with SlashSite(pages(80)) as site:
            follow(site)
            logs.append(site.paths)
    assert logs[0] == logs[1]


def test_redirects_are_not_foreseen_where_they_are_not_followed() -> None:
    """``REDIRECT_ENABLED`` is off: the spider is to see the redirects."""
    with SlashSite(pages(20)) as site:
        result = follow(site, {"REDIRECT_ENABLED": False, "FOCUS_POLICY": BREADTH_FIRST})
        assert sorted(site.paths) == sorted(["/", *pages(20)])
        assert counts(result) == {}


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> Iterator[Handmade]:
    """Serves a host whose pages moved to www., and one page that is only at its own URL."""
    made = {f"http://old.test/{k}.html": Page.of(b"", status=301, location=f"http://www.old.test/{k}.html")
            for k in range(30)}  # fmt: skip
    made |= {f"http://www.old.test/{k}.html": html(text=f"page {k}") for k in range(30)}
    made["http://old.test/own.html"] = html(text="own")
    links = [f"http://old.test/{k}.html" for k in range(30)]
    made["http://start.test/"] = html(*links, "http://old.test/own.html")
    with Handmade(made) as server:
        monkeypatch.setenv("http_proxy", server.url)
        monkeypatch.setenv("no_proxy", "")
        yield server


def test_a_subdomain_is_foreseen_and_a_page_at_its_own_url_is_found(moved: Handmade) -> None:
    """The host of the target has its own slot, and its own robots.txt."""
    settings = ONE | {"FOCUS_POLICY": BREADTH_FIRST, "ROBOTSTXT_OBEY": True}
    result = crawl(Follower, settings, seeds=["http://start.test/"])
    assert len(result.items) == 32
    assert counts(result) == {"foreseen": 21, "wrong": 1}
    assert len(moved.asked_for) == 1 + 20 + 20 + 2
    assert result.errors == {}


class WithSecret(Follower):
    """Sends its password to the host of a link."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        for request in response.follow_all(css="a"):
            yield request.replace(headers={"Authorization": "Basic x"})


def test_credentials_are_not_sent_to_another_host(moved: Handmade) -> None:
    """Scrapy removes them when it follows the redirect."""
    result = crawl(WithSecret, ONE | {"FOCUS_POLICY": BREADTH_FIRST}, seeds=["http://start.test/"])
    assert counts(result) == {}
    assert len(result.items) == 32


class OnlyWww(Follower):
    """May not visit the host that the pages moved to."""

    allowed_domains = ("start.test", "www.bare.test")


def test_a_host_that_is_not_allowed_is_not_guessed(moved: Handmade) -> None:
    """Its redirects are refused, and each original URL is requested, as its page may be there."""
    links = [f"http://www.bare.test/{k}.html" for k in range(30)]
    moved.pages["http://start.test/"] = html(*links)
    moved.pages |= {link: Page.of(b"", status=301, location=link.replace("www.", "")) for link in links}
    result = crawl(OnlyWww, ONE | {"FOCUS_POLICY": BREADTH_FIRST}, seeds=["http://start.test/"])
    assert moved.asked_for == ["http://start.test/", *links]
    assert counts(result) == {}


@pytest.mark.few(1)
def test_files_are_listed_with_the_link_that_led_there(tmp_path: Path) -> None:
    """As after a redirect: the address on the page, and the page."""

    def own(path: str) -> Answer | None:
        if path.startswith("/data/") and path.endswith("/"):
            return 200, {"Content-Type": "text/csv"}, f"a,b\n{path},1\n".encode()
        return None

    with SlashSite([*pages(20), *pages(10, "data")]) as site:
        site.own = own
        result = crawl(DatasetsSpider, ONE, addon=True, root=site.url("/"), out=str(tmp_path))
        files = [(item.url, item.link, item.page) for item in result.items]
        assert counts(result)["foreseen"] > 0
        assert Counter(files) == Counter(
            (site.url(f"{path}/"), site.url(path), site.url("/")) for path in pages(10, "data")
        )
