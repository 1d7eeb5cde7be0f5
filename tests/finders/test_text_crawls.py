"""Whole crawls with ``--text`` and ``--markdown``: what is stored of each page, compared with what the site wrote."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from crawls import Crawled, crawl
from forked import Forked
from mocksite import MockSite
from parsel import Selector

from main_text_pages import LANGUAGES, KnownPage, article, blog, divs, manual
from scrapy_focus.__main__ import main
from scrapy_focus.finders.files.arguments import FilesArguments
from scrapy_focus.finders.important.spider import ImportantSpider
from scrapy_focus.finders.kit.arguments.argument import OptionNames
from scrapy_focus.finders.kit.records.contents import NO_CONTENTS, Contents, contents_of
from scrapy_focus.finders.kit.spiders import page_texts
from scrapy_focus.finders.kit.spiders.page_texts import StoreTexts, name_of
from scrapy_focus.finders.structured.spider import StructuredSpider
from scrapy_focus.finders.topic.spider import TopicSpider
from scrapy_focus.web.text_process import TextProcess
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Spider

KNOWN = {
    f"/{make.__name__}/{language.code}.html": make(language)
    for make in (article, blog, divs, manual)
    for language in (LANGUAGES[0], LANGUAGES[1], LANGUAGES[4])
}
EVENT = json.dumps({"@context": "https://schema.org", "@type": "Event", "name": "Ferry", "startDate": "2025-03-18"})
RECIPE = json.dumps({"@context": "https://schema.org", "@type": "Recipe", "name": "Soup", "cookTime": "PT5M"})
DATA = "".join(f'<script type="application/ld+json">{data}</script>' for data in (EVENT, RECIPE))
FAILS = f"<html><title>ferry</title>{DATA}<body><article>{'<ul><li>ferry' * 20_000}"  # the library fails on it
#: Spider, its argument for the folder, and its further arguments; each finds every page but the start page.
SPIDERS: dict[str, tuple[type[Spider], str, dict[str, str]]] = {
    "topic": (TopicSpider, "folder", {"keywords": "ferry,harbour,passengers,islands"}),
    "structured": (StructuredSpider, "folder", {"types": "Event,Recipe"}),
    "important": (ImportantSpider, "out", {}),
}
LISTS = {"topic": "pages.jsonl", "structured": "entities.jsonl", "important": "pages.jsonl"}
NEW = {"text_file", "markdown_file", "text", "markdown", "author", "published"}
FAST = ("-s", "DOWNLOAD_DELAY=0", "-s", "FOCUS_PROGRESS=off")


def site_of(pages: dict[str, str]) -> MockSite:
    """Return a site with links to these pages on its start page."""
    links = "".join(f'<li><a href="{path}">ferry {path}</a>' for path in pages)
    return MockSite(pages={**pages, "/": f"<html><title>All</title><ul>{links}</ul>"})


@pytest.fixture(scope="module")
def site() -> Iterator[MockSite]:
    pages = {path: page.html.replace("</head>", f"{DATA}</head>") for path, page in KNOWN.items()}
    with site_of(pages) as served:
        yield served


def find(name: str, site: MockSite, folder: Path, **given: str) -> Crawled:
    """Crawl a site without any error, with a folder unless ``given`` has another place."""
    spider, place, more = SPIDERS[name]
    roots = {"root" if name == "important" else "seeds": site.url("/")}
    site.log.clear()
    done = crawl(
        spider,
        {"ROBOTSTXT_OBEY": False},
        addon=True,
        **roots,
        **{**({} if "out" in given else {place: str(folder)}), **more, **given},
    )
    assert done.errors == {}
    return done


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def known(line: dict[str, Any]) -> KnownPage | None:
    return KNOWN.get(urlsplit(line["url"]).path)


def compare(line: dict[str, Any], page: KnownPage, text: str, markdown: str) -> None:
    """Compare what is listed and stored of a page with what the site wrote."""
    assert line["title"] == f"{page.title} | Example"
    assert (line["language"], line["author"], line["published"]) == (page.language, page.author, page.date)
    said = next(each for each in LANGUAGES if each.code == page.language)
    for paragraph in said.paragraphs:
        assert paragraph in text
        assert paragraph in markdown
    for beside in (said.notice, said.comment, said.rights):
        assert beside not in text + markdown


@pytest.mark.parametrize("name", SPIDERS)
def test_each_page_found_has_its_files(name: str, site: MockSite, tmp_path: Path) -> None:
    """Each with the facts that the page states; other pages have none, and the page and the table lead to them."""
    done = find(name, site, tmp_path / "out", text="yes", markdown="yes")
    folder, listed = tmp_path / "out", lines(tmp_path / "out" / LISTS[name])
    found = [line for line in listed if line.get("relevance") is None or line["relevance"] >= 0.5]
    paths = {urlsplit(line["url"]).path for line in found}
    assert {path for path in KNOWN if name != "topic" or path.endswith("/en.html")} <= paths
    for line in listed:
        assert ("text_file" in line, "text" in line) == (True, False)
        if line not in found:
            assert line["text_file"] == line["markdown_file"] == ""
            continue
        text, markdown = ((folder / line[f"{each}_file"]).read_text(encoding="utf-8") for each in ("text", "markdown"))
        if page := known(line):
            compare(line, page, text, markdown)
            assert f'url: "{line["url"]}"' in markdown.splitlines()
            assert f'title: "{page.title}"' in markdown.splitlines()
    n = len({line["url"] for line in found})
    assert len([*(folder / "text").iterdir()]) == 2 * n
    assert done.stats["focus/text/stored"] + done.stats.get("focus/text/empty", 0) == n
    linked = {*Selector((folder / "index.html").read_text(encoding="utf-8")).css("tbody a::attr(href)").getall()}
    assert {line["text_file"] for line in found} <= linked
    if name != "structured":
        with next(folder.glob("*.csv")).open(encoding="utf-8-sig", newline="") as file:
            rows = {row["url"]: row for row in csv.DictReader(file)}
        for line in found:
            assert {field: rows[line["url"]][field] for field in (*NEW - {"text", "markdown"},)} == {
                field: line[field] for field in NEW - {"text", "markdown"}
            }


@pytest.mark.few(1)
@pytest.mark.parametrize("name", SPIDERS)
def test_one_format_without_a_folder_is_in_the_list(name: str, site: MockSite, tmp_path: Path, capfd: Any) -> None:
    """In a file of its own, or on standard output."""
    out = "-" if name == "important" else str(tmp_path / "list.jsonl")
    find(name, site, tmp_path, out=out, markdown="yes")
    printed = capfd.readouterr().out
    listed = [json.loads(line) for line in printed.splitlines()] if out == "-" else lines(Path(out))
    assert {*KNOWN} <= {urlsplit(line["url"]).path for line in listed}
    for line in listed:
        assert {*line} & NEW == {"markdown", "author", "published"}
        if (page := known(line)) and (name != "topic" or line["relevance"] >= 0.5):
            compare(line, page, line["markdown"], line["markdown"])
    assert [path.name for path in tmp_path.iterdir()] == ([] if out == "-" else ["list.jsonl"])


@pytest.mark.parametrize("name", SPIDERS)
def test_without_the_options_nothing_is_added(name: str, site: MockSite, tmp_path: Path) -> None:
    """No field, no file and no pipeline."""
    done = find(name, site, tmp_path / "out")
    assert not any(isinstance(each, StoreTexts) for each in done.crawler.engine.scraper.itemproc.middlewares)
    for line in lines(tmp_path / "out" / LISTS[name]):
        assert not {*line} & NEW
        assert ("language" in line, "title" in line) == (name == "topic", name != "structured")
    assert not (tmp_path / "out" / "text").exists()
    with next((tmp_path / "out").glob("*.csv")).open(encoding="utf-8-sig") as file:
        assert not {*next(csv.reader(file))} & NEW


def test_pages_without_a_text_are_listed_and_counted(tmp_path: Path) -> None:
    """One on which the library fails, and one with no text; the crawl goes on, and each has an empty file."""
    pages = {
        "/fails": FAILS,
        "/empty": "<html><title>nothing</title><script>1</script>",
        "/good": KNOWN["/article/en.html"].html,
    }
    with site_of(pages) as served:
        done = find("important", served, tmp_path, text="yes")
    assert {name: n for name, n in done.stats.items() if name.startswith("focus/text/")} == {
        "focus/text/failed": 1, "focus/text/empty": 1, "focus/text/stored": 2,
    }  # fmt: skip
    sizes = {
        urlsplit(line["url"]).path: (tmp_path / line["text_file"]).stat().st_size
        for line in lines(tmp_path / "pages.jsonl")
    }
    assert {path for path, size in sizes.items() if size} == {"/", "/good"}
    assert sizes.keys() == {"/", *pages}


@pytest.mark.slow  # tests/core/test_page_texts.py has the process alone
def test_a_page_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is replaced, and all other pages have their texts."""
    page = KNOWN["/article/en.html"].html
    slow = page.replace("</article>", "<table>" + "<tr><td colspan=1000 rowspan=1000>x" * 5000)
    monkeypatch.setattr(page_texts, "TextProcess", lambda: TextProcess(1.0))
    with site_of({"/slow": slow, **{f"/{i}": page for i in range(9)}}) as served:
        done = find("important", served, tmp_path, text="yes")
    assert done.stats["focus/text/failed"] == 1
    sizes = {
        urlsplit(line["url"]).path: (tmp_path / line["text_file"]).stat().st_size
        for line in lines(tmp_path / "pages.jsonl")
    }
    assert len(sizes) == 11
    assert [path for path, size in sizes.items() if not size] == ["/slow"]


