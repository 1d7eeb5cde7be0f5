"""The nine measures of foragers, against numbers worked out by hand on a small site that changes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from handmade import HOST, Watching, page

from scrapy_focus import Budget, ConfigError, NewsGoal
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.writer import Answer, SiteWriter
from scrapy_focus.lab.replay.foraging import SentNotes, births_of, copies, discovery, foraging, sent_by_one
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.policies.orderings import BreadthFirst
from tests.made import EachAgain

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus import Frontier, Mission, Outcome
    from scrapy_focus.lab.replay.harvest import Harvest

BEGIN = 1_767_571_200.0  # 5 January 2026, 0:00 UTC
HOUR = 3600.0
DATE = '<meta property="article:{}_time" content="2026-01-{:02}T{:02}:00:00Z">'


def article(name: str, *, day: int = 5, hour: int = 0, changed: int | None = None) -> dict[str, Any]:
    """An article that says when it was published, in January 2026, and at which hour of that day it changed."""
    said = DATE.format("published", day, hour) + ("" if changed is None else DATE.format("modified", day, changed))
    return page(text=f"<html><head>{said}</head><body><p>{(name + ' and nothing but it ') * 10}</p></body></html>")


@pytest.fixture
def site(tmp_path: Path) -> RecordedSite:
    """Have a front page that lists /a from the beginning, /b from 4:00 and /c from 10:00 on, and always /old.

    /a changes at 5:00 and 9:00, /b is withdrawn at 8:00; /c was written at 9:30, before it was listed.
    """
    answers = [
        ("/", 0.0, page("/a", "/old")), ("/", 4.0, page("/b", "/a", "/old")), ("/", 10.0, page("/c", "/a", "/old")),
        ("/old", 0.0, article("old", day=1)), ("/a", 0.0, article("first", day=4, hour=20)),
        ("/a", 5.0, article("second", changed=5)), ("/a", 9.0, article("third", changed=9)),
        ("/b", 4.0, article("bee", hour=4)), ("/b", 8.0, page(status=410)), ("/c", 9.5, article("sea", hour=9)),
    ]  # fmt: skip
    path = tmp_path / "site.sqlite"
    with SiteWriter(path, roots=[f"{HOST}/"], bodies=True) as writer:
        for name, hours, fields in answers:
            writer.add(Answer(url=HOST + name, since=BEGIN + HOUR * hours, **fields))
        writer.finish()
    return RecordedSite(path)


class Versions:
    """A goal that rewards each article of the last 24 hours that is not as it was rewarded before."""

    def __init__(self) -> None:
        self.had: set[tuple[str, str]] = set()

    def __call__(self, outcome: Outcome) -> float:
        if outcome.page is None or "<meta" not in outcome.page.text or "/old" in outcome.page.url:
            return 0.0
        version = (outcome.page.url, outcome.page.text)
        is_new = version not in self.had
        self.had.add(version)
        return float(is_new)


class Visits(EachAgain):
    """Visits a page again every two hours, and sends each page that it fetches twice."""

    def __init__(self) -> None:
        super().__init__(every=2 * HOUR)

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        super().open(frontier, rng, mission)
        self.sent = 0

    def learn(self, outcome: Outcome) -> None:
        super().learn(outcome)
        self.sent += 2


def crawled(site: RecordedSite, **options: Any) -> Harvest:
    """Visit all pages every two hours for 13 hours: the front page at 0:00:01, and what it lists after it."""
    return simulate(
        options.pop("policy", None) or Visits(), options.pop("goal", None) or Versions(), site,
        budget=Budget(seconds=13 * HOUR), latency=1.0, **options,
    )  # fmt: skip


def test_counts_and_efficiencies(site: RecordedSite) -> None:
    """What was downloaded, sent, relevant and found; efficiencies of the whole, and the mean of windows of 4 hours.

    Articles come at 0 (/a), 4 (/b), 6 (/a anew), 10 (/a once more, /c). The crawl ends seconds after 12:00, and these
    are no window.
    """
    harvest = crawled(site)
    found = foraging(harvest, site, window=4 * HOUR)
    visits = 7 + 7 + 7 + 5 + 2  # of /, /a, /old, /b from 4 on, including withdrawn ones, and /c from 10 on
    assert (harvest.requests, found.downloaded) == (visits - 2, visits - 2), "what is gone does not come back"
    assert (found.relevant, found.sent, found.found) == (5, 5, 5)
    assert found.download_efficiency.whole == pytest.approx(5 / 26)
    assert found.cost == pytest.approx(5.2)
    assert found.relative_found == pytest.approx(5 / 26)
    of_windows = [1 / 6, 2 / 8, 2 / 8]
    assert found.download_efficiency.windows.tolist() == of_windows
    assert found.download_efficiency.mean == pytest.approx(np.mean(of_windows))
    assert found.sent_efficiency[:2] == (1.0, 1.0)
    assert np.isnan(found.sent_efficiency.windows).tolist() == [False, False, False]
    assert len(foraging(harvest, site, window=6.1 * HOUR).download_efficiency.windows) == 2, "it nearly has two"
    by_hour = foraging(harvest, site, window=HOUR).download_efficiency
    assert np.isnan(by_hour.windows).tolist() == [False, True] * 6, "each second hour has no visits"
    assert by_hour.mean == pytest.approx(np.mean([1 / 3, 0, 1 / 4, 1 / 4, 0, 1 / 2]))


def test_one_forager_sends_each_young_version_once(site: RecordedSite) -> None:
    """Whatever the goal says; what is old is not sent, unless it was rewarded."""
    hours = sent_by_one(crawled(site, goal=lambda outcome: 0.0), site) // HOUR
    assert hours.tolist() == [0, 4, 6, 10, 10]
    rewarded = sent_by_one(crawled(site, goal=lambda outcome: float("/old" in outcome.pick.url)), site) // HOUR
    assert rewarded.tolist() == [0, 0, 4, 6, 10, 10]
    young = sent_by_one(crawled(site, goal=lambda outcome: 0.0), site, hours=1.2) // HOUR
    assert young.tolist() == [4, 6, 10, 10], "and not what /a said in the evening before"


def test_copies_are_stored_when_they_are_rewarded(site: RecordedSite) -> None:
    """Before that there is none. At 8:30, /a is as at 6:00, and /b is gone for half an hour; at 9:30, /a has changed,
    too; at 12:00, it exists again, and so does /c.
    """
    harvest = crawled(site)
    fresh, age = copies(harvest, site, HOUR * np.array([0.0, 4.0, 8.5, 9.5, 12.0]))
    assert math.isnan(fresh[0])
    assert fresh[1:].tolist() == pytest.approx([1, 1 / 2, 0, 2 / 3])
    assert (age[1:] / HOUR).tolist() == pytest.approx([0, 0.25, 1.0, 4 / 3])
    once = crawled(site, goal=NewsGoal())  # which rewards no second version
    assert copies(once, site, np.array([12 * HOUR]))[0] == [1 / 3]
    found = foraging(harvest, site, window=4.25 * HOUR)  # 4:15 and 8:30, when it is half as many
    assert (found.freshness, found.age) == pytest.approx((0.75, 0.125 * HOUR))


def test_a_copy_is_fresh_again_when_its_page_is_as_it_was(tmp_path: Path) -> None:
    """What counts is what the page says, and not how often it changed."""
    path = tmp_path / "site.sqlite"
    with SiteWriter(path, roots=[f"{HOST}/"], bodies=True) as writer:
        for hours, name in ((0.0, "one"), (1.0, "two"), (2.0, "one")):
            writer.add(Answer(url=f"{HOST}/", since=BEGIN + HOUR * hours, **article(name)))
        writer.finish()
    site = RecordedSite(path)
    harvest = simulate(BreadthFirst(), Versions(), site, latency=1.0)
    fresh, age = copies(harvest, site, HOUR * np.array([0.5, 1.5, 2.5]))
    assert (fresh.tolist(), age.tolist()) == ([1, 0, 1], [0, 0.5 * HOUR, 0])


def test_what_is_only_looked_at_is_no_visit(site: RecordedSite) -> None:
    """A HEAD is a download, but nothing that was found or sent."""
    harvest = simulate(Watching(heads=("/a",)), Versions(), site, budget=2, latency=1.0)
    assert harvest.heads.tolist() == [False, False, True]
    found = foraging(harvest, site)
    assert (found.downloaded, found.found, found.sent) == (2, 1, 0)


def test_discovery(site: RecordedSite) -> None:
    """What was born after the beginning is found when its list is visited, if it is; what was there before has no birth."""
    harvest = crawled(site)
    assert births_of(site) == {site.ids[f"{HOST}/b"]: 4 * HOUR, site.ids[f"{HOST}/c"]: 9.5 * HOUR}
    assert births_of(site, 5 * HOUR) == births_of(site, last=10 * HOUR, first=9 * HOUR)
    assert births_of(site, last=4 * HOUR) == {}
    found = foraging(harvest, site).discovery
    assert (found.born, found.recall) == (2, 1.0)
    assert np.array(found[2:]) / HOUR == pytest.approx([0.25, 0.25, 0.45], abs=0.01)
    late = discovery(harvest, site, {site.ids[f"{HOST}/b"]: 7.9 * HOUR, site.ids[f"{HOST}/a"]: 11.0 * HOUR})
    assert (late.born, late.recall) == (2, 0.5), "/b is gone when it is visited next"
    assert late.mean / HOUR == pytest.approx(1.0, abs=0.01)
    assert math.isnan(discovery(harvest, site, {0: 12.9 * HOUR}).mean)


def test_a_policy_tells_what_it_sent(site: RecordedSite) -> None:
    """Each document is sent when its outcome came, also where the page was as before; the goal is the other one."""
    policy, asked = Visits(), []

    class Told(Versions):
        def unchanged(self, outcome: Outcome) -> None:
            asked.append(outcome.at)

    notes = SentNotes(Told(), policy)
    harvest = crawled(site, policy=policy, goal=notes)
    sent = notes.times(site.begin)
    assert sent.tolist() == np.repeat(harvest.seconds[1:], 2).tolist()
    assert len(asked) == harvest.counts["outcome/unchanged"] > 0
    found = foraging(harvest, site, sent=sent)
    assert (found.sent, found.relevant) == (52, 5)
    assert found.sent_efficiency.whole == pytest.approx(5 / 52)
    by_window = foraging(harvest, site, sent=sent, window=4 * HOUR).sent_efficiency
    assert by_window.windows.tolist() == [1 / 12, 2 / 16, 2 / 16]
    assert by_window.mean == pytest.approx(1 / 9)
    assert SentNotes(NewsGoal(), policy).noun == NewsGoal.noun
    assert not notes.types


def test_a_crawl_that_finds_nothing(site: RecordedSite) -> None:
    """Has numbers all the same, or none."""
    harvest = simulate(BreadthFirst(), lambda outcome: 0.0, site, budget=1)
    found = foraging(harvest, site, sent=())
    assert (found.downloaded, found.sent, found.relevant, found.found) == (1, 0, 0, 1)
    assert (found.download_efficiency.whole, found.cost) == (0.0, math.inf)
    assert all(map(math.isnan, (found.sent_efficiency.whole, found.sent_efficiency.mean, found.freshness, found.age)))
    with pytest.raises(ConfigError, match="a window has 0 seconds"):
        foraging(harvest, site, window=0)
