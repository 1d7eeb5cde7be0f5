"""How a link extractor finds out which links a crawl knows: Scrapy gives it a response, and nothing else.

A response has its request, and that carries the id of its pick. So the id itself says whose it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol
from weakref import ref

from scrapy_focus.engine.marks import PICK

if TYPE_CHECKING:
    from scrapy.http import Response


class KnownLinks(Protocol):
    """Which links of one page need not be made requests of."""

    tells_keys: bool  # whether the policy hears of those that are passed over, so that only links may be that count

    def has(self, url: str) -> bool:
        """Whether a request for a URL would go no further; ``url``: absolute, without a fragment."""

    def passes(self, url: str) -> bool:
        """Whether it would, and if so, note that the page has this link."""


class Knowing(Protocol):
    """The scheduler, as far as it is asked here."""

    def known_on(self, response: Response) -> KnownLinks | None:
        """Return what is known of the links of a page, ``None`` where nobody knows."""


class PickId(int):
    """The id of a pick that knows whose it is. A copy of it, or what is read from a pickle, is a plain number."""

    _host: ref[Knowing]

    @classmethod
    def of(cls, number: int, host: Knowing) -> PickId:
        """Return the id of a pick of a scheduler."""
        made = cls(number)
        made._host = ref(host)
        return made

    @property
    def host(self) -> Knowing | None:
        """The scheduler, as long as there is one."""
        return self._host()

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)


def known_on(response: Response) -> KnownLinks | None:
    """Return what is known of the links of a page; ``None`` where nobody knows: under a scheduler of others, with a
    dupefilter or fingerprinter of others, for a response that came by another way.
    """
    request = response.request
    pick_id = None if request is None else request.meta.get(PICK)
    host = pick_id.host if isinstance(pick_id, PickId) else None
    return None if host is None else host.known_on(response)
