"""Simulated crawls of sites with scripts: what a browser shows, and all that it asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from handmade import CSV, HOST, Fields, Watching, course, failing, file, moved, page, site_of, size_of

from scrapy_focus import Budget, FilesGoal, ItemsGoal, Placement
from scrapy_focus.lab.recordings.writer import Asset
from scrapy_focus.lab.replay.metrics import requests_until, summary
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.policies.orderings import BreadthFirst
from tests.made import EachAgain, Renders

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scrapy_focus import Link, Outcome
    from scrapy_focus.lab.recordings.format import RecordedSite

SCRIPT = "<script src=/app.js></script>"
APP, STYLE = Asset(f"{HOST}/app.js", 500), Asset(f"{HOST}/app.css", 50)


def shell(*hrefs: str) -> Fields:
    """A page with scripts."""
    return page(*hrefs, text=SCRIPT)


def drawn(*hrefs: str, requests: int = 0, received: int = 400, **rest: Any) -> Fields:
    """A page that a browser shows."""
    return {**page(*hrefs, text=SCRIPT), "requests": requests, "received": received, **rest}


PLAIN = {
    "/": page("/a", "/news", "/b", "/static"), "/a": shell(), "/b": shell(), "/news": shell("/n.csv"), "/static": page(),
    "/n.csv": file("n"), "/1.csv": file("1"), "/2.csv": file("2"), "/deep": shell(),
}  # fmt: skip
DRAWN = {
    "/a": drawn("/1.csv", "/deep", requests=2, received=900, assets=[APP, STYLE]),
    "/b": drawn("/2.csv", "/1.csv", requests=1, received=700, assets=[APP]),
    "/news": drawn("/n.csv", assets=[APP]),
}


class Direct(Watching):
    """Has all of some paths rendered at once."""

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        places = super().place(links, source)
        return [
            place and place._replace(method="RENDER" if link.url.removeprefix(HOST) in self.heads else "GET")
            for link, place in zip(links, places, strict=True)
        ]


class Seeing(Renders):
    """Also keeps what came."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Outcome] = []

    def learn(self, outcome: Outcome) -> None:
        super().learn(outcome)
        self.seen.append(outcome)


@pytest.fixture
def site(tmp_path: Path) -> RecordedSite:
    """An app whose pages are empty, and news whose scripts change nothing; one page was never rendered."""
    return site_of(tmp_path, PLAIN, rendered=DRAWN)


def test_a_rendering_costs_what_it_took(site: RecordedSite) -> None:
    """Each request of the browser is one, in budget and harvest; what pages share is asked for once."""
    policy = Renders()
    harvest = simulate(policy, FilesGoal(), site)
    plain = ["/", "/a", "/news", "/b", "/static", "/n.csv"]
    assert course(harvest, site) == [
        *plain, "/a", *["/a"] * 4, "/1.csv", "/deep", "/news", "/b", "/b", "/2.csv",
    ]  # fmt: skip
    assert policy.learned[6:] == [
        ("RENDER", f"{HOST}/a", 5), ("GET", f"{HOST}/1.csv", 1), ("GET", f"{HOST}/deep", 1),
        ("RENDER", f"{HOST}/news", 1), ("RENDER", f"{HOST}/b", 2), ("GET", f"{HOST}/2.csv", 1),
    ]  # fmt: skip
    received = harvest.target_bytes + harvest.other_bytes
    itself = sum(size_of(PLAIN["/a"]))
    assert np.diff(received)[6:11].tolist() == [itself, 900 - itself, 0, 500, 50]
    assert np.diff(received)[13:16].tolist() == [400, sum(size_of(PLAIN["/b"])), 700 - sum(size_of(PLAIN["/b"]))]
    assert harvest.counts["browser/requests"] == 5
    assert (harvest.counts["link/render"], harvest.counts["browser/read"]) == (3, 3)
    assert harvest.found[-1] == 3


