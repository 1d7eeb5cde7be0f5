"""What an outcome is worth: a goal is any callable from an outcome to a number.

``None`` says that the worth will be known later, through :meth:`~scrapy_focus.core.crawl.Crawl.reward`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.html import html_text
from scrapy_focus.core.mime import DATA_TYPES, describe_types, effective_mime, matches

if TYPE_CHECKING:
    from collections.abc import Collection
    from os import PathLike

    from scrapy_focus.core.types import Outcome
    from scrapy_focus.learn.relevance import Relevance


class Goal(Protocol):
    """Turns an outcome into a number: 0 for nothing, 1 for one target."""

    def __call__(self, outcome: Outcome) -> float | None:
        """Return the reward, or ``None`` if it comes later."""


class ItemsGoal:
    """An outcome is worth the items that its page gave, as they came out of the item pipelines."""

    #: Whether the headers of a response are enough to know what it is worth, so that a HEAD can tell.
    heads_tell = False

    def __call__(self, outcome: Outcome) -> float:
        return outcome.items

    def __repr__(self) -> str:
        return "items scraped"


class FilesGoal:
    """An outcome is worth 1 if it is a file of a wanted type.

    Parameters
    ----------
    types
        MIME types, or patterns like ``image/*``; those of the SB-CLASSIFIER paper by default.
    stored
        Count a file only if an item came of it: where a pipeline drops files that were had before, copies of a
        file under other URLs are worth nothing.
    """

    heads_tell = True

    def __init__(self, *, types: Collection[str] = DATA_TYPES, stored: bool = False) -> None:
        self.types = frozenset(types)
        self.stored = stored

    def __call__(self, outcome: Outcome) -> float:
        fetched = outcome.status is not None and 200 <= outcome.status < 300 and not outcome.error
        url = outcome.pick.url if outcome.page is None else outcome.page.url
        if not fetched or not self.wants(outcome.mime, url):
            return 0.0
        return float(outcome.items > 0) if self.stored and outcome.pick.method == "GET" else 1.0

    def wants(self, mime: str, url: str) -> bool:
        """Whether a file of this MIME type, from this URL, is a target."""
        return matches(mime, self.types) or matches(effective_mime(mime, url), self.types)

    def __repr__(self) -> str:
        return f"files: {describe_types(self.types)}{', each content once' if self.stored else ''}"


class TopicGoal:
    """An outcome is worth 1 if it is a page on the topic, as a model that was trained on examples sees it.

    What a model reads is the title and the visible text. Failures, and what is no HTML, are worth nothing.

    Parameters
    ----------
    relevance
        The model, or the file that ``scrapy focus-train`` wrote.
    threshold
        Pages of at least this probability are on the topic.
    """

    heads_tell = False

    def __init__(self, relevance: Relevance | str | PathLike[str], *, threshold: float = 0.5) -> None:
        from scrapy_focus.learn.relevance import relevance_of

        if not 0 < threshold <= 1:
            raise ConfigError(f"threshold is {threshold!r}; it takes a probability above 0, up to 1")
        self.relevance = relevance_of(relevance)
        self.threshold = threshold

    def __call__(self, outcome: Outcome) -> float:
        return float(self.probability(outcome) >= self.threshold)

    def probability(self, outcome: Outcome) -> float:
        """Return how likely the page of an outcome is on the topic, from 0 to 1; 0 where there is no page."""
        fetched = outcome.status is not None and 200 <= outcome.status < 300 and outcome.is_html
        if not fetched or outcome.page is None:
            return 0.0
        return float(self.relevance.score([html_text(outcome.page.text)])[0])

    def __repr__(self) -> str:
        return f"pages on the topic of model {self.relevance.digest[:12]}, from {self.threshold:g}"
