"""Lists of which a browser shows a part: the rest is read from their API, or it is said that there is more."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from crawls import Follower, crawl
from handmadebrowser import HANDLERS, SCRIPT, put_in

from scrapy_focus.core.types import Placement
from scrapy_focus.engine.ending import ending_of
from scrapy_focus.finders.kit.page.page import _rendered
from scrapy_focus.finders.kit.records.notes import Notes
from scrapy_focus.policies.branching.policy import BranchingBandit

if TYPE_CHECKING:
    from mocksite import MockSite

    from scrapy_focus.core.types import Outcome

TOTAL, SIZE = 95, 10


class RenderAll(BranchingBandit):
    """Has every page rendered that has scripts."""

    def render(self, outcome: Outcome) -> Placement | None:
        super().render(outcome)
        return Placement(self._arm_of_template("all"), 0.0, outcome.pick.memo, method="RENDER")


SETTINGS = {**HANDLERS, "FOCUS_POLICY": RenderAll, "FOCUS_TARGETS": ["pdf"]}


def part(page: int, *, by_id: bool) -> list[dict[str, Any]]:
    """Return what the API has on a page of the list."""
    numbers = range((page - 1) * SIZE, min(page * SIZE, TOTAL))
    if by_id:
        return [{"id": f"r-{number}", "title": "A report"} for number in numbers]
    return [{"pdf": f"/reports/{number}.pdf"} for number in numbers]


def served(site: MockSite, shown: int, *, total: bool = True, by_id: bool = False) -> tuple[tuple[str, bytes], ...]:
    """Serve a list, of which a browser shows some parts; return the answers that its scripts had for these."""

    def answer(page: int) -> bytes:
        return json.dumps({"items": part(page, by_id=by_id), **({"total": TOTAL} if total else {})}).encode()

    def api(page: int) -> Any:
        return lambda _: (200, {"Content-Type": "application/json"}, answer(page))

    names = [f"r-{number}" if by_id else str(number) for number in range(shown * SIZE)]
    links = "".join(f'<a href="/reports/{name}.pdf">A report</a>' for name in names)
    site.pages["/list"] = f"<html><body><h1>Reports</h1>{SCRIPT % links}</body></html>"
    for page in range(1, 20):
        site.answers[f"/api/list?page={page}&size={SIZE}"] = api(page)
    for number in range(TOTAL):
        for name in (str(number), f"r-{number}"):
            site.answers[f"/reports/{name}.pdf"] = lambda _: (200, {"Content-Type": "application/pdf"}, b"%PDF-1.4")
    return tuple((site.url(f"/api/list?page={page}&size={SIZE}"), answer(page)) for page in range(1, shown + 1))


def reports(site: MockSite) -> set[str]:
    return {path for path in site.paths if path.startswith("/reports/")}


def asked(site: MockSite) -> list[int]:
    """Return which pages of the API were asked for."""
    return [int(parse_qs(urlsplit(path).query)["page"][0]) for path in site.paths if path.startswith("/api/")]


@pytest.mark.parametrize("shown", [1, 7])
@pytest.mark.parametrize("by_id", [False, True], ids=["urls", "ids"])
def test_the_rest_is_read_from_the_api(
    site: MockSite, monkeypatch: pytest.MonkeyPatch, shown: int, by_id: bool
) -> None:
    """One page teaches how links are made of the answers, whose total says how many there are; nothing is left."""
    put_in(monkeypatch, answers=served(site, shown, by_id=by_id), grows=staticmethod(lambda url: True))
    result = crawl(Follower, SETTINGS, addon=True, seeds=[site.url("/list")])
    assert len(reports(site)) == TOTAL
    assert asked(site) == [*range(shown + 1, 11)]
    assert result.stats["focus/reward"] == TOTAL
    assert "focus/browser/list_cut" not in result.stats
    assert "browser showed" not in ending_of(result.crawler).sentence
    assert result.errors == {}


def test_a_list_that_was_cut_is_said(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no total says how long it is: in the ending, and what is left is not known."""
    put_in(monkeypatch, answers=served(site, 7, total=False), grows=staticmethod(lambda url: True))
    result = crawl(Follower, SETTINGS, addon=True, seeds=[site.url("/list")])
    assert len(reports(site)) == 70
    assert asked(site) == []
    assert result.stats["focus/browser/list_cut"] == 1
    assert ending_of(result.crawler).sentence.endswith("A list is longer than the part that the browser showed.")
    (said,) = result.logged("Finished (")
    assert "1 list read only in part" in said
    assert "files left to find: not known" in said


def test_an_api_that_fails_leaves_the_list_cut(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was to be read from it counts as cut then."""
    put_in(monkeypatch, answers=served(site, 7), grows=staticmethod(lambda url: True))
    site.answers[f"/api/list?page=8&size={SIZE}"] = lambda _: (200, {"Content-Type": "application/json"}, b"{}")
    result = crawl(Follower, SETTINGS, addon=True, seeds=[site.url("/list")])
    assert (len(reports(site)), asked(site)) == (70, [8])
    assert result.stats["focus/browser/list_cut"] == 1


def test_a_list_that_leads_on_by_itself_is_left_to_that(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a page links to the next part, which a browser shows, its API is not asked besides."""
    answers = served(site, 1)
    site.pages["/list"] = site.pages["/list"].replace("<h1>", '<a href="/list?page=2">2</a><h1>')
    put_in(monkeypatch, answers=answers)
    crawl(Follower, SETTINGS, addon=True, seeds=[site.url("/list")])
    assert asked(site) == []


def test_the_page_of_results_counts_requests_to_other_hosts_apart() -> None:
    """As a part of those that the browser sent, and only where there were some."""
    counts = {"browser/read": 14, "browser/requests": 174, "browser/elsewhere": 97}
    (said,) = _rendered(Notes(crawl=1, runs=[], answers=[], state={"rendered": counts}))
    assert "rendered 14 pages, with 174 further requests (97 of them to other hosts); 0 were refused" in said
    (said,) = _rendered(Notes(crawl=1, runs=[], answers=[], state={"rendered": counts | {"browser/elsewhere": 0}}))
    assert "rendered 14 pages, with 174 further requests; 0 were refused" in said