def test_outcomes_say_what_their_pages_are(tmp_path: Path) -> None:
    """Whether they can be rendered; a rendered page has the text and size that the browser shows."""
    site = site_of(tmp_path, PLAIN, rendered=DRAWN, bodies=True)
    policy = Seeing()
    simulate(policy, FilesGoal(), site)
    seen = policy.seen
    scripted = [each.pick.url.removeprefix(HOST) for each in seen if each.scripted and each.pick.method == "GET"]
    assert scripted == ["/a", "/news", "/b"]
    (of_a,) = (each for each in seen if each.pick.method == "RENDER" and each.pick.url.endswith("/a"))
    assert (of_a.requests, of_a.received, of_a.error, of_a.status) == (5, 1450, "", 200)
    assert of_a.page is not None
    assert of_a.page.text.count("<a href=") == 2
    assert of_a.size == len(of_a.page.text)
    assert {each.requests for each in seen if each.pick.method == "GET"} == {1}


def test_without_a_browser_nothing_is_rendered(site: RecordedSite, tmp_path: Path) -> None:
    """Whatever the policy asks for; and where the recording has no such pages, nothing has scripts."""
    other = tmp_path / "other"
    other.mkdir()
    bare = site_of(other, PLAIN)
    never = simulate(Renders(), FilesGoal(), site, render="never")
    assert never.found[-1] == 1
    for policy, recorded in ((Renders(), bare), (BreadthFirst(), site), (Direct(heads=["/a", "/news"]), bare)):
        assert course(simulate(policy, FilesGoal(), recorded), recorded) == course(never, site)
    assert simulate(Direct(heads=["/a"]), FilesGoal(), site, render="never").found[-1] == 1


def test_with_a_browser_for_all_there_is_no_plain_copy(site: RecordedSite) -> None:
    """If the recording has both; anything but a page is unchanged."""
    harvest = simulate(BreadthFirst(), FilesGoal(), site, render="always")
    assert course(harvest, site) == [
        "/", "/a", *["/a"] * 4, "/news", "/b", "/b", "/static", "/1.csv", "/deep", "/n.csv", "/2.csv",
    ]  # fmt: skip
    assert harvest.found[-1] == 3
    assert harvest.missed == 1, "/deep was never rendered"


def test_links_may_be_rendered_at_once(site: RecordedSite) -> None:
    """Without scripts a browser shows the plain page; what was never rendered is not known."""
    policy = Direct(heads=["/a", "/static", "/deep", "/1.csv"])
    harvest = simulate(policy, FilesGoal(), site)
    assert course(harvest, site)[:8] == ["/", "/a", *["/a"] * 4, "/news", "/b"]
    assert policy.errors == {"/deep": "unrecorded"}
    assert harvest.missed == 1
    assert not any(each.scripted and each.pick.method == "RENDER" for each in policy.learnt if each.error)
    assert harvest.found[-1] == 2


def test_a_rendering_that_failed_costs_what_it_took(tmp_path: Path) -> None:
    """The page counts as fetched all the same."""
    rendered = {"/a": {**failing("failure: TimeoutError"), "requests": 2, "received": 10_000}}
    site = site_of(tmp_path, {"/": page("/a"), "/a": shell("/b"), "/b": page()}, rendered=rendered)
    policy = Seeing()
    harvest = simulate(policy, FilesGoal(), site)
    assert course(harvest, site) == ["/", "/a", "/b", "/a", "/a", "/a"]
    last = policy.seen[-1]
    assert (last.error, last.requests, last.received) == ("browser", 3, 10_000)
    assert harvest.counts["outcome/browser"] == 1
    for policy, mode in ((Direct(heads=["/a"]), "learn"), (BreadthFirst(), "always")):
        again = simulate(policy, FilesGoal(), site, render=mode)  # type: ignore[arg-type]
        assert course(again, site) == ["/", *["/a"] * 4, "/b"], "the plain copy is fetched where none was"
        assert again.counts["outcome/ok"] == 3


