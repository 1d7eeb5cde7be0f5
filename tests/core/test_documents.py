"""What a page says of itself as a document: when it was published and changed, read once, and again after a kill."""

from __future__ import annotations

import copy
import gc
import json
import shutil
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.http import HtmlResponse

from scrapy_focus import Crawl, Job, NewsGoal, Outcome
from scrapy_focus.core.noted import NotedPage
from scrapy_focus.engine.inflight import ResponsePage
from scrapy_focus.policies.orderings import BreadthFirst
from scrapy_focus.web import documents
from scrapy_focus.web.documents import Document, document_of
from scrapy_focus.web.html import parsed
from tests.made import link
from tests.made import page as outcome_of

if TYPE_CHECKING:
    from pathlib import Path

NINE = datetime(2026, 1, 5, 9, tzinfo=UTC).timestamp()
HOUR = 3600.0
DAY = 24 * HOUR
URL = "http://a.example/1"
TEXT = " ".join(f"word{i}" for i in range(100))
HEADER = "Mon, 05 Jan 2026 09:00:00 GMT"


def ld(**values: str) -> str:
    """Return JSON-LD of an article."""
    return f'<script type="application/ld+json">{json.dumps({"@type": "NewsArticle", **values})}</script>'


def meta(name: str, content: str) -> str:
    """Return an element of the head."""
    return f'<meta property="{name}" content="{content}">'


def shown(head: str = "", *, text: str = TEXT, url: str = URL, **headers: str) -> Any:
    """Return a page."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return SimpleNamespace(url=url, status=200, headers=names, text=f"<html>{head}<p>{text}</p></html>", kind="")


@pytest.mark.parametrize(
    ("head", "by"),
    [
        (ld(dateModified="2026-01-05T09:00:00Z", datePublished="2026-01-02"), "json-ld"),
        (ld(datePublished="2026-01-02") + meta("article:modified_time", "2026-01-05T09:00:00Z"), "meta"),
        (meta("og:updated_time", "2026-01-05T09:00:00Z") + meta("date", "2026-01-02"), "meta"),
        (meta("og:updated_time", "2026-01-02") + meta("article:modified_time", "2026-01-05T09:00:00Z"), "meta"),
        ('<meta itemprop="dateModified" content="2026-01-05T09:00:00Z">', "meta"),
        (ld(dateModified="soon") + meta("og:updated_time", "2026-01-05T09:00:00Z"), "meta"),
        ('<time itemprop="dateModified" datetime="2026-01-05T09:00:00Z">now</time>', "time"),
    ],
)
def test_where_it_says_when_it_changed(head: str, by: str) -> None:
    """The surest place counts first, whatever the header says, and whenever it was published."""
    document = document_of(shown(head, Last_Modified="Sun, 04 Jan 2026 09:00:00 GMT"))
    assert (document.modified, document.modified_by) == (NINE, by)
    assert document.changed_at(NINE + HOUR) == NINE


def test_the_header_counts_where_the_page_says_nothing() -> None:
    """Of both; and it is not believed where it is the time of the visit."""
    document = document_of(shown(last_modified=HEADER))
    assert document == Document(URL, True, NINE, NINE, "header", document.digest, "header")
    assert len(document.digest) == 16
    assert document.changed_at(NINE + 60) == document.published_at(NINE + 60) == NINE
    assert document.changed_at(NINE + 59) is document.published_at(NINE + 59) is None
    old = document_of(shown(meta("date", "2026-01-02T09:00:00Z"), Last_Modified=HEADER))
    assert (old.modified, old.modified_by, old.by) == (None, "", "meta")
    assert old.changed_at(NINE + HOUR) == NINE - 3 * DAY
    changed = document_of(shown(meta("og:updated_time", "2026-01-02T09:00:00Z"), Last_Modified=HEADER))
    assert (changed.published, changed.by) == (NINE, "header")
    assert changed.published_at(NINE + HOUR) == NINE
    assert changed.changed_at(NINE + HOUR) == NINE - 3 * DAY
    assert document_of(shown()) == Document(URL, True, digest=document.digest)


def test_what_is_ahead_is_now_or_nothing() -> None:
    """Up to a day, as dates without a time zone are; and the later of both counts, where it can be."""
    document = Document(URL, True, published=NINE, modified=NINE + HOUR, by="meta", modified_by="meta")
    assert document.changed_at(NINE + DAY) == NINE + HOUR
    assert document.changed_at(NINE + HOUR / 2) == NINE + HOUR / 2
    assert document._replace(modified=NINE + 3 * DAY).changed_at(NINE + HOUR) == NINE
    assert document._replace(modified=NINE - DAY).changed_at(NINE + HOUR) == NINE
    assert Document(URL, True).changed_at(NINE) is Document(URL, True).published_at(NINE) is None


def test_what_is_no_document_says_nothing() -> None:
    """A list of others, a page without text, and one without an element."""
    dated = meta("date", "2026-01-05T09:00:00Z") + meta("article:modified_time", "2026-01-05T09:00:00Z")
    assert document_of(shown(dated, text="short", Last_Modified=HEADER)) == Document(URL)
    assert document_of(SimpleNamespace(url=URL, headers={}, text="", status=200, kind="")) == Document(URL)  # type: ignore[arg-type]
    assert document_of(shown(ld(datePublished="2026-01-05T09:00:00Z"), text="short")).is_document


def test_the_same_text_has_the_same_digest() -> None:
    """Whatever surrounds it, including links in it."""
    first = document_of(shown()).digest
    assert (
        document_of(shown(meta("date", "2026-01-02"), text=f"{TEXT} <a href=/2>read on</a>", url=URL + "0")).digest
        == first
    )
    assert document_of(shown(text=f"{TEXT} more")).digest != first


def test_a_page_of_scrapy_is_read_once() -> None:
    """For every caller and every wrapper of the response; another response of the same URL is another page."""
    body = shown(meta("date", "2026-01-05T09:00:00Z")).text.encode()
    response = HtmlResponse(URL, body=body, encoding="utf-8", headers={"Last-Modified": HEADER})
    first = document_of(ResponsePage(response))
    assert first.published == NINE
    assert document_of(ResponsePage(response)) is first
    assert NewsGoal().reading(ResponsePage(response)) is first
    again = HtmlResponse(URL, body=body.replace(b"word1 ", b"other "), encoding="utf-8")
    assert document_of(ResponsePage(again)).digest != first.digest
    gc.collect()
    before = len(documents._by_root)
    del response
    gc.collect()  # a response and its tree know each other
    assert len(documents._by_root) == before - 1, "nothing is kept of a page that is no more"


def test_a_page_without_a_tree_is_parsed_once() -> None:
    """However often it is made; a goal that parsed it has read it for others, too."""
    page = shown(meta("date", "2026-01-05T09:00:00Z"), text=f"{TEXT} once")
    first = NewsGoal().reading(page)
    assert document_of(page) is document_of(copy.copy(page)) is first
    assert (
        document_of(shown(meta("date", "2026-01-05T09:00:00Z"), text=f"{TEXT} once", last_modified=HEADER)) is not first
    )
    root = parsed(page.text)
    assert document_of(page, root) is first


def test_what_is_remembered_of_them_is_bounded() -> None:
    """What was asked for longest ago is forgotten first, and read anew."""
    page = shown(text=f"{TEXT} kept")
    first = document_of(page)
    for i in range(documents._READ + 1000):
        document_of(shown(text="short", url=f"{URL}{i}"))
        assert i % 1000 or document_of(page) is first
    assert len(documents._by_text) == documents._READ


class Reads(BreadthFirst):
    """Remembers the documents of all pages."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Document] = []

    def learn(self, outcome: Outcome) -> None:
        if outcome.page is not None:
            self.seen += [document_of(outcome.page), document_of(outcome.page)]


