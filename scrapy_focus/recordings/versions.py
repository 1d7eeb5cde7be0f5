"""The versions of the pages of a recorded site: what each URL answered from when on, where it answered this and that.

Most recordings have one answer of each URL, and nothing should be slower for them as others have more. So answers are
numbered: the first of each URL has the number of the URL, and all later ones have numbers behind these. A column has a
value for each answer, and who knows the number of an answer need not know whether it is the first.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import chain
from sys import intern
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from numpy.typing import NDArray

SCHEMA = """
CREATE TABLE begins (                               -- URLs that did not always answer as they do in pages
    page INTEGER PRIMARY KEY REFERENCES pages,
    since REAL NOT NULL                             -- seconds since the epoch; before, it answered 404
);
CREATE TABLE versions (                             -- what URLs answered later
    id INTEGER PRIMARY KEY,                         -- from 0
    page INTEGER NOT NULL REFERENCES pages,
    since REAL NOT NULL,                            -- seconds since the epoch, until the next version
    status INTEGER,                                 -- this and the following as in pages
    error TEXT,
    mime TEXT NOT NULL,
    size INTEGER NOT NULL,
    seconds REAL NOT NULL,
    redirect INTEGER REFERENCES pages,
    headers INTEGER NOT NULL REFERENCES texts,
    header_size INTEGER NOT NULL,
    digest BLOB,
    body BLOB,
    UNIQUE (page, since)
);
CREATE TABLE version_links (
    source INTEGER NOT NULL REFERENCES versions,
    position INTEGER NOT NULL,                      -- this and the following as in links
    target INTEGER NOT NULL REFERENCES pages,
    tag_path INTEGER NOT NULL REFERENCES texts,
    anchor INTEGER NOT NULL REFERENCES texts,
    context INTEGER NOT NULL REFERENCES texts,
    PRIMARY KEY (source, position)
) WITHOUT ROWID;
"""
NOT_YET = -1  # in place of an answer: the URL was not there then
_ANSWER = "status, error, mime, size, seconds, redirect, header_size, digest"


@dataclass(frozen=True, slots=True)
class Columns:
    """What is known of answers without looking into them, a value for each; shape (n_answers,)."""

    status: NDArray[np.int16]  # 0 where there was no response
    errors: dict[int, str]  # why there was none, by the number of the answer
    recorded: NDArray[np.bool_]  # whether the URL was asked for
    mimes: list[str]
    size: NDArray[np.int64]  # bytes of the body
    header_size: NDArray[np.int64]  # bytes
    seconds: NDArray[np.float64]  # that the response took; 0: unknown
    redirect: NDArray[np.int64]  # number of the URL that a redirect leads to; -1: it is none, or leads off the site
    digest: NDArray[np.int64]  # equal for equal bodies; 0 where there was none

    def first(self, n: int) -> Columns:
        """Return the first so many."""
        return Columns(
            self.status[:n], {page: error for page, error in self.errors.items() if page < n}, self.recorded[:n],
            self.mimes[:n], self.size[:n], self.header_size[:n], self.seconds[:n], self.redirect[:n], self.digest[:n],
        )  # fmt: skip


class Histories:
    """Which answer of each URL holds when; URLs with one answer, which always held, are not in it.

    Parameters
    ----------
    n_urls
        How many URLs there are.
    rows
        Page and time since which its version holds, in the order of the versions' numbers.
    begins
        Since when the first answer of a URL holds, by its number, where it did not always.
    """

    def __init__(self, n_urls: int, rows: Sequence[tuple[int, float]], begins: dict[int, float]) -> None:
        found: dict[int, list[tuple[float, int]]] = {page: [(since, page)] for page, since in begins.items()}
        for number, (page, since) in enumerate(rows, n_urls):
            found.setdefault(page, [(-np.inf, page)]).append((since, number))
        self._since: dict[int, list[float]] = {}
        self._answers: dict[int, list[int]] = {}
        for page, history in found.items():
            history.sort()
            self._since[page] = [since for since, _ in history]
            self._answers[page] = [answer for _, answer in history]
        times = [since for history in self._since.values() for since in history if np.isfinite(since)]
        #: When the first of all changes was, in seconds since the epoch; 0 where there is none.
        self.begin = min(times, default=0.0)
        #: When the last of all was, likewise.
        self.end = max(times, default=0.0)

    def at(self, page: int, time: float) -> int:
        """Return the number of the answer that a URL gave at a time, :data:`NOT_YET` if it was not there."""
        since = self._since.get(page)
        if since is None:
            return page
        place = bisect_right(since, time)
        return self._answers[page][place - 1] if place else NOT_YET

    def of(self, page: int) -> list[tuple[float, int]]:
        """Return since when each answer of a URL held, and its number, in order; the time of one that always did is
        ``-inf``.
        """
        if page not in self._since:
            return [(-np.inf, page)]
        return list(zip(self._since[page], self._answers[page], strict=True))


def read_columns(database: sqlite3.Connection, *, has_versions: bool, has_renderings: bool) -> Columns:
    """Return the columns of all answers: those of the pages, of their versions, of their renderings."""
    rows = database.execute(f"SELECT {_ANSWER} FROM pages ORDER BY id").fetchall()  # noqa: S608 (a constant)
    if has_versions:
        rows += database.execute(f"SELECT {_ANSWER} FROM versions ORDER BY id").fetchall()  # noqa: S608
    if has_renderings:
        rows += database.execute(f"SELECT {_ANSWER} FROM renderings ORDER BY id").fetchall()  # noqa: S608
    columns: list[tuple[Any, ...]] = list(zip(*rows, strict=True)) or [()] * 8
    status, error, mime, size, seconds, redirect, header_size, digest = columns
    return Columns(
        status=np.array([value or 0 for value in status], np.int16),
        errors={answer: text for answer, text in enumerate(error) if text},
        recorded=np.array(
            [value is not None or text is not None for value, text in zip(status, error, strict=True)], np.bool_
        ),
        mimes=[intern(value) for value in mime],
        size=np.array(size, np.int64),
        header_size=np.array(header_size, np.int64),
        seconds=np.array(seconds, np.float64),
        redirect=np.array([-1 if value is None else value for value in redirect], np.int64),
        digest=np.array([int.from_bytes(value or b"", "big", signed=True) for value in digest], np.int64),
    )


def read_histories(database: sqlite3.Connection, n_urls: int) -> Histories:
    """Return which answer of each URL holds when.

    Raises
    ------
    ValueError
        If versions are missing, or are of pages that are not there, or a time is no number.
    """
    rows = database.execute("SELECT id, page, since FROM versions ORDER BY id").fetchall()
    begins = dict(database.execute("SELECT page, since FROM begins").fetchall())
    if [number for number, _, _ in rows] != list(range(len(rows))):
        raise ValueError("versions are missing")
    times = np.array([since for *_, since in rows] + list(begins.values()), np.float64)
    if not np.isfinite(times).all():
        raise ValueError("a time is no number")
    if not all(0 <= page < n_urls for page in chain(begins, (page for _, page, _ in rows))):
        raise ValueError("a version is of a page that is not there")
    return Histories(n_urls, [(page, since) for _, page, since in rows], begins)
