"""Which pages the default policy has rendered, in crawls that are simulated without a browser."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from renderings import CSV, RENDERING, ROOT, SENT, Found, Oracle, Run, answer, crawl_web, go_on, link_to, wasted, world
from scrapy_focus import Crawl, FilesGoal, Mission, Outcome, Placement, Revisits, check_policy, memory_frontier
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.jobs.job import Job
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.sites.portal.portal import TARGET_MIMES
from scrapy_focus.learn.modelfile import read_model
from scrapy_focus.policies.branching.arms import PAGES, RENDERINGS, TARGETS, BranchingArms
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.branching.renderings import Rendered
from scrapy_focus.policies.branching.saved import LEARNED, read_learned
from tests.policies.portal import recorded
from tests.policies.test_learned import changed

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.core.types import Pick

LIST, FILE, MENU = "html/body/main/ul.items/li/a", "html/body/main/ul.files/li/a", "html/body/nav/a"


class Pages:
    """A site where a dictionary has the links of each page, plainly and in a browser."""

    def __init__(self, plain: dict[str, list[Found]], rendered: dict[str, list[Found]]) -> None:
        self._plain, self._rendered = plain, rendered

    def is_page(self, path: str) -> bool:
        return not path.endswith(".csv")

    def has_scripts(self, path: str) -> bool:
        return path != "/"

    def plain(self, path: str) -> list[Found]:
        return self._plain.get(path, [])

    def rendered(self, path: str) -> list[Found]:
        return [*self.plain(path), *self._rendered.get(path, [])]

    def items(self, path: str) -> int:
        return 0


def listed(paths: list[str], place: str = LIST) -> list[Found]:
    """Return links of one place."""
    return [Found(path, path, place) for path in paths]


def app(datasets: int, **more: list[Found]) -> Pages:
    """Return an app where each dataset shows two files if its scripts run; the home page links to all of them."""
    paths = [f"/app/{number}" for number in range(datasets)]
    files = {path: listed([f"{path}-a.csv", f"{path}-b.csv"], FILE) for path in paths}
    return Pages({"/": listed(paths), **more}, files)


class Without(BranchingBandit):
    """The same policy without renderings."""

    render = None

    def _learn_rendering(self, outcome: Outcome, new: int) -> None:
        pass


# What is found, and what it costs


@pytest.mark.slow
@pytest.mark.parametrize(("mix", "in_flight", "most"), [(30, 16, 1.25), (72, 1, 1.25)])
def test_as_much_is_found_as_if_it_were_known_what_needs_a_browser(mix: int, in_flight: int, most: float) -> None:
    """98 % of the files for a quarter more work at most, and no more than 5 % more requests; of pages whose scripts
    change nothing, five are rendered at most.

    Measured: all of the files, with 1.04 and 1.02 times the work; three such pages.
    """
    web = world(mix, 5)
    told = crawl_web(web, Oracle(web.site), in_flight=in_flight, seed=5)
    learned = crawl_web(web, BranchingBandit(), in_flight=in_flight, seed=5)
    assert told.files == web.site.n_targets
    assert learned.files >= 0.98 * told.files
    assert learned.work <= most * told.work
    assert learned.requests <= 1.08 * told.requests
    needless, missed = wasted(web.site, learned)
    assert needless <= 5
    assert not missed
    assert len(learned.rendered) == len(set(learned.rendered))
    assert learned.area(told.requests) >= 0.85 * told.area(told.requests)


@pytest.mark.slow
def test_a_site_that_hardly_needs_a_browser_costs_little_of_one() -> None:
    """With 5 % of the files behind scripts, at most 0.15 of the cost of rendering all pages, and 1.2 times the cost
    of knowing which need it. Measured: 0.11, and 1.10.
    """
    web = world(5, 6)
    learned = crawl_web(web, BranchingBandit(), seed=6)
    assert learned.files == web.site.n_targets
    needed = [path for path in web.site.html_paths() if web.site.needs_browser(path)]
    everything = RENDERING * web.site.n_pages + web.site.n_targets
    assert learned.work <= 0.15 * everything
    assert learned.work <= 1.2 * (RENDERING * len(needed) + learned.requests - SENT * len(learned.rendered))


def test_renderings_that_bring_files_come_before_pages_that_do_not() -> None:
    """What a rendering reveals is worth something to it, and to the plain page before: the app is gone through early."""
    web = app(40)
    dull = [f"/dull/{number}" for number in range(400)]
    web._plain["/"] = [*web.plain("/"), *listed(dull, "html/body/footer/p/span/a.far")]
    run = crawl_web(web, BranchingBandit(), seed=1)
    assert run.files == 80
    last = max(at for at, (_, path) in enumerate(run.picks) if path.endswith(".csv"))
    assert Counter(path[:5] for _, path in run.picks[:last])["/dull"] < 200


# When the first page is rendered


@pytest.mark.few(4)
@pytest.mark.parametrize("in_flight", [1, 16])
@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_rendered_before_the_first_find(seed: int, in_flight: int) -> None:
    """Plain links come first until one of them led to a file, though each page has scripts and some bring nothing."""
    empty, full = ([f"/{name}/{number}" for number in range(30)] for name in ("empty", "full"))
    plain = {"/": listed([*empty, *full]), **{path: listed([f"{path}.csv"], FILE) for path in full[20:]}}
    run = crawl_web(Pages(plain, {}), BranchingBandit(), in_flight=in_flight, seed=seed)
    assert run.files == 10
    assert run.rendered, "it is looked for what scripts show"
    first = next(at for at, (_, path) in enumerate(run.picks) if path.endswith(".csv"))
    assert [method for method, _ in run.picks[:first]] == ["GET"] * first


def test_what_only_a_browser_finds_is_looked_for_after_a_hundred_pages() -> None:
    """If plain pages lead to nothing, renderings do not wait until the last of them."""
    web = app(40)
    dull = [f"/dull/{number}" for number in range(1000)]
    web._plain["/"] = [*web.plain("/"), *listed(dull, "html/body/footer/p/span/a.far")]
    run = crawl_web(web, BranchingBandit(), seed=1, most=600)
    assert run.files > 10
    first = next(at for at, (method, _) in enumerate(run.picks) if method == "RENDER")
    assert 100 <= first <= 120


def test_pages_that_are_whole_are_not_rendered_while_plain_links_pay() -> None:
    """Each page has scripts and leads to a file: nothing has shown a need of a browser until all were fetched."""
    lists = [f"/list/{number}" for number in range(60)]
    plain = {"/": listed(lists), **{path: listed([f"{path}.csv"], FILE) for path in lists}}
    for seed in range(5):
        run = crawl_web(Pages(plain, {}), BranchingBandit(), seed=seed)
        assert run.files == 60
        last = max(at for at, (_, path) in enumerate(run.picks) if path.endswith(".csv"))
        assert [method for method, _ in run.picks[:last]] == ["GET"] * last
        assert 1 <= len(run.rendered) <= 3


# Where there are no scripts


@pytest.mark.slow
@pytest.mark.parametrize(("in_flight", "unit"), [(1, "requests"), (16, "bytes")])
def test_without_scripts_nothing_is_chosen_otherwise(in_flight: int, unit: Any) -> None:
    """On a portal, and on a site whose scripts nobody may run: each pick is the same as without the code for it."""
    asked = []
    for policy in (BranchingBandit(unit=unit), Without(unit=unit)):
        goal = FilesGoal(types=TARGET_MIMES)
        harvest = simulate(policy, goal, recorded(200, 1), seed=3, concurrency=in_flight, latency=1.0)
        asked.append(harvest.asked)
    assert asked[0] == asked[1]
    runs = [
        crawl_web(world(30, 5), policy, mode="never", in_flight=in_flight)
        for policy in (BranchingBandit(unit=unit), Without(unit=unit))
    ]
    assert runs[0].picks == runs[1].picks
    assert not runs[0].rendered


# What a rendering costs, and is worth


def test_a_rendering_is_expected_to_cost_what_the_mission_says() -> None:
    """One more than that at first, then what the renderings cost; what a page costs is not changed by it."""
    arms = BranchingArms(noise=0.0, rendering=21.0)
    page, rendering, other = arms.new(PAGES), arms.new(RENDERINGS), arms.new(RENDERINGS)
    assert arms.worth(None).costs.tolist() == [1, 21, 21]
    arms.earn(rendering, 0.0, 41.0, {})
    assert arms.worth(None).costs[[page, other]].tolist() == [1, 31]
    assert arms.mean_cost == 1


@pytest.mark.parametrize(("unit", "cost"), [("requests", 3 + 7.5), ("bytes", 65_536 / 32_768), ("seconds", 0.3)])
def test_what_a_rendering_costs(unit: Any, cost: float) -> None:
    """Its requests and what it counts for besides; what came over the network; or its time."""
    policy = BranchingBandit(unit=unit)
    mission = Mission(render_cost=7.5)
    crawl = Crawl(policy, frontier=memory_frontier, goal=FilesGoal(types=[CSV]), mission=mission, strict=True)
    crawl.add([link_to(Found("/app/1", "", LIST), 0)])
    costs = []
    for method in ("GET", "RENDER"):
        pick = crawl.next()
        assert pick is not None
        assert pick.method == method
        outcome, links = answer(app(1), pick, "learn")
        crawl.report(outcome._replace(received=65_536 if method == "RENDER" else 0, size=32_768), links)
        costs.append(float(policy.arms._records[pick.arm, 3]))
    assert costs == pytest.approx([0.01 if unit == "seconds" else 1, cost])


@pytest.mark.parametrize("cost", [-1.0, float("inf"), float("nan")])
def test_a_cost_that_is_none_is_refused(cost: float) -> None:
    """With the valid values."""
    with pytest.raises(ConfigError, match=r"render_cost is .* 0 or more"):
        Mission(render_cost=cost)


def test_an_arm_of_renderings_is_worth_what_these_reveal() -> None:
    """One whose renderings bring files is worth more than one whose bring none, and so is the page before it; a new one
    is like the others.
    """
    arms = BranchingArms(noise=0.0, rendering=21.0)
    shells, news, files = arms.new(PAGES), arms.new(PAGES), arms.new(TARGETS)
    good, bad, new = (arms.new(RENDERINGS) for _ in range(3))
    for _ in range(10):
        arms.earn(shells, 0.0, 1.0, {})
        arms.earn_more(shells, {good: 1})
        arms.earn(news, 0.0, 1.0, {})
        arms.earn_more(news, {bad: 1})
        arms.earn(good, 0.0, 23.0, {files: 4})
        arms.earn(bad, 0.0, 23.0, {})
        arms.earn(files, 1.0, 1.0, {})
    awake = np.ones(arms.n_arms, np.bool_)
    awake[[shells, files]] = False
    arms.plan(awake)
    worth = arms.worth(None)
    assert worth.indices[good] > worth.indices[new] > worth.indices[bad]
    assert arms._price[good] > 0 == arms._price[bad]
    assert worth.later[shells] > 10 * worth.later[news]
    assert arms.lead_to_hits()[[shells, good, files, news, bad]].tolist() == [True, True, True, False, False]


# Which pages


def test_an_app_is_rendered_at_once_and_checked() -> None:
    """After two renderings that paid, few plain pages are fetched: some already queued, and one in twenty."""
    paths = [f"/app/{number}" for number in range(300)]
    lists = {f"/list/{k}": listed(paths[10 * k : 10 * k + 10]) for k in range(30)}
    home = [*listed(list(lists), MENU), *listed(["/first.csv"], FILE)]
    web = Pages({"/": home, **lists}, {path: listed([f"{path}.csv"], FILE) for path in paths})
    policy = BranchingBandit(prior="")
    run = crawl_web(web, policy, seed=1)
    assert run.files == 301
    plain = [path for method, path in run.picks if method == "GET" and path.startswith("/app/") and web.is_page(path)]
    assert 300 / 20 - 2 <= len(plain) <= 60
    rows = {row[0]: row[1:] for row in policy.rendered_templates().rows}
    assert rows["scripted.example/app/#"] == (len(plain), 300, 300, 300, "direct")
    assert rows["scripted.example/list/#"][1:] == (3, 0, 0, "closed")
    assert policy.rendered_templates().columns == (
        "template", "plain pages", "rendered", "paid", "links brought", "state",
    )  # fmt: skip


@pytest.mark.parametrize("ends", ["links", "failure", "no browser"])
def test_pages_are_fetched_plainly_again(ends: str) -> None:
    """If a check finds links in the plain page, or a rendering fails, or no browser was available, new links are no
    longer rendered at once. A plain page in place of a rendering says nothing about its results.
    """
    policy = BranchingBandit()
    crawl = Crawl(policy, frontier=memory_frontier, goal=FilesGoal(types=[CSV]), seed=0, strict=True)
    web = app(2000)
    crawl.add([link_to(each, 1) for each in web.plain("/")[:4]])
    go_on(crawl, web)
    paid = policy.templates.seen["scripted.example/app/#"].paid
    crawl.add([link_to(each, 1) for each in web.plain("/")[4:40]])
    assert [pick.method for pick in (crawl.next() for _ in range(9)) if pick is not None].count("RENDER") >= 7
    for pick in list(crawl.picks.values()):
        outcome, links = answer(web, pick, "learn")
        if ends == "failure" and pick.method == "RENDER":
            outcome, links = outcome._replace(error="browser"), []
        if ends == "no browser" and pick.method == "RENDER":
            outcome = outcome._replace(pick=pick._replace(method="GET"))
        if ends == "links" and pick.method == "GET":
            links = [link_to(Found(f"{pick.url.removeprefix(ROOT)}.csv", "", FILE), 2)]
        crawl.report(outcome, links)
    if ends == "links":
        while "scripted.example/app/#" in policy.templates.direct:
            pick = crawl.next()
            assert pick is not None
            outcome, links = answer(web, pick, "learn")
            if pick.method == "GET" and web.is_page(pick.url):
                links = [link_to(Found(f"{pick.url.removeprefix(ROOT)}-c.csv", "", FILE), 2)]
            crawl.report(outcome, links)
    places = policy.place([link_to(each, 1) for each in web.plain("/")[50:150]], None)
    assert {place.method for place in places if place is not None} == {"GET"}
    assert (policy.templates.seen["scripted.example/app/#"].paid > paid) == (ends == "links")


def test_what_was_not_fetched_is_not_given_up() -> None:
    """Though its template is closed while it is queued to be rendered at once: there is no plain page to keep."""
    policy, web = BranchingBandit(), app(2000)
    crawl = Crawl(policy, frontier=memory_frontier, goal=FilesGoal(types=[CSV]), seed=0, strict=True)
    crawl.add([link_to(each, 1) for each in web.plain("/")[:4]])
    go_on(crawl, web)
    crawl.add([link_to(each, 1) for each in web.plain("/")[4:40]])
    waiting = len(crawl.frontier)
    policy.templates.judge("scripted.example/app/#", is_idle=True)
    policy._leave_closed()
    assert len(crawl.frontier) == waiting > 30


def test_a_page_that_is_a_target_itself_is_worth_fetching() -> None:
    """Even without links: its template is not rendered at once, in place of it."""
    policy, web = BranchingBandit(), app(40)
    crawl = Crawl(policy, frontier=memory_frontier, goal=FilesGoal(types=["text/html"]), seed=0, strict=True)
    crawl.add([link_to(each, 1) for each in web.plain("/")])
    go_on(crawl, web)
    assert policy.templates.seen["scripted.example/app/#"].plain == 40
    assert policy.templates.seen["scripted.example/app/#"].shells == 0


def test_renderings_are_not_judged_before_what_they_lead_to_came_back() -> None:
    """Lists show datasets, whose files are behind scripts, too. While the first of their renderings are in flight, more
    than fifty plain datasets bring nothing: the lists are not left for that, and all files are found.
    """
    lists = [f"/list/{number}" for number in range(8)]
    datasets = {path: [f"/app{path}/{number}" for number in range(12)] for path in lists}
    following = dict(itertools.pairwise(lists))
    shown = {
        path: [*listed(datasets[path]), *listed([following[path]] if path in following else [], MENU)] for path in lists
    }
    files = {dataset: listed([f"{dataset}.csv"], FILE) for path in lists for dataset in datasets[path]}
    web = Pages({"/": [*listed([lists[0]], MENU), *listed(["/1.csv", "/2.csv"], FILE)]}, shown | files)
    policy, found = BranchingBandit(), 0
    late: list[Pick] = []
    crawl = Crawl(policy, frontier=memory_frontier, goal=FilesGoal(types=[CSV]), seed=0, strict=True)
    crawl.add([link_to(Found("/", "", ""), 0)])
    plain = 0
    while True:
        pick = crawl.next()
        if pick is not None and pick.method == "RENDER" and "/app/" in pick.url and plain < 60:
            late.append(pick)
            continue
        if pick is None and late:
            pick, plain = late.pop(0), 60
        if pick is None:
            break
        plain += pick.method == "GET" and "/app/" in pick.url and web.is_page(pick.url)
        found += not web.is_page(pick.url)
        crawl.report(*answer(web, pick, "learn"))
    assert found == 2 + 8 * 12


def test_what_waits_is_given_up_when_its_template_is_closed() -> None:
    """Of 60 pages queued for rendering, those left after three without results are removed."""
    web = Pages({"/": listed([f"/news/{number}" for number in range(60)])}, {})
    policy = BranchingBandit()
    crawl = Crawl(policy, frontier=memory_frontier, goal=FilesGoal(types=[CSV]), seed=0, strict=True)
    crawl.add([link_to(Found("/", "", ""), 0)])
    run = go_on(crawl, web, in_flight=16)
    assert len(run.rendered) == 3
    assert len(crawl.frontier) == 0
    assert crawl.counts["link/render"] > 3
    crawl.frontier.check()


@pytest.mark.slow
def test_a_page_of_a_closed_template_is_looked_at_again() -> None:
    """Its rendering is not given up with the others; when it pays, the template is open."""
    paths = [f"/news/{number}" for number in range(400)]
    steps = {"/": listed(paths[:100]), paths[99]: listed(paths[100:])}
    web = Pages(steps, {path: listed([f"{path}.csv"], FILE) for path in paths[100:]})
    run = crawl_web(web, BranchingBandit(), seed=0)
    assert run.files > 100


def test_a_look_at_a_closed_template_is_not_given_up_with_the_others() -> None:
    """It stays queued until it was made, though other renderings bring nothing."""
    web = Pages({"/": listed([f"/news/{number}" for number in range(200)])}, {})
    policy = BranchingBandit()
    crawl = Crawl(policy, frontier=memory_frontier, goal=FilesGoal(types=[CSV]), seed=0, strict=True)
    crawl.add([link_to(Found("/", "", ""), 0)])
    while not (policy._looking and len(crawl.frontier)):
        go_on(crawl, web, most=1)
    (arm,) = policy._looking
    policy._leave_closed()
    assert crawl.frontier.waiting[arm] == 1


@pytest.mark.slow
@pytest.mark.parametrize("chain", [False, True])
def test_links_that_change_at_each_rendering_end(chain: bool) -> None:
    """A page with a link for each visitor pays each time, but it leads nowhere: some fifty are rendered, not all."""

    class Tracking(Pages):
        """Has a new link on each page that is rendered; with ``chain``, on the page behind it, too."""

        count = 0

        def rendered(self, path: str) -> list[Found]:
            if path.startswith("/news/") or chain:
                self.count += 1
                return [*self.plain(path), Found(f"/track?visit={self.count}", "more", MENU)]
            return []

    files = listed([f"/f/{number}.csv" for number in range(20)], FILE)
    web = Tracking({"/": [*listed([f"/news/{number}" for number in range(400)]), *files]}, {})
    run = crawl_web(web, BranchingBandit(), seed=4, most=3000)
    assert run.requests < 3000, "it ends"
    assert run.files == 20
    assert Counter(path[:5] for path in run.rendered)["/news"] < 250


# What is remembered


@pytest.mark.slow
def test_a_crawl_that_is_resumed_decides_the_same(tmp_path: Path) -> None:
    """After kills, from its journal and from a checkpoint: the same picks, and the same is known of templates."""
    web = world(30, 5)
    whole = BranchingBandit()
    expected = crawl_web(web, whole, seed=4)
    policy, got = BranchingBandit(), Run()
    for at, most in enumerate((120, 250, 10_000)):
        policy = BranchingBandit()
        crawl = Crawl(
            policy, job=Job(tmp_path / "job"), goal=FilesGoal(types=[CSV]), seed=4, strict=True, clock=lambda: 0.0
        )
        policy = crawl.policy  # type: ignore[assignment]
        if not at:
            crawl.add([link_to(Found("/", "", ""), 0)])
        run = go_on(crawl, web, most=most)
        got.picks += run.picks
        if at:
            crawl.close()
        else:
            del crawl  # a kill leaves the lock to the system
    assert got.picks == expected.picks
    assert policy.rendered_templates() == whole.rendered_templates()


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a crawl of the scripted site learned."""
    policy = BranchingBandit()
    crawl_web(world(72, 5), policy, seed=5)
    path = tmp_path_factory.mktemp("learned") / "site.npz"
    policy.save(path)
    return path