def test_a_crawl_that_resumes_reads_the_same(tmp_path: Path) -> None:
    """Documents are noted in its place, and the text of the page is not."""
    crawl = Crawl(Reads(), goal=NewsGoal(), job=Job(tmp_path / "focus", every=1000), strict=True)
    crawl.add([link(i) for i in range(1, 6)])
    for i in range(4):
        pick = crawl.next()
        assert pick is not None
        crawl.sent(pick.id)
        date = meta("date", f"2026-01-0{i + 1}T09:00:00Z") if i else ""
        crawl.report(outcome_of(pick, page=shown(date, url=pick.url, text=f"{TEXT} {i}")))
    killed = tmp_path / "killed"
    shutil.copytree(tmp_path / "focus", killed / "focus")
    before = crawl.policy.seen  # type: ignore[attr-defined]
    crawl.close()
    documents._by_text.clear()
    later = Crawl(Reads(), goal=NewsGoal(), job=Job(killed / "focus"), strict=True)
    after = later.policy.seen  # type: ignore[attr-defined]
    later.close()
    assert len(after) == 8
    assert after == before
    assert all(each.is_document and type(each) is Document for each in after)
    journals = b"".join(path.read_bytes() for path in (killed / "focus").glob("journal.*"))
    assert after[-1].digest in journals
    assert b"word99" not in journals


def test_what_a_page_makes_is_noted_by_its_name() -> None:
    """And made once; a policy that asks for something else in a crawl that resumes finds an empty page."""
    asked = []

    def length(page: Any) -> int:
        asked.append(page)
        return len(page.text)

    page = NotedPage(shown(text="abc"))
    assert page.made("length", length) == page.made("length", length) == len("<html><p>abc</p></html>")
    assert len(asked) == 1
    assert page.read == {"length": 23}
    resumed = NotedPage(None, {"length": 23})
    assert resumed.made("length", length) == 23
    assert len(asked) == 1
    assert resumed.made("half", lambda page: len(page.text) / 2) == 0
