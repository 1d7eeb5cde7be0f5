"""What a goal with a topic does with the pages of a crawl: it shows them to a model that learns from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_focus.core.mission import learning
from scrapy_focus.topic.repeated import Repeated
from scrapy_focus.web.html import html_blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.core.mission import LearningTopic, Topic
    from scrapy_focus.core.types import Outcome

_BLOCKS = 50_000  # remembered, of all hosts: 5 MB, and half of that in each checkpoint


class TopicPages:
    """Reads the pages of a crawl for a topic, without blocks that repeat on their host, such as menus.

    Parameters
    ----------
    topic
        The model. If it learns (:class:`~scrapy_focus.core.mission.LearningTopic`), it sees each page.

    Raises
    ------
    ConfigError
        If it learns, and lacks an attribute of such a model.
    """

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self._repeated = Repeated(blocks=_BLOCKS)
        learning(topic)  # it raises an error if something is missing

    @property
    def learner(self) -> LearningTopic | None:
        """The model, if it learns."""
        return learning(self.topic)

    def see(self, outcome: Outcome) -> str | None:
        """Return the text of a page that was fetched, after the model saw it; ``None`` without an HTML page."""
        blocks = blocks_of(outcome)
        if blocks is None:
            return None
        host = outcome.pick.host
        self._repeated.add(host, blocks)
        text = self.text(host, blocks)
        if (learner := self.learner) is not None:
            learner.see(text, host)
        return text

    def text(self, host: str, blocks: Sequence[str]) -> str:
        """Return the text of a page: the blocks that have not repeated on its host so far."""
        return self._repeated.left(host, blocks)

    @property
    def alarm(self) -> str:
        """Why the crawl may be off topic, according to a learning model; ``""`` if it shows no sign of that."""
        learner = self.learner
        return "" if learner is None else learner.alarm

    def said(self) -> list[str]:
        """Return how frequent the topic is among the fetched pages, as estimated by a learning model."""
        learner = self.learner
        if learner is None or learner.frequency is None or not learner.refits:
            return []
        share = 100 * learner.frequency
        return [f"about {share:.{int(share < 10)}f} % of the pages seen are on the topic, by its estimate"]

    def state(self) -> dict[str, Any]:
        """Return the repeated blocks of hosts, and what the model learned from the crawl."""
        learner = self.learner
        return {"topic": None if learner is None else learner.state(), "repeated": self._repeated.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the model and the repeated blocks from a state."""
        self._repeated.restore(state["repeated"])
        if (learner := self.learner) is not None:
            learner.restore(state["topic"])


def blocks_of(outcome: Outcome) -> list[str] | None:
    """Return the text of an outcome's page, block by block, ``None`` without an HTML page."""
    fetched = outcome.status is not None and 200 <= outcome.status < 300 and outcome.is_html
    return html_blocks(outcome.page.text) if fetched and outcome.page is not None else None
