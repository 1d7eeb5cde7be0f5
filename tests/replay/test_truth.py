"""What a recorded site says of itself: what each URL is, and what a crawl of all of it would bring."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from handmade import (
    BUSY,
    FORBIDDEN,
    GONE,
    GRAPHS,
    HOST,
    course,
    failing,
    file,
    graph,
    moved,
    page,
    refresh,
    site_of,
    size_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_focus import ConfigError, FilesGoal, GoalError, ItemsGoal
from scrapy_focus.lab.replay.harvest import Exhaustive
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.policies.orderings import BreadthFirst
from scrapy_focus.web.mime import blocked_extensions
from tests.examples import n_examples

if TYPE_CHECKING:
    from scrapy_focus import Outcome
    from scrapy_focus.lab.replay.harvest import Harvest

#: One of each kind.
SITE = {
    "/": page("/p", "/f.csv", "/to", "/on", "/gone", "/busy", "/broken", "/no", "/off", "/i", "/pic.png", "/far.csv", "/x"),
    "/p": page("http://sub.a.example/g.csv", "/z"), "/f.csv": file("1"), "/to": moved("/h.csv"), "/h.csv": file("22"),
    "/on": refresh("/q"), "/q": page(), "/gone": GONE, "/busy": BUSY, "/broken": failing(), "/no": FORBIDDEN,
    "/off": moved("http://b.example/"), "/i": file(100_000, "image/png"), "/pic.png": file(10, "image/png"),
    "/far.csv": moved("/p"), "http://sub.a.example/g.csv": file("333"), "/z": file(10, "text/css"), "/lost": page(),
}  # fmt: skip


def totals(harvest: Harvest) -> Exhaustive:
    """What a crawl brought."""
    return Exhaustive(
        requests=harvest.requests,
        worth=float(harvest.found[-1]),
        target_bytes=int(harvest.target_bytes[-1]),
        other_bytes=int(harvest.other_bytes[-1]),
        hosts=int(harvest.hosts[-1]),
    )


class Once:
    """Pays for the first page of each status, and once for each host that has a file; it remembers."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def __call__(self, outcome: Outcome) -> float:
        what = outcome.status if outcome.is_html else outcome.pick.host
        if what in self.seen:
            return 0.0
        self.seen.add(what)
        return 1.0


@settings(max_examples=n_examples(30), deadline=None)
@given(GRAPHS, st.integers(0, 2), st.booleans())
def test_totals_are_what_a_crawl_of_everything_uses_and_finds(
    drawn: list[tuple[str, list[int], int]], retries: int, blocking: bool
) -> None:
    """Breadth-first, exactly, whatever is dead, moved, busy, forbidden or stopped, and whatever the goal."""
    with tempfile.TemporaryDirectory() as folder:
        site = graph(Path(folder), drawn)
        options: dict[str, Any] = {"retries": retries} if blocking else {"retries": retries, "blocked_mimes": ()}
        for goal in (
            FilesGoal(),
            FilesGoal(stored=True),
            ItemsGoal(),
            Once(),
            lambda outcome: float(bool(outcome.error)),
        ):
            truth = SiteTruth(site, goal, ignored=blocked_extensions(getattr(goal, "types", ())), **options)
            harvest = simulate(BreadthFirst(), goal, site, truth=truth, **options)
            assert totals(harvest) == truth.exhaustive
            assert list(dict.fromkeys(harvest.pages[1:].tolist())) == [
                number for number in truth.order if number in set(harvest.pages.tolist())
            ]
            assert truth.worth.sum() == truth.exhaustive.worth
        site.close()


def test_totals_by_hand(tmp_path: Path) -> None:
    """Requests of each kind, bytes as received, and hosts with a target."""
    truth = SiteTruth(site_of(tmp_path, SITE), FilesGoal(), ignored=["png"])
    once = ["/", "/p", "/f.csv", "/to", "/h.csv", "/on", "/q", "/gone", "/off", "/i", "/far.csv", "/x", "/z"]
    good = ["/f.csv", "/h.csv", "http://sub.a.example/g.csv"]
    received = sum(sum(size_of(SITE[path])) for path in once if path not in ("/i", "/x") and path not in good)
    assert truth.exhaustive == Exhaustive(
        requests=len(once) + 1 + 3 + 3,
        worth=3.0,
        target_bytes=sum(sum(size_of(SITE[path])) for path in good),
        other_bytes=received + 3 * sum(size_of(BUSY)),
        hosts=2,
    )


def test_every_url_has_a_kind(tmp_path: Path) -> None:
    """Those that cannot be reached, too."""
    truth = SiteTruth(site_of(tmp_path, SITE), FilesGoal(), ignored=["png"])
    kinds = {
        "/": "page", "/p": "page", "/q": "page", "/lost": "page", "/f.csv": "target", "/h.csv": "target", "/to": "redirect",
        "/on": "redirect", "/far.csv": "redirect", "/gone": "dead", "/busy": "dead", "/broken": "dead", "/no": "dead",
        "/off": "dead", "/i": "other", "/pic.png": "other", "/z": "other", "/x": "unknown", "/nowhere": "unknown",
    }  # fmt: skip
    assert {path: truth.kind(HOST + path) for path in kinds} == kinds