def test_a_killed_crawl_has_each_text_once(tmp_path: Path) -> None:
    """After kills in the midst of it, each page in the list has its files, and no file is left over."""
    n = 60
    pages = {f"/{i}": f"<html><title>{i}</title><article><p>{f'Number {i} is written here. ' * 20}" for i in range(n)}
    out = tmp_path / "out"
    words = [
        "important",
        "--text",
        "--markdown",
        "--out",
        str(out),
        *FAST,
        "-s",
        "FOCUS_CHECKPOINT_EVERY=5",
        "-s",
        "ROBOTSTXT_OBEY=0",
    ]
    with site_of(pages) as served:
        command = [sys.executable, "-m", "scrapy_focus", *words, served.url("/")]
        for most in (20, 45):
            served.hold(most)
            process = Forked(
                command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
            )
            try:
                assert served.wait_until_it_holds(HANG)
            finally:
                process.send_signal(signal.SIGKILL)
                process.wait(HANG)
            listed = [
                line for line in (out / "pages.jsonl").read_text().splitlines(keepends=True) if line.endswith("\n")
            ]
            assert all((out / json.loads(line)["text_file"]).stat().st_size for line in listed)
            served.go_on()
        process = Forked(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
        )
        said, logged = process.communicate(timeout=HANG)
    assert process.wait() == 0, said + logged
    found = {line["url"]: line for line in lines(out / "pages.jsonl")}
    assert {urlsplit(url).path for url in found} == {"/", *pages}
    stored = {path.name for path in (out / "text").iterdir()}
    assert stored == {Path(line[name]).name for line in found.values() for name in ("text_file", "markdown_file")}
    assert len(stored) == 2 * (n + 1)
    for url, line in found.items():
        number = urlsplit(url).path.strip("/")
        assert not number or f"Number {number} is written here." in (out / line["text_file"]).read_text()


