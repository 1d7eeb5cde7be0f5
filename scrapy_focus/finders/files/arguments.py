"""Arguments of a search for files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.finders.kit.arguments.about import (
    about_argument,
    embedding_argument,
    fixed_about,
    quoted,
    refuse_embedding,
    topic_about,
)
from scrapy_focus.finders.kit.arguments.argument import POSITIONAL, argument
from scrapy_focus.finders.kit.arguments.finder_arguments import FolderArguments
from scrapy_focus.finders.kit.arguments.readers import (
    read_least_relevance,
    read_one,
    read_rate,
    read_text,
    sitemaps_argument,
)
from scrapy_focus.finders.kit.arguments.seeds import roots_reader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_focus.core.budget import Rate
    from scrapy_focus.finders.kit.arguments.argument import Called, Names
    from scrapy_focus.finders.kit.arguments.seeds import Starts
    from scrapy_focus.goals.files import FilesGoal
    from scrapy_focus.web.wanted import Wanted


def _read_types(given: str, called: Called) -> list[str]:
    """Return types of files, as the user wrote them."""
    from scrapy_focus.goals.files import FilesGoal
    from scrapy_focus.web.wanted import split_words

    try:
        words = split_words(given)
        FilesGoal(types=words)  # raises an error for invalid types
    except ConfigError as error:
        raise UsageError(f"{called}: {error}") from error
    return words


@dataclass(frozen=True, kw_only=True)
class FilesArguments(FolderArguments):
    """Values of the arguments of a search for files."""

    instead_of_texts = "focus files stores files, whatever is in them"
    given_pages = "the given pages, and files that they link to"

    root: Starts = argument(roots_reader("datasets"), option=POSITIONAL)
    types: list[str] = argument(
        _read_types, default="data", metavar="TYPES",
        help="look for these types, separated by commas: extensions (csv,pdf,dat), MIME types (text/csv,image/*), or "
        "regular expressions for URLs, such as /download/. Default: data (all kinds of data files and documents)",
    )  # fmt: skip
    about: str = about_argument("files about this, the most relevant first")
    embedding: str = embedding_argument()
    about_least: float = argument(
        read_least_relevance, metavar="N",
        help="with --about, store only files of at least this relevance, from 0 to 1, and list the others (default: "
        "store all)",
    )  # fmt: skip
    out: str = argument(read_text, default="found")
    new_only: bool = argument(read_one, switch="1", help="skip files that an earlier crawl with the same folder found")
    sitemaps: bool = sitemaps_argument(
        "what the site lists for programs: the sitemaps that robots.txt names, catalogues of data sets, and files that "
        "pages declare"
    )
    rate: Rate | None = argument(
        read_rate, metavar="N/day",
        help="keep the files current with at most this many requests, such as 200/day or 10/h; revisit pages and files "
        "as often as they are expected to change, until you stop the crawl",
    )  # fmt: skip

    @classmethod
    def refuse(cls, given: Mapping[str, Any], names: Names) -> None:
        refuse_embedding(given, names)

    def check(self, names: Names) -> None:
        if self.rate and self.new_only:
            raise UsageError(
                f"{names.of('new_only')} and {names.of('rate')} are given; a crawl that keeps files current requests "
                "known files: remove one of them"
            )
        if self.about_least and not self.about:
            raise UsageError(
                f"{names.of('about_least')} is given without {names.of('about')}: say what the files are to be about, "
                f"{names.given('about', repr('municipal budgets'))}"
            )
        super().check(names)

    @property
    def starts(self) -> Starts:
        return self.root

    @cached_property
    def goal(self) -> FilesGoal:
        """The goal, which decides whether a response is a wanted file."""
        from scrapy_focus.goals.files import FilesGoal

        return FilesGoal(types=self.types, stored=True, relevance=topic_about(self.about, self.embedding))

    @property
    def wanted(self) -> Wanted:
        """The wanted types."""
        from scrapy_focus.web.wanted import Wanted

        return Wanted.of(self.types)

    def check_files(self) -> None:
        self.goal  # noqa: B018 (it raises an error if the model of what the files are about cannot be made)

    @property
    def looks_for(self) -> str:
        from scrapy_focus.web.wanted import slips

        doubts = [f" (for {word}, did you mean {meant}?)" for word, meant in slips(self.types)]
        wanted = f"{self.wanted}"
        about = f" about {quoted(self.about)}" if self.about else ""
        return f"{'data files' if wanted == 'data' else f'files of type {wanted}'}{about}{''.join(doubts)}"

    @property
    def sends(self) -> str:
        limits = [f"at most {self.rate}" if self.rate else "", super().sends]
        return ", ".join(limit for limit in limits if limit)

    @property
    def fixed(self) -> dict[str, str]:
        return {
            "types": str(self.wanted), "rate": "yes" if self.rate else "", **fixed_about(self.about, self.embedding)
        }  # fmt: skip
