"""Pages that a policy wants rendered are, whichever worker has them, and count for all."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
from crawls import REACTOR, Follower

from scrapy_focus.core.types import Placement
from scrapy_focus.policies.orderings import BreadthFirst
from tests.cluster.workers import share

if TYPE_CHECKING:
    from pathlib import Path

    from mocksite import MockSite

    from scrapy_focus.core.types import Outcome

pytestmark = [
    pytest.mark.skipif(find_spec("scrapy_playwright") is None, reason="needs scrapy-playwright"),
    pytest.mark.skipif(not REACTOR, reason="scrapy-playwright needs Twisted's reactor: see test_reactor.py"),
    pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Debian's chromium"),
    pytest.mark.timeout(600),
]
SCRIPT = b"""const n = location.pathname.slice(-1);
for (const name of ["a", "b"]) document.body.insertAdjacentHTML("beforeend", `<a href="/ok?${n}${name}">${name}</a>`);"""


class RenderAll(BreadthFirst):
    """Has every page rendered that has scripts."""

    def render(self, outcome: Outcome) -> Placement:
        return Placement(0, 0.0, method="RENDER")


@pytest.fixture
def sites(sites: list[MockSite]) -> list[MockSite]:
    """Sites on each of which scripts of four pages show two links each."""
    for site in sites:
        site.answers["/show.js"] = lambda _: (200, {"Content-Type": "text/javascript"}, SCRIPT)
        for i in range(4):
            site.pages[f"/page{i}"] = '<html><body><script src="/show.js"></script></body></html>'
    return sites


def test_workers_render(sites: list[MockSite], tmp_path: Path) -> None:
    """Each page is looked at twice, and what its scripts show is fetched once."""
    seeds = [site.url(f"/page{i}") for site in sites for i in range(4)]
    result = share(Follower, tmp_path, {"FOCUS_POLICY": RenderAll}, addon=True, seeds=seeds)
    for site in sites:
        paths = [path for path in site.paths if path != "/show.js"]
        shown = [f"/ok?{i}{x}" for i in range(4) for x in "ab"]
        assert sorted(paths) == sorted([f"/page{i}" for i in range(4)] * 2 + shown)
    assert result.outcomes == {"ok": 16 * len(sites)}
    assert result.errors == {}
    assert result.crawl.budget.requests_used == sum(len(site.log) for site in sites)


def test_the_servers_see_exactly_the_budget(sites: list[MockSite], tmp_path: Path) -> None:
    """What browsers of all workers ask for is a part of it."""
    seeds = [site.url(f"/page{i}") for site in sites for i in range(4)]
    settings = {"FOCUS_POLICY": RenderAll, "FOCUS_BUDGET_REQUESTS": 15}
    result = share(Follower, tmp_path, settings, addon=True, seeds=seeds)
    assert sum(len(site.log) for site in sites) == result.crawl.budget.requests_used == 15
    assert result.reasons == {"focus_budget_requests"}
