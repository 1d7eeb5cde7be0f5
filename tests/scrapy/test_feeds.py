"""Feeds of crawls that are killed: every item is in them at least once, and every line can be read."""

from __future__ import annotations

import csv
import gzip
import io
import json
import logging
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from crawls import Crawled, Follower, crawl
from forked import run as run_forked
from mocksite import MockSite, tree_paths
from scrapy.exporters import CsvItemExporter, JsonLinesItemExporter
from scrapy.extensions.feedexport import FeedExporter, StdoutFeedStorage
from scrapy.extensions.feedexport import FileFeedStorage as TheirStorage

from scrapy_focus.engine.feeds import FileFeedStorage, flush_feeds, mend, mend_feeds
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.crawler import Crawler

JSONL: dict[str, Any] = {"format": "jsonlines", "encoding": None, "item_export_kwargs": {}}
CSV: dict[str, Any] = {**JSONL, "format": "csv"}
NASTY = [
    {"n": "1", "text": "plain"}, {"n": "2", "text": 'a "quote", a comma'}, {"n": "3", "text": "two\nlines\r\nthree"},
    {"n": "4", "text": ""}, {"n": "5", "text": "ü\u2028\n\n\"\"\n"}, {"n": "6", "text": '"'},
]  # fmt: skip


def written(exporter: type, items: list[dict[str, str]]) -> bytes:
    """Return what an exporter of Scrapy writes."""
    file = io.BytesIO()
    export = exporter(file, encoding="utf-8")
    export.start_exporting()
    for item in items:
        export.export_item(item)
    export.finish_exporting()
    return file.getvalue()


def rows(data: bytes) -> list[dict[str, str]]:
    """Return the items of a CSV file, without the headers in between that Scrapy writes in each run."""
    reader = csv.DictReader(io.StringIO(data.decode(), newline=""))
    return [row for row in reader if row["n"] != "n"]


@pytest.mark.parametrize("block", [1 << 20, 7])
def test_lines_of_json_cut_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """Wherever a file was cut, the next lines are separate, and no whole item is lost."""
    monkeypatch.setattr("scrapy_focus.engine.feeds._BLOCK", block)
    whole, path = written(JsonLinesItemExporter, NASTY), tmp_path / "items.jsonl"
    ends = {i for i, byte in enumerate(whole) if byte == 10} | {i + 1 for i, byte in enumerate(whole) if byte == 10}
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        mend(path, JSONL)
        found = [json.loads(line) for line in (path.read_bytes() + whole).decode().split("\n")[:-1]]
        n = len(found) - len(NASTY)
        assert found == NASTY[:n] + NASTY
        assert n == whole[:cut].count(b"\n") + (cut in ends and whole[cut - 1 : cut] != b"\n")


def test_rows_cut_anywhere(tmp_path: Path) -> None:
    """Wherever a CSV file was cut, in quotes or between them, the rows before and after are intact."""
    whole, path = written(CsvItemExporter, NASTY), tmp_path / "items.csv"
    starts = [len(written(CsvItemExporter, NASTY[:n])) for n in range(1, len(NASTY) + 1)]
    for cut in range(whole.index(b"\n") + 1, len(whole) + 1):
        path.write_bytes(whole[:cut])
        mend(path, CSV)
        complete = sum(end <= cut for end in starts)
        assert rows(path.read_bytes() + whole) == NASTY[:complete] + NASTY


