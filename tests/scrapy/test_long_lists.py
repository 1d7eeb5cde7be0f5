"""Lists that a browser shows only in part: the message says that there is more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawls import Follower, crawl
from handmadebrowser import HANDLERS, SCRIPT, put_in

from scrapy_focus.core.types import Placement
from scrapy_focus.engine.ending import ending_of
from scrapy_focus.finders.kit.page.page import _rendered
from scrapy_focus.finders.kit.records.notes import Notes
from scrapy_focus.policies.branching.policy import BranchingBandit

if TYPE_CHECKING:
    import pytest
    from mocksite import MockSite

    from scrapy_focus.core.types import Outcome

SHOWN = 70


class RenderAll(BranchingBandit):
    """Has every page rendered that has scripts."""

    def render(self, outcome: Outcome) -> Placement | None:
        super().render(outcome)
        return Placement(self._arm_of_template("all"), 0.0, outcome.pick.memo, method="RENDER")


SETTINGS = {**HANDLERS, "FOCUS_POLICY": RenderAll, "FOCUS_TARGETS": ["pdf"]}


def reports(site: MockSite) -> set[str]:
    return {path for path in site.paths if path.startswith("/reports/")}


def test_a_list_that_was_cut_is_said(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the ending, and what is left is not known."""
    links = "".join(f'<a href="/reports/{number}.pdf">A report</a>' for number in range(SHOWN))
    site.pages["/list"] = f"<html><body><h1>Reports</h1>{SCRIPT % links}</body></html>"
    for number in range(SHOWN):
        site.answers[f"/reports/{number}.pdf"] = lambda _: (200, {"Content-Type": "application/pdf"}, b"%PDF-1.4")
    put_in(monkeypatch, grows=staticmethod(lambda url: True))
    result = crawl(Follower, SETTINGS, addon=True, seeds=[site.url("/list")])
    assert len(reports(site)) == SHOWN
    assert result.stats["focus/browser/list_cut"] == 1
    assert ending_of(result.crawler).sentence.endswith("A list is longer than the part that the browser showed.")
    (said,) = result.logged("Finished (")
    assert "1 list read only in part" in said
    assert "files left to find: unknown" in said
    assert result.errors == {}


def test_the_page_of_results_counts_requests_to_other_hosts_apart() -> None:
    """They are shown as a part of the browser's requests, and only if there were some."""
    counts = {"browser/read": 14, "browser/requests": 174, "browser/elsewhere": 97}
    (said,) = _rendered(Notes(crawl=1, runs=[], answers=[], state={"rendered": counts}))
    assert "rendered 14 pages, with 174 further requests (97 of them to other hosts); 0 were blocked" in said
    (said,) = _rendered(Notes(crawl=1, runs=[], answers=[], state={"rendered": counts | {"browser/elsewhere": 0}}))
    assert "rendered 14 pages, with 174 further requests; 0 were blocked" in said
