"""The pages of a recorded site as a browser showed them, beside what each answered, and what it took to show them.

A page is rendered after it was fetched, so it has two copies, and a crawl may ask for either. The second one is an
answer with a number of its own, as later versions are. What it took depends on when it is asked for: a script that many
pages share comes once for all of them. So such scripts and style sheets are kept apart, and whoever asks counts those
that are new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import sqlite3

SCHEMA = """
CREATE TABLE renderings (                           -- pages with scripts, as a browser showed them
    id INTEGER PRIMARY KEY,                         -- from 0
    page INTEGER NOT NULL UNIQUE REFERENCES pages,
    status INTEGER,                                 -- NULL: it was not shown, see error; or never rendered
    error TEXT,                                     -- NULL and no status: never rendered
    mime TEXT NOT NULL DEFAULT '',                  -- this and the following as in pages
    size INTEGER NOT NULL DEFAULT 0,                -- bytes of the document as shown, scripts done
    seconds REAL NOT NULL DEFAULT 0,
    redirect INTEGER REFERENCES pages,
    headers INTEGER NOT NULL DEFAULT 0 REFERENCES texts,
    header_size INTEGER NOT NULL DEFAULT 0,
    digest BLOB,
    body BLOB,
    requests INTEGER NOT NULL DEFAULT 0,            -- that went out besides the page's own, those for assets left out
    received INTEGER NOT NULL DEFAULT 0             -- bytes of the network for the page and these
);
CREATE INDEX unrendered ON renderings (id) WHERE status IS NULL AND error IS NULL;
CREATE TABLE rendering_links (
    source INTEGER NOT NULL REFERENCES renderings,
    position INTEGER NOT NULL,                      -- this and the following as in links
    target INTEGER NOT NULL REFERENCES pages,
    tag_path INTEGER NOT NULL REFERENCES texts,
    anchor INTEGER NOT NULL REFERENCES texts,
    context INTEGER NOT NULL REFERENCES texts,
    PRIMARY KEY (source, position)
) WITHOUT ROWID;
CREATE TABLE assets (                               -- what a crawl keeps, and asks for once: scripts and style sheets
    rendering INTEGER NOT NULL REFERENCES renderings,
    url INTEGER NOT NULL REFERENCES texts,
    size INTEGER NOT NULL,                          -- bytes of the network
    PRIMARY KEY (rendering, url)
) WITHOUT ROWID;
"""


class Shown(NamedTuple):
    """What showing a page took, and the number of what was shown."""

    answer: int
    requests: int  # that went out besides the page's own, those for assets left out
    received: int  # bytes of the network for the page and these
    assets: tuple[tuple[int, int], ...] = ()  # scripts and style sheets that a crawl asks for once: number, bytes


def read_renderings(database: sqlite3.Connection, first: int, n_urls: int) -> tuple[dict[int, Shown], frozenset[int]]:
    """Return what a browser showed, by page, and the pages with scripts that were never rendered.

    ``first`` is the number of the first rendering among all answers.

    Raises
    ------
    ValueError
        If renderings are missing, are of pages that are not there, or took a negative number of anything.
    """
    rows = database.execute(
        "SELECT id, page, status IS NULL AND error IS NULL, requests, received FROM renderings ORDER BY id"
    ).fetchall()
    if [number for number, *_ in rows] != list(range(len(rows))):
        raise ValueError("renderings are missing")
    if not all(0 <= page < n_urls and min(took) >= 0 for _, page, _, *took in rows):
        raise ValueError("a rendering is of a page that is not there, or took less than nothing")
    assets: dict[int, list[tuple[int, int]]] = {}
    for number, url, size in database.execute("SELECT rendering, url, size FROM assets ORDER BY rendering, url"):
        if not (0 <= number < len(rows) and size >= 0):
            raise ValueError("an asset is of a page that was not rendered, or has less than no bytes")
        assets.setdefault(number, []).append((url, size))
    shown = {
        page: Shown(first + number, requests, received, tuple(assets.get(number, ())))
        for number, page, is_open, requests, received in rows
        if not is_open
    }
    return shown, frozenset(page for _, page, is_open, *_ in rows if is_open)
