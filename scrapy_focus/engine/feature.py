"""The seam for features: eight hooks along the way of a request, and who is called at each.

A feature is what a setting adds to a crawl: it refuses copies, asks whether pages have changed, counts what pages say.
Each folder of :mod:`scrapy_focus.features` is one, and a project names its own in ``FOCUS_FEATURES``. Nothing imports
traps, near copies, answers, signals and counts of structured data, so each can be deleted with its folder. Rendering
and revisits have downloader middlewares, and cannot.
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
#: The order of functions that are no features, behind all of these.
LISTENERS = 900


class Shown(NamedTuple):
    """What a feature shows of itself."""

    lines: Sequence[str] = ()  # for the progress of the crawl
    tables: Sequence[PolicyTable] = ()
    notes: Mapping[str, Any] = {}  # plain values by name, for those who write down how a crawl stands


class Feature:
    """Base class of features, made with the :class:`~scrapy_focus.engine.host.Host` of a crawl.

    Each hook does nothing; override those that you need. They are listed in the order in which data flows. If a hook
    raises, the error is logged and counted as ``focus/error/<name>`` (``focus/error/feature/<name>`` for features of a
    project), and the crawl continues as if the hook had returned nothing. To run code when the crawl starts, connect
    to Scrapy's ``spider_opened``; all middlewares exist by then.

    ``refuse``, ``refuse_new`` and ``hand_out`` stop at the first feature that returns ``True``. A pick that was passed
    over has an outcome, too.
    """

    name: ClassVar[str] = "feature"  # under which its errors are counted
    order: ClassVar[int] = 500  # features with a lower order are called first
    abilities: ClassVar[frozenset[str]] = frozenset()  # by which middlewares find it without importing its class
    own_settings: ClassVar[Sequence[Setting[Any]]] = ()  # FOCUS_* settings that it reads, of features of a project

    def refuse(self, request: Request, page: Entry | None) -> bool:
        """Whether a request goes no further, before the dupefilter sees it. ``page``: where it was found, if on a page.

        Redirects and retries are not asked about, and neither are most requests for URLs that are known already.
        """
        return False

    def refuse_new(self, request: Request, page: Entry | None) -> bool:
        """The same behind the dupefilter: whether a request for a new URL goes no further."""
        return False

    def hand_out(self, entry: Entry, request: Request) -> bool:
        """Whether to pass over a pick whose request is about to go to the downloader; may change the request."""
        return False

    def give_back(self, entry: Entry) -> None:
        """The request of a pick was never sent, and waits again."""

    def outcome(self, entry: Entry, outcome: Outcome) -> Outcome | None:
        """Return an outcome as the crawl is to see it, before it is reported; ``None`` leaves it as it is."""
        return None

    def read_page(self, entry: Entry, outcome: Outcome) -> Iterator[None] | None:
        """Work on a page before its links are placed.

        For slow work, set ``entry.takes_turns`` in ``outcome`` and return an iterator: it advances once per turn of the
        event loop.
        """
        return None

    def settled(self, entry: Entry, outcome: Outcome, earned: float) -> None:
        """The crawl has an outcome and its reward: the pick is over."""

    def close(self) -> None:
        """The crawl ends: all picks came back, and the frontier can still be read."""

    def shown(self) -> Shown:
        """Return what progress, pages and tables show of the feature. It may be asked at any time, and is no hook."""
        return Shown()


class Hook(NamedTuple):
    """One call at a hook."""

    order: int
    name: str
    call: Callable[..., Any]


class Features:
    """The features of a crawl, and for each hook whom to call."""

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
        """Call the hooks of a feature from now on: only those that it overrides cost anything.

        Parameters
        ----------
        feature
            The feature.
        name
            What its errors are counted under, in place of its own name.

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
        """Call a function at one hook, for parts of a project that are no features; see :class:`Feature`."""
        hooks: list[Hook] = getattr(self, hook)
        insort(hooks, Hook(order, name, call), key=lambda each: each.order)  # behind those of the same order

    def find(self, cls: type[F]) -> F | None:
        """Return the feature of a class, ``None`` where the crawl has none."""
        return next((each for each in self._features if isinstance(each, cls)), None)

    def able(self, ability: str) -> Any:
        """Return the feature with this ability, ``None`` without one: for callers that must not import its class."""
        return next((each for each in self._features if ability in each.abilities), None)

    def __iter__(self) -> Iterator[Feature]:
        """Go through the features in the order in which they were added."""
        return iter(self._features)
