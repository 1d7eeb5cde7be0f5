"""What a crawl keeps of the pages that it fetches."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from scrapy_focus.core.errors import MissingPackageError
from scrapy_focus.core.extras import require_extra
from scrapy_focus.finders.kit.arguments.argument import Arguments, argument
from scrapy_focus.finders.kit.arguments.readers import read_yes

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy.crawler import Crawler

    from scrapy_focus.finders.kit.arguments.argument import Names


@dataclass(frozen=True, kw_only=True)
class ContentArguments(Arguments):
    """What a crawl keeps of the pages that it fetches.

    Arguments
    ---------
    warc
        Whether to store all requests and answers in the folder as a web archive, ``crawl-00001.warc.gz`` (``yes``). It
        needs ``pip install "scrapy-focus[warc]"``.
    """

    heading = "contents"

    warc: bool = argument(
        read_yes, default="no", switch="yes",
        help="store all requests and answers in the folder, too, as a web archive (crawl-00001.warc.gz)",
    )  # fmt: skip

    @property
    @abstractmethod
    def found_in(self) -> Path | None:
        """The folder of the crawl, ``None`` if it has none."""

    def check(self, names: Names) -> None:
        if self.warc:
            _check_warc(names.of("warc"), self.found_in)
        super().check(names)

    def set_up(self, crawler: Crawler) -> None:
        if self.warc:
            crawler.settings.set("FOCUS_WARC", str(self.found_in), "spider")
        super().set_up(crawler)


def _check_warc(option: str, folder: Path | None) -> None:
    """Raise ``UsageError`` if no web archive can be written."""
    if folder is None:
        raise UsageError(
            f"{option} needs the folder of the crawl, which has none; set FOCUS_WARC to store the archive elsewhere"
        )
    try:
        require_extra(option, "warc", "warcio")
    except MissingPackageError as error:
        raise UsageError(str(error)) from error
