"""Best-first by a link classifier that is retrained during the crawl, as in ACHE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from attrs import field

from scrapy_focus.core.extras import require_extra
from scrapy_focus.core.frontier import Ranked
from scrapy_focus.core.parameters import configurable, parameter
from scrapy_focus.core.printable import counted
from scrapy_focus.core.reason import Part, Reason, depth_of
from scrapy_focus.core.types import NOT_NOW, Placement, State
from scrapy_focus.policies.linkclassifier.hubs import Hubs
from scrapy_focus.policies.linkclassifier.model import LinkModel
from scrapy_focus.policies.linkclassifier.words import read
from scrapy_focus.policies.topical import TopicPolicy
from scrapy_focus.policies.treeq.features import LinkReader

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.types import Link, Outcome, Pick

FIRST, SECOND = 0, 1  # arms: authorities and hubs; in mode forward, all links are in the first

_SEED = 3.0  # rank of start requests; ranks of links are at most 2
_STEPS = 100  # range of random differences between links of relevant pages
_WEIGHTS = np.array([0.05, 0.05, 1.0])  # of keywords in the URL and the anchor, and of the probability

_WORDS = {
    "relevant": "chosen as a link to a page on the topic",
    "linked from a hub": "linked on a page with several relevant links",
    "may be a hub": "chosen as a page with several relevant links",
}  # by the kind of link
_SCORES = {"probability": "probability", "words": "the words of the link score", "page before": "its page scores"}


@configurable
class OnlineLinkClassifier(TopicPolicy):
    """Most promising link first, by a classifier that learns from the links followed so far.

    Features are the words of the anchor, of the URL and of the surrounding text. Each time that ``learning_limit``
    pages came, a classifier is trained from scratch on a sample of the links that were followed: those whose page was
    relevant against the others. Then all queued links are scored again. Before the first training, the links of
    relevant pages come first, in random order.

    In mode ``"bipartite"``, the other links of *hubs* come before all others: of pages that link to several relevant
    ones. Links of hubs are scored by how likely they are relevant, and all other links by how likely they lead to a
    hub.

    Notes
    -----
    *Memory*: 4 bytes for each word of a queued link, typically 30 words for short texts, 240 at most, in the
    frontier's records; up to 2 MB of samples; in mode ``"bipartite"``, 37 bytes for each URL with a known link, and
    12 for each link.

    *Cost*: training takes up to a second; scoring again is linear in the queued links, about three seconds of CPU for
    100,000. Both happen at once, every ``learning_limit`` pages: this policy is here for comparison.

    As published, as released, and what this class does:

    * *Learner*: as released, a linear support vector machine with Platt scaling. Here it is logistic regression with
      the same ``C``. With two classes, the scaling does not change the order.
    * *Order*: as released, surely irrelevant links are ranked above probably irrelevant ones, because the probability
      of the more likely class is added to the number of the class. Here links are ranked by the probability of the
      relevant class.
    * *Words*: 100 of the text around links, 150 of URLs, 150 of anchors, those that are in most links of the sample;
      ten words on either side, without English stop words. As released, words are stemmed; here they are not.
    * *Sample*: as released, the first irrelevant links, as many as there are relevant ones; here both classes are
      drawn uniformly, and have the same weight.
    * *Pages* that count for retraining: as released, with hard focus (the default there), only relevant ones. Here,
      all whose links are used, which is the same with ``hard_focus``.
    * *Hubs*: as released, pages that link to relevant ones come from a search engine, and the training data of the
      two classifiers is never written. Here hubs are those that the crawl itself has seen.

    References
    ----------
    Barbosa, Freire: An adaptive crawler for locating hidden-web entry points. WWW 2007. Barbosa, Bangalore, Sridhar:
    Crawling back and forth: using back and out links to locate bilingual sites. IJCNLP 2011. ACHE,
    https://github.com/VIDA-NYU/ache.

    Raises
    ------
    ConfigError
        If a parameter is not in its range.

    Examples
    --------
    >>> from scrapy_focus import Crawl, Link, Outcome, memory_frontier
    >>> policy = OnlineLinkClassifier(learning_limit=9)
    >>> crawl = Crawl(policy, frontier=memory_frontier, seed=0)
    >>> words = ["wine", "steel"] * 6
    >>> links = [Link(f"http://a.test/{word}/{i}", i + 1, "a.test", 1, word) for i, word in enumerate(words)]
    >>> _ = crawl.add([Link("http://a.test/", 100, "a.test")])
    >>> order = []
    >>> while (pick := crawl.next()) is not None:
    ...     order.append(pick.url.split("/")[3])
    ...     page = Outcome(pick=pick, status=200, mime="text/html", items=float("wine" in pick.url))
    ...     crawl.report(page, links if pick.depth == 0 else [])
    >>> order[5:]  # trained when nine pages were there
    ['wine', 'steel', 'wine', 'steel', 'wine', 'wine', 'steel', 'steel']
    """

    counts_hosts: ClassVar[bool] = True
    reads_topic: ClassVar[bool] = True
    summary: ClassVar[str] = (
        "Asks first for the links whose words are most like those of links that led to relevant pages, learned anew "
        "after each few hundred pages."
    )

    frontier: Ranked = field(init=False)

    mode: Literal["forward", "bipartite"] = parameter('``"forward"`` or ``"bipartite"``.', default="forward")
    learning_limit: int = parameter(
        "Pages after which the classifiers are retrained, and all queued links scored.", default=500, at_least=1
    )
    begin: Literal["parent", "topic"] = parameter(
        'How links are ordered before the first training: ``"parent"``, whether the first page with the link was '
        'relevant; or ``"topic"``, how well its words fit the topic, as for '
        ":class:`~scrapy_focus.policies.bestfirst.BestFirst`.",
        default="parent",
    )
    hard_focus: bool = parameter("Take no links from pages that are not relevant.", default=False)
    most_samples: int = parameter(
        "Maximum links of each class to learn from, drawn uniformly.", default=5_000, at_least=1
    )
    most_scored: int = parameter(
        "Maximum queued links of each arm to score again, those with the best ranks; the others keep theirs.",
        default=100_000,
        at_least=1,
    )
    hub_links: int = parameter("Relevant pages that a hub links to, at least.", default=2, at_least=1)

    def __attrs_post_init__(self) -> None:
        require_extra("OnlineLinkClassifier", "topic", "sklearn")
        super().__attrs_post_init__()
        self.trained = 0  # times
        self.models: list[LinkModel | None] = [None, None]  # by arm
        self._reader = LinkReader(self.keywords or (), self.relevance)
        self._pages = 0  # whose links were used
        self._samples = Samples(self.most_samples), Samples(self.most_samples)  # of relevant pages, of all others
        self._hubs = Hubs(self.hub_links)
        self._links: dict[int, list[int]] = {}  # keys of the links of each page that is being reported, by pick

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        topic = mission.topic if self.relevance is None else self.relevance
        self._reader = LinkReader(mission.words if self.keywords is None else self.keywords, topic)
        super().open(frontier, rng, mission)

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        done = self.domains.is_done(self.domains.rows([link.host for link in links])).tolist()
        if source is None:
            return [None if gone else Placement(0, _SEED) for gone in done]
        arm = FIRST
        if self.mode == "bipartite":
            arm = SECOND
            self._links.setdefault(source.pick.id, []).extend(link.key for link in links)
        if self.hard_focus and not source.reward > 0:
            return [NOT_NOW] * len(links)
        rows = [read(link) for link in links]
        ranks = self._ranks(arm, links, rows, source)
        return [None if gone else Placement(arm, rank, row) for rank, row, gone in zip(ranks, rows, done, strict=True)]

    def _ranks(self, arm: int, links: Sequence[Link], rows: Sequence[Any], source: Outcome) -> list[float]:
        model = self.models[arm] or self.models[FIRST]
        ranks = self._first_ranks(links, source) if model is None else model.score(rows)
        found: list[float] = ranks.tolist()
        return found

    def know(self, keys: Sequence[int], source: Outcome) -> None:
        if self.mode == "bipartite":
            self._links.setdefault(source.pick.id, []).extend(keys)

    def select(self, busy: Collection[str]) -> Pick | None:
        pick = self.domains.pop(self.frontier, FIRST, busy)
        if pick is None and self.mode == "bipartite":
            pick = self.domains.pop(self.frontier, SECOND, busy)
        if pick is not None:
            self.domains.ask(self.domains.row(pick.host))
        return pick

    def release(self, pick: Pick) -> None:
        self._links.pop(pick.id, None)
        self.domains.release(self.domains.row(pick.host))

    def learn(self, outcome: Outcome) -> None:
        pick, relevant = outcome.pick, outcome.reward > 0
        self.domains.settle(self.domains.row(pick.host), outcome)
        if pick.memo is not None:
            self._samples[not relevant].add(pick.key, np.asarray(pick.memo, np.float32), self.rng)
        if self.mode == "bipartite":
            self._find_hubs(outcome)
        if outcome.is_html and (relevant or not self.hard_focus):
            self._pages += 1
            if self._pages % self.learning_limit == 0:
                self._train()
        self.domains.sweep(self.frontier, FIRST)
        if self.mode == "bipartite":
            self.domains.sweep(self.frontier, SECOND)

    def explain(self, pick: Pick) -> Reason:
        if pick.memo is None:
            return Reason(depth_of(pick), Part("", {"kind": "given"}))
        if self.mode == "forward":
            kind = "relevant"
        else:
            kind = "linked from a hub" if pick.arm == FIRST else "may be a hub"
        if self.models[pick.arm] is not None:
            said, trained = "probability", f"after {counted(self.trained, 'training')}"
        else:
            said, trained = "words" if self.begin == "topic" else "page before", "before the first training"
        score = round(pick.rank, 3)
        return Reason(
            depth_of(pick),
            Part(_WORDS[kind], {"kind": kind}),
            Part(f"{_SCORES[said]} {score:g}, {trained}", {said: score, "trained": self.trained}),
        )

    def _first_ranks(self, links: Sequence[Link], source: Outcome) -> NDArray[np.float64]:
        """Return ranks of links before the first training, shape (n,)."""
        if self.begin == "topic":
            ranks: NDArray[np.float64] = self._reader.read(links) @ _WEIGHTS
            return ranks
        worth = min(max(source.reward, 0.0), 1.0)
        noise = self.rng.integers(_STEPS, size=len(links)) if worth == 1.0 else np.zeros(len(links))
        return worth + noise / _STEPS

    def _find_hubs(self, outcome: Outcome) -> None:
        """Record the links of a page, and whether it makes hubs of others; queued links of hubs then come first."""
        key, links = outcome.pick.key, self._links.pop(outcome.pick.id, [])
        made = [key] if self._hubs.connect(key, links) else []
        if outcome.reward > 0:
            for relevant in (key, *outcome.also):
                made += self._hubs.mark(relevant)
        if made:
            self._promote(list(dict.fromkeys(link for hub in dict.fromkeys(made) for link in self._hubs.links(hub))))

    def _promote(self, keys: Sequence[int]) -> None:
        """Move links queued in the second arm to the first."""
        waiting = [key for key, state in zip(keys, self.frontier.states(keys), strict=True) if state == State.WAITING]
        moved, ranks, rows = [], [], []
        for key in waiting:
            pick = self.frontier.take(key)
            if pick is None:
                continue
            self.frontier.release(pick)
            if pick.arm == SECOND and pick.memo is not None:
                moved.append(key)
                ranks.append(pick.rank)
                rows.append(np.asarray(pick.memo, np.float32))
        if (model := self.models[FIRST]) is not None:
            ranks = model.score(rows).tolist()
        self.frontier.move(moved, [Placement(FIRST, rank, row) for rank, row in zip(ranks, rows, strict=True)])

    def _train(self) -> None:
        """Retrain on the current sample, and score the queued links."""
        relevant, others = self._samples
        self.models[FIRST] = LinkModel.fit(relevant.rows, others.rows) or self.models[FIRST]
        if self.mode == "bipartite":
            visited = [*zip(relevant.keys, relevant.rows, strict=True), *zip(others.keys, others.rows, strict=True)]
            sides: tuple[list[NDArray[np.float32]], list[NDArray[np.float32]]] = [], []
            for key, row in visited:
                sides[not self._hubs.is_hub(key)].append(row)
            self.models[SECOND] = LinkModel.fit(*sides) or self.models[SECOND]
        self.trained += 1
        for arm in range(min(len(self.frontier.waiting), 2)):
            self._score_again(arm)

    def _score_again(self, arm: int) -> None:
        """Score the links queued in an arm, if it has a model."""
        model = self.models[arm] or self.models[FIRST]
        if model is None:
            return
        found = [
            (-place.rank, link.key, np.asarray(place.memo, np.float32))
            for link, place in self.frontier.scan(arm)
            if place.memo is not None
        ]
        found.sort(key=lambda each: each[:2])  # the order of a scan is arbitrary
        del found[self.most_scored :]
        if found:
            rows = [row for _, _, row in found]
            places = [Placement(arm, rank, row) for rank, row in zip(model.score(rows).tolist(), rows, strict=True)]
            self.frontier.move([key for _, key, _ in found], places)


class Samples:
    """A uniform sample, of limited size, of what was added so far: keys and values."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.seen = 0
        self.keys: list[int] = []
        self._rows: list[bytes] = []

    @property
    def rows(self) -> list[NDArray[np.float32]]:
        """What was added with each key."""
        return [np.frombuffer(row, np.float32) for row in self._rows]

    def add(self, key: int, row: NDArray[np.float32], rng: np.random.Generator) -> None:
        """Add an item, in place of a random one if the sample is full."""
        self.seen += 1
        if len(self.keys) < self.most:
            self.keys.append(key)
            self._rows.append(row.tobytes())
        elif (at := int(rng.integers(self.seen))) < self.most:
            self.keys[at], self._rows[at] = key, row.tobytes()