@pytest.mark.slow
def test_the_next_crawl_begins_with_what_is_known(learned: Path) -> None:
    """Pages whose scripts change nothing are not rendered but to look again, and the app is rendered at once: its first
    pages too, but for one that is a check.
    """
    web = world(72, 5)
    policy = BranchingBandit(learned=str(learned))
    run = crawl_web(web, policy, seed=6)
    needless, missed = wasted(web.site, run)
    assert (needless <= 1, missed) == (True, 0)
    plain = [path for method, path in run.picks if method == "GET" and web.site.kind_of(path) == "app"]
    assert len(plain) < 10
    assert next(method for method, path in run.picks if web.site.kind_of(path) == "app") == "RENDER"
    assert run.files == web.site.n_targets


def test_without_a_browser_it_begins_with_plain_pages(learned: Path) -> None:
    """Nothing is to be rendered where it is known that there is none."""
    policy = BranchingBandit(learned=str(learned))
    run = crawl_web(world(72, 5), policy, mode="never", seed=6)
    assert not run.rendered
    assert run.files == 176


def test_a_policy_that_has_nothing_rendered_may_begin_with_it(learned: Path) -> None:
    """It continues with plain pages."""
    policy = Revisits(discovery={"learned": str(learned)})
    run = crawl_web(world(72, 5), policy, seed=6, most=150)
    assert {method for method, _ in run.picks} == {"GET"}


