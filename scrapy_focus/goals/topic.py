"""A goal for pages on a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.mission import learning
from scrapy_focus.topic.repeated import Repeated
from scrapy_focus.web.html import html_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from scrapy_focus.core.mission import Topic
    from scrapy_focus.core.types import Outcome


_BLOCKS = 50_000  # remembered, of all hosts: 5 MB, and half of that in each checkpoint


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
        self._repeated = Repeated(blocks=_BLOCKS)
        learning(self.relevance)  # it raises an error if examples are missing

    def __call__(self, outcome: Outcome) -> float:
        blocks = _blocks_of(outcome)
        if blocks is None:
            return 0.0
        self._repeated.add(outcome.pick.host, blocks)
        text = self.text(outcome.pick.host, blocks)
        if (learner := learning(self.relevance)) is not None:
            learner.see(text, outcome.pick.host)
        return float(self._judge(text) >= self.threshold)

    def probability(self, outcome: Outcome) -> float:
        """Return the probability that the page of an outcome is on the topic; 0 without a page."""
        blocks = _blocks_of(outcome)
        return 0.0 if blocks is None else self._judge(self.text(outcome.pick.host, blocks))

    def text(self, host: str, blocks: Sequence[str]) -> str:
        """Return the text of a page that is judged: the blocks that have not repeated on its host so far.

        ``host`` is that of the link (``Link.host``).
        """
        return self._repeated.left(host, blocks)

    @property
    def alarm(self) -> str:
        """Why the crawl may be off topic, according to a learning model; ``""`` if it shows no sign of that."""
        learner = learning(self.relevance)
        return "" if learner is None else learner.alarm

    def said(self) -> list[str]:
        """Return how frequent the topic is among the fetched pages, as estimated by a learning model."""
        learner = learning(self.relevance)
        if learner is None or learner.frequency is None or not learner.refits:
            return []
        share = 100 * learner.frequency
        return [f"about {share:.{int(share < 10)}f} % of the pages seen are on the topic, by its estimate"]

    def state(self) -> Any:
        """Return the repeated blocks of hosts, and what the model learned from the crawl."""
        learner = learning(self.relevance)
        return {"topic": None if learner is None else learner.state(), "repeated": self._repeated.state()}

    def restore(self, state: Any) -> None:
        """Restore the model and the repeated blocks from a state."""
        self._repeated.restore(state["repeated"])
        if (learner := learning(self.relevance)) is not None:
            learner.restore(state["topic"])

    def _judge(self, text: str) -> float:
        return float(self.relevance.score([text])[0])

    def __repr__(self) -> str:
        return f"pages on the topic of model {self.relevance.digest[:12]}, from {self.threshold:g}"


def _blocks_of(outcome: Outcome) -> list[str] | None:
    """Return the text of an outcome's page, block by block, ``None`` without a page."""
    fetched = outcome.status is not None and 200 <= outcome.status < 300 and outcome.is_html
    return html_blocks(outcome.page.text) if fetched and outcome.page is not None else None
