"""Arguments of a search for pages on a topic."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
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
from scrapy_focus.finders.kit.arguments.finder_arguments import ListArguments
from scrapy_focus.finders.kit.arguments.readers import (
    caps_of,
    read_keywords,
    read_limit,
    read_share,
    read_text,
)
from scrapy_focus.finders.kit.arguments.seeds import read_seeds
from scrapy_focus.finders.kit.records.folder_names import PAGES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_focus.finders.kit.arguments.argument import Names
    from scrapy_focus.finders.kit.arguments.seeds import Starts
    from scrapy_focus.topic.examples import Given


@dataclass(frozen=True, kw_only=True)
class TopicArguments(ListArguments):
    """Values of the arguments of a search for pages on a topic."""

    list_name = PAGES
    usual = "any"

    seeds: Starts = argument(read_seeds, option=POSITIONAL)
    about: str = about_argument("pages about this")
    examples: str = argument(
        read_text, metavar="DIR",
        help="learn the topic from pages in DIR/positive and, optionally, pages off the topic in DIR/negative, as text "
        "or HTML",
    )  # fmt: skip
    model: str = argument(read_text, metavar="FILE", help="use a model written by focus train, instead of examples")
    keywords: list[str] = argument(
        read_keywords, metavar="WORDS",
        help="look for these words and phrases, separated by commas, or for those in a file, one per line",
    )  # fmt: skip
    embedding: str = embedding_argument()
    frequency: float | None = argument(
        read_share, metavar="SHARE",
        help="assume that this share of all pages is on topic, such as 0.03 (default: estimated)",
    )  # fmt: skip
    per_domain: list[int] = argument(
        read_limit, metavar="N", help="fetch at most N pages per domain; 5-2 is a limit that falls from 5 to 2"
    )
    per_host: list[int] = argument(read_limit, metavar="N", help="fetch at most N pages per host, not per domain")
    out: str = argument(read_text, default="topic.jsonl")
    folder: str = argument(read_text)

    @classmethod
    def refuse(cls, given: Mapping[str, Any], names: Names) -> None:
        for other in ("about", "examples"):
            if given[other] and given["model"]:
                raise UsageError(
                    f"{names.of(other)} and {names.of('model')} are two ways to say what is on the topic; give one of "
                    "them"
                )
        if not (given["about"] or given["examples"] or given["model"] or given["keywords"]):
            raise UsageError(
                f"what is the topic? Give {names.given('about', 'SENTENCE')}; or "
                f"{names.given('keywords', 'some,words')}; or {names.given('examples', 'DIR')}, a folder with pages on "
                "it in DIR/positive and, optionally, others in DIR/negative; or several of these; or "
                f"{names.given('model', 'FILE')}, from focus train"
            )
        refuse_embedding(given, names)
        if given["model"] and given["frequency"]:
            raise UsageError(
                f"{names.of('frequency')} goes with examples or keywords; a model was made for the frequency it has"
            )

    def check(self, names: Names) -> None:
        if self.per_domain and self.per_host:
            raise UsageError(
                f"{names.of('per_domain')} and {names.of('per_host')} are two ways to count pages; give one of them"
            )
        super().check(names)

    @property
    def starts(self) -> Starts:
        return self.seeds

    @property
    def caps(self) -> dict[str, Any]:
        """Parameters of a policy for a limit of pages per domain or host."""
        return caps_of(self.per_domain, self.per_host)

    @property
    def counted(self) -> str:
        """Whether the limit of pages counts domains or hosts."""
        return "per_host" if self.per_host else "per_domain"

    @property
    def limits(self) -> list[str]:
        """The limit of pages at first, and at the end."""
        return [str(limit) for limit in self.per_host or self.per_domain]

    @property
    def looks_for(self) -> str:
        words = f"the words {', '.join(self.keywords)}"
        known = [f"{name} {value}" for name, value in (("examples", self.examples), ("model", self.model)) if value]
        if not known and not self.about:
            return f"pages with {words}"
        if self.keywords:
            known.append(words)
        if not self.about:
            return f"pages on the topic of {' and '.join(known)}"
        also = f", given {' and '.join(known)}" if known else ""
        return f"pages about {quoted(self.about)}{also}"

    @property
    def fixed(self) -> dict[str, str]:
        from scrapy_focus.topic.models import load_relevance

        falls = len(self.limits) > 1 and self.budget  # by its thirds
        return {
            **fixed_about(self.about, self.embedding), "examples": "DIR" if self.examples else "",
            "keywords": ",".join(self.keywords),
            "frequency": "" if self.frequency is None else f"{self.frequency:g}",
            "model": f"with the digest {load_relevance(self.model).digest[:12]}" if self.model else "",
            self.counted: "-".join(self.limits) + (f" with --budget {self.budget}" if falls else ""),
        }  # fmt: skip

    def check_files(self) -> None:
        self.read_examples()
        topic_about(self.about, self.embedding)

    def read_examples(self) -> Given:
        """Return the examples in the given folder.

        Raises
        ------
        UsageError
            If there are none on the topic, or they cannot be read.
        """
        from scrapy_focus.topic.examples import Given, read_given

        if not self.examples:
            return Given([], [])
        negative = Path(self.examples, "negative")
        try:
            return read_given(Path(self.examples, "positive"), negative if negative.exists() else "")
        except ConfigError as error:
            raise UsageError(str(error)) from error
