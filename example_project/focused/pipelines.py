"""Stores each file once."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import DropItem

from focused.items import DataFile

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler


class StoreFiles:
    """Writes the body of a file under ``<out>/files/<sha256>/<name>``, and drops what is there already.

    So a file that is linked under many URLs is stored, counted and rewarded once, over all runs with the same folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(Path(getattr(crawler.spider, "out", "."), "files"))

    def process_item(self, item: Any) -> Any:
        if not isinstance(item, DataFile):
            return item
        item.sha256 = hashlib.sha256(item.body).hexdigest()
        folder = self.folder / item.sha256
        if folder.exists():
            raise DropItem(f"{item.url} is a copy of {next(folder.iterdir(), folder)}", log_level="DEBUG")
        temporary = self.folder / f".{item.sha256}.tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        (temporary / item.name).write_bytes(item.body)
        temporary.rename(folder)
        item.path = str(folder / item.name)
        item.body = b""
        return item
