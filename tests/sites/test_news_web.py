"""The web of synthetic news sites: how its hosts differ and link to each other, and over HTTP behind a proxy."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import numpy as np
import pytest

from scrapy_focus.core.clock import FastClock
from scrapy_focus.lab.sites.news.__main__ import main
from scrapy_focus.lab.sites.news.plan import BEGIN, DAY, HOUR, Manner
from scrapy_focus.lab.sites.news.site import NewsSite
from scrapy_focus.lab.sites.news.web import NewsWeb, manners_of
from scrapy_focus.lab.sites.server import ProxyServer
from tests.made import HANG

KINDS: list[dict[str, Any]] = [
    {"per_hour": 8.0}, {"per_hour": 1.0, "far": True}, {"per_hour": 4.0, "small_world": True},
    {"per_hour": 0.5, "crawl_delay": 2.0},
]  # fmt: skip
TINY = [Manner(sections=2, topics=4, archive=40, topical=True, **kind) for kind in KINDS]


def links(page: Any) -> list[str]:
    """Return where the links of a page lead."""
    return re.findall(r'<a href="([^"]+)"', page.body.decode())


def host_of(url: str) -> str:
    """Return the host of a URL."""
    return url.split("/")[2]


def ask(server: ProxyServer, url: str) -> tuple[int, bytes]:
    """Return status and body of an ordinary client's request through the proxy."""
    client = urllib.request.build_opener(urllib.request.ProxyHandler({"http": server.url}))
    try:
        with client.open(url, timeout=HANG) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_it_is_a_function_of_seed_and_time() -> None:
    """To the byte; hosts differ, and so do webs of other seeds."""
    one, two, other = NewsWeb(TINY, days=1.0), NewsWeb(TINY, days=1.0), NewsWeb(TINY, seed=1, days=1.0)
    at = BEGIN + 12 * HOUR
    urls = [*one.roots, *one.hubs(), *(born.path for born in one.born(BEGIN, at))]
    assert len({one.answer(url, at).body for url in urls}) > 0.9 * len({*urls})
    assert all(one.answer(url, at).body == two.answer(url, at).body for url in urls)
    assert all(one.answer(root, at).body != other.answer(root, at).body for root in one.roots)


def test_hosts_are_quick_slow_and_of_all_kinds() -> None:
    """By default; what is born is known with its URL, in the order of time."""
    web = NewsWeb(12, days=3.0)
    born = web.born(BEGIN, BEGIN + 3 * DAY)
    assert [each.at for each in born] == sorted(each.at for each in born)
    counts = np.unique([host_of(each.path) for each in born], return_counts=True)[1]
    assert len(counts) == 12
    assert counts.max() > 10 * counts.min()
    manners = [site.manner for site in web.sites.values()]
    assert {manner.far for manner in manners} == {manner.waves for manner in manners} == {True, False}
    assert len({manner.archive for manner in manners}) > 2
    assert manners == manners_of(12)
    assert {web.answer(each.path, each.at).status for each in born[::20]} == {200}
    assert {web.answer(each.path, each.at - 1).status for each in born[::20]} == {404}


def test_all_hosts_are_reached_from_each() -> None:
    """Front pages link to others, and articles to older ones elsewhere, which exist; without a web, to none."""
    web, at = NewsWeb(TINY, days=1.0), BEGIN + 12 * HOUR
    for some in (web, *(NewsWeb(TINY[:1] * 20, seed=seed, days=0.1) for seed in range(3))):
        fronts = {root: {link for link in links(some.answer(root, at)) if "://" in link} for root in some.roots}
        assert {len(each) for each in fronts.values()} == {3}
        for root in fronts:
            found = [root]
            for url in found:
                found += [link for link in fronts[url] if link not in found]
            assert len(found) == len(fronts)
    born = {each.path: each for each in web.born(0.0, at)}
    elsewhere = {path: [link for link in links(web.answer(path, at)) if "://" in link] for path in born}
    assert 0.1 < np.mean([bool(each) for each in elsewhere.values()]) < 0.3
    for path, others in elsewhere.items():
        for other in others:
            assert host_of(other) != host_of(path)
            assert born[other].at < born[path].at
            assert web.answer(other, born[path].at).status in (200, 404, 410)
    alone = NewsSite(TINY[0], days=1.0)
    assert not any("://" in link for each in alone.born(BEGIN, at) for link in links(alone.answer(each.path, at)))


@pytest.mark.slow
def test_all_versions_of_all_pages_can_be_had() -> None:
    """By URL; each is what the web answers at that time, and what pages lead to is among them."""
    web = NewsWeb(TINY, days=0.5)
    versions = list(web.versions())
    assert {host_of(version.path) for version in versions} == {*web.sites}
    for version in versions[::25]:
        assert web.answer(version.path, version.since).body == version.page.body
    known = {version.path for version in versions}
    for version in versions[::10]:
        origin = "http://" + host_of(version.path)
        assert {link if "://" in link else origin + link for link in links(version.page)} <= known


def test_a_proxy_serves_it_and_remembers_who_was_asked_when() -> None:
    """Each host has its pages and its robots.txt; an unknown host gives 502, and an incomplete URL 400."""
    clock = FastClock(1000.0, BEGIN + DAY)
    web = NewsWeb(TINY, clock=clock)
    with ProxyServer(web, validators=True) as server:
        for root in [*web.roots, web.roots[0]]:
            status, body = ask(server, root)
            assert status == 200
            assert all(link.encode() in body for link in web.roots if link in links(web.fetch(root)))
        robots = [ask(server, f"{root}robots.txt")[1].decode() for root in web.roots]
        assert ["Crawl-delay: 2\n" in said for said in robots] == [False, False, False, True]
        assert [f"Sitemap: {root}sitemap.xml" in said for root, said in zip(web.roots, robots, strict=True)] == [
            True
        ] * 4
        assert ask(server, "http://no.such.host/")[0] == 502
        with pytest.raises(urllib.error.HTTPError, match="400"):
            urllib.request.urlopen(server.url, timeout=HANG)
    asked = server.by_host
    assert {host: len(requests) for host, requests in asked.items() if host in web.sites} == dict(
        zip(web.sites, (3, 2, 2, 2), strict=True)
    )
    times = [request.at for request in server.log]
    assert times == sorted(times)
    assert times[0] > 0


@pytest.mark.slow
def test_a_command_serves_it() -> None:
    """It prints its address, its clock, and its hosts; the options of one site are refused."""
    command = [sys.executable, "-m", "scrapy_focus.lab.sites.news", "--port", "0", "--hosts", "3", "--days", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline().strip() for _ in range(3)]
        clock = FastClock.of(said[1])
        begun = clock()
        try:
            client = urllib.request.build_opener(urllib.request.ProxyHandler({"http": said[0]}))
            with client.open(said[2].split(",")[-1], timeout=HANG) as answer:
                page = answer.read()
        finally:
            process.terminate()
    assert said[2].split(",") == NewsWeb(3).roots
    web, url, ended = NewsWeb(3, days=1.0), "http://news02.example/", clock()
    meanwhile = [each.since for each in web.versions() if each.path == url and begun <= each.since <= ended]
    assert page in [web.answer(url, at).body for at in (begun, *meanwhile, ended)]


@pytest.mark.parametrize(
    ("more", "sentence"), [(["--hosts", "3", "--far"], "all sites differ"), (["--hosts", "1"], "2 to 100 hosts")]
)
def test_what_cannot_be_meant_is_said(more: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The options of one site are not for a web, and one host is none."""
    with pytest.raises(SystemExit):
        main(more)
    assert sentence in capsys.readouterr().err
