"""Arguments of a search for important pages."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from scrapy_focus.finders.kit.arguments.argument import POSITIONAL, argument
from scrapy_focus.finders.kit.arguments.finder_arguments import FolderArguments
from scrapy_focus.finders.kit.arguments.readers import read_text
from scrapy_focus.finders.kit.arguments.seeds import roots_reader

if TYPE_CHECKING:
    from scrapy_focus.finders.kit.arguments.argument import Called, Names
    from scrapy_focus.finders.kit.arguments.seeds import Starts


def _read_order(given: str, called: Called) -> str:
    """Return the name of an order of pages."""
    from scrapy_focus.policies.importance import ORDERS

    if given not in ORDERS:
        close = get_close_matches(given, ORDERS, 1)
        meant = f"did you mean {close[0]}? It" if close else "it"
        raise UsageError(f"{called} is {given!r}; {meant} takes one of {', '.join(ORDERS)}: {called.like('pagerank')}")
    return given


def _read_words(given: str, called: Called) -> list[str]:
    """Return the words of a topic, ``[]`` for ``""``."""
    from scrapy_focus.learn.matching import Keywords

    found = [word.strip() for word in given.split(",") if word.strip()]
    if given and not Keywords(found):
        raise UsageError(f"{called} is {given!r}; it takes words of two letters or more: {called.like('cheese,wine')}")
    return found


@dataclass(frozen=True, kw_only=True)
class ImportantArguments(FolderArguments):
    """Values of the arguments of a search for important pages."""

    root: Starts = argument(roots_reader("important"), option=POSITIONAL)
    by: str = argument(
        _read_order, default="pagerank", metavar="ORDER",
        help="fetch pages in this order: pagerank (default), backlinks, opic, location, breadth or similarity",
    )  # fmt: skip
    words: list[str] = argument(
        _read_words, metavar="WORDS",
        help="follow links with these words first; separate several by commas",
    )  # fmt: skip
    out: str = argument(read_text, default="important")

    def check(self, names: Names) -> None:
        if self.by == "similarity" and not self.words:
            raise UsageError(f"{names.of('by')} is 'similarity', and there are no words to compare pages with; "
                             f"add them: {names.of('words')} cheese,wine")  # fmt: skip
        super().check(names)

    @property
    def starts(self) -> Starts:
        return self.root

    @property
    def looks_for(self) -> str:
        topic = f", those with the words {', '.join(self.words)} first" if self.words else ""
        return f"the most important pages by {self.by}{topic}"

    @property
    def fixed(self) -> dict[str, str]:
        return {"by": self.by, "words": ",".join(self.words)}
