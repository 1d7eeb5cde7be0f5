"""The events of a crawl: everything that is needed to repeat it.

A crawl decides on an event, applies it, and passes it to its keeper before any effect leaves the process. Applying
the same events to the same state gives the same crawl. So a crawl is recovered, and led from another machine. Times
are seconds since the epoch, and never decrease from one event to the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scrapy_focus.core.types import Link, Outcome, Signal

#: Version of the stored format. Raised by one whenever an event, a snapshot or a table changes.
FORMAT = 13
#: The oldest format that can still be read: the one before, at least. Raising it needs a reason in CHANGES.
OLDEST_FORMAT = 12


class Added(NamedTuple):
    """New links for the policy to place: seeds, or links that a page gave besides its outcome."""

    links: Sequence[Link]
    source: Outcome | None  # of the page where they were found; None: seeds
    at: float


class Closed(NamedTuple):
    """Some hosts are closed from now on, until they are opened again."""

    hosts: Sequence[str]
    opened: Sequence[str]


class Picked(NamedTuple):
    """The policy chose a link, and it is in flight now."""

    id: int
    key: int
    busy: tuple[str, ...]  # busy hosts, besides those that are closed
    at: float
    link: tuple[
        str, str, int, bytes
    ]  # URL, host, depth and payload, for a policy that does not place it the second time


class Sent(NamedTuple):
    """A request was sent, or one that was not sent is refunded."""

    pick_id: int | None  # the pick that it belongs to; None: none, or refunded
    requests: int  # used so far
    at: float


class Released(NamedTuple):
    """A pick was not sent, and its link is queued again."""

    pick_id: int


class Recovered(NamedTuple):
    """These keys were in flight when a run was killed, and are queued again."""

    keys: Sequence[int]


class Concluded(NamedTuple):
    """A pick has its outcome, with its reward, and the links of its page."""

    outcome: Outcome
    links: Sequence[Link]
    known: Sequence[int]  # keys of links that were seen before, where the policy asks for keys
    used: Mapping[str, float]  # of the budget; empty if nobody keeps the crawl
    counts: Mapping[str, int]  # those that changed since the last event of this kind, with their new values


class GaveUp(NamedTuple):
    """Too many links were queued, and the policy gave up so many of them."""

    n: int
    at: float


class Woke(NamedTuple):
    """Sleeping links that were due are queued: the first ones, up to this number."""

    at: float
    most: int | None  # None: all of them


class Heard(NamedTuple):
    """A site reported when pages changed."""

    signals: Sequence[Signal]
    at: float


class Paced(NamedTuple):
    """The rate changed: so many requests may be sent in the long run from now on."""

    rate: float | None  # requests per second; None: no limit


class Leased(NamedTuple):
    """Another machine fetches a pick, and reports its outcome."""

    pick_id: int
    owner: str


class Granted(NamedTuple):
    """Another machine may send so many requests beyond one for each pick; they count as used."""

    owner: str
    n: int  # below 0: so many unsent ones are returned
    requests: int  # used so far
    at: float


Event = (
    Added | Closed | Picked | Sent | Released | Recovered | Concluded | GaveUp | Woke | Heard | Paced | Leased | Granted
)
