"""A simulation foresees the same redirects as a live crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from crawls import crawl

from scrapy_focus import FilesGoal
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.writer import Answer, SiteWriter
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.lab.sites.server import SiteServer
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scrapy_focus import Policy

SHELVES, EACH = 8, 12
LIVE = {
    "FOCUS_MAX_INFLIGHT": 1, "FOCUS_SEED": 5, "ROBOTSTXT_OBEY": True, "RETRY_PRIORITY_ADJUST": 0,
    "COOKIES_ENABLED": False,
}  # fmt: skip


class Shelves:
    """Shelves of pages with a file each, which redirect to a URL with a slash.

    Parameters
    ----------
    both
        Whether each shelf links to one of its pages with a slash as well. Otherwise one page in 29 is only at its own
        URL, so that rules end.
    """

    def __init__(self, *, both: bool) -> None:
        self.both = both

    def fetch(self, path: str) -> Page:
        bare, parts = path.rstrip("/"), path.strip("/").split("/")
        if path == "/":
            return _page(*(f"/shelf/{k}" for k in range(SHELVES)))
        if path.endswith(".csv"):
            return Page.of(f"a,b\n{path},1\n".encode(), mime="text/csv")
        number = int(parts[1]) * EACH + int(parts[2]) if parts[0] == "item" and len(parts) == 3 else 0
        is_own = number % 29 == 28 and not self.both
        if parts[0] not in ("shelf", "item") or (is_own and path != bare):
            return Page.of(b"none", status=404, mime="text/plain")
        if path == bare and not is_own:
            return Page.of(b"", status=301, location=f"{path}/")
        if parts[0] == "shelf":
            k = int(parts[1])
            first = [f"/item/{k}/5/"] if self.both else []
            return _page(*first, *(f"/item/{k}/{i}" for i in range(EACH)))
        return _page(f"/file/{'-'.join(parts[1:])}.csv", f"/shelf/{parts[1]}", "/")


def _page(*links: str) -> Page:
    return Page.of("".join(f'<p class="x"><a href="{link}">to {link}</a></p>' for link in links).encode())


@pytest.fixture(scope="module", params=[False, True], ids=["exceptions", "both"])
def recorded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SiteServer, RecordedSite]]:
    """A server, and a recording of all its answers, with those to wrong guesses."""
    with SiteServer(Shelves(both=request.param)) as server:
        path = tmp_path_factory.mktemp("shelves") / "site.sqlite"
        with SiteWriter(path, roots=[server.url], bodies=True, source="test") as writer:
            guesses = [f"{server.url}item/{n // EACH}/{n % EACH}/" for n in range(28, SHELVES * EACH, 29)]
            for url in guesses:
                writer.add(_answer(server, url))
            for url in writer.missing():
                writer.add(_answer(server, url))
            assert writer.finish().missing == 0
        yield server, RecordedSite(path)


def _answer(server: SiteServer, url: str) -> Answer:
    page = server.site.fetch("/" + url.removeprefix(server.url))
    headers = {"Content-Type": page.mime, "Content-Length": str(page.size)}
    if page.location is not None:
        headers["Location"] = page.location
    return Answer(url=url, status=page.status, headers=headers, body=page.body)


@pytest.mark.parametrize("policy", [BreadthFirst, BranchingBandit])
@pytest.mark.parametrize("on", [True, False], ids=["on", "off"])
def test_live_and_simulated_crawls_make_the_same_requests(
    recorded: tuple[SiteServer, RecordedSite], tmp_path: Path, policy: type[Policy], on: bool
) -> None:
    """With wrong guesses and checks, or with links that need no request; and all files are found."""
    server, site = recorded
    server.log.clear()
    settings: dict[str, Any] = {"FOCUS_POLICY": policy, "FOCUS_LEARN_REDIRECTS": on, **LIVE}
    result = crawl(DatasetsSpider, settings, addon=True, root=server.url, out=str(tmp_path))
    assert not result.errors
    live = [each.path for each in server.log if each.path != "/robots.txt"]
    harvest = simulate(policy(), FilesGoal(stored=True), site, seed=5, learn_redirects=on)
    simulated = ["/" + site.urls[page].removeprefix(server.url) for page in harvest.pages[1:]]
    assert live == simulated
    assert harvest.found[-1] == len(result.items) == SHELVES * EACH
    counts = {name.rpartition("/")[2] for name in result.stats if name.startswith("focus/redirect/")}
    assert isinstance(server.site, Shelves)
    assert counts == ({"foreseen", "known" if server.site.both else "wrong"} if on else set())


def test_fewer_requests_find_the_same(recorded: tuple[SiteServer, RecordedSite]) -> None:
    """Simulated, by default: redirects are foreseen."""
    site = recorded[1]
    off, on = (
        simulate(BreadthFirst(), FilesGoal(stored=True), site, **more) for more in ({"learn_redirects": False}, {})
    )
    assert on.found[-1] == off.found[-1]
    assert on.requests < 0.95 * off.requests