def test_a_file_has_templates_only_where_some_were_rendered(learned: Path, tmp_path: Path) -> None:
    """So the others can be read by versions that do not know them."""
    known = read_learned(learned)
    assert known.templates["scripted.example/news/#"] == Rendered(
        **{**known.templates["scripted.example/news/#"]._asdict(), "tried": 3, "paid": 0}
    )
    assert RENDERINGS in known.known.kinds
    policy = BranchingBandit()
    crawl_web(world(5, 5), policy, mode="never", most=50)
    policy.save(tmp_path / "plain.npz")
    assert "templates" not in read_model(tmp_path / "plain.npz", LEARNED)[0]
    assert not read_learned(tmp_path / "plain.npz").templates


@pytest.mark.parametrize(
    ("templates", "said"),
    [
        ([], "are not as they were written"),
        ({"h/a/#": [1, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0]}, "not whole numbers from 0"),
        ({"h/a/#": [1, 0, 1.5]}, "not whole numbers from 0"),
        ({"h/a/#": [1, 0, 1, 2]}, "contradict each other"),
        ({"h/a/#": list(range(12))}, "is damaged"),
        ({f"h/{number}/#": [1] for number in range(5000)}, "are not as they were written"),
    ],
)
def test_a_file_with_other_templates_is_refused(learned: Path, templates: Any, said: str, tmp_path: Path) -> None:
    """As damaged, with the reason."""

    def change(header: dict[str, Any], arrays: dict[str, Any]) -> None:
        header["templates"] = templates

    with pytest.raises(ConfigError, match=said):
        read_learned(changed(learned, tmp_path / "other.npz", change))


