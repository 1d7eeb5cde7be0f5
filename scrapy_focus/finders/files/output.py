"""The files that a crawl found, for its page and its table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.printable import counted
from scrapy_focus.finders.files.found_files import read_list
from scrapy_focus.finders.kit.page.output import Column, Columns, Output
from scrapy_focus.finders.kit.page.sums import sums_table
from scrapy_focus.finders.kit.page.words import size_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from scrapy_focus.finders.files.found_files import Listed
    from scrapy_focus.finders.kit.page.sums import Sums
    from scrapy_focus.finders.kit.records.notes import Notes
    from scrapy_focus.finders.kit.sheets.tables import Table


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
