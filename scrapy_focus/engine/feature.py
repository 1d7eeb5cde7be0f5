"""The interface for features: eight hooks along the way of a request.

A feature is what a setting adds to a crawl: it refuses copies, checks whether pages have changed, counts structured
data. Each folder of :mod:`scrapy_focus.features` is one, and a project names its own in ``FOCUS_FEATURES``. Nothing
imports scope, traps, near copies, redirects, answers, signals, files with the status and counts of structured data, so
each can be deleted with its folder. Rendering and revisits have downloader middlewares, so they cannot be deleted.
"""

from __future__ import annotations

from bisect import insort
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from scrapy_focus.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from scrapy import Request

    from scrapy_focus.core.abilities import PolicyTable
    from scrapy_focus.core.setting import Setting
    from scrapy_focus.core.types import Outcome
    from scrapy_focus.engine.inflight import Entry

    F = TypeVar("F", bound="Feature")


#: The hooks of a feature, in the order in which data flows.
HOOKS = ("refuse", "refuse_new", "hand_out", "give_back", "outcome", "read_page", "settled", "close")
#: The order of plain functions, which are called after all features.
LISTENERS = 900


class Shown(NamedTuple):
    """What a feature reports about itself."""

    lines: Sequence[str] = ()  # for the progress of the crawl
    tables: Sequence[PolicyTable] = ()
    notes: Mapping[str, Any] = {}  # plain values by name, for code that records the state of a crawl


class Feature:
    """Base class of features, constructed with the :class:`~scrapy_focus.engine.host.Host` of a crawl.

    Each hook does nothing; override those that you need. They are listed in the order in which data flows. If a hook
    raises, the error is logged and counted as ``focus/error/<name>`` (``focus/error/feature/<name>`` for features of a
    project), and the crawl continues as if the hook had returned nothing. To run code when the crawl starts, connect
    to Scrapy's ``spider_opened``; all middlewares exist by then.

    ``refuse``, ``refuse_new`` and ``hand_out`` stop at the first feature that returns ``True``. A skipped pick has an
    outcome, too.
    """

    name: ClassVar[str] = "feature"  # its errors are counted under this name
    order: ClassVar[int] = 500  # features with a lower order are called first
    abilities: ClassVar[frozenset[str]] = frozenset()  # middlewares find it by these without importing its class
    own_settings: ClassVar[Sequence[Setting[Any]]] = ()  # the FOCUS_* settings that a project's feature reads

    def refuse(self, request: Request, page: Entry | None) -> bool:
        """Whether to drop a request before the dupefilter sees it. ``page``: of the page with the link, if any.

        Not called for redirects and retries, nor for most requests to URLs that are already known.
        """
        return False

    def refuse_new(self, request: Request, page: Entry | None) -> bool:
        """Whether to drop a request for a new URL, after the dupefilter."""
        return False

    def hand_out(self, entry: Entry, request: Request) -> bool | Request:
        """Whether to skip a pick whose request is about to go to the downloader; may change the request.

        If it returns a request, that one is sent instead.
        """
        return False

    def give_back(self, entry: Entry) -> None:
        """The request of a pick was never sent, and is queued again."""

    def outcome(self, entry: Entry, outcome: Outcome) -> Outcome | None:
        """Return the outcome that the crawl is to see, before it is reported; ``None`` leaves it unchanged."""
        return None

    def read_page(self, entry: Entry, outcome: Outcome) -> Iterator[None] | None:
        """Work on a page before its links are placed.

        For slow work, set ``entry.takes_turns`` in ``outcome`` and return an iterator: it advances once per turn of the
        event loop.
        """
        return None

    def settled(self, entry: Entry, outcome: Outcome, earned: float) -> None:
        """The crawl has an outcome and its reward: the pick is done."""

    def close(self) -> None:
        """The crawl ends: all picks are done, and the frontier can still be read."""

    def shown(self) -> Shown:
        """Return what progress, pages and tables show of the feature. Not a hook: it may be called at any time."""
        return Shown()


class Hook(NamedTuple):
    """One callable at a hook."""

    order: int
    name: str
    call: Callable[..., Any]


class Features:
    """The features of a crawl, and the callables at each hook."""

    def __init__(self) -> None:
        self.refuse: list[Hook] = []
        self.refuse_new: list[Hook] = []
        self.hand_out: list[Hook] = []
        self.give_back: list[Hook] = []
        self.outcome: list[Hook] = []
        self.read_page: list[Hook] = []
        self.settled: list[Hook] = []
        self.close: list[Hook] = []
        self._features: list[Feature] = []

    def add(self, feature: Feature, *, name: str = "") -> None:
        """Call the hooks of a feature from now on; those that it does not override cost nothing.

        Parameters
        ----------
        feature
            The feature.
        name
            The name under which its errors are counted, in place of its own.

        Raises
        ------
        ConfigError
            If it has a method whose name looks like a misspelled hook.
        """
        for method in vars(type(feature)):
            meant = get_close_matches(method, HOOKS, n=1, cutoff=0.85)
            if meant and method not in HOOKS and not method.startswith("_"):
                raise ConfigError(f"{type(feature).__qualname__} has a method {method}; did you mean {meant[0]}?")
        self._features.append(feature)
        for hook in HOOKS:
            if getattr(type(feature), hook) is not getattr(Feature, hook):
                self.on(hook, getattr(feature, hook), name=name or feature.name, order=feature.order)

    def on(self, hook: str, call: Callable[..., Any], *, name: str = "note", order: int = LISTENERS) -> None:
        """Call a function at one hook, for parts of a project that are not features; see :class:`Feature`."""
        hooks: list[Hook] = getattr(self, hook)
        insort(hooks, Hook(order, name, call), key=lambda each: each.order)  # after those of the same order

    def find(self, cls: type[F]) -> F | None:
        """Return the feature of a class, ``None`` if the crawl has none."""
        return next((each for each in self._features if isinstance(each, cls)), None)

    def able(self, ability: str) -> Any:
        """Return the feature with this ability, or ``None``: for callers that must not import its class."""
        return next((each for each in self._features if ability in each.abilities), None)

    def __iter__(self) -> Iterator[Feature]:
        """Iterate over the features in the order in which they were added."""
        return iter(self._features)
