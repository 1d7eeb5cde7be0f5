"""The link floor: the order of requests of a crawl that knows the whole site, but has to find what it requests."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
from handmade import BUSY, FORBIDDEN, GONE, GRAPHS, HOST, course, file, graph, moved, page, refresh, site_of
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles.profiles import PROFILES, ProfileSite
from scrapy_focus import FilesGoal
from scrapy_focus.core.errors import PolicyError
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.importers.folder import record_site
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.policies.linkfloor import LinkFloor
from scrapy_focus.policies.orderings import BreadthFirst
from scrapy_focus.policies.tagpath.oracles import Omniscient
from tests.examples import n_examples


def floor(folder: Path, answers: dict[str, dict], **options) -> str:
    """Return the paths that the link floor asks for on a site, in order."""
    site = site_of(folder, answers)
    harvest = simulate(LinkFloor(), FilesGoal(), site, **options)
    site.close()
    return " ".join(course(harvest, site))


def files(*names: str) -> dict[str, dict]:
    """A file under each of these names."""
    return {name: file(name) for name in names}


def test_a_hub_two_steps_away_beats_pages_with_a_target_each(tmp_path: Path) -> None:
    """Three targets behind two pages are more for each request than one behind one."""
    site = {
        "/": page("/a", "/b", "/way"), "/a": page("/a.csv"), "/b": page("/b.csv"), "/way": page("/hub"),
        "/hub": page("/1.csv", "/2.csv", "/3.csv"), **files("/a.csv", "/b.csv", "/1.csv", "/2.csv", "/3.csv"),
    }  # fmt: skip
    assert floor(tmp_path, site) == "/ /way /hub /1.csv /2.csv /3.csv /a /a.csv /b /b.csv"


def test_of_equal_paths_the_shorter_one_comes_first_and_then_the_breadth_first_one(tmp_path: Path) -> None:
    """Two targets behind two pages are worth as much for each request as one behind one."""
    site = {
        "/": page("/way", "/b", "/a"), "/a": page("/a.csv"), "/b": page("/b.csv"), "/way": page("/hub"),
        "/hub": page("/1.csv", "/2.csv"), **files("/a.csv", "/b.csv", "/1.csv", "/2.csv"),
    }  # fmt: skip
    assert floor(tmp_path, site) == "/ /b /b.csv /a /a.csv /way /hub /1.csv /2.csv"


def test_of_equal_ways_to_a_page_the_breadth_first_one_is_taken(tmp_path: Path) -> None:
    """And none that is longer."""
    site = {
        "/": page("/long", "/x", "/y"), "/long": page("/longer"), "/longer": page("/hub"), "/x": page("/hub"),
        "/y": page("/hub"), "/hub": page("/1.csv"), "/1.csv": file(),
    }  # fmt: skip
    assert floor(tmp_path, site) == "/ /x /hub /1.csv"


def test_a_target_that_is_known_counts_no_more(tmp_path: Path) -> None:
    """Where two pages link to the same targets, the second one is worth what is left, and none if nothing is."""
    site = {
        "/": page("/copy", "/all", "/rest"), "/copy": page("/1.csv", "/2.csv"),
        "/all": page("/1.csv", "/2.csv", "/3.csv"),
        "/rest": page("/3.csv", "/4.csv"), **files("/1.csv", "/2.csv", "/3.csv", "/4.csv"),
    }  # fmt: skip
    assert floor(tmp_path, site) == "/ /all /1.csv /2.csv /3.csv /rest /4.csv"


def test_a_page_that_lost_targets_gives_way(tmp_path: Path) -> None:
    """Of the three targets of a page one is left, and so a page with two new ones comes first."""
    site = {
        "/": page("/a", "/b", "/c"), "/a": page("/1.csv", "/2.csv", "/3.csv"), "/b": page("/1.csv", "/2.csv", "/4.csv"),
        "/c": page("/5.csv", "/6.csv"), **files(*[f"/{i}.csv" for i in range(1, 7)]),
    }  # fmt: skip
    assert floor(tmp_path, site) == "/ /a /1.csv /2.csv /3.csv /c /5.csv /6.csv /b /4.csv"


def test_a_page_that_comes_nearer_is_worth_more(tmp_path: Path) -> None:
    """A hub that was far is taken up when a page on the way to another one links to it."""
    site = {
        "/": page("/a", "/b"), "/a": page("/a.csv", "/aa.csv", "/aaa.csv", "/far"), "/b": page("/b.csv", "/bb.csv"),
        "/far": page("/1.csv", "/2.csv", "/3.csv"),
        **files("/a.csv", "/aa.csv", "/aaa.csv", "/b.csv", "/bb.csv", "/1.csv", "/2.csv", "/3.csv"),
    }  # fmt: skip
    assert floor(tmp_path, site) == "/ /a /a.csv /aa.csv /aaa.csv /far /1.csv /2.csv /3.csv /b /b.csv /bb.csv"


def test_a_redirect_is_a_request_on_the_way(tmp_path: Path) -> None:
    """One to a hub makes the path longer by one, one to a target is a page that shows it; both are followed at once."""
    site = {
        "/": page("/moved", "/old.csv", "/b", "/refresh"), "/moved": moved("/hub"),
        "/hub": page("/1.csv", "/2.csv", "/3.csv"),
        "/old.csv": moved("/new.csv"), "/b": page("/b.csv", "/bb.csv"), "/refresh": refresh("/nothing"),
        "/nothing": page(),
        **files("/1.csv", "/2.csv", "/3.csv", "/new.csv", "/b.csv", "/bb.csv"),
    }  # fmt: skip
    assert floor(tmp_path, site) == "/ /b /b.csv /bb.csv /moved /hub /1.csv /2.csv /3.csv /old.csv /new.csv"


def test_a_redirect_to_what_is_known_leads_nowhere(tmp_path: Path) -> None:
    """Its target is asked for by its own link, and the redirect is left alone."""
    site = {"/": page("/old.csv", "/new.csv"), "/old.csv": moved("/new.csv"), "/new.csv": file()}
    assert floor(tmp_path, site) == "/ /new.csv"


def test_a_target_that_a_redirect_led_to_is_known(tmp_path: Path) -> None:
    """A page that links to it and to nothing else is left alone."""
    site = {
        "/": page("/old.csv", "/list"),
        "/old.csv": moved("/new.csv"),
        "/list": page("/new.csv"),
        "/new.csv": file(),
    }
    assert floor(tmp_path, site) == "/ /old.csv /new.csv"


def test_a_chain_of_redirects_that_is_too_long_is_given_up(tmp_path: Path) -> None:
    """What seems to lie behind it is reached by another way, or not at all."""
    chain = {f"/{i}": moved(f"/{i + 1}") for i in range(25)}
    site = {"/": page("/0", "/a", "/22"), "/25": page("/1.csv"), "/1.csv": file(), "/a": page(), **chain}
    assert floor(tmp_path, site) == "/ /22 /23 /24 /25 /1.csv"


class Wrong(SiteTruth):
    """Says that the page /a links to whatever the page /hub links to, and to that page."""

    def leads_to(self, key):
        hub, a = (self.site.ids[f"{HOST}/{name}"] for name in ("hub", "a"))
        return np.append(super().leads_to(hub), hub) if key == a else super().leads_to(key)


def test_a_link_that_is_not_where_it_should_be_is_found_elsewhere(tmp_path: Path) -> None:
    """Where a page does not show what was expected, the plan is made anew without it."""
    site = {
        "/": page("/a", "/b"), "/a": page(), "/b": page("/c"), "/c": page("/hub"), "/hub": page("/1.csv", "/2.csv"),
        **files("/1.csv", "/2.csv"),
    }  # fmt: skip
    recorded = site_of(tmp_path, site)
    truth = Wrong(recorded, FilesGoal())
    harvest = simulate(LinkFloor(), FilesGoal(), recorded, truth=truth)
    assert course(harvest, recorded) == ["/", "/a", "/b", "/c", "/hub", "/1.csv", "/2.csv"]


def test_a_target_may_lead_to_another_one(tmp_path: Path) -> None:
    """Where pages are targets, their links are followed as those of any page."""
    site = {
        "/": page("/list"),
        "/list": page("/t1"),
        "/t1": page("/way", "/t2"),
        "/t2": page(),
        "/way": page("/t3"),
        "/t3": page(),
    }
    recorded = site_of(tmp_path, site)
    harvest = simulate(LinkFloor(), lambda outcome: float("/t" in outcome.pick.url), recorded)
    assert course(harvest, recorded) == ["/", "/list", "/t1", "/t2", "/way", "/t3"]


def test_it_ends_where_nothing_more_can_be_reached(tmp_path: Path) -> None:
    """Pages that lead to nothing, dead ones, and what is forbidden are never asked for."""
    site = {
        "/": page("/a", "/gone", "/busy", "/no", "/x", "/b"), "/a": page("/1.csv", "/a"), "/b": page("/c"),
        "/c": page("/b"),
        "/gone": GONE, "/busy": BUSY, "/no": FORBIDDEN, "/lost": page("/lost.csv"), **files("/1.csv", "/lost.csv"),
    }  # fmt: skip
    assert floor(tmp_path, site) == "/ /a /1.csv"


def test_a_site_without_targets_is_not_asked(tmp_path: Path) -> None:
    """Nothing leads anywhere."""
    assert floor(tmp_path, {"/": page("/a"), "/a": page()}) == ""


def test_what_is_ignored_is_no_way(tmp_path: Path) -> None:
    """Links to URLs that the spider ignores neither count nor lead on; redirects to them do."""
    site = {
        "/": page("/map.png", "/a", "/moved"), "/map.png": page("/1.csv", "/2.csv"), "/a": page("/b"),
        "/b": page("/1.csv"),
        "/moved": moved("/pic.png"), "/pic.png": page("/2.csv"), **files("/1.csv", "/2.csv"),
    }  # fmt: skip
    assert floor(tmp_path, site) == "/ /a /b /1.csv /moved /pic.png /2.csv"
    (tmp_path / "all").mkdir()
    assert floor(tmp_path / "all", site, ignored=()) == "/ /map.png /1.csv /2.csv"


def test_with_one_path_it_is_omniscient_and_the_pages_on_it(tmp_path: Path) -> None:
    """A chain of lists: the targets in the same order, and each page before what it shows."""
    site = {f"/{i or ''}": page(f"/{i}.csv", f"/{i + 1}") for i in range(5)} | files(*[f"/{i}.csv" for i in range(5)])
    order = floor(tmp_path, site).split()
    assert order == ["/", "/0.csv", "/1", "/1.csv", "/2", "/2.csv", "/3", "/3.csv", "/4", "/4.csv"]
    recorded = RecordedSite(tmp_path / "site.sqlite")
    known = course(simulate(Omniscient(), FilesGoal(), recorded), recorded)
    assert [path for path in order if path.endswith(".csv")] == known


@settings(max_examples=n_examples(40), deadline=None)
@given(GRAPHS, st.integers(1, 4))
def test_it_finds_all_by_links_alone_and_asks_for_nothing_twice(
    drawn: list[tuple[str, list[int], int]], concurrency: int
) -> None:
    """Whatever is dead, moved, busy or forbidden; also with several requests in flight."""
    with tempfile.TemporaryDirectory() as folder:
        site = graph(Path(folder), drawn)
        truth = SiteTruth(site, FilesGoal(), ignored=())
        harvest = simulate(
            LinkFloor(), FilesGoal(), site, truth=truth, ignored=(), concurrency=concurrency, latency=1.0, retries=2
        )
        assert harvest.found[-1] == truth.exhaustive.worth
        assert harvest.requests <= truth.exhaustive.requests
        assert len(set(harvest.asked)) == len(harvest.asked)
        assert set(harvest.asked) <= {site.urls[number] for number in truth.order} | {f"{HOST}/"}
        site.close()


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> RecordedSite:
    """A small synthetic site in the proportions of one of the paper's."""
    path = tmp_path_factory.mktemp("profile") / "psa_qa.sqlite"
    record_site(ProfileSite(PROFILES["psa_qa"], scale=0.3), path, root=f"{HOST}/")
    return RecordedSite(path)


