"""Ranks of pages from the records of links: exact, despite redirects, repeats, cut lines and limits."""

from __future__ import annotations

import csv
import json
import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.finders.important.link_book import LinkBook, read_links
from scrapy_focus.finders.important.ranking import FoundThrough, read_ranking
from scrapy_focus.finders.kit.records.folder_names import GRAPH
from scrapy_focus.finders.outputs import write_report
from tests.found.foundfolders import EVIL, hostile_importance

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from scrapy_focus.finders.important.link_book import Came

D = 0.9


def url(page: int) -> str:
    return f"http://x.example/{page}"


def note(
    book: LinkBook, page: int, to: Iterable[int] = (), *, came: Came = "page", outside: int = 0, also: Iterable[int] = (),
    at: str = "",
) -> None:  # fmt: skip
    """Record the links of a page; the key of each is its number plus 1."""
    links = {other + 1: (url(other), f"to {other}") for other in to}
    book.note(
        page + 1, url(page), came=came, at=at, links=links, outside=outside, also=[other + 1 for other in also]
    )  # fmt: skip


def solved(links: dict[int, list[int]], n: int, outside: dict[int, int]) -> NDArray[np.float64]:
    """Solve PageRank as a system of equations, with a mean of 1; pages without links pass on to all equally."""
    matrix = np.eye(n)
    for page, to in links.items():
        for other in to:
            matrix[other, page] -= D / (len(to) + outside.get(page, 0))
    rank = np.linalg.solve(matrix, np.full(n, 1 - D))
    return rank * n / rank.sum()


def ranked(folder: Path) -> dict[str, tuple[float, int]]:
    return {page.url: (page.importance, page.links) for page in read_ranking(folder)}


def test_five_pages_by_hand(tmp_path: Path) -> None:
    """A home page, three pages, and one that is queued: importance, number of links and rank, computed by hand.

    The damping is 0.9. Page 0 links to 1 and 2, page 1 to 2, and page 2 to 0 and to 4, which is queued. Page 3 links to
    2 and to two pages on other sites.
    """
    book = LinkBook(tmp_path, resumes=False)
    note(book, 0, [1, 2])
    note(book, 1, [2])
    note(book, 2, [0, 4])
    note(book, 3, [2], outside=2)
    # home = .1 + .45 two;  one = .1 + .45 home;  two = .1 + .45 home + .9 one + .3 three;  three = .1;  four = home
    # two = .1 + .45 home + .09 + .405 home + .03 = .22 + .855 home;  home = .1 + .099 + .38475 home = .199 / .61525
    home = 0.199 / 0.61525
    values = {0: home, 1: 0.1 + 0.45 * home, 2: 0.22 + 0.855 * home, 3: 0.1, 4: home}
    mean = sum(values.values()) / 5
    found = read_ranking(tmp_path)
    assert {page.url: page.importance for page in found} == pytest.approx(
        {url(page): value / mean for page, value in values.items()}, abs=1e-6
    )
    assert [page.url for page in found] == [url(page) for page in (2, 0, 4, 1, 3)]
    assert [page.rank for page in found] == [1, 2, 3, 4, 5]
    assert [page.links for page in found] == [3, 1, 1, 1, 0]
    assert [page.is_fetched for page in found] == [True, True, False, True, True]
    assert found[0].through == (
        FoundThrough(url(0), "to 2"),
        FoundThrough(url(1), "to 2"),
        FoundThrough(url(3), "to 2"),
    )


@pytest.mark.parametrize("seed", range(5))
def test_random_webs_as_a_system_of_equations(tmp_path: Path, seed: int) -> None:
    """With pages that fail, are queued, redirect or are fetched again, and links to other sites."""
    rng = random.Random(seed)
    n = 40
    came = {page: rng.choice(["page", "page", "page", "nothing", "waits"]) for page in range(n)}
    came |= dict.fromkeys(range(n, n + 10), "moved")
    leads = {page: rng.randrange(n) for page in range(n, n + 10)}
    links = {page: rng.sample(range(n + 10), rng.randrange(6)) for page in range(n)}
    outside = {page: rng.randrange(3) for page in range(n)}
    book = LinkBook(tmp_path, resumes=False)
    order = [page for page in came if came[page] != "waits"] * 2
    rng.shuffle(order)
    for page in order:
        if page >= n:
            note(book, page, came="moved", also=[leads[page]])
        elif came[page] == "page":
            note(book, page, rng.sample(links[page], len(links[page])), outside=outside[page])
        else:
            note(book, page, came="nothing")
    real = [page for page in range(n) if came[page] in ("page", "waits")]
    different: dict[int, list[int]] = {}
    lost = dict(outside)
    for page in range(n):
        to = {leads.get(other, other) for other in links[page]} - {page}
        if came[page] == "page":
            different[page] = sorted(to & {*real})
            lost[page] += len(to) - len(different[page])
    known = {*different} | {other for to in different.values() for other in to}
    known |= {end for end in leads.values() if came[end] == "waits"}
    small = {page: place for place, page in enumerate(sorted(known))}
    graph = {small[page]: [small[other] for other in to] for page, to in different.items()}
    expected = solved(graph, len(small), {small[page]: lost[page] for page in different})
    ends = {url(page): url(end) for page, end in leads.items()}  # pages known only by a redirect have its URL
    found = {ends.get(name, name): value for name, value in ranked(tmp_path).items()}
    named = {place: url(page) for page, place in small.items()}
    rows = {named[place]: value for place, value in enumerate(expected) if named[place] in found}
    assert {name: value for name, (value, _) in found.items()} == pytest.approx(rows, abs=2e-6)
    backlinks = {url(page): sum(page in to for to in different.values()) for page in known}
    assert {name: n_links for name, (_, n_links) in found.items()} == {name: backlinks[name] for name in found}


