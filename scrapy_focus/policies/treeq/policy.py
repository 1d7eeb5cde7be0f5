"""TRES: a Q-network that scores a few representatives of all queued links, which a regression tree groups.

If a topic is discussed on thousands of sites, the best next link is one of a million queued ones, and their values
change with every page. Scoring each of them again is too slow; a score from when a link was found is soon outdated.
So links that looked equally promising are grouped in the leaves of a tree, which grows by their rewards, and only
some links of each leaf are scored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
from attrs import field

from scrapy_focus.core.frontier import Drawn, Ranks, Vectors
from scrapy_focus.core.mission import Mission
from scrapy_focus.core.parameters import configurable, parameter
from scrapy_focus.core.reason import Part, Reason, depth_of
from scrapy_focus.core.types import Placement, State
from scrapy_focus.learn.arms import reward_tables
from scrapy_focus.policies.domains import ClosedHosts
from scrapy_focus.policies.topical import TopicPolicy
from scrapy_focus.policies.treeq.chances import Chances
from scrapy_focus.policies.treeq.explanation import explained
from scrapy_focus.policies.treeq.features import LEVELS, WORDS, Features, Layout, LinkModel, LinkReader, layout
from scrapy_focus.policies.treeq.qnet import DoubleDQN
from scrapy_focus.policies.treeq.rules import Rules
from scrapy_focus.policies.treeq.tree import RegressionTree

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.abilities import PolicyTable
    from scrapy_focus.core.frontier import Frontier, Keeps, Ranked
    from scrapy_focus.core.types import Link, Outcome, Pick

Mode = Literal["tree", "tree-random", "synchronous", "asynchronous", "random"]

_SWEEP = 8  # picks after which links of finished domains are looked for
_EQUAL, _LATER = 2.0**-12, 2.0**-50  # values that count as equal, and the rank decrement per link found before
_MOST_PLACED = 64  # pages whose links are remembered until their outcome is learned


@configurable
class TreeQ(TopicPolicy):
    """The Tree-Frontier of TRES: a double deep Q-network over state-action vectors that scores only representatives.

    A link is described by the path to it (whether its page was relevant, how far back the last relevant page was, the
    relevant share of the path), its words (keywords in its URL and anchor, a classifier's probability), its domain
    (the relevant share, whether it is unknown) and the pages that link to it. All that is quantised to 64 levels, and
    a regression tree separates links by their rewards. Each choice draws representatives uniformly from every leaf,
    looks up the current records of their domains, and takes the one with the largest value of the network.

    A link model learns during the crawl (not with the preset): which of the pages with a link have other links that
    led to relevant pages, and which words and places of links did. It is combined with the log-odds of the
    classifier, and with the share of relevant pages among those that link to it, where pages with many links weigh
    less. The resulting probability is the network's starting point.

    Without keywords and classifier it crawls a site: groups of links by tag path, by URL pattern and by anchor have
    records of their rewards, and of the rewards behind them, and the network reads these.

    Notes
    -----
    As published / as released, and what this class does:

    * *Rewards* are 0 or 1 in the paper. Others count ``log2(1 + reward)``; a page is relevant if its reward is
      positive.
    * *gamma* is low by the paper's argument and 0.99 in the released code. Recommended is 0.3.
    * *Warm-up*: as released, the first 300 or 500 choices are random. Recommended is to start from the prediction of
      the features, mainly the probability, and to learn a correction.
    * *Representatives*: as released, one for each leaf. Recommended are 256 in all, and splits that a chi-square test
      supports.
    * *Links to the same URL*: as released, each is queued separately until one is fetched. Here a URL is queued once,
      with the path and the anchor with which it was found first, and counts the pages that link to it.
    * *Failures*: as released, they are not experiences and do not count. Here they count and earn 0; by the published
      rules they teach nothing.
    * *Dead ends*: as released, pages without a new link are experiences of the tree, not of the network. Recommended
      is that they teach both their own reward.
    * *Next links*: as released, those of the page; in the paper, also the choice of the tree. Both here.
    * *Keywords*: as released, expanded keywords are looked for in anchors, the initial ones in URLs, where any part of
      a word will do. Here all are looked for in both, as words, and as the beginning or the end of longer ones. The
      released code has a feature for phrases; here they are keywords.
    * *Words of links*: in the paper, the classifier reads the anchor. As released and here it reads the words of the
      URL, too; the rule ``url_words`` turns that off.
    * *Splits*: as released, by the variance of all rewards in a leaf, also with the preset. The text of the paper has
      the sample variance, ``{"split": "sample-variance"}``.
    * *Link model*: neither published nor released.
    * *Training*: as released, after each third result. Recommended is after each of the first 500, then after every
      fourth.
    * *Domains*: as released, a host without ``www.``; here the registered domain, or the host (``per_host``).
      Failures do not count there; here ten failures count as a page.
    * *Other differences from the released code, also with the preset*: vectors have 64 levels; leaves end at 4,096
      and their experience is that of the last 100,000 results; a target looks at 32 links of a page (recommended:
      16), without fetched ones; the target network is copied after so many experiences; seeds are scored by URL and
      anchor, not by title; steps of the warm-up and of a falling cap count failures; the spider decides which links
      are followed.

    *Memory*: a queued link has 23 bytes of vector in the frontier, 15 without the link model, 35 with groups. The
    network keeps 20,000 experiences (7 MB), the tree 100,000 (3 MB) and 15 KB a leaf, the link model takes 7 MB,
    groups 3 MB, and each domain ever seen 36 bytes. Pickled, this is about 25 MB, and 28 for each million of domains.

    References
    ----------
    Kontogiannis, Kelesis, Pollatos, Giannakopoulos, Paliouras: Tree-based focused web crawling with reinforcement
    learning. arXiv:2112.07620.

    Examples
    --------
    >>> from scrapy_focus import Crawl, Link, memory_frontier
    >>> crawl = Crawl(TreeQ(keywords=["cheese"]), frontier=memory_frontier, seed=0)
    >>> links = [Link("http://a.test/bread", 1, "a.test"), Link("http://b.test/cheese", 2, "b.test")]
    >>> crawl.add(links)
    2
    >>> crawl.next().url
    'http://b.test/cheese'
    """

    counts_hosts: ClassVar[bool] = True
    reads_topic: ClassVar[bool] = True
    summary: ClassVar[str] = (
        "Learns which links lead to targets, from their words, their places, and the results of similar links."
    )
    paper_names: ClassVar[Mapping[str, Mapping[str, Any]]] = {"TRES": {}}

    #: Queued links are scored again, by the pages that link to them.
    wants_known: ClassVar[frozenset[State]] = frozenset({State.WAITING})
    known_by_key: ClassVar[bool] = True

    frontier: Drawn = field(init=False)

    mode: Mode = parameter(
        '``"tree"``, or a baseline of the paper: ``"tree-random"`` takes a random link of a random leaf; '
        '``"synchronous"`` scores every queued link at each choice, which is linear; ``"asynchronous"`` scores '
        'each link once, when it is found; ``"random"`` takes any.',
        default="tree",
    )
    preset: Literal["", "tres-2023"] = parameter('``"tres-2023"``: the rules of the released code.', default="")
    rules: dict[str, Any] | None = parameter(
        "Changes to the rules, by name, see :class:`~scrapy_focus.policies.treeq.rules.Rules`.", default=None
    )

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        LinkReader(self.keywords or (), self.relevance)  # raises for invalid ones
        self._rules_for(Mission())
        self.steps = 0  # picks
        self.results = 0  # outcomes
        self._found = 0  # links that were ranked
        self._chosen: dict[int, NDArray[np.uint8]] = {}  # picks in flight: their codes when they were chosen
        self._placed: dict[int, NDArray[np.uint8]] = {}  # picks whose links were placed: the codes of these
        self._recent: list[int] = []  # experiences since the last choice
        self._before: dict[int, list[int]] = {}  # picks in flight: the experiences since the choice before them
        self._chances = Chances()  # the meaning of the network's values

    @property
    def chooses_in_tree(self) -> bool:
        """Whether links are queued in the leaves of a tree, and scored again at each choice."""
        return self.mode in ("tree", "tree-random", "synchronous")

    @property
    def _states(self) -> tuple[State, ...]:
        """States of links that are placed: if they are scored only once, queued ones stay unchanged."""
        return (State.NEW, State.WAITING) if self.chooses_in_tree else (State.NEW,)

    def keeps(self, mission: Mission) -> Keeps:
        return Vectors(self._layout_for(mission).width) if self.chooses_in_tree else Ranks()

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        self._rules = rules = self._rules_for(mission)
        self.layout = self._layout_for(mission)
        keywords = mission.words if self.keywords is None else self.keywords
        topic = mission.topic if self.relevance is None else self.relevance
        self._features = Features(
            self.layout, LinkReader(keywords, topic, url_words=rules.url_words), self.domains,
            seeds_are_relevant=bool(keywords) or topic is not None, hosts=rules.hosts, words=rules.words,
        )  # fmt: skip
        self.tree = RegressionTree(
            self.layout.n_codes, rule=rules.split, tau=rules.tau, min_samples=rules.min_samples,
            min_child=rules.min_child, min_share=rules.min_share, max_depth=rules.max_depth,
            max_leaves=rules.max_leaves,
        )  # fmt: skip
        self._weights, self._bias = rules.weights(self.layout), rules.bias(self.layout)
        self.network = DoubleDQN(
            self.layout.n_codes, gamma=rules.gamma, batch=rules.batch, target_every=rules.target_every,
            fan=rules.fan, rng=np.random.default_rng(rng.integers(1 << 63)), learning_rate=rules.learning_rate,
            prior=self._weights if rules.prior else None, bias=self._bias if rules.prior else None,
        )  # fmt: skip
        super().open(frontier, rng, mission)

    def attach(self, frontier: Frontier) -> None:
        super().attach(frontier)
        if self.chooses_in_tree:
            for split in self.tree.splits:
                self.frontier.divide(*split)
            self._hosts = ClosedHosts(self.domains, self.frontier)

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        placements: list[Placement | None] = [None] * len(links)
        at, rows = self._to_place(links)
        if not at:
            return placements
        wanted = [links[i] for i in at]
        vectors = self._features.found(wanted, source, self.frontier)
        self._features.count(vectors)
        x = vectors[:, : self.layout.n_codes]
        x[:] = self._features.now(vectors, rows)
        arms = self.tree.route(vectors).tolist() if self.chooses_in_tree else [0] * len(at)
        memos = vectors if self.chooses_in_tree else vectors.astype(np.float32)
        for i, arm, rank, memo in zip(at, arms, self._ranks(x), memos, strict=True):
            placements[i] = Placement(arm, rank, memo)
        if source is not None:
            self._remember(source.pick.id, x)
        elif self._rules.seeds_are_experience and not self.results:
            self._reward_seeds(wanted, x)
        return placements

    def _to_place(self, links: Sequence[Link]) -> tuple[list[int], NDArray[np.int64]]:
        """Return which links get a placement, each URL once, and the rows of their unfinished domains."""
        states = self._states
        first = {link.key: i for i, link in reversed(list(enumerate(links))) if link.state in states}
        at = sorted(first.values())
        rows = self._domains_of([links[i] for i in at])
        if self.domains.cap is not None:
            open_ = ~self.domains.is_done(rows)
            at, rows = np.array(at)[open_].tolist(), rows[open_]
        return at, rows

    def _reward_seeds(self, links: Sequence[Link], x: NDArray[np.uint8]) -> None:
        """Learn from seeds, with rows ``x``, as if each had earned 1 (as released)."""
        for seed, link in zip(x, links, strict=True):
            if not link.depth:
                self._experience(seed, 1.0, x[:0])

    def select(self, busy: Collection[str]) -> Pick | None:
        if self.chooses_in_tree:
            pick, x = self._choose(busy)
        else:
            pick = self.domains.pop(cast("Ranked", self.frontier), 0, busy)
            x = None if pick is None else self._features.of(pick)
        if pick is None or x is None:
            return None
        self.steps += 1
        self._chosen[pick.id] = x
        self._before[pick.id], self._recent = self._recent, []
        row = self.domains.row(pick.host)
        self._close(row, everywhere=self.domains.ask(row))
        if self._features.groups is not None:
            self._features.groups.ask(self.layout.groups_of(pick), 1)
        if self.domains.cap is not None and self.chooses_in_tree and self.steps % _SWEEP == 0:
            self._sweep()
        return pick

    def release(self, pick: Pick) -> None:
        if self._chosen.pop(pick.id, None) is not None:
            self.steps -= 1
            self._recent = self._before.pop(pick.id) + self._recent
            row = self.domains.row(pick.host)
            self.domains.release(row)
            self._close(row)
            if self._features.groups is not None:
                self._features.groups.ask(self.layout.groups_of(pick), -1)

    def learn(self, outcome: Outcome) -> None:
        pick = outcome.pick
        x = self._chosen.pop(pick.id, None)
        nexts = self._placed.pop(pick.id, np.zeros((0, self.layout.n_codes), np.uint8))
        if x is None:  # not chosen here
            return
        for experience in self._before.pop(pick.id):
            self.network.set_chosen(experience, x)
        self.results += 1
        self._chances.add(float(self.network.values(x[None])[0]), outcome.reward > 0)
        if self._features.model is not None:
            self._teach(self._features.model, pick, x, relevant=outcome.reward > 0)
        row = self.domains.row(pick.host)
        self.domains.settle(row, outcome)
        if not self.chooses_in_tree:
            self.domains.sweep(cast("Ranked", self.frontier), 0)
        self._close(row)
        if self._features.groups is not None:
            self._features.groups.settle(self.layout.groups_of(pick), worth(outcome.reward))
        told = bool(len(nexts)) or not self._rules.only_with_links
        self._experience(x, worth(outcome.reward), nexts, tree=told or not outcome.error, network=told)
        if not self._is_random and self._rules.trains(self.results):
            self.network.train(self.rng)

    def explain(self, pick: Pick) -> Reason:
        x = self._chosen.get(pick.id)
        if x is None:
            return Reason(depth_of(pick))
        value = float(self.network.values(x[None])[0])
        chance = round(self._chances.of(value), 3)
        numbers = {"leaf": pick.arm, "at random": self._is_random, "value": round(value, 3), "chance": chance}
        judgement = "drawn at random" if self._is_random else f"{100 * chance:.0f} % likely to be relevant"
        parts = explained(self._features.known(x, pick), pick, about=self._features.reader.about)
        return Reason(*parts, Part(judgement, numbers))

    def best_arms(self, k: int) -> list[tuple[str, float, int]]:
        means, counts = self.tree.means, self.tree.counts
        best = [int(leaf) for leaf in np.argsort(-means, kind="stable")[:k] if means[leaf] > 0]
        return [(self.describe(leaf), float(means[leaf] * counts[leaf]), int(counts[leaf])) for leaf in best]

    def tables(self) -> list[PolicyTable]:
        return reward_tables(self.tree.means * self.tree.counts, self.tree.counts)

    def describe(self, leaf: int) -> str:
        """Describe the links of a leaf of the tree: features with their lower and upper bounds."""
        ranges: dict[int, list[int]] = {}
        for split in reversed(self.tree.splits):
            if leaf in (split.new_leaf, split.leaf):
                least, most = ranges.setdefault(split.column, [0, LEVELS])
                if split.new_leaf == leaf:
                    ranges[split.column][0] = max(least, split.above + 1)
                    leaf = split.leaf
                else:
                    ranges[split.column][1] = min(most, split.above)
        said = []
        for column, (least, most) in sorted(ranges.items()):
            start = f" from {self.layout.said(least, column):.2f}" if least else ""
            end = f" up to {self.layout.said(most, column):.2f}" if most < LEVELS else ""
            said.append(self.layout.names[column] + start + end if most else f"no {self.layout.names[column]}")
        return " and ".join(said) or "any link"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_hosts"}

    @property
    def _is_random(self) -> bool:
        return self.mode in ("tree-random", "random") or self.results < self._rules.warmup

    def _rules_for(self, mission: Mission) -> Rules:
        topical = (
            bool(mission.words if self.keywords is None else self.keywords)
            or self.relevance is not None
            or mission.topic is not None
        )
        return Rules.of(self.preset, self.mode, self.rules or {}, topical=topical, cap=self.per_domain)

    def _layout_for(self, mission: Mission) -> Layout:
        rules = self._rules_for(mission)
        return layout(in_links=rules.in_links, groups=rules.groups, link_model=rules.link_model)

    # Choosing

    def _choose(self, busy: Collection[str]) -> tuple[Pick | None, NDArray[np.uint8] | None]:
        """Take the best of the representatives of all leaves, and return it with its codes, shape (n_codes,).

        If no host will ever be open again, the queued links are given up.
        """
        closed = self._hosts.mask()
        if self.mode == "synchronous":
            drawn = self.frontier.draw(None, self.rng, busy=busy, closed=closed)
        else:
            drawn = self.frontier.draw(self._counts(), self.rng, busy=busy, closed=closed)
        if not len(drawn.slots):
            while not busy and not self.frontier.flying and len(self.frontier):
                self.frontier.drop(self.frontier.draw(self._counts(), np.random.default_rng(0)).slots)
            return None, None
        x = self._features.now(drawn.vectors, self._hosts.rows[drawn.hosts])
        at = int(self.rng.integers(len(x))) if self._is_random else int(np.argmax(self.network.values(x)))
        return self.frontier.take_drawn(int(drawn.slots[at])), x[at].copy()

    def _domains_of(self, links: Sequence[Link]) -> NDArray[np.intp]:
        """Return the rows of the domains of some links, shape (n,); the frontier knows the host of a queued one."""
        waits = [link.state == State.WAITING for link in links]
        if not any(waits):
            return self.domains.rows([link.host for link in links])
        rows, known = np.empty(len(links), np.intp), np.array(waits)
        hosts = self.frontier.hosts_of([link.key for link in links if link.state == State.WAITING])
        self._hosts.look()
        rows[known] = self._hosts.rows[hosts]
        rows[~known] = self.domains.rows([link.host for link in links if link.state != State.WAITING])
        return rows

    def _counts(self) -> NDArray[np.int64]:
        """Return how many representatives each leaf has, shape (n_leaves,)."""
        waiting = self.frontier.waiting
        awake = max(int(np.count_nonzero(waiting)), 1)
        return np.where(waiting > 0, -(-self._rules.representatives // awake), 0)

    def _sweep(self) -> None:
        """Give up some links of finished domains, so that they do not stay for ever."""
        drawn = self.frontier.draw(self._counts(), self.rng)
        self.frontier.drop(drawn.slots[self._hosts.is_done(drawn.hosts)])

    def _close(self, row: int, *, everywhere: bool = False) -> None:
        """Update whether the hosts of a domain are closed, or all hosts after a fall of the cap."""
        if self.chooses_in_tree:
            self._hosts.update(row, everywhere=everywhere)

    def _ranks(self, x: NDArray[np.uint8]) -> list[float]:
        if self.mode == "random":
            return [float(rank) for rank in self.rng.random(len(x))]
        if self.mode == "asynchronous":
            self._found += len(x)  # the older one among equal values
            before = np.arange(self._found - len(x), self._found)
            ranks = np.rint(self.network.values(x) / _EQUAL) * _EQUAL - _LATER * before
            return [float(rank) for rank in ranks]
        return [0.0] * len(x)

    # Learning

    def _remember(self, pick_id: int, x: NDArray[np.uint8]) -> None:
        """Keep the links of a page until its outcome is learned: all, or a random sample of many."""
        earlier = self._placed.pop(pick_id, x[:0])
        x = np.concatenate([earlier, x])
        if len(x) > self.network.fan:
            x = x[self.rng.permutation(len(x))[: self.network.fan]]
        self._placed[pick_id] = x
        while len(self._placed) > _MOST_PLACED:
            del self._placed[next(iter(self._placed))]

    def _teach(self, model: LinkModel, pick: Pick, x: NDArray[np.uint8], *, relevant: bool) -> None:
        """Let the link model learn from a result: the results of the links beside it, and its words."""
        model.hubs.settle(self.layout.sources_of(self.layout.vector_of(pick)[None])[0], relevant=relevant)
        if model.words is not None:
            known = x / LEVELS
            known[WORDS] = 0.5
            model.words.learn(pick.key, relevant, odds=float(known @ self._weights) + (self._bias or 0.0))

    def _experience(
        self, x: NDArray[np.uint8], reward: float, nexts: NDArray[np.uint8], *, tree: bool = True, network: bool = True
    ) -> None:
        """Let the tree and the network learn from a result, if they use it."""
        if tree and self.chooses_in_tree:
            split = self.tree.add(x, reward)
            if split is not None:
                self.frontier.divide(*split)
        if network and self.mode not in ("tree-random", "random"):
            row = self.network.add(x, reward, nexts)
            if len(nexts):  # the next choice is not a consequence of a dead end
                self._recent.append(row)


def worth(reward: float) -> float:
    """Return a reward on the network's scale: unchanged for 0 and 1; no page with many items outweighs all others."""
    return math.copysign(math.log2(1 + abs(reward)), reward)
