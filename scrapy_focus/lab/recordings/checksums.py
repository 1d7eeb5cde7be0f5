"""Checksums of a recording: SQLite has none, and a file with one wrong byte may look like another site.

They are written when a recording is closed, one for each table, over the values in it. The layout on the disk may
change, by a copy that SQLite makes, say.
"""

from __future__ import annotations

import json
from contextlib import closing
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.core.errors import RecordingError
from scrapy_focus.lab.recordings.format import has_table, open_recording, reading

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from pathlib import Path

SUMS = "sums"  # their names in the table meta
_AT_ONCE = 10_000  # rows
_VERSIONS = {  # where URLs have several answers
    "begins": "SELECT page, since FROM begins ORDER BY page",
    "versions": "SELECT * FROM versions ORDER BY id",
    "version_links": "SELECT source, position, target, tag_path, anchor, context FROM version_links ORDER BY source, "
    "position",
}
_RENDERINGS = {  # where pages were rendered
    "renderings": "SELECT * FROM renderings ORDER BY id",
    "rendering_links": "SELECT source, position, target, tag_path, anchor, context FROM rendering_links ORDER BY "
    "source, position",
    "assets": "SELECT rendering, url, size FROM assets ORDER BY rendering, url",
}
_ROWS = {  # of each table, in an order that does not depend on how they are stored
    "meta": "SELECT name, value FROM meta WHERE name <> 'sums' ORDER BY name",
    "texts": "SELECT id, text FROM texts ORDER BY id",
    "pages": "SELECT * FROM pages ORDER BY id",
    "links": "SELECT source, position, target, tag_path, anchor, context FROM links ORDER BY source, position",
}


def sums_of(database: sqlite3.Connection) -> dict[str, str]:
    """Return a checksum of each table of a recording; linear in its bytes, about a microsecond a link."""
    questions = dict(_ROWS)
    for table, more in (("versions", _VERSIONS), ("renderings", _RENDERINGS)):
        if has_table(database, table):
            questions |= more
    return {table: _sum(table, database.execute(question)) for table, question in questions.items()}


def verify(path: Path) -> str:
    """Compare a recording with the checksums from when it was closed, and describe the result.

    Raises
    ------
    RecordingError
        If it differs, or cannot be read.
    """
    database = open_recording(path, writable=False)
    with closing(database), reading(path):
        said = database.execute("SELECT value FROM meta WHERE name = ?", (SUMS,)).fetchone()
        wrong = [str(row[0]) for row in database.execute("PRAGMA integrity_check(1)")]
        if wrong != ["ok"]:
            raise RecordingError(f"{path} is damaged: {wrong[0]}; {_ADVICE}")
        if said is None:
            return "it has no checksums: an earlier version wrote it, or the recording was killed"
        expected = dict(json.loads(said[0]))
        found = sums_of(database)
    if changed := [table for table in {**found, **expected} if found.get(table) != expected.get(table)]:
        raise RecordingError(f"{path} is not what was written: its {' and '.join(changed)} changed; {_ADVICE}")
    return "all is as it was written"


_ADVICE = "take another copy, or record the site again"


def _sum(table: str, rows: sqlite3.Cursor) -> str:
    made = blake2b(digest_size=16)
    while some := rows.fetchmany(_AT_ONCE):
        if table in ("links", "version_links", "rendering_links", "assets"):
            made.update(np.fromiter(chain.from_iterable(some), np.int64).astype("<i8").tobytes())
        else:
            _add(made, chain.from_iterable(some))
    return made.hexdigest()


def _add(made: Any, values: Iterable[Any]) -> None:
    """Add values to a checksum, each with its type and length, so that no two lists of them look the same."""
    for value in values:
        content = value if isinstance(value, bytes) else repr(value).encode("utf-8", "surrogatepass")
        made.update(f"{type(value).__name__}:{len(content)};".encode())
        made.update(content)
