"""How a finder describes its output: how to read its list, which columns it has, and what else its page shows.

The page and the table for spreadsheets are shared by all finders. Each finder subclasses :class:`Output` for what
differs. A find is whatever the finder reads; the columns define how to read and show it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from scrapy_focus.finders.kit.page.frame import rendered
from scrapy_focus.finders.kit.page.sums import Sums, states_of, sums_by
from scrapy_focus.web.url_parts import parts_of, section_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from markupsafe import Markup

    from scrapy_focus.finders.kit.records.notes import Answer, Notes
    from scrapy_focus.finders.kit.sheets.tables import Table


class Column(NamedTuple):
    """A column of the list of finds."""

    head: str
    read: Callable[[Any], Any]  # its value, from a find
    show: Callable[[Any], str] = str  # the text of a value


class Columns(NamedTuple):
    """The columns of the list; state, and the links that led to a find, are the same for all finders."""

    name: Column  # text; "": the URL is shown instead
    kind: Column  # text
    measure: Column  # whole number, by which the page sorts
    place: Column  # text


class FoundThrough(NamedTuple):
    """A link by which something was found."""

    page: str  # URL of the page that contains the link
    anchor: str  # text of the link


class Output(ABC):
    """The content of a folder, as its page and its table show it.

    Parameters
    ----------
    folder
        The folder.
    notes
        Of its last crawl.
    """

    #: Name of the list in the style sheet and in the script of the page.
    about: ClassVar[Literal["files", "topic", "importance", "structured"]]
    #: The name of the spider that writes such a folder, and files that no other finder writes.
    spider: ClassVar[str]
    lists: ClassVar[tuple[str, ...]]
    #: What a followed link leads to; the list may hold something else, as a page may describe several entities.
    noun: ClassVar[Literal["file", "page"]] = "page"
    listed_noun: ClassVar[Literal["file", "page", "entity"]] = "page"
    #: Text after a number of pages that were found.
    quality: str = ""
    #: Name of the links that led to no find; "" if the page has no table of kinds of links.
    fruitless: ClassVar[str] = ""
    #: What words in link texts led to; "" if the page has no table of words.
    led_to: ClassVar[str] = ""
    #: What the curve shows, in per cent of all known; "": the number of finds.
    harvested: ClassVar[str] = ""
    #: Whether the page has a menu of kinds.
    has_kinds: ClassVar[bool] = True
    #: Whether the list names several links that led to a find.
    has_several_links: ClassVar[bool] = False
    #: The table for spreadsheets, and its columns: attributes of its rows.
    table_name: ClassVar[str]
    table_columns: ClassVar[tuple[str, ...]]

    #: Whether the finds have a relevance, by which they are ordered.
    has_relevance: bool = False

    columns: Columns
    finds: Sequence[Any]  # each with ``url``, and ``page`` and ``anchor`` of the link that led there

    @abstractmethod
    def __init__(self, folder: Path, notes: Notes) -> None:
        """Read the list, and set ``finds`` and ``columns``."""

    def counts_as_found(self, notes: Notes) -> set[str] | None:
        """Return the URLs that count as found by the last crawl; ``None``: as in its notes."""
        return {find.url for find in self.finds}

    def worth(self, answers: Sequence[Answer]) -> list[float]:
        """Return what each outcome adds to the curve."""
        return [float(answer.files > 0) for answer in answers]

    @abstractmethod
    def summary(self, sums: Sums) -> str:
        """Sum up the folder in one line."""

    @abstractmethod
    def sums(self, sums: Sums) -> Iterable[Table | None]:
        """Return tables of the finds of each kind, on each host and so on."""

    @property
    def introduction(self) -> Markup:
        """Text above the list: ``introduction.jinja`` in the folder of the finder."""
        return rendered(type(self).__module__.rpartition(".")[0], "introduction.jinja", table=self.table_name)

    @property
    def sought(self) -> str:
        """The singular noun for what the policy estimates: how many are left, and what the next one costs."""
        return self.noun

    def facts(self) -> list[str]:
        """Return further sentences about the result."""
        return []

    def types(self) -> set[str]:
        """Return the types of entities that were looked for and found."""
        return set()

    def waiting(self) -> Table | None:
        """Return what to fetch next."""
        return None

    def host(self, find: Any) -> str:
        """Return the host of a find, with its port."""
        return parts_of(find.url)[0]

    def section(self, find: Any) -> str:
        """Return the beginning of a find's path."""
        return section_of(find.url)

    def state(self, find: Any) -> str:
        """Return the state of a find, ``""`` if unknown."""
        return ""

    def path(self, find: Any) -> str:
        """Return the path of a find in the folder, ``""`` if it is not stored."""
        return ""

    def is_cut(self, find: Any) -> bool:
        """Return whether a find is known to be incomplete."""
        return False

    def relevance(self, find: Any) -> float | None:
        """Return the relevance of a find, from 0 to 1; ``None`` if it was not judged."""
        return None

    def words(self, find: Any) -> str:
        """Return the words that spoke for a find, ``""`` for none."""
        return ""

    def further(self, find: Any) -> Sequence[FoundThrough]:
        """Return further links to a find."""
        return ()

    def added_up(self) -> Sums:
        """Return the finds by kind, host and section."""
        measure, state = self.columns.measure.read, self.state
        hosts = sums_by(self.finds, self.host, measure, state)
        several = len(hosts) > 1
        return Sums(
            kinds=sums_by(self.finds, self.columns.kind.read, measure, state),
            hosts=hosts,
            sections=sums_by(
                self.finds,
                lambda find: (self.section_host(find) if several else "") + self.section(find),
                measure,
                state,
            ),
            size=sum(map(measure, self.finds)),
            states=states_of(map(state, self.finds)),
        )

    def section_host(self, find: Any) -> str:
        """Return the host that distinguishes sections of several hosts."""
        return parts_of(find.page or find.url)[0]

    def table_rows(self) -> Iterable[Sequence[Any]]:
        """Return the rows of the table for spreadsheets."""
        return map(attrgetter(*self.table_columns), self.finds)

    def further_columns(self) -> list[str]:
        """Return columns of the table that depend on the finds."""
        return []


def irrelevance(find: Any) -> float:
    """Return the sort key by which the most relevant finds come first, and those that were not judged last."""
    relevance: float | None = find.relevance
    return 1.0 if relevance is None else -relevance
