"""Read the list of a search for a topic: a line for each page that it fetched, on topic or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.finders.kit.records.contents import NO_CONTENTS, Contents, contents_of
from scrapy_focus.finders.kit.records.folder_names import PAGES
from scrapy_focus.finders.kit.records.lines import lines_of, number_in, text_in
from scrapy_focus.finders.kit.spiders.items import RELEVANT

if TYPE_CHECKING:
    from pathlib import Path


class Page(NamedTuple):
    """A page that was fetched."""

    title: str
    url: str
    relevance: float  # from 0 to 1
    host: str
    domain: str
    language: str  # as declared by the page
    depth: int  # clicks from a seed
    page: str  # URL of the page with the link, "" for a seed
    anchor: str  # text of the link
    why: str  # why it was fetched
    at: str  # ISO 8601
    contents: Contents = NO_CONTENTS

    @property
    def is_relevant(self) -> bool:
        """Whether it counts as on topic."""
        return self.relevance >= RELEVANT


def read_pages(folder: Path) -> list[Page]:
    """Return the pages of a folder in the order in which they were fetched; linear in the lines of its list.

    Raises
    ------
    ConfigError
        If a line is malformed, except a last one that is being written.
    StorageError
        If it cannot be read.
    """
    found: dict[str, Page] = {}
    for line in lines_of(folder / PAGES):
        last = _last_step(line)
        url, relevance = text_in(line, "url"), line.get("relevance")
        found[url] = Page(
            title=text_in(line, "title"), url=url,
            relevance=float(relevance) if isinstance(relevance, (int, float)) and 0 <= relevance <= 1 else 0.0,
            host=text_in(line, "host"), domain=text_in(line, "domain"), language=text_in(line, "language"),
            depth=number_in(line, "depth"), page=text_in(last, "url"), anchor=text_in(last, "anchor"),
            why=text_in(line, "why"), at=text_in(line, "fetched_at"), contents=contents_of(line),
        )  # fmt: skip
    return [*found.values()]


def _last_step(line: dict[str, Any]) -> dict[str, Any]:
    path = line.get("path")
    last = path[-1] if isinstance(path, list) and path else None
    return last if isinstance(last, dict) else {}
