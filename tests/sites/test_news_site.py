"""The synthetic news site: what is on it at a time, what changes, what it says of that, and over HTTP by a fast clock."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from scrapy_focus import ConfigError
from scrapy_focus.core.clock import FastClock
from scrapy_focus.lab.sites.news.plan import BEGIN, DAY, HOUR, Manner
from scrapy_focus.lab.sites.news.site import NewsSite
from scrapy_focus.lab.sites.server import SiteServer

SMALL = {"sections": 5, "topics": 20, "archive": 300}


def site_of(seed: int = 0, days: float = 3.0, **manner: Any) -> NewsSite:
    """Return a small one."""
    return NewsSite(Manner(**{**SMALL, **manner}), seed=seed, days=days)


def links(html: str) -> list[str]:
    """Return the paths that a page links to."""
    return re.findall(r'<a href="([^"]+)"', html)


def depths(site: NewsSite, at: float) -> dict[str, int]:
    """Return how many clicks everything is away from the first page at a time."""
    found, queue = {"/": 0}, ["/"]
    for path in queue:
        for link in links(site.answer(path, at).body.decode()):
            if link not in found:
                found[link] = found[path] + 1
                queue.append(link)
    return found


def test_it_is_a_function_of_seed_and_time() -> None:
    """To the byte; another seed is another site, and another time another page."""
    one, two, other = site_of(), site_of(), site_of(seed=1)
    at = BEGIN + 30 * HOUR
    for path in ("/", "/s/harbour/", "/feed.xml", "/sitemap-news.xml", *(born.path for born in one.born(BEGIN, at))):
        assert one.answer(path, at).body == two.answer(path, at).body
    assert one.answer("/", at).body != other.answer("/", at).body
    assert one.answer("/", at).body != one.answer("/", at + DAY).body
    assert one.answer("/", at).body == one.answer("/", at).body


@pytest.mark.parametrize(("manner", "digest"), [({}, "923bfac525b4d9ad"), ({"far": True}, "c40a2dc7a0205427")])
def test_without_new_manners_it_is_as_it_was(manner: Any, digest: str) -> None:
    """Recordings of one release are those of the next, to the byte."""
    site, seen = site_of(days=1.0, **manner), blake2b(digest_size=8)
    for path in depths(site, BEGIN + 12 * HOUR):
        seen.update(path.encode() + site.answer(path, BEGIN + 12 * HOUR).body)
    assert seen.hexdigest() == digest


def test_articles_are_born_listed_updated_and_withdrawn() -> None:
    """Seven an hour; each is on the first page at once, nowhere before that, and gone for good when it is withdrawn."""
    site = site_of(days=5)
    born = site.born(BEGIN, BEGIN + 4 * DAY)
    assert 7 * 96 * 0.85 < len(born) < 7 * 96 * 1.15
    for article in born[::50]:
        assert site.answer(article.path, article.at - 1).status == 404
        assert article.path not in links(site.answer("/", article.at - 1).body.decode())
        assert site.answer(article.path, article.at).status == 200
        assert links(site.answer("/", article.at).body.decode())[6] == article.path
    gone = [article for article in born if article.gone < BEGIN + 5 * DAY]
    assert 0 < len(gone) < len(born) / 10
    statuses = {site.answer(article.path, article.gone).status for article in gone}
    assert statuses == {404, 410}
    updated = [
        number for number in site.plan.born_within(BEGIN, BEGIN + DAY).tolist() if site.plan.updates(number, np.inf)
    ]
    assert 0.4 < len(updated) / len(site.born(BEGIN, BEGIN + DAY)) < 0.7
    assert "Update 1: " in site._html.article(updated[0], BEGIN + 5 * DAY)
    assert "Update 1: " not in site._html.article(updated[0], float(site.plan.born[updated[0]]))


@pytest.mark.few(1)
@pytest.mark.parametrize(("manner", "lists", "news"), [({}, (0, 1, 2), (1, 2)), ({"far": True}, (4, 5), (5, 6))])
def test_the_good_lists_are_near_or_far(manner: Any, lists: Any, news: Any) -> None:
    """By clicks; nothing that is linked is missing but what was withdrawn."""
    site, at = site_of(**manner), BEGIN + 2 * DAY
    found = depths(site, at)
    assert {found[path] for path in site.hubs()} == set(lists)
    latest = [found[article.path] for article in site.born(at - 6 * HOUR, at) if article.gone > at]
    assert set(latest) <= set(news)
    assert len(latest) > 20
    statuses = Counter(site.answer(path, at).status for path in found)
    assert statuses[200] > 0.97 * len(found)
    assert len([path for path in found if path[1:3] == "20"]) > 0.95 * len(site.plan.born_within(0, at))


def test_news_may_come_in_waves() -> None:
    """As many as ever, but many at a time, on one topic, and few of them on the first page."""
    calm, wild = site_of(days=20), site_of(days=20, waves=True)
    hourly = [np.histogram([b.at for b in site.born(BEGIN, BEGIN + 20 * DAY)], 480)[0] for site in (calm, wild)]
    assert 0.7 < hourly[1].sum() / hourly[0].sum() < 1.4
    assert np.var(hourly[1]) > 4 * np.var(hourly[0])
    busiest = int(hourly[1].argmax())
    within = wild.plan.born_within(BEGIN + busiest * HOUR, BEGIN + (busiest + 1) * HOUR)
    assert np.bincount(wild.plan.topic[within]).max() > len(within) / 3
    assert 0.1 < len(wild.plan.on_front) / len(wild.plan) < 0.5


def test_dates_are_said_in_several_ways_or_not_at_all() -> None:
    """By JSON-LD, meta, time elements; without a date there is no Last-Modified, either."""
    site, undated = site_of(), site_of(undated=1.0)
    ways = (
        '"datePublished": "2026-',
        'article:published_time" content="2026-',
        'datetime="2026-',
        'DC.date.issued" content="2026-',
    )
    for article in site.born(BEGIN, BEGIN + 5 * HOUR):
        said = site.answer(article.path, article.at).body.decode()
        assert sum(way in said for way in ways) == 1
        page = undated.answer(article.path, article.at)
        assert page.modified == 0.0
        assert not any(way in page.body.decode() for way in ways)


@pytest.mark.parametrize("validators", ["right", "missing", "stuck", "restless"])
def test_validators_are_as_they_are_said_to_be(validators: Any) -> None:
    """Right ones change with the page, clock and token left aside; others are missing, or lie."""
    site = site_of(validators=validators, noisy=True)
    number = next(n for n in site.plan.born_within(BEGIN, BEGIN + DAY).tolist() if site.plan.updates(n, np.inf))
    born, updated, *_ = site.plan.changes(number)
    path = site._html.path(number)
    first, same, later = (site.answer(path, at) for at in (born, (born + updated) / 2, updated))
    assert len({first.body, same.body, later.body}) == 3
    tags = [page.etag for page in (first, same, later)]
    times = [page.modified for page in (first, same, later)]
    match validators:
        case "right":
            assert tags[0] == tags[1] != tags[2]
            assert times == [born, born, updated]
        case "missing":
            assert (tags, times) == ([""] * 3, [0.0] * 3)
        case "stuck":
            assert len(set(tags)) == len(set(times)) == 1
        case _:
            assert len(set(tags)) == len(set(times)) == 3


@pytest.mark.parametrize("lastmod", ["right", "missing", "lying"])
def test_sitemaps_and_the_feed_list_what_is_there(lastmod: Any) -> None:
    """With the time of each change, without it, or with the present time for a share of all."""
    site, at = site_of(lastmod=lastmod, lying=0.5), BEGIN + DAY
    index = site.answer("/sitemap.xml", at, "http://a.example").body.decode()
    maps = re.findall("<loc>http://a.example(.*?)</loc>", index)
    listed: dict[str, str] = {}
    for path in maps:
        listed |= re.findall(r"<loc>http://a.example(.*?)</loc>(?:<lastmod>(.*?)</lastmod>)?", site.answer(path, at).body.decode().replace("<loc>", "<loc>http://a.example"))  # fmt: skip
    there = {article.path for article in site.born(-1e12, at + 1e-6) if article.gone > at}
    assert there <= set(listed)
    assert all(site.answer(path, at).status == 200 for path in listed)
    now = sum(said.startswith("2026-01-06T00:00:00") for said in listed.values())
    if lastmod == "missing":
        assert set(listed.values()) == {""}
    else:
        assert "" not in listed.values()
        assert (0.4 < now / len(listed) < 0.6) if lastmod == "lying" else now < 3
    feed = site.answer("/feed.xml", at, "http://a.example")
    latest = [article.path for article in site.born(BEGIN, at + 1e-6) if article.gone > at][:-21:-1]
    assert re.findall("<link>http://a.example(.+?)</link>", feed.body.decode())[1:] == latest
    assert site.answer("/robots.txt", at, "http://a.example").body.endswith(b"Sitemap: http://a.example/sitemap.xml\n")
    assert site_of(feed=False).answer("/feed.xml", at).status == 404


@pytest.mark.slow
def test_all_versions_of_all_pages_can_be_had() -> None:
    """Each differs from the one before it, and is what the site answers at any time until the next."""
    site = site_of(days=2)
    versions = list(site.versions())
    after: dict[str, list[Any]] = {}
    for version in versions:
        after.setdefault(version.path, []).append(version)
    assert set(depths(site, BEGIN + 1.5 * DAY)) <= set(after)
    rng = np.random.default_rng(0)
    for path, history in after.items():
        assert [version.since for version in history] == sorted(version.since for version in history)
        for one, two in pairwise(history):
            assert (one.page.status, one.page.body) != (two.page.status, two.page.body)
        at = BEGIN + 2 * DAY * rng.random()
        holds = [version.page for version in history if version.since <= at]
        answer = site.answer(path, at)
        if holds:
            assert (answer.status, answer.body) == (holds[-1].status, holds[-1].body), path
        else:
            assert answer.status == 404


@pytest.mark.parametrize(
    "wrong", [{"validators": "odd"}, {"undated": 2}, {"topics": 3}, {"per_hour": 0}, {"archive": -1}]
)
def test_a_wrong_manner_is_named(wrong: Any) -> None:
    """With the valid values."""
    with pytest.raises(ValueError, match=r"it is one of|it is a share|a site has|it takes"):
        site_of(**wrong)


def test_it_is_served_by_a_clock_that_runs_a_thousand_times_faster() -> None:
    """The server and its visitors share the clock; 304 comes where the page is as it was."""
    machine = [0.0]
    clock = FastClock(1000.0, BEGIN + DAY, 0.0, machine=lambda: machine[0])
    site = NewsSite(Manner(**SMALL, max_age=True), seed=0, clock=clock)  # type: ignore[arg-type]
    with SiteServer(site, validators=True) as server:
        site.origin = server.url.rstrip("/")

        def get(path: str, tag: str = "") -> tuple[int, str, Any]:
            request = urllib.request.Request(server.url + path[1:], headers={"If-None-Match": tag} if tag else {})
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.status, answer.read().decode(), answer.headers
            except urllib.error.HTTPError as error:
                return error.code, "", error.headers

        _, first, headers = get("/")
        assert get("/", headers["ETag"])[0] == 304
        assert headers["Cache-Control"] == "max-age=60"
        assert f"Sitemap: {server.url}sitemap.xml" in get("/robots.txt")[1]
        machine[0] = 20.0  # five hours and a half
        status, second, later = get("/", headers["ETag"])
        assert status == 200
        assert later["ETag"] != headers["ETag"]
        new = set(links(second)) - set(links(first))
        assert len(new) > 5
        assert {get(path)[0] for path in new} == {200}


def test_a_command_serves_it() -> None:
    """It prints its address and its clock."""
    command = [
        sys.executable,
        "-m",
        "scrapy_focus.lab.sites.news",
        "--port",
        "0",
        "--speed",
        "1000",
        "--archive",
        "100",
        "--far",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url, clock = process.stdout.readline().strip(), FastClock.of(process.stdout.readline())
        try:
            with urllib.request.urlopen(f"{url}wire/", timeout=60) as answer:
                page = answer.read().decode()
        finally:
            process.terminate()
    now = NewsSite(Manner(archive=100, far=True), days=30.0).answer("/wire/", clock()).body.decode()
    assert len(set(links(page)) & set(links(now))) > 25
    done = subprocess.run([*command, "--undated", "7"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "it is a share from 0 to 1" in done.stderr


def test_a_clock_that_is_none_is_named() -> None:
    """With an example."""
    for text in ("", "1 2", "0 1 2", "nan 1 2", "x y z"):
        with pytest.raises(ConfigError, match="1440"):
            FastClock.of(text)
