"""Store each file once, and keep the list of files."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import DropItem

from scrapy_focus.core.printable import counted, inflected, printable_logger
from scrapy_focus.engine.host import host_of
from scrapy_focus.finders.files.file_list import FileList
from scrapy_focus.finders.kit.records.crawls import next_run
from scrapy_focus.finders.kit.records.folder_names import FILES
from scrapy_focus.finders.kit.records.lines import add_line, cut_line, read_lines
from scrapy_focus.finders.kit.spiders.items import DataFile, GoneFile, SkippedFile

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from scrapy_focus.finders.files.file_list import Known, Verdict
    from scrapy_focus.finders.files.next_crawl import Again

logger = printable_logger(__name__)

#: Fields of a line of the manifest: those of the item, and the crawl, time and number of requests when it was found.
FIELDS = (
    "url", "mime", "size", "sha256", "page", "anchor", "path", "name", "state", "link", "etag", "last_modified",
    "cut",
)  # fmt: skip
#: Further fields, if the user said what the files are about.
ABOUT_FIELDS = ("relevance", "words")


class StoreFiles:
    """Writes files to ``<out>/files/<host>/<section>/<name>``, with a line each in ``<out>/manifest.jsonl``.

    Content that this crawl already received from another URL is dropped, so a file with several URLs is stored,
    counted and rewarded once. A file that an earlier crawl of the folder found is an item like any other, with the
    state ``same`` or ``changed``; its old versions stay. A file that is gone also has a line, but is not an item.

    A file that is less relevant than the user wants has a line without a path: it is neither stored nor an item.

    The line is written last: a file without one, left by a killed crawl, is stored again. Files that were too large
    are listed with the reason in ``<out>/skipped.jsonl``, and their number is logged at the end. Only one crawl at a
    time may use a folder.

    Parameters
    ----------
    out
        The folder.
    resumed
        Whether this crawl resumes a job. Then a file that is received again from the URL in its line was in flight
        when the job was killed: it was not counted yet, so the item passes, without another line.
    crawl
        The number of the crawl; by default, from the folder.
    """

    def __init__(self, out: Path, *, resumed: bool = False, crawl: int | None = None) -> None:
        self.out = out
        self.folder = out / FILES
        self.manifest = out / "manifest.jsonl"
        self.skips = out / "skipped.jsonl"
        self.resumed = resumed
        self.crawl = crawl
        self.comes_back = False  # whether this crawl revisits files
        self.crawler: Crawler | None = None
        self.skipped: set[str] = set()  # URLs in that list
        self.files: FileList

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        job = crawler.settings["JOBDIR"]
        again: Again | None = getattr(crawler.spider, "again", None)
        out = Path(getattr(crawler.spider, "out", "."))
        run = next_run(out, Path(job) if job else None) if again is None else again.run
        pipeline = cls(out, resumed=run.resumes, crawl=run.number)
        pipeline.crawler = crawler
        if again is not None:
            pipeline.files = again.files
            pipeline.comes_back = again.comes_back
        return pipeline

    def open_spider(self) -> None:
        for unfinished in self.folder.glob(".*.tmp"):
            shutil.rmtree(unfinished) if unfinished.is_dir() else unfinished.unlink()
        if self.crawl is None:
            last = next_run(self.out, None).number - 1
            self.crawl = max(last, 1) if self.resumed else last + 1
        if not hasattr(self, "files"):
            self.files = FileList(self.out, self.crawl)
        cut_line(self.skips)
        self.skipped = {line.get("url", "") for line in read_lines(self.skips, url=str)}

    def close_spider(self) -> None:
        notes = None if self.crawler is None else getattr(self.crawler.spider, "notes", None)
        if notes is not None:
            notes.list_pages()
        if self.skipped:
            were = inflected(len(self.skipped), "was", "were")
            said = f"{counted(len(self.skipped), 'file')} {were} skipped; {self.skips} lists them with reasons"
            logger.warning("%s", said)

    def process_item(self, item: Any) -> Any:
        if isinstance(item, SkippedFile):
            self.skip(item)
        if isinstance(item, GoneFile):
            self.miss(item)
        if isinstance(item, DataFile):
            self.keep(item)
        return item

    def keep(self, item: DataFile) -> None:
        """Store a file that is not yet stored, and list it once for this crawl.

        Raises
        ------
        DropItem
            If this crawl has listed the file, or the same content at another URL.
        """
        known = self.files.before.get(item.url) if item.is_unchanged else None
        if known is None:
            item.sha256 = hashlib.sha256(item.content).hexdigest()
        else:
            _remember(item, known)
        verdict = self.files.judge(item.url, item.name, item.sha256)
        item.path, item.state = verdict.path, verdict.state
        if not item.is_relevant:
            self.list_only(item, verdict)
        if not verdict.is_stored and known is None:
            self.store(item)
        if not verdict.is_noted:
            self.note(item, verdict)
        if verdict.is_again or (verdict.is_noted and not self.resumed):
            raise DropItem(f"{item.url} is a copy of {item.path}", log_level="DEBUG")
        if not verdict.is_noted:
            self.count(item.state)
            if item.cut:
                self.count("cut")
        item.content = b""

    def list_only(self, item: DataFile, verdict: Verdict) -> None:
        """List a file that is not relevant enough, without storing it.

        Raises
        ------
        DropItem
            Always: it is not a find.
        """
        if not verdict.is_stored:
            item.path = ""
        if not verdict.is_noted:
            self.note(item, verdict)
        raise DropItem(f"{item.url} is listed only, as it is not relevant enough", log_level="DEBUG")

    def skip(self, item: SkippedFile) -> None:
        """Add a line to the list of skipped files.

        Raises
        ------
        DropItem
            Always: it is not a find.
        """
        if item.url not in self.skipped:
            self.skipped.add(item.url)
            add_line(self.skips, asdict(item))
        raise DropItem(f"{item.url} was skipped: {item.reason}", log_level="DEBUG")

    def miss(self, item: GoneFile) -> None:
        """Add a line for a file that no longer exists.

        Raises
        ------
        DropItem
            Always: it is not a find.
        """
        known = self.files.last(item.url) if self.comes_back else self.files.before.get(item.url)
        if known is not None and (self.comes_back or item.url not in self.files.now):
            line = {name: getattr(known, name) for name in FIELDS}
            line |= _about(known)
            self.files.note({**line, "state": "gone", **self._when()}, is_copy=known.is_copy)
            if not known.is_copy:
                self.count("gone")
        raise DropItem(f"{item.url} is gone", log_level="DEBUG")

    def store(self, item: DataFile) -> None:
        """Write a file to its path, completely or not at all."""
        path = self.out / item.path
        temporary = self.folder / f".{item.sha256}.tmp"
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(item.content)
        temporary.rename(path)

    def note(self, item: DataFile, verdict: Verdict) -> None:
        """Add a line for a file."""
        line = {name: getattr(item, name) for name in FIELDS}
        self.files.note({**line, **_about(item), "why": item.why, **self._when()}, is_copy=verdict.is_copy)

    def count(self, state: str) -> None:
        """Count a file in a state."""
        if self.crawler is not None and self.crawler.stats is not None:
            self.crawler.stats.inc_value(f"file/{state}")

    def _when(self) -> dict[str, Any]:
        """Return the crawl, the time and the number of requests so far."""
        requests = 0
        if self.crawler is not None and (host := host_of(self.crawler)) is not None:
            requests = int(host.status().used["requests"])
        return {"crawl": self.crawl, "at": datetime.now(UTC).isoformat(timespec="seconds"), "requests": requests}


def _about(found: DataFile | Known) -> dict[str, Any]:
    """Return the fields on what a file is about; none if the user did not say."""
    return {} if found.relevance is None else {name: getattr(found, name) for name in ABOUT_FIELDS}


def _remember(item: DataFile, known: Known) -> None:
    """Fill in what a response without a body lacks."""
    item.sha256, item.size, item.mime, item.name = known.sha256, known.size, known.mime, known.name
    item.link, item.cut = known.link, known.cut
