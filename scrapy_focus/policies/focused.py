"""FOCUSED: a crawl ordered only by a classifier of links.

Files are often recognised by their links: by an extension, a folder, the word "download". The classical focused
crawler learns that from fetched pages, and always requests the link that is most likely a target. It cannot learn
which pages lead to targets: it has no reason to prefer either of two links that are not targets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from attrs import field

from scrapy_focus.core.extras import require_extra
from scrapy_focus.core.frontier import Ranked
from scrapy_focus.core.parameters import configurable, parameter
from scrapy_focus.core.policy import Policy
from scrapy_focus.core.reason import Part, Reason, depth_of
from scrapy_focus.core.types import Placement
from scrapy_focus.learn.classifier import OnlineClassifier
from scrapy_focus.learn.text import N_PAIRS, char_pairs

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link, Memo, Outcome, Pick

QUEUE = 0  # links found during the warm-up: first in, first out
RANKED = 1  # links with a probability

N_FEATURES = 1 + 2 * N_PAIRS  # depth, pairs of the URL, pairs of the anchor

# A rank is the log-odds, minus a little for each link found before: the first 22 bits hold the log-odds, the last 30
# the order.
_EQUAL = 2.0**-13  # log-odds that differ by less count as equal
_LATER = 2.0**-43
_LEAST, _MOST = -745.0, 37.0  # beyond these a probability is exactly 0 or 1
_DEEPEST = 1000


@configurable
class Focused(Policy):
    """The FOCUSED baseline of the SB-CLASSIFIER paper: most probable target first.

    The crawl is breadth-first for the first ``warmup`` requests. Then a logistic regression learns from all results.
    Its features are the depth of a link and the pairs of characters in its URL and its anchor. All queued links are
    ranked by their probability of being a target. From then on the classifier learns from every ``batch`` of labels,
    and each link is ranked once, when it is found. A target has the label 1, a page or any other file the label 0;
    errors and start pages have none.

    Notes
    -----
    As published / as released, and what this class does:

    * *Ranking*: as released, queued links are ranked again once, when the warm-up ends, and never again.
    * *Ties*: the steps of the regression are so large that most probabilities are exactly 0 or 1. The released code
      takes equal links in their arbitrary order in its heap. Here the link that was found first is first.
    * *Traps*: on endless pages, each of which leads to more of its kind, it may be stuck for good, because other
      queued links keep their ranks. On the bundled portal that is the calendar; if that is finite, half of the
      requests find 0.63 of the targets, and a random order 0.42 (3 seeds, 1,000 pages).
    * *Warm-up*: as released, the request that ends it is still chosen breadth-first, which makes 101. Here it is 100.
    * *Labels*: the released code takes none from the first two requests; here the seeds give none. As released, a URL
      that redirects gets the label of its final response.
    * *Anchors*: the released code reads the whole text within a link; here the adapter may cut it.
    * *Queued links*: the released code keeps two sparse matrices for each link. Here a queued link keeps the pairs of
      its anchor, four bytes each; everything else is computed on demand.

    *Memory*: 18,051 weights, and the labels of one batch or of the warm-up. A warm-up of more than some 12,000 labels
    is learned in parts, see :meth:`OnlineClassifier.collect <scrapy_focus.learn.classifier.OnlineClassifier.collect>`.
    The feature *depth* ends at 1,000 clicks, which only a page without an end reaches.

    References
    ----------
    Gauquier, Manolescu, Senellart: Efficient Crawling for Scalable Web Data Acquisition. EDBT 2026, arXiv:2602.11874.

    Examples
    --------
    >>> import numpy as np
    >>> from scrapy_focus import Link, Mission, memory_frontier
    >>> policy = Focused(warmup=0)
    >>> policy.open(memory_frontier(), np.random.default_rng(0), Mission())
    >>> [place.arm for place in policy.place([Link("http://a/1", 1, anchor="CSV")], None)]
    [0]
    >>> policy.place([Link("http://a/1", 1, anchor="CSV")], None)[0].memo.size
    2
    """

    summary: ClassVar[str] = "Learns which addresses look like targets, and asks for the likeliest ones first."
    paper_names: ClassVar[Mapping[str, Mapping[str, Any]]] = {"FOCUSED": {}}

    frontier: Ranked = field(init=False)

    warmup: int = parameter("Breadth-first requests at the start.", default=100, at_least=0)
    batch: int = parameter("Labels to collect before each training after the first.", default=10, at_least=1)

    def __attrs_post_init__(self) -> None:
        require_extra("Focused", "topic", "sklearn")
        self.steps = 0
        self.classifier = OnlineClassifier(n_features=N_FEATURES, batch=self.batch)
        self._warming = True
        self._found = 0

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        memos = [_memo(link.anchor) for link in links]
        orders = -np.arange(self._found + 1, self._found + 1 + len(links), dtype=np.float64)
        self._found += len(links)
        if self._warming:
            return [Placement(QUEUE, order, memo) for order, memo in zip(orders.tolist(), memos, strict=True)]
        rows = [_features(link.url, link.depth, memo) for link, memo in zip(links, memos, strict=True)]
        return self._ranked(rows, memos, orders)

    def select(self, busy: Collection[str]) -> Pick | None:
        if self._warming and self.steps >= self.warmup:
            self._warming = False
            self.classifier.train()
        if not self._warming and self.frontier.waiting[: QUEUE + 1].any():
            self._rank_queue()
        pick = self.frontier.pop(QUEUE if self._warming else RANKED, busy)
        if pick is not None:
            self.steps += 1
        return pick

    def release(self, pick: Pick) -> None:
        self.steps -= 1

    def learn(self, outcome: Outcome) -> None:
        pick = outcome.pick
        if pick.origin < 0 or outcome.error or outcome.status is None or outcome.status >= 400:
            return
        features = _features(pick.url, pick.depth, pick.memo)
        if self._warming:
            self.classifier.collect(features, outcome.reward > 0)
        else:
            self.classifier.observe(features, outcome.reward > 0)

    def explain(self, pick: Pick) -> Reason:
        if pick.arm == QUEUE:
            kind = "warm-up: first in, first out"
            return Reason(depth_of(pick), Part("first in, first out until enough is known", {"kind": kind}))
        probability = math.exp(min(pick.rank, 0)) / (1 + math.exp(-abs(pick.rank)))
        numbers = {"kind": "most probable target", "probability": probability}
        return Reason(depth_of(pick), Part(f"{100 * probability:.0f} % likely to be a find", numbers))

    def _rank_queue(self) -> None:
        """Rank links from the warm-up: all of them when it ends, later those released or stored meanwhile."""
        waiting = sorted(self.frontier.scan(QUEUE), key=lambda found: (-found[1].rank, found[0].key))
        memos = [place.memo for _, place in waiting]
        rows = [_features(link.url, link.depth, memo) for (link, _), memo in zip(waiting, memos, strict=True)]
        places = self._ranked(rows, memos, np.array([place.rank for _, place in waiting]))
        self.frontier.move([link.key for link, _ in waiting], places)

    def _ranked(
        self,
        rows: Sequence[NDArray[np.intp]],
        memos: Sequence[Memo | None],
        orders: NDArray[np.float64],
    ) -> list[Placement]:
        odds = np.rint(self.classifier.decide(rows).clip(_LEAST, _MOST) / _EQUAL) * _EQUAL
        ranks = (odds + orders * _LATER).tolist()
        return [Placement(RANKED, rank, memo) for rank, memo in zip(ranks, memos, strict=True)]


def _memo(anchor: str) -> NDArray[np.float32] | None:
    """Return the pairs of an anchor, shape (n_pairs,), ``None`` if it has none."""
    pairs = char_pairs(anchor)
    return pairs.astype(np.float32) if len(pairs) else None


def _features(url: str, depth: int, memo: Memo | None) -> NDArray[np.intp]:
    """Return the index of each feature of a link, repeated as often as it counts, shape (depth + n_pairs,)."""
    parts = [np.zeros(min(depth, _DEEPEST), np.intp), char_pairs(url) + 1]
    if memo is not None:
        parts.append(memo.astype(np.intp) + (1 + N_PAIRS))
    return np.concatenate(parts)
