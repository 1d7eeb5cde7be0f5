"""The hosts of a crawl as arms: the rewards of their pages, and which host is the best one now."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from scrapy_focus.frontiers.keys import KeyMap
from scrapy_focus.policies.branching.features import path_of
from scrapy_focus.policies.hostbandit.scores import DRAWN, POOLED, SCORES
from scrapy_focus.policies.hostbandit.tournament import Tournament
from scrapy_focus.web.domains import domain_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

ARMS: Final = ("domain", "host", "section")
MOST: Final = 1_000_000  # arms; further hosts share them

_NEAR = 100_000  # hosts whose arms are remembered for a quick answer
_NAMED = 1_000  # arms whose names are remembered
_FIRST_RATE = 1.0  # pages of either kind assumed before the first
_MOST_CERTAIN = 1 - 1e-9
_HALF = 0.5
_FIRST_STRENGTH = 2.0  # pages that the rate of all hosts counts for at first ...
_TAKEN = 10.0  # ... which counts as so many hosts
_LEAST_GAP = 0.1  # how much better a host whose first page was good is than all, at least ...
_LEAST_STRENGTH = 0.1  # ... so that the strength is below 10
_COLUMNS = {
    "good": "f",
    "bad": "f",
    "right": "f",
    "best": "f",
    "drawn": "f",
    "flying": "i",
    "hosts": "i",
    "domain": "i",
}


class HostTable:
    """Statistics of hosts, and a tournament of those with queued links.

    Parameters
    ----------
    score
        One of :data:`~scrapy_focus.policies.hostbandit.scores.SCORES`.
    arm
        What an arm is: a registered domain, a host, or a host with the first folder of its paths.
    prior
        Pages of either kind that the published scores begin with.
    strength
        Pages that the rate of all hosts counts for; ``None``: estimated from how alike the pages of hosts are.

    Notes
    -----
    *Memory*: 36 bytes an arm, 20 to 36 in the tournament, and 12 for each host and each arm in their indices.
    """

    good: array[float]
    bad: array[float]
    right: array[float]
    best: array[float]
    drawn: array[float]
    flying: array[int]
    hosts: array[int]  # pages seen of an arm
    domain: array[int]

    def __init__(self, *, score: str, arm: str, prior: float, strength: float | None) -> None:
        self.score = score
        self.arm = arm
        self.prior = prior
        self._strength = strength
        self._after_good = array("d", (0.0, 0.0))  # second pages of hosts whose first had a reward: no, yes
        self.tournament = Tournament()
        self.in_flight = 0
        self.all_good = self.all_bad = 0.0
        self.awake = array("i")  # arms in the tournament, in no order
        self.most = MOST
        self.names: dict[int, str] = {}  # of arms that had a reward
        self._arms = KeyMap()  # by a hash of the name of the arm
        self._hosts = KeyMap()  # the arm by a hash of the name of the host, or of host and section
        self._near: dict[str, int] = {}
        self._place = array("i")  # by arm: its place in awake, -1 if it is asleep
        for name, kind in _COLUMNS.items():
            setattr(self, name, array(kind))

    def __len__(self) -> int:
        return len(self.good)

    @property
    def rate(self) -> float:
        """The share of pages with a reward, on all hosts.

        Because the good hosts are requested most, it is more than that of a host at random: a new host gets the
        benefit of the doubt, so that new ones are tried while known ones still have less promising links.
        """
        return (self.all_good + _FIRST_RATE) / (self.all_good + self.all_bad + 2 * _FIRST_RATE)

    @property
    def strength(self) -> float:
        """Pages that the rate of all hosts counts for, as the prior of each host.

        With a Beta prior, the second page of a host whose first one had a reward has one with the probability
        (strength x rate + 1) / (strength + 1).
        """
        if self._strength is not None:
            return self._strength
        rate = self.rate
        taken = (_FIRST_STRENGTH * rate + 1) / (_FIRST_STRENGTH + 1)
        bad, good = self._after_good
        again = (good + _TAKEN * taken) / (good + bad + _TAKEN)
        return max((1 - again) / max(again - rate, _LEAST_GAP), _LEAST_STRENGTH)

    def number(self, host: str, url: str) -> int:
        """Return the arm of a link, a new one if it has none."""
        name = host if self.arm != "section" else f"{host}/{section_of(url)}"
        near = self._near.get(name)
        if near is not None:
            return near
        key = _hashed(name)
        number = self._hosts.get(key, -1)
        if number < 0:
            number = self._named(domain_of(host) if self.arm == "domain" else name)
            self._hosts.set(key, number)
            self.hosts[number] += 1
        if len(self._near) >= _NEAR:
            self._near.clear()
        self._near[name] = number
        return number

    def shut(self, busy: Collection[str]) -> set[int]:
        """Return arms whose hosts are all busy; none if arms are sections, whose hosts are not known."""
        if not busy or self.arm == "section":
            return set()
        arms = Counter(self._known(host) for host in busy)
        return {arm for arm, n in arms.items() if arm >= 0 and n >= self.hosts[arm]}

    def _known(self, host: str) -> int:
        """Return the arm of a host, -1 if it has none."""
        near = self._near.get(host)
        return self._hosts.get(_hashed(host), -1) if near is None else near

    def name(self, host: str, url: str) -> str:
        """Return the name of a link's arm."""
        return {"domain": domain_of(host), "host": host, "section": f"{host}/{section_of(url)}"}[self.arm]

    def _named(self, name: str) -> int:
        key = _hashed(name)
        number = self._arms.get(key, -1)
        if number < 0:
            number = len(self) if len(self) < self.most else key % self.most
            self._arms.set(key, number)
            if number == len(self):
                self.add()
        return number

    def add(self) -> None:
        """Add an arm."""
        for column in _COLUMNS:
            getattr(self, column).append(0)
        self.domain[-1] = -1
        self._place.append(-1)

    def fly(self, arm: int, n: int) -> None:
        """Add so many picks of an arm in flight."""
        self.flying[arm] += n
        self.in_flight += n

    def earn(self, arm: int, worth: float, *, right: bool) -> None:
        """Record the reward of a page of an arm, from 0 to 1, and whether it was predicted rightly."""
        good, bad = self.good[arm], self.bad[arm]
        if good >= _HALF and good + bad == 1:
            self._after_good[worth >= _HALF] += 1
        self.good[arm] += worth
        self.bad[arm] += 1 - worth
        self.right[arm] += right
        self.all_good += worth
        self.all_bad += 1 - worth

    def odds(self, arm: int) -> float:
        """Return the log-odds that a page of an arm has a reward, by its record and the rate of all."""
        rate = self.rate
        mean = (self.good[arm] + self.strength * rate) / (self.good[arm] + self.bad[arm] + self.strength)
        return math.log(mean / (1 - mean))

    def call(self, arm: int, name: str) -> None:
        """Remember the name of an arm that had a reward."""
        if len(self.names) < _NAMED:
            self.names.setdefault(arm, name)

    def draw(self, arms: Sequence[int] | NDArray[np.integer], rng: np.random.Generator) -> None:
        """Draw possible rewards of a page of some arms, if the score needs them."""
        if self.score not in DRAWN or not len(arms):
            return
        if self.score in POOLED:
            good, bad = self.strength * self.rate, self.strength * (1 - self.rate)
        else:
            good = bad = self.prior
        arms = np.asarray(arms)
        drawn = rng.beta(self.of("good", arms) + good, self.of("bad", arms) + bad)
        np.frombuffer(self.drawn, np.float32)[arms] = drawn

    def enter(self, arms: Sequence[int] | NDArray[np.integer]) -> None:
        """Update the places of arms with queued links in the tournament."""
        numbers: NDArray[np.int64] = np.asarray(arms, np.int64)
        scores = SCORES[self.score](_Some(self, numbers))
        put, place = self.tournament.put, self._place
        for arm, score in zip(numbers.tolist(), scores.tolist(), strict=True):
            put(arm, score)
            if place[arm] < 0:
                place[arm] = len(self.awake)
                self.awake.append(arm)

    def leave(self, arm: int) -> None:
        """Remove an arm from the tournament."""
        place = self._place[arm]
        if place < 0:
            return
        self.tournament.drop(arm)
        last = self.awake.pop()
        if last != arm:
            self.awake[place] = last
            self._place[last] = place
        self._place[arm] = -1

    def is_in(self, arm: int) -> bool:
        """Whether an arm is in the tournament."""
        return self._place[arm] >= 0

    def of(self, column: str, arms: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the statistics of some arms."""
        values = getattr(self, column)
        found: NDArray[np.float64] = np.frombuffer(values, values.typecode)[arms].astype(np.float64)
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_near": {}, "_arms": self._arms.arrays(), "_hosts": self._hosts.arrays()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _arms=KeyMap(), _hosts=KeyMap())
        self._arms.update_many(*state["_arms"])
        self._hosts.update_many(*state["_hosts"])


class _Some:
    """Statistics of some arms, in the form that the scores read."""

    def __init__(self, hosts: HostTable, arms: NDArray[np.int64]) -> None:
        self._hosts = hosts
        self._arms = arms

    def _column(self, name: str) -> NDArray[np.float64]:
        return self._hosts.of(name, self._arms)

    @property
    def good(self) -> NDArray[np.float64]:
        return self._column("good")

    @property
    def bad(self) -> NDArray[np.float64]:
        return self._column("bad")

    @property
    def right(self) -> NDArray[np.float64]:
        return self._column("right")

    @property
    def best(self) -> NDArray[np.float64]:
        return self._column("best")

    @property
    def drawn(self) -> NDArray[np.float64]:
        return self._column("drawn")

    @property
    def share(self) -> NDArray[np.float64]:
        in_flight = self._hosts.in_flight
        return (self._column("flying") + 1) / (in_flight + 1) if in_flight else np.zeros(len(self._arms))

    @property
    def odds(self) -> NDArray[np.float64]:
        rate = self._hosts.rate
        mean = np.minimum(self.posterior * rate, _MOST_CERTAIN)
        odds: NDArray[np.float64] = np.log(mean / (1 - mean)) - math.log(rate / (1 - rate))
        return odds

    @property
    def success(self) -> NDArray[np.float64]:
        return (self.good + self._hosts.prior) / (self.bad + self._hosts.prior)

    @property
    def posterior(self) -> NDArray[np.float64]:
        good, strength, rate = self.good, self._hosts.strength, self._hosts.rate
        return (good / rate + strength) / (good + self.bad + strength)


def section_of(url: str) -> str:
    """Return the first folder of the path of a URL, ``""`` if it has none.

    Examples
    --------
    >>> section_of("http://example.org/recipes/cakes/1.html"), section_of("http://example.org/about.html")
    ('recipes', '')
    """
    path = path_of(url).partition("?")[0]
    first, slash, _ = path.lstrip("/").partition("/")
    return first if slash else ""


def _hashed(name: str) -> int:
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") >> 1
