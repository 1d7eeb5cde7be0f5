"""Crawls of several workers do the same as one process: each page once, each target counted once, budgets exact."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Follower, crawl
from mocksite import MockSite, tree_paths
from scrapy import FormRequest, Request, Spider

from tests.cluster.workers import asked, fetched, share

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from scrapy.http import Response


def test_each_page_is_fetched_once(site: MockSite, tmp_path: Path) -> None:
    """Two workers take part, both with the start request; pages, items and counts are those of one process."""
    result = share(Follower, tmp_path, {"ROBOTSTXT_OBEY": True}, seeds=[site.url("/page/0/60")])
    assert sorted(site.paths) == sorted(tree_paths(60))
    assert [path for _, path in site.asked].count("/robots.txt") == 1
    assert sorted(item["url"] for item in result.items) == sorted(map(site.url, tree_paths(60)))
    assert result.outcomes == {"ok": 60}
    assert result.crawl.rewards == result.total("focus/reward") == 60
    assert result.crawl.budget.requests_used == len(site.log)
    assert result.reasons == {"finished"}
    assert result.errors == {}


class Odd(Spider):
    """Redirects, retries, POSTs, cb_kwargs, meta, headers, cookies, and failures."""

    name = "odd"
    custom_settings = {"RETRY_TIMES": 2, "ROBOTSTXT_OBEY": True}

    def __init__(self, root: str, closed_port: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.root, self.closed_port = root, closed_port

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.root + "/begin", cb_kwargs={"way": ["start"]})

    def parse(self, response: Response, way: list[str] | None = None) -> Iterator[Any]:
        yield {"url": response.url, "way": way}
        if not response.url.endswith("/begin"):
            return
        for path in ("/redirect?to=/ok%3Fa", "/redirect?to=/redirect%3Fto=/ok%3Fb", "/ok?known", "/redirect?to=/ok%3Fknown",
                     "/status?code=404", "/truncated", "/badgzip", "/forbidden"):  # fmt: skip
            yield response.follow(path, cb_kwargs={"way": ["begin", path]}, errback=self.failed)
        yield response.follow("/late", meta={"trail": [1, {"two": b"3"}]}, callback=self.parse_meta)
        yield Request(self.closed_port, errback=self.failed)
        for word in ("one", "two"):
            form = {"word": word}
            yield FormRequest(self.root + "/ok", formdata=form, callback=self.parse_form, cb_kwargs=form)

    def parse_meta(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "trail": response.meta["trail"]}

    def parse_form(self, response: Response, word: str) -> Iterator[Any]:
        yield {"url": response.url, "word": word, "body": response.request.body.decode()}

    def failed(self, failure: Any) -> Iterator[Any]:
        yield {"failed": failure.request.url}


def odd_site(site: MockSite) -> dict[str, Any]:
    """Give a site the wanted pages, and return the arguments of the spider."""
    site.pages["/begin"] = "begin"
    site.answers["/late"] = lambda n: (503, {"Content-Type": "text/html"}, b"") if n % 3 else None
    site.pages["/late"] = "late"
    with MockSite() as closed:
        url = closed.url("/")
    return {"root": site.url(""), "closed_port": url}


def test_requests_of_all_kinds(site: MockSite, tmp_path: Path) -> None:
    """The same requests, items and outcomes as with one process, and the budget counts each request that went out."""
    args = odd_site(site)
    alone = crawl(Odd, {"FOCUS_POLICY": BREADTH_FIRST}, **args)
    expected = asked(site)
    site.log.clear()
    result = share(Odd, tmp_path, {"FOCUS_POLICY": BREADTH_FIRST}, **args)
    assert asked(site) == expected
    assert _sorted(result.items) == _sorted(alone.items)
    assert result.outcomes == alone.outcomes
    assert result.crawl.rewards == alone.stats["focus/reward"]
    assert result.crawl.budget.requests_used == len(site.log)
    assert result.errors == {}


def _sorted(items: list[Any]) -> list[str]:
    return sorted(json.dumps(item, sort_keys=True, default=repr) for item in items)


class Policied(Follower):
    """Yields an item for each table; pages lead to two more and to a table."""

    def parse(self, response: Response) -> Iterator[Any]:
        if response.url.endswith(".csv"):
            yield {"url": response.url}
            return
        yield from response.follow_all(css="a")


def library(sites: list[MockSite], n: int = 24) -> list[str]:
    """Give sites a tree of pages, alternating, each with a table; return the URLs of all."""
    site_of = [sites[k % len(sites)] for k in range(n)]
    for k, site in enumerate(site_of):
        below = [site_of[j].url(f"/shelf/{j}") for j in (0, k, 2 * k + 1, 2 * k + 2) if j < n]
        links = "".join(f'<li class="in"><a href="{url}">shelf</a>' for url in below)
        site.pages[f"/shelf/{k}"] = f'<h1>data {k}</h1><ul>{links}</ul><a class="file" href="/{k}.csv">table {k}</a>'
        site.answers[f"/{k}.csv"] = lambda _, k=k: (200, {"Content-Type": "text/csv"}, b"a,%d\n" % k)
    return [site_of[k].url(path) for k in range(n) for path in (f"/shelf/{k}", f"/{k}.csv")]


POLICIES = {
    "default": {},
    "TagPath": {"FOCUS_POLICY": "scrapy_focus.policies.tagpath.TagPath"},
    "TreeQ": {"FOCUS_POLICY": "scrapy_focus.policies.treeq.TreeQ"},
    "Importance": {"FOCUS_POLICY": "scrapy_focus.policies.importance.Importance"},
    "HotQueue": {
        "FOCUS_POLICY": "scrapy_focus.policies.hotqueue.HotQueue", "FOCUS_POLICY_PARAMS": {"words": ["data"]},
    },
    "HostBandit": {"FOCUS_POLICY": "scrapy_focus.policies.hostbandit.HostBandit"},
    "Random": {"FOCUS_POLICY": "scrapy_focus.policies.orderings.Random"},
}  # fmt: skip


@pytest.mark.few(1)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_decides_for_all(sites: list[MockSite], tmp_path: Path, policy: str) -> None:
    """Each page is fetched once and each target counted once, whatever the policy asks its workers for: HEADs, keys
    of links that are known, or the text of pages.
    """
    urls = library(sites)
    settings = {"FOCUS_TARGETS": ["text/csv"], "ROBOTSTXT_OBEY": True, **POLICIES[policy]}
    result = share(Policied, tmp_path, settings, addon=True, seeds=[sites[0].url("/shelf/0")])
    assert sorted(fetched(sites)) == sorted(urls)
    log = [seen for site in sites for seen in site.log]
    assert any(seen.method == "HEAD" for seen in log) == (policy == "TagPath")
    assert sum(seen.path == "/robots.txt" for seen in log) == len(sites)
    assert len(result.items) == result.crawl.rewards == result.total("focus/reward") == 24
    assert result.crawl.budget.requests_used == len(log)
    assert all(worker.stats["focus/outcomes"] for worker in result.workers)
    assert sum(result.crawl.leases.granted.values()) <= len(sites), "a HEAD goes out for the page that it looks at"
    assert result.errors == {}
