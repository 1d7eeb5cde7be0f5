"""The page of a folder in a real browser: nothing runs or loads, it fits, and its list can be searched and sorted."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus.finders.important.link_book import LinkBook
from scrapy_focus.finders.outputs import write_report
from tests.found.foundfolders import (
    hit,
    hostile,
    hostile_importance,
    hostile_structured,
    hostile_topic,
    line,
    make,
    make_topic,
    topic_line,
)
from tests.found.test_watched import NOW, article, watched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (pip install playwright)")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium (apt-get install chromium)")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield started
        started.close()


def look(
    browser: Any, path: Path, *, width: int = 1440, scheme: str = "light", scripts: bool = True
) -> tuple[Any, list[str]]:
    """Open a page, and return it with a list of its side effects."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
    )
    page, did = context.new_page(), []
    page.on("dialog", lambda dialog: did.append(f"dialog {dialog.message}"))
    page.on("console", lambda message: did.append(f"console {message.text}"))
    page.on("pageerror", lambda error: did.append(f"error {error}"))
    page.on("request", lambda request: did.append(f"request {request.url}"))
    page.goto(path.as_uri())
    assert did.pop(0) == f"request {path.as_uri()}"
    return page, did


@pytest.mark.parametrize(
    ("make_hostile", "width", "scheme"),
    [
        (hostile, 360, "light"),
        (hostile, 768, "dark"),
        (hostile, 1440, "light"),
        (hostile_topic, 360, "dark"),
        (hostile_importance, 360, "light"),
        (hostile_importance, 1440, "dark"),
        (hostile_structured, 400, "dark"),
        (hostile_structured, 1280, "light"),
        (hostile_structured, 768, "light"),
    ],
)
def test_nothing_runs_and_nothing_overflows(
    browser: Any, tmp_path: Path, make_hostile: Callable[[Path], Path], width: int, scheme: str
) -> None:
    """For any names, texts and addresses of a site, also while a user searches, sorts and shows more."""
    path = write_report(make_hostile(tmp_path / "found"))
    page, did = look(browser, path, width=width, scheme=scheme)
    page.evaluate("document.querySelectorAll('.files thead button').forEach(head => { head.click(); head.click(); })")
    everything = page.inner_text("#hits")
    page.fill("#search", "<script>")
    page.wait_for_function("before => document.getElementById('hits').textContent !== before", arg=everything)
    page.fill("#search", "")
    page.wait_for_function("before => document.getElementById('hits').textContent === before", arg=everything)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert did == []
    assert page.query_selector("img") is None
    odd = "[...document.links].filter(a => !/^(https?|file):/.test(a.href) || (a.protocol == 'file:' && !a.href.startsWith(%r)))"
    assert page.evaluate(f"{odd % path.parent.as_uri()}.length") == 0
    page.context.close()


def test_the_list_can_be_searched_sorted_and_filtered(browser: Any, tmp_path: Path) -> None:
    """Of five thousand files only the shown ones are rows, and each control works."""
    kinds = ("csv", "pdf")
    lines = [
        line(n, url=f"https://x.example/{n}.{kinds[n % 2]}", mime="", size=n, state=("same", "new")[n % 3 == 0], crawl=2,
             path=f"files/{n:064}/{n}.{kinds[n % 2]}")
        for n in range(1, 5001)
    ]  # fmt: skip
    page, did = look(browser, write_report(make(tmp_path / "found", lines)))

    def names() -> list[str]:
        found: list[str] = page.eval_on_selector_all(
            ".files tbody th", "all => all.map(each => each.firstChild.textContent)"
        )
        return found

    def hits(said: str) -> None:
        page.wait_for_function("said => document.getElementById('hits').textContent === said", arg=said)

    hits("5,000 of 5,000 files")
    assert names() == [f"{n}.{kinds[n % 2]}" for n in range(1, 11)]
    page.click(".more")
    assert len(names()) == 110
    page.click("th[data-by=size] button")
    assert names()[0] == "5000.csv"
    page.click("th[data-by=size] button")
    assert names()[0] == "1.pdf"
    page.fill("#search", "X.EXAMPLE/499")
    hits("11 of 5,000 files")
    page.select_option("#kind", "pdf")
    hits("6 of 5,000 files")
    page.select_option("#state", "new")
    hits("1 of 5,000 files")
    assert names() == ["4995.pdf"]
    page.fill("#search", "no such file")
    hits("0 of 5,000 files")
    assert names() == []
    assert did == []
    page.context.close()


