"""SB-CLASSIFIER: a sleeping bandit over tag paths, with a classifier that predicts which links are targets.

Pages of one kind are linked from one kind of place: the dataset pages of a portal from the titles of its catalogue,
its files from a download list. The path of tags from the root of a page to a link distinguishes these places on any
site, whatever its language. So links are grouped by their tag paths, and a bandit learns which group leads to pages
with many targets. A second learner predicts from the URL alone which links are targets themselves; these are fetched
at once.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from attrs import field

from scrapy_focus.core.extras import require_extra
from scrapy_focus.core.frontier import Ranked
from scrapy_focus.core.parameters import configurable, parameter
from scrapy_focus.core.printable import counted, printable
from scrapy_focus.core.reason import Part, Reason, depth_of
from scrapy_focus.core.types import Placement, State
from scrapy_focus.learn.arms import ArmStats, auer, reward_tables
from scrapy_focus.learn.classifier import Model, OnlineClassifier
from scrapy_focus.policies.bases import best_arm
from scrapy_focus.policies.tagpath.groups import GroupsTagPaths
from scrapy_focus.policies.tagpath.link_texts import Features, LinkTexts
from scrapy_focus.web.html import readable
from scrapy_focus.web.mime import blocked_extensions, extension

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.abilities import PolicyTable
    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.types import Link, Memo, Outcome, Pick

Accounting = Literal["released", "full"]

TARGETS = 0  # links that are predicted to be targets: fetched at once, first in first out
PROBES = 1  # links to be requested with HEAD, while the classifier is untrained
FIRST = 2  # the arm of cluster k is FIRST + k

SHOWN = 500  # characters of a tag path, from its end, that name a cluster

_GONE = (404, 410)
_PATIENCE = 3  # worthless files of a blocked kind, after which no more are requested
_ROOM = 1 << 22  # characters of all tag paths that have a number, and for each path as many more as Python adds:
_OVERHEAD = 64
_NO_PATH = -1
_MOST_ADOPTED = 4096


@configurable
class TagPath(GroupsTagPaths):
    """The sleeping bandit over tag paths of SB-CLASSIFIER.

    The tag path of a link becomes a bag of n-grams, hashed into a vector. Vectors are clustered online by cosine
    similarity, and each cluster is an arm. The next page comes from the awake arm with the best AUER score, uniformly
    within it; an arm earns 1 for each target found through one of its pages. An online classifier over the characters
    of the URL predicts which links are targets: they are fetched at once. It learns from HEAD requests until its
    first batch is full, and after that from the fetched results.

    Notes
    -----
    As published / as released, and what this class does:

    * *Path*: the released code joins all classes of an element behind one dot, the paper shows a dot for each. Here
      it is as released; but a ``/`` within a class does not end the element.
    * *Failures*: in the released code a pull that led to no page (an error, or a target predicted to be a page) is
      not counted, so an arm of dead links keeps the bonus of an untried one. As released by default.
    * *Reward*: the released code adds 1 when a link is classified as a target and the truth, looked up, agrees. Here
      1 is added when the target has arrived: the same, but without the truth.
    * *Redirects*: in the released code a URL that redirects never becomes a label. Here the requested URL gets the
      label of the final response.
    * *Step count*: ``t`` in the score is the number of requests, HEAD and GET, as released.
    * *Links of one page* with equal paths join their cluster at once, not one after the other.
    * *Pages predicted to be targets* count as pulls of the cluster of their path, as released. With ``"full"``, where
      targets are pages and most come this way, they only earn for it: on the bundled portal that finds 101 of 130
      items with 500 requests, and 94 if they count (8 seeds).
    * *HEADs that fail*: in the released code a link whose HEAD gives an error is dropped. Here it is predicted to be
      a page, unless it is gone (404, 410) on a server that answers other HEADs; and after a batch of failures in a
      row no more are sent.
    * *Case*: the released code reads URLs in lower case, the paper keeps upper and lower case apart. Here it is as
      released; ``case_sensitive`` is as published.
    * *Variants of the classifier* are in the paper only, without their details. Here, each of the four texts of a link
      has its own block of pairs, as URL and anchor have in FOCUSED, and models have the defaults of scikit-learn.
    * *First labels*: the released code keeps sending HEADs until it has looked at one more link than a batch; here
      the links still queued for a HEAD are classified as soon as the classifier is trained.

    *Memory*: everything that grows with a crawl has a limit, and the memos of queued links stay valid beyond it. Most
    of it is clusters (64 MiB) and the cache of tag paths (30 MB), with the limits of
    :class:`~scrapy_focus.learn.clusters.Clusters` and :class:`~scrapy_focus.learn.text.GramProjector`. A link that is
    to be fetched at once, or queued for a HEAD, notes its tag path by a number. Paths get permanent numbers until all
    numbered ones take 4 MB (some 30,000 paths). Any other path stands for the cluster that was nearest to it when the
    link was found, and moves no centroid. A cluster has two numbers and the last 500 characters of its first path, an
    extension in ``blocked`` one number. The links whose HEAD trained the classifier are remembered for one batch and
    those in flight. Pickled, this is about 10 MB when all is full. The classifier has 72 kB of weights, 361 kB with
    ``"bayes"``, and four times as many with ``features="context"``. Then each queued link notes its anchor and its
    surrounding text in its memo, 200 bytes of each: 0.1 GB in the frontier for a million links, 0.4 GB at most. Its tag
    path has a number, or is that of its cluster.

    References
    ----------
    Gauquier, Manolescu, Senellart: Efficient Crawling for Scalable Web Data Acquisition. EDBT 2026, arXiv:2602.11874.

    Examples
    --------
    >>> import numpy as np
    >>> from scrapy_focus import Link, Mission, memory_frontier
    >>> policy = TagPath(probe=False)
    >>> policy.open(memory_frontier(), np.random.default_rng(0), Mission())
    >>> paths = ["html/body/nav/a", "html/body/main/table/tr/td/a", "html/body/nav/a"]
    >>> links = [Link(f"http://a/{i}", i, tag_path=path) for i, path in enumerate(paths)]
    >>> [place.arm for place in policy.place(links, None)]
    [2, 3, 2]
    """

    summary: ClassVar[str] = (
        "Learns during the crawl which places on a page have links to targets, and which addresses look like targets."
    )
    paper_names: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "SB-CLASSIFIER": {},
        "URL_ONLY-LR": {},
        "URL_ONLY-SVM": {"classifier": "svm"},
        "URL_ONLY-NB": {"classifier": "bayes"},
        "URL_ONLY-PA": {"classifier": "passive-aggressive"},
        "URL_CONT-LR": {"features": "context"},
        "URL_CONT-SVM": {"features": "context", "classifier": "svm"},
        "URL_CONT-NB": {"features": "context", "classifier": "bayes"},
        "URL_CONT-PA": {"features": "context", "classifier": "passive-aggressive"},
    }

    frontier: Ranked = field(init=False)

    alpha: float = parameter("Weight of exploration in the AUER score.", default=2 * math.sqrt(2), at_least=0)
    batch: int = parameter("Labels to collect before each training of the classifier.", default=10, at_least=1)
    classifier: Model = parameter(
        'How links are classified: logistic regression (``"logistic"``), a linear SVM (``"svm"``), multinomial naive '
        'Bayes (``"bayes"``), or ``"passive-aggressive"``.',
        default="logistic",
    )
    features: Features = parameter(
        'What the classifier reads: the ``"url"``, or with ``"context"`` also the anchor, the tag path and the text '
        "around the link.",
        default="url",
    )
    case_sensitive: bool = parameter(
        "Whether the classifier distinguishes upper and lower case, as published.", default=False
    )
    probe: bool | None = parameter(
        "Learn the first labels from HEAD requests; by default if the mission says that headers identify a target.",
        default=None,
    )
    accounting: Accounting | None = parameter(
        'What counts as a pull. ``"released"``: only pulls that led to a page, as in the released code, and by '
        'default if headers identify a target. ``"full"``: every pull, and one whose page is a target earns its '
        "reward; by default if targets may be pages.",
        default=None,
    )
    blocked: Collection[str] | None = parameter(
        'Extensions of URLs that are never requested, except as seeds; with ``accounting="full"``, if anything may be '
        "a target, only after three of the kind were fetched in vain. By default those of images, films and the "
        "like that the mission does not look for.",
        default=None,
        convert=frozenset,
    )

    def __attrs_post_init__(self) -> None:
        require_extra("TagPath", "topic", "sklearn")
        super().__attrs_post_init__()
        self.stats = ArmStats()
        self.steps = 0
        self._texts = LinkTexts(self.features, self.case_sensitive)
        self.predictor = OnlineClassifier(n_features=self._texts.n_features, batch=self.batch, model=self.classifier)
        self._paths: dict[str, int] = {}  # the number of each path: its position in _path_names
        self._path_names: list[str] = []
        self._room = _ROOM
        self._names: dict[int, str] = {}
        self._queued = 0
        # per blocked extension: fetched in vain; -inf: one had a reward
        self._in_vain: dict[str, float] = {}
        self._heads_work = False  # whether any HEAD succeeded
        self._unanswered = 0  # HEADs in a row that did not
        self._adopted: dict[int, int] = {}  # picks predicted to be targets that gave links -> the arm of their path
        self._labelled: set[int] = set()  # keys whose HEAD trained the classifier, until they are fetched

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        self._probes = mission.heads_tell if self.probe is None else self.probe
        self._accounting = self.accounting or ("released" if mission.heads_tell else "full")
        self._blocked = frozenset(blocked_extensions(mission.types)) if self.blocked is None else self.blocked
        super().open(frontier, rng, mission)

    def attach(self, frontier: Frontier) -> None:
        super().attach(frontier)
        self.stats.ensure(FIRST)

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        if source is not None and links and links[0].state == State.PROBED:
            return [self._place_probed(links[0], source)]
        page_arm = -1 if source is None else self._page_arm(source)
        inherited = source is not None and page_arm != source.pick.arm
        placements: list[Placement | None] = []
        memos: dict[str, Memo] = {}
        pages: dict[str, list[int]] = {}
        for i, link in enumerate(links):
            placements.append(None)
            arm = self._classify(link, seed=source is None)
            if arm == FIRST:
                pages.setdefault(link.tag_path, []).append(i)
            elif arm is not None:
                if link.tag_path not in memos:
                    memos[link.tag_path] = _memo(self._number(link.tag_path), page_arm)
                placements[i] = self._wait(arm, memos[link.tag_path], "HEAD" if arm == PROBES else "GET")
        memo = _memo(_NO_PATH, page_arm) if inherited else None
        for path, positions in pages.items():
            arm = self._cluster(path, len(positions))
            for i, rank in zip(positions, self.rng.random(len(positions)).tolist(), strict=True):
                placements[i] = Placement(arm, rank, memo)
        return self._with_notes(placements, links, page_arm) if self._texts.in_context else placements

    def select(self, busy: Collection[str]) -> Pick | None:
        awake = self.frontier.awake(busy)
        if not awake.any():
            return None
        arm = next((arm for arm in (TARGETS, PROBES) if arm < len(awake) and awake[arm]), -1)
        if arm < 0:
            scores = auer(self.stats, self.steps, alpha=self.alpha)
            arm = best_arm(scores, awake)
        pick = self.frontier.pop(arm, busy)
        if pick is None:
            return None
        self.steps += 1
        if pick.arm >= FIRST:
            self.stats.pull(pick.arm)
            return pick._replace(chance=1 / int(awake[arm]))
        return pick._replace(chance=1.0)

    def release(self, pick: Pick) -> None:
        self.steps -= 1
        if pick.arm >= FIRST:
            self.stats.unpull(pick.arm)

    def learn(self, outcome: Outcome) -> None:
        pick = outcome.pick
        if pick.method == "HEAD":
            return
        if outcome.reward > 0:
            self._credit(pick, outcome.reward)
        self._judge_extension(extension(pick.url), outcome)
        adopted = self._adopted.pop(pick.id, None)
        if adopted is not None:
            self.stats.pull(adopted)
        arm = pick.arm if adopted is None else adopted
        if arm >= FIRST:
            if self._accounting == "full":
                self.stats.earn(arm, outcome.reward)
            elif not outcome.is_html:
                self.stats.unpull(arm)
        if pick.key in self._labelled:
            self._labelled.discard(pick.key)
        else:
            self._label(outcome)

    def _credit(self, pick: Pick, reward: float) -> None:
        """Credit a reward to the arm of the page that led to the target."""
        credited = pick.origin if pick.memo is None else int(pick.memo[1])
        if credited >= FIRST:
            self.stats.earn(credited, reward)

    def _judge_extension(self, name: str, outcome: Outcome) -> None:
        """Count how often a blocked extension was followed in vain; after one reward, that is never counted again."""
        if name not in self._blocked:
            return
        if outcome.reward > 0 or outcome.is_html:
            self._in_vain[name] = -math.inf
        else:
            self._in_vain[name] = self._in_vain.get(name, 0) + 1

    def explain(self, pick: Pick) -> Reason:
        if pick.arm < FIRST:
            is_target = pick.arm == TARGETS
            sentence = "predicted to be a find" if is_target else "type unknown, so only its headers are asked for"
            kind = "predicted target" if is_target else "unknown: HEAD first"
            return Reason(depth_of(pick), Part(sentence, {"kind": kind}))
        pulls = float(self.stats.pulls[pick.arm]) - 1  # as they were when this pull was chosen
        mean = float(self.stats.sums[pick.arm]) / max(pulls, 1)
        bonus = self.alpha * math.sqrt(math.log(max(self.steps - 1, 1)) / (pulls + 1e-6))
        place = self._names[pick.arm]
        where = printable(readable(place))
        record = f"{counted(pulls, 'link')} at {where} brought {mean:.2g} finds each"
        return Reason(
            depth_of(pick),
            Part(
                record if pulls else f"no link at {where} was known",
                {"kind": "page", "tag_path": place, "pulls": pulls, "mean": mean},
            ),
            Part(
                f"score {mean + bonus:.2g}, {bonus:.2g} of it as so few were tried",
                {"bonus": bonus, "score": mean + bonus},
            ),
        )

    def best_arms(self, k: int) -> list[tuple[str, float, int]]:
        sums, pulls = self.stats.sums, self.stats.pulls
        best = [int(arm) for arm in np.argsort(-sums, kind="stable")[:k] if sums[arm] > 0]
        return [(self._names[arm], float(sums[arm]), int(pulls[arm])) for arm in best]

    def tables(self) -> list[PolicyTable]:
        return reward_tables(self.stats.sums, self.stats.pulls)

    def _classify(self, link: Link, *, seed: bool) -> int | None:
        """Return ``TARGETS``, ``PROBES``, or ``FIRST`` for a page, whichever its cluster; ``None`` gives a link up."""
        if not seed and self._is_blocked(link.url):
            return None
        if not seed and self._probing:
            return PROBES
        return TARGETS if self.predictor.predict(self._texts.found(link)) else FIRST

    def _place_probed(self, link: Link, head: Outcome) -> Placement | None:
        pick = head.pick
        memo = _memo(self._number(""), -1) if pick.memo is None else pick.memo
        labels = self.predictor.labels
        target = self._label(head)
        if self.predictor.labels > labels:
            self._labelled.add(link.key)
        if target:
            return self._wait(TARGETS, memo)
        answered = head.status is not None and head.status < 400
        # A server that supports no HEAD at all may answer 404 to it, and have the page.
        gone = head.error == "ignored" or (head.status in _GONE and self._heads_work)
        self._count_head(answered=answered, gone=gone)
        if gone or (answered and head.mime and not head.is_html):
            return None
        arm = self._arm_of(memo)
        is_needed = self._texts.in_context or memo[1] != pick.origin
        return Placement(arm, float(self.rng.random()), memo if is_needed else None)

    def _count_head(self, *, answered: bool, gone: bool) -> None:
        """Stop probing when as many as a batch failed in a row."""
        self._heads_work |= answered
        if answered or gone:
            self._unanswered = 0
        else:
            self._unanswered += 1
        if self._unanswered == self.batch:
            self._classify_probes()

    @property
    def _probing(self) -> bool:
        return self._probes and not self.predictor.ready and self._unanswered < self.batch

    def _label(self, outcome: Outcome) -> bool:
        """Train the classifier with an outcome, if it is conclusive; return whether it was a target."""
        target = outcome.reward > 0
        well = outcome.status is not None and 200 <= outcome.status < 300
        if target or (outcome.is_html and well):
            before = self.predictor.ready
            self.predictor.observe(self._noted(outcome.pick.url, outcome.pick.memo), target)
            if self.predictor.ready and not before:
                self._classify_probes()
        return target

    def _classify_probes(self) -> None:
        waiting = sorted(self.frontier.scan(PROBES), key=lambda found: (-found[1].rank, found[0].key))
        places = []
        for link, place in waiting:
            if self.predictor.predict(self._noted(link.url, place.memo)):
                places.append(Placement(TARGETS, place.rank, place.memo))
            else:
                places.append(Placement(self._arm_of(place.memo), float(self.rng.random()), place.memo))
        self.frontier.move([link.key for link, _ in waiting], places)

    def _is_blocked(self, url: str) -> bool:
        name = extension(url)
        sure = self._accounting == "released" or self._in_vain.get(name, 0) >= _PATIENCE
        return name in self._blocked and sure

    def _page_arm(self, source: Outcome) -> int:
        """The arm that is credited for targets found on this page."""
        pick = source.pick
        if pick.arm >= FIRST:
            return pick.arm
        arm = self._arm_of(pick.memo)
        if self._accounting == "released":
            self._adopted[pick.id] = arm
            if len(self._adopted) > _MOST_ADOPTED:  # links came after the outcome of their page
                del self._adopted[next(iter(self._adopted))]
        return arm

    def _with_notes(
        self, placements: Sequence[Placement | None], links: Sequence[Link], page_arm: int
    ) -> Sequence[Placement | None]:
        """Return placements with what the classifier will read of the links in their memos."""
        noted: list[Placement | None] = []
        for place, link in zip(placements, links, strict=True):
            noted.append(place)
            if place is not None:
                memo = _memo(self._number(link.tag_path), page_arm)
                noted[-1] = place._replace(memo=np.concatenate([memo, self._texts.note(link)]))
        return noted

    def _noted(self, url: str, memo: Memo | None) -> NDArray[np.intp]:
        """Return the features of a link that was queued with this memo."""
        if memo is None:
            return self._texts.noted(url, "", np.zeros(0, np.float32))
        number = int(memo[0])
        path = self._path_names[number] if number >= 0 else self._names.get(-number, "")
        return self._texts.noted(url, path, memo[2:])

    def _wait(self, arm: int, memo: Memo, method: Literal["GET", "HEAD"] = "GET") -> Placement:
        self._queued += 1
        return Placement(arm, -float(self._queued), memo, method)

    def _number(self, path: str) -> int:
        """Return how a queued link notes its path: by a permanent number, or, negative, an arm."""
        number = self._paths.get(path)
        if number is not None:
            return number
        cost = len(path) + _OVERHEAD
        if cost > self._room:
            nearest, _ = self.clusters.nearest(*self._project(path))
            return -(FIRST + nearest if nearest >= 0 else self._cluster(path))
        self._room -= cost
        self._path_names.append(path)
        self._paths[path] = len(self._path_names) - 1
        return self._paths[path]

    def _arm_of(self, memo: Memo | None) -> int:
        """Return the cluster of the path that a link noted, which joins it; without a memo it is the empty path."""
        if memo is None:
            return self._cluster("")
        number = int(memo[0])
        return self._cluster(self._path_names[number]) if number >= 0 else -number

    def _cluster(self, path: str, count: int = 1) -> int:
        arm = FIRST + self.clusters.assign(*self._project(path), count)
        self._names.setdefault(arm, path[-SHOWN:])
        self.stats.ensure(arm + 1)
        return arm

    def _project(self, path: str) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        return self.projector.project(path, ["", *path.split("/")])

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_paths": None}  # recomputed from the names

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "predictor" not in state:  # from before there were variants of the classifier
            state = {**state, "predictor": state["classifier"], "_texts": LinkTexts("url", case_sensitive=False)}
            state |= {"classifier": "logistic", "features": "url", "case_sensitive": False}
        self.__dict__.update(state)
        self._paths = {path: number for number, path in enumerate(self._path_names)}


def _memo(path: int, credited: int) -> NDArray[np.float32]:
    """Return the memo of a queued link: its path, see ``TagPath._number``, and the arm that a target credits."""
    return np.array([path, credited], np.float32)
