"""What the lists of crawls say of the contents of pages, and where their texts are stored."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.finders.kit.records.folder_names import TEXTS
from scrapy_focus.finders.kit.records.lines import text_in

if TYPE_CHECKING:
    from collections.abc import Iterable

_FILE = re.compile(rf"{TEXTS}/\w[\w.\- ]*\.(?:txt|md)")  # as a crawl names them: in the folder, and not hidden


class Contents(NamedTuple):
    """The contents of a page; ``""`` where unknown."""

    author: str = ""
    published: str = ""  # YYYY-MM-DD
    text_file: str = ""  # path, relative to the folder
    markdown_file: str = ""  # likewise

    @property
    def path(self) -> str:
        """The file to read, the text if there are both."""
        return self.text_file or self.markdown_file


NO_CONTENTS = Contents()


def contents_of(line: dict[str, Any]) -> Contents:
    """Return what a line of a list says; no path outside the folder, as the list may be from an unknown source."""
    files = (text_in(line, name) for name in ("text_file", "markdown_file"))
    safe = (path if _FILE.fullmatch(path) else "" for path in files)
    return Contents(text_in(line, "author"), text_in(line, "published"), *safe)


def content_columns(all_contents: Iterable[Contents]) -> list[str]:
    """Return the columns of a table for these: those of which any is known, in the order of the fields."""
    known = [any(values) for values in zip(*all_contents, strict=True)]
    return [name for name, is_known in zip(Contents._fields, known, strict=False) if is_known]