@pytest.mark.parametrize(
    ("options", "data"),
    [
        ({**JSONL, "format": "json"}, b'[{"n": 1},\n{"n'),
        ({**JSONL, "format": "xml"}, b"<items><it"),
        ({**JSONL, "encoding": "utf-16"}, '{"n": 1}\n{"n'.encode("utf-16")),
        (
            {**JSONL, "postprocessing": ["scrapy.extensions.postprocessing.GzipPlugin"]},
            gzip.compress(b"{}\n", mtime=0)[:-9],
        ),
        ({**CSV, "item_export_kwargs": {"quotechar": "'"}}, b"n,text\r\n1,'2"),
        (JSONL, b""),
        (CSV, b""),
        (JSONL, b'{"n": 1}\n'),
        (CSV, b"n,text\r\n1,2\r\n"),
        (CSV, b"n,text\n1,2\n"),
        (CSV, b'n,text\r\n"' + b"1,2\r\n" * (1 << 18)),
    ],
)
def test_what_is_left_alone(tmp_path: Path, options: dict[str, Any], data: bytes) -> None:
    """Files without lines, other dialects, compressed or broken files, and intact ones are not changed."""
    path = tmp_path / "items"
    path.write_bytes(data)
    mend(path, options)
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("options", "data", "end"),
    [(JSONL, b'{"n": 1}\n{"n": 2}', b"\n"), (CSV, b"n,text\n1,2", b"\r\n"), (CSV, b"n,text", b"\r\n")],
)
def test_a_last_line_that_is_not_cut(tmp_path: Path, options: dict[str, Any], data: bytes, end: bytes) -> None:
    """A complete last line, or one of a file that Scrapy did not write, is unchanged except for a line end."""
    path = tmp_path / "items"
    path.write_bytes(data)
    mend(path, options)
    assert path.read_bytes() == data + end


class Slow(Follower):
    """Gives items that are longer than a buffer, with their page."""

    name = "slow"

    def parse(self, response: Any) -> Iterator[Any]:
        for i in range(3):
            yield {"page": response.url.partition("/page/")[2], "i": i, "text": 'a "b",\n' * 900}
        yield from response.follow_all(css="a")


