"""What a leader and its workers say to each other: plain values, so that any engine can carry them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.core.types import Link, Outcome, Pick, State
from scrapy_focus.jobs.records import OutcomeRecord, link_of, plain_link

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scrapy_focus.core.abilities import Left, PolicyTable
    from scrapy_focus.core.types import Method

#: What a worker says of its picks and links: the kind of it, and its values.
Said = tuple[Any, ...]


class LeaderClosed(RuntimeError):
    """The crawl was closed: who wants to take part looks for another leader."""


class Lease(NamedTuple):
    """A pick that a worker is to fetch."""

    id: int
    key: int
    url: str
    host: str
    depth: int
    arm: int
    origin: int
    method: Method
    payload: bytes
    why: dict[str, Any] | None  # what the policy said of its choice, where that is asked for

    @classmethod
    def of(cls, pick: Pick, why: dict[str, Any] | None) -> Lease:
        """Return the lease of a pick."""
        return cls(
            pick.id, pick.key, pick.url, pick.host, pick.depth, pick.arm, pick.origin, pick.method, pick.payload, why
        )

    def pick(self) -> Pick:
        """Return the pick again, without what only the policy reads."""
        return Pick(
            self.id, self.key, self.url, self.host, self.depth, self.arm, 0.0, None, self.origin, self.method,
            self.payload,
        )  # fmt: skip


class Hello(NamedTuple):
    """A worker comes, or comes back."""

    worker: str
    agreed: Mapping[str, str]  # what has to be equal for all workers: names and values
    holding: Sequence[int]  # ids of picks that it has: waiting, in flight, or reported without an answer
    hosts: Sequence[str]  # that it asked lately
    granted: int  # requests beyond one for each pick that it was granted so far, without those that it gave back


class Welcome(NamedTuple):
    """What a worker is told when it comes."""

    session: str = ""  # to be named in what it says from now on
    kept: Sequence[int] = ()  # ids of the picks that are still its own
    refused: str = ""  # why it cannot take part
    failed: str = ""  # why the leader cannot write its files any more


class Exchange(NamedTuple):
    """What a worker says and wants, all in one message."""

    worker: str
    session: str
    said: Sequence[Said] = ()
    want: int = 0  # leases
    extra: int = 0  # requests beyond one for each pick
    unused: int = 0  # of these that it gives back
    n_bytes: int = 0  # received since it said so last
    alive: Sequence[int] = ()  # ids of the picks that it has
    looks: bool = False  # whether it wants a portrait
    claims: Sequence[tuple[int, int]] = ()  # picks that were redirected, each with the key to which


class Portrait(NamedTuple):
    """What takes a while to find out about a crawl."""

    found_at: Sequence[tuple[int, float]]
    best_arms: Sequence[tuple[str, float, int]]
    left: Left | None
    cost: float | None
    tables: Sequence[PolicyTable]


class News(NamedTuple):
    """How the crawl of all workers stands; times in seconds from now, as clocks differ."""

    counts: Mapping[str, float]  # for the stats, under ``cluster/``
    waiting: int
    asleep: int
    out: int  # leases
    arms: int
    awake: int
    rewards: float
    used: Mapping[str, float]
    limits: Mapping[str, float | None]
    rate: str
    next_due: float | None
    next_turn: float | None
    due: float | None


class Answer(NamedTuple):
    """What a leader answers."""

    rejoin: bool = False  # the session is over: nothing of what was said was heard
    leases: Sequence[Lease] = ()
    granted: int = 0
    unplaced: Sequence[int] = ()  # keys of links that are as new as before: they are to be told again
    finished: str = ""  # why the crawl is over
    news: News | None = None
    portrait: Portrait | None = None
    failed: str = ""  # why the leader cannot write its files any more: the crawl ends
    claimed: Sequence[int] = ()  # for each claim, in which state its key is; NEW: nobody else asks for that


def outcome_said(
    outcome: Outcome, links: Sequence[Link], known: Sequence[int], *, is_sent: bool, read: Mapping[str, Any] | None
) -> Said:
    """Return what is said of an outcome; ``is_sent``: whether the request of its lease went out."""
    record = OutcomeRecord.of(outcome)._replace(read=None if read is None else dict(read))
    return "outcome", outcome.pick.id, is_sent, tuple(record), [plain_link(link) for link in links], list(known)


def added_said(outcome: Outcome | None, links: Sequence[Link], read: Mapping[str, Any] | None = None) -> Said:
    """Return what is said of links that come besides an outcome; ``None``: of no page."""
    record = None
    if outcome is not None:
        record = tuple(OutcomeRecord.of(outcome)._replace(read=None if read is None else dict(read)))
    return "add", None if outcome is None else outcome.pick.id, record, [plain_link(link) for link in links]


def links_of(values: Sequence[tuple[Any, ...]]) -> list[Link]:
    """Return the links of what was said; what a worker believes of their state does not count."""
    return [link_of(each)._replace(state=State.NEW) for each in values]


def outcome_of(record: Sequence[Any], picks: Mapping[int, Pick]) -> Outcome:
    """Return the outcome of what was said."""
    return OutcomeRecord(*record).outcome(picks)
