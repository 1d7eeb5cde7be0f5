"""Who decides: where each link waits, which one leaves next, and what is learned from what came back.

A policy needs three verbs. ``place`` gives every link of a page an arm and a rank; ``select`` takes the next link out
of the frontier; ``learn`` sees each outcome once. :class:`~scrapy_focus.policies.bases.Ordering` and
:class:`~scrapy_focus.policies.bases.Bandit` cover the two usual kinds, so that a policy of your own is often one
method.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.frontier import Ranks
from scrapy_focus.core.giving_up import give_up
from scrapy_focus.core.printable import counted
from scrapy_focus.core.reason import Part, Reason, depth_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from os import PathLike

    import numpy as np

    from scrapy_focus.core.frontier import Frontier, Keeps
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.types import Link, Outcome, Pick, Placement, Signal, State

#: Methods that a policy may do without; what depends on them asks :meth:`Policy.can`.
Ability = Literal[
    "again", "due", "expected_cost", "expected_left", "hear", "know", "learn", "load", "render", "save", "tables"
]  # fmt: skip


class Left(NamedTuple):
    """How many targets are still to be found, as a number and as a 90 % interval."""

    low: float
    middle: float
    high: float


class WatchedPage(NamedTuple):
    """One page that a policy fetches again and again."""

    url: str
    visits: int
    changes: int  # that visits found
    rate: float  # changes a day, as far as that can be known
    low: float  # of a 90 % interval of that
    high: float
    targets: float  # new targets a day that are expected on it
    last: float  # visit, in seconds since the epoch
    next: float | None  # planned visit, likewise; None: it is due


class PolicyTable(NamedTuple):
    """A table that a policy shows of itself: of its arms, of what it watches, of whatever it is made of.

    Texts are cut where they are long, and shown in one line; a text that is a URL becomes a link on pages. Numbers are
    finite. The rows that matter most come first, as some places show only these.
    """

    title: str  # what the rows are, in a few words
    columns: tuple[str, ...]  # their names; the first says what a row is about
    rows: list[tuple[str | float | int, ...]]  # a value for each column


class Policy(ABC):
    """Base of every policy; it can be constructed and tested without a crawl.

    Parameters of a policy are keyword arguments, stored under their own names. Randomness comes from ``self.rng``
    alone, and the time from ``self.now``: a policy never looks at a clock. It is pickled without its frontier, and
    a ``JOBDIR`` holds no copy of ``mission.topic`` either, wherever a policy has that: it is given it again. One that
    holds what cannot be pickled extends ``__getstate__``.
    """

    #: What the policy does, in one plain sentence for readers of a comparison; else the first line of its docstring.
    summary: ClassVar[str] = ""
    #: What papers call it, each with the parameters that make it so: ``{"DFS": {"last_first": True}}``.
    paper_names: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    #: Whether no crawl can do better: it shows what could be won at most.
    is_bound: ClassVar[bool] = False
    #: Whether it fetches pages again and again without :meth:`again`; such a crawl ends by a budget or a stop rule.
    never_ends: ClassVar[bool] = False
    #: Whether ``place`` reads ``tag_path``, ``anchor`` or ``context``; where no policy does, pages are not parsed for
    #: it.
    reads_page: ClassVar[bool] = True
    #: Whether it reads ``outcome.page``. Where one machine decides and others fetch, no text travels for policies that
    #: do not.
    reads_outcome: ClassVar[bool] = False
    #: Whether it reads ``mission.topic``, so that links whose words fit the topic of the goal come first.
    reads_topic: ClassVar[bool] = False
    #: States of URLs that ``place`` also wants the links of: ``WAITING`` ones to move them, ``FETCHED`` ones to ask for
    #: a revisit, ``GIVEN_UP`` ones to place them after all. New links always come.
    wants_known: ClassVar[frozenset[State]] = frozenset()
    #: Whether ``place`` is given these known links as their keys alone: ``url``, ``host`` and all texts are empty. It
    #: reads what it needs from its frontier (:meth:`~scrapy_focus.core.frontier.Drawn.vectors`), and a link that is
    #: known costs next to nothing on its way to it. They come before the links that are new.
    known_by_key: ClassVar[bool] = False
    #: Parameters that a later run of the same job may set otherwise; the values with which the crawl began stay in
    #: force.
    may_change: ClassVar[frozenset[str]] = frozenset()
    #: Import paths of what it holds of other libraries, classes or whole packages: a ``JOBDIR`` stores nothing else but
    #: plain values, arrays, estimators of scikit-learn, and classes of the package in which the policy is.
    stores: ClassVar[frozenset[str]] = frozenset()

    #: Whether poor links (to log in, share or print, and of kinds that bring errors alone) are fetched when nothing
    #: else is left, and never in a crawl that fetches pages again. ``FOCUS_POOR_LAST`` overrides it. Off for published
    #: systems, and to be left off where ``place`` lets new links sleep: those wake together with poor ones.
    poor_last: ClassVar[bool] = False

    #: Whether it counts what it asks hosts or domains for, by ``Link.host``.
    counts_hosts: ClassVar[bool] = False

    #: Where links wait; given by ``open`` and ``attach``. A subclass says which of the two it is: ``frontier: Ranked``.
    frontier: Frontier
    rng: np.random.Generator
    #: Seconds since the epoch, set before each call; in a simulation since its beginning. It never goes back, and a
    #: crawl that is resumed is told what it was told before.
    now: float = 0.0
    #: Requests per second that may be used in the long run, ``None`` for as many as can (``FOCUS_BUDGET_RATE``). Set
    #: before ``open``. A crawl that is resumed with another rate sets that before anything new happens.
    budget_rate: float | None = None

    def keeps(self, mission: Mission) -> Keeps:
        """Say what is kept of waiting links: ``Ranks()``, or vectors of a width. Asked before ``open``."""
        return Ranks()

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        """Start a crawl. Called once, before anything else.

        ``frontier`` is a :class:`~scrapy_focus.core.frontier.Ranked` or a :class:`~scrapy_focus.core.frontier.Drawn`,
        as :meth:`keeps` said. From ``mission`` a policy takes what its parameters leave open.
        """
        self.rng = rng
        self.attach(frontier)

    def attach(self, frontier: Frontier) -> None:
        """Resume a crawl: called by ``open``, and alone when a stored crawl is resumed."""
        self.frontier = frontier

    @abstractmethod
    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        """Say where each link waits: one placement for each, ``None`` to give a new link up.

        ``links`` are all links of one page, in document order, or so many at a time of one that has more than 500;
        ``source`` is the outcome of that page, its reward known, and ``None`` for seeds. After a HEAD, the link comes
        alone, in state ``PROBED``, with the outcome of the HEAD as its source (see its ``status`` and ``error``).
        ``None`` for a link that is known leaves it as it is, and :data:`~scrapy_focus.core.types.NOT_NOW` leaves any
        link as it is, a new one too.
        """

    @abstractmethod
    def select(self, busy: Collection[str]) -> Pick | None:
        """Take the next link out of the frontier; ``None`` where nothing suits now. ``busy``: hosts to leave alone.

        ``None`` where hosts are free, nothing is in flight and :meth:`due` names no time to come is no answer: the
        crawl takes any link then, and warns. A ``select`` that returns ``None`` changes nothing: after a kill it is not
        repeated. Give links up in ``place`` or ``learn``; what is given up here may wait again in the next run.
        """

    def learn(self, outcome: Outcome) -> None:  # noqa: B027 (a policy that learns nothing is complete)
        """See what a pick brought back: once for each pick, after ``place`` for the links of its page.

        The outcome of a HEAD (``outcome.pick.method``) carries the reward that the page promises. It is earned when the
        page is fetched. For a policy that overrides this, fewer picks are out as long as little is known
        (:func:`~scrapy_focus.core.outstanding.most_out`).
        """

    def again(self, outcome: Outcome) -> Placement | None:
        """Say where a page waits that was fetched just now, to be fetched again; ``None`` leaves it as fetched.

        Asked after :meth:`learn`, for each outcome that is not of a HEAD, also where nothing came back (see its
        ``error``). With ``Placement.after`` the page sleeps until then. A crawl whose policy has this method ends by a
        budget or a stop rule, or where nothing waits or sleeps any more.
        """
        return None

    def render(self, outcome: Outcome) -> Placement | None:
        """Say where a page waits to be fetched again by a browser, which runs its scripts; ``None``: it is not.

        Asked after :meth:`learn`, for each outcome of a GET whose page has scripts (``outcome.scripted``), where a
        browser may be asked at all. The links of the page that the browser shows and that are not known are placed
        as ever; the outcome's pick then has the method ``RENDER``. What was sent for it, by the browser too, is in its
        ``requests`` and ``received``. Once a page came with ``outcome.scripted``, :meth:`place` may also let new links
        wait so, by ``Placement.method``: then there is no plain page before. Where no browser is there after all, its
        page is fetched as it is, and the pick of its outcome has the method ``GET``.
        """
        return None

    def hear(self, signals: Sequence[Signal]) -> None:  # noqa: B027 (most policies do without)
        """See what sitemaps, feeds or pings say of known pages: when they changed. Only for a policy that overrides it.

        What is said may be wrong, of the future, or said again and again. Pages that sleep may be woken here (a
        ``frontier.push`` with the key moves them); those of which nothing is known are left out by the crawl.
        """

    def release(self, pick: Pick) -> None:  # noqa: B027 (nothing to undo for a policy that counts nothing)
        """A pick was released unsent: undo what ``select`` counted. ``learn`` does not come for it."""

    def give_up(self, n: int) -> int:
        """Give up ``n`` waiting links, those that it wants least; return how many these were.

        Asked where more links wait than ``FOCUS_MOST_WAITING``. Each arm gives up its share: its least ranks, or, in a
        :class:`~scrapy_focus.core.frontier.Drawn` frontier, links drawn at random. Where a policy gives up fewer than
        it was asked for, the rest is given up in this way. Such links are in state ``GIVEN_UP``; a policy that wants
        these (``wants_known``) may place them after all when another page links to them.
        """
        return give_up(self.frontier, n, self.rng)

    def know(self, keys: Sequence[int], source: Outcome) -> None:  # noqa: B027 (most policies do without)
        """See the keys of the links of a page that ``place`` is not given, as their URLs were seen before.

        In document order, after ``place`` and before ``learn``. Only for a policy that overrides it.
        """

    def due(self) -> float | None:
        """Return when the next link may be chosen, in seconds as :attr:`now`; ``None`` where that is not known.

        Asked where ``select`` gave nothing: a crawl without anything in flight resumes at that time; at ``math.inf``,
        never, and it ends.
        """
        return None

    def explain(self, pick: Pick) -> Mapping[str, Any]:
        """Return why this pick was chosen, called right after ``select``: by default, where it was queued.

        Override it to return a :class:`~scrapy_focus.Reason`. A dict of names and values that JSON can hold is made
        into one.
        """
        rank = float(pick.rank)
        left = int(self.frontier.waiting[pick.arm])
        numbers = {"arm": pick.arm, "rank": rank if math.isfinite(rank) else str(rank), "waiting": left}
        where = f"from queue {pick.arm} at rank {rank:g}, {counted(left, 'link')} left there"
        return Reason(depth_of(pick), Part(where, numbers))

    def best_arms(self, k: int) -> list[tuple[str, float, int]]:
        """Up to ``k`` arms that earned most, best first: a readable name, what it earned, in how many pulls."""
        return []

    def expected_cost(self) -> float | None:
        """Return what the next reward of 1 is expected to cost, in requests, or ``None`` where that is not known.

        A :class:`~scrapy_focus.core.stop.CostLimit` asks after each outcome.
        """
        return None

    def expected_left(self) -> Left | None:
        """Return how many targets are still to be found, with a 90 % interval, or ``None`` where that is not known."""
        return None

    def watched(self, most: int) -> list[WatchedPage]:
        """Return up to ``most`` of the pages that are fetched again and again, those with most visits first.

        It may be linear in these pages, and is asked now and then.
        """
        return []

    def tables(self) -> list[PolicyTable]:
        """Return what the policy shows of itself, for the panel of a crawl, its page and ``focus-status``.

        It may be linear in what the policy knows, and is asked now and then, and at the end. It changes nothing.
        """
        return []

    def save(self, path: str | PathLike[str]) -> None:
        """Write what was learned to a file with which another crawl can begin.

        Raises
        ------
        ConfigError
            If the file cannot be written, or the policy cannot save what it learns.
        """
        raise ConfigError(f"{type(self).__qualname__} cannot save what it learned; choose another policy")

    def load(self, path: str | PathLike[str]) -> None:
        """Begin with what another crawl saved. Called before ``open``.

        Raises
        ------
        ConfigError
            If the file cannot be read, or the policy cannot begin with what another one learned.
        """
        raise ConfigError(f"{type(self).__qualname__} cannot begin with {path}; choose another policy")

    @property
    def needs_truth(self) -> bool:
        """Whether it must be given the truth about a site beforehand: then it can only be tried on recorded ones."""
        return False

    @classmethod
    def can(cls, ability: Ability) -> bool:
        """Whether this policy has a method of its own in place of one that does nothing."""
        return getattr(cls, ability) is not getattr(Policy, ability)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "frontier"}


def import_path(named: Any) -> str:
    """Return where a class or a function is imported from: the shortest parent package that exports it, and its name.

    Examples
    --------
    >>> from scrapy_focus.policies.tagpath.policy import TagPath
    >>> import_path(TagPath), import_path(Left)
    ('scrapy_focus.policies.tagpath.TagPath', 'scrapy_focus.Left')
    """
    module, name = named.__module__, named.__qualname__
    parents = module.split(".")
    for depth in range(1, len(parents)):
        package = ".".join(parents[:depth])
        if getattr(sys.modules.get(package), name, None) is named:
            return f"{package}.{name}"
    return f"{module}.{name}"
