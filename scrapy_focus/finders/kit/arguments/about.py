"""Arguments that several finders share: a sentence that says what to look for, and how it is compared with texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import VALUE, printable
from scrapy_focus.finders.kit.arguments.argument import argument
from scrapy_focus.finders.kit.arguments.readers import read_sentence, read_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_focus.finders.kit.arguments.argument import Names
    from scrapy_focus.topic.about import AboutTopic


def about_argument(looks_for: str) -> Any:
    """Declare an argument for a sentence; ``looks_for`` says in its help what is looked for."""
    return argument(
        read_sentence, metavar="SENTENCE", refuses_empty=True,
        help=f"look for {looks_for}, such as 'municipal budgets and annual accounts'",
    )  # fmt: skip


def embedding_argument() -> Any:
    """Declare an argument for the embedding that compares the sentence with texts."""
    return argument(
        read_text, metavar="SOURCE",
        help="with --about, compare texts by this embedding: a folder in Model2Vec's format, a file of word vectors, "
        "or an import path (default: that of wordllama, for English)",
    )  # fmt: skip


def refuse_embedding(given: Mapping[str, Any], names: Names) -> None:
    """Raise ``UsageError`` if there is an embedding, and no sentence that it is for."""
    if given["embedding"] and not given["about"]:
        raise UsageError(
            f"{names.of('embedding')} is given without {names.of('about')}: say what to look for, "
            f"{names.given('about', repr('municipal budgets'))}"
        )


def topic_about(about: str, embedding: str) -> AboutTopic | None:
    """Return the topic of a sentence; ``None`` for ``""``.

    Raises
    ------
    UsageError
        If the sentence or the embedding cannot be used.
    """
    if not about:
        return None
    from scrapy_focus.topic.about import AboutTopic  # crawls without a sentence need no embedding

    try:
        return AboutTopic(about, embedding=embedding)
    except ConfigError as error:
        raise UsageError(str(error)) from error


def fixed_about(about: str, embedding: str) -> dict[str, str]:
    """Return what must be equal for a crawl to resume."""
    return {"about": about, "embedding": embedding}


def quoted(about: str) -> str:
    """Return a sentence in quotation marks, short enough for a line."""
    return f'"{printable(about, VALUE)}"'
