"""Messages between a leader and its workers: plain values, so that any engine can carry them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.core.types import Link, Outcome, Pick, State
from scrapy_focus.jobs.records import OutcomeRecord, link_of, plain_link

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scrapy_focus.core.abilities import Left, PolicyTable
    from scrapy_focus.core.types import Method

#: A message of a worker about its picks and links: its kind, and values.
Said = tuple[Any, ...]


class LeaderClosed(RuntimeError):
    """Raised when the crawl was closed: a worker that wants to join looks for another leader."""


class Lease(NamedTuple):
    """A pick for a worker to fetch."""

    id: int
    key: int
    url: str
    host: str
    depth: int
    arm: int
    origin: int
    method: Method
    payload: bytes
    why: dict[str, Any] | None  # the policy's reason for its choice, if enabled

    @classmethod
    def of(cls, pick: Pick, why: dict[str, Any] | None) -> Lease:
        """Return the lease of a pick."""
        return cls(
            pick.id, pick.key, pick.url, pick.host, pick.depth, pick.arm, pick.origin, pick.method, pick.payload, why
        )

    def pick(self) -> Pick:
        """Rebuild the pick, without what only the policy reads."""
        return Pick(
            self.id, self.key, self.url, self.host, self.depth, self.arm, 0.0, None, self.origin, self.method,
            self.payload,
        )  # fmt: skip


class Hello(NamedTuple):
    """A worker joins or rejoins."""

    worker: str
    agreed: Mapping[str, str]  # values that have to be equal for all workers, by name
    holding: Sequence[int]  # ids of its picks: queued, in flight, or reported without an answer
    hosts: Sequence[str]  # that it requested lately
    granted: int  # requests beyond one for each pick that it was granted, without returned ones


class Welcome(NamedTuple):
    """The leader's answer to a worker that joins."""

    session: str = ""  # to be named in its messages from now on
    kept: Sequence[int] = ()  # ids of the picks that still belong to it
    refused: str = ""  # why it cannot join
    failed: str = ""  # why the leader cannot write its files any more


class Exchange(NamedTuple):
    """All reports and wishes of a worker, in one message."""

    worker: str
    session: str
    said: Sequence[Said] = ()
    want: int = 0  # leases
    extra: int = 0  # requests beyond one for each pick
    unused: int = 0  # of these, the ones that it returns
    n_bytes: int = 0  # received since the last report
    alive: Sequence[int] = ()  # ids of its picks
    looks: bool = False  # whether it wants a portrait
    claims: Sequence[tuple[int, int]] = ()  # redirected picks, each with the key of the target


class Portrait(NamedTuple):
    """Facts about a crawl that are slow to compute."""

    found_at: Sequence[tuple[int, float]]
    best_arms: Sequence[tuple[str, float, int]]
    left: Left | None
    cost: float | None
    tables: Sequence[PolicyTable]


class News(NamedTuple):
    """The state of the crawl of all workers; times in seconds from now, as clocks differ."""

    counts: Mapping[str, float]  # for the stats, under ``cluster/``
    waiting: int
    asleep: int
    out: int  # leases in flight
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
    """A leader's answer to a message."""

    rejoin: bool = False  # the session is over: the message was ignored
    leases: Sequence[Lease] = ()
    granted: int = 0
    unplaced: Sequence[int] = ()  # keys of links that the policy left unchanged: to be sent again
    finished: str = ""  # why the crawl is over
    news: News | None = None
    portrait: Portrait | None = None
    failed: str = ""  # why the leader cannot write its files any more: the crawl ends
    claimed: Sequence[int] = ()  # for each claim, the state of its key; NEW: no other worker fetches it


def outcome_said(
    outcome: Outcome, links: Sequence[Link], known: Sequence[int], *, is_sent: bool, read: Mapping[str, Any] | None
) -> Said:
    """Return the message about an outcome; ``is_sent``: whether the request of its lease was sent."""
    record = OutcomeRecord.of(outcome)._replace(read=None if read is None else dict(read))
    return "outcome", outcome.pick.id, is_sent, tuple(record), [plain_link(link) for link in links], list(known)


def added_said(outcome: Outcome | None, links: Sequence[Link], read: Mapping[str, Any] | None = None) -> Said:
    """Return the message about links apart from an outcome; ``None``: of no page."""
    record = None
    if outcome is not None:
        record = tuple(OutcomeRecord.of(outcome)._replace(read=None if read is None else dict(read)))
    return "add", None if outcome is None else outcome.pick.id, record, [plain_link(link) for link in links]


def links_of(values: Sequence[tuple[Any, ...]]) -> list[Link]:
    """Return the links of a message; their state as the worker sees it is ignored."""
    return [link_of(each)._replace(state=State.NEW) for each in values]


def outcome_of(record: Sequence[Any], picks: Mapping[int, Pick]) -> Outcome:
    """Return the outcome of a message."""
    return OutcomeRecord(*record).outcome(picks)
