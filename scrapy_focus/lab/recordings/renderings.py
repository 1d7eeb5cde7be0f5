"""The pages of a recorded site as a browser showed them, and the cost of showing them.

A page is rendered after it was fetched, so it has two copies, and a crawl may request either. The second one is an
answer with a number, like later versions. Its cost depends on the time of the request: a script that many pages share
is downloaded once for all of them. So such scripts and style sheets are kept separately, and the crawl counts the new
ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator

    from scrapy_focus.lab.recordings.columns import Arrays

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
    """The cost of showing a page, and the number of the result."""

    answer: int
    requests: int  # requests besides the page's own, and those for shared assets
    received: int  # bytes of the network for the page and these
    assets: tuple[tuple[int, int], ...] = ()  # scripts and style sheets that a crawl requests once: number, bytes


class Renderings(Mapping[int, Shown]):
    """What a browser showed, by page, and its cost.

    Parameters
    ----------
    arrays
        The result of :func:`read_renderings`.
    first
        The number of the first rendering among all answers.
    """

    def __init__(self, arrays: Arrays, first: int) -> None:
        self._first = first
        self._of = arrays["renderings.of"].data
        self._pages = arrays["renderings.pages"]
        self._open = arrays["renderings.open"]
        self._took = arrays["renderings.requests"], arrays["renderings.received"]
        self._starts = arrays["assets.starts"]
        self._assets = arrays["assets.urls"], arrays["assets.sizes"]

    def __len__(self) -> int:
        return len(self._pages) - int(np.count_nonzero(self._open))

    def __iter__(self) -> Iterator[int]:
        return iter(self._pages[~self._open].tolist())

    def __contains__(self, page: object) -> bool:
        return isinstance(page, int) and self._number(page) >= 0

    def __getitem__(self, page: int) -> Shown:
        number = self._number(page)
        if number < 0:
            raise KeyError(page)
        requests, received = (int(column[number]) for column in self._took)
        places = slice(int(self._starts[number]), int(self._starts[number + 1]))
        urls, sizes = (column[places].tolist() for column in self._assets)
        return Shown(self._first + number, requests, received, tuple(zip(urls, sizes, strict=True)))

    def _number(self, page: int) -> int:
        number = int(self._of[page]) if 0 <= page < len(self._of) else -1
        return -1 if number >= 0 and self._open[number] else number


class Unrendered(Set[int]):
    """The pages with scripts that were never rendered. Parameters as of :class:`Renderings`."""

    def __init__(self, arrays: Arrays) -> None:
        self._of = arrays["renderings.of"].data
        self._pages = arrays["renderings.pages"]
        self._open = arrays["renderings.open"]

    def __len__(self) -> int:
        return int(np.count_nonzero(self._open))

    def __iter__(self) -> Iterator[int]:
        return iter(self._pages[self._open].tolist())

    def __contains__(self, page: object) -> bool:
        number = int(self._of[page]) if isinstance(page, int) and 0 <= page < len(self._of) else -1
        return number >= 0 and bool(self._open[number])

    @classmethod
    def _from_iterable(cls, pages: Iterable[int]) -> frozenset[int]:  # type: ignore[override]
        return frozenset(pages)


def read_renderings(database: sqlite3.Connection, n_urls: int) -> Arrays:
    """Return what a browser showed, and what was never rendered, in the order of their numbers.

    Raises
    ------
    ValueError
        If renderings are missing, are of missing pages, or have a negative cost.
    """
    rows = database.execute(
        "SELECT id, page, status IS NULL AND error IS NULL, requests, received FROM renderings ORDER BY id"
    ).fetchall()
    numbers, pages, is_open, requests, received = np.array(rows, np.int64).reshape(-1, 5).T
    if numbers.tolist() != list(range(len(rows))):
        raise ValueError("renderings are missing")
    if len(rows) and not (0 <= pages.min() <= pages.max() < n_urls and min(requests.min(), received.min()) >= 0):
        raise ValueError("a rendering is of a page that is not there, or took less than nothing")
    listed = database.execute("SELECT rendering, url, size FROM assets ORDER BY rendering, url").fetchall()
    of, urls, sizes = np.array(listed, np.int64).reshape(-1, 3).T
    if len(listed) and not (0 <= of.min() <= of.max() < len(rows) and sizes.min() >= 0):
        raise ValueError("an asset is of a page that was not rendered, or has less than no bytes")
    by_page = np.full(n_urls, -1, np.int32)
    by_page[pages] = numbers
    return {
        "renderings.of": by_page,
        "renderings.pages": pages.copy(),
        "renderings.open": is_open.astype(np.bool_),
        "renderings.requests": requests.copy(),
        "renderings.received": received.copy(),
        "assets.starts": np.searchsorted(of, np.arange(len(rows) + 1)).astype(np.int64),
        "assets.urls": urls.copy(),
        "assets.sizes": sizes.copy(),
    }
