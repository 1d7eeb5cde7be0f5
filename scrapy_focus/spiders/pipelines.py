"""Stores each file once."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import DropItem

from scrapy_focus.core.printable import printable_json, printable_logger
from scrapy_focus.spiders.items import DataFile, SkippedFile

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

logger = printable_logger(__name__)

FIELDS = ("url", "mime", "size", "sha256", "page", "anchor", "path")  # of each line of the manifest


class StoreFiles:
    """Writes the body of a file under ``<out>/files/<sha256>/<name>`` and a line to ``<out>/manifest.jsonl``.

    A file that stands in the manifest is dropped, so what is linked under many URLs is stored, counted and rewarded
    once, over all runs with the same folder. The line comes last: a file without one, left by a crawl that was killed
    in between, is stored again. What was too large has a line with the reason in ``<out>/skipped.jsonl``, and is said
    once more at the end. One crawl at a time may use a folder.

    Parameters
    ----------
    out
        The folder.
    resumed
        Whether this crawl goes on with a job. Then a file that comes from the URL in its line was in flight when the
        job was killed: its page was not counted yet, so the item is let through, without another line.
    """

    def __init__(self, out: Path, *, resumed: bool = False) -> None:
        self.folder = out / "files"
        self.manifest = out / "manifest.jsonl"
        self.skips = out / "skipped.jsonl"
        self.resumed = resumed
        self.skipped: set[str] = set()  # URLs that stand there
        self.listed: dict[str, dict[str, Any]] = {}  # line of the manifest for each SHA-256

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        job = crawler.settings["JOBDIR"]
        return cls(Path(getattr(crawler.spider, "out", ".")), resumed=bool(job) and Path(job, "focus").exists())

    def open_spider(self) -> None:
        for unfinished in self.folder.glob(".*.tmp"):
            shutil.rmtree(unfinished)
        self.listed = {line["sha256"]: line for line in _lines_of(self.manifest)}
        self.skipped = {line["url"] for line in _lines_of(self.skips)}

    def close_spider(self) -> None:
        if self.skipped:
            logger.warning("%d files were skipped; %s says which, and why", len(self.skipped), self.skips)

    def process_item(self, item: Any) -> Any:
        if isinstance(item, SkippedFile):
            self.skip(item)
        if not isinstance(item, DataFile):
            return item
        item.sha256 = hashlib.sha256(item.content).hexdigest()
        line = self.listed.get(item.sha256)
        if line is None:
            item.path = str(self.store(item))
            self.note(item)
        elif self.resumed and line["url"] == item.url:
            item.path = line["path"]
        else:
            raise DropItem(f"{item.url} is a copy of {line['path']}", log_level="DEBUG")
        item.content = b""
        return item

    def skip(self, item: SkippedFile) -> None:
        """Add a line to what was skipped.

        Raises
        ------
        DropItem
            Always: it is nothing that was found.
        """
        if item.url not in self.skipped:
            self.skipped.add(item.url)
            _add_line(self.skips, asdict(item))
        raise DropItem(f"{item.url} was skipped: {item.reason}", log_level="DEBUG")

    def store(self, item: DataFile) -> Path:
        """Write a file, and return where it is: either all of it is there or nothing."""
        folder = self.folder / item.sha256
        temporary = self.folder / f".{item.sha256}.tmp"
        for leftover in (temporary, folder):
            shutil.rmtree(leftover, ignore_errors=True)
        temporary.mkdir(parents=True)
        (temporary / item.name).write_bytes(item.content)
        temporary.rename(folder)
        return folder / item.name

    def note(self, item: DataFile) -> None:
        """Add a line to the manifest."""
        line = {name: getattr(item, name) for name in FIELDS}
        _add_line(self.manifest, line)
        self.listed[item.sha256] = line


def _lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file, and cut off a last one that is not whole."""
    if not path.exists():
        return []
    lines = path.read_bytes().splitlines(keepends=True)
    if lines and not lines[-1].endswith(b"\n"):  # cut by a kill
        os.truncate(path, path.stat().st_size - len(lines.pop()))
    return [json.loads(line) for line in lines]


def _add_line(path: Path, line: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(printable_json(line) + "\n")
