"""Converts events to plain values for the journal, so that a file can be read without code of this package.

A record is the kind of an event and its fields. Links are tuples, and an outcome is an :class:`OutcomeRecord`, with the
policy's reading of its page and only the id of its pick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.core.errors import StorageError
from scrapy_focus.core.events import (
    Added,
    Closed,
    Concluded,
    GaveUp,
    Granted,
    Heard,
    Leased,
    Paced,
    Picked,
    Recovered,
    Released,
    Sent,
    Woke,
)
from scrapy_focus.core.noted import NotedPage
from scrapy_focus.core.types import Link, Outcome, Signal, State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_focus.core.events import Event
    from scrapy_focus.core.types import Method, Pick
    from scrapy_focus.jobs.journal import Record

OUTCOME = "outcome"  # the kind of event that is counted for the next checkpoint


_KIND_OF_PLAIN: dict[type[Event], str] = {  # events that have only plain values
    Closed: "close",
    Picked: "pick",
    Sent: "sent",
    Released: "release",
    GaveUp: "give_up",
    Woke: "wake",
    Paced: "pace",
    Leased: "lease",
    Granted: "grant",
}


class OutcomeRecord(NamedTuple):
    """An outcome without its page and pick."""

    pick_id: int
    method: Method
    status: int | None
    mime: str
    size: int
    seconds: float
    items: float
    error: str
    reward: float
    at: float
    also: tuple[int, ...]
    changed: bool | None
    max_age: float | None
    outside: int
    payload: bytes | None
    content: int | None
    once: bool
    scripted: bool
    requests: int
    received: int
    from_api: bool  # always False; in journals of earlier versions: whether a page was read from the API behind it
    made: tuple[str, ...]
    read: dict[str, Any] | None  # what the policy read of the page; None: there was none

    @classmethod
    def of(cls, outcome: Outcome) -> OutcomeRecord:
        """Return the record of an outcome."""
        read = outcome.page.read if isinstance(outcome.page, NotedPage) else None
        return cls(
            outcome.pick.id, outcome.pick.method, outcome.status, outcome.mime, outcome.size, outcome.seconds,
            outcome.items, outcome.error, outcome.reward, outcome.at, tuple(outcome.also),
            outcome.changed, outcome.max_age, outcome.outside, outcome.payload, outcome.content,
            outcome.once, outcome.scripted, outcome.requests, outcome.received,
            False, tuple(outcome.made), read,
        )  # fmt: skip

    def outcome(self, flying: Mapping[int, Pick]) -> Outcome:
        """Rebuild the outcome.

        Raises
        ------
        StorageError
            If its pick is not in flight.
        """
        pick = flying.get(self.pick_id)
        if pick is None:
            raise StorageError(f"the journal names pick {self.pick_id}, which was never chosen; see focus check")
        return Outcome(
            pick=pick._replace(method=self.method), status=self.status, mime=self.mime, size=self.size,
            seconds=self.seconds, items=self.items, error=self.error, reward=self.reward, at=self.at, also=self.also,
            changed=self.changed, max_age=self.max_age, outside=self.outside, payload=self.payload,
            content=self.content, once=self.once, scripted=self.scripted, requests=self.requests,
            received=self.received, made=tuple(self.made),
            page=None if self.read is None else NotedPage(None, self.read),
        )  # fmt: skip


def plain_link(link: Link) -> tuple[Any, ...]:
    """Return a link as plain values."""
    url, key, host, depth, anchor, tag_path, context, state, *more = link
    return url, key, host, depth, anchor, tag_path, context, int(state), *more


def link_of(values: tuple[Any, ...]) -> Link:
    """Rebuild a link."""
    url, key, host, depth, anchor, tag_path, context, state, *more = values
    return Link(url, key, host, depth, anchor, tag_path, context, State(state), *more)


def record_of(event: Event) -> Record:
    """Return an event as plain values."""
    match event:
        case Added():
            source = None if event.source is None else tuple(OutcomeRecord.of(event.source))
            return "add", [plain_link(link) for link in event.links], source, event.at
        case Recovered():
            return "recovered", list(event.keys)
        case Concluded():
            links = [plain_link(link) for link in event.links]
            record = tuple(OutcomeRecord.of(event.outcome))
            return OUTCOME, record, links, list(event.known), dict(event.used), dict(event.counts)
        case Heard():
            return "heard", [tuple(signal) for signal in event.signals], event.at
    return _KIND_OF_PLAIN[type(event)], *event


def event_of(record: Record, flying: Mapping[int, Pick]) -> Event:
    """Rebuild the event of a record; ``flying`` are the picks in flight, by id.

    Raises
    ------
    StorageError
        If the record is invalid, or does not follow from those before it.
    """
    kind, *values = record
    match kind:
        case "add":
            links, source, at = values
            outcome = None if source is None else OutcomeRecord(*source).outcome(flying)
            return Added([link_of(link) for link in links], outcome, at)
        case "release":
            (pick_id,) = values
            if pick_id not in flying:
                raise StorageError(f"the journal names pick {pick_id}, which was never chosen; see focus check")
            return Released(pick_id)
        case "outcome":
            outcome_record, links, known, used, counts = values
            outcome = OutcomeRecord(*outcome_record).outcome(flying)
            return Concluded(outcome, [link_of(link) for link in links], known, used, counts)
        case "heard":
            signals, at = values
            return Heard([Signal(*signal) for signal in signals], at)
        case "recovered":
            return Recovered(*values)
    for event, plain_kind in _KIND_OF_PLAIN.items():
        if plain_kind == kind:
            return event(*values)
    raise StorageError(f"the journal has an event {kind!r} that this version does not know; see focus check")
