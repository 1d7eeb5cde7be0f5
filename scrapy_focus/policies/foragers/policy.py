"""Foragers: a fleet of small crawlers that look for news, each with its own starting points and preferences for
links.

A forager walks from page to page for a while, and then starts again. It learns in two ways: it keeps good starting
points, its *weblog*, by the rewards of its paths, and it learns by temporal differences which links to follow. A
document that nobody sent before earns a reward. Foragers that earn enough multiply, and the others die.

References
----------
Palotai, Farkas, Lorincz: Selection in scale-free small world (2005).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from attrs import field

from scrapy_focus.core.abilities import PolicyTable
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.frontier import Ranked, Ranks
from scrapy_focus.core.parameters import configurable, error_about, parameter
from scrapy_focus.core.policy import Policy
from scrapy_focus.core.printable import counted
from scrapy_focus.core.reason import Part, Reason, depth_of
from scrapy_focus.core.types import Placement, State
from scrapy_focus.frontiers.keys import KeyMap
from scrapy_focus.policies.foragers.forager import Forager, Step
from scrapy_focus.policies.foragers.links import LinkBook
from scrapy_focus.policies.foragers.pages import LINKS, Known, Pages
from scrapy_focus.policies.foragers.rates import Rates
from scrapy_focus.policies.foragers.rules import Rules
from scrapy_focus.policies.foragers.slots import best_first
from scrapy_focus.policies.foragers.states import TextStates
from scrapy_focus.policies.foragers.td import Td
from scrapy_focus.web.documents import document_of, shown_on
from scrapy_focus.web.words import url_words

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.abilities import WatchedPage
    from scrapy_focus.core.frontier import Frontier, Keeps
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.types import Link, Outcome, Page, Pick

Mode = Literal["WL", "RL", "WLRL", "fixed", "learned"]
Order = Literal["value", "random"]
Territory = Literal["any", "host"]

PUBLISHED = "palotai-2005"

_MOST_FORAGERS = 1000
_KNOWN_ARM = 0  # of pages that nobody wants now
_PAGES = 1 << 15  # that are remembered
_MOVED = 1 << 15  # pages remembered under a second key
_SEEDS = 1 << 15  # starting points remembered for foragers without one
_FAILING = 1 << 15  # failed pages that are remembered
_RETRY = 3600.0  # seconds until a failed page is requested again, doubled each time
_LONGEST = 14 * 86400.0  # upper limit of that time
_UNASKED = 10  # steps in a row to recently visited pages, without a request
_SHORTLY = 1.0  # seconds until busy hosts of all wanted pages are checked again
_FOR_NOW = (408, 429)  # errors below 500 that are temporary


_PARTS = {"start": "start of walk, step", "step": "step", "look": "a page linked from step"}  # of a walk


@configurable
class Foragers(Policy):
    """A fleet of foragers that look for documents that nobody sent before.

    A forager starts from one of the best pages of its weblog, and follows links of the pages on its path for a
    hundred steps. At each step it fetches a page and looks at the pages that it links to. It sends those that are
    young and that it has not sent in this version; the first to send a document earns the reward. All share the
    requests of one crawl: a page that two foragers want is fetched once, and both receive it.

    Notes
    -----
    *Turns*: when a forager has used the requests of its turn, its step ends; then it multiplies, dies, or stays, and
    the next one has its turn. While it can fetch nothing, because its pages are in flight or their hosts busy, the
    others are served. Among ``"learned"`` foragers, the one with the largest expected reward has the next request.

    *What is sent*: the goal gives the reward of a page, and the pages with a reward are those that nobody sent
    before. The age of a page is read from its dates. So foragers work with any goal; a
    :class:`~scrapy_focus.goals.news.ReinforcingAgent` gives the rewards of the paper.

    *Memory*: the frontier has all known links. Links, states and dates of the 32,768 most recently seen pages are
    remembered, up to 3 kB a page. A forager has at most 5,000 open links, 20,000 documents that it sent in the last
    day, and its weblog.

    References
    ----------
    Palotai, Farkas, Lorincz: Selection in scale-free small world (2005).
    """

    reads_outcome: ClassVar[bool] = True
    summary: ClassVar[str] = (
        "A fleet of small crawlers that walk from good starting points: those that find news multiply, the others die."
    )
    paper_names: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "WL": {"mode": "WL", "preset": PUBLISHED},
        "RL": {"mode": "RL", "preset": PUBLISHED},
        "WLRL": {"mode": "WLRL", "preset": PUBLISHED},
    }

    _homes: KeyMap | None = field(init=False)

    frontier: Ranked = field(init=False)

    mode: Mode | None = parameter(
        'What is learned. Of the paper: the weblog (``"WL"``), the order of links (``"RL"``), both (``"WLRL"``, the '
        'default with a preset), or nothing (``"fixed"``). Without a learned weblog they start from the first '
        'seeds; without a learned order weights are random. Beyond the paper, and the default: ``"learned"`` '
        "foragers start where most targets should have come up since the last visit, by learned rates, and follow "
        "links by their features.",
        default=None,
    )
    lookahead: Literal["full", "none"] | int = parameter(
        'Which links of a page are also fetched at each step: all (``"full"``), so many of the most promising, or '
        'none (``"none"``). The value of an unfetched page is predicted from the page with the link and its '
        "words.",
        default="none",
        at_least=1,
    )
    order: Order = parameter(
        'Which link is next: the one with the largest value, or one at ``"random"``.', default="value"
    )
    territory: Territory = parameter(
        'Where a forager goes: to ``"any"`` host, or only on the ``"host"`` of its first starting point. Then each '
        "host of the seeds has at least one, and so has any other while there is room. So all hosts are used at "
        "the same time, if each allows only a slow rate.",
        default="any",
    )
    shortest: float = parameter(
        "Seconds for which a page is not fetched again, and the remembered version is used.", default=60.0, at_least=0
    )
    roam: float = parameter(
        'Share of the steps in which a ``"learned"`` forager stays on its path, although more is expected elsewhere.',
        default=0.2,
        at_least=0,
        at_most=1,
    )
    explore: float = parameter(
        "Share of the steps that revisit a page of the weblog, although more is expected of new ones. In as many "
        "choices the request goes to the forager with the turn, although others expect more.",
        default=0.1,
        at_least=0,
        at_most=1,
    )
    fewest: int = parameter("Minimum number of foragers.", default=2, at_least=1, at_most=_MOST_FORAGERS)
    most: int = parameter("Maximum number of foragers.", default=16, at_least=1, at_most=_MOST_FORAGERS)
    rules: Mapping[str, Any] | None = parameter(
        "Further constants, by name: the fields of :class:`~scrapy_focus.policies.foragers.rules.Rules`.", default=None
    )
    preset: Literal["", "palotai-2005"] = parameter(
        '``"palotai-2005"``: as published, but for the rules ``normalised`` and ``centred``. All links are looked at, '
        "and no page is spared.",
        default="",
    )

    def __attrs_post_init__(self) -> None:
        learned = self.mode in (None, "learned")
        if learned and not self.preset and (self.lookahead, self.order) != ("none", "value"):
            raise ConfigError(
                f"Foragers(mode={self.mode!r}, lookahead={self.lookahead!r}, order={self.order!r}): 'learned' "
                "foragers, the default, look at no links beforehand, and go where most is expected; choose another "
                "mode, or leave lookahead and order as they are"
            )
        if self.preset and self.mode == "learned":
            raise ConfigError(
                f"Foragers(mode={self.mode!r}, preset={self.preset!r}): 'learned' is beyond what was published; choose "
                "another mode, or no preset"
            )
        if self.fewest > self.most or self.roam + self.explore > 1:
            raise ConfigError(
                f"Foragers(fewest={self.fewest}, most={self.most}, roam={self.roam}, explore={self.explore}): fewest "
                "is at most the value of most, and roam and explore are at most 1 together"
            )
        with error_about(self, "rules", self.rules):
            self._rules = Rules.of(self.rules)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_homes": None if self._homes is None else self._homes.arrays()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _homes=None)
        if state["_homes"] is not None:
            homes = self._homes = KeyMap()
            homes.update_many(*state["_homes"])

    @property
    def learns(self) -> Mode:
        """The actual mode: ``mode``, or its default."""
        return self.mode or ("WLRL" if self.preset else "learned")

    @property
    def learns_weblog(self) -> bool:
        """Whether starting points are learned from paths."""
        return self.learns in ("WL", "WLRL")

    @property
    def learns_order(self) -> bool:
        """Whether the order of links is learned by temporal differences."""
        return self.learns in ("RL", "WLRL")

    def keeps(self, mission: Mission) -> Keeps:
        return Ranks()

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        rules = self._rules
        self._looks, self._spares = ("full", 0.0) if self.preset else (self.lookahead, self.shortest)
        self._reads = self.learns != "learned"  # times and topics of pages
        self._texts: TextStates | None = None
        if self._reads and self.order == "value":
            seed = int(rng.integers(1 << 31))
            self._texts = TextStates(k=rules.k, sample=rules.sample, seed=seed, centred=rules.centred)
        self.pages = Pages(rules.k, _PAGES)
        self.rates = Rates(_PAGES)
        self.links = LinkBook(_PAGES)
        self.fleet: dict[int, Forager] = {}  # by number, in the order of turns
        self.seeds: dict[int, str] = {}  # their URLs, by key
        self.born = 0  # foragers so far
        self.sent = 0  # documents, including those of dead foragers
        self.earned = 0
        self._turn = 0  # seat of the forager whose turn it is
        self._blocked = -1.0  # when nothing was free last though something is wanted
        self._wanted: dict[int, list[int]] = {}  # by key of a page: the numbers of the foragers that want it
        self._n = 0  # links that were placed or wanted so far
        self._found: dict[int, _Found] = {}  # links of pages whose outcome is not yet learned, by pick
        self._moved: OrderedDict[int, int] = OrderedDict()  # by key of a page: its canonical key
        self._failing: OrderedDict[int, tuple[int, float]] = OrderedDict()  # failures, and when to try again
        self._sample: list[int] = []  # pages that were read before the states were made
        self._homes = KeyMap() if self.territory == "host" else None  # number of the host, by key
        self._hosts: dict[str, int] = {}
        self._placing: frozenset[int] = frozenset()  # keys that are about to be queued
        super().open(frontier, rng, mission)

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        if self._homes is not None:
            for link in links:
                self._homes.set(link.key, self._hosts.setdefault(link.host, len(self._hosts)))
        if self.learns == "learned":
            self.links.found(links, self.now, came_up=source is not None and source.pick.key in self.rates)
        if source is None:
            self._placing = frozenset(link.key for link in links)
            self._start_from(links)
            self._placing = frozenset()
        else:
            if self._homes is not None:
                self._placing = frozenset(link.key for link in links)
                self._settle_on(links, self._home_of(source.pick.key))
                self._placing = frozenset()
            self.rates.appeared(source.pick.key, links)
            self._note_found(source.pick.id, links)
        return [self._where(link.key) for link in links]

    def _note_found(self, pick_id: int, links: Sequence[Link]) -> None:
        """Keep the links of a page until its outcome is learned from."""
        found = self._found.setdefault(pick_id, _Found([], []))
        found.keys.extend(link.key for link in links)
        if self._looks != "full":
            found.links.extend(links[: max(0, LINKS - len(found.links))])

    def know(self, keys: Sequence[int], source: Outcome) -> None:
        self._found.setdefault(source.pick.id, _Found([], [])).keys.extend(keys)

    def select(self, busy: Collection[str]) -> Pick | None:
        awake = np.flatnonzero(self.frontier.awake(busy)[1:])
        if len(awake):
            return self.frontier.pop(1 + self._seat_of(awake), busy)
        if self._wanted or self.frontier.flying:
            self._blocked = self.now
            return None
        return self.frontier.pop(_KNOWN_ARM, busy)  # no forager has a starting point

    def _seat_of(self, awake: NDArray[np.intp]) -> int:
        """Return which forager with a free page has the next one: the one whose turn it is, or with the largest
        expected reward.
        """
        seats = {forager.seat: forager for forager in self.fleet.values()}
        steps = [(seat, seats[seat].step) for seat in awake.tolist() if seat in seats]
        if self.learns == "learned" and len(steps) > 1 and self.rng.random() >= self.explore:
            expected = self._expected([-1 if step is None else step.key for _, step in steps])
            return int(steps[int(np.argmax(expected))][0])
        return int(awake[np.searchsorted(awake, self._turn) % len(awake)])

    def learn(self, outcome: Outcome) -> None:
        key, pick = outcome.pick.key, outcome.pick
        found = self._found.pop(pick.id, _Found([], []))
        self._note_failure(outcome)
        page = self._see(outcome, found)
        if not outcome.error:
            slot = self.links.slots.get(key)
            self.rates.visit(
                key, pick.url, outcome.at, changed=outcome.changed, is_target=outcome.reward > 0,
                arm=int(self.links.arms(np.array([slot]))[0]) if slot >= 0 else -1,
            )  # fmt: skip
        self.links.fetched(key, outcome.reward)
        self._placing = frozenset((key,)) if self._comes_back(outcome) else frozenset()
        foragers = [self.fleet[number] for number in self._wanted.pop(key, ())]
        is_new = outcome.reward > 0
        for at, forager in enumerate(foragers):
            self._tell(forager, outcome, page, is_new=is_new and not at, asked=not at)
        for forager in foragers:
            self._go_on(forager)
        if page is not None and outcome.is_html:
            self._offer(pick)
        self._placing = frozenset()

    def again(self, outcome: Outcome) -> Placement | None:
        if not self._comes_back(outcome):
            return None
        key = outcome.pick.key
        place = self._where(key)
        if place.arm != _KNOWN_ARM:
            return place._replace(after=self._not_before(key))
        if outcome.pick.arm != _KNOWN_ARM:  # above those that were never fetched, which nobody walked through
            place = place._replace(rank=float(self._n))
        return place._replace(after=self._retry_at(key))

    def due(self) -> float | None:
        """Return when the first wanted page can be requested again, if none can be now."""
        if not self._wanted or self._blocked != self.now:
            return None
        return max(min(map(self._not_before, self._wanted)), self.now + _SHORTLY)

    def release(self, pick: Pick) -> None:
        self._found.pop(pick.id, None)  # links of a part of its page, if it was in flight when a run ended
        if (pick.key in self._wanted) != (pick.arm != _KNOWN_ARM):
            self.frontier.move([pick.key], [self._where(pick.key)])

    def give_up(self, n: int) -> int:
        """Give up pages that nobody wants, and then wanted ones; unfetched ones first, the youngest first."""
        given = self.frontier.drop(_KNOWN_ARM, min(n, int(self.frontier.waiting[_KNOWN_ARM])))
        if given < n:  # wanted pages, too
            given += super().give_up(n - given)
            self._miss_lost()
        return given

    def explain(self, pick: Pick) -> Reason:
        forager = next((self.fleet[number] for number in self._wanted.get(pick.key, ())), None)
        if forager is None or forager.step is None:
            return Reason(depth_of(pick), Part("no forager asked for it", {"forager": None}))
        step = forager.step
        if step.is_looked:
            part = "look"
        else:
            part = "step" if forager.path else "start"
        number = len(forager.path) + 1
        value, score, wanted_by = round(step.value, 4), round(forager.score, 2), self._wanted[pick.key]
        return Reason(
            Part(
                f"{_PARTS[part]} {number} of forager {forager.number}",
                {"forager": forager.number, "part": part, "step": number},
            ),
            Part(f"value {value:.3g} expected of this step", {"value": value}),
            Part(
                f"the forager has {score:g} points and returns to {counted(len(forager.weblog), 'page')}",
                {"score": score, "weblog": len(forager.weblog)},
            ),
            Part("", {"wanted_by": wanted_by}),
        )

    def watched(self, most: int) -> list[WatchedPage]:
        keys = list(dict.fromkeys(key for forager in self.fleet.values() for key in forager.weblog))
        keys = self.rates.most_visited(keys, most)
        times = {key: at for key in keys if (at := self._not_before(key)) > self.now}
        return self.rates.watched(keys, times)

    def best_arms(self, k: int) -> list[tuple[str, float, int]]:
        best = sorted(self.fleet.values(), key=lambda forager: -forager.earned)[:k]
        return [(f"forager {each.number}", float(each.earned), each.requests) for each in best]

    def tables(self) -> list[PolicyTable]:
        columns = ("forager", "hours", "weblog", "best start", "earned", "sent", "requests", "score", "children")
        rows = [self._row(forager) for forager in self.fleet.values()]
        return [PolicyTable(f"Foragers, {len(rows)} of {self.born} alive", columns, rows)]

    def _row(self, forager: Forager) -> tuple[str | float | int, ...]:
        hours, score = round((self.now - forager.born) / 3600, 1), round(forager.score, 1)
        return (
            forager.number, hours, len(forager.weblog), self._best_start(forager), forager.earned, forager.sent,
            forager.requests, score, forager.children,
        )  # fmt: skip

    def _best_start(self, forager: Forager) -> str:
        return next((forager.urls.get(key, "") for key in forager.weblog), "")

    # Pages

    def _where(self, key: int) -> Placement:
        """Return where a page is to be queued."""
        self._n += 1
        for number in self._wanted.get(key, ()):
            return Placement(1 + self.fleet[number].seat, -float(self._n))
        return Placement(_KNOWN_ARM, -float(self._n))

    def _comes_back(self, outcome: Outcome) -> bool:
        """Whether a page can be fetched again."""
        if outcome.once or outcome.error == "redirect_seen":
            return False
        if not outcome.error or outcome.status is None:
            return True
        return outcome.status >= 500 or outcome.status in _FOR_NOW or outcome.pick.key in self.seeds

    def _note_failure(self, outcome: Outcome) -> None:
        key = outcome.pick.key
        misses = self._failing.pop(key, (0, 0.0))[0]
        if not outcome.error:
            self._moved.pop(key, None)
            for other in outcome.also:
                if other != key:
                    _remember(self._moved, other, key, _MOVED)
        elif outcome.error == "redirect_seen" and outcome.also:
            if (target := self._known_by(outcome.also[-1])) != key:
                _remember(self._moved, key, target, _MOVED)
        elif self._comes_back(outcome):
            wait = min(_RETRY * 2.0**misses, _LONGEST)
            _remember(self._failing, key, (min(misses + 1, 30), outcome.at + wait), _FAILING)

    def _known_by(self, key: int) -> int:
        """Return the canonical key of a page: its own, or that of its redirect target after any number of redirects."""
        while (other := self._moved.get(key)) is not None:
            key = other
        return key

    def _see(self, outcome: Outcome, found: _Found) -> Known | None:
        """Remember the contents of a page; ``None`` if nothing arrived."""
        if outcome.error:
            return None
        key = outcome.pick.key
        page = self.pages.see(key)
        page.at = outcome.at
        if outcome.changed is False:
            return page
        links = map(self._known_by, found.keys[:LINKS])
        page.links = np.array([each for each in dict.fromkeys(links) if each != key], np.int64)
        page.changed = outcome.at if outcome.reward > 0 else None
        page.version = self._n
        if self._reads and outcome.page is not None and outcome.is_html:
            self._read(key, page, outcome.page, outcome.at)
        if self._texts is not None and found.links:
            self._predict(key, found.links, self._texts)
        return page

    def _read(self, key: int, known: Known, page: Page, at: float) -> None:
        """Read when a document changed, and its state."""
        document = document_of(page)
        if document.is_document:
            said = document.changed_at(at)
            known.changed = known.changed if said is None else said
            known.version = int.from_bytes(document.digest[:7], "big")
        texts = self._texts
        if texts is None:
            return
        was_known = texts.version > 0
        state = texts.state_of(shown_on(page))
        if was_known:
            self.pages.set_state(known, state)
            return
        self._sample.append(key)
        if texts.version:  # by this page
            for other, seen in zip(self._sample, texts.sampled(), strict=True):
                if (there := self.pages.get(other)) is not None:
                    self.pages.set_state(there, seen)
            self._sample.clear()

    def _predict(self, key: int, links: Sequence[Link], texts: TextStates) -> None:
        """Predict the states of linked pages that were not fetched, by the page and the words of the links."""
        if not texts.version:
            return
        words = [f"{link.anchor} {' '.join(url_words(link.url))}" for link in links]
        states = texts.predict(self.pages.state(key), words)
        for link, state in zip(links, states, strict=True):
            page = self.pages.see(link.key)
            if not page.at:
                self.pages.set_state(page, state)

    # Foragers

    def _start_from(self, links: Sequence[Link]) -> None:
        """Make these links starting points, and create the first foragers."""
        self.seeds |= {link.key: link.url for link in links[: max(0, _SEEDS - len(self.seeds))]}
        homes = [-1] if self._homes is None else [self._homes.get(link.key, -1) for link in links]
        for home in dict.fromkeys(homes):
            if not any(forager.home == home for forager in self.fleet.values()):
                self._found_colony(home, max(1, self.fewest - len(self.fleet)))
        for forager in self.fleet.values():
            self._offer_starts(forager, links)
        for forager in list(self.fleet.values()):
            if forager.step is None:
                self._go_on(forager)

    def _offer_starts(self, forager: Forager, links: Sequence[Link]) -> None:
        room = self._rules.weblog  # no more than that, because all new ones have the same value
        for link in links:
            if room and self._is_home(forager, link.key):
                room -= link.key not in forager.weblog
                forager.weblog.setdefault(link.key, 0.0)
                forager.urls[link.key] = link.url
        forager.keep_best()

    def _settle_on(self, links: Sequence[Link], home: int) -> None:
        """Create a forager on each host without one, from the first link to it on, while there is room.

        Other links that lead away from ``home`` are opened for the least asked forager of their host.
        """
        for link in links:
            other = self._home_of(link.key)
            if other == home:
                continue
            there = [forager for forager in self.fleet.values() if forager.home == other]
            if there:
                min(there, key=lambda forager: forager.requests).offer(link.key)
            elif len(self.fleet) < self.most:
                self._start_from([link])

    def _found_colony(self, home: int, n: int) -> None:
        """Create so many foragers."""
        at_home = (key for key in self.seeds if self._home_of(key) == home)
        weblog = dict.fromkeys(islice(at_home, self._rules.weblog), 0.0)
        for _ in range(n):
            self._add(home, dict(weblog))

    def _add(self, home: int, weblog: dict[int, float], td: Td | None = None) -> Forager | None:
        """Create one forager, if there is a seat; it has not gone anywhere yet."""
        taken = {forager.seat for forager in self.fleet.values()}
        seat = next((seat for seat in range(_MOST_FORAGERS) if seat not in taken), None)
        if seat is None:
            return None
        rules = self._rules
        if td is None:
            td = Td(rules.k, alpha=rules.alpha, gamma=rules.gamma, normalised=rules.normalised, rng=self.rng)
        forager = Forager(self.born, seat=seat, born=self.now, home=home, weblog=weblog, td=td, rules=rules)
        self.fleet[self.born] = forager
        self.born += 1
        return forager

    def _home_of(self, key: int) -> int:
        return -1 if self._homes is None else self._homes.get(key, -1)

    def _is_home(self, forager: Forager, key: int) -> bool:
        return forager.home < 0 or self._home_of(key) == forager.home

    def _tell(self, forager: Forager, outcome: Outcome, page: Known | None, *, is_new: bool, asked: bool) -> None:
        """Receive a page that a forager waits for; ``asked``: the forager that it was fetched for."""
        key, step = outcome.pick.key, forager.step
        forager.requests += asked
        forager.used += asked
        forager.unasked = 0
        if step is None:
            return
        step.waits.pop(key, None)
        if key == step.key:
            forager.urls[key] = outcome.pick.url
        if page is not None and (is_new or forager.wants_to_send(key, page.version, page.changed, outcome.at)):
            forager.send(key, page.version, outcome.at, is_new=is_new)
            self.sent += 1
            self.earned += is_new

    def _go_on(self, forager: Forager) -> None:
        """Let a forager do all that it can until it waits for a page (algorithm 12)."""
        while forager.number in self.fleet:
            step = forager.step
            if step is None:
                if not self._begin(forager):
                    return
            elif step.waits:
                return
            elif not step.is_looked:
                step.is_looked = True
                self._look(forager, step)
            else:
                forager.end_step(self.pages.state(step.key), learns=self.learns_order)
                if forager.used >= self._rules.slice:
                    self._end_turn(forager)

    def _begin(self, forager: Forager) -> bool:
        """Let a forager take its next step (algorithm 11); ``False`` if it has nowhere to go."""
        if self.learns == "learned":
            return self._begin_best(forager)
        chosen = None if forager.is_over() else self._next_of(forager)
        if chosen is not None:
            self._fetch_or_recall(forager, forager.go(*chosen))
            return True
        if self.learns_weblog:
            forager.learn_path()
        forager.begin_path()
        starts = self._starts_of(forager)
        if not starts:
            return False
        self._fetch_or_recall(forager, forager.go(starts[int(self.rng.integers(len(starts)))]))
        return True

    def _begin_best(self, forager: Forager) -> bool:
        """Move a forager where most is expected: along its path, or to a page of its weblog.

        ``False`` if it has nowhere to go.
        """
        chance = float(self.rng.random())
        known = [key for key in forager.weblog if key in self.rates] if chance < self.explore else []
        if known and self._go_to_best(forager, known):
            return True
        roams = self.explore <= chance < self.explore + self.roam
        if roams and self._go_to_best(forager, [], on_path=True):
            return True
        if self._go_to_best(forager, list(forager.weblog), on_path=True):
            return True
        self._learn_rates(forager)
        forager.begin_path()
        starts = self._starts_of(forager)
        if starts:
            first = min(starts, key=self._not_before)
            self._want(forager, forager.go(first), [first])
        return bool(starts)

    def _go_to_best(self, forager: Forager, others: list[int], *, on_path: bool = False) -> bool:
        """Move a forager where most is expected: to an open link of its path, or to the start of a new one.

        ``False`` if none of these pages is free now.
        """
        values = self._open_expected(forager) if on_path and not forager.is_over() else np.zeros(0)
        keys, n_open = forager.open.keys, len(values)
        others = [key for key in others if not n_open or key not in forager.open]
        values = np.concatenate([values, self._expected(others)])
        for at in best_first(values, self.rng):
            key = int(keys[at]) if at < n_open else others[at - n_open]
            if not self._can_be_had(key) or self._is_spared(key):
                continue
            if at >= n_open:
                self._learn_rates(forager)
                forager.begin_path()
            self._want(forager, forager.go(key, float(values[at])), [key])
            return True
        return False

    def _learn_rates(self, forager: Forager) -> None:
        """Fill the weblog with the pages where most targets come up."""
        keys = [key for key in dict.fromkeys([*forager.weblog, *(key for key, _ in forager.path)]) if key in self.rates]
        forager.weblog |= dict(zip(keys, self.rates.a_day(keys).tolist(), strict=True))
        forager.keep_best()

    def _fetch_or_recall(self, forager: Forager, step: Step) -> None:
        """Fetch the page of a step, unless it was just visited and its links are remembered."""
        if self._is_spared(step.key) and forager.unasked < _UNASKED:
            forager.unasked += 1
        else:
            self._want(forager, step, [step.key])

    def _next_of(self, forager: Forager) -> tuple[int, float] | None:
        """Return the next open link and its expected value (algorithm 3); ``None`` if none is free.

        Equal ones are in random order.
        """
        keys, values = forager.open.keys, self._open_values(forager)
        recalls = self._looks != "none" and forager.unasked < _UNASKED
        gone: list[int] = []
        chosen = None
        for at in best_first(values, self.rng):
            key = int(keys[at])
            if self._can_be_had(key) and (recalls or not self._is_spared(key)):
                chosen = key, float(values[at])
                break
            gone.append(at)
        forager.open.discard_at(gone)
        return chosen

    def _values(self, forager: Forager, keys: Sequence[int]) -> NDArray[np.float64]:
        """Return the value of each link for a forager that goes by states, shape (n,)."""
        if self.order == "random":
            return np.zeros(len(keys))
        return forager.td.value(self.pages.states(keys))

    def _open_values(self, forager: Forager) -> NDArray[np.float64]:
        """Return the same for each open link of a forager."""
        if self.order == "random":
            return np.zeros(len(forager.open))
        return forager.td.value(self.pages.states_at(forager.open.slots(self.pages.slots, "pages")))

    def _expected(self, keys: Sequence[int]) -> NDArray[np.float64]:
        """Return how many targets are expected of each page: those that came up since its last visit, or itself."""
        return self._expected_at(self.rates.slots.of(keys), self.links.slots.of(keys))

    def _open_expected(self, forager: Forager) -> NDArray[np.float64]:
        """Return the same for each open link of a forager."""
        open_ = forager.open
        return self._expected_at(open_.slots(self.rates.slots, "rates"), open_.slots(self.links.slots, "links"))

    def _expected_at(self, visited: NDArray[np.int64], linked: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the same for pages by their numbers.

        For pages that were never visited it is the prediction for the link, or the targets that came up since it is
        known, if pages at its place are like those that were visited.
        """
        expected = np.maximum(self.rates.expected(visited, self.now), self.links.promises(linked))
        at = np.flatnonzero((linked >= 0) & (visited < 0))
        if len(at):
            slots = linked[at]
            came_up = self.rates.first(self.links.arms(slots)) * self.links.ages(slots, self.now)
            expected[at] = np.maximum(expected[at], came_up)
        return expected

    def _starts_of(self, forager: Forager) -> list[int]:
        """Return the starting list: free pages, or else the one that is free first."""
        self._forget_gone(forager)
        if not forager.weblog:
            forager.weblog = dict.fromkeys(self._seeds_of(forager), 0.0)
        starts = [key for key in forager.weblog if self._can_be_had(key)][: self._rules.start]
        if starts and (forager.unasked < _UNASKED or not all(map(self._is_spared, starts))):
            return starts
        return sorted(forager.weblog, key=self._not_before)[:1]

    def _seeds_of(self, forager: Forager) -> list[int]:
        seeds = (self._known_by(key) for key in self.seeds if self._is_home(forager, key))
        return [key for key in seeds if self._is_there(key)]

    def _forget_gone(self, forager: Forager) -> None:
        """Remove pages from the weblog that no longer exist; a moved one is listed under its new key."""
        gone = [key for key in forager.weblog if not self._is_there(key)]
        for key in gone:
            value = forager.weblog.pop(key)
            moved = self._known_by(key)
            if self._is_there(moved):
                forager.weblog.setdefault(moved, value)
                forager.urls[moved] = forager.urls.get(key, "")
        if gone:
            forager.keep_best()

    def _not_before(self, key: int) -> float:
        """Return when a page may be fetched, in seconds since the epoch: not just after a fetch or a failure."""
        at = self.pages.visited(key) if self._spares else 0.0
        return max(at + self._spares if at else 0.0, self._retry_at(key))

    def _retry_at(self, key: int) -> float:
        """Return when a failed page may be fetched, likewise; 0 for any other."""
        return self._failing.get(key, (0, 0.0))[1]

    def _can_be_had(self, key: int) -> bool:
        """Whether a page can be fetched now."""
        return self._retry_at(key) <= self.now and self._is_there(key)

    def _is_there(self, key: int) -> bool:
        """Whether a page can be fetched, now or later: it is queued, asleep, in flight, or about to be queued."""
        if key in self._wanted or key in self._placing:
            return True
        return self.frontier.states([key])[0] in (State.WAITING, State.FLYING)

    def _look(self, forager: Forager, step: Step) -> None:
        """Open the links of a page, and fetch those to be looked at (algorithm 12)."""
        page = self.pages.get(step.key)
        if page is None:
            return
        known = dict.fromkeys(map(self._known_by, page.links.tolist()))
        links = [key for key in known if self._is_home(forager, key) and key != step.key]
        forager.discover(links)
        looked = self._looked_at(forager, links)
        self._want(forager, step, [key for key in looked if self._can_be_had(key)])

    def _looked_at(self, forager: Forager, links: list[int]) -> list[int]:
        """Return the links of a page that a forager looks at before it follows one."""
        if self._looks == "none":
            return []
        looked = [key for key in links if not self._is_spared(key)]
        if isinstance(self._looks, int):
            return self._most_promising(forager, [key for key in looked if key in forager.open], self._looks)
        return looked

    def _is_spared(self, key: int) -> bool:
        """Whether a page was visited so recently that it is not fetched again."""
        at = self.pages.visited(key) if self._spares else 0.0
        return at > 0 and self.now - at < self._spares

    def _most_promising(self, forager: Forager, keys: list[int], n: int) -> list[int]:
        best = np.lexsort((self.rng.random(len(keys)), -self._values(forager, keys)))
        return [keys[at] for at in best[:n].tolist()]

    def _want(self, forager: Forager, step: Step, keys: Sequence[int]) -> None:
        """Let a forager wait for pages, and queue these for their turn."""
        fresh: list[int] = []
        for key in keys:
            step.waits[key] = None
            others = self._wanted.setdefault(key, [])
            others.append(forager.number)
            if len(others) == 1 and key not in self._placing:
                fresh.append(key)
        self._move(fresh)

    def _move(self, keys: Sequence[int]) -> None:
        """Update where pages are queued."""
        if not keys:
            return
        self.frontier.move(keys, [self._where(key)._replace(after=self._not_before(key)) for key in keys])

    def _offer(self, pick: Pick) -> None:
        """Receive a page: foragers without a starting point start there."""
        for forager in list(self.fleet.values()):
            if forager.step is None and self._is_home(forager, pick.key):
                forager.weblog[pick.key] = 0.0
                forager.urls[pick.key] = pick.url
                self._go_on(forager)

    def _miss_lost(self) -> None:
        """Release foragers that wait for pages that were given up."""
        lost = self._lost()
        numbers = dict.fromkeys(number for key in lost for number in self._wanted.pop(key))
        for number in numbers:
            forager = self.fleet[number]
            if forager.step is not None:
                for key in lost:
                    forager.step.waits.pop(key, None)
        for number in numbers:
            if number in self.fleet:
                self._go_on(self.fleet[number])

    def _lost(self) -> list[int]:
        """Return the pages that foragers want and that are neither in the frontier nor about to be."""
        lost = []
        for key, state in zip(self._wanted, self.frontier.states(list(self._wanted)), strict=True):
            if state not in (State.WAITING, State.FLYING) and key not in self._placing:
                lost.append(key)
        return lost

    def _end_turn(self, forager: Forager) -> None:
        """Let a forager multiply, die or stay (algorithm 8), and give the next one its turn (algorithm 9)."""
        rules = self._rules
        forager.used = 0
        # Even if it was not its turn: the forager with the turn may wait for a page that another one requested.
        seats = sorted(each.seat for each in self.fleet.values())
        self._turn = next((seat for seat in seats if seat > forager.seat), seats[0])
        if forager.score >= rules.high and len(self.fleet) < self.most:
            self._multiply(forager)
        elif forager.score <= rules.low and len(self.fleet) > self.fewest and not self._is_last_at_home(forager):
            del self.fleet[forager.number]  # it is between two steps, and waits for nothing

    def _is_last_at_home(self, forager: Forager) -> bool:
        return forager.home >= 0 and sum(other.home == forager.home for other in self.fleet.values()) < 2

    def _multiply(self, parent: Forager) -> None:
        """Create a child of a forager (algorithm 6)."""
        weblog = parent.halve(self.rng) if self.learns_weblog else dict(parent.weblog)
        urls = {key: parent.urls.get(key, "") for key in weblog}
        child = self._add(parent.home, weblog, parent.td.copy() if self.learns_order else None)
        if child is None:
            return
        child.urls = urls
        parent.children += 1
        parent.score = child.score = self._rules.first
        self._go_on(child)


class _Found(NamedTuple):
    """Links of a page whose outcome is not yet learned: all keys, and the new links with their features."""

    keys: list[int]
    links: list[Link]


def _remember(memory: OrderedDict[int, Any], key: int, value: Any, most: int) -> None:
    """Remember an item; drop the oldest if there are too many."""
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > most:
        memory.popitem(last=False)
