"""The structured data that a crawl found, for its page and its table."""

from __future__ import annotations

from collections import defaultdict
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.printable import counted, inflected, printable
from scrapy_focus.finders.kit.page.output import Column, Columns, Output, irrelevance
from scrapy_focus.finders.kit.page.sums import ROWS, SECTIONS, bar_of, sums_table
from scrapy_focus.finders.kit.records.folder_names import ENTITIES
from scrapy_focus.finders.kit.sheets.tables import Cell, Row, Table, first_of
from scrapy_focus.finders.kit.spiders.items import RELEVANT
from scrapy_focus.finders.structured.entities import host_sums, read_entities, types_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from scrapy_focus.finders.kit.page.sums import Sums
    from scrapy_focus.finders.kit.records.notes import Notes
    from scrapy_focus.finders.structured.entities import FoundEntity

_TYPES = 50  # types of entities that have a column


class StructuredOutput(Output):
    """The entities of a folder."""

    about = "structured"
    spider = "structured"
    lists = (ENTITIES,)
    listed_noun = "entity"
    quality = " with entities"
    fruitless = "links of kinds that led to no page with entities"
    led_to = "pages with entities"
    table_name = "hosts.csv"
    table_columns = ("host", "domain", "pages", "with_entities", "entities")
    columns = Columns(
        name=Column("Entity", lambda entity: entity.name),
        kind=Column("Type", lambda entity: ", ".join(entity.types) or "none"),
        measure=Column("Values", lambda entity: entity.values, lambda number: f"{number:,}"),
        place=Column("Host", lambda entity: entity.host),
    )

    def __init__(self, folder: Path, notes: Notes) -> None:
        self.finds = read_entities(folder)
        self.has_relevance = any(entity.relevance is not None for entity in self.finds)
        if self.has_relevance:
            self.quality = " with entities on the topic"
            self.finds.sort(key=irrelevance)
        self.hosts = host_sums(self.finds, notes.answers)

    def counts_as_found(self, notes: Notes) -> set[str] | None:
        if not self.has_relevance:
            return super().counts_as_found(notes)
        return {entity.url for entity in self.finds if (entity.relevance or 0.0) >= RELEVANT}

    def summary(self, sums: Sums) -> str:
        pages = sum(host.pages for host in self.hosts)
        found = sum(host.with_entities for host in self.hosts)
        there = f"{counted(pages, 'page')} {inflected(pages, 'was', 'were')} read"
        on = f", on {counted(len(sums.hosts), 'host')}" if self.finds else ""
        what = f"{counted(len(self.finds), 'entity')} of the wanted types"
        return f"{there}; {found:,} of them {inflected(found, 'has', 'have')} {what}{on}."

    def facts(self) -> list[str]:
        if not self.has_relevance:
            return []
        return ["The entities are ordered by the relevance of their pages, from 0 to 1."]

    def relevance(self, find: FoundEntity) -> float | None:
        return find.relevance

    def sums(self, sums: Sums) -> Iterable[Table | None]:
        is_one_host = len(sums.hosts) == 1
        yield self._by_type()
        yield self._by_host()
        yield sums_table(
            "sections", SECTIONS, ["Section", "Entities", "Values"], sums.sections if is_one_host else [],
            measure=lambda entities, values: f"{values:,}", states={},
        )  # fmt: skip

    def _by_type(self) -> Table | None:
        """Return the number of entities of each type; one of several types counts for each."""
        pages: dict[str, set[str]] = defaultdict(set)
        hosts: dict[str, set[str]] = defaultdict(set)
        for entity in self.finds:
            for name in entity.types:
                pages[name].add(entity.url)
                hosts[name].add(entity.host)
        counts = types_of(self.finds).most_common()
        if len(counts) < 2:
            return None
        longest = counts[0][1]
        rows = [
            Row(printable(name), [
                Cell(f"{n:,}", bar=bar_of(n, longest)), Cell(f"{len(pages[name]):,}"), Cell(f"{len(hosts[name]):,}"),
            ])
            for name, n in counts[:ROWS]
        ]  # fmt: skip
        caption = f"By type; an entity of several types counts for each.{first_of(len(counts), ROWS)}"
        return Table("types", caption, ["Type", "Entities", "Pages", "Hosts"], rows)

    def _by_host(self) -> Table | None:
        """Return for each host with entities the numbers of entities, of pages with entities, and of pages read."""
        hosts = [host for host in self.hosts if host.entities]
        if len(hosts) < 2:
            return None
        longest = hosts[0].entities
        rows = [
            Row(printable(host.host) or "(unknown)", [
                Cell(f"{host.entities:,}", bar=bar_of(host.entities, longest)), Cell(f"{host.with_entities:,}"),
                Cell(f"{host.pages:,}"),
            ])
            for host in hosts[:ROWS]
        ]  # fmt: skip
        caption = f"By host.{first_of(len(hosts), ROWS)}"
        return Table("hosts", caption, ["Host", "Entities", "With entities", "Pages read"], rows)

    def types(self) -> set[str]:
        return {name for entity in self.finds for name in entity.types}

    def host(self, find: FoundEntity) -> str:
        return find.host

    def path(self, find: FoundEntity) -> str:
        return find.contents.path

    def further_columns(self) -> list[str]:
        return [name for name, _ in types_of(self.finds).most_common(_TYPES)]

    def table_rows(self) -> Iterable[Sequence[Any]]:
        types, cells_of = self.further_columns(), attrgetter(*self.table_columns)
        for host in self.hosts:
            yield (*cells_of(host), *(host.types.get(name, 0) for name in types))