def test_without_scripts_it_is_a_table(browser: Any, tmp_path: Path) -> None:
    """It has the first hundred files and a note about the others, and no controls."""
    page, _ = look(browser, write_report(make(tmp_path / "found", [line(n) for n in range(1, 301)])), scripts=False)
    assert page.locator(".files tbody tr").count() == 100
    assert page.locator("noscript").inner_text() == "Without scripts, only the first 100 are shown here."
    assert not page.locator(".controls").is_visible()
    page.context.close()


def test_important_pages_are_sorted_by_number(browser: Any, tmp_path: Path) -> None:
    """By rank, by importance and by the number of linking pages; each page has the first links to it."""
    folder = tmp_path / "found"
    folder.mkdir()
    book = LinkBook(folder, resumes=False)
    for n in range(120):  # page n has links to all before it
        links = {other: (f"https://x.example/{other}", f"to {other}") for other in range(n)}
        book.note(n, f"https://x.example/{n}", came="page", links=links)
    page, did = look(browser, write_report(folder))

    def firsts() -> list[str]:
        found: list[str] = page.eval_on_selector_all(
            ".files tbody th .url", "all => all.slice(0, 3).map(each => each.textContent)"
        )
        return found

    best = ["x.example/0", "x.example/1", "x.example/2"]
    worst = ["x.example/119", "x.example/118", "x.example/117"]
    assert firsts() == best
    page.click("th[data-by=kind] button")
    page.click("th[data-by=kind] button")
    assert firsts() == worst
    page.click("th[data-by=place] button")
    assert firsts() == best
    page.click("th[data-by=size] button")
    page.click("th[data-by=size] button")
    assert firsts() == worst
    page.click("th[data-by=size] button")
    assert page.locator(".files tbody tr").first.locator(".also").count() == 2
    assert page.locator("#kind").count() == 0
    assert did == []
    page.context.close()


def test_a_host_does_not_wrap(browser: Any, tmp_path: Path) -> None:
    """With many columns, on a screen of 1280 pixels."""
    hosts = ("forum.digozi.test", "www.digozi.test:8080", "daten.statistik.example.org")
    lines = [topic_line(n, host=host, url=f"https://{host}/{n}") for n, host in enumerate(hosts)]
    statuses = (200, 301, 302, 400, 401, 403, 404, 410, 429, 500, 502, 503)
    answers = [hit(status, url=f"https://{host}/{status}", status=status) for host in hosts for status in statuses]
    make_topic(tmp_path, lines, answers)
    page, _ = look(browser, write_report(tmp_path), width=1280)
    tops = """cells => cells.map(cell => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return new Set([...range.getClientRects()].map(box => box.top)).size;
    })"""
    for cells in ("td.place span", "table[aria-labelledby=hosts] tbody th", "table[aria-labelledby=traffic] tbody th"):
        assert page.eval_on_selector_all(cells, tops) == [1] * 3, cells


def test_the_figures_are_whole_on_a_telephone(browser: Any, tmp_path: Path) -> None:
    """The numbers at the axes are larger there, and none is cut."""
    watched(tmp_path, [article(n, NOW + 60 * n, published=NOW) for n in range(20)])
    page, _ = look(browser, write_report(tmp_path), width=400)
    cut = """texts => texts.filter(text => {
        const box = text.getBoundingClientRect(), frame = text.ownerSVGElement.getBoundingClientRect();
        return box.left < 0 || (box.left < frame.left && getComputedStyle(text.ownerSVGElement).overflow !== "visible");
    }).map(text => text.textContent)"""
    assert "100 %" in page.eval_on_selector_all(".curve text", "texts => texts.map(text => text.textContent)")
    assert page.eval_on_selector_all(".curve text", cut) == []


def test_files_about_something_are_sorted_by_relevance(browser: Any, tmp_path: Path) -> None:
    """The most relevant is first; its column turns the order round, and each row has a bar."""
    lines = [line(n, relevance=relevance) for n, relevance in enumerate((0.2, 0.9, 0.5))]
    page, did = look(browser, write_report(make(tmp_path / "found", lines, [hit(1)], reason="finished")))
    bars = "all => all.map(each => each.value)"
    assert page.eval_on_selector_all(".files tbody meter", bars) == [90, 50, 20]
    page.click(".files thead th[data-by=relevance] button")
    assert page.eval_on_selector_all(".files tbody meter", bars) == [20, 50, 90]
    assert did == []
