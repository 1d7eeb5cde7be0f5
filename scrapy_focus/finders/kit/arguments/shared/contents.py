"""What a crawl keeps of the pages that it fetches."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from scrapy.exceptions import UsageError
from scrapy.utils.misc import load_object

from scrapy_focus.core.errors import MissingPackageError
from scrapy_focus.core.extras import require_extra
from scrapy_focus.finders.kit.arguments.argument import Arguments, argument
from scrapy_focus.finders.kit.arguments.readers import read_yes
from scrapy_focus.web.page_texts import require_text

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy.crawler import Crawler

    from scrapy_focus.finders.kit.arguments.argument import Names

_PIPELINE = "scrapy_focus.finders.kit.spiders.page_texts.StoreTexts"
_FORMATS = ("text", "markdown")


@dataclass(frozen=True, kw_only=True)
class ContentArguments(Arguments):
    """What a crawl keeps of the pages that it fetches.

    Arguments
    ---------
    text
        ``yes``: store the main text of each page that counts as found, without menus and other surroundings. It needs
        ``pip install "scrapy-focus[text]"``.
    markdown
        ``yes``: the same as Markdown, with headings, lists, tables and links. Both may be given.
    warc
        Whether to store all requests and answers in the folder as a web archive, ``crawl-00001.warc.gz`` (``yes``). It
        needs ``pip install "scrapy-focus[warc]"``.
    """

    heading = "contents"

    #: What the crawl stores instead, if it stores no texts of pages.
    instead_of_texts: ClassVar[str] = ""

    text: bool = argument(read_yes, default="no", switch="yes", help="store the main text of each page found")
    markdown: bool = argument(
        read_yes, default="no", switch="yes", help="store the main text of each page found as Markdown"
    )
    warc: bool = argument(
        read_yes, default="no", switch="yes",
        help="store all requests and answers in the folder, too, as a web archive (crawl-00001.warc.gz)",
    )  # fmt: skip

    @property
    @abstractmethod
    def found_in(self) -> Path | None:
        """The folder of the crawl, ``None`` if it has none."""

    @property
    def contents(self) -> tuple[str, ...]:
        """The fields of an item for the contents of its page, ``()`` if they are not stored."""
        given = [name for name in _FORMATS if getattr(self, name)]
        if not given:
            return ()
        suffix = "" if self.found_in is None else "_file"
        return ("title", "language", "author", "published", *(f"{name}{suffix}" for name in given))

    def check(self, names: Names) -> None:
        for name in _FORMATS:
            if getattr(self, name):
                self._check_texts(names.of(name))
        if self.warc:
            _check_warc(names.of("warc"), self.found_in)
        super().check(names)

    def _check_texts(self, option: str) -> None:
        """Raise ``UsageError`` if no texts can be stored."""
        if self.instead_of_texts:
            raise UsageError(
                f"{option} is for focus topic, focus structured and focus important; {self.instead_of_texts}"
            )
        try:
            require_text(option)
        except MissingPackageError as error:
            raise UsageError(str(error)) from error

    def set_up(self, crawler: Crawler) -> None:
        if self.contents:
            crawler.settings.setdefault_in_component_priority_dict("ITEM_PIPELINES", load_object(_PIPELINE), 200)
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
