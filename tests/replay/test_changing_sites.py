"""Simulated crawls of recordings whose pages change during the crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from handmade import BUSY, HOST, moved, page

from scrapy_focus import Budget, FilesGoal
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.writer import Answer, SiteWriter
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.sites.news.plan import BEGIN, HOUR, Manner
from scrapy_focus.lab.sites.news.site import NewsSite
from scrapy_focus.lab.sites.news.web import NewsWeb
from scrapy_focus.policies.orderings import BreadthFirst
from tests.made import EachAgain

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus import Outcome


class Following(EachAgain):
    """Writes down when each page came, how, and whether it had changed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.seen: list[tuple[str, float, int | None, bool | None, float]] = []

    def learn(self, outcome: Outcome) -> None:
        super().learn(outcome)
        path = outcome.pick.url.removeprefix(HOST)
        self.seen.append((path, self.now, outcome.status, outcome.changed, outcome.reward))


def site_of(folder: Path, *answers: tuple[str, float | None, dict[str, Any]]) -> RecordedSite:
    """Record what each path answered since a time."""
    path = folder / "site.sqlite"
    with SiteWriter(path, roots=[f"{HOST}/"], bodies=True) as writer:
        for name, since, fields in answers:
            writer.add(Answer(url=HOST + name, since=since, **fields))
        writer.finish()
    return RecordedSite(path)


def test_each_visit_sees_the_page_of_its_time(tmp_path: Path) -> None:
    """Links appear when they exist; changes are reported, and unchanged pages have reward 0 without a call of the
    goal.
    """
    site = site_of(
        tmp_path, ("/", 1000.0, page("/1")), ("/1", None, page(text="one")), ("/", 1010.0, page("/1", "/2")),
        ("/2", 1010.0, page(text="two")), ("/1", 1025.0, page(text="uno")), ("/2", 1030.0, page(status=410)),
    )  # fmt: skip
    asked = []

    def goal(outcome: Outcome) -> float:
        assert outcome.page is not None
        asked.append((outcome.pick.url.removeprefix(HOST), outcome.page.text))
        return float(outcome.is_html)

    policy = Following(every=9.0)
    harvest = simulate(policy, goal, site, budget=Budget(seconds=35.0), latency=1.0)
    told = {name: [each[1:] for each in policy.seen if each[0] == name] for name in ("/", "/1", "/2")}
    assert told["/"] == [
        (1001.0, 200, None, 1.0),
        (1011.0, 200, True, 1.0),
        (1021.0, 200, False, 0.0),
        (1031.0, 200, False, 0.0),
    ]
    assert told["/1"] == [
        (1002.0, 200, None, 1.0),
        (1013.0, 200, False, 0.0),
        (1023.0, 200, False, 0.0),
        (1033.0, 200, True, 1.0),
    ]
    assert told["/2"] == [(1012.0, 200, None, 1.0), (1022.0, 200, False, 0.0), (1032.0, 410, None, 0.0)]
    assert [text for name, text in asked if name == "/1"][-2:] == ["one", "uno"]
    assert harvest.seconds[0] == 0.0
    assert harvest.seconds[1] == 1.0, "since the beginning"
    assert harvest.missed == 0


def test_what_is_not_there_yet_answers_404(tmp_path: Path) -> None:
    """Even if it is linked, and it is not a missing page of the recording; so does the target of a redirect."""
    site = site_of(
        tmp_path, ("/", 0.0, page("/soon", "/moved")), ("/soon", 100.0, page(text="soon")), ("/moved", 0.0, moved("/soon")),
    )  # fmt: skip
    policy = Following(every=200.0, times=1)
    harvest = simulate(policy, FilesGoal(), site, budget=8, latency=1.0)
    assert [(path, status) for path, _, status, *_ in policy.seen][:3] == [("/", 200), ("/soon", 404), ("/moved", None)]
    assert harvest.missed == 0


