"""Twenty sites below one name that is not a public suffix: one for the domain limit, twenty for the host limit."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import scrapy
from crawls import crawl
from handmadehosts import Handmade, html

from scrapy_focus.finders.structured.spider import StructuredSpider
from scrapy_focus.finders.topic.spider import TopicSpider

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

N, PAGES = 20, 4
SEED = "http://start.test/"
HOSTS = [f"m{i}.land.test" for i in range(N)]
POLICIES = (
    "treeq.TreeQ", "bestfirst.BestFirst", "hostbandit.HostBandit", "linkclassifier.OnlineLinkClassifier",
)  # fmt: skip
ONE = {"FOCUS_MAX_INFLIGHT": 4, "FOCUS_SEED": 1, "DOWNLOAD_DELAY": 0, "ROBOTSTXT_OBEY": False}


@pytest.fixture
def land(monkeypatch: pytest.MonkeyPatch) -> Iterator[Handmade]:
    """Serves a page that links to all ministries of a country, each with four pages."""
    pages = {SEED: html(*(f"http://{host}/0 ministry" for host in HOSTS))}
    for host in HOSTS:
        pages |= {
            f"http://{host}/{i}": html(*(f"/{k} tax law" for k in range(PAGES)), text="tax") for i in range(PAGES)
        }
    with Handmade(pages) as server:
        monkeypatch.setenv("http_proxy", server.url)
        monkeypatch.setenv("no_proxy", "")
        yield server


def asked(land: Handmade) -> dict[str, int]:
    """Return how many pages of each ministry were asked for."""
    counts = Counter(urlsplit(url).hostname for url in land.asked_for)
    assert counts.pop("start.test") == 1
    return {str(host): n for host, n in counts.items()}


class Follower(scrapy.Spider):
    """Follows all links of a page."""

    name = "follower"
    start_urls = (SEED,)

    def parse(self, response: Any) -> Iterator[Any]:
        yield {"url": response.url}
        yield from response.follow_all(css="a")


@pytest.mark.few(2)
@pytest.mark.parametrize("policy", POLICIES)
def test_each_policy_with_a_limit_counts_by_host(land: Handmade, policy: str) -> None:
    """Two pages of each ministry, or of all together if the policy counts by domain."""
    for by_host in (False, True):
        land.log.clear()
        params = {"per_domain": 2, "per_host": by_host}
        settings = {"FOCUS_POLICY": f"scrapy_focus.policies.{policy}", "FOCUS_POLICY_PARAMS": params}
        crawl(Follower, {**ONE, "FOCUS_KEYWORDS": ["tax"], **settings}, addon=True, site=land)
        counts = asked(land)
        assert counts == dict.fromkeys(HOSTS, 2) if by_host else sum(counts.values()) == 2


def test_structured_spider_counts_by_host(land: Handmade, tmp_path: Path) -> None:
    """By ``per_host``."""
    arguments = {"seeds": SEED, "types": "Recipe", "folder": str(tmp_path), "per_host": "3"}
    crawl(StructuredSpider, ONE, addon=True, **arguments)
    assert asked(land) == dict.fromkeys(HOSTS, 3)
    assert "Pages per host" in (tmp_path / "index.html").read_text(encoding="utf-8")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("arguments", "params"),
    [({"per_domain": "3"}, {"FOCUS_POLICY_PARAMS": {"per_host": True}}), ({"per_host": "3"}, {})],
)
def test_topic_spider_counts_by_host(
    land: Handmade, tmp_path: Path, arguments: dict[str, str], params: dict[str, Any]
) -> None:
    """By an argument, or by the parameters of its policy, in addition to those of its arguments."""
    arguments = {"seeds": SEED, "keywords": "tax", "out": str(tmp_path / "out.jsonl"), **arguments}
    crawl(TopicSpider, {**ONE, **params}, addon=True, **arguments)
    assert asked(land) == dict.fromkeys(HOSTS, 3)
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["domain"] for line in lines} == {"start.test", "land.test"}