def test_a_browser_follows_redirects(tmp_path: Path) -> None:
    """To a page that was had, too; each is a request, and the page is the one that it leads to."""
    site = site_of(
        tmp_path, {"/": page("/old", "/"), "/old": moved("/new"), "/new": shell(), "/x.csv": file()},
        rendered={"/new": drawn("/x.csv", requests=1)},
    )  # fmt: skip
    policy = Renders()
    harvest = simulate(policy, FilesGoal(), site)
    assert course(harvest, site) == ["/", "/old", "/new", "/old", "/new", "/new", "/x.csv"]
    assert policy.learned[2] == ("RENDER", f"{HOST}/old", 3)


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("latency", [0.0, 0.5])
def test_budgets_hold_for_what_a_browser_asks_for(site: RecordedSite, concurrency: int, latency: float) -> None:
    """To the request: the rest is refused, and the page is queued again, as in a live crawl."""
    options: dict[str, Any] = {"concurrency": concurrency, "latency": latency}
    whole = simulate(Renders(), FilesGoal(), site, **options)
    for budget in range(1, whole.requests + 2):
        policy = Renders()
        harvest = simulate(policy, FilesGoal(), site, budget=budget, **options)
        assert harvest.requests == min(budget, whole.requests)
        assert harvest.stopped == ("budget_requests" if budget <= whole.requests else "")
        counts = harvest.counts
        assert counts["selected"] == counts["outcomes"] + counts["released"]
        if not counts["released"]:
            assert sum(requests for *_, requests in policy.learned) == harvest.requests
    counts = simulate(Renders(), FilesGoal(), site, budget=8).counts
    assert (counts["browser/requests"], counts["browser/refused/budget"], counts["released"]) == (1, 3, 1)
    few = simulate(Renders(), FilesGoal(), site, budget=Budget(bytes=1300))
    assert few.requests < whole.requests


def test_a_page_is_there_when_all_has_come(site: RecordedSite) -> None:
    """First the page itself, then all that it asks for at once."""
    harvest = simulate(Renders(), FilesGoal(), site, latency=1.0)
    assert harvest.seconds[6:13].tolist() == [6, 7, 8, 8, 8, 8, 9]


def test_the_truth_is_what_a_browser_shows(site: RecordedSite) -> None:
    """Totals are those of a crawl that renders everything, so that crawls with and without can be compared."""
    whole = simulate(Renders(), FilesGoal(), site)
    there = whole.exhaustive
    assert (there.worth, there.requests) == (3, whole.requests)
    assert there.target_bytes + there.other_bytes == whole.target_bytes[-1] + whole.other_bytes[-1]
    never = simulate(Renders(), FilesGoal(), site, render="never")
    assert never.exhaustive == there
    assert summary(never)["found_share"] == pytest.approx(1 / 3)
    assert requests_until(whole, 0.6) == 100 * 12 / whole.requests
    truth = SiteTruth(site, FilesGoal())
    assert truth.leads_to(site.ids[f"{HOST}/a"]).tolist() == [], "only a browser sees more"
    assert [site.urls[page] for page in truth.order].count(f"{HOST}/a") == 1


def test_items_of_both_copies_count_once(site: RecordedSite) -> None:
    """As live, where those that the plain page gave are dropped."""

    def each(recorded: RecordedSite) -> Any:
        rendered = {shown.answer for shown in recorded.renderings.values()}
        return lambda answer: 3.0 if answer in rendered else 1.0 if recorded.answers.mimes[answer] != CSV else 0.0

    harvest = simulate(Renders(), ItemsGoal(), site, items=each)
    assert harvest.found[-1] == 3 * 3 + 3, "three renderings, and the pages without"


def test_pages_that_come_back_are_rendered_besides(site: RecordedSite) -> None:
    """A rendered page is not a visit, and says nothing about changes."""

    class Both(EachAgain):
        seen: ClassVar[list[Outcome]] = []

        def learn(self, outcome: Outcome) -> None:
            super().learn(outcome)
            self.seen.append(outcome)

        def render(self, outcome: Outcome) -> Placement | None:
            return Placement(0, -1e12)

        def again(self, outcome: Outcome) -> Placement | None:
            return super().again(outcome) if outcome.pick.url.endswith("/static") else None

    simulate(Both(every=0.0, times=1), FilesGoal(), site, budget=60)
    assert {each.changed for each in Both.seen if each.pick.method == "RENDER"} == {None}
    assert [each.changed for each in Both.seen if each.pick.url.endswith("/static")] == [None, False]
