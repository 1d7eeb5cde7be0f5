"""The default policy: a branching bandit over tag paths, with a learned choice among the links of its best arms.

SB-CLASSIFIER showed that links at the same place of their pages lead to the same kind of page. This policy improves
on it in four ways. A pull that fails is as informative as one that succeeds, and a file that was predicted to be a
page is a find. Links of one place still differ in their words. And the value of a page includes not only the files
that it links to, but the value of the pages that it links to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from attrs import field

from scrapy_focus.core.abilities import Left, PolicyTable
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.frontier import Drawn, Vectors
from scrapy_focus.core.mission import Unit
from scrapy_focus.core.parameters import configurable, parameter
from scrapy_focus.core.policy import Policy
from scrapy_focus.core.reason import Part, Reason, depth_of, reads_like
from scrapy_focus.core.types import Placement
from scrapy_focus.learn.arms import reward_tables
from scrapy_focus.learn.clusters import Clusters
from scrapy_focus.learn.hashed import HashedLogistic
from scrapy_focus.learn.text import GramProjector
from scrapy_focus.policies.branching.arms import PAGES, RENDERINGS, TARGETS, BranchingArms
from scrapy_focus.policies.branching.coverage import Coverage
from scrapy_focus.policies.branching.explanation import Choice
from scrapy_focus.policies.branching.extensions import LinkKinds
from scrapy_focus.policies.branching.features import BYTES, WIDTH, LinkHasher, path_of
from scrapy_focus.policies.branching.folders import KEPT, Folders
from scrapy_focus.policies.branching.layout import AGAIN, Places
from scrapy_focus.policies.branching.links import LinkScores
from scrapy_focus.policies.branching.prior import BUILT_IN, read_prior
from scrapy_focus.policies.branching.relevance import BYTES as OF_RELEVANCE
from scrapy_focus.policies.branching.relevance import COLUMNS, LinkRelevance
from scrapy_focus.policies.branching.renderings import TRIES, Rendered, Templates
from scrapy_focus.policies.branching.saved import LEARNED, Learned, read_learned, write_learned
from scrapy_focus.web.mime import effective_mime, matches

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from scrapy_focus.core.frontier import Draw, Frontier, Keeps
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.types import Link, Outcome, Pick

SHOWN = 500  # characters of a tag path, from its end, that name an arm

_BYTES = 1 << 15  # that count as one, if bytes are the unit
_MOST_CLUSTERS = 1024  # so there are 2,048 arms at most
_ROOM = 1 << 22  # characters of all tag paths whose cluster is remembered, and for each ...
_OVERHEAD = 64  # ... so many more
_MOST_PLACED = 4096  # pages whose revealed links are remembered until their outcome is learned
_MOST_FINDS = 4096  # pages with targets, which are learned from again
_AGAIN = 0.5  # one page with targets is learned from again per so many without
_SAID = 6.0  # initial weight of a word in an anchor that suggests a target; about as much as one find
_LOOKED_AT = 256  # queued pages drawn to estimate how many targets are left: from each arm by the root of its size
_NEAR = 50.0  # requests: while the next target is expected to cost less, never report that none is left
_STEPS_TO_A_TARGET = 3  # from a list: a data set, one of its resources, its file
_RIVALS = 8  # arms from which links are drawn, at most: those with the best indices ...
_FAR = 4.0  # ... that are at least this fraction of the best one
_LEAST_EACH = 16  # links that are drawn from each of them
_DRAWN = 2  # draws from an arm per queued link, if it has few
_PLANNED = 4  # choices between two plans, and one more for each ...
_MORE = 64  # ... of so many arms
_PLANNED_AT_ONCE = 1 << 19  # pairs of arms that are read within one choice, over and over
_FIRST_STEPS = 50  # pulls before the cost of the next target is known
_LOOK_AGAIN = 1 / 3  # of the pulls, while pages are queued that brought targets, or led to such, in an earlier crawl
_LOOK_MOSTLY = 0.9  # the same while no arm ...
_LIKELY = 0.3  # ... earns so much per cost
_LEAST = 1e-9  # reward per cost
_ARM = 5.0  # pulls that a learned record of an arm counts for, at most
_KIND = 20.0  # links that learned counts of an extension, or of all arms of a kind, count for
_KINDS = {PAGES: "page", TARGETS: "predicted target", RENDERINGS: "rendering"}
_RENDERED = "render/"  # prefix of the names of arms of renderings, and of their paths in a file
_MOST_RENDERED = 512  # arms of renderings; the templates beyond share one, of this name
_OTHERS = "(others)"
_BEST_ONLY = 30  # pulls before other arms than the best one are tried while nothing was found: from then on ...
_TRY_LEAST = 4  # ... one pull in so many is of the arm with the fewest
_PLAIN_FIRST = 100  # pulls before the first rendering, while nothing was found and plain links are left
_TRY_EACH = 20  # after that, one pull in so many is a rendering until something is found
_COUNTS = 0.5  # reward of a file that is about what is looked for
_LEVEL = 2 * _MOST_CLUSTERS  # between the keys of the arms of two levels of relevance
_DEAR = 4.0  # expected cost of the first rendering in units other than requests, relative to a page


def _check_learned(path: str) -> None:
    """Read a file now, so that an unreadable one is reported before the crawl begins."""
    if path:
        read_learned(path)


def _check_prior(path: str) -> None:
    if path:
        read_prior(path)


@configurable
class BranchingBandit(Policy):
    """A branching bandit over tag paths: it pulls the arm whose links earn most per cost, including what they reveal.

    Links are grouped in arms: by the cluster of their tag path, as in SB-CLASSIFIER, and by whether a classifier
    predicts them to be targets. Each arm has a record of what its pulls earned, cost, and revealed of other arms.
    From these follows an index: the reward per cost of an arm if the revealed links are pulled while that is worth
    it, with noise as large as the record is uncertain. The value of a link is the index of its arm, times its
    prediction relative to those of links picked from there. The prediction is the probability that it leads to a
    target. Links are drawn from the best arms, and the best of them is pulled.

    Notes
    -----
    *What counts*: every pull, whatever its outcome. A link that is a target itself, or redirects to one, earns its
    reward for its own arm. A page reveals its new links.

    *Renderings*: if a browser may be available, a page with scripts is queued again in an arm for its template, at
    the price of a rendering. That reveals the links that the plain page did not have. Templates whose renderings
    brought nothing are closed; pages of templates whose plain pages bring nothing are rendered without a plain fetch
    first.

    *Memory*: a queued link has 64 bytes of features in the frontier. There are 1,024 clusters (16 MiB) and twice as
    many arms, and 512 of renderings; the two classifiers take 1 MB, pages to learn from again 0.3 MB, and tag paths
    that have a cluster 4 MB (some 30,000). Any other path belongs to the nearest cluster, which is searched each
    time. The revealed links of 4,096 pages are remembered until their outcome is learned. See also
    :class:`~scrapy_focus.policies.branching.arms.BranchingArms`,
    :class:`~scrapy_focus.policies.branching.renderings.Templates` and
    :class:`~scrapy_focus.learn.text.GramProjector`.

    References
    ----------
    Gauquier, Manolescu, Senellart: Efficient Crawling for Scalable Web Data Acquisition (2026), for the tag paths.
    Weiss: Branching bandit processes (1988), for the index. ``benchmarks/results/files.md`` reports which parts pay
    off.

    Examples
    --------
    >>> from scrapy_focus import Crawl, Link, memory_frontier
    >>> crawl = Crawl(BranchingBandit(targets=["text/csv"]), frontier=memory_frontier, seed=0)
    >>> crawl.add([Link("http://a.test/about.html", 1, "a.test"), Link("http://a.test/prices.csv", 2, "a.test")])
    2
    >>> crawl.next().url
    'http://a.test/prices.csv'
    """

    summary: ClassVar[str] = (
        "Learns which places on a page lead to targets, in how many steps, and which of their links to take first."
    )
    may_change: ClassVar[frozenset[str]] = frozenset(("unit", "learned", "prior"))
    poor_last: ClassVar[bool] = True

    frontier: Drawn = field(init=False)

    targets: Collection[str] | None = parameter(
        "MIME types to look for. The first predictions follow from their extensions, and from names of types "
        "in anchors. By default those of the mission; with none, any link may be a target.",
        default=None,
    )
    words: Collection[str] | None = parameter(
        "Other words in anchors that suggest a target; by default those of the mission.", default=None
    )
    unit: Unit | None = parameter(
        'What is to be saved: ``"requests"``, ``"bytes"`` (as received), or ``"seconds"`` (from choice to outcome); by '
        "default what the mission says.",
        default=None,
    )
    learned: str = parameter(
        "A file of :meth:`save`, from an earlier crawl of the same site or of one like it, to start from.",
        default="",
        check=_check_learned,
    )
    prior: str = parameter(
        "What other sites taught about links that lead to files, to start from where types are looked for: a file of "
        f'``benchmarks/prior.py``, {BUILT_IN!r} for that of the package, or ``""`` for none.',
        default=BUILT_IN,
        check=_check_prior,
    )
    theta: float = parameter("Cosine similarity at which a tag path joins a cluster.", default=0.75, above=0, at_most=1)
    window: float = parameter("Pulls over which the record of an arm averages.", default=60.0, at_least=1)
    horizon: int = parameter("Pulls that are planned ahead.", default=4, at_least=0)
    noise: float = parameter("Spread of the noise, 1 for Thompson sampling.", default=1.0, at_least=0)
    explore: float = parameter(
        "Share of the pulls that take a random link of the best arm; until the first page led to a target, all do. "
        "Of start requests the first one is taken instead.",
        default=0.05,
        at_least=0,
        at_most=1,
    )
    candidates: int = parameter(
        "Links of the best arms that are drawn, to take the best of them.", default=200, at_least=1
    )

    def keeps(self, mission: Mission) -> Keeps:
        return Vectors(BYTES + OF_RELEVANCE * self._is_on_topic(mission))

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        self.looks_for = self._types_of(mission)
        self.saves: Unit = mission.unit if self.unit is None else self.unit
        self.render_cost = mission.render_cost
        self.arms = BranchingArms(
            window=self.window, horizon=self.horizon, noise=self.noise,
            rendering=1 + self.render_cost if self.saves == "requests" else _DEAR,
        )  # fmt: skip
        self.links = LinkScores()
        self.coverage = Coverage()
        self.steps = 0
        self._projector = GramProjector()
        self._clusters = Clusters(dim=1 << 12, threshold=self.theta, max_clusters=_MOST_CLUSTERS)
        self.paths: dict[str, int] = {}  # the cluster of each tag path
        self._room = _ROOM
        self._arm_of: dict[int, int] = {}  # twice the cluster, and one more for predicted targets -> the arm
        self._names: list[str] = []
        self._again: list[int] = []  # arms of pages that brought targets in an earlier crawl, or led to such pages
        self._reserved: list[int] = []  # arms of another policy
        self._given: set[int] = set()  # arms of links that were found on no page: start requests
        self._twin_of: dict[int, int] = {}  # by arm of a twin: the arm that it twins
        self.templates = Templates()
        self._rendered: dict[str, int] = {}  # the arm of each template that is rendered
        self._template_of: dict[int, str] = {}  # and the other way round
        self._looking: dict[int, None] = {}  # arms of closed templates with a rendering queued or in flight
        self._has_browser = False  # whether a browser seems to be available: a page came that it may render, say
        self._last_new = 0  # links that the last page revealed
        self._since_find = 0.0  # cost of the pulls since the last find
        self._totals = np.zeros((64, 2))  # by arm: pulls, rewards
        self._places = Places()
        self._hasher = LinkHasher()
        self._folders = Folders()
        self.kinds = LinkKinds(self.looks_for)
        self.is_target = HashedLogistic()
        self.is_target.weights[
            self._hasher.anchor_features([*self.kinds.names, *(mission.words if self.words is None else self.words)])
        ] = _SAID
        self.leads = HashedLogistic()
        self._has_prior = bool(self.prior and self.looks_for)
        if self._has_prior:
            features, weights = read_prior(self.prior)
            self.leads.weights[features] = weights
        self.relevance = LinkRelevance(mission.topic) if mission.topic is not None and self.looks_for else None
        self.fits = None if self.relevance is None else HashedLogistic()
        self._finds = np.zeros((_MOST_FINDS, WIDTH + COLUMNS * (self.relevance is not None)), np.uint16)
        self._n_finds = 0
        self._revealed: dict[int, dict[int, int]] = {}
        self._promised: dict[int, float] = {}  # with a topic: the best expected reward of the files of such a page
        self._until_plan = 0
        self._last: Choice | None = None
        self._expected = 1.0  # reward per cost of the best arm in the last plan
        if self.learned:
            self._recall(read_learned(self.learned))
            self._has_browser = mission.renders and bool(self.templates.direct)  # there was one
        super().open(frontier, rng, mission)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(
            {"prior": "", "_has_prior": False, "_folders": Folders(), "relevance": None, "fits": None, "_promised": {}}
            | state
        )  # some were added later

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        if not links:
            return []
        paths = [path_of(link.url) for link in links]
        named = self.kinds.odds_of_paths(paths)
        rows = self._hasher.rows(links, beside=int(np.count_nonzero(named > 0)), paths=paths)
        odds = self.is_target.decide(rows) + named
        read = None if self.relevance is None else self.relevance.read(links, source)
        arms = self._arms_of(links, odds > 0, read)
        rendered = self._place_at_once(links, arms) if self._has_browser and self.templates.direct else ()
        self._note_revealed(links, arms, source)
        kept = self._folders.append(rows, paths)
        if read is not None:
            kept = np.concatenate([kept, read], axis=1)
            self._note_promised(read[odds > 0], source)
        memos = kept.view(np.uint8)
        places = [Placement(arm, 0.0, memo) for arm, memo in zip(arms, memos, strict=True)]
        for at in rendered:
            places[at] = places[at]._replace(method="RENDER")
        return places

    def _arms_of(self, links: Sequence[Link], targets: NDArray[np.bool_], read: NDArray[np.uint16] | None) -> list[int]:
        """Return the arm of each link, by its place, whether it is predicted to be a target, and its relevance, if
        that was ``read``.
        """
        plain = self._places.read([link.tag_path for link in links])
        clusters = {path: self._cluster_of(path) for path in plain.values()}
        levels = [0] * len(links) if self.relevance is None or read is None else self.relevance.levels(read).tolist()
        arms: list[int] = []
        found: dict[tuple[str, bool, int], int] = {}
        for at, (link, target, level) in enumerate(zip(links, targets.tolist(), levels, strict=True)):
            place = link.tag_path, target, level
            arm = found.get(place)
            if arm is None:
                path, kind = plain[link.tag_path], TARGETS if target else PAGES
                first = None if self.relevance is None or read is None else self.relevance.chances(read[at : at + 1])
                arm = found[place] = self.arm_of(clusters[path], kind, path, link.callback, level, first)
            arms.append(arm)
        return arms

    def _note_revealed(self, links: Sequence[Link], arms: Sequence[int], source: Outcome | None) -> None:
        """Count the links of each arm, for the page that revealed them until its outcome is learned from."""
        counts = Counter(arms)
        if source is None:
            self.arms.reveal(counts)
            self._given.update(arm for link, arm in zip(links, arms, strict=True) if not link.tag_path)
            return
        self._revealed.setdefault(source.pick.id, Counter()).update(counts)
        if len(self._revealed) > _MOST_PLACED:
            del self._revealed[next(iter(self._revealed))]

    def _note_promised(self, files: NDArray[np.uint16], source: Outcome | None) -> None:
        """Note what the best of the predicted files of a page should earn; ``files`` have their relevance."""
        if self.relevance is None or source is None or not len(files):
            return
        best = float(self.relevance.chances(files).max())
        self._promised[source.pick.id] = max(best, self._promised.get(source.pick.id, 0.0))
        if len(self._promised) > _MOST_PLACED:
            del self._promised[next(iter(self._promised))]

    def select(self, busy: Collection[str]) -> Pick | None:
        awake = self._awake(busy)
        if self._rendered:
            self._hold_back(awake)
        if not awake.any():
            return None
        if self._until_plan <= 0 and self.arms.plan_on(awake, _PLANNED_AT_ONCE):
            self._expected = max(float(self.arms.worth(None).indices[awake].max()), _LEAST)
            self._until_plan = _PLANNED + self.arms.n_arms // _MORE
        worth = self.arms.bounded(self.arms.worth(self.rng))
        of_all = worth.indices
        indices = np.where(awake, of_all, -np.inf)
        again = self._look_again(awake, float(indices.max()))
        if self._rendered and again is None:
            again = self._try_rendering(awake)
        if again is None:
            again = self._try_least_pulled(awake)
        chosen = self._choose(indices if again is None else np.where(again, indices, -np.inf), busy)
        if chosen is None:
            return None
        pick = chosen.pick
        self._until_plan -= 1
        self.steps += 1
        self.arms.flying[pick.arm] += 1
        self._last = Choice(
            pick.id, pick.arm, chosen.score, float(worth.own[pick.arm]), float(worth.later[pick.arm]),
            float(worth.costs[pick.arm]), chosen.second, chosen.second_score, chosen.candidates, chosen.odds,
        )  # fmt: skip
        return pick

    def release(self, pick: Pick) -> None:
        self.steps -= 1
        self._land(pick.arm)

    def learn(self, outcome: Outcome) -> None:
        pick = outcome.pick
        self._land(pick.arm)
        revealed = self._revealed.pop(pick.id, {})
        promised = self._promised.pop(pick.id, None)
        if pick.memo is None or not pick.memo.any() or pick.arm >= self.arms.n_arms:  # it could not be placed
            return
        cost = self._cost(outcome)
        found = self._found(outcome)
        self.arms.earn(pick.arm, outcome.reward, cost, revealed, hit=found.worth)
        self._since_find = 0.0 if found.counts else self._since_find + cost
        self._learn_rendering(outcome, sum(revealed.values()))
        self._totals[pick.arm] += 1, outcome.reward
        row = pick.memo.view(np.uint16)
        kind = int(self.arms.kinds[pick.arm])
        offset = float(self.kinds.odds([pick.url])[0])
        if found.is_file or not outcome.error:  # a failed pull is neither a target nor not one
            odds = self.is_target.learn(row[:KEPT], float(found.is_file), offset=offset) - offset
            self.kinds.learn(pick.url, found.is_file)
        else:
            odds = float(self.is_target.decide(row[None, :KEPT])[0])
        if kind != TARGETS:
            if promised is None:
                promised = float(any(self.arms.kinds[arm] == TARGETS for arm in revealed))
            odds = self._learn_leads(row, max(found.worth, promised))
        elif self.relevance is not None:
            odds = self._learn_fits(row, found.worth, learns=found.is_file or not outcome.error)
        self.links.note(pick.arm, kind, odds)
        self.coverage.note(pick.arm, found.counts, revealed, self.arms.kinds, odds)

    def explain(self, pick: Pick) -> Reason:
        choice = self._last
        if choice is None or choice.pick_id != pick.id:
            return Reason(depth_of(pick))
        kind = _KINDS[int(self.arms.kinds[choice.arm])]
        template = self._template_rendered(pick)
        rendering = ""
        if template:
            known = self.templates.seen.get(template, Rendered())
            rendering = f"shown by a browser, which paid for {known.paid} of {known.tried} pages like {template}"
        parts = choice.explain(kind, self.arms.record(choice.arm), self._names, rendering)
        return Reason(depth_of(pick), *self._explain_relevance(pick), *parts)

    def _explain_relevance(self, pick: Pick) -> Iterator[Part]:
        if self.relevance is not None and pick.memo is not None and pick.memo.any():
            relevance = float(self.relevance.of(pick.memo.view(np.uint16)[None, WIDTH:])[0])
            about = str(getattr(self.relevance.topic, "about", ""))
            said = f"the link {reads_like(about, relevance)}" if about else ""
            yield Part(said, {"relevance": round(relevance, 3)})

    def render(self, outcome: Outcome) -> Placement | None:
        pick = outcome.pick
        self._has_browser = True
        if pick.memo is None or not pick.memo.any():  # it could not be placed
            return None
        template = self.templates.of(pick.url)
        self.templates.fetched(template, self._last_new + (outcome.reward > 0))
        if not self.templates.wants(template):
            return None
        arm = self._arm_of_template(template)
        if self.templates.look(template):
            self._looking[arm] = None
        self.arms.earn_more(pick.arm, {arm: 1})
        return Placement(arm, 0.0, pick.memo, "RENDER")

    def tables(self) -> list[PolicyTable]:
        pulls, rewards = self._totals[: self.arms.n_arms].T
        rendered = [self.rendered_templates()] if self.templates.seen else []
        return [*rendered, *reward_tables(rewards, pulls)]

    def rendered_templates(self) -> PolicyTable:
        """Return the statistics of the templates of pages with scripts, those with most renderings first."""
        seen = self.templates.seen.items()
        rows: list[tuple[str | float | int, ...]] = [
            (
                template, known.plain, known.tried, known.paid, known.brought, self.templates.state(template))
            for template, known in sorted(seen, key=lambda each: (each[1].tried, each[1].plain), reverse=True)
        ]  # fmt: skip
        columns = ("template", "plain pages", "rendered", "paid", "links brought", "state")
        return PolicyTable("Pages with scripts, by template", columns, rows)

    def expected_cost(self) -> float | None:
        """Return the expected cost, in requests, of the next reward of 1, by the best index; ``None`` at the start."""
        if self.steps < _FIRST_STEPS:
            return None
        return 1 / (self._expected * self.arms.mean_cost)

    def best_arms(self, k: int) -> list[tuple[str, float, int]]:
        pulls, rewards = self._totals[: self.arms.n_arms].T
        best = [int(arm) for arm in np.argsort(-rewards, kind="stable")[:k] if rewards[arm] > 0]
        return [(self._names[arm], float(rewards[arm]), int(pulls[arm])) for arm in best]

    def expected_left(self) -> Left | None:
        """Return how many targets are left to find; ``None`` while that is unknown, and if any link may be a target."""
        if not self.looks_for or not self.steps:
            return None
        kinds = self.arms.kinds
        waiting = np.zeros(len(kinds), np.int64)
        placed = self.frontier.waiting[: len(kinds)]
        waiting[: len(placed)] = placed
        waiting[self._reserved] = 0
        roots = np.sqrt(waiting * (kinds != TARGETS))
        counts = np.minimum(waiting, np.ceil(_LOOKED_AT / max(roots.sum(), 1) * roots).astype(np.int64))
        drawn = self.frontier.draw(counts, np.random.default_rng(self.steps))  # this query must not change any choice
        odds = self._lead_odds(np.ascontiguousarray(drawn.vectors).view(np.uint16))
        queued = waiting + self.arms.flying
        ahead = float(queued @ self.arms.hits_ahead(_STEPS_TO_A_TARGET))
        left, cost = self.coverage.left(queued, kinds, drawn.arms, odds, ahead=ahead), self.expected_cost()
        is_near = cost is not None and cost < _NEAR and bool(queued.any())
        return None if left is not None and not left.middle and is_near else left

    def save(self, path: str | PathLike[str]) -> None:
        paths: list[list[str]] = [[] for _ in range(self._clusters.n_clusters)]
        for tag_path, cluster in self.paths.items():
            paths[cluster].append(tag_path)
        clusters = {arm: key % _LEVEL // 2 for key, arm in self._arm_of.items()}
        for template, arm in self._rendered.items():
            clusters[arm] = len(paths)
            paths.append([_RENDERED + template])
        for twin, arm in self._twin_of.items():
            clusters[twin] = clusters[arm]
        saved = np.array(sorted(clusters), np.intp)  # reserved ones are not a find the next time
        target, lead = (np.flatnonzero(model.weights) for model in (self.is_target, self.leads))
        learned = Learned(
            theta=self.theta, unit=self.saves, paths=paths, extensions=self.kinds.seen,
            clusters=np.array([clusters[arm] for arm in saved.tolist()], np.intp), known=self.arms.known().only(saved),
            templates=self.templates.seen,
            targets=(target, self.is_target.weights[target]), leads=(lead, self.leads.weights[lead]),
        )  # fmt: skip
        write_learned(learned, path)

    def load(self, path: str | PathLike[str]) -> None:
        read_learned(path)
        self.learned = str(path)

    def _recall(self, learned: Learned) -> None:
        """Start from what another crawl learned; it counts as a few pulls."""
        for name, then, now in (("theta", learned.theta, self.theta), ("unit", learned.unit, self.saves)):
            if then != now:
                raise ConfigError(
                    f"{self.learned} was written with {name} = {then!r}, and this crawl has {now!r}; give both crawls "
                    f"the same, or begin without the {LEARNED.name}"
                )
        self.templates.recall(learned.templates)
        arms: list[int] = []
        clusters: dict[int, int] = {}
        rendered = set(learned.clusters[learned.known.kinds == RENDERINGS].tolist())
        for number, paths in enumerate(learned.paths):
            if number not in rendered:
                clusters[number], *_ = [self._cluster_of(path) for path in paths]
        for number, kind in zip(learned.clusters.tolist(), learned.known.kinds.tolist(), strict=True):
            path = learned.paths[number][0]
            if number in rendered:
                arms.append(self._arm_of_template(path.removeprefix(_RENDERED)))
            else:
                arms.append(self.arm_of(clusters[number], int(kind), path))
        self.arms.recall(learned.known, np.array(arms, np.intp), pulls=_ARM, of_kind=_KIND)
        self.is_target.weights[learned.targets[0]] = learned.targets[1]
        self.leads.weights[learned.leads[0]] = learned.leads[1]
        for extension, (hits, others) in learned.extensions.items():
            share = min(1.0, _KIND / (hits + others))
            self.kinds.seen[extension] = (hits * share, others * share)

    # Arms

    def reserve(self, name: str) -> int:
        """Return a new arm that this policy never chooses, for another policy that shares the frontier."""
        arm = self._new_arm(PAGES, name)
        self._reserved.append(arm)
        return arm

    def twin(self, arm: int, prefix: str) -> int:
        """Return a new arm of the same kind as another, with a separate record; the next crawl starts from both."""
        twin = self._new_arm(int(self.arms.kinds[arm]), prefix + self._names[arm])
        self._twin_of[twin] = arm
        return twin

    def promise(self, waiting: NDArray[np.int64]) -> float:
        """Return the expected reward per cost of the best awake arm; 0 if none is awake.

        It is at most what the best arm of all earns by itself, because revealed links have to be pulled, too.
        ``waiting``: queued links of each arm on free hosts, shape (n_arms,).
        """
        awake = self._awake_of(waiting)
        if not awake.any():
            return 0.0
        worth = self.arms.worth(None)
        return float(min(worth.indices[awake].max(), (worth.own / worth.costs).max()))

    def chances(self) -> NDArray[np.float64]:
        """Return the expected reward of one link of each arm, shape (n_arms,)."""
        return self.arms.worth(None).own

    def _cluster_of(self, path: str) -> int:
        """Return the cluster of a tag path; a new path joins one."""
        cluster = self.paths.get(path)
        if cluster is None:
            vector = self._projector.project(path, ["", *path.split("/")])
            cost = len(path) + _OVERHEAD
            if cost > self._room:
                nearest, _ = self._clusters.nearest(*vector)
                return nearest if nearest >= 0 else self._clusters.assign(*vector)
            self._room -= cost
            cluster = self.paths[path] = self._clusters.assign(*vector)
        return cluster

    def arm_of(
        self,
        cluster: int,
        kind: int,
        path: str,
        reader: str = "",
        level: int = 0,
        first: NDArray[np.float64] | None = None,
    ) -> int:
        """Return the arm of a cluster and a kind; if there is none, a new one named after a tag path.

        ``reader``: the named callback that reads the links of a new one, if any; ``level``: that of the relevance of
        its links, if there is a topic.
        """
        key = _LEVEL * level + 2 * cluster + kind
        arm = self._arm_of.get(key)
        if arm is None:
            expected = None if first is None or kind != TARGETS else float(first[0])
            arm = self._arm_of[key] = self._new_arm(kind, path[-SHOWN:], reader, expected)
            if path.startswith(tuple(AGAIN.values())):
                self._again = [*self._again, arm]
        return arm

    def _arm_of_template(self, template: str) -> int:
        """Return the arm where pages of a template are queued to be rendered."""
        if template not in self._rendered and len(self._rendered) >= _MOST_RENDERED:
            template = _OTHERS
        arm = self._rendered.get(template)
        if arm is None:
            arm = self._rendered[template] = self._new_arm(RENDERINGS, (_RENDERED + template)[-SHOWN:])
            self._template_of[arm] = template
        return arm

    def _template_rendered(self, pick: Pick) -> str:
        """Return the template that a pick renders, ``""`` if it is not a rendering."""
        template = self._template_of.get(pick.arm, "")
        return self.templates.likely(pick.url) if template == _OTHERS else template

    def _place_at_once(self, links: Sequence[Link], arms: list[int]) -> list[int]:
        """Queue links whose plain pages bring nothing to be rendered; return their places, where ``arms`` changed."""
        at_once = []
        for at, link in enumerate(links):
            template = self.templates.likely(link.url) if self.arms.kinds[arms[at]] == PAGES else ""
            if template in self.templates.direct and self.templates.at_once(template):
                arms[at] = self._arm_of_template(template)
                at_once.append(at)
        return at_once

    def _hold_back(self, awake: NDArray[np.bool_]) -> None:
        """Put arms of renderings to sleep while plain links do better, and those with enough in flight while their
        results are unknown.
        """
        flying, arms = self.arms.flying, np.fromiter(self._rendered.values(), np.intp, len(self._rendered))
        if awake[arms].any():
            self._hold_back_for_plain(awake, arms)
        out = {self._template_of[arm]: float(flying[arm]) for arm in arms[flying[arms] > 0].tolist()}
        for arm in arms[awake[arms]].tolist() if out else ():
            awake[arm] = self.templates.has_room(self._template_of[arm], out)

    def _hold_back_for_plain(self, awake: NDArray[np.bool_], arms: NDArray[np.intp]) -> None:
        """Put arms of renderings to sleep until the first find, or 100 pages without one, while plain links are left.
        After that, do so for templates not known to need a browser, while plain links bring finds at a lower price.

        That is so if the last find, or the next one by the best index, costs less than a rendering. A template whose
        renderings paid in an earlier crawl is rendered at any time.
        """
        waiting, flying = self._awake_of(self.frontier.waiting), self.arms.flying > 0
        waiting[arms] = flying[arms] = False
        is_early = not self._has_found and self.coverage.pulls < _PLAIN_FIRST
        if is_early and (waiting | flying).any():
            awake[arms] &= [self.templates.is_recalled(self._template_of[arm]) for arm in arms.tolist()]
        elif waiting.any():
            worth = self.arms.worth(None)
            price = min(self._since_find, 1 / max(float(worth.indices[waiting].max()), _LEAST))
            for arm in arms[awake[arms]].tolist():
                awake[arm] = worth.costs[arm] < price or self.templates.is_needed(self._template_of[arm])

    def _try_rendering(self, awake: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """Return the arms to choose from if this pull is to be a rendering because nothing was found in the first 100
        pages, shape (n_arms,): otherwise a page that reveals a rendering always looks better than that.
        """
        is_due = self.coverage.pulls >= _PLAIN_FIRST and not self._has_found and self.steps % _TRY_EACH == 0
        rendered = awake & (self.arms.kinds == RENDERINGS)
        return rendered if is_due and rendered.any() else None

    def _try_least_pulled(self, awake: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """Return the arm to choose if this pull is to be of the one that was pulled least because nothing was found in
        the first pulls, shape (n_arms,): otherwise a page that reveals such links may always look better than they do.
        """
        is_due = self.coverage.pulls >= _BEST_ONLY and not self._has_found and self.steps % _TRY_LEAST == 0
        plain = awake & (self.arms.kinds != RENDERINGS)
        if not is_due or not plain.any():
            return None
        least: NDArray[np.bool_] = np.zeros_like(awake)
        least[np.argmin(np.where(plain, self.arms.pulls + self.arms.flying, np.inf))] = True
        return least

    @property
    def _has_found(self) -> bool:
        """Whether anything was found: a target, or files that are worth one together."""
        return bool(self.coverage.found) or (self.relevance is not None and float(self._totals[:, 1].sum()) >= 1)

    def _learn_rendering(self, outcome: Outcome, new: int) -> None:
        """Learn about templates from a page that was rendered, or that a rendering revealed; it has so many new
        links.
        """
        self._last_new = new
        if not self._rendered:
            return
        pick = outcome.pick
        self._judge_revealer(pick.origin)
        template = self._template_rendered(pick)
        if not template:
            return
        self._looking.pop(pick.arm, None)
        if pick.method == "GET" and outcome.requests <= 1:  # no browser was used
            self._has_browser = False
            self.templates.go_plainly()
            return
        is_shown = pick.method == "RENDER"  # else no browser was available, and its plain copy was fetched
        gained = (new + (outcome.reward > 0) + (outcome.items > 0)) * is_shown
        self.templates.rendered(template, gained, failed=bool(outcome.error) or not is_shown)
        if not gained:
            self._leave_closed()

    def _judge_revealer(self, arm: int) -> None:
        """Judge a template by whether the links that its renderings revealed lead to targets; this page may be one of
        them.
        """
        found_by = self._template_of.get(arm)
        if found_by is None or not self.templates.came(found_by) or not self._n_finds:
            return
        is_idle = not self.arms.lead_to_hits(self._hardly_pulled())[arm]
        self.templates.judge(found_by, is_idle=is_idle)
        if is_idle:
            self._leave_closed()

    def _hardly_pulled(self) -> NDArray[np.bool_]:
        """Return which arms have links queued or in flight, and too few results, shape (n_arms,)."""
        there = self.arms.flying > 0
        waiting = self.frontier.waiting[: len(there)]
        there[: len(waiting)] |= waiting > 0
        return there & (self.arms.pulls < TRIES)

    def _leave_closed(self) -> None:
        """Give up queued renderings of closed templates: their plain pages were fetched, and count."""
        waiting = self.frontier.waiting
        for template, arm in self._rendered.items():
            if (
                arm >= len(waiting)
                or not waiting[arm]
                or arm in self._looking
                or not self.templates.is_closed(template)
            ):
                continue
            if self.templates.seen.get(template, Rendered()).at_once:  # some were not fetched
                continue
            while n := int(self.frontier.waiting[arm]):  # a link drawn twice is given up once
                self.frontier.drop(self.frontier.draw({arm: 2 * n}, np.random.default_rng(0)).slots)

    def _new_arm(self, kind: int, name: str, reader: str = "", first: float | None = None) -> int:
        arm = self.arms.new(kind, reader, first)
        if first is not None:
            self.coverage.expect(arm, first)
        self._names.append(name)
        if arm == len(self._totals):
            self._totals = np.concatenate([self._totals, np.zeros_like(self._totals)])
        return arm

    def _awake(self, busy: Collection[str]) -> NDArray[np.bool_]:
        """Return which arms have a queued link on a free host, shape (n_arms,)."""
        return self._awake_of(self.frontier.awake(busy))

    def _awake_of(self, waiting: NDArray[np.int64]) -> NDArray[np.bool_]:
        awake = np.zeros(self.arms.n_arms, np.bool_)
        waiting = waiting[: len(awake)]
        awake[: len(waiting)] = waiting > 0
        awake[self._reserved] = False
        return awake

    def _look_again(self, awake: NDArray[np.bool_], best: float) -> NDArray[np.bool_] | None:
        """Return the arms to choose from if this pull is to be a page of an earlier crawl, shape (n_arms,).

        New targets on such pages are rare, and an arm without one in its first pulls would not be pulled again.
        ``best`` is the index of the best arm of all.
        """
        again = [arm for arm in self._again if awake[arm]]
        if not again or self.rng.random() >= (_LOOK_AGAIN if best >= _LIKELY else _LOOK_MOSTLY):
            return None
        among = np.zeros_like(awake)
        among[again] = True
        return among

    def _land(self, arm: int) -> None:
        if arm < self.arms.n_arms:
            self.arms.flying[arm] = max(self.arms.flying[arm] - 1, 0)

    # Links

    def _choose(self, indices: NDArray[np.float64], busy: Collection[str]) -> _Chosen | None:
        """Take the best of some links drawn from the best arms; ``-inf`` marks the indices of sleeping arms, shape
        (n_arms,).
        """
        best = int(np.argmax(indices))
        at_random = not self._knows(best) or self.rng.random() < self.explore
        rivals = [best] if at_random else _rivals(indices, float(indices[best]))
        each = 1 if at_random else max(self.candidates // len(rivals), min(_LEAST_EACH, self.candidates))
        waiting = self.frontier.waiting
        counts = {arm: min(each, _DRAWN * int(waiting[arm])) for arm in rivals}
        drawn = self.frontier.draw(counts, self.rng, busy=busy)
        if at_random and best in self._given:  # they were given in an intended order
            drawn = self.frontier.draw({best: 1}, None, busy=busy)
        if not len(drawn.slots):
            return None
        odds = self._odds(drawn)
        scores = self.links.score(indices, self.arms.kinds, drawn.arms, odds)
        first = int(np.argmax(scores))
        arm, slot = int(drawn.arms[first]), int(drawn.slots[first])
        others = np.where(drawn.arms != arm, scores, -np.inf)
        second = int(np.argmax(others))
        known = others[second] > -np.inf
        pick = self.frontier.take_drawn(slot)
        return pick and _Chosen(
            pick, float(scores[first]), float(odds[first]), 0 if at_random else len(set(drawn.slots.tolist())),
            int(drawn.arms[second]) if known else -1, float(others[second]),
        )  # fmt: skip

    def _knows(self, arm: int) -> bool:
        """Whether anything is known of the links of an arm, so that they are worth comparing."""
        is_primed = (self._has_prior or self.relevance is not None) and arm not in self._given
        return bool(self._n_finds or self.learned) or is_primed or bool(self.arms.kinds[arm] == TARGETS)

    def _odds(self, drawn: Draw) -> NDArray[np.float32]:
        """Return the log-odds that links lead to targets, or are targets if their arm predicts so, shape (k,)."""
        rows = np.ascontiguousarray(drawn.vectors).view(np.uint16)
        targets = self.arms.kinds[drawn.arms] == TARGETS
        if targets.all():
            return self._target_odds(rows)
        odds = self._lead_odds(rows)
        if targets.any():
            odds[targets] = self._target_odds(rows[targets])
        return odds

    def _target_odds(self, rows: NDArray[np.uint16]) -> NDArray[np.float32]:
        """Return the log-odds that links are targets; with a topic, of the reward of files."""
        if self.relevance is None or self.fits is None:
            return self.is_target.decide(rows[:, :KEPT])
        return self.fits.decide(rows[:, :KEPT]) + self.relevance.odds(TARGETS, rows[:, WIDTH:]).astype(np.float32)

    def _lead_odds(self, rows: NDArray[np.uint16]) -> NDArray[np.float32]:
        """Return the log-odds that pages lead to targets."""
        odds = self.leads.decide(self._folders.read(rows))
        if self.relevance is None:
            return odds
        return odds + self.relevance.odds(PAGES, rows[:, WIDTH:]).astype(np.float32)

    def _learn_leads(self, row: NDArray[np.uint16], found: float) -> float:
        """Learn what leads to targets; because few pages do, learn again from those. Return the prediction before
        that.

        ``found``: whether it does, or the expected reward of the best of its files, from 0 to 1.
        """
        numbers, read, row = row[KEPT:WIDTH], row[WIDTH:], self._folders.read(row[None])[0]
        odds = self.leads.learn(row, found, offset=self._offset_of(read))
        if self.relevance is not None:
            self.relevance.learn(PAGES, read, found)
        self._folders.note(numbers, led=found)
        if found >= _COUNTS:
            full = self._n_finds == _MOST_FINDS
            self._finds[int(self.rng.integers(_MOST_FINDS)) if full else self._n_finds] = [*row, *read]
            self._n_finds += not full
        elif self._n_finds and self.rng.random() < _AGAIN:
            again = self._finds[int(self.rng.integers(self._n_finds))]
            self.leads.learn(again[:WIDTH], 1.0, offset=self._offset_of(again[WIDTH:]))
        return odds

    def _offset_of(self, read: NDArray[np.uint16]) -> float:
        """Return what the relevance of a page adds to its log-odds, 0 without a topic."""
        return 0.0 if self.relevance is None else float(self.relevance.odds(PAGES, read[None])[0])

    def _learn_fits(self, row: NDArray[np.uint16], worth: float, *, learns: bool) -> float:
        """Learn the reward of a predicted file, unless it failed, and return the prediction before that."""
        if self.relevance is None or self.fits is None or not learns:
            return float(self._target_odds(row[None])[0])
        read = row[WIDTH:]
        odds = self.fits.learn(row[:KEPT], worth, offset=float(self.relevance.odds(TARGETS, read[None])[0]))
        self.relevance.learn(TARGETS, read, worth)
        return odds

    def _found(self, outcome: Outcome) -> _Found:
        """Return what an outcome counts for: all of it or nothing, but for files about something."""
        reward = outcome.reward
        if self.relevance is None:
            return _Found(float(reward > 0), reward > 0, reward > 0)
        is_file = not outcome.error and matches(effective_mime(outcome.mime, outcome.pick.url), self.looks_for)
        return _Found(min(max(reward, 0.0), 1.0), reward >= _COUNTS, reward > 0 or is_file)

    def _types_of(self, mission: Mission) -> frozenset[str]:
        return mission.types if self.targets is None else frozenset(self.targets)

    def _is_on_topic(self, mission: Mission) -> bool:
        """Whether links have a relevance: types are looked for, and the mission has a topic."""
        return mission.topic is not None and bool(self._types_of(mission))

    def _cost(self, outcome: Outcome) -> float:
        if outcome.pick.method == "RENDER":
            return self._cost_of_rendering(outcome)
        if self.saves == "bytes":
            return max(outcome.size, 1) / _BYTES
        return max(outcome.seconds, 1e-3) if self.saves == "seconds" else 1.0

    def _cost_of_rendering(self, outcome: Outcome) -> float:
        if self.saves == "bytes":
            return max(outcome.received or outcome.size, 1) / _BYTES
        if self.saves == "seconds":
            return max(outcome.seconds, 1e-3)
        return outcome.requests + self.render_cost


def _rivals(indices: NDArray[np.float64], best: float) -> list[int]:
    """Return the arms whose indices are not far below the best one, best first."""
    near = np.flatnonzero(indices >= min(best / _FAR, best))
    if len(near) > _RIVALS:
        near = near[np.argpartition(-indices[near], _RIVALS)[:_RIVALS]]
    rivals: list[int] = near[np.argsort(-indices[near], kind="stable")].tolist()
    return rivals


class _Found(NamedTuple):
    """What an outcome counts for."""

    worth: float  # from 0 to 1: its reward; without a topic, whether it has one
    counts: bool  # whether it is a target that is looked for
    is_file: bool  # whether it is a file of a wanted type, whatever it is about


class _Chosen(NamedTuple):
    """A link that was taken, with the data for its explanation."""

    pick: Pick
    score: float
    odds: float
    candidates: int  # links among which it was the best; 0: it was drawn at random
    second: int  # the other arm with the next best link, -1: none
    second_score: float