@pytest.mark.parametrize(
    ("command", "why"),
    [("files", "focus files stores files"), ("watch", "focus watch lists articles")],
)
@pytest.mark.parametrize("option", ["--text", "--markdown"])
def test_other_finders_refuse(
    command: str, why: str, option: str, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    """With status 2 and a sentence, before anything is requested or written."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main([command, "http://127.0.0.1:9/", "--rate", "9/h", option])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert f"{option} is for focus topic, focus structured and focus important; {why}" in said
    assert said.count("\n") == 1
    assert not [*tmp_path.iterdir()]


def test_the_refusal_names_the_argument_of_a_spider() -> None:
    with pytest.raises(Exception, match=r"^text is for focus topic"):
        FilesArguments.read({"root": "http://a.test/", "text": "yes"})
    with pytest.raises(Exception, match=r"^--text is for focus topic"):
        FilesArguments.read({"root": "http://a.test/", "text": "yes"}, OptionNames({}))


def test_names_stay_in_the_folder_and_differ() -> None:
    """Whatever a URL says, on every file system."""
    ends = (
        "..", "../..", "%2e%2e%2fetc%2fpasswd", ".hidden", "con.html", "a/b\\c", "x" * 3000, "\ud800", "%00", "A.html", "a.html", "a.htm",
        "?a=1", "?a=2", "-rf", "=cmd", "é", "e\u0301", "a:b", "", "/", "x.tar.gz/", "javascript:x",
    )  # fmt: skip
    names = [name_of(f"http://a.test/{end}") for end in ends] + [name_of("mailto:x"), name_of("http://a.test")]
    assert len({name.casefold() for name in names}) == len(names)
    for name in names:
        assert re.fullmatch(r"\w[\w.\- ]*-[0-9a-f]{12}", name)
        assert len(name.encode()) <= 73
        path = f"text/{name}.txt"
        assert contents_of({"text_file": path}).path == path


@pytest.mark.parametrize(
    "path",
    ["../x.txt", "text/../x.txt", "/etc/passwd", "text/x.html", "text/.x.txt", "javascript:alert(1)//.txt", "text/a/b.txt",
     "text/x.txt\n", "text/x\\y.txt", "TEXT/x.txt", "text/ x.txt", 7, None],
)  # fmt: skip
def test_paths_in_a_list_of_unknown_source_stay_in_the_folder(path: object) -> None:
    assert contents_of({"text_file": path, "markdown_file": path}) == NO_CONTENTS
    assert contents_of({"author": 3, "markdown_file": "text/x.md"}) == Contents("", "", "", "text/x.md")
