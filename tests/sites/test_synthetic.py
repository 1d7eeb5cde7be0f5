"""The synthetic portal: what it contains, that its truth is true, and that it costs nothing to be large."""

from __future__ import annotations

import hashlib
import io
import json
import random
import tracemalloc
import zipfile
from collections import Counter, deque
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import pytest
from lxml import html

from scrapy_focus.lab.sites.portal.portal import HTML, TARGET_MIMES, Page, StatisticsPortal

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "http://portal.example"


@pytest.fixture(scope="module")
def site() -> StatisticsPortal:
    return StatisticsPortal(pages=300, seed=7)


@pytest.fixture(scope="module")
def answers(site: StatisticsPortal) -> dict[str, Page]:
    """Return everything within reach of the home page, the calendar cut to three months."""
    return crawl(site)


def links(path: str, page: Page) -> Iterator[str]:
    """Yield the paths on the same host that a page leads to, in the order of the document."""
    hrefs = [page.location] if page.location else []
    if page.status == 200 and page.mime == HTML:
        hrefs += html.fromstring(page.body).xpath("//a/@href")
    for href in hrefs:
        url = urlsplit(urljoin(HOST + path, href))
        if url.netloc == urlsplit(HOST).netloc:
            yield url.path + (f"?{url.query}" if url.query else "")


def crawl(site: StatisticsPortal) -> dict[str, Page]:
    """Return the answer to every address that is found from the home page, breadth first."""
    answers: dict[str, Page] = {}
    queue, seen = deque(["/"]), {"/"}
    while queue:
        path = queue.popleft()
        answers[path] = site.fetch(path)
        for link in links(path, answers[path]):
            outside = "/calendar/" in link and not any(f"/2024-0{month}" in link for month in (5, 6, 7))
            if link not in seen and not outside:
                seen.add(link)
                queue.append(link)
    return answers


def of_kind(answers: dict[str, Page], status: int, mime: str = HTML) -> set[str]:
    return {path for path, page in answers.items() if page.status == status and page.mime == mime}


def test_same_seed_same_bytes(answers: dict[str, Page]) -> None:
    """Two portals with the same size and seed answer every request with the same bytes."""
    twin = StatisticsPortal(pages=300, seed=7)
    for path, page in answers.items():
        again = twin.fetch(path)
        assert again == page
        assert again.body == page.body


def test_bytes_do_not_depend_on_the_process() -> None:
    """A portal is the same on every machine and in every release, or published numbers would not compare."""
    site = StatisticsPortal(pages=300, seed=7)
    digest = hashlib.sha256()
    for path in site.html_paths():
        digest.update(site.fetch(path).body)
    assert digest.hexdigest()[:16] == "c3a72b22e23add90"


def test_different_seeds_differ(site: StatisticsPortal) -> None:
    """Another seed is another portal: other addresses, other data."""
    other = StatisticsPortal(pages=300, seed=8)
    assert other.fetch("/").body != site.fetch("/").body
    assert len(set(site.targets()) & set(other.targets())) < 0.3 * site.n_targets


def test_exhaustive_crawl_finds_exactly_the_targets(site: StatisticsPortal, answers: dict[str, Page]) -> None:
    """The files within reach of the home page are the targets, each listed once."""
    found = {path for path, page in answers.items() if page.status == 200 and page.mime in TARGET_MIMES}
    listed = list(site.targets())
    assert found == set(listed)
    assert len(listed) == len(set(listed)) == site.n_targets


def test_exhaustive_crawl_finds_exactly_the_pages(site: StatisticsPortal, answers: dict[str, Page]) -> None:
    """The HTML pages within reach are the listed ones, the calendar and the private area apart."""
    found = {path for path in of_kind(answers, 200) if "/calendar" not in path and "/private/" not in path}
    listed = list(site.html_paths())
    assert found == set(listed)
    assert len(listed) == len(set(listed)) == site.n_pages


def test_is_target_agrees_with_targets(site: StatisticsPortal, answers: dict[str, Page]) -> None:
    """Of all addresses that occur on the site, is_target picks out those that targets lists."""
    assert {path for path in answers if site.is_target(path)} == set(site.targets())


@pytest.mark.parametrize("pages", [200, 300, 2_000, 20_000])
def test_number_of_pages_is_met(pages: int) -> None:
    """The portal has the number of pages asked for, within 3 %, and 25 to 35 targets per 100 of them."""
    site = StatisticsPortal(pages=pages, seed=1)
    assert abs(site.n_pages - pages) <= 0.03 * pages
    assert 0.25 <= site.n_targets / site.n_pages <= 0.35


