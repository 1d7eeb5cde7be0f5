"""Tells a link extractor which links a crawl knows, given only a response.

A response has its request, and that carries the id of its pick. So the id itself refers to its crawl.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol
from weakref import ref

from scrapy_focus.engine.marks import PICK

if TYPE_CHECKING:
    from scrapy.http import Response


class KnownLinks(Protocol):
    """Links of one page that need no request."""

    tells_keys: bool  # whether the policy receives the keys of skipped links, so that skip only real links

    def has(self, url: str) -> bool:
        """Whether a request for a URL would be dropped; ``url``: absolute, without a fragment."""

    def passes(self, url: str) -> bool:
        """Whether it would be dropped; if so, note that the page has this link."""


class Knowing(Protocol):
    """The scheduler, as used in this module."""

    def known_on(self, response: Response) -> KnownLinks | None:
        """Return which links of a page are known, ``None`` if that is unknown."""


class PickId(int):
    """The id of a pick, with a reference to its crawl. A copy, or a value read from a pickle, is a plain number."""

    _host: ref[Knowing]

    @classmethod
    def of(cls, number: int, host: Knowing) -> PickId:
        """Return the id of a pick of a scheduler."""
        made = cls(number)
        made._host = ref(host)
        return made

    @property
    def host(self) -> Knowing | None:
        """The scheduler, as long as it exists."""
        return self._host()

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)


def known_on(response: Response) -> KnownLinks | None:
    """Return which links of a page are known, or ``None`` if that is unknown.

    It is unknown with another scheduler, dupefilter or fingerprinter, and for a response that bypassed the scheduler.
    """
    request = response.request
    pick_id = None if request is None else request.meta.get(PICK)
    host = pick_id.host if isinstance(pick_id, PickId) else None
    return None if host is None else host.known_on(response)
