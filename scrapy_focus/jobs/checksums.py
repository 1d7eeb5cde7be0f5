"""Checksums of the notes of a checkpoint: SQLite has none, and a policy with one wrong byte may still unpickle."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SUMS = "sums"  # the note that holds them


def summed(notes: Mapping[str, bytes]) -> dict[str, bytes]:
    """Add a note with checksums to notes."""
    sums = {name: zlib.crc32(value) for name, value in notes.items() if name != SUMS}
    return {**notes, SUMS: json.dumps(sums).encode()}


def damaged(notes: Mapping[str, bytes]) -> list[str]:
    """Return the names of the notes with a wrong checksum.

    Notes without checksums, from an earlier version, are accepted.
    """
    if SUMS not in notes:
        return []
    try:
        sums = dict(json.loads(notes[SUMS]))
    except (ValueError, TypeError, RecursionError):
        return [SUMS]
    values = {name: notes.get(name, b"") for name in sums}
    return [name for name, value in values.items() if not isinstance(value, bytes) or zlib.crc32(value) != sums[name]]
