"""The benchmark of the first requests counts what the log of its server says, and repeats no run."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from first_requests import MARKS, ROBOTS, AllowsAll, Run, crawl, find_files, main, read_runs, table
from scrapy_focus.lab.recordings.importers.folder import FolderSite
from scrapy_focus.lab.sites.server import Request
from sites import SITES

FILES = (".pdf", ".csv")
NEEDS_WGET = pytest.mark.skipif(shutil.which("wget") is None, reason="wget is not installed")


def write_site(folder: Path) -> None:
    """Write 1 + 8 + 64 pages, each with a style sheet, a picture and a dead link; those of even sections have files."""
    folder.mkdir(parents=True)
    sections = range(8)
    (folder / "index.html").write_text(page("", [f"s{n}/index.html" for n in sections]))
    for n in sections:
        section = folder / f"s{n}"
        section.mkdir()
        (section / "index.html").write_text(page("../", [f"p{k}.html" for k in range(8)]))
        for k in range(8):
            files = [] if n % 2 else [f"f{k}.pdf", f"f{k}.csv"]
            (section / f"p{k}.html").write_text(page("../", files))
            for name in files:
                (section / name).write_text(f"{n},{k}")
    (folder / "style.css").write_text("")
    (folder / "logo.png").write_bytes(b"")


def page(root: str, links: list[str]) -> str:
    """A page with `links`."""
    anchors = "".join(f'<li><a href="{link}">{link}</a></li>' for link in [*links, "gone.html", f"{root}logo.png"])
    return f'<html><head><link rel="stylesheet" href="{root}style.css"></head><body><ul>{anchors}</ul></body></html>'


@pytest.fixture
def site(tmp_path: Path) -> FolderSite:
    """The site of `write_site`."""
    write_site(tmp_path / "site")
    return FolderSite(tmp_path / "site")


@pytest.mark.parametrize("name", ["focus", "scrapy", pytest.param("wget", marks=NEEDS_WGET)])
def test_a_crawl_is_counted_by_the_log(site: FolderSite, name: str) -> None:
    """It ends with the budget, skips pictures and style sheets, and its files are those in the log."""
    log, ended = crawl(site, "/index.html", name, budget=60)
    paths = [request.path for request in log]
    assert (len(log), ended) == (60, "budget")
    assert paths.count(ROBOTS) == int(name != "wget")
    assert not [path for path in paths if path.endswith((".css", ".png"))]
    firsts = [n for n, path in enumerate(paths, 1) if path.endswith(FILES) and path not in paths[: n - 1]]
    assert find_files(log, site) == tuple(firsts)
    if name == "focus":
        assert firsts
    else:
        sections = [paths.index(f"/s{n}/index.html") for n in range(8)]
        leaves = [n for n, path in enumerate(paths) if Path(path).name.startswith("p")]
        assert max(sections) < min(leaves)


def test_only_the_first_download_of_a_wanted_file_counts(site: FolderSite) -> None:
    """A HEAD, a second GET, a dead link, a page and robots.txt do not."""
    asked = ["HEAD /s0/f0.pdf 200", f"GET {ROBOTS} 200", "GET /s0/f0.pdf 200", "GET /s0/f0.pdf 200"]
    asked += ["GET /gone.pdf 404", "GET /index.html 200", "GET /s2/f1.csv 200"]
    log = [Request(method, path, int(status), 0) for method, path, status in (line.split() for line in asked)]
    assert find_files(log, AllowsAll(site)) == (3, 7)


def test_a_crawler_that_fails_ends_the_benchmark(site: FolderSite) -> None:
    """The message has what the crawler printed."""
    with pytest.raises(SystemExit, match=r"(?s)crawl4ai ended with status 1 after 0 requests.*No module named"):
        crawl(site, "/index.html", "crawl4ai", budget=60, python=sys.executable)


def test_runs_in_the_output_are_not_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second time, only the new number of requests in flight is measured."""
    place = SITES["twisted"]
    write_site(tmp_path / place.packages[0] / place.root)
    command = ["run", "twisted", "--folder", str(tmp_path), "--out", str(tmp_path / "runs"), "--crawlers", "scrapy"]
    main([*command, "--budget", "20", "--in-flight", "1"])
    first = read_runs(tmp_path / "runs")
    main([*command, "--budget", "20", "--in-flight", "1", "8"])
    runs = read_runs(tmp_path / "runs")
    assert runs[:1] == first
    assert [run.in_flight for run in runs] == [1, 8]
    assert [(run.requests, sum(run.statuses.values())) for run in runs] == [(20, 20)] * 2
    assert "crawl4ai" not in capsys.readouterr().err


def made(**fields: object) -> Run:
    """A run of 1,050 requests that found a file with each hundredth."""
    known = {"site": "a", "crawler": "focus", "in_flight": 1, "seed": 0, "budget": 1050, "requests": 1050, "heads": 0}
    known |= {"skippable": 0, "statuses": {}, "found": tuple(range(100, 1100, 100)), "seconds": 1.0, "ended": "budget"}
    return Run(**{**known, **fields})


def test_the_table_has_means_and_what_was_not_reached() -> None:
    """Seeds are averaged; a mark after the budget has no figure, one after the last link has the final one."""
    runs = [made(), made(seed=1, found=(1, 2, 3)), made(crawler="scrapy", requests=250, ended="itself")]
    runs += [made(crawler="wget", budget=250, requests=250)]
    lines = table(runs).splitlines()
    assert lines[4:7] == [
        "| a | focus | 2 (1 to 3) | 3 | 6 (3 to 10) | 1,050 |",
        "| a | scrapy | 1 | 3 | 10 | 250 |",
        "| a | wget | 1 | - | - | 250 |",
    ]
    assert lines[-1] == "No run of crawl4ai is in the file."
    assert MARKS == (100, 300, 1000)


def test_another_file_is_no_output(tmp_path: Path) -> None:
    """A line that is not a run is named."""
    (tmp_path / "runs").write_text('{"site": "a"}\n')
    with pytest.raises(SystemExit, match=r"line 1 of .* is not a run of first_requests"):
        main(["table", str(tmp_path / "runs")])
    with pytest.raises(SystemExit, match="has no runs"):
        main(["table", str(tmp_path / "none")])
