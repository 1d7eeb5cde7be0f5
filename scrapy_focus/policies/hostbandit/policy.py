"""A bandit of hosts for crawls of many hosts: which host to request from next, and which of its pages.

Anthelion looked for pages with structured data: each host is an arm, an online classifier scores the links of a host,
and both learn from the parsed data. The goal gives the reward; nothing here depends on structured data.

References
----------
Meusel, Mika, Blanco: Focused Crawling for Structured Data. CIKM 2014.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, cast

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.frontier import Ranks, Vectors
from scrapy_focus.core.parameters import configurable, error_about, parameter
from scrapy_focus.core.policy import Policy
from scrapy_focus.core.printable import counted
from scrapy_focus.core.reason import Part, Reason, depth_of
from scrapy_focus.core.types import Link, Placement, State
from scrapy_focus.learn.arms import reward_tables
from scrapy_focus.policies.domains import Domains
from scrapy_focus.policies.hostbandit.features import (
    PARENTS,
    WIDTH,
    LinkFeatures,
    Pages,
    size_features,
    tokens_of,
)
from scrapy_focus.policies.hostbandit.hosts import ARMS, HostTable
from scrapy_focus.policies.hostbandit.judge import judge_of, probabilities
from scrapy_focus.policies.hostbandit.scores import JOINT, SCORES
from scrapy_focus.topic.models import load_relevance

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.abilities import PolicyTable
    from scrapy_focus.core.frontier import Drawn, Frontier, Keeps, Ranked
    from scrapy_focus.core.mission import Mission, Topic
    from scrapy_focus.core.types import Outcome, Pick

Decay = Literal["none", "hyperbolic", "exponential"]
Classifier = Literal["hashed", "bayes", "sgd", "static"]

PUBLISHED = "cikm-2014"

_HASHED, _STATIC = "hashed", "static"  # classifiers

_TOKENS, _ARM = 2 * WIDTH, 4  # bytes of a queued link: its own features, the number of its arm, its parents
_BYTES = _TOKENS + _ARM + 4 * PARENTS
_KNOWN = 100  # queued links of a page that are marked as linked from it, too
_TRIED = 6  # number of best hosts whose links are drawn together ...
_OTHERS = 2  # ... with those of so many at random ...
_ROUNDS = 2  # ... while a better one comes up, at most this often
_LOOKED = 64  # draws for a host at random before all are searched
_AVERAGED = 200.0  # links over which the mean probability is averaged
_GIVEN_UP = 200  # links that are given up after an outcome
_FIRST = np.ones(1, np.bool_)
_NO_PARENT = np.zeros((1, PARENTS), np.uint32)


@configurable
class HostBandit(Policy):
    """Takes the best link of the best host, by the rewards of its pages and the predictions for its links.

    Notes
    -----
    *Order*: at each choice, the best hosts by their last known scores, and some random ones, are scored again: their
    links are scored by the current model. So a host whose links have become more promising since they were found
    comes up after a while, and not at once. The Thompson sample of a host is drawn again when something happens to
    the host, or when it is among the random ones.

    *In flight*: a pick counts for its host when its outcome arrives.

    *Memory*: 64 bytes of features for a queued link; for a host, 28 bytes here, up to 56 to find it and its score,
    and the size of an arm in the frontier; 21 for a fetched page. There are a million arms at most; further hosts
    share them.

    Raises
    ------
    ConfigError
        If a parameter is not in its range, or the static model cannot be read.

    Examples
    --------
    >>> from scrapy_focus import Crawl, Link, Outcome, memory_frontier
    >>> crawl = Crawl(HostBandit(explore=0), frontier=memory_frontier, goal=lambda outcome: "cake" in outcome.pick.url)
    >>> urls = [f"http://{host}.test/{n}" for n in range(3) for host in ("news", "cakes")]
    >>> crawl.add([Link(url, key, url[7:-2]) for key, url in enumerate(urls)])
    6
    >>> chosen = []
    >>> while (pick := crawl.next()) is not None:
    ...     chosen.append(pick.host)
    ...     crawl.report(Outcome(pick, 200, "text/html"))
    >>> chosen
    ['news.test', 'cakes.test', 'cakes.test', 'cakes.test', 'news.test', 'news.test']
    """

    summary: ClassVar[str] = "Learns which hosts are worth visiting, and which of their links to take first."
    may_change: ClassVar[frozenset[str]] = frozenset(("explore",))

    score: str | None = parameter(
        "How hosts are scored, one of :data:`~scrapy_focus.policies.hostbandit.scores.SCORES`. By default "
        '``"joint"``, where the record of a host is the prior of each of its links, and the classifier learns '
        'the rest; ``"posterior x best"`` if the classifier cannot do so, and ``"success rate x best"`` '
        "if links are scored once.",
        default=None,
        one_of=SCORES,
    )
    arm: str = parameter(
        'What counts as a host: its registered ``"domain"``, the ``"host"`` itself, or a host with the first folder '
        'of the path (``"section"``).',
        default="domain",
        one_of=ARMS,
    )
    explore: float = parameter(
        "Share of the choices where the host is drawn at random (lambda).", default=0.05, at_least=0, at_most=1
    )
    decay: Decay = parameter(
        'How ``explore`` falls: not (``"none"``), to a half, a third, a quarter ... after ``decay_every`` choices each '
        '(``"hyperbolic"``), or to a half each time (``"exponential"``).',
        default="hyperbolic",
    )
    decay_every: int = parameter("Choices after which ``explore`` falls by one step.", default=1000, at_least=1)
    classifier: Classifier = parameter(
        'How links are scored: logistic regression (``"hashed"``), naive Bayes (``"bayes"``), both on hashed features, '
        'scikit-learn\'s ``SGDClassifier`` (``"sgd"``), or a ``"static"`` model that does not learn.',
        default="hashed",
    )
    model: str = parameter(
        "The file of the static model, as ``focus train`` writes it: it reads the words of URLs and anchors.",
        default="",
    )
    places: bool = parameter(
        "Whether the classifier reads anchors, and the places of links on their pages.", default=True
    )
    per_domain: int | None = parameter(
        "Maximum pages of a registered domain; ``None``: no limit.", default=None, at_least=1
    )
    per_host: bool = parameter(
        'Limit the pages of each host instead; then each host is a separate arm if ``arm`` is ``"domain"``.',
        default=False,
    )
    candidates: int = parameter(
        "Links of a host that are drawn and scored when a host is chosen.", default=12, at_least=1
    )
    strength: float | None = parameter(
        "Pages that the rate of all hosts counts for, as the prior of each; by default estimated from "
        "how alike the pages of a host are.",
        default=None,
        above=0,
    )
    preset: Literal["", "cikm-2014"] = parameter(
        '``"cikm-2014"``: as published. Links are scored once, when they are found, by tokens, host, parents and '
        "siblings, and leave their hosts in this order; a page that fails counts for nothing.",
        default="",
    )

    def __attrs_post_init__(self) -> None:
        who = type(self).__qualname__
        if (self.classifier == _STATIC) != bool(self.model):
            raise ConfigError(
                f"{who}(classifier={self.classifier!r}, model={self.model!r}): a static classifier takes the file of a "
                "model that focus train wrote, and no other one does"
            )
        if self.score == JOINT and (self.classifier != _HASHED or self.preset):
            raise ConfigError(
                f"{who}(score={self.score!r}, classifier={self.classifier!r}, preset={self.preset!r}): the joint score "
                f"takes the classifier {_HASHED!r}, which learns what the record of a host lacks, and no preset; "
                "choose another score, such as 'posterior x best'"
            )
        self._static: Topic | None = None
        if self.model:
            with error_about(self, "model", self.model):
                self._static = load_relevance(self.model)

    @property
    def judges_once(self) -> bool:
        """Whether links are scored when they are found, and never again."""
        return bool(self.preset or self.model)

    @property
    def _score(self) -> str:
        by_default = "success rate x best" if self.judges_once else JOINT
        return self.score or (by_default if self.classifier in (_HASHED, _STATIC) else "posterior x best")

    def keeps(self, mission: Mission) -> Keeps:
        return Ranks() if self.judges_once else Vectors(_BYTES)

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        published = bool(self.preset)
        arm = "host" if self.per_host and self.arm == "domain" else self.arm
        self.hosts = HostTable(score=self._score, arm=arm, prior=1.0, strength=self.strength)
        self.pages = Pages()
        self.domains = Domains(None if self.per_domain is None else int(self.per_domain), by_host=self.per_host)
        self.steps = 0
        self._features = LinkFeatures(published=published, places=self.places)
        self._judge = judge_of("hashed" if self.model else self.classifier)  # of no use beside a static model
        self._is_joint = self._score == JOINT
        self._average = 0.0 if self._is_joint else 0.5  # mean prediction for recently found links
        self._chosen: dict[int, _Choice] = {}  # picks in flight
        self._found: dict[int, list[_Found]] = {}  # by pick: links of its page, if they are scored once
        self._arms_of: dict[int, list[int]] = {}  # by domain, where there is a cap
        self._closed: set[int] = set()  # domains that are full now
        self._done: list[int] = []  # arms whose links are to be given up
        super().open(frontier, rng, mission)

    # Placing

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        page = 0
        if source is not None:
            page = self.pages.number(source.pick.key)
            self.pages.label(page, good=source.reward > 0)
        arms = [self._arm(link) for link in links]
        places: list[Placement | None] = [None] * len(links)
        wanted = self._open(arms)
        if not wanted:
            return places
        if len(wanted) < len(links):
            links, arms = [links[at] for at in wanted], [arms[at] for at in wanted]
        rows, parents = self._features.rows(links), _NO_PARENT.repeat(len(links), axis=0)
        parents[:, 0] = page
        worth = self._judged(rows, parents, arms) if self._static is None else self._read(self._static, links)
        for at, place in zip(wanted, self._placed(rows, parents, arms, worth), strict=True):
            places[at] = place
        if self.judges_once and source is not None and self._static is None:
            self._found.setdefault(source.pick.id, []).append(_Found([link.key for link in links], arms, rows))
        if not self.judges_once:
            self._average += len(links) / (len(links) + _AVERAGED) * (float(worth.sum()) / len(links) - self._average)
            worth = self._relative(worth)
        self._promise(arms, worth)
        return places

    def _open(self, arms: list[int]) -> Sequence[int]:
        """Return the places of those arms in a list whose domains may ever have further requests."""
        if self.per_domain is None:
            return range(len(arms))
        rows = np.array([self.hosts.domain[arm] for arm in arms], np.intp)
        return np.flatnonzero(~self.domains.is_done(rows)).tolist()

    def know(self, keys: Sequence[int], source: Outcome) -> None:
        page = self.pages.number(source.pick.key)
        numbers = {key: self.pages.known(key) for key in keys}
        for child in dict.fromkeys(numbers.values()):
            if child and child != page and (worth := self.pages.worth(child)) >= 0:
                self.pages.labelled_child(page, good=worth > 0)
        unknown = [key for key, child in numbers.items() if not child]
        if not self.judges_once and unknown:
            unknown = unknown[:_KNOWN]
            states = self.frontier.states(unknown)
            self._know_waiting(
                [key for key, state in zip(unknown, states, strict=True) if state == State.WAITING], page
            )
            self._know_flying([key for key, state in zip(unknown, states, strict=True) if state == State.FLYING], page)

    def _know_flying(self, keys: Collection[int], page: int) -> None:
        """Record that a page also links to picks in flight."""
        if not keys:
            return
        ids = {pick.key: pick_id for pick_id, pick in self.frontier.flying.items()}
        for key in keys:
            choice = self._chosen.get(ids.get(key, -1))
            if choice is not None and page not in choice.parents and 0 in choice.parents:
                choice.parents[choice.parents.index(0)] = page

    def _know_waiting(self, waiting: Sequence[int], page: int) -> None:
        """Record that a page also links to queued links."""
        vectors = self._drawn.vectors(waiting).copy()
        parents = vectors[:, -4 * PARENTS :].view(np.uint32)
        free = parents == 0
        have_room = np.flatnonzero(free.any(axis=1) & (parents != page).all(axis=1))
        parents[have_room, free[have_room].argmax(axis=1)] = page
        arms = vectors[:, _TOKENS : _TOKENS + 4].view(np.uint32)[:, 0].tolist()
        again = have_room.tolist()
        self.frontier.push(
            [Link("", waiting[at]) for at in again], [Placement(arms[at], 0.0, vectors[at]) for at in again]
        )  # only the place of a queued link changes

    def _arm(self, link: Link) -> int:
        hosts = self.hosts
        arm = hosts.number(link.host, link.url)
        if hosts.domain[arm] < 0:
            hosts.domain[arm] = row = self.domains.row(link.host)
            hosts.draw([arm], self.rng)
            if self.per_domain is not None:
                self._arms_of.setdefault(row, []).append(arm)
        return arm

    def _placed(
        self, rows: NDArray[np.uint16], parents: NDArray[np.uint32], arms: list[int], worth: NDArray[np.float64]
    ) -> list[Placement]:
        """Return the placements of links, with their scores and memos."""
        if self.judges_once:
            memos = self._memos(rows, parents)
            return [Placement(arm, rank, memo) for arm, rank, memo in zip(arms, worth.tolist(), memos, strict=True)]
        vectors = np.concatenate(
            [rows.view(np.uint8), np.array(arms, np.uint32)[:, None].view(np.uint8), parents.view(np.uint8)], axis=1
        )
        return [Placement(arm, 0.0, vector) for arm, vector in zip(arms, vectors, strict=True)]

    def _memos(self, rows: NDArray[np.uint16], parents: NDArray[np.uint32]) -> NDArray[np.float32]:
        """Return the memos of links that are scored once: all features, and their parents, as numbers."""
        parts = (rows, self.pages.features(parents), parents[:, :1] >> 12, parents[:, :1] & 0xFFF)
        return np.concatenate(parts, axis=1).astype(np.float32)

    def _judged(self, rows: NDArray[np.uint16], parents: NDArray[np.uint32], arms: Any) -> NDArray[np.float64]:
        """Return the current model's predictions for links."""
        return self._said(self._whole(rows, parents, arms))

    def _whole(self, rows: NDArray[np.uint16], parents: NDArray[np.uint32], arms: Any) -> NDArray[np.uint16]:
        """Return all features of links: their own, those of the evidence around them, and of their hosts."""
        around = self.pages.features(parents)
        if self.judges_once:
            return np.concatenate([rows, around], axis=1)
        return np.concatenate([rows, around, size_features(self._sizes(np.asarray(arms, np.int64)))], axis=1)

    def _sizes(self, arms: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how many links of each arm are known: queued and fetched ones, shape (n,)."""
        waiting, came = self.frontier.waiting, self.hosts.of("good", arms) + self.hosts.of("bad", arms)
        known = arms < len(waiting)
        came[known] += waiting[arms[known]]
        return came

    def _said(self, rows: NDArray[np.uint16]) -> NDArray[np.float64]:
        """Return the model's predictions for rows: probabilities, or log-odds relative to those of their hosts."""
        odds = self._judge.decide(rows)
        return odds.astype(np.float64) if self._is_joint else probabilities(odds)

    def _relative(self, worth: Any) -> Any:
        """Return how much more promising links are than the current average: in log-odds, or as a factor.

        So a prediction for a host by an old model can be compared with one by the current model.
        """
        return worth - self._average if self._is_joint else worth / self._average

    def _read(self, model: Topic, links: Sequence[Link]) -> NDArray[np.float64]:
        """Return a static model's predictions for links."""
        return model.score([f"{' '.join(tokens_of(link.url))} {link.anchor if self.places else ''}" for link in links])

    def _promise(self, arms: list[int], worth: NDArray[np.float64]) -> None:
        """Update the places of hosts with their newly found links."""
        promised: dict[int, float] = {}
        for arm, each in zip(arms, worth.tolist(), strict=True):
            promised[arm] = max(each, promised.get(arm, -math.inf))
        best, waiting = self.hosts.best, self.frontier.waiting
        for arm, each in promised.items():
            best[arm] = max(best[arm], each) if arm < len(waiting) and waiting[arm] else each
        self._enter([*promised])

    def _enter(self, arms: Sequence[int]) -> None:
        """Enter arms with queued links, or links about to be, into the tournament with their current scores."""
        if self._closed:
            arms = [arm for arm in arms if self.hosts.domain[arm] not in self._closed]
        self.hosts.enter(arms)

    # Choosing

    def select(self, busy: Collection[str]) -> Pick | None:
        before = self.rng.bit_generator.state
        found = self._choose_once(busy) if self.judges_once else self._choose(busy)
        if found is None:
            self.rng.bit_generator.state = before  # nothing was chosen, and so nothing was drawn
            return None
        pick, choice = found
        self._chosen[pick.id] = choice
        self.steps += 1
        self.hosts.fly(pick.arm, 1)
        self._ask(pick)
        return pick

    @property
    def exploring(self) -> float:
        """The current share of the choices where the host is drawn at random."""
        periods = self.steps / self.decay_every
        if self.decay == "hyperbolic":
            return self.explore / (math.floor(periods) + 1)
        return self.explore * 0.5**periods if self.decay == "exponential" else self.explore

    def _choose(self, busy: Collection[str]) -> tuple[Pick, _Choice] | None:
        """Draw links of the best hosts, score them, and take the best link of the host that is then the best."""
        shut = self.hosts.shut(busy)
        if self.rng.random() < self.exploring and (arm := self._any(shut)) >= 0:
            looks = self._look([arm], busy)
            if looks:
                return self._take(looks[arm], at_random=True)
        looks = {}
        others = [arm for _ in range(_OTHERS) if (arm := self._any(shut)) >= 0]
        rounds = 0
        while rounds < _ROUNDS and (batch := self._first(_TRIED, shut | looks.keys())):
            there = self._look([*dict.fromkeys(batch + others)], busy, anew=others)
            shut.update(arm for arm in batch if arm not in there)  # all its queued links are on busy hosts
            looks |= there
            others = []
            rounds += bool(looks)
            if looks and self._best(shut) in looks:
                break
        if not looks:
            return None
        score = self.hosts.tournament.score
        return self._take(looks[max(looks, key=lambda arm: (score(arm), -arm))])

    def _best(self, without: Collection[int]) -> int:
        """Return the arm with the best score except for some, -1 if there is none."""
        best = self.hosts.tournament.best()
        if best not in without:
            return best
        return next((arm for arm in self.hosts.tournament.best_first() if arm not in without), -1)

    def _look(self, arms: list[int], busy: Collection[str], anew: Collection[int] = ()) -> dict[int, _Look]:
        """Draw links of some arms and score them, so that the scores of the arms are current.

        Thompson samples are drawn again for those in ``anew``.
        """
        waiting = self.frontier.waiting
        counts = {arm: min(2 * int(waiting[arm]), self.candidates) for arm in arms if arm < len(waiting)}
        drawn = self._drawn.draw(counts, self.rng, busy=busy)
        if not len(drawn.slots):
            return {}
        rows, parents = _unpacked(drawn.vectors)
        rows = self._whole(rows, parents, drawn.arms)
        worth = self._said(rows)
        starts = np.flatnonzero(np.concatenate([_FIRST, drawn.arms[1:] != drawn.arms[:-1]]))
        found = drawn.arms[starts]
        np.frombuffer(self.hosts.best, np.float32)[found] = self._relative(np.maximum.reduceat(worth, starts))
        self.hosts.draw([arm for arm in found.tolist() if arm in anew], self.rng)
        self.hosts.enter(found)
        look = drawn.slots, rows, parents, worth
        ends = [*starts[1:].tolist(), len(worth)]
        return {arm: _Look(*look, *ends) for arm, *ends in zip(found.tolist(), starts.tolist(), ends, strict=True)}

    def _take(self, look: _Look, *, at_random: bool = False) -> tuple[Pick, _Choice] | None:
        worth, slots = look.worth[look.start : look.end], look.slots[look.start : look.end]
        at = int(np.argmax(worth))
        pick = self._drawn.take_drawn(int(slots[at]))
        if pick is None:
            return None
        others = worth[slots != slots[at]]
        if len(others):
            self.hosts.best[pick.arm] = self._relative(others.max())
        row = look.start + at
        said, prior = float(worth[at]), self.hosts.odds(pick.arm) if self._is_joint else 0.0
        chance = float(probabilities(np.array([said + prior]))[0]) if self._is_joint else said
        return pick, _Choice(look.rows[row].copy(), look.parents[row].tolist(), chance, said, prior, at_random)

    def _choose_once(self, busy: Collection[str]) -> tuple[Pick, _Choice] | None:
        """Take the best link of the best host, by the predictions from when the links were found."""
        shut = self.hosts.shut(busy)
        if self.rng.random() < self.exploring and (arm := self._any(shut)) >= 0:
            pick = self._ranked.pop(arm, busy)
            if pick is not None:
                return self._taken(pick, at_random=True)
        while batch := self._first(1, shut):
            pick = self._ranked.pop(batch[0], busy)
            if pick is not None:
                return self._taken(pick)
            shut.add(batch[0])
        return None

    def _taken(self, pick: Pick, *, at_random: bool = False) -> tuple[Pick, _Choice]:
        self.hosts.best[pick.arm] = max(float(self._ranked.heads[pick.arm]), 0.0)
        numbers = np.zeros(WIDTH + 9) if pick.memo is None else pick.memo
        parent = int(numbers[-2]) << 12 | int(numbers[-1])
        return pick, _Choice(np.asarray(numbers[:-2]).astype(np.uint16), [parent], pick.rank, pick.rank, 0.0, at_random)

    def _first(self, n: int, without: Collection[int]) -> list[int]:
        """Return the best arms with queued links, except for some."""
        waiting = self.frontier.waiting
        found: list[int] = []
        for arm in self.hosts.tournament.best_first():
            if arm not in without and arm < len(waiting) and waiting[arm]:
                found.append(arm)
                if len(found) == n:
                    break
        if not found and not without and len(self.frontier):
            return self._enter_all()
        return found

    def _enter_all(self) -> list[int]:
        """Enter arms that were out although they have queued links, because the crawl itself placed them. Return one
        of them.
        """
        arms = np.flatnonzero(self.frontier.waiting)
        while len(self.hosts) <= arms[-1]:
            self.hosts.add()
        self._enter(arms.tolist())
        return self._first(1, {-1})

    def _any(self, without: Collection[int]) -> int:
        """Return an arm with queued links at random, each equally likely; -1 if there is none."""
        waiting, awake = self.frontier.waiting, self.hosts.awake

        def is_open(arm: int) -> bool:
            return arm not in without and arm < len(waiting) and bool(waiting[arm])

        # Usually most arms are open, and drawing one is faster than searching all.
        for _ in range(_LOOKED if awake else 0):
            arm = awake[int(self.rng.integers(len(awake)))]
            if is_open(arm):
                return arm
        left = list(filter(is_open, awake))
        return left[int(self.rng.integers(len(left)))] if left else -1

    def give_up(self, n: int) -> int:
        gone = super().give_up(n)
        waiting = self.frontier.waiting
        for arm in [arm for arm in self.hosts.awake if arm >= len(waiting) or not waiting[arm]]:
            self.hosts.leave(arm)
        return gone

    def release(self, pick: Pick) -> None:
        choice = self._chosen.pop(pick.id, None)
        if choice is None:
            return
        self.steps -= 1
        self.hosts.fly(pick.arm, -1)
        worth = choice.worth if self.judges_once else self._relative(choice.said)
        self.hosts.best[pick.arm] = max(self.hosts.best[pick.arm], worth)
        row = self.hosts.domain[pick.arm]
        self.domains.release(row)
        self._reopen(row)
        self._enter([pick.arm])

    # Learning

    def learn(self, outcome: Outcome) -> None:
        pick = outcome.pick
        choice, found = self._chosen.pop(pick.id, None), self._found.pop(pick.id, [])
        if choice is None:  # it was not chosen here
            return
        arm, worth = pick.arm, min(max(outcome.reward, 0.0), 1.0)
        page, came = self.pages.number(pick.key), outcome.status is not None and not outcome.error
        self.hosts.fly(arm, -1)
        if came:
            self.pages.label(page, good=worth > 0)
        self._note_also(outcome.also, page)
        if came or not self.preset:
            self.hosts.earn(arm, worth, right=(choice.worth >= 0.5) == (worth >= 0.5))
        if worth > 0:
            self.hosts.call(arm, self.hosts.name(pick.host, pick.url))
        if came:
            self._learn_link(choice, worth)
        self._settle(outcome)
        self.hosts.draw([arm], self.rng)
        if self.hosts.is_in(arm):
            self._enter([arm])
        if any(self.pages.children(page)):
            self._judge_again(found, page)

    def _note_also(self, keys: Iterable[int], page: int) -> None:
        """Add other URLs that lead to a page."""
        for key in keys:
            if not self.pages.known(key):
                self.pages.also(key, page)

    def _learn_link(self, choice: _Choice, worth: float) -> None:
        """Learn from a fetched page the value of links to such pages."""
        if self._static is None:
            self._judge.learn(choice.row, worth, offset=choice.prior)
        for parent in filter(None, choice.parents):
            self.pages.labelled_child(parent, good=worth > 0)

    def _judge_again(self, found: Sequence[_Found], page: int) -> None:
        """Score links of a page again that were scored before the rewards of their siblings were known."""
        for keys, arms, rows in found:
            parents = _NO_PARENT.repeat(len(rows), axis=0)
            parents[:, 0] = page
            worth = self._judged(rows, parents, arms)
            self._ranked.move(keys, self._placed(rows, parents, arms, worth))
            heads = self._ranked.heads
            for arm in dict.fromkeys(arms):
                self.hosts.best[arm] = max(float(heads[arm]), 0.0)
            self._enter([arm for arm in dict.fromkeys(arms) if self.hosts.is_in(arm)])

    # Domains

    def _ask(self, pick: Pick) -> None:
        """Count a requested page of a domain: if the domain is full, its arms leave the tournament."""
        row = self.hosts.domain[pick.arm]
        self.domains.ask(row)
        if self.per_domain is not None and self._is_full(row):
            self._closed.add(row)
            for arm in self._arms_of[row]:
                self.hosts.leave(arm)
        elif self.frontier.waiting[pick.arm]:
            self._enter([pick.arm])
        else:
            self.hosts.leave(pick.arm)

    def _settle(self, outcome: Outcome) -> None:
        row = self.hosts.domain[outcome.pick.arm]
        self.domains.settle(row, outcome)
        if row in self._closed:
            if self.domains.is_done(np.array([row]))[0]:
                self._done += self._arms_of[row]
            self._reopen(row)
        self._give_up_done()

    def _reopen(self, row: int) -> None:
        """Enter the arms of a domain again, if more pages of it may be requested."""
        if row in self._closed and not self._is_full(row):
            self._closed.discard(row)
            waiting = self.frontier.waiting
            self._enter([arm for arm in self._arms_of[row] if arm < len(waiting) and waiting[arm]])

    def _is_full(self, row: int) -> bool:
        return bool(self.domains.is_full(np.array([row]))[0])

    def _give_up_done(self) -> None:
        """Give up links of domains that are finished: some, or all if nothing is in flight."""
        waiting = self.frontier.waiting
        left = _GIVEN_UP if self.frontier.flying else len(self.frontier)
        while self._done and left > 0:
            arm = self._done[-1]
            there = int(waiting[arm]) if arm < len(waiting) else 0
            if not there:
                self._done.pop()
            elif self.judges_once:
                left -= self._ranked.drop(arm, min(there, left))
            else:
                drawn = self._drawn.draw({arm: min(there, left)}, np.random.default_rng(there))
                left -= self._drawn.drop(drawn.slots)
            waiting = self.frontier.waiting

    # Explanations

    def explain(self, pick: Pick) -> Reason:
        choice = self._chosen.get(pick.id)
        if choice is None:
            return Reason(depth_of(pick))
        good, bad = self.hosts.good[pick.arm], self.hosts.bad[pick.arm]
        host, pages, worth = self.hosts.name(pick.host, pick.url), round(good + bad, 2), round(good, 2)
        finds, others, beside, others_beside = self.pages.evidence(choice.parents)
        link = round(choice.worth, 3)
        return Reason(
            depth_of(pick),
            Part(
                f"{worth:g} of {pages:g} pages of {host} were finds" if pages else f"no page of {host} was known",
                {"host": host, "pages": pages, "worth": worth},
            ),
            Part(
                f"linked on {counted(finds, 'find')}" if finds else "",
                _not_zero({"parents worth": finds, "parents not": others}),
            ),
            Part(
                f"{beside} of {beside + others_beside} links beside it led to finds" if beside or others_beside else "",
                _not_zero({"siblings worth": beside, "siblings not": others_beside}),
            ),
            Part(f"probability {100 * link:.0f} %", {"link": link}),
            Part("drawn at random" if choice.at_random else "", {"at random": choice.at_random}),
        )

    def best_arms(self, k: int) -> list[tuple[str, float, int]]:
        hosts = self.hosts
        best = sorted(hosts.names, key=lambda arm: (-hosts.good[arm], arm))[:k]
        return [(hosts.names[arm], hosts.good[arm], round(hosts.good[arm] + hosts.bad[arm])) for arm in best]

    def tables(self) -> list[PolicyTable]:
        return reward_tables(self.hosts.good, np.add(self.hosts.good, self.hosts.bad))

    @property
    def _drawn(self) -> Drawn:
        return cast("Drawn", self.frontier)

    @property
    def _ranked(self) -> Ranked:
        return cast("Ranked", self.frontier)


class _Choice(NamedTuple):
    """A pick in flight, as it was chosen."""

    row: NDArray[np.uint16]  # features to learn from
    parents: list[int]
    worth: float  # its probability at the time
    said: float  # the model's prediction for it
    prior: float  # log-odds of its host, if the model's prediction is relative to them
    at_random: bool


class _Look(NamedTuple):
    """Links that were drawn, one per row; those of one arm are from ``start`` to ``end``."""

    slots: NDArray[np.int32]
    rows: NDArray[np.uint16]
    parents: NDArray[np.uint32]
    worth: NDArray[np.float64]
    start: int
    end: int


class _Found(NamedTuple):
    """Links of a page that were placed."""

    keys: list[int]
    arms: list[int]
    rows: NDArray[np.uint16]


def _unpacked(vectors: NDArray[np.uint8]) -> tuple[NDArray[np.uint16], NDArray[np.uint32]]:
    """Return the features and the parents of links, shape (n, 24) and (n, 3)."""
    rows = np.ascontiguousarray(vectors[:, :_TOKENS]).view(np.uint16)
    return rows, np.ascontiguousarray(vectors[:, _TOKENS + _ARM :]).view(np.uint32)


def _not_zero(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: n for name, n in counts.items() if n}
