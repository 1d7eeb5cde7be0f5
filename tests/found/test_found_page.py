"""The page and the table of a folder: what they say, and that nothing in them does anything, whatever it is called."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from scrapy_focus.core.errors import ConfigError, StorageError
from scrapy_focus.found.curve import curve
from scrapy_focus.found.folder import write_report
from scrapy_focus.found.listed import read_list
from scrapy_focus.found.notes import Answer
from scrapy_focus.found.page import page
from scrapy_focus.found.paid import Paid, paid
from scrapy_focus.found.report import report_of
from tests.found.foundfolders import EVIL, SITE, hit, hostile, line, make
from tests.pages import Reader

if TYPE_CHECKING:
    from pathlib import Path


def read(folder: Path) -> Reader:
    return Reader(page(report_of(folder)).decode())


def data_of(html: bytes) -> dict[str, Any]:
    """Return what the script is given."""
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html.decode(), re.DOTALL)
    data: dict[str, Any] = json.loads(found)
    return data


def test_the_page_says_how_the_crawl_went(tmp_path: Path) -> None:
    """Result, files with page and link, sums, which links paid, what was skipped, broken links, requests, robots.txt."""
    answers = [
        Answer(url=f"{SITE}/", status=200, mime="text/html", size=5000, sent=2),
        *(hit(n) for n in range(1, 6)),
        Answer(url=f"{SITE}/old", status=404, error="http_error", sent=1, page=f"{SITE}/links", anchor="Old"),
        Answer(url=f"{SITE}/down", error="failure: DownloadTimeoutError", sent=3, page=f"{SITE}/links", anchor="Down"),
        Answer(url=f"{SITE}/private/x", error="ignored", why="Forbidden by robots.txt"),
        Answer(url=f"{SITE}/film", status=200, mime="video/mp4", error="mime_stop", sent=1),
    ]
    make(
        tmp_path, [line(n) for n in range(1, 6)], answers, reason="focus_budget_requests", waiting=12,
        left=[1, 2.0, 30], cost=7.4, used={"requests": 14, "bytes": 1e6}, limits={"requests": 100},
    )  # fmt: skip
    (tmp_path / "skipped.jsonl").write_text(
        json.dumps(
            {"url": f"{SITE}/big.zip", "reason": "larger than DOWNLOAD_MAXSIZE, 9 bytes", "page": "", "anchor": ""}
        )
        + "\n"
    )
    text = read(tmp_path).text
    for said in (
        "What was found on statistics.example.org",
        "5 files, 15.0 kB, of 1 type, on 1 host.",
        "The crawl followed 10 links with 12 requests, and found 5 files (41.7 in 100 requests).",
        "Its budget of requests is used up.",
        "About 2 files are left to be found: between 1 and 30, with a probability of 90 %.",
        "The next file is expected to cost about 7 requests.",
        "12 links were found and not followed.",
        "links like “Download (… kB)”, on /publication/… 5 5 100",
        "Half of the files were found with the first 5 requests.",
        "1 link: Forbidden by robots.txt.",
        "1 link: not of a wanted type: video/mp4.",
        "larger than DOWNLOAD_MAXSIZE, 9 bytes",
        "2 links led nowhere.",
        f"{SITE}/old 404 {SITE}/links Old",
        f"{SITE}/down no answer (DownloadTimeoutError) {SITE}/links Down",
        "statistics.example.org 10 12 7 1 1 1",
        "robots.txt obeyed",
        "14, robots.txt and what was asked again after an interruption included",
    ):
        assert said in text, said


def test_it_stands_alone(tmp_path: Path) -> None:
    """Nothing is loaded; the style and the script that run are known to the policy of the page by their hashes."""
    html = page(report_of(make(tmp_path, [line(1)], [hit(1)], reason="finished"))).decode()
    reader = Reader(html)
    (policy,) = [meta["content"] for meta in reader.all("meta") if "http-equiv" in meta]
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    for tag, source in (("style", "style-src"), ("script", "script-src")):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{source} 'sha256-{digest}'" in policy
    assert not reader.all("link") + reader.all("img") + reader.all("iframe")
    for _, attributes in reader.elements:
        assert not {"src", "style", "onclick"} & set(attributes)
    assert "url(" not in html.partition("</style>")[0]


def test_it_can_be_read_without_seeing_it(tmp_path: Path) -> None:
    """Tables have headers with a scope, the figure a title, sections a heading, and ids stand once."""
    broken = [hit(n)._replace(status=404, files=0.0, error="http_error") for n in range(7, 9)]
    reader = read(make(tmp_path, [line(1), line(2)], [hit(1), hit(2), *broken], reason="finished", waiting=0))
    assert all(attributes["scope"] in ("col", "row") for attributes in reader.all("th"))
    (svg,) = reader.all("svg")
    assert svg["role"] == "img"
    ids = [value for _, attributes in reader.elements if (value := attributes.get("id"))]
    assert len(ids) == len(set(ids))
    for _, attributes in reader.elements:
        for name in (attributes.get("aria-labelledby") or "").split():
            assert name in ids
    assert reader.all("html")[0]["lang"] == "en"
    assert len(reader.all("h1")) == len(reader.all("main")) == 1


def test_names_are_only_names(tmp_path: Path) -> None:
    """Names, texts and addresses with markup in them are shown as they are; links lead to the web or into the folder."""
    html = write_report(hostile(tmp_path / "found")).read_bytes()
    reader = Reader(html.decode())
    assert html.count(b"<script") == 2  # the data and ours
    assert not reader.all("img")
    assert len(reader.all("svg")) == 1
    for link in reader.all("a"):
        href = link["href"]
        assert href is not None
        assert set(link) <= {"href", "rel", "class"}
        if not href.startswith(("https://", "http://")):
            assert href == "files.csv" or (href.startswith("files/") and ".." not in unquote(href).split("/"))
    for text in ("<script>alert(1)</script>", "{{7*7}}{% raw %}", r"\u202egnp.exe\u2066", r"\x00\x1b[31m"):
        assert text in reader.text
    assert "\u202e" not in html.decode()
    assert "A" * 1001 not in reader.text
    data = data_of(html)
    assert len(data["rows"]) == len({each.url for each in read_list(tmp_path / "found")})
    raw = html.partition(b'id="data">')[2].partition(b"</script>")[0]
    assert not set(b"<>&") & set(raw)


def test_the_script_is_given_all_files(tmp_path: Path) -> None:
    """Each row leads back to its file: name, URL, size, type, section, page, text of the link, state, path."""
    lines = [line(n, crawl=2, state="same" if n % 2 else "new") for n in range(1, 301)]
    (tmp_path / "files").mkdir()
    for each in lines:
        (tmp_path / each["path"]).parent.mkdir()
        (tmp_path / each["path"]).write_bytes(b"")
    html = page(report_of(make(tmp_path, lines)))
    data = data_of(html)
    texts = data["texts"]
    for n, row in enumerate(data["rows"], 1):
        name, folder, end, size, kind, place, on, anchor, state, stored, file = row
        assert (name, texts[folder] + (end or name), size) == (f"{n}.csv", f"{SITE}/files/{n}.csv", 1000 * n)
        assert (texts[kind], texts[place], texts[on]) == ("csv", "/publication/", f"{SITE}/publication/{n}")
        assert (texts[anchor], texts[state]) == (f"Download ({n} kB)", "same" if n % 2 else "new")
        assert texts[stored] + (file or name) == f"files/{n:064}/{n}.csv"
    assert len(Reader(html.decode()).all("tr")) < 200  # what a browser shows without a script


def test_without_notes_there_is_a_list(tmp_path: Path) -> None:
    """A folder of which only the list is there has a page of it."""
    reader = read(make(tmp_path, [line(1)]))
    assert "There are no notes of a crawl in this folder." in reader.text
    assert "Download (1 kB)" in reader.text
    assert not reader.all("svg")


def test_nothing_found_is_said(tmp_path: Path) -> None:
    """No file, and no page that was read: then nothing is said of how many are left."""
    make(
        tmp_path, [], [Answer(url=f"{SITE}/", error="failure: X", sent=1)], reason="finished", waiting=0, left=[0, 0, 0]
    )
    text = read(tmp_path).text
    assert "No file was found." in text
    assert "left to" not in text


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({}, "It runs, or it was killed; the same command resumes it then."),
        ({"reason": "shutdown"}, "It was interrupted. The same command resumes it."),
        ({"reason": "finished", "waiting": 0}, "No link that it found is left to follow."),
        ({"reason": "focus_cost_limit", "waiting": 2}, "more requests than it was allowed to."),
        ({"reason": "closespider_itemcount"}, "It ended with the reason closespider_itemcount."),
        ({"reason": "finished", "ending": "So it ended."}, "So it ended."),
    ],
)
def test_why_it_ended(tmp_path: Path, state: dict[str, Any], said: str) -> None:
    """Each end has a sentence."""
    assert said in read(make(tmp_path, [line(1)], [hit(1)], **state)).text


def test_the_next_crawl_is_told_apart(tmp_path: Path) -> None:
    """A folder of several crawls says what the last one made of the files: the last line of each counts."""
    lines = [line(n, state="new", crawl=1) for n in range(1, 7)]
    lines += [line(1, state="same", crawl=2), line(2, state="changed", crawl=2), line(3, state="gone", crawl=2)]
    lines += [line(7, state="new", crawl=2)]
    reader = read(make(tmp_path, lines))
    assert "Since the crawl before: 1 new, 1 changed, 1 the same, 1 gone, 3 not seen this time." in reader.text
    assert [each.state for each in read_list(tmp_path)] == ["same", "changed", "gone", *["unseen"] * 3, "new"]
    assert "select" in [tag for tag, attributes in reader.elements if attributes.get("id") == "state"]


def test_where_files_lie(tmp_path: Path) -> None:
    """Paths of the list are within the folder, however the crawl called it; others are no links."""
    found = tmp_path / "files" / "found"
    (found / "files" / "a").mkdir(parents=True)
    for name in ("x.csv", "y.csv", "é #?.csv"):
        (found / "files" / "a" / name).write_bytes(b"")
    (tmp_path / "files" / "secret").write_bytes(b"")
    paths = [
        str(found / "files/a/x.csv"), "found/files/a/y.csv", "files/a/é #?.csv", "files/a/../../../secret",
        "/etc/passwd", "", "files/a/not there",
    ]  # fmt: skip
    make(found, [line(n, path=path) for n, path in enumerate(paths)])
    assert [each.path for each in read_list(found)] == [
        "files/a/x.csv", "files/a/y.csv", "files/a/é #?.csv", "", "", "", "files/a/not there"
    ]  # fmt: skip
    assert "files/a/%C3%A9%20%23%3F.csv" in [link["href"] for link in read(found).all("a")]


def test_the_table_opens_in_a_spreadsheet(tmp_path: Path) -> None:
    """A line for each file, in UTF-8 with its mark, and no cell that a spreadsheet would run."""
    write_report(hostile(tmp_path / "found"))
    text = (tmp_path / "found" / "files.csv").read_bytes()
    assert text.startswith(b"\xef\xbb\xbfname,kind,size,")
    rows = list(csv.DictReader(text.decode("utf-8-sig").splitlines(keepends=True)))
    assert [row["url"].lstrip("'") for row in rows[:1]] == [f"{SITE}/{EVIL[0]}"]
    assert len(rows) == len(read_list(tmp_path / "found"))
    for row in rows:
        for cell in row.values():
            assert not cell.lstrip().startswith(("=", "+", "-", "@"))
            assert not cell.startswith(("\t", "\r", "\n"))
    assert "'=1+1" in [row["name"] for row in rows]


def test_links_are_told_apart_by_what_they_say() -> None:
    """Links with a common text count together, those with rare texts by extension, those that led to nothing at the end."""
    answers = [hit(n) for n in range(30)]
    answers += [hit(n, files=0.0) for n in range(30, 34)]
    answers += [
        hit(n, anchor=f"A title {'of' * n}", page=f"{SITE}/de/news/{n}", url=f"{SITE}/{n}.pdf") for n in range(4)
    ]
    answers += [Answer(url=f"{SITE}/page/{n}", sent=2, anchor=f"Page {n}", page=f"{SITE}/") for n in range(10)]
    assert paid(answers) == [
        Paid("Download (… kB)", "/publication/…", 30, 34), Paid(".pdf", "/de/news/…", 4, 4), Paid("", "", 0, 20)
    ]  # fmt: skip
    assert paid([]) == []


def test_the_curve_ends_where_the_crawl_did() -> None:
    """It goes from nothing to all files and requests, never down, in a few hundred points."""
    answers = [hit(n, sent=2, files=float(n % 3 == 0)) for n in range(3000)]
    drawn = curve(answers)
    assert drawn is not None
    assert (drawn.requests, drawn.files, drawn.half) == (6000, 1000, 2996)
    points = [tuple(map(float, point.split(","))) for point in drawn.points.split()]
    assert len(points) < 300
    assert points == sorted(points, key=lambda point: (point[0], -point[1]))
    assert curve([hit(1, files=0.0)]) is None


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (b"[]\n", "line 1 of .*manifest.jsonl was not written by a crawl"),
        (b'{"url": "u"}\n\xff\n', "line 2 of .*manifest.jsonl was not written by a crawl"),
        (b"[" * 99_999 + b"\n", "line 1 of .*manifest.jsonl was not written by a crawl"),
    ],
)
def test_a_damaged_list_is_said(tmp_path: Path, damage: bytes, said: str) -> None:
    """In a sentence that names file and line; nothing is written then."""
    (tmp_path / "manifest.jsonl").write_bytes(damage)
    with pytest.raises(ConfigError, match=said):
        write_report(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.jsonl"]


def test_a_line_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    """While a crawl runs, the last line may be half there."""
    make(tmp_path, [line(1), line(2)])
    with (tmp_path / "manifest.jsonl").open("a") as file:
        file.write('{"url": "http')
    assert len(read_list(tmp_path)) == 2


@pytest.mark.parametrize("folder", ["", "empty", "file"])
def test_folders_of_no_crawl_are_refused(tmp_path: Path, folder: str) -> None:
    """One that is not there, one that is empty, and what is no folder at all."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"is no folder|no crawl has stored anything in"):
        write_report(tmp_path / (folder or "nothing"))


def test_a_full_disk_is_said_in_a_sentence(tmp_path: Path) -> None:
    """What cannot be written raises an error of ours, and leaves what was there."""
    make(tmp_path, [line(1)])
    (tmp_path / "index.html").mkdir()
    with pytest.raises(StorageError, match=r"cannot be written.*focus-report"):
        write_report(tmp_path)
