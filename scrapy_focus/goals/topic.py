"""Looking for pages on a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.web.html import html_text

if TYPE_CHECKING:
    from os import PathLike

    from scrapy_focus.core.mission import Topic
    from scrapy_focus.core.types import Outcome


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
    #: What is counted.
    noun = "pages"

    def __init__(self, relevance: Topic | str | PathLike[str], *, threshold: float = 0.5) -> None:
        from scrapy_focus.learn.models import relevance_of

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