class Mending:
    """A pipeline that has the feeds mended, like the scheduler."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Mending:
        return cls(crawler)

    def open_spider(self) -> None:
        mend_feeds(self.crawler)
        mend_feeds(self.crawler)

    def process_item(self, item: Any) -> Any:
        return item


def run(site: MockSite, tmp_path: Path, feeds: dict[Any, Any], **settings: Any) -> Crawled:
    """Run a crawl of three pages with a job, nine items in all."""
    settings = {"JOBDIR": str(tmp_path / "job"), "ITEM_PIPELINES": {Mending: 1}, "FEEDS": feeds, **settings}
    return crawl(Slow, settings, addon=True, seeds=[site.url("/page/0/3")])


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_feeds_are_mended_when_they_are_added_to(site: MockSite, tmp_path: Path) -> None:
    """Cut files of earlier runs are mended, including batches, if they are named as paths, URLs or with parameters."""
    names = ["a.jsonl", "b.jl", "c-1.jsonl", "c-2.jsonl", "c-3.jsonl", "slow.csv"]
    for name in names:
        cut = 'page,i,text\r\nold,0,x\r\nold,1,"cut\r\n' if name.endswith("csv") else '{"page": "old"}\n{"page": "cu'
        (tmp_path / name).write_bytes(cut.encode())
    (tmp_path / "new.jsonl").write_text("gone")
    feeds = {
        tmp_path / "a.jsonl": {"format": "jsonlines"},
        (tmp_path / "b.jl").as_uri(): {"format": "jl"},
        f"{tmp_path}/c-%(batch_id)d.jsonl": {"format": "jsonlines", "batch_item_count": 4},
        f"{tmp_path}/%(name)s.csv": {"format": "csv"},
        f"{tmp_path}/new.jsonl": {"format": "jsonlines", "overwrite": True},
    }
    result = run(site, tmp_path, feeds)
    assert (
        len(
            result.logged(
                "new.jsonl loses items when the crawl is stopped or killed and resumes: the next run overwrites it"
            )
        )
        == 1
    )
    assert len(result.logged("ended in a cut line")) == 6
    for name, count in zip(names[:5], [9, 9, 4, 4, 1], strict=True):
        lines = read(tmp_path / name)
        assert lines[0] == {"page": "old"}
        assert len(lines) == 1 + count
    assert len(read(tmp_path / "new.jsonl")) == 9
    with (tmp_path / "slow.csv").open(newline="") as file:
        table = list(csv.reader(file))
    assert table[:3] == [["page", "i", "text"], ["old", "0", "x"], ["page", "i", "text"]]
    assert len(table) == 12
    assert result.stats["feedexport/success_count/FileFeedStorage"] == 7


@pytest.mark.parametrize("settings", [{"JOBDIR": None}, {"FEEDS": {}}], ids=["no job", "no feed"])
def test_without_a_job_or_a_feed(site: MockSite, tmp_path: Path, settings: dict[str, Any]) -> None:
    """Without JOBDIR a file is appended to unchanged, and without a feed there is nothing to do."""
    path = tmp_path / "a.jsonl"
    path.write_text("{cut")
    result = run(site, tmp_path, {path: {"format": "jsonlines"}}, **settings)
    assert path.read_text().startswith("{cut" if "FEEDS" in settings else "{cut{")
    assert not result.errors
    assert not result.logged("loses items")
    assert flush_feeds(result.crawler)


@pytest.mark.parametrize(
    ("uri", "options", "reason"),
    [
        ("{}/a.json", {"format": "json"}, "a file of json is then incomplete"),
        ("{}/a.jsonl.gz", {"format": "jsonlines", "postprocessing": ["scrapy.extensions.postprocessing.GzipPlugin"]},
         "postprocessed output is then incomplete"),
        ("ftp://127.0.0.1:9/a.jsonl", {"format": "jsonlines"}, "it is stored only when it is complete"),
        ("{}/a.jsonl", {"format": "jsonlines", "overwrite": True}, "the next run overwrites it (overwrite)"),
        ("{}/%(time)s.jsonl", {"format": "jsonlines", "overwrite": True}, ""),
        ("{}/%(time)s.csv", {"format": "csv"}, ""),
    ],
)  # fmt: skip
def test_feeds_that_lose_items_are_named(
    site: MockSite, tmp_path: Path, uri: str, options: dict[str, Any], reason: str
) -> None:
    """One warning for each feed says why it loses items after a kill; those that survive one are not named."""
    result = run(site, tmp_path, {uri.format(tmp_path): options})
    said = result.logged("loses items when the crawl is stopped or killed and resumes")
    assert [reason in message for message in said] == ([True] if reason else [])


class Unwritable(io.BytesIO):
    """A file on a disk that is full."""

    def flush(self) -> None:
        raise OSError(28, "No space left on device")


def with_slots(*slots: Any) -> Any:
    """Return a crawler whose feed exporter has these slots."""
    exporter = FeedExporter.__new__(FeedExporter)
    exporter.slots = list(slots)
    return SimpleNamespace(get_extension=lambda cls: exporter if cls is FeedExporter else None)


def test_flushing_never_raises(caplog: pytest.LogCaptureFixture) -> None:
    """Closed feeds and feeds without files do not matter; one that cannot be written is reported and logged."""
    closed = io.BytesIO()
    closed.close()
    slots = [
        SimpleNamespace(file=None),
        SimpleNamespace(file=closed),
        SimpleNamespace(),
        SimpleNamespace(file=io.BytesIO()),
    ]
    assert flush_feeds(with_slots(*slots))
    assert flush_feeds(with_slots(SimpleNamespace(file=Unwritable(), storage=StdoutFeedStorage("stdout:"))))
    assert not caplog.records
    full = SimpleNamespace(file=Unwritable(), storage=TheirStorage("a"), uri="a.jsonl")
    assert not flush_feeds(with_slots(full, *slots))
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert "the feed a.jsonl cannot be written: [Errno 28]" in record.getMessage()

    def too_early(cls: type) -> None:
        raise RuntimeError("Crawler.get_extension() can only be called after")

    assert flush_feeds(SimpleNamespace(get_extension=too_early))  # type: ignore[arg-type]
    mend_feeds(SimpleNamespace(get_extension=too_early))  # type: ignore[arg-type]


def test_a_feed_that_cannot_be_read_is_added_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    """Whatever error occurs while a file is read, the feed is opened as in Scrapy; no file is fine."""

    def fail(path: Path, options: Any) -> None:
        raise OSError("as asked")

    monkeypatch.setattr("scrapy_focus.engine.feeds.mend", fail)
    storage = FileFeedStorage(str(tmp_path / "sub" / "a.jsonl"), feed_options=JSONL)
    storage.open(None).close()  # type: ignore[arg-type]
    assert not caplog.records
    with storage.open(None) as file:  # type: ignore[arg-type]
        file.write(b"1")
    assert "could not be read: as asked" in caplog.text
    assert (tmp_path / "sub" / "a.jsonl").read_bytes() == b"1"


SPIDER = """
import os, signal
from scrapy import Request, Spider, signals
from scrapy_focus.engine.feeds import mend_feeds

