"""Checksums of rows: SQLite has none, and one wrong bit in a URL leads to another page, or to none.

They cover the constant part of a row: of a link all but its place, of a host its name, of a block of known keys the
keys. A row without a checksum was written by a version that had none, and is accepted.
"""

from __future__ import annotations

from struct import Struct, error
from zlib import crc32

_NUMBERS = Struct("<qqqq")


def sum_of_link(key: int, url: str, host: int, depth: int, origin: int, payload: bytes) -> int:
    """Return the checksum of a link, -1 if a value has the wrong type."""
    try:
        return crc32(payload, crc32(url.encode(), crc32(_NUMBERS.pack(key, host, depth, origin))))
    except (TypeError, AttributeError, error):  # SQLite keeps values of any type in any column
        return -1


def sum_of_host(host: int, name: str) -> int:
    """Return the checksum of the name of a host."""
    return crc32(name.encode(), crc32(_NUMBERS.pack(host, 0, 0, 0)))


def sum_of_keys(keys: bytes) -> int:
    """Return the checksum of a block of keys."""
    return crc32(keys)