@pytest.mark.slow
@pytest.mark.parametrize("pages", [1_000, 2_000])
def test_share_of_pages_with_data(pages: int) -> None:
    """Between 10 and 12 % of the pages link to a target."""
    site = StatisticsPortal(pages=pages, seed=1)
    targets = set(site.targets())

    def leads_to_target(link: str) -> bool:
        return link in targets or (link.startswith("/download/") and site.fetch(link).location in targets)

    rich = sum(any(map(leads_to_target, links(path, site.fetch(path)))) for path in site.html_paths())
    assert 0.10 <= rich / site.n_pages <= 0.12


def test_every_annoyance_is_within_reach(answers: dict[str, Page]) -> None:
    """Broken and moved links, short addresses, hidden and shouting extensions, films and logins all occur."""
    files = {path for path, page in answers.items() if page.status == 200 and page.mime in TARGET_MIMES}
    assert {answers[path].mime for path in files} == TARGET_MIMES
    assert any(path.startswith("/node/") and path.endswith("/file") for path in files)
    assert any(path.startswith("/download?id=") for path in files)
    assert any(path.rpartition(".")[2].isupper() for path in files)
    assert any(path.startswith("/files/mirror/") for path in files)
    assert any(answers[path].location in files for path in of_kind(answers, 302))
    missing, moved = of_kind(answers, 404), of_kind(answers, 301)
    assert any(path.startswith("/fr/") for path in missing)
    assert any(path.startswith(("/files/", "/download")) for path in missing)
    assert {"/index.html", "/fr/index.html"} <= moved
    assert any(path.startswith("/node/") for path in moved)
    assert any(path.endswith("?page=0") for path in moved)
    assert of_kind(answers, 200, "video/mp4")
    assert of_kind(answers, 200, "image/jpeg")
    assert any("/private/" in path for path in of_kind(answers, 200))


def test_mirrors_have_the_same_content(site: StatisticsPortal) -> None:
    """The bytes of every mirror are those of another target."""
    mirrors = [path for path in site.targets() if path.startswith("/files/mirror/")]
    originals = {site.fetch(path).body for path in site.targets() if not path.startswith("/files/mirror/")}
    assert mirrors
    assert all(site.fetch(path).body in originals for path in mirrors)