def test_a_run_that_was_killed_resumes(tmp_path: Path) -> None:
    """Numbers, counts and the first links are the same as without the kill; a cut line is written again."""
    for folder in ("whole", "killed"):
        (tmp_path / folder).mkdir()
    pages = {page: [(page * 7 + k) % 30 for k in range(5)] for page in range(30)}
    whole = LinkBook(tmp_path / "whole", resumes=False)
    book = LinkBook(tmp_path / "killed", resumes=False)
    for page, to in pages.items():
        note(whole, page, to)
        note(book, page, to)
        if page % 5 == 0:
            path = tmp_path / "killed" / GRAPH
            if page % 10 == 0:
                path.write_bytes(path.read_bytes()[:-7])  # it was not counted either
            book = LinkBook(tmp_path / "killed", resumes=True)
            note(book, page, to)  # it was in flight
    assert read_ranking(tmp_path / "killed") == read_ranking(tmp_path / "whole")


def test_links_beyond_the_limits_count_as_outside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """They still take their share of the page's importance, and one warning is logged."""
    book = LinkBook(tmp_path, resumes=False, pages=4, links=5)
    note(book, 0, [1, 2, 3, 4, 5])
    note(book, 1, [2, 3, 0])
    note(book, 4, [0])
    assert [(noted.page, noted.to, noted.outside) for noted in read_links(tmp_path)] == [(0, [1, 2, 3], 2), (1, [], 3)]
    assert len([record for record in caplog.records if "are recorded" in record.getMessage()]) == 1


def test_a_link_takes_a_few_bytes(tmp_path: Path) -> None:
    """At most eight, for 20,000 pages with ten links each, half of them to the next pages and half to any."""
    rng, n = random.Random(1), 20_000
    book = LinkBook(tmp_path, resumes=False)
    note(book, 0, range(n))
    before = (tmp_path / GRAPH).stat().st_size
    for page in range(1, n, 10):
        note(book, page, [(page + k) % n for k in range(1, 6)] + [rng.randrange(n) for _ in range(5)])
    texts = sum(len(json.dumps(dict(noted.texts))) for noted in read_links(tmp_path) if noted.page)
    assert ((tmp_path / GRAPH).stat().st_size - before - texts) / (n // 10 * 10) < 8


@pytest.mark.parametrize(
    "line",
    [
        '{"page": 7, "came": "page"}', '{"page": 0, "came": "page", "to": "ffffffffff"}', '{"page": 0, "came": "x"}', '{"page": 0, "named": {"9": "x"}}',
        '{"page": 0, "came": "page", "to": "-3"}', '{"page": 0, "came": "page", "also": ["0"]}', '{"page": "0"}',
        '{"came": "page"}', '{"page": 0, "came": "page", "texts": {"x": ""}}', "[]", "",
    ],
)  # fmt: skip
def test_invalid_records_are_refused(tmp_path: Path, line: str) -> None:
    """They are refused with the name of the file, and no other error."""
    note(LinkBook(tmp_path, resumes=False), 0, [1])
    with (tmp_path / GRAPH).open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(ConfigError, match=r"graph\.jsonl"):
        read_ranking(tmp_path)
    with pytest.raises(ConfigError, match=r"graph\.jsonl"):
        LinkBook(tmp_path, resumes=True)


def test_hostile_titles_and_anchors(tmp_path: Path) -> None:
    """No cell of the table is a formula, and no title becomes markup on the page."""
    page = write_report(hostile_importance(tmp_path / "found")).read_text()
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "<svg onload" not in page
    with (tmp_path / "found" / "importance.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > len(EVIL)
    assert not [cell for row in rows for cell in row.values() if cell[:1] in "=+-@\t\r\n" and cell]
    assert {"yes", "no"} == {row["fetched"] for row in rows}
