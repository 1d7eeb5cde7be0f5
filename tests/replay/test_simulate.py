"""Simulated crawls: budgets to the request, many in flight, time, what a harvest says, and what goes wrong."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from handmade import (
    BUSY,
    FORBIDDEN,
    GONE,
    GRAPHS,
    HOST,
    Curious,
    Fields,
    Watching,
    course,
    failing,
    file,
    graph,
    moved,
    page,
    site_of,
    size_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_focus import Budget, ConfigError, EventLog, FilesGoal, GoalError, ItemsGoal, Link, Ordering, Plateau
from scrapy_focus.core.errors import PolicyError, RecordingError
from scrapy_focus.core.log import read_log
from scrapy_focus.lab.replay.latency import Constant, LogNormal
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.policies.orderings import BreadthFirst, DepthFirst, Random
from scrapy_focus.policies.tagpath.oracles import Informed, Omniscient
from tests.examples import n_examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus import Outcome, Placement
    from scrapy_focus.lab.recordings.format import RecordedSite
    from scrapy_focus.lab.replay.harvest import Harvest

ARRAYS = ("found", "target_bytes", "other_bytes", "seconds", "pages", "heads", "rewards", "hosts")


def same(one: Harvest, other: Harvest) -> bool:
    """Whether two crawls went the same way."""
    return one.asked == other.asked and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ARRAYS)


def tree(files: int = 40) -> dict[str, Fields]:
    """A site of a few pages with files on them."""
    pages = {f"/p{i}": page(*(f"/{i}-{j}.csv" for j in range(4))) for i in range(files // 4)}
    data = {f"/{i}-{j}.csv": file(f"{i},{j}") for i in range(files // 4) for j in range(4)}
    return {"/": page(*pages), **pages, **data}


class Probing(Random):
    """In random order, every third link with a HEAD first, which some are dropped after."""

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        places = super().place(links, source)
        if source is not None and source.pick.method == "HEAD":
            return [None if links[0].key % 2 else places[0]]
        return [
            place and place._replace(method="HEAD" if link.key % 3 == 0 else "GET")
            for link, place in zip(links, places, strict=True)
        ]


def consistent(harvest: Harvest) -> None:
    """Fail unless what a harvest says fits together."""
    n = harvest.requests + 1
    assert all(getattr(harvest, name).shape == (n,) for name in ARRAYS)
    assert harvest.found[0] == harvest.target_bytes[0] == harvest.other_bytes[0] == harvest.hosts[0] == 0
    assert harvest.pages[0] == -1
    for name in ("found", "target_bytes", "seconds", "hosts"):
        assert (np.diff(getattr(harvest, name)) >= 0).all(), name
    total = harvest.target_bytes + harvest.other_bytes
    assert (np.diff(total) >= 0).all()
    assert np.allclose(np.cumsum(harvest.rewards), harvest.found)
    assert not harvest.rewards[harvest.heads].any()
    counts = harvest.counts
    assert counts["selected"] == counts["outcomes"] + counts["released"] == len(harvest.asked)
    assert sum(count for name, count in counts.items() if name.startswith("outcome/")) == counts["outcomes"]
    assert harvest.found[-1] <= harvest.exhaustive.worth


@settings(max_examples=n_examples(30), deadline=None)
@given(GRAPHS, st.integers(1, 40), st.sampled_from([1, 2, 5]), st.sampled_from([0.0, 0.2]), st.integers(0, 3))
def test_requests_never_exceed_the_budget_and_use_it_up(
    drawn: list[tuple[str, list[int], int]], budget: int, concurrency: int, latency: float, seed: int
) -> None:
    """Whatever HEADs, redirects, retries and refused connections there are; and every pick ends once."""
    with tempfile.TemporaryDirectory() as folder:
        site = graph(Path(folder), drawn)
        how: dict[str, Any] = {"concurrency": concurrency, "latency": latency, "seed": seed}
        for policy in (BreadthFirst, Probing):
            whole = simulate(policy(), FilesGoal(stored=True), site, **how)
            consistent(whole)
            assert whole.stopped == ""
            assert whole.counts["released"] == 0
            part = simulate(policy(), FilesGoal(stored=True), site, budget=budget, **how)
            consistent(part)
            assert part.requests <= budget
            assert part.stopped == ("budget_requests" if part.requests == budget else "")
            if not any(kind == "refused" for kind, _, _ in drawn):  # else a HEAD may be broken off, and made again
                assert part.requests == min(budget, whole.requests)
            if concurrency == 1:
                for name in ARRAYS:
                    assert np.array_equal(getattr(part, name), getattr(whole, name)[: part.requests + 1]), name
        site.close()


@pytest.mark.parametrize(
    ("budget", "paths", "released"),
    [
        (1, ["/"], 0),
        (2, ["/", "/a"], 1),
        (3, ["/", "/a", "/b"], 1),
        (4, ["/", "/a", "/b", "/c.csv"], 0),
        (5, ["/", "/a", "/b", "/c.csv", "HEAD /d"], 1),
        (7, ["/", "/a", "/b", "/c.csv", "HEAD /d", "HEAD /e.csv", "/busy"], 1),
    ],
)
def test_a_pick_that_is_broken_off_is_released(tmp_path: Path, budget: int, paths: list[str], released: int) -> None:
    """In the middle of its redirects or retries; a live crawl would continue it in its next run."""
    site = site_of(
        tmp_path,
        {
            "/": page("/a", "/d", "/busy"), "/a": moved("/b"), "/b": moved("/c.csv"), "/c.csv": file(), "/d": moved("/e.csv"),
            "/e.csv": file("2"), "/busy": BUSY,
        },
    )  # fmt: skip
    harvest = simulate(DropsHeads(heads=["/d"]), FilesGoal(), site, budget=budget)
    assert course(harvest, site) == paths
    assert (harvest.counts["released"], harvest.stopped) == (released, "budget_requests")
    assert harvest.counts["selected"] == harvest.counts["outcomes"] + released


class DropsHeads(Watching):
    """Looks and leaves it at that."""

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        probed = source is not None and source.pick.method == "HEAD"
        return [None] if probed else super().place(links, source)


def test_what_is_in_flight_at_the_end_arrives(tmp_path: Path) -> None:
    """With a budget of requests: all that were sent arrive, and are learned from."""
    site = site_of(tmp_path, tree())
    policy = Watching()
    harvest = simulate(policy, FilesGoal(), site, budget=17, concurrency=8, latency=LogNormal(0.2))
    assert harvest.requests == len(policy.learnt) == len(harvest.asked) == 17
    assert harvest.counts["released"] == 0


def test_bytes_and_seconds_are_budgets_too(tmp_path: Path) -> None:
    """They are used up by what arrives; requests in flight then still arrive, without their redirects."""
    site = site_of(tmp_path, tree())
    root = sum(size_of(tree()["/"]))
    harvest = simulate(BreadthFirst(), FilesGoal(), site, budget=Budget(bytes=root + 1))
    assert (harvest.requests, harvest.stopped) == (2, "budget_bytes")
    harvest = simulate(BreadthFirst(), FilesGoal(), site, budget=Budget(seconds=3.0), latency=1.0, concurrency=4)
    assert (harvest.requests, harvest.stopped) == (1 + 2 * 4, "budget_seconds")
    assert harvest.seconds[-1] == 3
    harvest = simulate(BreadthFirst(), FilesGoal(), site, budget=Budget(seconds=2.5), latency=1.0, concurrency=4)
    assert (harvest.requests, harvest.seconds[-1]) == (1 + 2 * 4, 3)
    (tmp_path / "moved").mkdir()
    leads = site_of(tmp_path / "moved", {"/": page("/a"), "/a": moved("/b"), "/b": page()})
    harvest = simulate(BreadthFirst(), FilesGoal(), leads, budget=Budget(seconds=1.5), latency=1.0)
    assert course(harvest, leads) == ["/", "/a"]
    assert harvest.counts["released"] == 1


def test_a_budget_and_a_plateau_can_be_used_again(tmp_path: Path) -> None:
    """Each simulation starts with nothing used."""
    site = site_of(tmp_path, tree())
    budget, plateau = Budget(requests=10), Plateau(window=5, slope=0.9, decay=1.0, patience=2)
    first, second = (simulate(BreadthFirst(), FilesGoal(), site, budget=budget) for _ in range(2))
    assert first.requests == second.requests == 10
    assert budget.requests_used == 0
    first, second = (simulate(BreadthFirst(), FilesGoal(), site, stop=plateau) for _ in range(2))
    assert (first.requests, first.stopped) == (second.requests, second.stopped) == (10, "plateau")
    assert plateau.state()["average"] is None


def test_a_refused_connection_gives_its_request_back_at_the_very_end(tmp_path: Path) -> None:
    """So the last request of a budget gets an answer, and redirects that waited for it continue."""
    refused = failing("failure: DownloadConnectionRefusedError")
    site = site_of(tmp_path, {"/": page("/r", "/a"), "/r": refused, "/a": moved("/b"), "/b": page("/c"), "/c": page()})
    for budget in range(1, 5):
        harvest = simulate(BreadthFirst(), FilesGoal(), site, budget=budget, concurrency=2, latency=1.0, retries=0)
        assert course(harvest, site) == ["/", "/a", "/b", "/c"][:budget]
    slow = Steps({"/": 1.0, "/a": 1.0, "/r": 1.5, "/b": 1.0, "/c": 1.0}, site)
    harvest = simulate(BreadthFirst(), FilesGoal(), site, budget=3, concurrency=2, latency=slow, retries=0)
    assert course(harvest, site) == ["/", "/a", "/b"]
    assert harvest.seconds.tolist() == [0, 1, 2, 3.5]
    assert harvest.counts["released"] == 0


class Steps:
    """Every URL takes its own time."""

    def __init__(self, seconds: dict[str, float], site: RecordedSite) -> None:
        self.seconds = [seconds.get(url.removeprefix(HOST), 1.0) for url in site.urls]

    def __call__(self, page: int, rng: np.random.Generator) -> float:
        return self.seconds[page]


def test_the_last_hop_has_the_reward_and_the_target_bytes(tmp_path: Path) -> None:
    """What led there was received for something else; the host is the one where the target is."""
    data, hop = file("a,b,c"), moved("http://sub.a.example/d.csv")
    front = page("/a", "http://sub.a.example/e.csv")
    site = site_of(
        tmp_path, {"/": front, "/a": hop, "http://sub.a.example/d.csv": data, "http://sub.a.example/e.csv": file("12")}
    )
    harvest = simulate(BreadthFirst(), FilesGoal(), site)
    front_size, hop_size, data_size, e_size = (sum(size_of(each)) for each in (front, hop, data, file("12")))
    assert harvest.found.tolist() == [0, 0, 0, 1, 2]
    assert harvest.rewards.tolist() == [0, 0, 0, 1, 1]
    assert harvest.target_bytes.tolist() == [0, 0, 0, data_size, data_size + e_size]
    assert harvest.other_bytes.tolist() == [0, front_size, *[front_size + hop_size] * 3]
    assert harvest.hosts.tolist() == [0, 0, 0, 1, 1]
    assert harvest.exhaustive.hosts == 1


def test_retried_bytes_are_received_each_time(tmp_path: Path) -> None:
    """And count as worth nothing, but for the last answer of a page that earns."""
    site = site_of(tmp_path, {"/": page("/b"), "/b": BUSY})
    harvest = simulate(BreadthFirst(), lambda outcome: float(outcome.status == 503), site)
    root, busy = sum(size_of(page("/b"))), sum(size_of(BUSY))
    assert harvest.other_bytes.tolist() == [0, root, root + busy, root + 2 * busy, root + 2 * busy]
    assert harvest.target_bytes.tolist() == [0, 0, 0, 0, busy]
    assert harvest.found[-1] == harvest.exhaustive.worth == 1
    assert (harvest.exhaustive.target_bytes, harvest.exhaustive.other_bytes) == (busy, root + 2 * busy)


def test_penalties_are_no_targets(tmp_path: Path) -> None:
    """A goal may subtract: what is found shrinks, and no bytes are moved."""
    site = site_of(tmp_path, tree(4))
    harvest = simulate(BreadthFirst(), lambda outcome: -1.0, site)
    assert harvest.found.tolist() == [-float(k) for k in range(harvest.requests + 1)]
    assert harvest.target_bytes[-1] == harvest.hosts[-1] == harvest.exhaustive.target_bytes == 0
    assert harvest.exhaustive.worth == -harvest.requests


def test_a_reward_for_what_was_never_asked_for_is_kept(tmp_path: Path) -> None:
    """A strange goal that pays for refusals: the sum is that of the crawl."""
    site = site_of(tmp_path, {"/": page("/no", "/a"), "/no": FORBIDDEN, "/a": page()})
    harvest = simulate(BreadthFirst(), lambda outcome: float(outcome.error == "ignored"), site)
    assert harvest.found.tolist() == [0, 1, 1]
    assert harvest.found[-1] == harvest.exhaustive.worth


def test_several_roots_are_asked_for_in_order(tmp_path: Path) -> None:
    """Each once; links between them are known."""
    site = site_of(tmp_path, {"/x": page("/y"), "/y": page("/x", "/z"), "/z": page()}, roots=["/x", "/y"])
    assert course(simulate(BreadthFirst(), FilesGoal(), site), site) == ["/x", "/y", "/z"]


@pytest.mark.parametrize("concurrency", [1, 3, 7])
def test_no_more_are_in_flight_than_allowed_and_no_fewer_than_possible(tmp_path: Path, concurrency: int) -> None:
    """So a crawl with a latency of L seconds makes concurrency / L requests a second."""
    site = site_of(tmp_path, tree(80))
    policy = Watching()
    harvest = simulate(policy, FilesGoal(), site, concurrency=concurrency, latency=2.0)
    flying, most = 0, 0
    for what, _ in policy.seen:
        flying += 1 if what == "select" else -1
        most = max(most, flying)
    assert most == concurrency
    assert flying == 0
    assert harvest.seconds[-1] == 2 * (1 + np.ceil((harvest.requests - 1) / concurrency))
    consistent(harvest)


def test_outcomes_come_back_in_the_order_of_time(tmp_path: Path) -> None:
    """Simultaneous ones in the order of sending; a redirect keeps its place in flight."""
    site = site_of(
        tmp_path,
        {
            "/": page("/a", "/b", "/c", "/d"),
            "/a": page(),
            "/b": moved("/b2"),
            "/b2": page(),
            "/c": page(),
            "/d": page(),
        },
    )
    slow = Steps({"/a": 5.0, "/b": 1.0, "/b2": 1.0, "/c": 1.0}, site)
    policy = Watching()
    harvest = simulate(policy, FilesGoal(), site, concurrency=3, latency=slow)
    assert course(harvest, site) == ["/", "/b", "/c", "/b2", "/d", "/a"]
    assert harvest.seconds.tolist() == [0, 1, 2, 2, 3, 3, 6]
    assert policy.seen[2:] == [
        ("select", "/a"), ("select", "/b"), ("select", "/c"), ("learn", "/c"), ("select", "/d"), ("learn", "/b"),
        ("learn", "/d"), ("learn", "/a"),
    ]  # fmt: skip
    assert [each.seconds for each in policy.learnt] == [1, 1, 2, 1, 5]


def test_learning_lags_behind_choosing(tmp_path: Path) -> None:
    """With many in flight a policy chooses before it knows what came of the choices before."""
    site = site_of(tmp_path, tree())
    alone, busy = Watching(), Watching()
    simulate(alone, FilesGoal(), site, latency=1.0)
    simulate(busy, FilesGoal(), site, latency=1.0, concurrency=8)
    assert alone.seen[2:6:2] == [("select", "/p0"), ("select", "/p1")]
    assert [what for what, _ in alone.seen] == ["select", "learn"] * len(alone.learnt)
    assert [what for what, _ in busy.seen[2:11]] == ["select"] * 8 + ["learn"]


def test_with_one_in_flight_the_latency_changes_nothing_but_time(tmp_path: Path) -> None:
    """The same choices, whatever the network does."""
    site = site_of(tmp_path, tree())
    still, slow = (simulate(Random(), FilesGoal(), site, latency=latency) for latency in (0.0, LogNormal(0.3)))
    assert still.asked == slow.asked
    assert np.array_equal(still.pages, slow.pages)
    assert still.seconds[-1] == 0 < slow.seconds[-1]


def test_the_same_seed_gives_the_same_crawl(tmp_path: Path) -> None:
    """Another one does not; without one, none is like the other."""
    site = site_of(tmp_path, tree())
    how: dict[str, Any] = {"concurrency": 4, "latency": LogNormal(0.2)}
    one, again, other = (simulate(Random(), FilesGoal(), site, seed=seed, **how) for seed in (7, 7, 8))
    assert same(one, again)
    assert one.asked != other.asked
    assert not np.array_equal(one.seconds, other.seconds)
    loose = [simulate(BreadthFirst(), FilesGoal(), site, seed=None, **how) for _ in range(2)]
    assert not np.array_equal(loose[0].seconds, loose[1].seconds)


def test_the_network_does_not_depend_on_what_the_policy_draws(tmp_path: Path) -> None:
    """Two policies that send as many requests wait equally long for each of them."""
    site = site_of(tmp_path, tree())
    breadth, random = (
        simulate(policy(), FilesGoal(), site, latency=LogNormal(0.2)) for policy in (BreadthFirst, Random)
    )
    assert np.array_equal(breadth.seconds, random.seconds)
    assert breadth.asked != random.asked


def test_a_goal_that_never_says_gives_nothing(tmp_path: Path) -> None:
    """The crawl goes to its end all the same, with one in flight and with many."""
    site = site_of(tmp_path, tree())
    for concurrency in (1, 8):
        harvest = simulate(BreadthFirst(), lambda outcome: None, site, concurrency=concurrency, latency=1.0)
        assert harvest.found[-1] == harvest.exhaustive.worth == 0
        assert harvest.requests == harvest.exhaustive.requests == len(tree())
        assert harvest.counts["reward/late"] == harvest.counts["outcomes"] == len(tree())
        consistent(harvest)


def test_items_are_what_somebody_makes_of_pages(tmp_path: Path) -> None:
    """By default the datasets spider, which stores each content once; or a function, called anew for each crawl."""
    site = site_of(
        tmp_path,
        {"/": page("/a.csv", "/b.csv", "/c.csv"), "/a.csv": file("1"), "/b.csv": file("1"), "/c.csv": file("2")},
    )
    stored = simulate(BreadthFirst(), FilesGoal(stored=True), site)
    assert stored.found.tolist() == [0, 0, 1, 1, 2]
    assert stored.exhaustive.worth == 2
    assert simulate(BreadthFirst(), FilesGoal(), site).found[-1] == 3
    assert simulate(BreadthFirst(), ItemsGoal(), site).found[-1] == 2
    harvest = simulate(
        BreadthFirst(), ItemsGoal(), site, items=lambda site: lambda page: 10.0 * ("html" in site.mimes[page])
    )
    assert harvest.found.tolist() == [0, 10, 10, 10, 10]
    assert harvest.exhaustive.worth == 10


def test_a_goal_that_reads_text_needs_bodies(tmp_path: Path) -> None:
    """A recording without them is an error that says what to do, and no crawl that finds nothing."""
    site = {"/": page("/a", "/f.csv", text="no"), "/a": page(text="bicycle"), "/f.csv": file("bicycle")}

    def goal(outcome: Outcome) -> float:
        return float(outcome.page is not None and "bicycle" in outcome.page.text)

    assert simulate(BreadthFirst(), goal, site_of(tmp_path, site, bodies=True)).found.tolist() == [0, 0, 1, 1]
    (tmp_path / "without").mkdir()
    with pytest.raises(RecordingError, match=r"text of http://a.example/ .* no bodies: .*--bodies"):
        simulate(BreadthFirst(), goal, site_of(tmp_path / "without", site))


def test_empty_pages_and_errors_have_no_text_in_any_recording(tmp_path: Path) -> None:
    """Their text is empty, or not kept: nothing to complain of."""
    site = site_of(
        tmp_path, {"/": page(), "/gone": GONE, "/x": page(text="not found", status=404)}, roots=["/", "/gone", "/x"]
    )
    texts: list[str] = []
    simulate(BreadthFirst(), lambda outcome: float(texts.append(outcome.page.text) is not None), site)
    assert texts == [""] * 6, "three for the truth, three for the crawl"


def test_a_plateau_ends_a_crawl(tmp_path: Path) -> None:
    """With its finds so far."""
    site = site_of(tmp_path, {"/": page(*(f"/{i}" for i in range(50)))} | {f"/{i}": page() for i in range(50)})
    harvest = simulate(BreadthFirst(), FilesGoal(), site, stop=Plateau(window=5, slope=0.1, decay=1.0, patience=3))
    assert (harvest.requests, harvest.stopped) == (15, "plateau")


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz"])
def test_decisions_are_logged_as_live(tmp_path: Path, name: str) -> None:
    """Each pick, outcome and release, in order; the file is closed at the end."""
    site = site_of(tmp_path, {"/": page("/a", "/b"), "/a": GONE, "/b": moved("/c"), "/c": page()})
    harvest = simulate(BreadthFirst(), FilesGoal(), site, budget=3, log=EventLog(tmp_path / name), latency=0.25)
    events = list(read_log(tmp_path / name))
    assert [event["event"] for event in events] == ["pick", "outcome"] * 2 + ["pick", "release"]
    assert [event["url"] for event in events if event["event"] == "pick"] == harvest.asked
    gone = events[3]
    assert (gone["status"], gone["error"], gone["seconds"], gone["reward"]) == (404, "http_error", 0.25, 0.0)


def test_informed_policies_are_informed_and_start_where_they_want(tmp_path: Path) -> None:
    """They get the truth first; their start links count as known."""
    site = site_of(tmp_path, tree(8))
    harvest = simulate(Omniscient(), FilesGoal(), site)
    assert harvest.found.tolist() == list(range(9))
    assert course(harvest, site) == [f"/{i}-{j}.csv" for i in range(2) for j in range(4)]
    nothing = simulate(Omniscient(), lambda outcome: 0.0, site)
    assert (nothing.requests, nothing.found.tolist()) == (0, [0])


class FromFiles(Informed, BreadthFirst):
    """Starts with two pages that it knows."""

    def seeds(self) -> Sequence[Link]:
        return [Link(HOST + path, self.truth.site.ids[HOST + path], "a.example") for path in ("/p0", "/r")]


def test_what_an_informed_policy_starts_with_was_had(tmp_path: Path) -> None:
    """A redirect to it is not followed, and a link to it is not new."""
    site = site_of(
        tmp_path, {"/": page("/p0", "/r", "/s"), "/p0": page("/r", "/"), "/r": moved("/p0"), "/s": moved("/p0")}
    )
    harvest = simulate(FromFiles(), FilesGoal(), site)
    assert course(harvest, site) == ["/p0", "/r", "/", "/s"]
    assert harvest.counts["outcome/redirect_seen"] == 2


def test_known_links_can_be_asked_for_again(tmp_path: Path) -> None:
    """A policy that wants to revisit does so, and the goal judges each visit."""
    site = site_of(tmp_path, {"/": page("/a"), "/a": page("/")})

    class Revisiting(Curious):
        def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
            return Watching.place(self, links, source)

    harvest = simulate(Revisiting(), lambda outcome: 1.0, site, budget=5)
    assert course(harvest, site) == ["/", "/a", "/", "/a", "/"]
    assert harvest.found.tolist() == [0, 1, 2, 3, 4, 5]


class Failing(Ordering):
    """Fails at its second page."""

    def rank(self, link: Link, source: Outcome | None) -> float:
        return float("nan") if link.depth == 2 else 1.0


def test_errors_of_a_policy_or_goal_end_the_simulation(tmp_path: Path) -> None:
    """They are to be seen, not counted; what was logged until then is in the file."""
    site = site_of(tmp_path, tree(4))
    with pytest.raises(PolicyError, match="NaN"):
        simulate(Failing(), FilesGoal(), site, log=EventLog(tmp_path / "log"))
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line["event"] for line in lines] == ["pick", "outcome", "pick"]
    with pytest.raises(GoalError, match="'much'"):
        simulate(BreadthFirst(), lambda outcome: "much", site)
    with pytest.raises(ZeroDivisionError):
        simulate(BreadthFirst(), lambda outcome: 1 / 0, site)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"concurrency": 0}, "concurrency=0"),
        ({"retries": -1}, "retries=-1"),
        ({"seed": -1}, "seed=-1"),
        ({"budget": 0}, "0 requests"),
        ({"latency": -1.0}, "-1.0 seconds"),
        ({"latency": lambda page, rng: -0.1}, "-0.1"),
        ({"latency": lambda page, rng: float("nan")}, "nan"),
        ({"latency": lambda page, rng: float("inf")}, "inf"),
    ],
)
def test_arguments_that_cannot_be_used_are_mistakes(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    """The message says which."""
    with pytest.raises(ConfigError, match=message):
        simulate(BreadthFirst(), FilesGoal(), site_of(tmp_path, tree(4)), **arguments)


def test_a_site_can_be_named_by_its_file(tmp_path: Path) -> None:
    """One that is not there, or a truth about another one, is an error."""
    site = site_of(tmp_path, tree(4))
    truth = SiteTruth(site, FilesGoal())
    assert same(
        simulate(DepthFirst(), FilesGoal(), site.path, truth=truth), simulate(DepthFirst(), FilesGoal(), str(site.path))
    )
    with pytest.raises(RecordingError, match="is not there"):
        simulate(BreadthFirst(), FilesGoal(), tmp_path / "no.sqlite")
    (tmp_path / "other").mkdir()
    with pytest.raises(ConfigError, match="other"):
        simulate(BreadthFirst(), FilesGoal(), site_of(tmp_path / "other", tree(4)), truth=truth)


def test_a_site_of_which_nothing_answers_is_crawled(tmp_path: Path) -> None:
    """Its root was never recorded, is forbidden, or fails."""
    for i, answers in enumerate([{}, {"/": FORBIDDEN}, {"/": failing()}]):
        (tmp_path / str(i)).mkdir()
        harvest = simulate(BreadthFirst(), FilesGoal(), site_of(tmp_path / str(i), answers), latency=Constant(1))
        assert harvest.requests == harvest.exhaustive.requests == [1, 0, 3][i]
        assert harvest.found[-1] == 0
        consistent(harvest)
