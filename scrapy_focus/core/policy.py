"""The policy decides: it places links, selects the next one, and learns from outcomes.

A policy has three verbs. ``place`` gives every link of a page an arm and a rank; ``select`` takes the next link out
of the frontier; ``learn`` receives each outcome once. :class:`~scrapy_focus.policies.bases.Ordering` and
:class:`~scrapy_focus.policies.bases.Bandit` cover the two usual kinds, so that a custom policy is often one method.
Optional methods are in :mod:`scrapy_focus.core.abilities`.
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
    """Base class of policies; one can be constructed and tested without a crawl.

    Parameters are keyword arguments, stored under their own names. Randomness comes from ``self.rng`` alone, and the
    time from ``self.now``: a policy never reads a clock. It is pickled without its frontier. A ``JOBDIR`` stores no
    copy of ``mission.topic`` either; a resumed policy receives it again wherever it kept it. A policy with attributes
    that cannot be pickled extends ``__getstate__``.
    """

    #: The policy in one plain sentence for readers of a comparison; else the first line of its docstring.
    summary: ClassVar[str] = ""
    #: Names in papers, each with the parameters that give that variant: ``{"DFS": {"last_first": True}}``.
    paper_names: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    #: Whether no crawl can do better: an upper bound. Not a real method; comparisons draw it differently.
    is_bound: ClassVar[bool] = False
    #: Whether it revisits pages without ``again``, by placing them in ``place`` or ``learn``; such a crawl ends by a
    #: budget or a stop rule.
    never_ends: ClassVar[bool] = False
    #: Whether ``place`` reads ``tag_path``, ``anchor`` or ``context``; if no policy does, pages are not parsed for
    #: them.
    reads_page: ClassVar[bool] = True
    #: Whether it reads ``outcome.page``. If one machine decides and others fetch, page texts are sent only to
    #: policies that do.
    reads_outcome: ClassVar[bool] = False
    #: Whether it reads ``mission.topic``, so that links whose words fit the topic of the goal come first.
    reads_topic: ClassVar[bool] = False
    #: States of known URLs whose links ``place`` also receives: ``WAITING`` to move them, ``FETCHED`` to revisit
    #: them, ``GIVEN_UP`` to place them after all. It always receives new links.
    wants_known: ClassVar[frozenset[State]] = frozenset()
    #: Whether ``place`` receives these known links as keys alone: ``url``, ``host`` and all texts are empty. It reads
    #: the rest from its frontier (:meth:`~scrapy_focus.core.frontier.Drawn.vectors`), so that a known link costs
    #: almost nothing. They come before the new links.
    known_by_key: ClassVar[bool] = False
    #: Parameters that a later run of the same job may change; the values from the start of the crawl stay in force.
    may_change: ClassVar[frozenset[str]] = frozenset()
    #: Import paths of the classes or packages of other libraries that it holds. Otherwise a ``JOBDIR`` stores only
    #: plain values, arrays, estimators of scikit-learn, and classes of the policy's package.
    stores: ClassVar[frozenset[str]] = frozenset()

    #: Whether poor links (to log in, share or print, and of kinds that only give errors) are fetched when nothing
    #: else is left, and never in a crawl that revisits pages. ``FOCUS_POOR_LAST`` overrides it. Off for published
    #: systems; keep it off if ``place`` lets new links sleep, because they wake together with poor ones.
    poor_last: ClassVar[bool] = False

    #: Whether it counts its requests by host or domain, from ``Link.host``, which ``FOCUS_REQUEST_PRIORITY`` splits.
    counts_hosts: ClassVar[bool] = False

    #: Where links are queued; set by ``open`` and ``attach``. A subclass annotates which of the two it is:
    #: ``frontier: Ranked``.
    frontier: Frontier
    rng: np.random.Generator
    #: Seconds since the epoch, set before each call; in a simulation since its beginning. It never decreases. A
    #: resumed crawl receives the same times as before.
    now: float = 0.0
    #: Requests per second that may be used in the long run, ``None`` for no limit (``FOCUS_BUDGET_RATE``). Set before
    #: ``open``. A resumed crawl sets a changed rate before any new event.
    budget_rate: float | None = None

    def keeps(self, mission: Mission) -> Keeps:
        """Return what the frontier keeps per queued link: ``Ranks()``, or vectors of a width. Called before open()."""
        return Ranks()

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        """Start a crawl. Called once, before anything else.

        ``frontier`` is a :class:`~scrapy_focus.core.frontier.Ranked` or a :class:`~scrapy_focus.core.frontier.Drawn`,
        as :meth:`keeps` declared. ``mission`` fills in parameters that were left open.
        """
        self.rng = rng
        self.attach(frontier)

    def attach(self, frontier: Frontier) -> None:
        """Attach a frontier: called by ``open``, and alone when a stored crawl resumes."""
        self.frontier = frontier

    @abstractmethod
    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        """Return a placement for each link, ``None`` to give a new link up.

        ``links`` are all links of one page, in document order, in several calls for a page with more than 500.
        ``source`` is the outcome of that page, with its reward, and ``None`` for seeds. After a HEAD, the link comes
        alone, in state ``PROBED``, and the outcome of the HEAD is its source (see its ``status`` and ``error``).
        ``None`` leaves a known link unchanged; :data:`~scrapy_focus.core.types.NOT_NOW` leaves any link unchanged,
        even a new one.
        """

    @abstractmethod
    def select(self, busy: Collection[str]) -> Pick | None:
        """Take the next link out of the frontier; ``None`` if none is suitable now. ``busy``: hosts to skip.

        ``None`` is not valid if hosts are free, nothing is in flight and ``due`` names no future time: the crawl then
        takes any link, and warns. A ``select`` that returns ``None`` must change nothing: after a kill it is not
        repeated. Give links up in ``place`` or ``learn``; links given up here may be queued again in the next run.
        """

    def learn(self, outcome: Outcome) -> None:  # noqa: B027 (a policy that learns nothing is complete)
        """Receive the outcome of a pick: once for each pick, after ``place`` for the links of its page.

        The outcome of a HEAD (``outcome.pick.method``) carries the reward that the page promises, which is earned
        when the page is fetched. A policy that overrides this method has fewer picks in flight while little is known
        (:func:`~scrapy_focus.core.outstanding.most_out`).
        """

    def release(self, pick: Pick) -> None:  # noqa: B027 (nothing to undo for a policy that counts nothing)
        """Undo what ``select`` counted for a pick that was released unsent. ``learn`` is not called for it."""

    def give_up(self, n: int) -> int:
        """Give up ``n`` queued links, those that it wants least; return how many.

        Called when more links are queued than ``FOCUS_MOST_WAITING``. By default each arm gives up its share: its
        lowest ranks, or links drawn at random in a :class:`~scrapy_focus.core.frontier.Drawn` frontier. If a policy
        gives up too few, the rest is given up in this way. These links are in state ``GIVEN_UP``; a policy that wants
        them (``wants_known``) may place them after all when another page links to them.
        """
        return give_up(self.frontier, n, self.rng)

    def explain(self, pick: Pick) -> Mapping[str, Any]:
        """Return why this pick was chosen, called right after ``select``: by default, where it was queued.

        Override it to return a :class:`~scrapy_focus.Reason`. A dict of names and JSON values is converted to one.
        """
        rank = float(pick.rank)
        left = int(self.frontier.waiting[pick.arm])
        numbers = {"arm": pick.arm, "rank": rank if math.isfinite(rank) else str(rank), "waiting": left}
        where = f"from queue {pick.arm} at rank {rank:g}, {counted(left, 'link')} left there"
        return Reason(depth_of(pick), Part(where, numbers))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "frontier"}


def import_path(named: Any) -> str:
    """Return the import path of a class or function: the shortest parent package that exports it, and its name.

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
