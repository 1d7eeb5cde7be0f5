"""The stored state of a page that is revisited, and the state of a visit in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.jobs.plain import dumps_plain, loads_plain

if TYPE_CHECKING:
    from scrapy import Request


class Visit(NamedTuple):
    """What the next visit of a page has to know of the previous ones; small, as every watched page stores one."""

    digest: int = 0  # of what the spider read last; 0: nothing yet
    body: int = 0  # of its bytes
    etag: str = ""  # for conditions
    modified: str = ""
    url: str = ""  # that the validators belong to, if it differs from the page's
    mime: str = ""  # of what the spider read last
    visits: int = 0
    changes: int = 0  # in a row, since the last visit without a change
    misses: int = 0  # responses 404 in a row
    was_told: bool = False  # whether the server said at the last visit that nothing has changed
    is_stale: bool = False  # whether ``etag`` and ``modified`` belong to an earlier version
    is_doubted: bool = False  # whether the host is not trusted

    @property
    def has_validators(self) -> bool:
        """Whether the server can be asked if the page is still what the spider read."""
        return bool(self.digest and (self.etag or self.modified))

    def pack(self) -> bytes:
        """Return the visit as bytes."""
        return dumps_plain(tuple(self))

    @classmethod
    def unpack(cls, stored: Any) -> Visit:
        """Rebuild a visit from bytes; a default one for anything else."""
        try:
            return cls(*loads_plain(stored)) if isinstance(stored, bytes) else cls()
        except (TypeError, ValueError):
            return cls()


class Coming:
    """A visit in flight, and what it has shown so far."""

    __slots__ = ("asks", "body", "changed", "digest", "is_check", "kept", "last", "lied", "owns", "proves")

    def __init__(self, last: Visit) -> None:
        self.last = last
        self.asks: dict[str, str] = {}  # the conditions added to its request
        self.owns = False  # whether the spider or another middleware added conditions
        self.is_check = False  # whether it fetches the full page although it has validators
        self.changed: bool | None = None
        self.digest = 0  # of the response; 0: there was none
        self.body = 0
        self.proves = False  # whether the next visit sends validators known to be out of date
        self.lied = False  # whether the server's answer was wrong
        self.kept: tuple[Request, Any, Any] | None = None  # the request as the spider made it: see Visits.restore