def test_a_file_whose_templates_are_tag_paths_is_refused(learned: Path, tmp_path: Path) -> None:
    """An arm of renderings has no tag path."""

    def change(header: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["clusters"][arrays["kinds"] == RENDERINGS] = 0

    with pytest.raises(ConfigError, match="a template is a cluster"):
        read_learned(changed(learned, tmp_path / "other.npz", change))


# What is said


def test_why_says_that_it_is_a_rendering() -> None:
    """With the kinds, how many were tried, and how many of them paid."""
    policy = BranchingBandit()
    crawl = Crawl(policy, frontier=memory_frontier, goal=FilesGoal(types=[CSV]), seed=0, strict=True, explain=True)
    crawl.add([link_to(each, 1) for each in app(9).plain("/")])
    said = []
    while (pick := crawl.next()) is not None:
        if pick.method == "RENDER":
            said.append(crawl.why)
        crawl.report(*answer(app(9), pick, "learn"))
    assert said[0]["why"].startswith(
        "found on a seed; shown by a browser, which paid for 0 of 0 pages like scripted.example/app/#; "
    )
    assert said[2]["why"].startswith(
        "found on a seed; shown by a browser, which paid for 2 of 2 pages like scripted.example/app/#; "
    )
    assert said[0]["kind"] == "rendering"
    assert said[0]["tag_path"] == "render/scripted.example/app/#"
    assert ("render/scripted.example/app/#", 0.0, 9) not in policy.best_arms(9)


def test_arms_of_renderings_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond some templates, all others share one; each of them is judged by itself all the same."""
    monkeypatch.setattr("scrapy_focus.policies.branching.policy._MOST_RENDERED", 2)
    paths = [f"/{name}/{number}" for name in "abcdef" for number in range(3)]
    dull = [f"/{name}/{number}" for name in "ghi" for number in range(30)]
    files = {path: listed([f"{path}.csv"], FILE) for path in paths}
    policy = BranchingBandit()
    run = crawl_web(Pages({"/": listed(paths + dull)}, files), policy)
    assert run.files == len(paths)
    assert len(policy._rendered) == 3
    assert {row[0]: row[2] for row in policy.rendered_templates().rows}["scripted.example/h/#"] < 30


def test_it_keeps_the_promises_of_a_policy() -> None:
    """With pages that have scripts, as the checks have them."""
    check_policy(BranchingBandit)


def test_what_could_not_be_placed_is_not_rendered() -> None:
    """A link that another policy placed has no features."""
    policy = BranchingBandit()
    crawl = Crawl(policy, frontier=memory_frontier, goal=FilesGoal(types=[CSV]), seed=0)
    crawl.frontier.push([link_to(Found("/app/1", "", ""), 0)], [Placement(0, 0.0)])
    pick = crawl.next()
    assert pick is not None
    crawl.report(*answer(app(2), pick, "learn"))
    assert crawl.counts["link/render"] == 0