class Mend:
    @classmethod
    def from_crawler(cls, crawler):
        mend = cls()
        mend.crawler = crawler
        return mend

    def open_spider(self):
        mend_feeds(self.crawler)

    def process_item(self, item):
        return item

class Items(Spider):
    name = "items"
    custom_settings = {
        "ADDONS": {"scrapy_focus.Addon": 500}, "ITEM_PIPELINES": {Mend: 1}, "FOCUS_ITEM_ID": "item_id", "FOCUS_PROGRESS": "off",
        "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False, "FOCUS_POLICY": "scrapy_focus.policies.orderings.BreadthFirst",
    }

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.left = int(spider.kill)
        crawler.signals.connect(spider.scraped, signals.item_scraped)
        return spider

    async def start(self):
        yield Request(self.url)

    def scraped(self, item):
        self.left -= 1
        if not self.left:
            for name, part in (("a.jsonl", '{"page": "cu'), ("a.csv", 'x,1,"cut\\n')):  # as a short write leaves it
                with open(name, "a") as file:
                    file.write(part)
            os.kill(os.getpid(), signal.SIGKILL)

    def parse(self, response):
        page = response.url.partition("/page/")[2]
        for i in range(4):
            yield {"page": page, "i": i, "text": 'a "b",\\n' * (1 + 97 * len(page + page * i))}
        yield from response.follow_all(css="a")
"""


def test_killed_while_it_writes_an_item(tmp_path: Path) -> None:
    """In a job that is killed in the middle of a line, each item is in the feeds at least once, with one id, and no line is broken."""
    (tmp_path / "items.py").write_text(SPIDER)
    command = [
        sys.executable,
        "-m",
        "scrapy",
        "runspider",
        "items.py",
        "-s",
        "JOBDIR=job",
        "-o",
        "a.jsonl",
        "-o",
        "a.csv",
    ]
    with MockSite() as site:
        for kill in (2, 5, 11, 16, 3, 0):
            arguments = ["-a", f"url={site.url('/page/0/12')}", "-a", f"kill={kill}"]
            done = run_forked(
                [*command, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=HANG,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            )  # fmt: skip
            assert done.returncode == (-signal.SIGKILL if kill else 0), done.stderr[-3000:]
    items = read(tmp_path / "a.jsonl")
    with (tmp_path / "a.csv").open(newline="") as file:
        table = [row for row in csv.DictReader(file) if row["i"] != "i"]
    expected = {(path.removeprefix("/page/"), i) for path in tree_paths(12) for i in range(4)}
    assert {(item["page"], item["i"]) for item in items} == expected
    assert {(row["page"], int(row["i"])) for row in table} == expected
    names = {(item["page"], item["i"], item["item_id"], item["text"]) for item in items}
    assert len(names) == len({item["item_id"] for item in items}) == len(expected)
    assert {(row["page"], int(row["i"]), row["item_id"], row["text"]) for row in table} == names
    assert max(Counter(item["item_id"] for item in items).values()) <= 6