class Forgetful(LinkFloor):
    """Has no plan again and again, as if it were stored and loaded."""

    def select(self, busy):
        if len(self._visited) % 37 == 0:
            stored = pickle.loads(pickle.dumps(self))
            self.__dict__ |= {name: value for name, value in vars(stored).items() if name != "rng"}
        return super().select(busy)


@pytest.mark.slow
def test_it_is_between_omniscient_and_breadth_first(profile: RecordedSite) -> None:
    """At each share of the targets, and far below breadth-first at 90 %; every seed gives the same crawl."""
    truth = SiteTruth(profile, FilesGoal(), ignored=())
    shares = truth.exhaustive.worth * np.array([0.5, 0.75, 0.9, 0.95])
    crawls = [
        simulate(policy, FilesGoal(), profile, truth=truth, ignored=(), seed=seed)
        for seed, policy in enumerate((Omniscient(), LinkFloor(), BreadthFirst(), LinkFloor()))
    ]
    best, least, most = (np.searchsorted(crawl.found, shares) for crawl in crawls[:3])
    assert (best < least).all()
    assert (least < most).all()
    assert least[2] < 0.8 * most[2]
    assert crawls[1].asked == crawls[3].asked


@pytest.mark.slow
def test_a_resumed_crawl_chooses_as_if_nothing_had_happened(profile: RecordedSite) -> None:
    """The plan follows from what was seen: it is not stored, and made again."""
    whole, resumed = (simulate(policy, FilesGoal(), profile, ignored=()) for policy in (LinkFloor(), Forgetful()))
    assert whole.asked == resumed.asked


def test_it_has_to_be_told(tmp_path: Path) -> None:
    """A copy of it that was stored knows no truth."""
    policy = LinkFloor()
    site = site_of(tmp_path, {"/": page("/1.csv"), "/1.csv": file()})
    simulate(policy, FilesGoal(), site)
    copy = pickle.loads(pickle.dumps(policy))
    with pytest.raises(PolicyError, match="LinkFloor was not given the truth"):
        copy.select(())