def test_files_are_what_they_claim_to_be(site: StatisticsPortal) -> None:
    """Every target is a valid document of its media type, 1 to 300 KB long, and its size was known before."""
    sizes = []
    for path in site.targets():
        page = site.fetch(path)
        body = page.body
        assert len(body) == page.size
        sizes.append(page.size)
        if page.mime == "text/csv":
            header, *rows = body.decode().splitlines()
            assert header == "period,region,value"
            assert all(float(row.split(",")[2]) >= 100_000 for row in rows)
        elif page.mime == "application/json":
            assert all(len(row) == 3 for row in json.loads(body)["rows"])
        elif page.mime == "application/pdf":
            assert body.startswith(b"%PDF-1.4")
            start = int(body.rpartition(b"startxref\n")[2].split()[0])
            assert body[start : start + 4] == b"xref"
        else:
            with zipfile.ZipFile(io.BytesIO(body)) as archive:
                assert archive.testzip() is None
                assert len(archive.namelist()) > 1
    assert min(sizes) >= 1_000
    assert max(sizes) <= 300_000
    assert max(sizes) > 5 * sorted(sizes)[len(sizes) // 2]


def test_size_does_not_build_the_file(site: StatisticsPortal, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of a file is known without its body, which is built when it is read."""
    path = next(site.targets())
    size = len(site.fetch(path).body)
    built: list[str] = []

    def build(extension: str, n_records: int, seed: int) -> bytes:
        built.append(extension)
        return b"x"

    monkeypatch.setattr("scrapy_focus.lab.sites.portal.files.build", build)
    page = site.fetch(path)
    assert (page.size, built) == (size, [])
    assert page.body == b"x"
    assert len(built) == 1


def test_calendar_never_ends(site: StatisticsPortal) -> None:
    """Following the link to the next month leads to ever new pages, far beyond the years of real calendars."""
    path, seen = "/fr/calendar/9998-11", set()
    for _ in range(30):
        assert path not in seen
        seen.add(path)
        (path,) = html.fromstring(site.fetch(path).body).xpath("//a[@class='next']/@href")
    assert path == "/fr/calendar/10001-05"
    days = [link for link in links(path, site.fetch(path)) if link.startswith(f"{path}-")]
    assert days
    assert all(site.fetch(day).status == 200 for day in days)


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/data?page=2000",
        "/data?page=01",
        "/data?sort=title",
        "/dataset/wrong-words-here-0",
        "/dataset/no-number",
        "/archive/growth-0/1066",
        "/de/archive",
        "/calendar/2023-02-29",
        "/calendar/0000-13",
        "/download?id=x",
        "/download/999999999999",
        "/node/999999999999",
        "/files/2010-01/wrong-words-here-0.csv",
        "/media/images/en-999999.jpg",
        "//portal.example/",
        "no-slash",
        "/node/²/file",
    ],
)
def test_unknown_addresses_are_missing(site: StatisticsPortal, path: str) -> None:
    """An unused address is answered with a page of status 404 and is not a target."""
    page = site.fetch(path)
    assert (page.status, page.mime, page.location) == (404, HTML, None)
    assert page.size == len(page.body) > 0
    assert not site.is_target(path)


@pytest.mark.parametrize(
    ("path", "location"),
    [("/index.html", "/"), ("/de/home", "/de"), ("/data/", "/data"), ("/news?page=0", "/news"), ("/fr/", "/fr")],
)
def test_variants_redirect(site: StatisticsPortal, path: str, location: str) -> None:
    """Variants of an address redirect to the one in use."""
    assert (site.fetch(path).status, site.fetch(path).location) == (301, location)
    assert site.fetch(location).status == 200


def test_fragments_are_ignored(site: StatisticsPortal) -> None:
    """A fragment does not change the answer."""
    assert site.fetch("/data#content").body == site.fetch("/data").body


def test_robots_forbids_the_private_area_only(site: StatisticsPortal) -> None:
    """robots.txt shuts the private area of every edition and nothing else."""
    lines = site.fetch("/robots.txt").body.decode().splitlines()
    assert lines == ["User-agent: *", "Disallow: /private/", "Disallow: /fr/private/", "Disallow: /de/private/"]


def test_markup_is_not_the_same_everywhere(answers: dict[str, Page]) -> None:
    """Ids are unique within a page, and tag paths vary: rows are odd or even, teasers are numbered."""
    for path in of_kind(answers, 200):
        ids = html.fromstring(answers[path].body).xpath("//@id")
        assert max(Counter(ids).values()) == 1, path
    teasers = html.fromstring(answers["/data"].body).xpath("//div[starts-with(@id, 'teaser-data-')]/../@class")
    assert teasers[:2] == ["views-row views-row-1 odd", "views-row views-row-2 even"]


@pytest.mark.parametrize("pages", [199, 1_000_001, -1])
def test_size_out_of_range(pages: int) -> None:
    """A size out of range is refused with the range, what was given and what to do."""
    with pytest.raises(ValueError, match=rf"200 to 1,000,000 pages, but pages={pages} was given; choose"):
        StatisticsPortal(pages=pages)


def test_a_million_pages_cost_nothing() -> None:
    """The largest portal answers random pages, and keeps less than 1 MB."""
    tracemalloc.start()
    site = StatisticsPortal(pages=1_000_000, seed=3)
    rng = random.Random(0)
    shortcuts = (site.fetch(f"/node/{rng.randrange(72_000)}") for _ in range(150))
    paths = [page.location for page in shortcuts if page.location is not None]
    assert len(paths) > 100
    paths += [f"/news?page={rng.randrange(1, 20_000)}" for _ in range(150)]
    site.fetch("/")
    before, _ = tracemalloc.get_traced_memory()
    assert all(site.fetch(path).status == 200 for path in paths)
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 100_000
    assert peak < 1_000_000


def test_repr_says_how_to_make_it_again(site: StatisticsPortal) -> None:
    """The repr of a portal makes the same portal."""
    assert eval(repr(site)).fetch("/").body == site.fetch("/").body


def test_a_calendar_that_ends() -> None:
    """Without an endless calendar only one year of it exists, and all else is the same."""
    endless, ending = StatisticsPortal(pages=200), StatisticsPortal(pages=200, endless=False)
    assert ending.fetch("/calendar/2024-12").status == 200
    assert ending.fetch("/calendar/2024-12-24").status == 200
    for path in ("/calendar/2025-01", "/calendar/2023-12", "/calendar/2023-12-24"):
        assert (endless.fetch(path).status, ending.fetch(path).status) == (200, 404)
    assert all(endless.fetch(path).body == ending.fetch(path).body for path in list(endless.html_paths())[::7])
    assert repr(ending) == "StatisticsPortal(pages=200, seed=0, endless=False)"
