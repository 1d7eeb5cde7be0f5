"""Links that differ from a known page only in parameters that do not matter, on sites that make them by the hundred."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from copysite import CopySite, prose
from crawls import BREADTH_FIRST, Follower, crawl
from scrapy import Request

from scrapy_focus.extensions import progress
from scrapy_focus.features.near_copies.feature import PARAMETERS, NearCopyFilter
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.outputs import report_of
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.lab.sites.server import SiteServer
from tests.pages import Reader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from crawls import Crawled
    from scrapy.http import Response

    from scrapy_focus.features.near_copies.learner import Ignored

ON = {"FOCUS_IGNORE_PARAMETERS": True, "FOCUS_SEED": 1, "FOCUS_MAX_INFLIGHT": 1}
POLICIES = pytest.mark.parametrize("policy", [BREADTH_FIRST, None], ids=["breadth-first", "default"])


def ignored(result: Crawled) -> list[Ignored]:
    """Return what a crawl learned of parameters."""
    feature = result.scheduler.focus_host.features.find(NearCopyFilter)
    return [] if feature is None else feature.ignored()


def near(result: Crawled) -> dict[str, int]:
    """Return the counts under ``focus/near/``."""
    return {name.rpartition("/")[2]: n for name, n in result.stats.items() if name.startswith("focus/near/")}


def follow(site: CopySite, settings: dict[str, Any], *, addon: bool = False, spider: type = Follower) -> Crawled:
    result = crawl(spider, ON | settings, addon=addon, seeds=[site.url("/")])
    assert result.errors == {}
    return result


def bare(path: str) -> str:
    return path.partition("?")[0].partition(";")[0]


@pytest.mark.few(1)
@POLICIES
@pytest.mark.parametrize(
    ("kind", "most"),
    [
        ({"session": "sid"}, 2.0),  # without end otherwise
        ({"session": ";jsessionid"}, 1.3),
        ({"tracking": "from"}, 2.0),  # 5.6 times otherwise
        ({"sorts": True, "filters": True, "tracking": "utm_source"}, 1.4),
        ({}, 1.0),
    ],
    ids=["session", "session in the path", "tracking", "orders and filters", "plain"],
)
def test_each_page_is_fetched_and_few_of_its_copies(kind: dict[str, Any], most: float, policy: str | None) -> None:
    """No page is lost, filters are no copies, and what is saved is shown."""
    with CopySite(shelves=12, items=2, **kind) as site:
        n = len(site.distinct())
        settings: dict[str, Any] = {"FOCUS_BUDGET_REQUESTS": 4 * n, "FOCUS_TARGETS": ["csv"]}
        result = follow(site, settings | ({"FOCUS_POLICY": policy} if policy else {}), addon=True)
        assert result.reason == "finished"
        assert site.fetched() == site.distinct()
        assert len(site.paths) <= most * n
    dropped = near(result).get("dropped", 0)
    assert bool(dropped) == bool(kind)
    links = [each.links for each in ignored(result)]
    assert max(links, default=0) <= dropped <= sum(links)  # a link may have two such parameters
    assert bool([line for line in progress(result.scheduler.focus_host) if "skipped, as" in line]) == bool(kind)
    assert result.outcomes.get("near_copy", 0) <= dropped


def test_without_the_setting_all_are_followed() -> None:
    """Sort orders are pages like any others, and nothing is counted."""
    with CopySite(sorts=True) as site:
        result = follow(site, {"FOCUS_IGNORE_PARAMETERS": False, "FOCUS_POLICY": BREADTH_FIRST})
        assert len(set(site.paths)) == len(site.distinct()) + 3 * site.shelves
    assert near(result) == {}
    assert ignored(result) == []


@pytest.mark.slow
@POLICIES
def test_a_wrong_belief_ends_and_what_was_dropped_for_it_is_followed(policy: str | None) -> None:
    """Twenty pages that look alike teach that an id does not matter; all of the other eighty are found nevertheless."""
    with CopySite(shelves=0) as site:
        ids = [(group, 10 * group + i) for i in range(10) for group in range(10)]
        home = "".join(f'<a href="/g/{group}?id={i}">{i}</a>' for group, i in ids)
        site.own = lambda path, query: (
            home if path == "/" else f"<html><body>{prose(int(path[3:]) if int(query['id']) % 10 < 2 else 100 + int(query['id']))}"
        )  # fmt: skip
        result = follow(site, {"FOCUS_POLICY": policy} if policy else {"FOCUS_GOAL": lambda _: 0.0}, addon=True)
        lost = {f"/g/{group}?id={i}" for group, i in ids if i % 10 > 1} - set(site.paths)
    assert not lost
    assert result.reason == "finished"
    if policy:
        counts = near(result)
        assert counts["learned"] == counts["unlearned"] == 1
        assert counts["returned"] >= counts["dropped"] - 10  # copies may be dropped again
        assert len(result.logged("changes the page after all")) == 1


def test_pages_that_cannot_be_fetched_are_tried_under_another_url_once() -> None:
    """A copy that was dropped takes the place of a page that fails; a page that always fails ends there."""
    with CopySite(shelves=0) as site:
        items = "".join(f'<a href="/item/{i}?utm_source={place}">{i} {place}</a>' for place in "ab" for i in range(12))
        site.own = lambda path, query: items if path == "/" else prose(int(path[6:]))
        for path in ("/item/3?utm_source=a", "/item/2?utm_source=a", "/item/2?utm_source=b"):
            site.broken.add(path)
        settings = {"FOCUS_POLICY": BREADTH_FIRST, "RETRY_ENABLED": False}
        result = follow(site, settings)
        asked = Counter(path for path in site.paths if path.startswith(("/item/3", "/item/2")))
    assert asked == {f"/item/{i}?utm_source={place}": 1 for i in (2, 3) for place in "ab"}
    assert near(result)["returned"] == 2


class Asks(Follower):
    """Starts at copies of a page, and asks for others outright."""

    name = "asks"

    async def start(self) -> AsyncIterator[Any]:
        for seed in self.seeds:
            for i in range(3):
                yield Request(f"{seed}?utm_source=start{i}")

    def parse(self, response: Response) -> Iterator[Any]:
        if "start0" in response.url:
            for i in range(4):
                url = response.urljoin(f"/item/1?utm_source={i}")
                yield Request(url, dont_filter=True, callback=self.done)
                yield Request(url + "p", method="POST", callback=self.done)
                yield Request(url + "b", body=b"x", callback=self.done)
                yield Request(url + "r", callback=self.done)

    def done(self, response: Response) -> None:
        pass


@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_what_is_asked_for_outright_is_sent(addon: bool) -> None:
    """Start requests, ``dont_filter``, bodies and other methods go out, however their URLs look; plain links once."""
    with CopySite() as site:
        result = follow(site, {"FOCUS_POLICY": BREADTH_FIRST}, addon=addon, spider=Asks)
        asked = [seen.path for seen in site.log]
    assert {f"/?utm_source=start{i}" for i in range(3)} <= set(asked)
    for end in ("", "p", "b"):
        assert {f"/item/1?utm_source={i}{end}" for i in range(4)} <= set(asked)
    assert sum(path.endswith("r") for path in asked) == 1
    assert near(result)["dropped"] == 3


@pytest.mark.few(1)
@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "file lost"])
def test_a_crawl_that_resumes_knows_its_pages_under_new_sessions(tmp_path: Path, is_kept: bool) -> None:
    """Fetched pages are not fetched again for their new URLs; without the file, parameters are learned again."""
    with CopySite(shelves=12, items=2, session="PHPSESSID") as site:
        settings = {"JOBDIR": str(tmp_path), "FOCUS_POLICY": BREADTH_FIRST}
        follow(site, settings | {"FOCUS_BUDGET_REQUESTS": 40})
        first = [bare(path) for path in site.paths]
        if is_kept:
            assert (tmp_path / "focus" / PARAMETERS).stat().st_size < 1000
        else:
            (tmp_path / "focus" / PARAMETERS).write_text('{"version": 1, "hosts": 7}')
        site.log.clear()
        result = follow(site, settings)
        second = [bare(path) for path in site.paths]
        assert set(first) | set(second) == site.distinct()
    assert result.reason == "finished"
    again = [path for path in second if path in first]
    assert len(again) <= 5  # checks among them
    assert bool(result.logged("cannot be read")) != is_kept


def test_hosts_are_apart() -> None:
    """What one host teaches does not apply to others."""
    with CopySite(sorts=True, shelves=8, items=1) as site, CopySite(shelves=0) as other:
        links = "".join(f'<a href="{other.url("/x")}?sort={i}">{i}</a>' for i in ("name", "price", "date"))
        home = (site.page("/", {}) or "").replace("</body>", links)
        site.own = lambda path, query: home if path == "/" else None
        other.own = lambda path, query: prose(hash(query["sort"]))
        result = follow(site, {"FOCUS_POLICY": BREADTH_FIRST})
        assert near(result)["learned"] == 1
        assert len(other.paths) == 3


@pytest.mark.slow
def test_the_spiders_choose_the_same_on_a_site_without_copies(tmp_path: Path) -> None:
    """URL by URL, on a portal with lists in pages; the spider turns it on by itself."""
    asked = []
    for setting in ({}, {"FOCUS_IGNORE_PARAMETERS": False}):
        with SiteServer(StatisticsPortal(pages=200, seed=0)) as server:
            paths: list[str] = []

            class Noting(DatasetsSpider):
                custom_settings = {"LOG_LEVEL": "INFO", "FOCUS_SEED": 3, "FOCUS_MAX_INFLIGHT": 1}

                def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
                    paths.append(response.url.partition("/")[2].partition("/")[2].partition("/")[2])  # noqa: B023
                    yield from super().parse(response, **kwargs)

            on = DatasetsSpider.custom_settings["FOCUS_IGNORE_PARAMETERS"]
            out = str(tmp_path / f"{len(asked)}")
            result = crawl(
                Noting, {"FOCUS_IGNORE_PARAMETERS": on} | setting, addon=True, root=server.url, budget="100", out=out
            )
        asked.append(paths)
        assert near(result) == {}
    assert asked[0] == asked[1]


@pytest.mark.slow
def test_parameters_that_cannot_be_written_are_learned_again(tmp_path: Path) -> None:
    """A warning says so, and the crawl is not affected."""
    (tmp_path / "focus" / PARAMETERS).mkdir(parents=True)  # where the file should be
    with CopySite(shelves=12, items=2, session="sid") as site:
        result = crawl(Follower, ON | {"JOBDIR": str(tmp_path)}, seeds=[site.url("/")])
        assert site.fetched() == site.distinct()
    assert result.reason == "finished"
    assert set(result.errors) == {"near"}
    assert result.logged("cannot be written, and the next run learns its parameters again")
    assert not [record for record in result.records if record.levelname == "ERROR"]


def test_ignored_parameters_are_on_the_page(tmp_path: Path) -> None:
    """What the crawl learned of them is in its notes, with how many links were not followed for it."""
    with CopySite(shelves=6, tracking="from") as site:
        done = crawl(DatasetsSpider, {"FOCUS_SEED": 1}, addon=True, root=site.url("/"), types="csv", out=str(tmp_path))
        (learned,) = done.scheduler.focus_host.features.find(NearCopyFilter).ignored()
        (ignored,) = report_of(tmp_path).ignored
        assert (ignored.host, ignored.name, ignored.links, ignored.pairs) == (
            f"127.0.0.1:{site.port}",
            "from",
            learned.links,
            learned.pairs,
        )
    assert ignored.links > 20
    assert f"127.0.0.1:{site.port} from {ignored.links:,}" in Reader((tmp_path / "index.html").read_text()).text
