"""A goal for pages with structured data that are also on a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_focus.goals.structured import StructuredDataGoal
from scrapy_focus.goals.topic import TopicGoal
from scrapy_focus.web.entities import SYNTAXES

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from scrapy_focus.core.mission import Topic
    from scrapy_focus.core.types import Outcome


class StructuredDataAbout(StructuredDataGoal):
    """The reward is 1 for a page that describes a thing of a wanted type, and is on a topic.

    Parameters
    ----------
    relevance
        A model of the topic, as for :class:`~scrapy_focus.goals.topic.TopicGoal`: a page of 0.5 or more is on it. If it
        learns, it sees each page.
    types, syntaxes, least
        What the page describes: see :class:`~scrapy_focus.goals.structured.StructuredDataGoal`.
    """

    def __init__(
        self, relevance: Topic, types: Collection[str] = (), syntaxes: Collection[str] = SYNTAXES, least: int = 1
    ) -> None:
        super().__init__(types, syntaxes, least)
        self._topic = TopicGoal(relevance)

    @property
    def relevance(self) -> Topic:
        """The model of the topic."""
        return self._topic.relevance

    def __call__(self, outcome: Outcome) -> float:
        on_topic = self._topic(outcome)  # a model that learns sees each page, whatever it describes
        return min(on_topic, super().__call__(outcome))

    def probability(self, host: str, blocks: Sequence[str]) -> float:
        """Return the probability that a page is on the topic, from its host and its text, block by block."""
        return float(self.relevance.score([self._topic.text(host, blocks)])[0])

    @property
    def alarm(self) -> str:
        """Why the crawl may be off topic, according to a learning model; ``""`` if it shows no sign of that."""
        return self._topic.alarm

    def said(self) -> list[str]:
        """Return how frequent the topic is among the fetched pages, as estimated by a learning model."""
        return self._topic.said()

    def state(self) -> Any:
        """Return what the model learned from the crawl."""
        return self._topic.state()

    def restore(self, state: Any) -> None:
        """Restore the model from a state."""
        self._topic.restore(state)

    def __repr__(self) -> str:
        about = getattr(self.relevance, "about", "")
        return f"{super().__repr__()} {f'about {about!r}' if about else f'and {self._topic!r}'}"
