"""The files that a crawl found, for its page and its table."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.printable import counted, inflected, printable
from scrapy_focus.finders.files.found_files import read_list
from scrapy_focus.finders.kit.page.output import Column, Columns, Output, irrelevance
from scrapy_focus.finders.kit.page.sums import sums_table
from scrapy_focus.finders.kit.page.words import number_of, said_of, size_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from scrapy_focus.finders.files.found_files import Listed
    from scrapy_focus.finders.kit.page.sums import Sums
    from scrapy_focus.finders.kit.records.notes import Notes
    from scrapy_focus.finders.kit.sheets.tables import Table


_ABOUT_COLUMNS = ("relevance", "words", "why")  # of the table, if the user said what the files are about


class FilesOutput(Output):
    """The files of a folder."""

    about = "files"
    spider = "datasets"
    lists = ()
    noun = "file"
    listed_noun = "file"
    fruitless = "links of kinds that led to no file, mostly to other pages"
    table_name = "files.csv"
    table_columns = (
        "name", "kind", "size", "state", "host", "section", "url", "page", "anchor", "path", "crawl", "at", "mime",
        "sha256", "cut",
    )  # fmt: skip

    def __init__(self, folder: Path, notes: Notes) -> None:
        self.finds = read_list(folder, notes.crawl)
        self.has_relevance = any(file.relevance is not None for file in self.finds)
        if self.has_relevance:
            self.finds.sort(key=irrelevance)
        self._about = printable(said_of(notes.last_run, "about"))
        self._declared = _declared(notes.state.get("declared"))
        self._has_several_hosts = len({file.host for file in self.finds}) > 1
        self.columns = Columns(
            name=Column("Name", lambda file: file.name),
            kind=Column("Type", lambda file: file.kind),
            measure=Column("Size", lambda file: file.size, size_text),
            place=Column("Section", self._place),
        )

    def _place(self, file: Listed) -> str:
        return file.host + file.section if self._has_several_hosts else file.section

    def counts_as_found(self, notes: Notes) -> set[str] | None:
        if notes.crawl <= 1:
            return None
        return {file.url for file in self.finds if file.state == "new"}  # an earlier crawl found the others

    def summary(self, sums: Sums) -> str:
        if not self.finds:
            return "No file was found."
        return (
            f"{counted(len(self.finds), 'file')}, {size_text(sums.size)}, of {counted(len(sums.kinds), 'type')}, on "
            f"{counted(len(sums.hosts), 'host')}."
        )

    @property
    def sought(self) -> str:
        return "relevant file" if self._about else self.noun

    def facts(self) -> list[str]:
        if not self.has_relevance:
            return self._declared
        total = sum(file.relevance or 0.0 for file in self.finds)
        to = f' to "{self._about}"' if self._about else ""
        said = [
            *self._declared,
            f"The files are ordered by their relevance{to}, from 0 to 1, as judged by their names, their links and the "
            f"titles of the pages with the links. In all it is {total:,.1f}: so many relevant files are to be "
            "expected.",
        ]
        if only := sum(file.relevance is not None and not file.path and file.state != "gone" for file in self.finds):
            said.append(f"{counted(only, 'file')} {inflected(only, 'is', 'are')} listed without being stored.")
        return said

    def relevance(self, find: Listed) -> float | None:
        return find.relevance

    def words(self, find: Listed) -> str:
        return find.words

    def further_columns(self) -> list[str]:
        return [*_ABOUT_COLUMNS] if self.has_relevance else []

    def table_rows(self) -> Iterable[Sequence[Any]]:
        if not self.has_relevance:
            return super().table_rows()
        cells = attrgetter(*self.table_columns, *_ABOUT_COLUMNS)
        return (["" if cell is None else cell for cell in cells(file)] for file in self.finds)

    def sums(self, sums: Sums) -> Iterable[Table | None]:
        caption = "By section: the beginning of the address of the page with the link"
        for name, said, head, added_up in (
            ("kinds", "By type", "Type", sums.kinds),
            ("hosts", "By host", "Host", sums.hosts),
            ("sections", caption, "Section", sums.sections),
        ):
            heads = [head, "Files", "Size"]
            yield sums_table(
                name, said, heads, added_up, measure=lambda files, size: size_text(size), states=sums.states
            )

    def host(self, find: Listed) -> str:
        return find.host

    def section(self, find: Listed) -> str:
        return find.section

    def state(self, find: Listed) -> str:
        return find.state

    def path(self, find: Listed) -> str:
        return find.path

    def is_cut(self, find: Listed) -> bool:
        return bool(find.cut)


def _declared(counts: Any) -> list[str]:
    """Say how many files catalogues and pages declare."""
    read, files, elsewhere = (
        int(number_of(counts.get(f"declared/{name}")) or 0) if isinstance(counts, dict) else 0
        for name in ("datasets", "files", "elsewhere")
    )
    if not files and not read:
        return []
    apart = f", {elsewhere:,} of them on hosts that are not crawled" if elsewhere else ""
    of = f"Catalogues of the site list {counted(read, 'data set')}. " if read else ""
    return [f"{of}Catalogues and pages declare {counted(files, 'wanted file')}{apart}."]
