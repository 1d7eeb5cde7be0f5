"""Base classes of the arguments of all finders."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from scrapy.exceptions import UsageError

from scrapy_focus.finders.kit.arguments.argument import argument
from scrapy_focus.finders.kit.arguments.readers import read_text
from scrapy_focus.finders.kit.arguments.shared.access import AccessArguments
from scrapy_focus.finders.kit.arguments.shared.contents import ContentArguments
from scrapy_focus.finders.kit.arguments.shared.limits import LimitArguments
from scrapy_focus.finders.kit.arguments.shared.scope import ScopeArguments
from scrapy_focus.finders.kit.arguments.shared.watching import WatchingArguments

if TYPE_CHECKING:
    from scrapy_focus.finders.kit.arguments.argument import Names
    from scrapy_focus.finders.kit.arguments.seeds import Starts
    from scrapy_focus.web.access import Access


@dataclass(frozen=True, kw_only=True)
class FinderArguments(LimitArguments, ScopeArguments, AccessArguments, ContentArguments, WatchingArguments):
    """Values of the arguments of a finder: where it starts, what it looks for, and what all finders take."""

    @property
    @abstractmethod
    def starts(self) -> Starts:
        """Where the crawl starts."""

    @property
    @abstractmethod
    def looks_for(self) -> str:
        """What it looks for, in words."""

    @property
    @abstractmethod
    def fixed(self) -> dict[str, str]:
        """The arguments that must not change when a job resumes, in normal form."""

    @property
    def stays_on(self) -> str:
        """Where it stays, in words."""
        return ", ".join([self.area(self.starts), *self.limits_of_scope])

    @cached_property
    def access(self) -> Access:
        """What it sends to some hosts alone; the first use may ask for a password."""
        return self.access_from(self.starts)

    def check_files(self) -> None:
        """Raise ``UsageError`` if a file that a new crawl reads at its start cannot be read."""


@dataclass(frozen=True, kw_only=True)
class FolderArguments(FinderArguments):
    """Values of the arguments of a finder that writes into a folder, or else to standard output."""

    out: str = argument(read_text)

    @property
    def found_in(self) -> Path | None:
        """The folder, ``None`` for standard output."""
        return None if self.out == "-" else Path(self.out).absolute()


@dataclass(frozen=True, kw_only=True)
class ListArguments(FinderArguments):
    """Values of the arguments of a finder that writes a list to a file, or into a folder with its page."""

    #: The name of the list in a folder.
    list_name: ClassVar[str]

    out: str = argument(read_text)
    folder: str = argument(read_text)

    @property
    def found_in(self) -> Path | None:
        """The folder, ``None`` if only the list is written."""
        return Path(self.folder).absolute() if self.folder else None

    @property
    def list_file(self) -> Path | None:
        """The list, ``None`` for standard output."""
        if self.found_in is not None:
            return self.found_in / self.list_name
        if self.out == "-":
            return None
        return Path(self.out).absolute()

    def check(self, names: Names) -> None:
        if self.list_file is not None and self.list_file.is_dir():
            raise UsageError(f"{names.of('out')} is {self.out!r}, a folder; it takes the name of a file")
        super().check(names)
