"""A site with a part that never ends: the default policy learns to leave it, without any limit."""

from __future__ import annotations

import hashlib
import itertools
import re
from statistics import mean
from typing import TYPE_CHECKING

import pytest

from scrapy_focus import Budget, Crawl, FilesGoal, Link, Outcome, memory_frontier
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "http://h.test"
BUDGET = 700
ENDLESS = re.compile(r"/cal/|sid=|sort=")


class EndlessSite:
    """Ten sections of 20 lists of 10 pages, every third with a file without a distinctive name; and a trap.

    Parameters
    ----------
    trap
        ``calendar``: every page links to 30 days and two months, each of which does so again. ``session``: links of
        the menu have a new id on each page. ``sort``: a list links to twelve sorted copies of itself, and these do so
        again.
    """

    def __init__(self, trap: str) -> None:
        self.trap = trap
        self._sessions = itertools.count()

    def links(self, url: str) -> Iterator[tuple[str, str, str]]:
        """Yield path, tag path and anchor of each link of a page."""
        path, _, query = url.removeprefix(HOST).partition("?")
        session = f"?sid={next(self._sessions)}" if self.trap == "session" else ""
        for section in range(10):
            yield f"/s{section}/{session}", "html/body/header/nav.main/ul/li/a", f"Section {section}"
        if found := re.fullmatch(r"/s(\d)/(?:p(\d+))?", path):
            section, page = int(found[1]), int(found[2] or 0)
            for i in range(10 * page, 10 * page + 10):
                yield f"/s{section}/d{i}", "html/body/main/div.list/article.row/h3/a", f"Dataset {i}"
            if page < 19:
                yield f"/s{section}/p{page + 1}", "html/body/main/div.pager/a.next", "Next"
            if self.trap == "sort":
                for column in "abcdefghijkl":
                    yield f"{path}?{query}&sort={column}", "html/body/main/div.sort/a", f"Sort by {column}"
        if (found := re.fullmatch(r"/s(\d)/d(\d+)", path)) and int(found[2]) % 3 == 0:
            yield f"/files/{found[1]}-{found[2]}", "html/body/main/div.download/a.btn", "Download"
        if self.trap == "calendar":
            month = int(found[1]) if (found := re.match(r"/cal/(\d+)", path)) else 600
            for day in range(1, 31):
                yield f"/cal/{month}/{day}", "html/body/aside/table.cal/tr/td/a", str(day)
            yield f"/cal/{month + 1}", "html/body/aside/div.months/a.next", "Next month"
            yield f"/cal/{month - 1}", "html/body/aside/div.months/a.previous", "Previous month"

    def crawl(self, policy: BranchingBandit | BreadthFirst, *, seed: int = 0) -> tuple[float, int]:
        """Crawl it, and return how many files were found and how many requests went into the trap."""
        goal = FilesGoal(types=["csv"])
        crawl = Crawl(
            policy, frontier=memory_frontier, goal=goal, budget=Budget(requests=BUDGET), seed=seed, strict=True
        )
        crawl.add([Link(f"{HOST}/", 1, "h.test")])
        trapped = 0
        while (pick := crawl.next()) is not None:
            crawl.sent(pick.id)
            trapped += ENDLESS.search(pick.url) is not None
            if "/files/" in pick.url:
                crawl.report(Outcome(pick=pick, status=200, mime="text/csv", size=5000))
                continue
            links = [
                Link(HOST + path, key_of(path), "h.test", pick.depth + 1, anchor, tag_path, anchor)
                for path, tag_path, anchor in self.links(pick.url)
            ]
            crawl.report(Outcome(pick=pick, status=200, mime="text/html", size=20_000), links)
        return crawl.rewards, trapped


def key_of(path: str) -> int:
    return int.from_bytes(hashlib.blake2b(path.encode(), digest_size=8).digest(), "big") >> 1


def test_a_page_that_reveals_untried_links_is_left_in_the_end() -> None:
    """Each month reveals 30 days; with this seed, no day and no file is among the first 30 requests."""
    found, trapped = EndlessSite("calendar").crawl(BranchingBandit(targets=["text/csv"]), seed=3)
    assert found > 100
    assert trapped < 0.15 * BUDGET


def means_of_learning(trap: str) -> tuple[float, float]:
    """Return how many files the default policy finds and how many requests go into the trap, on average."""
    crawls = [EndlessSite(trap).crawl(BranchingBandit(targets=["text/csv"]), seed=seed) for seed in range(4)]
    found, trapped = zip(*crawls, strict=True)
    return mean(found), mean(trapped)


@pytest.mark.slow
@pytest.mark.parametrize("trap", ["calendar", "session", "sort"])
def test_the_default_policy_leaves_an_endless_part(trap: str) -> None:
    """It spends less than a tenth of its requests there, and finds nearly as much as without; breadth-first does not."""
    without, _ = means_of_learning("none")
    found, trapped = means_of_learning(trap)
    assert without > 100
    assert found > 0.85 * without
    assert trapped < 0.1 * BUDGET
    by_breadth, trapped_by_breadth = EndlessSite(trap).crawl(BreadthFirst())
    assert by_breadth < 0.7 * found
    assert trapped_by_breadth > 0.3 * BUDGET
