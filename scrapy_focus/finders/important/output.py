"""The important pages that a crawl found, for its page and its table."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.printable import counted, printable
from scrapy_focus.core.shown_urls import web_link
from scrapy_focus.finders.important.ranking import read_ranking
from scrapy_focus.finders.kit.page.output import Column, Columns, Output
from scrapy_focus.finders.kit.page.sums import sums_table
from scrapy_focus.finders.kit.records.contents import content_columns
from scrapy_focus.finders.kit.records.folder_names import GRAPH
from scrapy_focus.finders.kit.sheets.tables import Cell, Row, Table, first_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from scrapy_focus.finders.important.ranking import RankedPage
    from scrapy_focus.finders.kit.page.output import FoundThrough
    from scrapy_focus.finders.kit.page.sums import Sums
    from scrapy_focus.finders.kit.records.notes import Answer, Notes

_NEXT = 50  # pages not fetched that are listed


class ImportantOutput(Output):
    """The pages known by links in a folder; those that were fetched are finds."""

    about = "importance"
    spider = "important"
    lists = (GRAPH,)
    harvested = "importance"
    has_kinds = False
    has_several_links = True
    table_name = "importance.csv"
    table_columns = (
        "rank", "importance", "links", "fetched", "url", "title", "depth", "status", "page", "anchor", "at",
    )  # fmt: skip
    columns = Columns(
        name=Column("Page", lambda page: page.title),
        kind=Column("Rank", lambda page: f"{page.rank:,}"),
        measure=Column(
            "Importance", lambda page: round(1000 * page.importance), lambda thousandths: f"{thousandths / 1000:,.2f}"
        ),
        place=Column("Linked from", lambda page: counted(page.links, "page")),
    )

    def __init__(self, folder: Path, notes: Notes) -> None:
        self.ranking = read_ranking(folder)
        self.finds = [page for page in self.ranking if page.is_fetched]

    def counts_as_found(self, notes: Notes) -> set[str] | None:
        return None

    def worth(self, answers: Sequence[Answer]) -> list[float]:
        """Return the importance of the page of each outcome, in per cent of that of all known pages."""
        everything = sum(page.importance for page in self.ranking) or 1.0
        left = {page.url: page.importance for page in self.finds}  # a page counts once
        return [100 * left.pop(answer.moved_to or answer.url, 0.0) / everything for answer in answers]

    def summary(self, sums: Sums) -> str:
        n_links = sum(page.links for page in self.ranking)
        known = counted(len(self.ranking), "page")
        return f"{counted(len(self.finds), 'page')} of {known} that it knows from {counted(n_links, 'link')}."

    def sums(self, sums: Sums) -> Iterable[Table | None]:
        caption = "By section (the beginning of the address), with its share of all importance"
        everything = max(1, sums.size)
        for name, said, head, added_up in (
            ("hosts", "By host, with its share of all importance", "Host", sums.hosts),
            ("sections", caption, "Section", sums.sections),
        ):
            yield sums_table(
                name, said, [head, "Pages", "Importance"], added_up, states={},
                measure=lambda pages, importance: f"{100 * importance / everything:.1f} %",
            )  # fmt: skip

    def facts(self) -> list[str]:
        number = len(self.finds)
        if not number or number == len(self.ranking):
            return []
        found = sum(page.is_fetched for page in self.ranking[:number])
        return [
            f"Of the {counted(number, 'page')} that are most important by all links seen, it fetched "
            f"{found:,}. The others are listed below."
        ]

    def waiting(self) -> Table | None:
        waiting = [page for page in self.ranking if not page.is_fetched]
        rows = [
            Row(printable(page.url), [
                Cell(f"{page.rank:,}"), Cell(f"{page.importance:,.2f}"), Cell(f"{page.links:,}"),
                Cell(printable(page.anchor), "words"),
                Cell(printable(page.page), "words", web_link(page.page)),
            ], web_link(page.url))
            for page in waiting[:_NEXT]
        ]  # fmt: skip
        if not rows:
            return None
        more = first_of(len(waiting), _NEXT)
        caption = f"Pages that were linked but not fetched, the most important first, by the links seen so far.{more}"
        heads = ["Address", "Rank", "Importance", "Linked from", "Text of a link", "On page"]
        return Table("waiting", caption, heads, rows)

    def further(self, find: RankedPage) -> Sequence[FoundThrough]:
        return [each for each in find.through if each.page != find.page]

    def path(self, find: RankedPage) -> str:
        return find.contents.path

    def further_columns(self) -> list[str]:
        return content_columns(page.contents for page in self.ranking)

    def table_rows(self) -> Iterable[Sequence[Any]]:
        further = (f"contents.{name}" for name in self.further_columns())
        return map(attrgetter(*self.table_columns, *further), self.ranking)
