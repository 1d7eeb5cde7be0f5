"""Links, outcomes, clocks and policies that are made up: what tests below the Scrapy line share."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy_focus import Link, Outcome, Placement, Policy, State
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from types import ModuleType

    from scrapy_focus import Crawl, Pick, Ranked

PDF = "application/pdf"
#: Seconds after which something hangs for good, also on a machine that is ten times slower than ours.
HANG = 900.0


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Recording(Policy):
    """First in, first out, in arm 1; writes down what it is asked, with the number of links that wait at that time.

    ``answer`` makes another placement of a link and the source.
    """

    frontier: Ranked

    def __init__(self, *, answer: Callable[[Link, Outcome | None], Placement | None] | None = None) -> None:
        self.answer = answer
        self.calls: list[tuple[Any, ...]] = []
        self._found = 0

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        self.calls.append(("place", [link.key for link in links], None if source is None else source.reward))
        self._found += len(links)
        if self.answer is not None:
            return [self.answer(each, source) for each in links]
        return [Placement(1, float(i - self._found)) for i in range(len(links), 0, -1)]

    def select(self, busy: Collection[str]) -> Pick | None:
        return self.frontier.pop(1, busy)

    def learn(self, outcome: Outcome) -> None:
        state = self.frontier.states([outcome.pick.key])[0]
        self.calls.append(("learn", outcome.pick.key, outcome.reward, state.name))

    def release(self, pick: Pick) -> None:
        self.calls.append(("release", pick.key))

    def called(self, verb: str) -> list[tuple[Any, ...]]:
        """Return the calls of one verb, in order, without its name."""
        return [call[1:] for call in self.calls if call[0] == verb]


class Curious(Recording):
    """A :class:`Recording` that also wants links that are known."""

    wants_known: ClassVar[frozenset[State]] = frozenset(State) - {State.NEW}


class EachAgain(BreadthFirst):
    """Breadth-first; each page that came is fetched again after so many seconds, behind what is new, some times."""

    def __init__(self, *, every: float = 100.0, times: int = 1_000_000) -> None:
        super().__init__()
        self.every = every
        self.times = times
        self.visits: dict[int, int] = {}  # by key
        self.learned: list[tuple[str, float]] = []

    def learn(self, outcome: Outcome) -> None:
        self.visits[outcome.pick.key] = self.visits.get(outcome.pick.key, 0) + 1
        self.learned.append((outcome.pick.url, self.now))

    def again(self, outcome: Outcome) -> Placement | None:
        visits = self.visits[outcome.pick.key]
        if outcome.error or visits > self.times:
            return None
        return Placement(0, -1e9 * visits, after=self.now + self.every)


class Renders(BreadthFirst):
    """Breadth-first; each page with scripts is rendered after all that waits."""

    def __init__(self) -> None:
        super().__init__()
        self.learned: list[tuple[str, str, int]] = []

    def learn(self, outcome: Outcome) -> None:
        self.learned.append((outcome.pick.method, outcome.pick.url, outcome.requests))

    def render(self, outcome: Outcome) -> Placement | None:
        return Placement(0, -1e9 - len(self.learned))


def link(number: int, *, host: str = "h", url: str = "", **rest: Any) -> Link:
    """Return a link whose key is its number."""
    return Link(url or f"http://{host}/{number}", number, host, **rest)


def links(*numbers: int, **rest: Any) -> list[Link]:
    """Return a link for each number."""
    return [link(number, **rest) for number in numbers]


def page(pick: Pick, **rest: Any) -> Outcome:
    """Return a page that came back for a pick; other values by name."""
    return Outcome(pick=pick, status=200, mime="text/html", size=100)._replace(**rest)


def file(pick: Pick, **rest: Any) -> Outcome:
    """Return a file that came back for a pick, a target for ``FilesGoal``."""
    return page(pick, mime=PDF, **rest)


def failure(pick: Pick, status: int | None = 404) -> Outcome:
    """Return an outcome without a usable page."""
    return Outcome(pick=pick, status=status, mime="text/html" if status else "", error="http_error")


def fetch(crawl: Crawl, *found: Link, busy: Collection[str] = (), **rest: Any) -> Pick:
    """Let the crawl choose, send, and report a page with links; return what it chose."""
    pick = crawl.next(busy)
    assert pick is not None, "nothing was chosen"
    assert crawl.sent(pick.id)
    crawl.report(page(pick, **rest), list(found))
    return pick


def modules_of(package: ModuleType) -> Iterator[ModuleType]:
    """Yield the modules of a package, imported."""
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(info.name)


def classes_of(package: ModuleType) -> Iterator[type]:
    """Yield the public classes that the modules of a package define, by name."""
    for module in modules_of(package):
        for name, value in sorted(vars(module).items()):
            if inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_"):
                yield value
