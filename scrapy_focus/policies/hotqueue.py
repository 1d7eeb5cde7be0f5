"""The hot queue: important pages of a topic, with links first that mention it or are near a page that does.

References
----------
Cho, Garcia-Molina, Page: Efficient crawling through URL ordering. Computer Networks 30 (1998), section 7.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Collection, Mapping
from os import PathLike
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from attrs import field

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.mission import Topic
from scrapy_focus.core.parameters import configurable, parameter
from scrapy_focus.core.printable import counted, printable_logger
from scrapy_focus.core.reason import Part, Reason
from scrapy_focus.learn.matching import Keywords
from scrapy_focus.policies.importance import Importance, weights_of
from scrapy_focus.policies.topical import plain
from scrapy_focus.policies.treeq.features import LinkReader
from scrapy_focus.topic.models import relevance_of
from scrapy_focus.web.html import title_and_text
from scrapy_focus.web.words import words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.types import Link, Outcome, Pick, Placement

logger = printable_logger(__name__)

HOT, OTHER = 0, 1  # arms

_FAR = 255  # clicks from a hot page: no path is known, or too long a one
_ON_TOPIC = 0.5


def _check_words(words: Collection[str]) -> None:
    if not Keywords(words):
        raise ConfigError("give words or phrases of the topic, of two letters or more")


@configurable
class HotQueue(Importance):
    """Takes the links of a topic first, and the most important ones first within each of the two queues.

    A link is hot if a word of the topic is in its URL or its anchor, or, optionally, within ``max_distance`` clicks
    of a hot page. A page is hot if a word is in its title, or more than ``times`` times in its text. When another hot
    page is found, queued links near it become hot, too.

    Notes
    -----
    As published, and what this class does:

    * *Distance*: the second crawler of the paper uses three clicks. If pages have many links, nearly all are within
      three clicks of a hot one, and the hot queue is hardly better than none. One click helps with some topics, and
      does more harm with others; ``docs/explanation/importance.rst`` has the measurements.
    * *Anchors*: a link is classified when its URL is first found, and not again under another anchor.
    * *Pages*: the paper has "more than ten" times in one place, "ten or more" in another; here it is the first.
    * *Distances* are kept for all known pages, and a shorter way updates those of all pages behind it.

    *Memory*: 2 bytes a known page beside those of ``Importance``.

    Raises
    ------
    ConfigError
        If a parameter is not in its range.
    """

    summary: ClassVar[str] = (
        "Takes links first that mention the topic or are near a page that does, most important ones first."
    )
    reads_page: ClassVar[bool] = True
    reads_outcome: ClassVar[bool] = True
    reads_topic: ClassVar[bool] = True

    by: str | Mapping[str, float] = field(init=False)  # as in the base class
    words: Collection[str] | None = parameter(
        "Words and phrases of the topic, by default those of the mission (``FOCUS_KEYWORDS``); they are defined by "
        ":class:`~scrapy_focus.learn.matching.Keywords`.",
        default=None,
        check=_check_words,
        convert=plain,
    )
    relevance: str | PathLike[str] | Topic | None = parameter(
        "A model of the topic, or the file of one, by default that of the mission (``FOCUS_TOPIC``): a link or a "
        "page is also hot if the model returns 0.5 or more.",
        default=None,
        convert=relevance_of,
    )
    base: str | Mapping[str, float] = parameter(
        "How the links of each of the two queues are ordered, as ``by`` does for "
        ":class:`~scrapy_focus.policies.importance.Importance`.",
        default="pagerank",
        check=weights_of,
    )
    max_distance: int = parameter(
        "All links within so many clicks of a hot page are hot; 0: none are, as in the first crawler of the paper. "
        "Use 1 if URLs and anchors do not show the topic of most pages, and few pages are on the topic.",
        default=0,
        at_least=0,
        below=_FAR,
    )
    times: int = parameter("How often a word may be in the text of a page that is not hot.", default=10, at_least=0)

    def __attrs_post_init__(self) -> None:
        self.by = self.base
        super().__attrs_post_init__()
        self._reader = LinkReader(self.words or (), self.relevance)
        self._distance = array("B")  # by page: clicks from the nearest hot page
        self._says = array("B")  # by page: whether the link to it mentions the topic
        self._judged: set[int] = set()  # picks whose page was checked
        self._nearer: deque[int] = deque()  # pages whose links may now be nearer to a hot page

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        topic = mission.topic if self.relevance is None else self.relevance
        words = mission.words if self.words is None else self.words
        if not words and topic is None:
            logger.warning(
                "%s has no topic to go by, and takes the most important pages of all: give it words or relevance, or "
                "set FOCUS_KEYWORDS or FOCUS_TOPIC", type(self).__qualname__,
            )  # fmt: skip
        self._reader = LinkReader(words, topic)
        super().open(frontier, rng, mission)

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        said = self._reader.read(links)
        near = _FAR if source is None else self._beside(source)
        for link, (in_url, in_anchor, probability) in zip(links, said.tolist(), strict=True):
            page = self._page(link.key, link)
            self._says[page] |= bool(in_url or in_anchor or probability >= _ON_TOPIC)
            self._come_nearer(page, near)
        return super().place(links, source)

    def know(self, keys: Sequence[int], source: Outcome) -> None:
        near = self._beside(source)
        for key in keys:
            self._come_nearer(self._page(key), near)
        super().know(keys, source)

    def select(self, busy: Collection[str]) -> Pick | None:
        pick = self.frontier.pop(HOT, busy)
        return self.frontier.pop(OTHER, busy) if pick is None else pick

    def learn(self, outcome: Outcome) -> None:
        self._judge(outcome)
        super().learn(outcome)
        self._judged.discard(outcome.pick.id)

    def release(self, pick: Pick) -> None:
        super().release(pick)
        self._judged.discard(pick.id)

    def explain(self, pick: Pick) -> Reason:
        distance = self._distance[self._page(pick.key)]
        is_hot = pick.arm == HOT
        queue = Part("from the queue of hot pages" if is_hot else "", {"queue": "hot" if is_hot else "other"})
        near = []
        if distance != _FAR:
            near = [Part(f"{counted(distance, 'click')} from a hot page", {"clicks from a hot page": distance})]
        return Reason(queue, *near, *super().explain(pick).parts)

    def _query_of(self, mission: Mission) -> str:
        return super()._query_of(mission) if self.query or not self.words else " ".join(self.words)

    def _page(self, key: int, link: Link | None = None) -> int:
        page = super()._page(key, link)
        if len(self._distance) < len(self._graph):
            self._distance.append(_FAR)
            self._says.append(0)
        return page

    def _drop(self, n: int) -> int:
        other = min(n, int(self.frontier.waiting[OTHER])) if len(self.frontier.waiting) > OTHER else 0
        return self.frontier.drop_each({OTHER: other, HOT: n - other})

    def _in_arm(self, arm: int) -> NDArray[np.bool_]:
        distance = np.array(self._distance, np.uint8)
        hot = (np.array(self._says, np.bool_)) | ((distance > 0) & (distance <= self.max_distance))
        return hot if arm == HOT else ~hot

    def _arm(self, page: int) -> int:
        return HOT if self._says[page] or 0 < self._distance[page] <= self.max_distance else OTHER

    def _linked(self, page: int) -> None:
        self._nearer.append(page)
        graph, distance, work = self._graph, self._distance, self.work
        while self._nearer and work > 0:
            page = graph.page(self._nearer.popleft())
            links = graph.links(page)
            for other in links:
                self._come_nearer(other, distance[page] + 1)
            work -= 1 + graph.n_links(page)

    def _join(self, page: int, other: int) -> None:
        distance, says = min(self._distance[page], self._distance[other]), self._says[page] | self._says[other]
        super()._join(page, other)
        self._distance[page], self._says[page] = distance, says

    def _beside(self, source: Outcome) -> int:
        """Return how far the links of a page are from a hot one."""
        self._judge(source)
        return self._distance[self._page(source.pick.key)] + 1

    def _judge(self, outcome: Outcome) -> None:
        """Note once whether a page is hot, unless that makes no link hot."""
        if not self.max_distance or outcome.pick.id in self._judged:
            return
        self._judged.add(outcome.pick.id)
        if self._is_hot(outcome):
            self._come_nearer(self._page(outcome.pick.key), 0)

    def _is_hot(self, outcome: Outcome) -> bool:
        if outcome.page is None or not outcome.is_html:
            return False
        title, text = title_and_text(outcome.page.text)
        words, relevance = self._reader.words, self._reader.relevance
        if words and (words.found(words_of(title), title) or words.count(words_of(text), text) > self.times):
            return True
        return relevance is not None and float(relevance.score([f"{title} {text}"])[0]) >= _ON_TOPIC

    def _come_nearer(self, page: int, distance: int) -> None:
        """Record a path from a hot page to this one, if it is the shortest."""
        if distance >= self._distance[page] or distance > self.max_distance:
            return
        self._distance[page] = distance
        if self._graph.is_fetched(page):
            self._nearer.append(page)
        else:
            self._changed[page] = None
