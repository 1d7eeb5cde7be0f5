"""What happens to a crawl, one event after the other: all that is needed to do it again.

A crawl decides, applies, and tells its keeper before anything leaves the process. Whoever applies the same events to
the same state has the same crawl: that is how a crawl is recovered, and how one is led from another machine. Times are
seconds since the epoch, and never go back from one event to the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scrapy_focus.core.types import Link, Outcome, Signal

#: Of all that is stored of a crawl. Raised by one whenever an event, a snapshot or a table changes.
FORMAT = 13
#: The oldest format that can still be read: the one before, at least. Raising it needs a reason in CHANGES.
OLDEST_FORMAT = 12


class Added(NamedTuple):
    """Links came that the policy is to place: seeds, or what a page gave besides its outcome."""

    links: Sequence[Link]
    source: Outcome | None  # of the page on which they were found; None: seeds
    at: float


class Closed(NamedTuple):
    """Some hosts take nothing from now on, until it is said that they are open again."""

    hosts: Sequence[str]
    opened: Sequence[str]


class Picked(NamedTuple):
    """The policy chose a link, and it is in flight now."""

    id: int
    key: int
    busy: tuple[str, ...]  # hosts that could take nothing, besides those that are closed
    at: float
    link: tuple[
        str, str, int, bytes
    ]  # URL, host, depth and payload, for a policy that does not place it the second time


class Sent(NamedTuple):
    """A request went out, or one was refunded that never left."""

    pick_id: int | None  # for which it was; None: for none, or refunded
    requests: int  # used so far
    at: float


class Released(NamedTuple):
    """A pick was not sent, and its link waits again."""

    pick_id: int


class Recovered(NamedTuple):
    """These keys were in flight when a run was killed, and wait again."""

    keys: Sequence[int]


class Concluded(NamedTuple):
    """A pick has its outcome, with its reward, and the links of its page."""

    outcome: Outcome
    links: Sequence[Link]
    known: Sequence[int]  # keys of links that were seen before, where the policy asks for keys
    used: Mapping[str, float]  # of the budget; empty where nobody keeps the crawl
    counts: Mapping[str, int]  # those that changed since the last event of this kind, as they are after it


class GaveUp(NamedTuple):
    """More links waited than may, and the policy gave up so many of them."""

    n: int
    at: float


class Woke(NamedTuple):
    """Links that slept until then wait from now on: the first of them, and so many at most."""

    at: float
    most: int | None  # None: all of them


class Heard(NamedTuple):
    """Somebody said of pages when they changed."""

    signals: Sequence[Signal]
    at: float


class Paced(NamedTuple):
    """From now on, so many requests may go out in the long run: another number than before."""

    rate: float | None  # requests per second; None: as many as can


class Leased(NamedTuple):
    """Somebody else fetches a pick, and reports what comes back."""

    pick_id: int
    owner: str


class Granted(NamedTuple):
    """Somebody else may send so many requests beyond one for each pick; they count as used."""

    owner: str
    n: int  # below 0: so many that were not sent are given back
    requests: int  # used so far
    at: float


Event = (
    Added | Closed | Picked | Sent | Released | Recovered | Concluded | GaveUp | Woke | Heard | Paced | Leased | Granted
)
