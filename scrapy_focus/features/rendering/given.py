"""Identifies the items of a page, so that its rendered copy does not yield them again."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from itemadapter import ItemAdapter

_ITEMS = 500  # of a page that are remembered
_DIGEST = 8  # bytes
_COUNT = 4  # bytes


class Given:
    """The items of a page's plain copy: ``n_items`` counts all of them, up to 500 are remembered."""

    __slots__ = ("digests", "n_items")

    def __init__(self, n_items: int = 0, digests: set[bytes] | None = None) -> None:
        self.n_items = n_items
        self.digests = set() if digests is None else digests

    def add(self, item: Any) -> None:
        """Add an item that the page yielded."""
        self.n_items += 1
        if len(self.digests) < _ITEMS:
            self.digests.add(digest_of(item))

    def has(self, item: Any) -> bool:
        """Whether the plain copy of the page yielded the same item."""
        return bool(self.digests) and digest_of(item) in self.digests

    def pack(self) -> bytes:
        """Return it in the form that a queued request carries: 4 bytes, and 8 for each item."""
        return self.n_items.to_bytes(_COUNT, "big") + b"".join(sorted(self.digests))

    @classmethod
    def unpack(cls, packed: bytes) -> Given:
        """Rebuild it; ``b""`` is for a page without items."""
        body = packed[_COUNT:]
        digests = {body[at : at + _DIGEST] for at in range(0, len(body), _DIGEST)}
        return cls(int.from_bytes(packed[:_COUNT], "big"), digests)


def digest_of(item: Any) -> bytes:
    """Return 8 bytes of a digest of an item's fields."""
    try:
        fields = sorted((str(name), repr(value)) for name, value in ItemAdapter(item).asdict().items())
    except TypeError:  # it is not an item that Scrapy knows
        fields = [("", repr(item))]
    return blake2b(repr(fields).encode("utf-8", "surrogatepass"), digest_size=_DIGEST).digest()
