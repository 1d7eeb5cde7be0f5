"""Who decides: where each link waits, which one leaves next, and what is learned from what came back.

A policy needs three verbs. ``place`` gives every link of a page an arm and a rank; ``select`` takes the next link out
of the frontier; ``learn`` sees each outcome once. :class:`~scrapy_focus.policies.bases.Ordering` and
:class:`~scrapy_focus.policies.bases.Bandit` cover the two usual kinds, so that a policy of your own is often one
method. What some policies do besides is in :mod:`scrapy_focus.core.abilities`.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy_focus.core.frontier import Ranks
from scrapy_focus.core.giving_up import give_up
from scrapy_focus.core.printable import counted
from scrapy_focus.core.reason import Part, Reason, depth_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy as np

    from scrapy_focus.core.frontier import Frontier, Keeps
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.types import Link, Outcome, Pick, Placement, State


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
    #: Whether no crawl can do better: it shows what could be won at most. No method tells; comparisons draw it apart.
    is_bound: ClassVar[bool] = False
    #: Whether it fetches pages again and again without ``again``, by placing them in ``place`` or ``learn``; such a
    #: crawl ends by a budget or a stop rule.
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

    #: Whether it counts what it asks hosts or domains for, by ``Link.host``, which ``FOCUS_REQUEST_PRIORITY`` parts.
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

        ``None`` where hosts are free, nothing is in flight and ``due`` names no time to come is no answer: the
        crawl takes any link then, and warns. A ``select`` that returns ``None`` changes nothing: after a kill it is not
        repeated. Give links up in ``place`` or ``learn``; what is given up here may wait again in the next run.
        """

    def learn(self, outcome: Outcome) -> None:  # noqa: B027 (a policy that learns nothing is complete)
        """See what a pick brought back: once for each pick, after ``place`` for the links of its page.

        The outcome of a HEAD (``outcome.pick.method``) carries the reward that the page promises. It is earned when the
        page is fetched. For a policy that overrides this, fewer picks are out as long as little is known
        (:func:`~scrapy_focus.core.outstanding.most_out`).
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

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "frontier"}


def import_path(named: Any) -> str:
    """Return where a class or a function is imported from: the shortest parent package that exports it, and its name.

    Examples
    --------
    >>> from scrapy_focus.policies.tagpath.policy import TagPath
    >>> import_path(TagPath), import_path(Policy)
    ('scrapy_focus.policies.tagpath.TagPath', 'scrapy_focus.Policy')
    """
    module, name = named.__module__, named.__qualname__
    parents = module.split(".")
    for depth in range(1, len(parents)):
        package = ".".join(parents[:depth])
        if getattr(sys.modules.get(package), name, None) is named:
            return f"{package}.{name}"
    return f"{module}.{name}"