def test_failures_and_redirects_change_too(tmp_path: Path) -> None:
    """A page that was busy exists, and another one redirects."""
    site = site_of(
        tmp_path, ("/", 0.0, page("/busy", "/old")), ("/busy", 0.0, BUSY), ("/busy", 20.0, page(text="here")),
        ("/old", 0.0, page(text="old")), ("/old", 20.0, moved("/new")), ("/new", None, page(text="new")),
    )  # fmt: skip

    class Stubborn(Following):
        def again(self, outcome: Outcome) -> Any:
            return super().again(outcome._replace(error=""))

    policy = Stubborn(every=30.0, times=1)
    simulate(policy, FilesGoal(), site, budget=Budget(seconds=60.0), latency=1.0)
    told = {name: [status for path, _, status, *_ in policy.seen if path == name] for name in ("/busy", "/old")}
    assert told == {"/busy": [503, 200], "/old": [200, 200]}


@pytest.mark.slow
def test_the_synthetic_news_site_can_be_recorded(tmp_path: Path) -> None:
    """A simulated crawl finds each of its articles while it exists, as a crawl of the served site would."""
    news = NewsSite(Manner(sections=3, topics=6, archive=60), seed=1, days=1.0)
    with SiteWriter(tmp_path / "news.sqlite", roots=[f"{HOST}/"]) as writer:
        for version in news.versions():
            made = version.page
            headers = {"Content-Type": made.mime}
            writer.add(Answer(url=HOST + version.path, status=made.status, headers=headers, body=made.body, since=version.since))  # fmt: skip
        assert writer.finish().missing == 0
    site = RecordedSite(tmp_path / "news.sqlite")
    assert site.begin == BEGIN
    policy = Following(every=HOUR)
    simulate(policy, FilesGoal(), site, budget=Budget(seconds=23 * HOUR), latency=20.0)
    first: dict[str, float] = {}
    for path, at, status, *_ in policy.seen:
        assert (status == 200) == (news.answer(path, at).status == 200), path
        if status == 200:
            first.setdefault(path, at)
    born = [article for article in news.born(BEGIN, BEGIN + 20 * HOUR) if article.gone > article.at + 3 * HOUR]
    assert all(article.at <= first[article.path] < article.at + 3 * HOUR for article in born)
    assert len(born) > 100
    changed = {path for path, _, _, changed, _ in policy.seen if changed}
    assert "/" in changed
    assert not changed & {"/about", "/contact", "/archive/"}


@pytest.mark.slow
def test_a_web_of_news_hosts_can_be_recorded(tmp_path: Path) -> None:
    """From their front pages: a simulated crawl finds the births on each of them, while they exist."""
    manners = [
        Manner(sections=2, topics=4, archive=20, per_hour=2.0, small_world=small) for small in (False, True, False)
    ]
    web = NewsWeb(manners, days=0.3)
    with SiteWriter(tmp_path / "web.sqlite", roots=web.roots) as writer:
        for url, since, made in web.versions():
            headers = {"Content-Type": made.mime}
            writer.add(Answer(url=url, status=made.status, headers=headers, body=made.body, since=since))
        assert writer.finish().missing == 0
    policy = Following(every=HOUR)
    site = RecordedSite(tmp_path / "web.sqlite")
    simulate(policy, FilesGoal(), site, budget=Budget(seconds=7 * HOUR), latency=20.0)
    first: dict[str, float] = {}
    for url, at, status, *_ in policy.seen:
        assert (status == 200) == (web.answer(url, at).status == 200), url
        first.setdefault(url, at)
    assert {url.split("/")[2] for url in first} == {*web.sites}
    born = [article for article in web.born(BEGIN, BEGIN + 4 * HOUR) if article.gone > article.at + 3 * HOUR]
    assert all(article.at <= first[article.path] < article.at + 3 * HOUR for article in born)
    assert len(born) > 15


def test_without_revisits_a_changing_site_is_crawled_at_the_time_of_each_request(tmp_path: Path) -> None:
    """Nothing says whether a page has changed then."""
    site = site_of(tmp_path, ("/", 0.0, page("/1")), ("/1", 0.0, page(text="a")), ("/1", 1.5, page(text="b" * 50)))
    sizes = []

    def goal(outcome: Outcome) -> float:
        assert outcome.changed is None
        sizes.append(outcome.size)
        return 0.0

    simulate(BreadthFirst(), goal, site, latency=1.0)
    assert sizes[-1] == 50
