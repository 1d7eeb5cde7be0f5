"""Arguments of a search for structured data."""

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
    refuse_embedding,
    topic_about,
)
from scrapy_focus.finders.kit.arguments.argument import POSITIONAL, argument
from scrapy_focus.finders.kit.arguments.finder_arguments import ListArguments
from scrapy_focus.finders.kit.arguments.readers import (
    caps_of,
    number_reader,
    read_text,
    words_reader,
)
from scrapy_focus.finders.kit.arguments.seeds import read_seeds
from scrapy_focus.finders.kit.records.folder_names import ENTITIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_focus.finders.kit.arguments.argument import Names
    from scrapy_focus.finders.kit.arguments.seeds import Starts
    from scrapy_focus.goals.structured import StructuredDataGoal

_LEAST = 6  # facts


@dataclass(frozen=True, kw_only=True)
class StructuredArguments(ListArguments):
    """Values of the arguments of a search for structured data."""

    list_name = ENTITIES
    usual = "any"

    seeds: Starts = argument(read_seeds, option=POSITIONAL)
    types: list[str] = argument(
        words_reader("Recipe,Event"), metavar="TYPES",
        help="look for these types, separated by commas: those of schema.org (Recipe,Event), or full names of others. "
        "Default: any page with enough facts",
    )  # fmt: skip
    about: str = about_argument("things on pages about this")
    embedding: str = embedding_argument()
    least: int | None = argument(
        number_reader("facts", _LEAST), metavar="N",
        help=f"without --types, find pages with at least N facts (default: {_LEAST})",
    )  # fmt: skip
    syntaxes: list[str] = argument(
        words_reader("json-ld,microdata"), metavar="NAMES", help="read json-ld, microdata, or both (default)"
    )
    per_domain: int | None = argument(number_reader("pages", 10), metavar="N", help="fetch at most N pages per domain")
    per_host: int | None = argument(
        number_reader("pages", 10), metavar="N", help="fetch at most N pages per host, not per domain"
    )
    out: str = argument(read_text, default=ENTITIES)
    folder: str = argument(read_text)

    @classmethod
    def refuse(cls, given: Mapping[str, Any], names: Names) -> None:
        if given["least"] and given["types"]:
            raise UsageError(
                f"{names.of('least')} is {given['least']!r}, and types are given; it is for crawls without types: "
                "remove one of them"
            )
        refuse_embedding(given, names)

    def check(self, names: Names) -> None:
        try:
            self.goal.names  # noqa: B018 (computed to validate it)
        except ConfigError as error:
            raise UsageError(str(error)) from error
        if self.per_domain and self.per_host:
            raise UsageError(
                f"{names.of('per_domain')} and {names.of('per_host')} are two ways to count pages; give one of them"
            )
        for name, value in (("per_domain", self.per_domain), ("per_host", self.per_host)):
            if self.is_one_host and value:
                raise UsageError(
                    f"{names.of(name)} is '{value}', but the crawl stays on one host; limit it by a budget instead: "
                    f"{names.given('budget', '100')}"
                )
        super().check(names)

    @property
    def starts(self) -> Starts:
        return self.seeds

    @cached_property
    def goal(self) -> StructuredDataGoal:
        """The goal, which decides whether a page has wanted entities."""
        from scrapy_focus.goals.structured import StructuredDataGoal

        given: dict[str, Any] = {"types": self.types} if self.types else {"least": self.least or _LEAST}
        if self.syntaxes:
            given["syntaxes"] = self.syntaxes
        topic = topic_about(self.about, self.embedding)
        if topic is None:
            return StructuredDataGoal(**given)
        from scrapy_focus.goals.structured_about import StructuredDataAbout

        return StructuredDataAbout(topic, **given)

    @property
    def is_one_host(self) -> bool:
        """Whether the crawl stays on a single host."""
        return self.reach in ("page", "prefix", "host") and len(set(self.seeds.hosts)) == 1

    @property
    def caps(self) -> dict[str, Any]:
        """Parameters of a policy for a limit of pages per domain or host."""
        limits = [[limit] if limit else [] for limit in (self.per_domain, self.per_host)]
        return caps_of(*limits)

    @property
    def looks_for(self) -> str:
        return repr(self.goal)

    @property
    def fixed(self) -> dict[str, str]:
        least = "" if self.goal.names else str(self.goal.least)
        return {
            "types": ",".join(self.goal.names), "least": least, "syntaxes": ",".join(self.goal.syntaxes),
            "per_domain": str(self.per_domain or ""), "scope": self.reach if self.is_one_host else "",
            **({"per_host": str(self.per_host)} if self.per_host else {}), **fixed_about(self.about, self.embedding),
        }  # fmt: skip
