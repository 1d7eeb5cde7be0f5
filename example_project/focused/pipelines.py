"""Stores each file once."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import DropItem

from focused.items import DataFile
from scrapy_focus.core.printable import printable_json

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

FIELDS = ("url", "mime", "size", "sha256", "page", "anchor", "path")  # of each line of the manifest


class StoreFiles:
    """Writes the body of a file under ``<out>/files/<sha256>/<name>`` and a line to ``<out>/manifest.jsonl``.

    A file that stands in the manifest is dropped, so what is linked under many URLs is stored, counted and rewarded
    once, over all runs with the same folder. The line comes last: a file without one, left by a crawl that was killed
    in between, is stored again. One crawl at a time may use a folder.

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
        self.resumed = resumed
        self.listed: dict[str, dict[str, Any]] = {}  # line of the manifest for each SHA-256

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        job = crawler.settings["JOBDIR"]
        return cls(Path(getattr(crawler.spider, "out", ".")), resumed=bool(job) and Path(job, "focus").exists())

    def open_spider(self) -> None:
        for unfinished in self.folder.glob(".*.tmp"):
            shutil.rmtree(unfinished)
        if not self.manifest.exists():
            return
        lines = self.manifest.read_bytes().splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):  # cut by a kill
            os.truncate(self.manifest, self.manifest.stat().st_size - len(lines.pop()))
        self.listed = {line["sha256"]: line for line in map(json.loads, lines)}

    def process_item(self, item: Any) -> Any:
        if not isinstance(item, DataFile):
            return item
        item.sha256 = hashlib.sha256(item.body).hexdigest()
        line = self.listed.get(item.sha256)
        if line is None:
            item.path = str(self.store(item))
            self.note(item)
        elif self.resumed and line["url"] == item.url:
            item.path = line["path"]
        else:
            raise DropItem(f"{item.url} is a copy of {line['path']}", log_level="DEBUG")
        item.body = b""
        return item

    def store(self, item: DataFile) -> Path:
        """Write a file, and return where it is: either all of it is there or nothing."""
        folder = self.folder / item.sha256
        temporary = self.folder / f".{item.sha256}.tmp"
        for leftover in (temporary, folder):
            shutil.rmtree(leftover, ignore_errors=True)
        temporary.mkdir(parents=True)
        (temporary / item.name).write_bytes(item.body)
        temporary.rename(folder)
        return folder / item.name

    def note(self, item: DataFile) -> None:
        """Add a line to the manifest."""
        line = {name: getattr(item, name) for name in FIELDS}
        with self.manifest.open("a", encoding="utf-8", newline="\n") as file:
            file.write(printable_json(line) + "\n")
        self.listed[item.sha256] = line
