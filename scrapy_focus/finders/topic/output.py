"""The pages on a topic that a crawl found, for its page and its table."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.printable import counted, inflected
from scrapy_focus.finders.kit.page.output import Column, Columns, Output
from scrapy_focus.finders.kit.page.sums import SECTIONS, sums_table
from scrapy_focus.finders.kit.records.contents import content_columns
from scrapy_focus.finders.kit.records.folder_names import PAGES
from scrapy_focus.finders.topic.pages import read_pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from scrapy_focus.finders.kit.page.sums import Sums
    from scrapy_focus.finders.kit.records.notes import Notes
    from scrapy_focus.finders.kit.sheets.tables import Table
    from scrapy_focus.finders.topic.pages import Page


class TopicOutput(Output):
    """The pages of a folder; those on the topic are finds."""

    about = "topic"
    spider = "topic"
    lists = (PAGES,)
    quality = " on the topic"
    fruitless = "links of kinds that led to no page on the topic"
    led_to = "pages on the topic"
    table_name = "pages.csv"
    table_columns = (
        "title", "url", "relevance", "host", "domain", "language", "depth", "page", "anchor", "why", "at",
    )  # fmt: skip
    columns = Columns(
        name=Column("Page", lambda page: page.title),
        kind=Column("Language", lambda page: page.language.lower().partition("-")[0][:20] or "unknown"),
        measure=Column("Relevance", lambda page: round(100 * page.relevance), lambda per_cent: f"{per_cent} %"),
        place=Column("Host", lambda page: page.host),
    )

    def __init__(self, folder: Path, notes: Notes) -> None:
        self.pages = read_pages(folder)
        self.finds = [page for page in self.pages if page.is_relevant]

    def summary(self, sums: Sums) -> str:
        n_read, n_found = len(self.pages), len(self.finds)
        there = f"{counted(n_read, 'page')} {inflected(n_read, 'was', 'were')} read"
        on = f", on {counted(len(sums.hosts), 'host')}" if self.finds else ""
        return f"{there}; {n_found:,} of them {inflected(n_found, 'is', 'are')} on the topic{on}."

    def sums(self, sums: Sums) -> Iterable[Table | None]:
        is_one_host = len(sums.hosts) == 1
        for name, said, head, added_up in (
            ("hosts", "By host", "Host", sums.hosts),
            ("kinds", "By language, as declared by the pages", "Language", sums.kinds),
            ("sections", SECTIONS, "Section", sums.sections if is_one_host else []),
        ):
            yield sums_table(
                name, said, [head, "Pages", "Relevance"], added_up, states={}, adds_up=False,
                measure=lambda pages, per_cent: f"{per_cent / max(1, pages):.0f} %",
            )  # fmt: skip

    def host(self, find: Page) -> str:
        return find.host

    def path(self, find: Page) -> str:
        return find.contents.path

    def further_columns(self) -> list[str]:
        return content_columns(page.contents for page in self.pages)

    def table_rows(self) -> Iterable[Sequence[Any]]:
        further = (f"contents.{name}" for name in self.further_columns())
        return map(attrgetter(*self.table_columns, *further), self.pages)
