"""The page and the table of a folder: their content, and that hostile names in them do no harm."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from scrapy_focus.core.abilities import PolicyTable
from scrapy_focus.core.errors import ConfigError, StorageError
from scrapy_focus.core.problems import see
from scrapy_focus.finders.files.found_files import read_list
from scrapy_focus.finders.important.link_book import LinkBook
from scrapy_focus.finders.kit.page.curve import curve
from scrapy_focus.finders.kit.page.page import page
from scrapy_focus.finders.kit.page.paid import Paid, paid
from scrapy_focus.finders.kit.page.policy_tables import Said, write_tables
from scrapy_focus.finders.kit.page.report import Broken
from scrapy_focus.finders.kit.page.tables import traffic_table
from scrapy_focus.finders.kit.records.notes import Answer, NoteBook, link_key, read_notes
from scrapy_focus.finders.outputs import report_of, write_report
from tests.found.foundfolders import (
    EVIL,
    SITE,
    entity_line,
    hit,
    hostile,
    hostile_structured,
    hostile_topic,
    line,
    make,
    make_structured,
    make_topic,
    topic_line,
)
from tests.pages import Reader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def read(folder: Path) -> Reader:
    return Reader(page(report_of(folder)).decode())


def data_of(html: bytes) -> dict[str, Any]:
    """Return the data of the script."""
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html.decode(), re.DOTALL)
    data: dict[str, Any] = json.loads(found)
    return data


def test_the_page_says_how_the_crawl_went(tmp_path: Path) -> None:
    """It has the result, files with page and link, sums, kinds of links, skips, broken links, requests, robots.txt."""
    answers = [
        Answer(url=f"{SITE}/", status=200, mime="text/html", size=5000, sent=2),
        *(hit(n) for n in range(1, 6)),
        Answer(url=f"{SITE}/old", status=404, error="http_error", sent=1, page=f"{SITE}/links", anchor="Old"),
        Answer(url=f"{SITE}/down", error="failure: DownloadTimeoutError", sent=3, page=f"{SITE}/links", anchor="Down"),
        Answer(url=f"{SITE}/private/x", error="ignored", why="robots.txt forbids it"),
        Answer(url=f"{SITE}/film", status=200, mime="video/mp4", error="mime_stop", sent=1),
    ]
    make(
        tmp_path, [line(n) for n in range(1, 6)], answers, reason="focus_budget_requests", waiting=12,
        left=[1, 2.0, 30], cost=7.4, used={"requests": 14, "bytes": 1e6}, limits={"requests": 100},
        rendered={
            "browser/read": 2, "browser/requests": 1, "browser/stored": 4, "browser/refused/type": 5,
            "browser/refused/robots": 1,
        },
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
        "The crawl followed 10 links with 12 requests, and found 5 files (41.7 per 100 requests).",
        "It sent 14 requests in total, including robots.txt.",
        "A browser rendered 2 pages, with 1 further request; 6 were blocked, and 4 scripts and style sheets came from",
        "Its budget of requests is used up.",
        "About 2 files are left to find: between 1 and 30, with a probability of 90 %.",
        "The next file is expected to cost about 7 requests.",
        "12 links were found but not followed.",
        "links like “Download (… kB)” on pages like /publication/… 5 files with 5 requests",
        "“Download (1 kB)” on statistics.example.org/publication/1 led to 1.csv "
        "“Download (2 kB)” on statistics.example.org/publication/2 led to 2.csv",
        "Half of the files (the dot) were found with the first 5 requests.",
        "1 link: robots.txt forbids it.",
        "Delay 1 second between requests to a host",
        "1 link: unwanted type: video/mp4.",
        "larger than DOWNLOAD_MAXSIZE, 9 bytes",
        "2 links led nowhere.",
        f"{SITE}/old 404 {SITE}/links Old",
        f"{SITE}/down no answer (DownloadTimeoutError) {SITE}/links Down",
        "Host Links Requests 200 404 no answer not requested Size of answers statistics.example.org 10 12 7 1 1 1",
        "robots.txt obeyed",
        "14, including robots.txt and requests repeated after an interruption",
    ):
        assert said in text, said


def test_the_page_is_self_contained(tmp_path: Path) -> None:
    """Nothing is loaded; the content security policy allows style and script by their hashes."""
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
    """Tables have headers with a scope, the figure a title, sections a heading, bars a number, and ids are unique."""
    broken = [hit(n)._replace(status=404, files=0.0, error="http_error") for n in range(7, 9)]
    lines = [line(1, crawl=1), line(2, crawl=1), line(3, crawl=1, url=f"{SITE}/3.pdf", mime="")]
    reader = read(make(tmp_path, lines, [hit(1), hit(2), *broken], reason="finished", waiting=0))
    assert all(attributes["scope"] in ("col", "row") for attributes in reader.all("th"))
    assert [svg.get("role") for svg in reader.all("svg") if "aria-hidden" not in svg] == ["img"]
    assert {svg.get("class") for svg in reader.all("svg") if "aria-hidden" in svg} == {"bar"}
    assert "Type Files Size csv 2 3.0 kB pdf 1 3.0 kB" in reader.text
    ids = [value for _, attributes in reader.elements if (value := attributes.get("id"))]
    assert len(ids) == len(set(ids))
    for _, attributes in reader.elements:
        for name in (attributes.get("aria-labelledby") or "").split():
            assert name in ids
    assert reader.all("html")[0]["lang"] == "en"
    assert len(reader.all("h1")) == len(reader.all("main")) == 1


@pytest.mark.parametrize("make_hostile", [hostile, hostile_topic, hostile_structured])
def test_names_are_only_names(tmp_path: Path, make_hostile: Callable[[Path], Path]) -> None:
    """Names, texts and addresses with markup are shown literally; links lead to the web or into the folder."""
    html = write_report(make_hostile(tmp_path / "found")).read_bytes()
    reader = Reader(html.decode())
    assert html.count(b"<script") == 2  # the data and ours
    assert not reader.all("img")
    assert len([svg for svg in reader.all("svg") if svg.get("class") != "bar"]) <= 1
    assert {name for svg in reader.all("svg") + reader.all("rect") for name in svg} <= {
        "class", "viewbox", "preserveaspectratio", "aria-hidden", "role", "aria-labelledby", "width", "height"
    }  # fmt: skip
    for link in reader.all("a"):
        href = link["href"]
        assert href is not None
        assert set(link) <= {"href", "rel", "class"}
        if not href.startswith(("https://", "http://")):
            assert href in ("files.csv", "pages.csv", "hosts.csv", "entities.jsonl") or (
                href.startswith("files/") and ".." not in unquote(href).split("/")
            )
    for text in ("<script>alert(1)</script>", "{{7*7}}{% raw %}", r"\u202egnp.exe\u2066", r"\x00\x1b[31m"):
        assert text in reader.text
    assert "\u202e" not in html.decode()
    assert "A" * 1001 not in reader.text
    data = data_of(html)
    assert len(data["rows"]) == len(report_of(tmp_path / "found").files) > len(EVIL)
    raw = html.partition(b'id="data">')[2].partition(b"</script>")[0]
    assert not set(b"<>&") & set(raw)


def test_the_script_is_given_all_files(tmp_path: Path) -> None:
    """Each row has all fields of its file: name, URL, size, type, section, page, text of the link, state, path."""
    lines = [line(n, crawl=2, state="same" if n % 2 else "new") for n in range(1, 301)]
    lines[2]["cut"] = True
    (tmp_path / "files").mkdir()
    for each in lines:
        (tmp_path / each["path"]).parent.mkdir()
        (tmp_path / each["path"]).write_bytes(b"")
    html = page(report_of(make(tmp_path, lines)))
    data = data_of(html)
    texts = data["texts"]
    for n, row in enumerate(data["rows"], 1):
        name, folder, end, size, kind, place, on, anchor, state, stored, file, cut = row
        assert (name, texts[folder] + (end or name), size) == (f"{n}.csv", f"{SITE}/files/{n}.csv", 1000 * n)
        assert (texts[kind], texts[place], texts[on]) == ("csv", "/publication/", f"{SITE}/publication/{n}")
        assert (texts[anchor], texts[state]) == (f"Download ({n} kB)", "same" if n % 2 else "new")
        assert texts[stored] + (file or name) == f"files/{n:064}/{n}.csv"
        assert cut == int(n == 3)
    assert len(Reader(html.decode()).all("tr")) < 200  # what a browser shows without a script


def test_without_notes_there_is_a_list(tmp_path: Path) -> None:
    """A folder with only the list has a page."""
    reader = read(make(tmp_path, [line(1)]))
    assert "This folder has no notes of a crawl." in reader.text
    assert "Download (1 kB)" in reader.text
    assert not reader.all("svg")


def test_a_page_without_finds(tmp_path: Path) -> None:
    """If no page was read, there is no estimate of the files left."""
    make(
        tmp_path, [], [Answer(url=f"{SITE}/", error="failure: X", sent=1)], reason="finished", waiting=0, left=[0, 0, 0]
    )
    text = read(tmp_path).text
    assert "No file was found." in text
    assert "left to" not in text


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({}, "It is running, or was killed: then the same command resumes it."),
        ({"reason": "shutdown"}, "It was interrupted. The same command resumes it."),
        ({"reason": "finished", "waiting": 0}, "It followed every link that it found."),
        ({"reason": "focus_cost_limit", "waiting": 2}, "more requests than the cost limit."),
        ({"reason": "closespider_itemcount"}, "It ended with the reason closespider_itemcount."),
        ({"reason": "finished", "ending": "So it ended."}, "So it ended."),
    ],
)
def test_why_it_ended(tmp_path: Path, state: dict[str, Any], said: str) -> None:
    """Each ending has a sentence."""
    assert said in read(make(tmp_path, [line(1)], [hit(1)], **state)).text


def test_the_section_on_a_problem_is_a_link(tmp_path: Path) -> None:
    """It is a link into the documents; what else a sentence says is text."""
    reader = read(make(tmp_path, [line(1)], [hit(1)], reason="finished", ending=f"No <b>. {see('blocked')}"))
    assert "No <b>. See https://" in reader.text
    assert any(str(link["href"]).endswith("/problems.html#blocked") for link in reader.all("a"))


def test_all_pages_with_a_broken_link_are_named(tmp_path: Path) -> None:
    """The first twenty are named, with the number of others; a page listed twice after a kill counts once."""
    folder = make(tmp_path, [line(1)])
    gone = Answer(url=f"{SITE}/gone", status=404, error="http_error", page=f"{SITE}/1", anchor="Imprint")
    book = NoteBook(folder)
    for n in range(1, 331):
        page_of = Answer(url=f"{SITE}/{n}", status=200, mime="text/html")
        book.outcome(page_of, links=[link_key(gone.url), link_key(f"{SITE}/{n}/more")])
        if n == 5:
            book.outcome(gone)
        if n % 10 == 0:
            book.close()
            book = NoteBook(folder, resumes=True)
            book.outcome(page_of, links=[link_key(gone.url)])
    book.outcome(Answer(url=f"{SITE}/moved", status=200, moved_to=f"{SITE}/330"), links=[link_key(gone.url)])
    book.close()
    (broken,) = report_of(folder).broken
    assert broken == Broken(gone.url, "404", [f"{SITE}/{n}" for n in range(1, 21)], 310, "Imprint")
    reader = read(folder)
    assert f"{SITE}/gone 404 {SITE}/1 and 329 more pages {SITE}/2 {SITE}/3" in reader.text
    assert f"{SITE}/20 and 310 further pages Imprint" in reader.text
    assert {f"{SITE}/{n}" for n in range(1, 21)} <= {link["href"] for link in reader.all("a")}
    alone = make(tmp_path / "alone", [line(1)], [gone])  # of a version that noted no links
    assert report_of(alone).broken == [Broken(gone.url, "404", [f"{SITE}/1"], 0, "Imprint")]


def test_each_status_has_a_column(tmp_path: Path) -> None:
    """The twelve most frequent do; the others share one, as do hosts after the fortieth; sums are complete."""
    answers = [Answer(url=f"{SITE}/{n}", status=200 + n % 15, sent=1, size=1) for n in range(150)]
    answers += [Answer(url=f"{SITE}/0/{n}", error="redirect_seen", sent=1) for n in range(20)]
    answers += [Answer(url=f"{SITE}/1/{n}", error="ignored") for n in range(20)]
    answers += [Answer(url=f"http://h{n}.example/", status=200, sent=1) for n in range(60)]
    table = traffic_table(report_of(make(tmp_path, [line(1)], answers)))
    assert table is not None
    assert table.heads == [
        "Host", "Links", "Requests", *map(str, range(200, 210)), "moved", "not requested", "others", "Size of answers"
    ]  # fmt: skip
    first, *_, last = table.rows
    assert [cell.text for cell in first.cells] == ["190", "170", *["10"] * 10, "20", "20", "50", "150 B"]
    assert (last.head, [cell.text for cell in last.cells[:3]]) == ("21 others", ["21", "21", "21"])


def test_ignored_parameters_are_listed(tmp_path: Path) -> None:
    """They are listed by host, with the evidence, and how to follow them all; refuted ones are not."""
    one = {"host": "a.example", "name": "sid", "pairs": 8, "links": 1467, "is_believed": True, "is_learned": True}
    other = {**one, "name": "utm_source", "pairs": 0, "links": 3, "is_learned": False}
    noted = [other, one, {**one, "name": "page", "is_believed": False}]
    text = read(make(tmp_path, [line(1)], [hit(1)], parameters=noted)).text
    assert "a.example sid 1,467 8 pairs of pages a.example utm_source 3 known in advance" in text
    assert "FOCUS_IGNORE_PARAMETERS=0" in text
    assert " page 1,467" not in text


def test_roots_that_could_not_be_read_are_named(tmp_path: Path) -> None:
    """They are named once, even if the ending of a resumed run does not mention them; other broken links are not."""
    answers = [
        hit(1), Answer(url=f"{SITE}/", status=500, error="http_error"), Answer(url=f"{SITE}/x", status=404, error="http_error")
    ]  # fmt: skip
    said = f"The start URL {SITE}/ could not be read: it answers 500."
    text = read(make(tmp_path, [line(1)], answers, reason="finished", ending="Done: 1 file found.")).text
    assert said in text
    assert f"{SITE}/x, too" not in text
    ending = f"Done: 1 file found. Could not read {SITE}/: it answers 500."
    assert said not in read(make(tmp_path, [line(1)], answers, reason="finished", ending=ending)).text


def test_the_page_of_a_topic(tmp_path: Path) -> None:
    """It lists the pages on the topic with their relevance, which count as finds; the table has all pages."""
    lines = [topic_line(n, relevance=0.5 + n / 20 if n < 5 else 0.2) for n in range(8)]
    lines += [topic_line(0, relevance=0.6)]  # the last line counts
    answers = [Answer(url=each["url"], status=200, sent=1, files=1.0, page=f"{SITE}/list", anchor=f"Honey {n}")
               for n, each in enumerate(lines[:8])]  # fmt: skip
    folder = make_topic(tmp_path, lines, answers, reason="finished", waiting=3)
    assert write_report(folder).name == "index.html"
    reader = read(folder)
    for said in (
        "What was found on h0.example and 4 other hosts",
        "8 pages were read; 5 of them are on the topic, on 5 hosts.",
        "The crawl followed 8 links with 8 requests, and found 5 pages on the topic (62.5 per 100 requests).",
        "The number of pages left to find is unknown.",
        "Bees 1 h1.example/bees en 55 % h1.example Honey 1 on statistics.example.org/list",
        "h0.example 1 60 % h1.example 1 55 %",
        "5 pages found with 8 requests",
        "links like “Honey …” on pages like /list 5 pages with 8 requests",
        "“Honey 0” on statistics.example.org/list led to h0.example/bees",
        "honey 5 8",
    ):
        assert said in reader.text, said
    assert "Bees 6" not in reader.text
    assert "file" not in reader.text.lower().replace("files.csv", "")
    data = data_of((folder / "index.html").read_bytes())
    assert (data["noun"], len(data["rows"])) == ("page", 5)
    rows = list(csv.DictReader((folder / "pages.csv").read_text("utf-8-sig").splitlines()))
    assert [row["url"] for row in rows] == [f"https://h{n}.example/bees" for n in range(8)]
    assert rows[7] == {
        "title": "Bees 7", "url": "https://h7.example/bees", "relevance": "0.2", "host": "h7.example", "domain": "h.example",
        "language": "en-GB", "depth": "2", "page": f"{SITE}/list", "anchor": "Honey 7", "why": "keyword in the URL", "at": "2026",
    }  # fmt: skip
    assert not (folder / "files.csv").exists()


def test_a_topic_of_which_nothing_was_found(tmp_path: Path) -> None:
    """The notes of the crawl identify it, even in a folder without a list."""
    folder = make_topic(
        tmp_path, [topic_line(1, relevance=0.1)], [Answer(url=f"{SITE}/", status=200)], reason="finished"
    )
    assert "1 page was read; 0 of them are on the topic." in read(folder).text
    (folder / "pages.jsonl").unlink()
    book = NoteBook(folder)
    book.begin({"spider": "topic", "types": "pages on the topic of the words bees"})
    book.close()
    assert "0 pages were read" in read(folder).text
    assert "pages on the topic of the words bees" in read(folder).text


def test_the_page_of_structured_data(tmp_path: Path) -> None:
    """It lists the entities with the number of their values; types and hosts are counted, also in the table."""
    lines = [entity_line(n, "Recipe") for n in range(3)]
    lines += [entity_line(0, "Recipe", "NewsArticle", number=2, values={"headline": "Two soups"})]
    lines[2]["values"] = {"@type": "Recipe", "@value": "Soup of leeks"}
    lines += [entity_line(1, "Recipe", page="", anchor="")]  # the last line counts
    answers = [Answer(url=each["url"], status=200, mime="text/html", sent=1, page=f"{SITE}/list", anchor="Soups 1")
               for each in lines[:2]]  # fmt: skip
    answers += [Answer(url="https://www.h2.example/2", status=200, mime="text/html", sent=2, moved_to=lines[2]["url"])]
    answers += [Answer(url=f"https://h1.example/{n}", status=200, mime="text/html", sent=1) for n in range(4)]
    answers += [Answer(url="https://h1.example/x", status=404, sent=1, error="http_error")]
    seen = {"Recipe": 4, "Organization": 1234, "WebSite": 2}
    folder = make_structured(tmp_path, lines, answers, reason="finished", waiting=3, seen=seen)
    assert write_report(folder).name == "index.html"
    reader = read(folder)
    for said in (
        "What was found on h0.example and 2 other hosts",
        "7 pages were read; 3 of them have 4 entities of the wanted types, on 3 hosts.",
        "The crawl followed 8 links with 9 requests, and found 3 pages with entities (33.3 per 100 requests).",
        "Soup 0 h0.example/soup/0 Recipe 2 h0.example Soups 0 on statistics.example.org/list",
        "Soup of leeks h2.example/soup/2 Recipe",
        "Two soups h0.example/soup/0 Recipe, NewsArticle 1 h0.example",
        "Recipe 4 3 3 NewsArticle 1 1 1",
        "h0.example 2 1 1 h1.example 1 1 5 h2.example 1 1 1",
        "Organization 1,234 WebSite 2",
        "3 pages found with 9 requests",
    ):
        assert said in reader.text, said
    data = data_of((folder / "index.html").read_bytes())
    assert (data["noun"], len(data["rows"])) == ("entity", 4)
    rows = list(csv.DictReader((folder / "hosts.csv").read_text("utf-8-sig").splitlines()))
    assert [row["host"] for row in rows] == ["h0.example", "h1.example", "h2.example"]
    assert rows[0] == {
        "host": "h0.example", "domain": "h0.example", "pages": "1", "with_entities": "1", "entities": "2", "Recipe": "2",
        "NewsArticle": "1",
    }  # fmt: skip
    assert rows[1]["pages"] == "5"
    assert not (folder / "files.csv").exists()


def test_entities_about_something_are_ordered_by_relevance(tmp_path: Path) -> None:
    """Each has a bar; only pages on the topic count as found, and entities that were not judged come last."""
    relevance = [0.2, None, 0.9, 0.5, 7]
    lines = [entity_line(n, "Recipe", relevance=value) for n, value in enumerate(relevance)]
    answers = [Answer(url=each["url"], status=200, mime="text/html", sent=1, files=1.0, page=f"{SITE}/list", anchor="Soup")
               for each in lines]  # fmt: skip
    folder = make_structured(tmp_path, lines, answers, reason="finished")
    reader = read(folder)
    assert "The crawl followed 5 links with 5 requests, and found 2 pages with entities on the topic" in reader.text
    assert "The entities are ordered by the relevance of their pages, from 0 to 1." in reader.text
    assert [each["value"] for each in reader.all("meter")] == ["90", "50", "20"]
    assert "Soup 2 h2.example/soup/2 Recipe 2 90 % h2.example" in reader.text
    assert [row[12] for row in data_of(page(report_of(folder)))["rows"]] == [90, 50, 20, -1, -1]
    plain = make_structured(tmp_path / "plain", [entity_line(n, "Recipe") for n in range(2)], answers)
    assert "Relevance" not in read(plain).text
    assert not read(plain).all("meter")


def test_structured_data_of_which_nothing_was_found(tmp_path: Path) -> None:
    """The notes of the crawl identify it, and list other types."""
    answers = [Answer(url=f"{SITE}/", status=200, mime="text/html")]
    folder = make_structured(tmp_path, [], answers, reason="finished", seen={"Event": 3})
    reader = read(folder)
    assert "1 page was read; 0 of them have 0 entities of the wanted types." in reader.text
    assert "What else the pages describe" in reader.text
    assert "Event 3" in reader.text
    (folder / "entities.jsonl").unlink()
    book = NoteBook(folder)
    book.begin({"spider": "structured", "types": "pages with Recipe"})
    book.close()
    assert "pages with Recipe" in read(folder).text


def test_states_after_several_crawls(tmp_path: Path) -> None:
    """A folder of several crawls shows the states after the last one: the last line of each file counts."""
    lines = [line(n, state="new", crawl=1) for n in range(1, 7)]
    lines += [line(1, state="same", crawl=2), line(2, state="changed", crawl=2), line(3, state="gone", crawl=2)]
    lines += [line(7, state="new", crawl=2)]
    reader = read(make(tmp_path, lines))
    assert "Since the previous crawl: 1 new, 1 changed, 1 unchanged, 1 gone, 3 not seen this time." in reader.text
    assert [each.state for each in read_list(tmp_path)] == ["same", "changed", "gone", *["unseen"] * 3, "new"]
    assert "select" in [tag for tag, attributes in reader.elements if attributes.get("id") == "state"]


def test_paths_of_files(tmp_path: Path) -> None:
    """Paths in the list are within the folder, whatever its name in the crawl; others are not links."""
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


@pytest.mark.parametrize(
    ("make_hostile", "name", "begins"),
    [(hostile, "files.csv", b"name,kind,size,"), (hostile_topic, "pages.csv", b"title,url,relevance,")],
)
def test_the_table_opens_in_a_spreadsheet(
    tmp_path: Path, make_hostile: Callable[[Path], Path], name: str, begins: bytes
) -> None:
    """It has a line per find, in UTF-8 with a byte order mark, and no cell that a spreadsheet or terminal would run."""
    write_report(make_hostile(tmp_path / "found"))
    text = (tmp_path / "found" / name).read_bytes()
    assert text.startswith(b"\xef\xbb\xbf" + begins)
    rows = list(csv.DictReader(text.decode("utf-8-sig").splitlines(keepends=True)))
    assert [row["url"].lstrip("'") for row in rows[:1]] == [f"{SITE}/{EVIL[0]}"]
    report = report_of(tmp_path / "found")
    assert len(rows) == len(getattr(report.output, "pages", report.files))
    for row in rows:
        for cell in row.values():
            assert not cell.lstrip().startswith(("=", "+", "-", "@"))
            assert cell.isprintable()
    assert "'=1+1" in [row.get("name", row.get("title")) for row in rows]


def test_the_table_of_hosts_opens_in_a_spreadsheet(tmp_path: Path) -> None:
    """Its columns are named after types from pages; a spreadsheet would run no cell."""
    write_report(hostile_structured(tmp_path / "found"))
    heads, *rows = csv.reader((tmp_path / "found" / "hosts.csv").read_text("utf-8-sig").splitlines(keepends=True))
    assert {"Recipe", "'=1+1"} < {*heads}
    assert len(rows) > len(EVIL) / 2
    for row in [heads, *rows]:
        assert len(row) == len(heads)
        for cell in row:
            assert not cell.lstrip().startswith(("=", "+", "-", "@"))
            assert cell.isprintable()


def test_links_are_grouped_by_their_texts() -> None:
    """Links with a common text are grouped by it, those with rare texts by extension, fruitless ones come last."""
    answers = [hit(n) for n in range(30)]
    answers += [hit(n, files=0.0) for n in range(30, 34)]
    answers += [
        hit(n, anchor=f"A title {'of' * n}", page=f"{SITE}/de/news/{n}", url=f"{SITE}/{n}.pdf") for n in range(4)
    ]
    answers += [Answer(url=f"{SITE}/page/{n}", sent=2, anchor=f"Page {n}", page=f"{SITE}/") for n in range(10)]
    assert paid(answers) == [
        Paid("links like “Download (… kB)” on pages like /publication/…", 30, 34, (hit(0), hit(1))),
        Paid("links to pdf on pages like /de/news/…", 4, 4, (answers[34], answers[35])), Paid("", 0, 20),
    ]  # fmt: skip
    assert paid([]) == []


def test_the_two_examples_are_from_different_pages() -> None:
    """Unless one page has all of the links; a single link is the only example."""
    same = [hit(n, page=f"{SITE}/list") for n in range(3)]
    (found,) = paid([*same, hit(3, page=f"{SITE}/list/")])
    assert found.examples == (same[0], hit(3, page=f"{SITE}/list/"))
    assert paid(same)[0].examples == (same[0], same[1])
    assert paid(same[:1])[0].examples == (same[0],)


def test_kinds_and_places_are_bars(tmp_path: Path) -> None:
    """As long as their numbers, by number and by size; eight are shown, the others folded, and the rest is summed up."""
    lines = [
        line(n, url=f"{SITE}/{n}.k{kind:02}", mime="", path="", size=1000)
        for kind in range(45)
        for n in range(100 * kind, 101 * kind + 1)
    ]
    report = report_of(make(tmp_path, lines))
    kinds, *_ = [table for table in report.output.sums(report.sums) if table is not None]
    first, second, *_, last = kinds.rows
    assert [(cell.text, cell.bar) for cell in first.cells] == [("45", 100.0), ("45.0 kB", 100.0)]
    assert [(cell.text, cell.bar) for cell in second.cells] == [("44", 97.8), ("44.0 kB", 97.8)]
    assert (last.head, [(cell.text, cell.bar) for cell in last.cells]) == (
        "5 others",
        [("15", None), ("15.0 kB", None)],
    )
    reader = read(tmp_path)
    assert reader.text.index("By type") < reader.text.index("33 more") < reader.text.index("The name links to the file")
    bars = [rect["width"] for rect in reader.all("rect")]
    assert bars[:4] == ["100.0", "100.0", "97.8", "97.8"]


def test_what_is_looked_at_first_comes_first(tmp_path: Path) -> None:
    """Result, curve, kinds and places, the list, links that paid off, skips; what is about the machinery is folded."""
    table = PolicyTable("arms", ("arm", "n"), [("a", 1)])
    write_tables(tmp_path, Said("P", 0.0, [table]))
    ignored = {"host": "a", "name": "b", "links": 1, "pairs": 1, "is_believed": True}
    lines = [line(1), line(2, url=f"{SITE}/2.pdf", mime="")]
    html = page(report_of(make(tmp_path, lines, [hit(1)], reason="finished", parameters=[ignored]))).decode()
    assert re.findall(r'<h2 id="([\w-]+)">', html) == [
        "result", "harvest", "places", "files", "paid-links", "skips", "copies", "requests", "policy", "about"
    ]  # fmt: skip
    assert re.findall(r'<details><summary><h2 id="(\w+)"', html) == ["copies", "requests", "policy", "about"]


def test_older_notes_have_a_page(tmp_path: Path) -> None:
    """Notes without pages and texts of links, or of a version that noted more, are enough for it."""
    make(tmp_path, [line(1), line(2)])
    path = tmp_path / ".focus" / "log" / "1-1.jsonl.gz"
    path.parent.mkdir(parents=True)
    noted = [
        {"kind": "run", "roots": [SITE]},
        {"kind": "outcome", "url": f"{SITE}/files/1.csv", "status": 200, "sent": 1, "files": 1.0},
        {"kind": "outcome", "url": f"{SITE}/files/2.pdf", "status": 200, "sent": 1, "files": 1.0, "later": [1]},
        {"kind": "state", "reason": "finished"},
    ]
    path.write_bytes(gzip.compress("".join(json.dumps(each) + "\n" for each in noted).encode()))
    text = read(tmp_path).text
    assert "links to csv 1 file with 1 request A link without text led to 1.csv" in text
    assert "links to pdf 1 file with 1 request A link without text led to 2.pdf" in text


def test_the_curve_ends_where_the_crawl_did() -> None:
    """It rises from zero to all files and requests, in a few hundred points."""
    answers = [hit(n, sent=2, files=float(n % 3 == 0)) for n in range(3000)]
    drawn = curve(answers, [answer.files for answer in answers])
    assert drawn is not None
    assert (drawn.requests, drawn.found, drawn.half) == (6000, 1000, 2996)
    points = [tuple(map(float, point.split(","))) for point in drawn.points.split()]
    assert len(points) < 300
    assert points == sorted(points, key=lambda point: (point[0], -point[1]))
    assert curve([hit(1)], [0.0]) is None
    assert curve([], []) is None


def test_the_curve_of_important_pages_is_of_importance(tmp_path: Path) -> None:
    """In per cent of that of all known pages; a page that was reached twice counts once."""
    urls = [f"{SITE}/{n}" for n in range(6)]  # the last one was not fetched
    book = LinkBook(tmp_path, resumes=False)
    for n in range(5):
        book.note(n, urls[n], came="page", links={5: (urls[5], "5")} if n == 0 else {0: (urls[0], "0")})
    notes = NoteBook(tmp_path)
    notes.begin({"spider": "important"})
    for url in [*urls[:5], f"{SITE}/again"]:
        notes.outcome(Answer(url=url, status=200, sent=1, files=1.0, moved_to=urls[0] if url.endswith("again") else ""))
    notes.close()
    output = report_of(tmp_path).output
    importance = {each.url: each.importance for each in output.finds}
    whole = sum(importance.values()) + next(each.importance for each in output.ranking if not each.is_fetched)
    shares = output.worth(read_notes(tmp_path).answers)
    assert shares == [pytest.approx(100 * importance[url] / whole) for url in urls[:5]] + [0]
    assert shares[0] > 1.5 * shares[1]
    text = read(tmp_path).text
    assert f"Importance over time {sum(shares):.0f} % of the importance found with 6 requests, half of it with" in text


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (b"[]\n", "line 1 of .*manifest.jsonl was not written by a crawl"),
        (b'{"url": "u"}\n\xff\n', "line 2 of .*manifest.jsonl was not written by a crawl"),
        (b"[" * 99_999 + b"\n", "line 1 of .*manifest.jsonl was not written by a crawl"),
    ],
)
def test_a_damaged_list_is_an_error(tmp_path: Path, damage: bytes, said: str) -> None:
    """The error names file and line, and nothing is written."""
    (tmp_path / "manifest.jsonl").write_bytes(damage)
    with pytest.raises(ConfigError, match=said):
        write_report(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.jsonl"]


def test_a_line_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    """While a crawl runs, the last line may be incomplete."""
    make(tmp_path, [line(1), line(2)])
    with (tmp_path / "manifest.jsonl").open("a") as file:
        file.write('{"url": "http')
    assert len(read_list(tmp_path)) == 2


@pytest.mark.parametrize("folder", ["", "empty", "file"])
def test_folders_without_a_crawl_are_refused(tmp_path: Path, folder: str) -> None:
    """The folder may not exist, be empty, or be a file."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"is not a folder|has no results of a crawl"):
        write_report(tmp_path / (folder or "nothing"))


