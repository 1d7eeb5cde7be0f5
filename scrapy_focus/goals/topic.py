"""A goal for pages on a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.goals.topic_pages import TopicPages, blocks_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from scrapy_focus.core.mission import Topic
    from scrapy_focus.core.types import Outcome


class TopicGoal:
    """The reward is 1 for a page on the topic, as judged by a model that was trained on examples.

    The model reads the title and the visible text, without blocks that repeat on the host, such as menus
    (:class:`~scrapy_focus.topic.repeated.Repeated`). Failures and documents other than HTML earn nothing. A model that
    learns from the crawl (:class:`~scrapy_focus.core.mission.LearningTopic`) sees each page before it judges it. What
    it learned is stored in the ``JOBDIR``; a kill loses at most what it learned since the last checkpoint.

    Parameters
    ----------
    relevance
        The model, or the file that ``focus train`` wrote; or, as a dict, examples and keywords: see
        :func:`~scrapy_focus.topic.models.relevance_of`.
    threshold
        Pages of at least this probability are on the topic.
    """

    heads_tell = False
    #: The noun for what is counted.
    noun = "pages"

    def __init__(self, relevance: Topic | str | PathLike[str] | Mapping[str, Any], *, threshold: float = 0.5) -> None:
        from scrapy_focus.topic.models import relevance_of

        if not 0 < threshold <= 1:
            raise ConfigError(f"threshold is {threshold!r}; it takes a probability above 0, up to 1")
        self.relevance = relevance_of(relevance)
        self.threshold = threshold
        self._pages = TopicPages(self.relevance)

    def __call__(self, outcome: Outcome) -> float:
        text = self._pages.see(outcome)
        return 0.0 if text is None else float(self._judge(text) >= self.threshold)

    def probability(self, outcome: Outcome) -> float:
        """Return the probability that the page of an outcome is on the topic; 0 without a page."""
        blocks = blocks_of(outcome)
        return 0.0 if blocks is None else self._judge(self.text(outcome.pick.host, blocks))

    def text(self, host: str, blocks: Sequence[str]) -> str:
        """Return the text of a page that is judged: the blocks that have not repeated on its host so far.

        ``host`` is that of the link (``Link.host``).
        """
        return self._pages.text(host, blocks)

    @property
    def alarm(self) -> str:
        """Why the crawl may be off topic, according to a learning model; ``""`` if it shows no sign of that."""
        return self._pages.alarm

    def said(self) -> list[str]:
        """Return how frequent the topic is among the fetched pages, as estimated by a learning model."""
        return self._pages.said()

    def state(self) -> Any:
        """Return the repeated blocks of hosts, and what the model learned from the crawl."""
        return self._pages.state()

    def restore(self, state: Any) -> None:
        """Restore the model and the repeated blocks from a state."""
        self._pages.restore(state)

    def _judge(self, text: str) -> float:
        return float(self.relevance.score([text])[0])

    def __repr__(self) -> str:
        if about := getattr(self.relevance, "about", ""):
            return f"pages about {about!r}, from {self.threshold:g}"
        return f"pages on the topic of model {self.relevance.digest[:12]}, from {self.threshold:g}"
