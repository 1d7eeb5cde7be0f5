"""What is remembered of a page that is fetched again, and what its next visit has shown so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.jobs.plain import dumps_plain, loads_plain

if TYPE_CHECKING:
    from scrapy import Request


class Visit(NamedTuple):
    """What the next visit of a page has to know of those before; small, as each page that is watched has one."""

    digest: int = 0  # of what the spider read last; 0: nothing yet
    body: int = 0  # of its bytes
    etag: str = ""  # what to ask with
    modified: str = ""
    url: str = ""  # that they belong to, where it is another than that of the page
    mime: str = ""  # of what the spider read last
    visits: int = 0
    changes: int = 0  # in a row, without a visit that found none
    misses: int = 0  # answers 404 in a row
    was_told: bool = False  # whether the server said at the last visit that nothing has changed
    is_stale: bool = False  # whether ``etag`` and ``modified`` are those of an earlier version
    is_doubted: bool = False  # whether the host is not to be believed

    @property
    def has_validators(self) -> bool:
        """Whether its server can be asked if the page is still what the spider read."""
        return bool(self.digest and (self.etag or self.modified))

    def pack(self) -> bytes:
        """Return it as bytes."""
        return dumps_plain(tuple(self))

    @classmethod
    def unpack(cls, stored: Any) -> Visit:
        """Return it again; one without any knowledge for anything that is none."""
        try:
            return cls(*loads_plain(stored)) if isinstance(stored, bytes) else cls()
        except (TypeError, ValueError):
            return cls()


class Coming:
    """A visit that is under way, and what it has shown so far."""

    __slots__ = ("asks", "body", "changed", "digest", "is_check", "kept", "last", "lied", "owns", "proves")

    def __init__(self, last: Visit) -> None:
        self.last = last
        self.asks: dict[str, str] = {}  # the conditions that were put on its request
        self.owns = False  # whether somebody else put conditions on it
        self.is_check = False  # whether it asks for the whole page though it has something to ask with
        self.changed: bool | None = None
        self.digest = 0  # of what came; 0: nothing did
        self.body = 0
        self.proves = False  # whether the next visit asks with what is known to be out of date
        self.lied = False  # whether the server said something that is not so
        self.kept: tuple[Request, Any, Any] | None = None  # the request as the spider made it: see Visits.restore