def test_a_full_disk_is_an_error(tmp_path: Path) -> None:
    """A failed write raises an error of this package, and leaves the old files."""
    make(tmp_path, [line(1)])
    (tmp_path / "index.html").mkdir()
    with pytest.raises(StorageError, match=r"cannot be written.*focus report"):
        write_report(tmp_path)


@pytest.mark.parametrize(
    ("state", "said", "alarm"),
    [
        ({"said": ["about 3 % are on the topic", 7], "alarm": "it <drifts>"}, "About 3 % are on the topic.", "it &lt;drifts&gt;"),
        ({"said": 7, "alarm": ["x"]}, "", "[&#39;x&#39;]"),
        ({}, "", ""),
    ],
)  # fmt: skip
def test_sentences_of_the_goal_are_on_the_page(tmp_path: Path, state: dict[str, Any], said: str, alarm: str) -> None:
    """Its sentences are among the results, and its alarm is a warning above all tables, for any content of the notes."""
    make_topic(tmp_path, [topic_line(1)], [hit(1)], **state)
    write_report(tmp_path)
    text = (tmp_path / "index.html").read_text()
    assert f"<li>{said}</li>" in text or not said
    assert (f'<div class="warning" role="note"><p>{alarm}</p></div>' in text) == bool(alarm)
    assert ("warning" in text.split("</style>")[1]) == bool(alarm)
