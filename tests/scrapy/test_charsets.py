"""Spiders of this package ask for the URLs that a browser asks for, on pages in any encoding."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from crawls import STOCK, crawl
from mocksite import MockSite

from scrapy_focus.features import existing
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.important.link_book import read_links
from scrapy_focus.finders.important.spider import ImportantSpider
from scrapy_focus.finders.news.spider import NewsSpider
from scrapy_focus.finders.structured.spider import StructuredSpider
from scrapy_focus.finders.topic.spider import TopicSpider
from scrapy_focus.lab.recordings.writer import SiteWriter
from scrapy_focus.lab.spiders.recorder import RecordSpider

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGES = {  # charset: a word, and the encoding of a query
    "windows-1251": ("список", "cp1251"), "shift_jis": ("統計", "cp932"), "gb2312": ("统计", "gbk"),
    "iso-8859-1": ("größe", "cp1252"), "euc-kr": ("통계", "cp949"), "utf-8": ("größe", "utf-8"), "utf-16": ("größe", "utf-8"),
}  # fmt: skip
SPIDERS = [
    (DatasetsSpider, "root", {}),
    (ImportantSpider, "root", {}),
    (NewsSpider, "root", {"rate": "100000/hour"}),
    (StructuredSpider, "seeds", {"scope": "host"}),
    (TopicSpider, "seeds", {"keywords": "xy"}),
]


@pytest.fixture
def texts() -> Iterator[MockSite]:
    """A site with a page in each charset: a link in its words, one that must not be followed, and a frame."""
    with MockSite() as site:
        site.pages["/"] = "".join(f'<p><a href="/{charset}/">{charset}</a>' for charset in PAGES)
        for charset, (word, _) in PAGES.items():
            body = f"""<a href="get?name={word}">{word}</a><p><a href="get?name={word}#again">{word}</a>
                <iframe src="{word}?{word}"></iframe><a rel=nofollow href="no?{word}">no</a>"""
            answer = 200, {"Content-Type": f"text/html; charset={charset}"}, body.encode(charset)
            site.answers[f"/{charset}/"] = lambda _, answer=answer: answer  # type: ignore[misc]
            for path in wanted(charset):
                page = 200, {"Content-Type": "text/html"}, f'<p>{charset} <a href="{path}">the same</a>'.encode()
                site.answers[path] = lambda _, page=page: page  # type: ignore[misc]
        yield site


def wanted(charset: str) -> list[str]:
    """Return what a browser asks for on the page in a charset."""
    word, encoding = PAGES[charset]
    query = quote(word.encode(encoding))
    return [f"/{charset}/get?name={query}", f"/{charset}/{quote(word)}?{query}"]


ALL = {"/", *(f"/{charset}/" for charset in PAGES), *(path for charset in PAGES for path in wanted(charset))}


ALL_FOLLOWED = existing({"FOCUS_IGNORE_PARAMETERS": False})


@pytest.mark.parametrize(("spider", "name", "more"), SPIDERS)
def test_queries_are_sent_in_the_charset_of_their_page(
    texts: MockSite, spider: Any, name: str, more: dict[str, str], tmp_path: Path
) -> None:
    """Each once, and a link with ``nofollow`` not at all; the notes of a crawl have the URLs that were asked for."""
    out = {"out": str(tmp_path)} if name == "root" else {"folder": str(tmp_path)}
    settings = {"FOCUS_OBEY": ["nofollow"], "FOCUS_BUDGET_REQUESTS": len(ALL), **ALL_FOLLOWED}
    crawled = crawl(spider, settings, addon=True, **{name: texts.url("/"), **out, **more})
    assert crawled.errors == {}
    assert Counter(texts.paths) == Counter(ALL)
    assert crawled.stats["focus/link/nofollow"] == len(PAGES)
    assert crawled.stats.get("focus/link/unattributed", 0) == 0
    if spider is ImportantSpider:
        linked = {
            url.removeprefix(texts.url(""))
            for each in read_links(tmp_path)
            for url in [*each.new, *each.named.values()]
        }
        assert linked >= ALL - {"/"}


def test_a_recording_has_them(texts: MockSite, tmp_path: Path) -> None:
    """A simulated crawl follows the links that a live one follows."""
    with SiteWriter(tmp_path / "site.sqlite", roots=[texts.url("/")]) as writer:
        crawl(RecordSpider, {"SCHEDULER": STOCK}, writer=writer)
        assert not writer.finish().missing
    assert {*texts.paths} >= ALL
    assert {path for path in texts.paths if path not in ALL} == {path for path in texts.paths if "/no?" in path}
