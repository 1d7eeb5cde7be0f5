"""TP-OFF: groups of tag paths as in SB-CLASSIFIER, but learned once, at the start, and never again.

Exploring first and exploiting afterwards is the simplest use of tag paths. It needs no formula for what is worth a
try. The price is a long blind start, and groups that appear too late to be known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from attrs import field

from scrapy_focus.core.frontier import Ranked
from scrapy_focus.core.parameters import configurable, parameter
from scrapy_focus.core.printable import counted, printable
from scrapy_focus.core.reason import Part, Reason, depth_of
from scrapy_focus.core.types import Placement
from scrapy_focus.learn.arms import ArmStats, reward_tables
from scrapy_focus.policies.tagpath.groups import GroupsTagPaths
from scrapy_focus.policies.tagpath.oracles import Informed
from scrapy_focus.policies.tagpath.policy import SHOWN
from scrapy_focus.web.html import readable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.abilities import PolicyTable
    from scrapy_focus.core.types import Link, Memo, Outcome, Pick

QUEUE = 0  # links found in the learning phase: first in, first out
FIRST = 1  # the arm of group k is FIRST + k


@configurable
class TagPathOffline(GroupsTagPaths, Informed):
    """The TP-OFF baseline of the SB-CLASSIFIER paper: learn the values of groups of tag paths, then keep them.

    Links are grouped by their tag paths as in :class:`~scrapy_focus.policies.tagpath.TagPath`. The crawl is
    breadth-first for ``warmup`` requests. In these, each group gets a benefit: how many targets a page links to if it
    was reached by a link of the group, as a mean over all its pulls. Links that led to no page count as 0. Then links
    leave by the constant benefit of their group, uniformly among equals. Groups that appear later have benefit 0.

    Notes
    -----
    As published / as released, and what this class does:

    * *Counting*: the released code for recorded sites looks up the type of every link of a page without a request.
      With ``benefit="truth"`` so does this class, but it sees only the links that the crawl passes to ``place``:
      those that were not found before. In the released code for live crawls the lookups are disabled, and all
      benefits are 0. ``"credit"`` is possible without the truth.
    * *Targets*: a link that is itself a target does not lead to a page with targets. So groups of download links have
      benefit 0 and come last, as released.
    * *Redirects*: in the released code a link that redirects counts as 0. Here its group earns the benefit of the
      final page.
    * *Start page*: in the released code it has no group. Here it is in that of the empty path, as in TagPath.
    * *Ties*: the released code takes links of equal benefit in their arbitrary order in its heap. Here each is
      equally likely. That matters because the benefit of most groups is 0: emptying them one after the other gets
      stuck in the first that is endless. On the bundled portal (1,000 pages, a learning phase of 300 requests, 3
      seeds) four fifths of the requests find 0.40 of the targets in the uniform order and 0.03 in the other.
    * *Learning phase*: as released, the request that ends it is still chosen breadth-first, which makes 3,001. Here
      it is 3,000.

    *Memory*: clusters (64 MiB) and the cache of tag paths (30 MB), with the limits of
    :class:`~scrapy_focus.learn.clusters.Clusters` and :class:`~scrapy_focus.learn.text.GramProjector`; two numbers
    for each cluster, and the last 500 characters of its first path. Memos hold numbers of clusters, which never
    change. Pickled, this is about 7 MB when all is full.

    References
    ----------
    Gauquier, Manolescu, Senellart: Efficient Crawling for Scalable Web Data Acquisition. EDBT 2026, arXiv:2602.11874.

    Examples
    --------
    >>> import numpy as np
    >>> from scrapy_focus import Link, Mission, memory_frontier
    >>> policy = TagPathOffline()
    >>> policy.open(memory_frontier(), np.random.default_rng(0), Mission())
    >>> paths = ["html/body/nav/a", "html/body/main/table/tr/td/a", "html/body/nav/a"]
    >>> links = [Link(f"http://a/{i}", i, tag_path=path) for i, path in enumerate(paths)]
    >>> [int(place.memo[0]) for place in policy.place(links, None)]
    [1, 2, 1]
    """

    summary: ClassVar[str] = (
        "Spends its first requests on learning the value of each place on a page, and then keeps these values."
    )
    paper_names: ClassVar[Mapping[str, Mapping[str, Any]]] = {"TP-OFF": {"benefit": "truth"}}

    frontier: Ranked = field(init=False)

    warmup: int = parameter("Requests of the learning phase.", default=3000, at_least=0)
    benefit: Literal["truth", "credit"] = parameter(
        'How targets are counted. ``"credit"``: the page where a target was found earns its reward when it has '
        'arrived during the learning phase. ``"truth"``: the kind of every link of a page is looked up, which needs '
        ":meth:`~scrapy_focus.policies.tagpath.oracles.Informed.inform`.",
        default="credit",
    )

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.steps = 0
        self.stats = ArmStats()  # of the learning phase
        self._learning = True
        self._names: dict[int, str] = {}
        self._found = 0

    @property
    def needs_truth(self) -> bool:
        return self.benefit == "truth"

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        page_arm = -1 if source is None else self._arm_of(source.pick)
        if self._learning and self.benefit == "truth":
            n_targets = self._count_targets(links)  # without the truth, the first link raises an error
            if page_arm >= FIRST:
                self.stats.earn(page_arm, n_targets)
        paths: dict[str, list[int]] = {}
        for i, link in enumerate(links):
            paths.setdefault(link.tag_path, []).append(i)
        placements: list[Placement | None] = [None] * len(links)
        for path, positions in paths.items():
            arm = self._group(path, len(positions))
            if self._learning:
                memo = np.array([arm, page_arm], np.float32)
                for i in positions:
                    placements[i] = Placement(QUEUE, -float(self._found + i), memo)
            else:
                for i, rank in zip(positions, self.rng.random(len(positions)).tolist(), strict=True):
                    placements[i] = Placement(arm, rank)
        self._found += len(links)
        return placements

    def _count_targets(self, links: Sequence[Link]) -> float:
        kind = self.truth.kind
        return float(sum(kind(link.url) == "target" for link in links))

    def select(self, busy: Collection[str]) -> Pick | None:
        self._learning = self._learning and self.steps < self.warmup
        if not self._learning and self.frontier.waiting[: QUEUE + 1].any():
            self._group_queue()
        awake = self.frontier.awake(busy)
        if not awake.any():
            return None
        if self._learning:
            arm, chance = QUEUE, 1.0
        else:
            ends = self._best(awake).cumsum()
            arm, chance = int(np.searchsorted(ends, self.rng.integers(ends[-1]), side="right")), 1 / int(ends[-1])
        pick = self.frontier.pop(arm, busy)
        if pick is None:
            return None
        self.steps += 1
        if self._learning:
            self.stats.pull(self._arm_of(pick))
        return pick._replace(chance=chance)

    def release(self, pick: Pick) -> None:
        self.steps -= 1
        if self._learning:
            self.stats.unpull(self._arm_of(pick))

    def learn(self, outcome: Outcome) -> None:
        memo = outcome.pick.memo
        if self._learning and self.benefit == "credit" and outcome.reward > 0 and memo is not None and memo[1] >= FIRST:
            self.stats.earn(int(memo[1]), outcome.reward)

    def explain(self, pick: Pick) -> Reason:
        arm = self._arm_of(pick)
        name = self._names[arm]
        if pick.arm == QUEUE:
            numbers = {"kind": "learning: first in, first out", "tag_path": name}
            return Reason(depth_of(pick), Part("first in, first out until enough is known", numbers))
        pulls = float(self.stats.pulls[arm]) if arm < self.stats.n_arms else 0.0
        benefit = float(self._benefits(arm + 1)[arm])
        place = printable(readable(name))
        return Reason(
            depth_of(pick),
            Part(
                f"{counted(pulls, 'link')} at {place} followed, {benefit:.2g} finds expected of the next",
                {"kind": "page", "tag_path": name, "pulls": pulls, "benefit": benefit},
            ),
        )

    def best_arms(self, k: int) -> list[tuple[str, float, int]]:
        sums, pulls = self.stats.sums, self.stats.pulls
        best = [int(arm) for arm in np.argsort(-sums, kind="stable")[:k] if sums[arm] > 0]
        return [(self._names[arm], float(sums[arm]), int(pulls[arm])) for arm in best]

    def tables(self) -> list[PolicyTable]:
        return reward_tables(self.stats.sums, self.stats.pulls)

    def _benefits(self, n_arms: int) -> NDArray[np.float64]:
        """Return the value of each arm, shape (n_arms,); groups that appeared after the learning phase have 0."""
        benefits = np.zeros(n_arms)
        means = self.stats.means[:n_arms]
        benefits[: len(means)] = means
        return benefits

    def _best(self, awake: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many links can leave each arm with the largest benefit, 0 for all others, shape (n_arms,)."""
        benefits = np.where(awake > 0, self._benefits(len(awake)), -np.inf)
        return np.where(benefits == benefits.max(), awake, 0)

    def _group_queue(self) -> None:
        """Move links queued in the learning phase to their groups; later those released or stored meanwhile."""
        waiting = sorted(self.frontier.scan(QUEUE), key=lambda found: -found[1].rank)
        ranks = self.rng.random(len(waiting)).tolist()
        places = [Placement(self._arm_in(place.memo), rank) for (_, place), rank in zip(waiting, ranks, strict=True)]
        self.frontier.move([link.key for link, _ in waiting], places)

    def _arm_of(self, pick: Pick) -> int:
        return pick.arm if pick.arm >= FIRST else self._arm_in(pick.memo)

    def _arm_in(self, memo: Memo | None) -> int:
        """Return the arm of the group that a link noted; a link that another policy placed has the empty path."""
        return self._group("") if memo is None else int(memo[0])

    def _group(self, path: str, count: int = 1) -> int:
        where, values = self.projector.project(path, ["", *path.split("/")])
        arm = FIRST + self.clusters.assign(where, values, count)
        self._names.setdefault(arm, path[-SHOWN:])
        return arm