def test_every_url_leads_somewhere(tmp_path: Path) -> None:
    """A page to its links, each once and in order, a redirect to its target; all others, and missing ones, nowhere."""
    more = {
        "/q": page("/p", "/z", "/p", "/q", "/pic.png"),
        "/again": refresh("/again"),
        "/busy": {**page("/p"), "status": 503},
    }
    site = site_of(tmp_path, SITE | more | {"/z": page("/again")})
    truth = SiteTruth(site, FilesGoal(), ignored=["png"])
    led = {
        path: [site.urls[number].removeprefix(HOST) for number in truth.leads_to(site.ids[HOST + path]).tolist()]
        for path in [*SITE, "/again", "/x"]
        if not path.startswith("http")
    }
    assert {path: found for path, found in led.items() if found} == {
        "/": ["/p", "/f.csv", "/to", "/on", "/gone", "/busy", "/broken", "/no", "/off", "/i", "/far.csv", "/x"],
        "/p": ["http://sub.a.example/g.csv", "/z"], "/to": ["/h.csv"], "/on": ["/q"], "/q": ["/p", "/z", "/q"],
        "/far.csv": ["/p"], "/z": ["/again"],
    }  # fmt: skip


def test_a_page_without_a_type_is_a_page(tmp_path: Path) -> None:
    """If it has links."""
    plain = {"status": 200, "headers": {}, "body": b"<html><a href='/f.csv'>f</a>"}
    truth = SiteTruth(site_of(tmp_path, {"/": plain, "/f.csv": file()}), FilesGoal())
    assert truth.kind(f"{HOST}/") == "page"
    assert truth.exhaustive.requests == 2


def test_what_is_dead_may_be_a_target(tmp_path: Path) -> None:
    """For a goal that looks for dead links; one that takes off for them has no targets."""
    site = site_of(tmp_path, SITE)
    dead = SiteTruth(site, lambda outcome: float(outcome.status == 404))
    assert (dead.kind(f"{HOST}/gone"), dead.kind(f"{HOST}/f.csv")) == ("target", "other")
    assert [link.url for link in dead.targets()] == [f"{HOST}/gone"]
    minus = SiteTruth(site, lambda outcome: -float(outcome.status == 404))
    assert minus.kind(f"{HOST}/gone") == "dead"
    assert minus.targets() == []
    assert (minus.exhaustive.worth, minus.exhaustive.target_bytes, minus.exhaustive.hosts) == (-1.0, 0, 0)


def test_targets_come_in_the_order_of_a_breadth_first_crawl(tmp_path: Path) -> None:
    """A redirect is followed at once; each target once, by its own URL, with the number that links to it have."""
    site = site_of(tmp_path, SITE)
    truth = SiteTruth(site, FilesGoal(), ignored=["png"])
    targets = truth.targets()
    assert [link.url for link in targets] == [f"{HOST}/f.csv", f"{HOST}/h.csv", "http://sub.a.example/g.csv"]
    assert all(site.urls[link.key] == link.url for link in targets)
    assert [link.host for link in targets] == ["a.example", "a.example", "sub.a.example"]


def test_of_equal_files_the_first_is_the_target(tmp_path: Path) -> None:
    """If only new contents count."""
    site = site_of(tmp_path, {"/": page("/b.csv", "/a.csv"), "/a.csv": file("1"), "/b.csv": file("1")})
    truth = SiteTruth(site, FilesGoal(stored=True))
    assert [link.url for link in truth.targets()] == [f"{HOST}/b.csv"]
    assert truth.kind(f"{HOST}/a.csv") == "other"
    assert len(SiteTruth(site, FilesGoal()).targets()) == 2


def test_a_long_chain_of_redirects_ends_nowhere(tmp_path: Path) -> None:
    """What is behind more than twenty is not reached, unless something else links to the middle of it."""
    chain = {f"/{i}": moved(f"/{i + 1}") for i in range(25)} | {"/25": file()}
    assert SiteTruth(site_of(tmp_path, {"/": page("/0"), **chain}), FilesGoal()).exhaustive.worth == 0
    (tmp_path / "again").mkdir()
    site = site_of(tmp_path / "again", {"/": page("/0", "/22"), **chain})
    truth = SiteTruth(site, FilesGoal())
    assert (truth.exhaustive.worth, truth.exhaustive.requests) == (1, 1 + 21 + 4)
    assert totals(simulate(BreadthFirst(), FilesGoal(), site)) == truth.exhaustive


def test_a_goal_that_remembers_is_not_used_up(tmp_path: Path) -> None:
    """It is asked about the whole site in a copy, and starts the crawl afresh."""
    goal = Once()
    site = site_of(tmp_path, SITE)
    truth = SiteTruth(site, goal)
    assert goal.seen == set()
    assert truth.exhaustive.worth == simulate(BreadthFirst(), goal, site).found[-1] == len(goal.seen) > 2


class Locked(FilesGoal):
    """Cannot be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


def test_a_goal_that_cannot_be_copied_is_a_mistake(tmp_path: Path) -> None:
    """As is one that says no number; where the truth is at hand, nothing is copied."""
    site = site_of(tmp_path, SITE)
    with pytest.raises(ConfigError, match="cannot be copied"):
        SiteTruth(site, Locked())
    with pytest.raises(GoalError, match="nan"):
        SiteTruth(site, lambda outcome: float("nan"))
    assert simulate(BreadthFirst(), Locked(), site, truth=SiteTruth(site, FilesGoal())).found[-1] == 3


def test_the_order_is_that_of_a_crawl(tmp_path: Path) -> None:
    """All that is asked for, each once; what robots.txt forbids is not."""
    site = site_of(tmp_path, SITE)
    truth = SiteTruth(site, FilesGoal(), ignored=["png"])
    asked = list(dict.fromkeys(course(simulate(BreadthFirst(), FilesGoal(), site), site)))
    assert [site.urls[number].removeprefix(HOST) for number in truth.order] == asked
    assert "/no" not in asked
